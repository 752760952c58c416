"""Every kind of page of a published site in Chromium: for all readers, and whatever it says."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.browser.accessibility import violations
from tests.browser.layout import settle
from tests.browser.published import BOX

sync_api = pytest.importorskip("playwright.sync_api")

pytestmark = pytest.mark.browser

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
EVIL = "kb/odd/pages/127.0.0.1-9/script-alert-uri/script/_/_/x--img-src-x-onerror-alert-1.html"
PAGES = {
    "home": "kb/fruit/index.html",
    "document": "kb/odd/pages/odd.example/wide.html",
    "right-to-left": "kb/odd/pages/odd.example/rtl.html",
    "types-and-tags": "kb/fruit/browse.html",
    "type": "kb/fruit/types/other.html",
    "section": "kb/odd/sections/odd.example-54bb5428.html",
    "tag": "kb/fruit/tags/jar-0163f1ee.html",
    "about": "kb/fruit/about.html",
    "figures": "kb/fruit/figures.html",
    "404": "404.html",
}


@pytest.mark.parametrize(
    ("scheme", "width"), [pytest.param("light", 1280, marks=pytest.mark.slow), ("dark", 360)]
)
def test_all_pages_fit_and_are_accessible(tab, scheme, width):
    tab.page.set_viewport_size({"width": width, "height": 800})
    tab.page.emulate_media(color_scheme=scheme)
    found = {}
    for name, path in PAGES.items():
        tab.open(path)
        tab.page.wait_for_load_state("load")
        assert tab.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        tab.page.screenshot(path=SCREENSHOTS / f"site-{name}-{scheme}-{width}.png")
        found[name] = violations(tab.page, "body")
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_charts_fit_a_phone(tab):
    tab.page.set_viewport_size({"width": 390, "height": 800})
    tab.open(PAGES["figures"])
    parts = tab.page.locator("article svg[role=img] :is(text, rect)")
    boxes = [part.bounding_box() for part in parts.all()]
    assert len(boxes) > 30
    frame = tab.page.locator("article svg[role=img]").first.bounding_box()
    left, right = frame["x"], frame["x"] + frame["width"]
    assert right <= 390
    assert all(left <= box["x"] and box["x"] + box["width"] <= right for box in boxes)


def test_pages_say_what_they_are_before_anything_is_loaded(tab, kitchen):
    for path in [*PAGES.values(), "search/index.html"]:
        head = (kitchen / "site" / path).read_bytes()[:1024]
        assert b'<meta charset="utf-8">' in head, path
    text = (kitchen / "site" / PAGES["document"]).read_text()
    assert '<meta name="description" content="Look at --rind and peel ' not in text  # too short
    assert text.count("charset=") == 1
    blocking = re.findall(r"<script src=[^>]*(?<!defer)></script>", text)
    assert blocking == []
    tab.open(PAGES["document"])
    tab.page.wait_for_load_state("networkidle")


def test_code_is_copied_and_wide_things_scroll_by_keys(tab):
    tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab.page.set_viewport_size({"width": 500, "height": 600})
    tab.open(PAGES["document"])
    tab.page.wait_for_load_state("load")
    assert tab.page.locator("article [tabindex='0']").count() >= 2
    tab.page.locator(".highlight").scroll_into_view_if_needed()
    tab.page.locator(".highlight button").click()
    tab.page.locator(".md-dialog--active").wait_for()
    copied = tab.page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("# How marmalade is made\n@cut(rind=0x1F")


def test_hostile_texts_stay_texts_on_every_way_to_them(tab):
    tab.open("search/index.html?query=<img src=x onerror=alert(1)> zanzibar")
    assert any(title.startswith("Evil </title><script>") for title in tab.titles())
    sync_api.expect(tab.page.locator("#kb-page :is(img, script, svg, style)")).to_have_count(0)
    tab.type("findable zanzibar")
    sync_api.expect(tab.page.locator(".md-search-result :is(img, script)")).to_have_count(0)
    tab.open("kb/odd/index.html")
    sync_api.expect(tab.page.locator("article")).to_contain_text("Evil </title><script>")
    tab.open(EVIL)
    for link in tab.page.locator("article a").all():
        address = link.get_attribute("href") or ""
        assert re.match(r"(https?:|mailto:|[#./\w-])", address), address
        assert not re.match(r"\s*(javascript|data|vbscript|file):", address, re.IGNORECASE)
    tab.page.wait_for_load_state("networkidle")


def test_the_home_page_leads_to_the_search(tab):
    tab.open(PAGES["home"])
    tab.page.locator(".kb-home-search [name=query]").fill("medlar jelly")
    tab.page.locator(".kb-home-search button").click()
    # the page of results puts its own fields into the address, in another order
    asked = {"kb": ["kb/fruit"], "query": ["medlar jelly"]}
    tab.page.wait_for_url(lambda url: parse_qs(urlsplit(url).query) == asked)
    assert tab.titles()[0] == "Making jelly"


def test_sections_of_the_sidebar_are_unfolded_where_they_stand(tab):
    tab.page.set_viewport_size({"width": 1280, "height": 800})
    tab.open(PAGES["home"])
    section = tab.page.locator(".kb-contents li[data-kb]").first
    button = section.locator("> button")
    sync_api.expect(button).to_have_attribute("aria-expanded", "false")
    button.focus()
    tab.page.keyboard.press("Enter")
    inside = section.locator("> ul > li > a")
    sync_api.expect(inside.first).to_be_visible()
    sync_api.expect(button).to_have_attribute("aria-expanded", "true")
    sync_api.expect(button).to_be_focused()
    assert violations(tab.page, ".kb-contents") == []
    title = inside.first.text_content()
    tab.page.keyboard.press("Enter")
    sync_api.expect(inside.first).to_be_hidden()
    tab.page.keyboard.press("Enter")
    inside.first.click()
    sync_api.expect(tab.page.locator("article h1")).to_contain_text(title)
    current = tab.page.locator(".kb-contents [aria-current=page]")
    sync_api.expect(current).to_have_text(title)
    sync_api.expect(tab.page.locator(".kb-contents li.kb-open [aria-current=page]")).to_have_count(
        1
    )


def test_without_scripts_a_section_leads_to_its_page(chrome, kitchen_address):
    context = chrome.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(kitchen_address + PAGES["home"])
    section = page.locator(".kb-contents li[data-kb] > a").first
    title = section.text_content()
    section.click()
    assert page.locator("article h1").first.text_content().removesuffix("¶") == title
    sync_api.expect(page.locator(".kb-contents li.kb-open")).to_have_count(1)
    context.close()


def test_titles_cannot_turn_what_stands_around_them(tab):
    tab.open("kb/odd/pages/odd.example/bidi.html")
    assert tab.page.title() == "Pickled gnp.exe herring - Kitchen"
    around = tab.page.locator("article h1, .md-header").all_inner_texts()
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b]", " ".join(around))


def test_the_keyboard_searches(tab):
    tab.open(PAGES["home"])
    tab.page.locator("h1").click()
    tab.page.keyboard.press("/")
    sync_api.expect(tab.page.locator(BOX)).to_be_focused()
    tab.page.keyboard.type("medlar")
    tab.page.locator(".md-search-result__item").first.wait_for()
    tab.page.keyboard.press("Escape")
    sync_api.expect(tab.page.locator(BOX)).not_to_be_focused()
    settle(tab.page)  # Material believes in a change of focus a moment later
    tab.page.keyboard.press("s")
    sync_api.expect(tab.page.locator(BOX)).to_be_focused()
    first = tab.page.locator(".md-search-result__link").first
    sync_api.expect(first).to_be_visible()
    tab.page.keyboard.press("ArrowDown")
    sync_api.expect(first).to_be_focused()
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_url("**/jelly.html?h=*")


def test_print_leaves_the_text_alone_and_nothing_moves_for_those_who_ask(tab):
    tab.page.emulate_media(media="print", reduced_motion="reduce")
    tab.open(PAGES["document"])
    shown = [
        part
        for part in (".md-header", ".md-sidebar--primary", ".md-footer")
        if tab.page.locator(part).is_visible()
    ]
    assert shown == []
    sync_api.expect(tab.page.locator("article table")).to_be_visible()
    moving = tab.page.evaluate(
        """[...document.querySelectorAll("article *")].filter(
          (element) => getComputedStyle(element).animationName !== "none").length"""
    )
    assert moving == 0
