"""An existing MkDocs site that mounts the knowledge base of a recipe."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.export.conftest import times_of


def mkdocs(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict"],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "true"},
    )


@pytest.fixture
def own_site(tmp_path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text("# Ours\n")
    (tmp_path / "docs/llms.txt").write_text("ours\n")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/apples.md").write_text("# Apples\n\nThey are red.\n")
    (tmp_path / "notes/pears.md").write_text("# Pears\n\nSee [apples](apples.md).\n")
    (tmp_path / "fruit.yaml").write_text("name: fruit\nsources:\n- type: files\n  path: notes\n")
    (tmp_path / "mkdocs.yml").write_text(
        "site_name: Ours\nsite_url: https://example.org/docs/\n"
        "theme: {name: material, font: false}\n"
        "plugins:\n- search\n- kbkit: {recipes: [fruit.yaml], workspace: .kb}\n"
    )
    return tmp_path


def test_site_mounts_the_knowledge_base_of_a_recipe(own_site):
    done = mkdocs(own_site)
    assert done.returncode == 0, done.stderr
    site = own_site / "site"
    assert "Knowledge bases" in (site / "index.html").read_text("utf-8")
    listed = json.loads((site / "kb/fruit/documents.json").read_text("utf-8"))["documents"]
    urls = {document["title"]: document["url"] for document in listed}
    assert set(urls) == {"Apples", "Pears"}
    page = (site / "kb/fruit" / urls["Pears"] / "index.html").read_text("utf-8")
    assert 'href="../apples/"' in page
    assert "They are red." in (site / "kb/fruit/llms-full.txt").read_text("utf-8")
    assert f"[Pears]({urls['Pears']})" in (site / "kb/fruit/llms.txt").read_text("utf-8")
    assert (site / "llms.txt").read_text() == "ours\n"
    assert "Content-Security-Policy" in (site / "404.html").read_text("utf-8")
    pages = (site / "sitemap.xml").read_text("utf-8")
    assert f"<loc>https://example.org/docs/kb/fruit/{urls['Pears']}</loc>" in pages


@pytest.mark.slow
def test_unchanged_pages_are_not_rewritten(own_site):
    assert mkdocs(own_site).returncode == 0
    times = times_of(own_site / "docs/kb", "*.*")
    assert mkdocs(own_site).returncode == 0
    after = times_of(own_site / "docs/kb", "*.*")
    assert [path for path in times if after[path] != times[path] and path.suffix != ".lock"] == []


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("fruit.yaml", "name: fruit\nsources: 3\n", "fruit.yaml"),
        pytest.param(
            "docs/kb/fruit/index.md", "mine", "not written by kbkit", marks=pytest.mark.soak
        ),
    ],
)
def test_invalid_recipe_or_foreign_page_fails_the_build(own_site, path, text, message):
    (own_site / path).parent.mkdir(parents=True, exist_ok=True)
    (own_site / path).write_text(text)
    done = mkdocs(own_site)
    assert done.returncode
    assert message in done.stderr
    assert "Traceback" not in done.stderr
