import json
import re
import shutil
import urllib.request
from collections import Counter
from pathlib import Path

import pytest
import yaml

from kbkit.errors import ConfigError, ExportError
from kbkit.export import build_site, export_pages, serve_site, write_project
from kbkit.export.mkdocs.build import CONFIG, SEPARATOR
from kbkit.recipes import SiteSpec
from tests.export.conftest import elements


def elements_of(path: Path) -> list[tuple[str, dict[str, str]]]:
    return elements(path.read_text("utf-8"))


INSTALL = "# Install {#install}\n\nSee [use](use.html#run)."


@pytest.fixture(scope="module")
def built(tmp_path_factory, document, info, hostile) -> Path:
    """A site with a hostile document, built in strict mode."""
    base = "https://docs.example.org/guide/"
    documents = [
        hostile,
        document(f"{base}install.html", INSTALL, title="Install"),
        document(f"{base}use.html", "## Run {#run}\n\n```python\nimport kbkit\n```", title="Use"),
        document("python:pkg.Log.append_event", "Adds `append_event`.", title="append_event"),
    ]
    directory = tmp_path_factory.mktemp("project")
    site = SiteSpec(title="Docs & <b>things</b>", url="https://example.org/kb/")
    about = info("docs", description='All "of" <it>', documents=4)
    assert write_project(directory, about, site) == directory
    report = export_pages(about, documents, directory / "docs", site)
    assert report.documents == 4
    assert set(report.seconds) == {"pages"}
    assert build_site(directory) == directory / "site"
    return directory


STEPS = ("prev", "next")


def page(built: Path, stem: str) -> Path:
    return next((built / "site" / "pages").rglob(f"{stem}.html"))


def test_built_page_of_a_hostile_document_has_nothing_active(built):
    path = next(path for path in (built / "site/pages").rglob("*.html") if "127.0.0.1" in str(path))
    hostile, ordinary = (
        # the first page and the last have fewer links to their neighbours
        [(tag, attrs) for tag, attrs in elements_of(each) if attrs.get("rel") not in STEPS]
        for each in (path, page(built, "install"))
    )
    counts, expected = (Counter(tag for tag, _ in each) for each in (hostile, ordinary))
    for tag in ("script", "style", "iframe", "base", "form", "input", "img", "meta", "link"):
        assert counts[tag] == expected[tag], tag
    assert not [attrs for _, attrs in hostile if any(name.startswith("on") for name in attrs)]
    assert not [attrs for _, attrs in hostile if "evil" in attrs.get("src", "")]
    links = [attrs.get("href", "") for name, attrs in hostile if name == "a"]
    assert not [link for link in links if re.match(r"\s*(javascript|data|vbscript|file):", link)]
    assert [attrs.get("id") for _, attrs in hostile].count("__config") == 1
    text = path.read_text("utf-8")
    assert "49" not in re.findall(r"<title>(.*?)</title>", text)[0]
    assert "root:x:0:0" not in text
    assert "findable zanzibar" in text


@pytest.mark.slow
def test_build_from_cached_pages_gives_the_same_site(built, tmp_path):
    project = tmp_path / "copy"
    shutil.copytree(built, project)
    assert list((project / ".cache/plugin/kbkit").glob("*.json"))
    shutil.rmtree(project / "site")
    site = build_site(project)
    pages = sorted(path.relative_to(site) for path in site.rglob("*.html"))
    assert len(pages) > 5
    assert [p for p in pages if (site / p).read_bytes() != (built / "site" / p).read_bytes()] == []
    assert "fetched 2026" in page(project, "install").read_text("utf-8")


def test_links_between_documents_keep_their_anchors(built):
    install = elements_of(page(built, "install"))
    assert "use.html#run" in [attrs.get("href") for tag, attrs in install if tag == "a"]
    assert "run" in [attrs.get("id") for _, attrs in elements_of(page(built, "use"))]


def test_each_page_has_one_title_and_loads_nothing_external(built):
    for path in (built / "site").rglob("*.html"):
        assert [tag for tag, _ in elements_of(path)].count("h1") == 1, path
        for tag, attrs in elements_of(path):
            source = attrs.get("src") or (attrs.get("href", "") if tag == "link" else "")
            if attrs.get("rel") != "canonical":
                assert not source.startswith(("http:", "https:", "//")), (path, tag, source)


def test_search_index_has_the_pages_and_their_anchors(built):
    index = json.loads((built / "site/search/search_index.json").read_text("utf-8"))
    places = {entry["location"] for entry in index["docs"]}
    assert "pages/docs.example.org/guide/use.html#run" in places
    text = json.dumps(index["docs"])
    assert "fetched 2026" not in text
    assert "<img" not in text
    assert "<script" not in text


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("append_event", ["append", "event"]),
        ("os.path.join", ["os", "path", "join"]),
        ("Python 3.11", ["Python", "3.11"]),
        ("__init__()", ["init"]),
    ],
)
def test_search_separator_splits_names(text, parts):
    # JavaScript and Python read this pattern alike
    assert [part for part in re.split(SEPARATOR, text) if part] == parts


def test_failed_build_names_the_reason(tmp_path, info):
    write_project(tmp_path, info(), SiteSpec())
    (tmp_path / "docs/index.md").write_text("[x](missing.md)")
    with pytest.raises(ExportError, match=r"missing\.md"):
        build_site(tmp_path)


def test_edited_project_configuration_is_kept(tmp_path, info):
    write_project(tmp_path, info(), SiteSpec())
    config = tmp_path / CONFIG
    assert yaml.safe_load(config.read_text())["site_name"] == "notes"
    write_project(tmp_path, info("other"), SiteSpec())
    assert yaml.safe_load(config.read_text())["site_name"] == "other"
    config.write_text("site_name: mine\n")
    write_project(tmp_path, info(), SiteSpec())
    assert config.read_text() == "site_name: mine\n"


def test_build_never_empties_a_foreign_folder(tmp_path, info):
    write_project(tmp_path, info(), SiteSpec())
    (tmp_path / "site").mkdir()
    (tmp_path / "site/thesis.txt").write_text("keep")
    with pytest.raises(ExportError, match="move them away"):
        build_site(tmp_path)
    assert (tmp_path / "site/thesis.txt").read_text() == "keep"


def test_server_serves_the_site_on_loopback(built):
    with serve_site(built / "site") as address:
        with urllib.request.urlopen(address) as answer:
            assert b"<h1" in answer.read()
        for path in ("../mkdocs.yml", "pages/"):
            with pytest.raises(urllib.error.HTTPError):
                urllib.request.urlopen(f"{address}{path}")
    assert address.startswith("http://127.0.0.1:")


def test_missing_pages_are_served_as_404_page(built):
    with serve_site(built) as address:
        with urllib.request.urlopen(address) as answer:
            assert b"<h1" in answer.read()
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"{address}no/such/page")
    assert caught.value.code == 404
    assert caught.value.read() == (built / "site" / "404.html").read_bytes()


def test_missing_site_and_busy_port_are_errors(built, tmp_path):
    with pytest.raises(ExportError, match="no site here"), serve_site(tmp_path):
        pass
    with serve_site(built / "site") as address:
        port = int(address.rstrip("/").rpartition(":")[2])
        with pytest.raises(ConfigError, match=f"port {port}"), serve_site(built / "site", port):
            pass


def test_site_is_rebuilt_only_after_changes(tmp_path, info):
    write_project(tmp_path, info(), SiteSpec())
    page = tmp_path / "docs/index.md"
    page.write_text("# One\n")
    built = build_site(tmp_path) / "index.html"
    first = built.stat().st_mtime_ns
    assert build_site(tmp_path) / "index.html" == built
    assert built.stat().st_mtime_ns == first
    page.write_text("# [Two](missing.md)\n")
    with pytest.raises(ExportError):
        build_site(tmp_path)
    page.write_text("# One\n")  # as in the site, but the last build failed
    build_site(tmp_path)
    assert built.stat().st_mtime_ns > first
    page.write_text("# Three\n")
    assert "Three" in (build_site(tmp_path) / "index.html").read_text("utf-8")


@pytest.mark.slow
def test_project_with_edited_configuration_is_always_built(tmp_path, info):
    write_project(tmp_path, info(), SiteSpec())
    config = tmp_path / CONFIG
    config.write_text(config.read_text("utf-8").partition("\n")[2])
    (tmp_path / "docs/index.md").write_text("# One\n")
    built = build_site(tmp_path) / "index.html"
    first = built.stat().st_mtime_ns
    build_site(tmp_path)
    assert built.stat().st_mtime_ns > first
