"""What other tests wait with."""

from __future__ import annotations

import pytest

from tests.browser.layout import settle

sync_api = pytest.importorskip("playwright.sync_api")

pytestmark = pytest.mark.browser

PAGE = """
<style>
    section { content-visibility: auto; contain-intrinsic-size: auto 100px }
    p { color: red; transition: color 150ms }
    .dark p { color: blue }
</style>
<section><p id="shown">Seen</section>
<div style="height: 9000px"></div>
<section><p id="skipped">Not seen</section>
"""
COLOUR = "element => getComputedStyle(element).color"
CHANGE = """() => {
    for (const part of [shown, skipped]) getComputedStyle(part).color;
    document.body.className = "dark";
    for (const part of [shown, skipped]) getComputedStyle(part).color;
    return document.getAnimations().map(({ effect }) => effect.target.id);
}"""


def test_a_page_settles_though_what_is_out_of_sight_never_says_that_it_did(chrome):
    context = chrome.new_context()
    page = context.new_page()
    page.set_default_timeout(15_000)
    page.set_content(PAGE)
    settle(page)
    assert page.evaluate(CHANGE) == ["shown", "skipped"]
    settle(page)
    assert page.locator("#shown").evaluate(COLOUR) == "rgb(0, 0, 255)"
    page.evaluate("document.body.animate({ opacity: [0, 1] }, { duration: 1e9 })")
    page.set_default_timeout(300)
    with pytest.raises(sync_api.TimeoutError):
        settle(page)
    context.close()
