"""The built site in Chromium: search, safety, and nothing from elsewhere."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from kbkit.export import export_site, open_server
from kbkit.models import Document, DocumentState, DocumentType, KnowledgeBaseInfo
from kbkit.recipes import SiteSpec

sync_api = pytest.importorskip("playwright.sync_api")

pytestmark = pytest.mark.browser

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
HOSTILE = Path(__file__).parents[1] / "export" / "hostile.yaml"
FLAGS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def _document(uri: str, title: str, content: str, tags: tuple[str, ...] = ()) -> Document:
    return Document(uri, uri, title, content, DocumentType.REFERENCE, tags, {},
                    DocumentState.CURRENT, NOW, "")  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[str]:
    """Address of a served site with ordinary documents and a hostile one."""
    evil = yaml.safe_load(HOSTILE.read_text(encoding="utf-8"))
    documents = [
        _document("python:log.append_event", "log.append_event",
                  "# log.append_event\n\n```python\nappend_event(name)\n```\n\nAdds one."),
        _document("python:log.appendEvent", "log.appendEvent", "The same for JavaScript people."),
        _document("python:log.parse", "log.parse", "Calls `os.path.join(folder, name)` for you."),
        _document("python:log.other", "log.other",
                  "An event may be anything.\n\n## Deep {#deep}\n\nQuokkas live here."),
        _document(evil["uri"], evil["title"], evil["content"], tuple(evil["tags"])),
    ]  # fmt: skip
    info = KnowledgeBaseInfo("kb", "log", "A log", ("package",), 5, 9, "static", 256, "kb", NOW,
                             NOW, {"current": 5}, {"reference": 5}, 0)  # fmt: skip
    directory = tmp_path_factory.mktemp("site")
    report = export_site(info, documents, directory, SiteSpec(title="Log"))
    assert report.html is not None
    with open_server(report.html) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser(chromium) -> Iterator[sync_api.Browser]:
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=chromium, args=FLAGS, chromium_sandbox=False
        )
        yield running
        running.close()


@pytest.fixture
def page(browser, site) -> Iterator[sync_api.Page]:
    """A page that must ask nobody but the site, show no dialog and log no error."""
    context = browser.new_context(base_url=site)
    context.set_default_timeout(10_000)
    tab = context.new_page()
    foreign: list[str] = []
    trouble: list[str] = []
    tab.on("request", lambda request: None if request.url.startswith((site, "data:", "blob:"))
           else foreign.append(request.url))  # fmt: skip
    tab.on("console", lambda line: trouble.append(line.text) if line.type in {"error", "warning"}
           else None)  # fmt: skip
    tab.on("pageerror", lambda error: trouble.append(str(error)))

    def dismiss(dialog: sync_api.Dialog) -> None:
        trouble.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    tab.on("dialog", dismiss)
    yield tab
    context.close()
    assert foreign == []
    assert trouble == []


def search(page: sync_api.Page, query: str) -> list[str]:
    """Type into the search box and read the titles of what is found."""
    box = page.locator("input.md-search__input")
    box.click()
    box.fill("")
    box.press_sequentially(query)  # the theme listens to keys
    meta = page.locator(".md-search-result__meta", has_text=re.compile("matching"))
    meta.wait_for(timeout=10_000)
    page.wait_for_timeout(300)
    titles = page.locator(".md-search-result__item a").locator("h1, h2")
    return [text.strip() for text in titles.all_inner_texts()]


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
def test_the_search_finds_names_whole_and_by_parts(page, query, first):
    page.goto("/index.html")
    found = search(page, query)
    assert found, query
    assert found[0] in first


def test_a_result_leads_to_its_section(page, site):
    page.goto("/index.html")
    search(page, "quokkas")
    page.locator(".md-search-result__item a", has_text="Deep").first.click()
    page.wait_for_url("**/other.html*")
    assert page.url.startswith(f"{site}/pages/log/other.html")
    assert "#deep" in page.url
    assert page.locator("h2#deep").is_visible()


def test_a_hostile_document_does_nothing(page):
    page.goto("/index.html")
    found = search(page, "zanzibar")
    assert found
    page.locator(".md-search-result__item a").first.click()
    page.wait_for_selector("text=findable zanzibar")
    page.mouse.move(300, 300)
    for heading in page.locator("article h2").all():
        heading.hover()
    page.wait_for_timeout(300)
    assert "127.0.0.1-9" in page.url
    assert page.title().startswith("Evil")
    assert page.locator("h1").count() == 1
    assert "alert('raw')" in page.locator("article").inner_text()
    # the theme still works: its configuration was not replaced by a heading
    assert search(page, "append_event")


def test_light_and_dark(page):
    page.emulate_media(color_scheme="light")
    page.goto("/index.html")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.screenshot(path=SCREENSHOTS / "site-light.png")
    page.locator("label[for=__palette_1]").click()
    page.wait_for_timeout(300)
    assert page.evaluate(background) != light
    page.screenshot(path=SCREENSHOTS / "site-dark.png")
