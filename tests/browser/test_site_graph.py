"""The page of a published site's graph in Chromium: by mouse and keys, and without a server."""

from __future__ import annotations

import math
import re
import time
from itertools import product
from pathlib import Path

import pytest

import kbkit
from kbkit.export import graph_facts
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


FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
"""Waits for two frames."""


def a_node(page) -> tuple[float, float, str]:
    """Where one is in the middle of the picture, and its name.

    The place is well inside it: which of two nodes is nearer depends on how large they are drawn.
    """
    canvas = page.locator("#kb-graph canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    hint = page.locator("#kb-graph .kb-graph-hint")

    def name_at(x: float, y: float) -> str:
        page.mouse.move(x, y)
        page.evaluate(FRAMES)  # the page hears of moves a frame later
        return hint.locator("bdi").inner_text() if hint.inner_text() else ""

    # outwards from the middle, so far that twice as far is still in the picture
    far = [int(box[side] / 4) - 10 for side in ("width", "height")]
    places = product(*(range(-most, most + 1, 9) for most in far))
    for across, down in sorted(places, key=lambda place: math.hypot(*place)):
        x, y = middle[0] + across, middle[1] + down
        page.mouse.move(x, y)
        if hint.inner_text() and (name := name_at(x, y)):
            around = [
                (x + right, y + below) for right, below in product(range(-12, 13, 4), repeat=2)
            ]
            inside = [place for place in around if name_at(*place) == name]
            page.mouse.move(0, 0)
            xs, ys = zip(*inside, strict=True)
            return sum(xs) / len(xs), sum(ys) / len(ys), name
    raise AssertionError("no node anywhere")


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


def test_what_is_clicked_right_after_a_key_stays(tab):
    tab.page.clock.install()
    page = opened(tab).page
    page.clock.pause_at(page.evaluate("Date.now() + 60_000"))  # typing waits until it goes on
    find, options = page.get_by_label("Find"), page.locator(f"{LIST} [role=option]")
    before = options.nth(3).locator("bdi").inner_text()
    find.fill("mkdocs")
    assert options.nth(3).locator("bdi").inner_text() == before, "not looked for yet"
    options.nth(3).click()
    title = page.locator(f"{TITLE} bdi")
    sync_api.expect(title).to_have_text(before)
    page.locator("#kb-graph blockquote").first.wait_for()
    page.clock.run_for(1_000)  # longer than what is typed waits
    sync_api.expect(title).to_have_text(before)
    find.fill("theme")
    page.get_by_role("button", name="Gaps (").click()
    page.clock.run_for(1_000)
    assert page.locator("#kb-graph .kb-graph-list-title").inner_text().startswith("What the")
    find.fill("mkdocs")
    page.clock.run_for(1_000)
    page.locator("#kb-graph h4", has_text="Names with").wait_for()  # nothing else stood in its way


@pytest.mark.slow
def test_fingers_drag_pinch_and_tap(chrome, kitchen_address):
    context = chrome.new_context(
        has_touch=True, reduced_motion="reduce", viewport={"width": 768, "height": 1000}
    )
    page = opened(Tab(context.new_page(), kitchen_address)).page
    fingers = context.new_cdp_session(page)
    canvas = page.locator("#kb-graph canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def touch(*moments: tuple[tuple[float, float], ...], at: float = 0.0) -> None:
        when = {"timestamp": at} if at else {}
        for number, points in enumerate(moments):
            named = [{"x": x, "y": y, "id": finger} for finger, (x, y) in enumerate(points)]
            event = {"type": "touchMove" if number else "touchStart", "touchPoints": named}
            fingers.send("Input.dispatchTouchEvent", event | when)
        fingers.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []} | when)

    def tap(x: float, y: float, why: str) -> None:
        page.touchscreen.tap(x, y)
        sync_api.expect(page.locator(TITLE), why).to_contain_text(name)

    def show_all() -> None:
        page.get_by_label("Find").press("Escape")
        page.get_by_role("button", name="Fit to the frame").click()
        sync_api.expect(page.locator(TITLE)).to_have_text("")

    scrolled = page.evaluate("scrollY")
    x, y, name = a_node(page)
    tap(x, y, "a tap selects")
    show_all()
    now = time.time() + 1  # later than a second tap would be
    for number in (1, 2):  # a tenth of a second apart, however long it takes
        touch(((x, y),), at=now + number / 10)
    sync_api.expect(page.locator(TITLE), "the second tap zooms").to_contain_text(name)
    show_all()
    touch(((x, y),), ((x + 20, y + 10),), ((x + 70, y - 40),))
    sync_api.expect(page.locator(TITLE), "a drag selects nothing").to_have_text("")
    tap(x + 70, y - 40, "it went with the finger")
    show_all()
    left, right = (middle[0] - 40, middle[1]), (middle[0] + 40, middle[1])
    wide = (middle[0] - 80, middle[1]), (middle[0] + 80, middle[1])
    touch((left, right), ((left[0] - 20, left[1]), right), wide)
    there = middle[0] + 2 * (x - middle[0]), middle[1] + 2 * (y - middle[1])
    tap(*there, "all is twice as large about the middle of the fingers")
    assert page.evaluate("scrollY") == scrolled, "the page stays where it is"
    context.close()


def test_what_is_not_drawn_is_found_and_its_neighbourhood_drawn(
    chrome, tmp_path, monkeypatch, kitchen
):
    monkeypatch.setattr(graph_facts, "MAX_DRAWN", 30)
    with kbkit.open(kitchen / "kb") as workspace:
        site = workspace["guides"].export(folder=tmp_path / "large").site
    context = chrome.new_context(reduced_motion="reduce")
    tab = Tab(context.new_page(), f"{site.resolve().as_uri()}/")  # and without a server
    page = opened(tab, "graph.html").page
    canvas, title = page.locator("#kb-graph canvas"), page.locator(TITLE)
    assert canvas.get_attribute("aria-label").startswith("Picture of 30 nodes")
    further = [url for url in tab.asked if url.endswith("/further.js")]
    assert further == [], "nothing of it is read before it is wanted"
    page.get_by_label("Find").fill("llama-index")
    page.locator(f"{LIST} [role=option]", has_text="llama-index").first.click()
    sync_api.expect(title).to_contain_text("llama-index")
    sync_api.expect(canvas).not_to_have_attribute("aria-label", re.compile("Picture of 30 nodes"))
    neighbours = page.locator(f"{LIST} [role=option]").count()
    assert neighbours > 0
    page.locator("#kb-graph .kb-graph-sources a").first.wait_for()
    name = page.locator(f"{LIST} [role=option] bdi").first.inner_text()
    page.locator(LIST).focus()
    page.keyboard.press("Enter")
    sync_api.expect(title).to_contain_text(name)
    page.locator(LIST).focus()
    page.keyboard.press("Escape")
    sync_api.expect(canvas).to_have_attribute("aria-label", re.compile("Picture of 30 nodes"))
    page.reload()
    tab.page.context.route(re.compile(r"/graphs/\w+/"), lambda route: route.abort())
    opened(tab, "graph.html?entity=no%20such%20thing")
    page.locator("#kb-graph .kb-graph-status", has_text="no such thing is not there").wait_for()
    context.close()


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
    sync_api.expect(page.locator(TITLE)).to_have_text("")


@pytest.mark.parametrize(
    ("scheme", "width"),
    [
        ("light", 1440),
        ("dark", 390),
        *(
            pytest.param(scheme, width, marks=pytest.mark.slow)
            for scheme, width in (("dark", 1440), ("light", 390), ("light", 768), ("dark", 768))
        ),
    ],
)
def test_the_page_fits_and_is_accessible(tab, scheme, width):
    tab.page.set_viewport_size({"width": width, "height": 900})
    tab.page.emulate_media(color_scheme=scheme)
    page = opened(tab, f"{PAGE}?entity=MkDocs").page
    page.locator("#kb-graph blockquote").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    picture, side = (
        page.locator(f"#kb-graph {part}").bounding_box() for part in ("canvas", "section")
    )
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
    sync_api.expect(page.locator("#kb-graph blockquote")).to_have_count(0)
    tab.trouble = [line for line in tab.trouble if "404" not in line]
