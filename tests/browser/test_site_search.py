"""The search of a published site in Chromium: the theme's box, the page, and without a server."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest

from kbkit.export.published_index import PublishedIndex
from tests.browser.accessibility import violations
from tests.browser.published import GUIDES, Tab

sync_api = pytest.importorskip("playwright.sync_api")

pytestmark = pytest.mark.browser

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
QUERY = "#kb-search [name=query]"
MODEL = "assets/kbkit/model/"
LOADED = "() => localStorage.getItem('kbkit-model')"


def transferred(tab: Tab, kitchen: Path) -> int:
    """Bytes of what was asked for the search, as a server that compresses sends them.

    Without the model, which comes behind the first answer.
    """
    asked = [url for url in tab.asked if MODEL not in url and not url.endswith("/m.js")]
    paths = {url.partition("?")[0].removeprefix(tab.base) for url in asked}
    ours = [path for path in paths if re.search(r"assets/kbkit/|(^|/)search/.|workers/", path)]
    return sum(len(gzip.compress((kitchen / "site" / path).read_bytes())) for path in ours)


def test_little_is_loaded_before_a_key_is_pressed_and_for_the_first_query(tab, kitchen):
    tab.open("index.html")
    tab.page.wait_for_load_state("networkidle")
    assert transferred(tab, kitchen) <= 40_000
    assert not [url for url in tab.asked if "/core.js" in url]
    tab.type("how long do quinces simmer?")
    assert transferred(tab, kitchen) <= 400_000
    before = transferred(tab, kitchen)
    tab.type("medlar jelly")
    assert transferred(tab, kitchen) - before <= 80_000


def test_the_box_shows_the_passage_and_leads_to_it(tab):
    tab.open("index.html")
    found = tab.type("how long do quinces simmer?")
    assert found[:2] == ["Making jelly", "Quince jelly"]
    item = tab.page.locator(".md-search-result__item").first
    sync_api.expect(item.locator(".md-tag").first).to_have_text("fruit")
    assert {"Quince", "Simmer"} <= set(item.locator("mark").all_text_contents())
    tab.page.screenshot(path=SCREENSHOTS / "search-box.png")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_url("**/jelly.html?passage=*&h=*#quince")
    sync_api.expect(tab.page.locator("h2#quince")).to_be_visible()
    tab.page.locator("article mark").first.wait_for()


MARKED = ".kb-passage"
PASSAGE = ".kb-card .kb-snippet"


def marked(tab: Tab) -> str:
    """What is marked as the passage, once it is."""
    tab.page.locator(MARKED).first.wait_for()
    return " ".join(tab.page.locator(MARKED).all_inner_texts())


@pytest.mark.parametrize(
    ("scheme", "width"),
    [
        ("light", 1280),
        ("dark", 390),
        *(
            pytest.param(*other, marks=pytest.mark.slow)
            for other in (("light", 390), ("dark", 1280))
        ),
    ],
)
def test_a_result_leads_to_its_passage_far_from_any_heading(tab, scheme, width):
    tab.page.set_viewport_size({"width": width, "height": 800})
    tab.page.emulate_media(color_scheme=scheme)
    tab.open("search/index.html?query=the+mango+gauge+of+the+jelly+pan")
    assert tab.titles()[0] == "Jelly pan"
    tab.page.locator(".kb-card a").first.click()
    tab.page.wait_for_url("**/pan*.html?passage=*#_options")
    said = marked(tab)
    assert "The mango gauge says" in said
    assert "apple" not in said
    first = tab.page.locator(MARKED).first
    sync_api.expect(first).to_be_in_viewport()
    look = "(one) => getComputedStyle(one).backgroundColor"
    assert first.evaluate(look) != "rgba(0, 0, 0, 0)", "the policy of the page lets its look in"
    tab.page.screenshot(path=SCREENSHOTS / f"passage-{scheme}-{width}.png")
    assert violations(tab.page, "article") == []


def test_the_box_keeps_lines_of_lists_and_code(tab):
    tab.open("kb/odd/index.html")
    tab.type("kiwi lemon mango jam at its own speed")
    item = tab.page.locator(".md-search-result__item a", has_text="lid stays shut").first
    assert item.locator("article").evaluate("one => getComputedStyle(one).whiteSpace") == "pre-line"
    lines = item.inner_text().split("\n")
    assert len([line for line in lines if "gauge says" in line]) > 1, lines


def test_a_passage_in_the_box_and_in_a_page_that_people_wrote_is_marked(tab):
    tab.open("index.html")
    tab.type("the damson gauge says when it is done")
    tab.page.locator(".md-search-result__item a", has_text="damson").first.click()
    assert "The damson gauge" in marked(tab)
    tab.open("index.html?passage=Wash%20the%20zester%20after%20use")
    assert marked(tab) == "Wash the zester after use."


def test_a_related_passage_is_marked_on_its_page(tab):
    tab.open("kb/fruit/pages/text/Jar-0.html")
    tab.page.locator(".kb-onwards li a", has_text="Jar 1").click()
    tab.page.wait_for_url("**/Jar-1.html?passage=*")
    assert marked(tab) == "Jar number 1 holds jelly."


@pytest.mark.parametrize(
    "asked", ["passage=", "passage=%E2%80%A6", "passage=%", "passage=nowhere+said", "passage=%00#%"]
)
def test_an_address_with_no_passage_of_the_page_marks_nothing(tab, asked):
    tab.open(f"index.html?{asked}")
    tab.page.wait_for_load_state("networkidle")
    sync_api.expect(tab.page.locator(MARKED)).to_have_count(0)


def test_texts_stay_texts(tab):
    tab.open("index.html")
    tab.type("script alert text")
    shown = tab.page.locator(".md-search-result__list").inner_text()
    assert "<script>alert(1)</script>" in shown
    sync_api.expect(tab.page.locator(".md-search-result__list script")).to_have_count(0)


def test_pages_that_people_wrote_are_found_too(tab):
    tab.open("kb/fruit/index.html")
    assert "House rules" in tab.type("zester")
    tab.page.locator(".md-search-result__item a", has_text="House rules").click()
    tab.page.wait_for_url("**/index.html?passage=*&h=*#house-rules")


def test_an_unfinished_word_is_completed_and_suggested(tab):
    tab.open("index.html")
    assert tab.type("wash the zest")
    assert "House rules" in tab.type("wash the zest")
    tab.type("maki")
    sync_api.expect(tab.page.locator(".md-search__suggest")).to_have_text("making")


def test_what_is_not_found_is_said(tab):
    tab.open("search/index.html")
    assert tab.type("qqqqxyz") == []
    tab.open("search/index.html?query=qqqqxyz")
    assert tab.titles() == []
    sync_api.expect(tab.page.locator("#kb-status")).to_contain_text("Nothing was found")


def test_the_page_filters_and_its_address_says_so(tab):
    tab.open("search/index.html")
    page = tab.page
    page.locator(QUERY).fill("jelly")
    assert {"Making jelly", "Jar 0"} <= set(tab.titles())
    page.locator("[name=tag]").select_option("jar")
    results = sync_api.expect(page.locator("#kb-results"))
    results.not_to_contain_text("Making")
    assert set(tab.titles()) == {"Jar 0", "Jar 1", "Jar 2"}
    page.locator("[name=rating]").select_option("4")
    sync_api.expect(page.locator(".kb-card")).to_have_count(1)
    assert page.url.endswith("?query=jelly&tag=jar&rating=4")
    page.reload()
    assert tab.titles() == ["Jar 0"]
    sync_api.expect(page.locator("[name=tag]")).to_have_value("jar")
    tab.open("search/index.html?query=jelly&kb=kb%2Fguides")
    assert "Making jelly" not in tab.titles()
    tab.open("search/index.html?query=water&type=tutorial&fresh=7")
    assert "Making jelly" in tab.titles()


def test_passages_are_narrowed_by_what_they_say_and_name(tab):
    tab.open("search/index.html?query=publish+a+site&kb=kb%2Fguides")
    page = tab.page
    assert tab.titles()
    assert not [url for url in tab.asked if re.search(r"/(a|s/\d+)\.js$", url)]
    says = page.locator("[name=frame]")
    assert re.search(r"constraint \(\d+\)", says.inner_text())
    says.select_option("constraint")
    page.wait_for_url("**frame=constraint")
    tab.titles()
    about = page.locator("[data-adds=subject]")
    about.fill("recipes")
    # options for the empty field may still be there
    option = page.locator("#kb-subjects option[value=recipes i]").first
    option.wait_for(state="attached")
    assert re.fullmatch(r"\d+ passages?", option.text_content())
    about.fill(option.get_attribute("value"))
    about.press("Enter")
    page.wait_for_url("**&subject=*")
    sync_api.expect(about).to_have_value("")
    chip = page.get_by_role("button", name="Remove the filter: topic")
    chip.wait_for()
    assert tab.titles()
    page.reload()
    chip.wait_for()
    sync_api.expect(says).to_have_value("constraint")
    assert tab.titles()
    chip.focus()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("constraint$"))
    assert page.evaluate("document.activeElement.name") == "query"
    tab.titles()
    names = page.locator("[data-adds=entity]")
    names.fill("mkdocs")
    option = page.locator("#kb-entities option[value=mkdocs i]").first
    option.wait_for(state="attached")
    entity = option.get_attribute("value")
    names.fill(entity)
    names.press("Enter")
    page.wait_for_url("**&entity=*")
    page.get_by_role("button", name=f"Remove the filter: mentions {entity}").wait_for()
    tab.titles()
    assert 0 < page.locator(PASSAGE).count() < 10
    assert violations(page, "#kb-page") == []
    page.screenshot(path=SCREENSHOTS / "search-annotations.png")


def test_filters_that_let_nothing_through_are_named_and_dropped(tab):
    evil = "<img src=x onerror=alert(1)>"
    tab.open(f"search/index.html?query=site&tag=jar&frame=procedure&entity={quote(evil)}")
    status = tab.page.locator("#kb-status", has_text="Nothing was found")
    status.wait_for()
    assert status.inner_text().endswith(f"mentions {evil}, tag jar, kind of statement procedure.")
    sync_api.expect(tab.page.locator("#kb-page img")).to_have_count(0)
    assert violations(tab.page, "#kb-page") == []
    tab.page.get_by_role("button", name="Search without filters").click()
    tab.page.locator(".kb-card").first.wait_for()
    assert tab.page.url.endswith("?query=site")
    sync_api.expect(tab.page.locator("#kb-drop")).to_be_hidden()


def test_the_page_is_used_with_the_keyboard(tab):
    tab.open("search/index.html?query=jelly&kb=kb%2Ffruit")
    first = tab.titles()[0]
    tab.page.locator(QUERY).focus()
    tab.page.keyboard.press("ArrowDown")
    assert tab.page.evaluate("document.activeElement.textContent") == first
    tab.page.keyboard.press("ArrowUp")
    assert tab.page.evaluate("document.activeElement.name") == "query"
    tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_url("**/kb/fruit/pages/**")


def test_more_passages_are_shown_when_asked(tab):
    tab.open("search/index.html?query=knowledge+base")
    titles = tab.titles()
    assert len(titles) == len(set(titles)), "the passages of a page stand together"
    sync_api.expect(tab.page.locator(PASSAGE)).to_have_count(10)
    tab.page.locator("#kb-more").click()
    sync_api.expect(tab.page.locator(PASSAGE)).to_have_count(20)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_fits_and_is_accessible(tab, scheme, width):
    tab.page.set_viewport_size({"width": width, "height": 800})
    tab.page.emulate_media(color_scheme=scheme)
    tab.open("search/index.html?query=how+do+I+make+quince+jelly")
    assert tab.titles()
    assert tab.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    tab.page.screenshot(path=SCREENSHOTS / f"search-page-{scheme}-{width}.png")
    assert violations(tab.page, "#kb-page") == []


def test_the_engine_in_chromium_finds_what_python_finds(tab, kitchen):
    index = PublishedIndex.open(kitchen / "docs/kb/guides")
    text = "\n".join(path.read_text() for path in sorted(GUIDES.glob("*.md")))
    queries = re.findall(r"^#+ (.*)$", text, re.MULTILINE)[::2]
    assert len(queries) > 40
    gone = {"status": 404, "body": ""}
    tab.page.context.route(f"**/{MODEL}**", lambda route: route.fulfill(**gone))
    tab.open("search/index.html")
    found = tab.page.evaluate(
        """async (queries) => {
          const { search } = JSON.parse(document.getElementById("__config").textContent);
          const worker = new Worker(new URL(search, location.href));
          const hits = [];
          for (const [id, query] of queries.entries()) {
            hits.push(await new Promise((resolve) => {
              worker.onmessage = ({ data }) => resolve(data.hits.map((hit) => hit.row));
              worker.postMessage({ kbkit: "search", id, query, options: { kbs: ["kb/guides"] } });
            }));
          }
          return hits;
        }""",
        queries,
    )
    expected = [[hit.chunk for hit in index.search(query)] for query in queries]
    pairs = list(zip(expected, found, strict=True))
    assert np.mean([len(set(a) & set(b)) / len(a) for a, b in pairs if a]) >= 0.99
    assert np.mean([a[:1] == b[:1] for a, b in pairs]) >= 0.99
    tab.trouble = [line for line in tab.trouble if "404" not in line]


def test_an_engine_that_cannot_be_read_is_tried_again(tab):
    tab.page.context.route("**/engine.*.js", lambda route: route.fulfill(status=404))
    tab.open("index.html")
    assert tab.type("jelly") == ["Search is out of reach"]
    tab.trouble = [line for line in tab.trouble if "404" not in line]
    tab.page.context.unroute("**/engine.*.js")
    assert tab.type("quince jelly")[:1] == ["Making jelly"]


def test_a_search_that_cannot_be_read_says_so(tab):
    gone = {"status": 404, "body": ""}
    tab.page.context.route("**/core.js", lambda route: route.fulfill(**gone))
    tab.open("search/index.html?query=jelly")
    tab.page.locator("#kb-status", has_text="could not be read").wait_for()
    assert tab.type("jelly") == ["The search index could not be read"]
    tab.trouble = [line for line in tab.trouble if "404" not in line]
    tab.page.context.unroute("**/core.js")
    tab.page.locator(QUERY).fill("quince jelly")
    tab.page.locator(".kb-card").first.wait_for()


def test_the_model_comes_behind_the_first_answer_and_nothing_moves(tab):
    tab.open("search/index.html")
    tab.page.locator(QUERY).fill("how is fruit kept over the winter")
    tab.page.locator(".kb-card").first.wait_for()
    before = tab.titles()
    tab.page.wait_for_function(LOADED)
    (folder,) = {url.removeprefix(tab.base).rpartition("/")[0] for url in tab.asked if MODEL in url}
    assert folder == tab.page.evaluate(LOADED)
    assert not [url for url in tab.asked if "/words-" in url]
    tab.page.locator("#kb-more").click()
    sync_api.expect(tab.page.locator(PASSAGE)).to_have_count(20)
    assert tab.titles()[: len(before)] == before
    assert not [url for url in tab.asked if "/words-" in url]
    tab.page.locator(QUERY).fill("how does fruit keep over the winter")
    tab.page.wait_for_function("() => document.querySelectorAll('.kb-snippet').length === 10")
    assert [url for url in tab.asked if "/words-" in url]


def test_the_model_that_a_browser_keeps_is_there_before_the_first_answer(tab):
    tab.open("index.html")
    with tab.page.expect_response("**/site.js"):
        tab.page.locator("input.md-search__input").click()
    tab.page.wait_for_load_state("networkidle")
    assert not [url for url in tab.asked if MODEL in url]
    tab.type("quince jelly")
    tab.page.wait_for_function(LOADED)
    tab.asked.clear()
    tab.open("404.html")
    with tab.page.expect_request(f"**/{MODEL}**/layer-5.bin"):
        tab.page.locator("input.md-search__input").click()


@pytest.mark.parametrize("answer", [{"status": 404, "body": "gone"}, {"body": "half"}])
def test_a_model_that_cannot_be_read_is_done_without(tab, answer):
    tab.page.context.route(f"**/{MODEL}**", lambda route: route.fulfill(**answer))
    tab.open("index.html")
    with tab.page.expect_request(f"**/{MODEL}**"):
        first = tab.type("how long do quinces simmer?")
    assert tab.type("medlar jelly")
    assert tab.type("how long do quinces simmer?") == first
    assert tab.page.evaluate(LOADED) is None
    tab.trouble = [line for line in tab.trouble if "404" not in line]


def test_the_page_of_what_is_missing_searches_too(tab):
    tab.open("404.html")
    assert tab.type("quince jelly")[:1] == ["Making jelly"]


def test_it_works_without_a_server(chrome, kitchen):
    base = f"{(kitchen / 'site').resolve().as_uri()}/"
    context = chrome.new_context()
    tab = Tab(context.new_page(), base)
    tab.open("kb/fruit/index.html")
    assert tab.type("how long do quinces simmer?")[:2] == ["Making jelly", "Quince jelly"]
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_url("**/jelly.html?passage=*&h=*#quince")
    tab.open("search/index.html?query=medlar+jelly&kb=kb%2Ffruit")
    assert tab.titles()[0] == "Making jelly"
    context.close()
    assert [url for url in tab.asked if not url.startswith((base, "data:"))] == []
    assert [line for line in tab.trouble if "sitemap.xml" not in line] == []
