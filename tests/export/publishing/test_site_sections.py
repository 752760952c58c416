"""Files and entries as sections of a site."""

import io
import json
import re
import zipfile
from pathlib import Path

import pytest

import kbkit
from kbkit.errors import ConfigError
from kbkit.knowledge_base import handle_of
from kbkit.recipes import KnowledgeBaseSpec, SiteSpec
from tests.export.conftest import times_of

HOSTILE = (
    "<script>boom()</script> <svg onload=boom()></svg> <img src=x onerror=boom()>\n\n"
    "[a](javascript:boom()) [b](file:///etc/passwd) [c](/etc/passwd) [d](../../../etc/passwd) "
    "[[<img src=x onerror=boom()>]] ![x](https://evil.example/x.png)\n"
)


@pytest.fixture
def ws(tmp_path):
    with kbkit.open(tmp_path / "ws") as workspace:
        manual = workspace.create("manual", description="About pots")
        manual.add("Kilns", "# Kilns\n\nFire to 1000 degrees.", source="https://x.example/kilns")
        workspace.files.write(
            "plans/tea.md",
            "---\ntags: [drinks]\n---\n# Green tea\n\nSee [[Milk#How|the milk]], [[Lemon]], "
            "[log](log.md), `[[Milk]]`.\n",
        )
        workspace.files.write("plans/log.md", "# Log\n\nA quokka drank it.\n")
        workspace.files.write("milk.md", "# Milk\n\n## How\n\nCold. See [[Green tea]].\n")
        workspace.files.write("bad.md", HOSTILE)
        workspace.entries.create(
            "Parse a log",
            description="Reads logs.",
            prompt="# How\n\nLine by line.",
            tags=["logs"],
            category="tools",
            files={
                "code/parse.py": "def parse(): ...\n",
                "artifacts/evil.html": HOSTILE,
                "artifacts/evil.svg": "<svg onload=boom()></svg>",
            },
        )
        workspace.entries.create("Brew tea", status="draft")
        workspace.entries.rate("parse-a-log", 5, rater="secret-ann")
        workspace.entries.rate("parse-a-log", 4, rater="secret-bob")
        yield workspace


def pages(site: Path) -> dict[str, str]:
    return {path.relative_to(site).as_posix(): path.read_text() for path in site.rglob("*.html")}


def the_page(built: dict[str, str], ending: str) -> tuple[str, str]:
    """Return path and text of the only page whose path ends so."""
    (found,) = [item for item in built.items() if item[0].endswith(ending)]
    return found


def links(page: str) -> dict[str, str]:
    found = re.findall(r'<a [^>]*href="([^"]+)"[^>]*>(.*?)</a>', page, re.DOTALL)
    return {re.sub(r"<[^>]+>", "", text): href for href, text in found}


def test_site_has_files_and_entries_on_request(ws, tmp_path):
    folder = tmp_path / "site"
    report = ws["manual"].export(folder=folder, files=True, entries=True, model=False)
    built = pages(report.site)

    home = built["index.html"]
    assert {"Files", "Entries"} <= links(home).keys()
    assert links(home)["Files"] == "files/index.html"
    assert "Files" in links(built["files/index.html"]) or "manual" in built["files/index.html"]
    _, kilns = the_page(built, "kilns.html")
    assert re.search(r'class="md-nav__item kb-other">.*?Files</a>', kilns)

    path, tea = the_page(built, "plans/tea.html")
    assert path.startswith("files/")
    to = links(tea)
    assert to["the milk"] == "../milk.html#how"
    assert to["log"] == "log.html"
    assert "Lemon" in tea
    assert "Lemon" not in to
    assert "<code>[[Milk]]</code>" in tea
    assert "#drinks" in tea

    _, entry = the_page(built, "/parse-a-log.html")
    assert "★★★★★ rated 4.5 of 5 by 2 people" in entry
    assert "#logs" in entry
    assert "#tools" in entry
    assert '<span class="k">def</span>' in entry
    best = built["entries/index.html"].partition("<article")[2]
    assert best.index("★★★★★ (2)") < best.index("Brew tea")
    assert "[[" not in built["files/index.html"]
    assert "parse.py" in entry
    assert "assets/evil.svg" in entry
    assert links(entry)["Download all of it"].endswith("downloads/parse-a-log.zip")
    (archive,) = report.site.rglob("parse-a-log.zip")
    with zipfile.ZipFile(archive) as opened:
        assert opened.read("parse-a-log/scripts/parse.py") == b"def parse(): ...\n"
        assert b'name: "parse-a-log"' in opened.read("parse-a-log/SKILL.md")
        assert sorted(opened.namelist()) == [
            "parse-a-log/SKILL.md",
            "parse-a-log/assets/evil.html",
            "parse-a-log/assets/evil.svg",
            "parse-a-log/scripts/parse.py",
        ]

    served = b"".join(path.read_bytes() for path in report.site.rglob("*") if path.is_file())
    for secret in (b"secret-ann", b"secret-bob", str(tmp_path).encode()):
        assert secret not in served
        for path in report.site.rglob("*.zip"):
            with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as opened:
                assert all(secret not in opened.read(name) for name in opened.namelist())
    for active in ("evil.html", "evil.svg"):
        assert not list(report.site.rglob(active))
    _, bad = the_page(built, "/bad.html")
    markup = ("<script", "<svg onload", "<img", "onerror=boom()>")
    addresses = ('href="javascript', 'href="file:', 'href="/etc', 'etc/passwd"')
    for page in (bad, entry):
        body = page[page.index("<article") : page.index("</article>")]
        for active in (*markup, *addresses):
            assert active not in body, active

    site = (report.site / "assets/kbkit/site.js").read_text()
    searched = json.loads(site[site.index("{") : site.rindex("}") + 1])
    assert [kb["name"] for kb in searched["kbs"]][:3] == ["manual", "entries", "files"]


@pytest.mark.slow
def test_unchanged_sections_are_kept_and_unrequested_removed(ws, tmp_path):
    folder = tmp_path / "site"
    options = {"folder": folder, "build": False, "model": False}
    ws["manual"].export(files=True, entries=True, **options)
    pages, archives = times_of(folder, "*.md"), times_of(folder, "parse-a-log.zip")
    assert len(archives) == 1
    ws["manual"].export(files=True, entries=True, **options)
    assert times_of(folder, "parse-a-log.zip") == archives
    assert times_of(folder, "*.md") == pages

    ws.files.write("lemon.md", "# Lemon\n\nSour.\n")
    ws.files.delete("plans/log.md")
    ws["manual"].export(files=True, entries=True, **options)
    tea = next(folder.rglob("tea.md")).read_text()
    assert "lemon.md)" in tea
    assert not list(folder.rglob("log.md"))

    own = folder / "docs/files/mine.txt"
    own.write_text("mine")
    ws["manual"].export(**options)
    assert not (folder / "docs/entries").exists()
    assert [path.name for path in (folder / "docs/files").iterdir()] == ["mine.txt"]


def test_recipe_can_request_files(ws, tmp_path):
    ws["manual"].configure(KnowledgeBaseSpec(site=SiteSpec(files=True)))
    ws["manual"].export(folder=tmp_path / "site", build=False, model=False)
    assert (tmp_path / "site/docs/files/index.md").is_file()
    assert not (tmp_path / "site/docs/entries").exists()
    before = handle_of(ws["manual"]).site_revision()
    ws.files.write("new.md", "New.")
    assert handle_of(ws["manual"]).site_revision() != before


def test_workspace_without_files_or_entries_has_a_site(tmp_path):
    with kbkit.open(tmp_path / "ws") as workspace:
        kb = workspace.create("manual")
        kb.add("Kilns", "Fire.")
        kb.export(folder=tmp_path / "site", files=True, entries=True, build=False, model=False)
        assert not (tmp_path / "site/docs/files").exists()
        with pytest.raises(ConfigError, match="of their own"):
            kb.export(folder=tmp_path / "docs", pages_only=True, files=True)
