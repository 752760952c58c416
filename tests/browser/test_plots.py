"""Plots in a real JupyterLab: drawn by its own Vega, in its theme, with nothing from elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.layout import settle
from tests.browser.notebook import Notebook

sync_api = pytest.importorskip("playwright.sync_api")

pytestmark = pytest.mark.browser

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
MAKE = """\
import kbkit

ws = kbkit.open("kb")
kb = ws["evil"] if "evil" in ws else ws.create("evil")
attack = "<img src=x onerror='window.pwned = 1'><script>window.pwned = 2</script>"
for n in range(20):
    chunk = kb.add(f"{attack} Tea {n}", f"# Tea {n}\\n\\nGreen tea number {n * n} {attack}",
                   source=f"https://example.org/{attack}{n % 3}/page-{n}")
kb.rate(next(iter(kb.chunks)).id, 4)"""
SHOW = """\
plots = [kb.plot.documents(), kb.plot.chunks(), kb.plot.ratings(), kb.plot.map(colour="folder")]
display(*plots)"""

# where in the window a coloured pixel of a canvas is, left of the legend
A_POINT = """\
canvas => {
    const width = Math.floor(canvas.width * 0.7), box = canvas.getBoundingClientRect();
    const { data } = canvas.getContext("2d").getImageData(0, 0, width, canvas.height);
    for (let at = 0; at < data.length; at += 4) {
        const colours = data.slice(at, at + 3);
        if (data[at + 3] > 150 && Math.max(...colours) - Math.min(...colours) > 60) {
            const place = at / 4, scale = box.width / canvas.width;
            const row = Math.floor(place / width) + 3;
            return [box.x + (place % width) * scale, box.y + row * scale];
        }
    }
}"""


@pytest.mark.slow
def test_plots_follow_the_theme_and_hostile_text_stays_text(jupyterlab):
    with jupyterlab(MAKE, SHOW) as (page, folder, events):
        lab = Notebook(page, folder, events)
        plots = page.locator(".vega-embed canvas, .vega-embed svg.marks")
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        for theme in ("Light", "Dark"):
            lab.wait_until_idle()
            lab.theme(f"JupyterLab {theme}")
            lab.command("notebook:clear-all-cell-outputs")
            sync_api.expect(plots).to_have_count(0)
            lab.run_all()
            sync_api.expect(plots).to_have_count(4)
            plots.last.scroll_into_view_if_needed()
            settle(page)
            page.screenshot(path=SCREENSHOTS / f"plots-{theme.lower()}.png")
        tip = page.locator("#vg-tooltip-element.visible")
        x, y = plots.last.evaluate(A_POINT)
        page.mouse.move(x, y - 5)
        page.mouse.move(x, y)
        sync_api.expect(tip).to_contain_text("<script>")
        page.screenshot(path=SCREENSHOTS / "plots-tip.png")
        sync_api.expect(tip.locator("img, script")).to_have_count(0)
        assert page.evaluate("window.pwned") is None
        assert not events
