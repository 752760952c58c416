"""The page of a published site's graph in Chromium: by mouse and keys, and without a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.accessibility import violations
from tests.browser.published import Tab

sync_api = pytest.importorskip("playwright.sync_api")

pytestmark = pytest.mark.browser

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
PAGE = "kb/guides/graph.html"
LIST = "#kb-graph [role=listbox]"
TITLE = "#kb-graph h3"


def opened(tab: Tab, address: str = PAGE) -> Tab:
    tab.open(address)
    tab.page.locator(f"{LIST} [role=option]").first.wait_for()
    return tab


def test_what_is_selected_shows_documents_and_passages_that_lead_to_pages(tab):
    page = opened(tab).page
    assert not [url for url in tab.asked if "/core.js" in url], "nothing of the search yet"
    page.get_by_label("Find").fill("mkdocs")
    page.locator("#kb-graph h4", has_text="Names with").wait_for()
    page.locator(f"{LIST} [role=option]").first.click()
    sync_api.expect(page.locator(TITLE)).to_contain_text("kdocs", ignore_case=True)
    passage = page.locator("#kb-graph blockquote").first
    passage.wait_for()
    assert "mkdocs" in passage.inner_text().lower()
    assert page.locator(LIST).locator("[role=option]").count() > 0, "neighbours"
    link = page.locator("#kb-graph li:has(blockquote) a").first
    assert "?passage=" in link.get_attribute("href")
    link.click()
    page.wait_for_url("**/kb/guides/pages/**?passage=*")
    page.locator(".kb-passage").first.wait_for()


def test_the_graph_is_walked_by_keys(tab):
    page = opened(tab).page
    page.locator(LIST).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    first = page.locator(TITLE).inner_text()
    assert first
    page.locator(LIST).focus()
    page.keyboard.press("Enter")
    sync_api.expect(page.locator(TITLE)).not_to_have_text(first)
    page.keyboard.press("ArrowLeft")
    sync_api.expect(page.locator(TITLE)).to_have_text(first)


def test_gaps_stand_out_and_lead_to_documents(tab):
    page = opened(tab).page
    button = page.get_by_role("button", name="Gaps (")
    button.click()
    option = page.locator(f"{LIST} [role=option]").first
    assert "documents" in option.inner_text() or "passages" in option.inner_text()
    option.click()
    page.locator("#kb-graph .kb-graph-gap").first.wait_for()
    page.locator("#kb-graph .kb-graph-sources a").first.wait_for()


def test_an_address_opens_an_entity(tab):
    page = opened(tab, f"{PAGE}?entity=MkDocs").page
    sync_api.expect(page.locator(TITLE)).to_contain_text("MkDocs")
    opened(tab, f"{PAGE}?entity=%3Cimg%20src=x%20onerror=alert(1)%3E")
    assert page.locator(TITLE).inner_text() == ""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 768, 1440])
def test_the_page_fits_and_is_accessible(tab, scheme, width):
    tab.page.set_viewport_size({"width": width, "height": 900})
    tab.page.emulate_media(color_scheme=scheme)
    page = opened(tab, f"{PAGE}?entity=MkDocs").page
    page.locator("#kb-graph blockquote").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    picture, side = (page.locator(f"#kb-graph {part}").bounding_box()
                     for part in ("canvas", "section"))  # fmt: skip
    assert (side["x"] > picture["x"] + 100) == (width == 1440), "beside it where there is room"
    page.screenshot(path=SCREENSHOTS / f"site-graph-{scheme}-{width}.png")
    assert violations(page, "article") == []


def test_it_is_found_from_home_and_from_the_sidebar(tab):
    tab.page.set_viewport_size({"width": 1440, "height": 1200})
    tab.open("kb/guides/index.html")
    tab.page.locator(".kb-contents a", has_text="Knowledge graph").last.click()
    tab.page.wait_for_url(f"**/{PAGE}")
    tab.open("kb/guides/index.html")
    tab.page.locator("article a", has_text="knowledge graph").last.click()
    tab.page.wait_for_url(f"**/{PAGE}")


def test_without_scripts_the_page_lists_what_is_related_most(chrome, kitchen_address):
    context = chrome.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(kitchen_address + PAGE)
    links = page.locator("article li a")
    assert links.count() > 50
    assert page.locator("#kb-graph").bounding_box() is None, "no room is left for a picture"
    links.first.click()
    page.wait_for_url("**/kb/guides/pages/**")
    context.close()


def test_it_works_without_a_server(chrome, kitchen):
    base = f"{(kitchen / 'site').resolve().as_uri()}/"
    context = chrome.new_context()
    tab = opened(Tab(context.new_page(), base), f"{PAGE}?entity=MkDocs")
    tab.page.locator("#kb-graph blockquote").first.wait_for()
    context.close()
    assert [url for url in tab.asked if not url.startswith((base, "data:"))] == []
    assert [line for line in tab.trouble if "sitemap.xml" not in line] == []


def test_passages_that_cannot_be_read_are_done_without(tab):
    gone = {"status": 404, "body": ""}
    tab.page.context.route("**/core.js", lambda route: route.fulfill(**gone))
    page = opened(tab, f"{PAGE}?entity=MkDocs").page
    page.locator("#kb-graph .kb-graph-sources a").first.wait_for()
    assert page.locator("#kb-graph blockquote").count() == 0
    tab.trouble = [line for line in tab.trouble if "404" not in line]
