"""The built site in Chromium: search, safety, and nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from kbkit.export import build_site, export_pages, serve_site, write_project
from kbkit.models import Document, DocumentState, DocumentType, KnowledgeBaseInfo
from kbkit.recipes import SiteSpec
from tests.browser.layout import settle
from tests.browser.published import HOSTILE, Tab, opened

sync_api = pytest.importorskip("playwright.sync_api")

pytestmark = pytest.mark.browser

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"


def _document(uri: str, title: str, content: str, tags: tuple[str, ...] = ()) -> Document:
    return Document(
        uri, uri, title, content, DocumentType.REFERENCE, tags, {}, DocumentState.CURRENT, NOW, ""
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[str]:
    """Address of a served site with ordinary documents and a hostile one."""
    evil = yaml.safe_load(HOSTILE.read_text(encoding="utf-8"))
    documents = [
        _document(
            "python:log.append_event",
            "log.append_event",
            "# log.append_event\n\n```python\nappend_event(name)\n```\n\nAdds one.",
        ),
        _document("python:log.appendEvent", "log.appendEvent", "The same for JavaScript people."),
        _document("python:log.parse", "log.parse", "Calls `os.path.join(folder, name)` for you."),
        _document(
            "python:log.other",
            "log.other",
            "An event may be anything.\n\n## Deep {#deep}\n\nQuokkas live here.",
        ),
        _document(evil["uri"], evil["title"], evil["content"], tuple(evil["tags"])),
    ]
    info = KnowledgeBaseInfo(
        "kb",
        "log",
        "A log",
        ("package",),
        5,
        9,
        "static",
        256,
        "kb",
        NOW,
        NOW,
        {"current": 5},
        {"reference": 5},
        0,
    )
    directory = tmp_path_factory.mktemp("site")
    write_project(directory, info, SiteSpec(title="Log"))
    export_pages(info, documents, directory / "docs", SiteSpec(title="Log"))
    with serve_site(build_site(directory)) as address:
        yield address.removesuffix("/")


@pytest.fixture
def tab(chrome, site) -> Iterator[Tab]:
    """A page that must ask nobody but the site, show no dialog and log no error."""
    yield from opened(chrome, site + "/")


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("append_event", {"log.append_event", "log.appendEvent"}),
        ("appendEvent", {"log.append_event", "log.appendEvent"}),
        ("appendevent", {"log.appendEvent"}),
        ("append", {"log.append_event", "log.appendEvent"}),
        ("os.path.join", {"log.parse"}),
        ("quokkas", {"log.other"}),
    ],
)
def test_the_search_finds_names_whole_and_by_parts(tab, query, first):
    tab.open("index.html")
    found = tab.type(query)
    assert found, query
    assert found[0] in first


def test_a_result_leads_to_its_section(tab, site):
    tab.open("index.html")
    tab.type("quokkas")
    tab.page.locator(".md-search-result__item a", has_text="Deep").first.click()
    tab.page.wait_for_url("**/other.html*")
    assert tab.page.url.startswith(f"{site}/pages/log/other.html")
    assert "#deep" in tab.page.url
    sync_api.expect(tab.page.locator("h2#deep")).to_be_visible()


def test_a_hostile_document_does_nothing(tab):
    tab.open("index.html")
    found = tab.type("zanzibar")
    assert found
    tab.page.locator(".md-search-result__item a").first.click()
    tab.page.wait_for_selector("text=findable zanzibar")
    tab.page.mouse.move(300, 300)
    for heading in tab.page.locator("article h2").all():
        heading.hover()
    settle(tab.page)
    assert "127.0.0.1-9" in tab.page.url
    assert tab.page.title().startswith("Evil")
    sync_api.expect(tab.page.locator("h1")).to_have_count(1)
    sync_api.expect(tab.page.locator("article")).to_contain_text("alert('raw')")
    # the theme still works: its configuration was not replaced by a heading
    assert tab.type("append_event")


def test_light_and_dark(tab):
    tab.page.emulate_media(color_scheme="light")
    tab.open("index.html")
    background = "getComputedStyle(document.body).backgroundColor"
    light = tab.page.evaluate(background)
    tab.page.screenshot(path=SCREENSHOTS / "site-light.png")
    tab.page.locator("label[for=__palette_1]").click()
    tab.page.wait_for_function(f"{background} != '{light}'")
    tab.page.screenshot(path=SCREENSHOTS / "site-dark.png")
