"""The ingest panel in a real JupyterLab: a crawl moves its counts, is cancelled, and reports."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

import kbkit
from tests.browser.notebook import Notebook

sync_api = pytest.importorskip("playwright.sync_api")

pytestmark = pytest.mark.browser

CELLS = (
    """\
import kbkit
from kbkit.panels import IngestPanel

ws = kbkit.open("kb")
panel = IngestPanel(ws)
panel""",
)


class Lab(Notebook):
    part = ".kbkit-ingest"

    def count(self, name: str) -> int:
        text = self.panel.locator(f".kbkit-count.kbkit-{name} b").inner_text()
        return int(text.replace(",", ""))

    def wait_for_count(self, name: str, least: int) -> None:
        self.page.wait_for_function(
            "([name, least]) => parseInt("
            "document.querySelector(`.kbkit-count.kbkit-${name} b`).innerText) >= least",
            arg=[name, least],
        )


@pytest.fixture(scope="module")
def lab(jupyterlab) -> Iterator[Lab]:
    with Lab.running(jupyterlab, *CELLS) as lab:
        lab.panel.get_by_text("Choose a source and start").wait_for()
        yield lab


def test_a_crawl_is_started_watched_and_cancelled(lab: Lab, slow_site: str):
    lab.panel.get_by_label("Knowledge base").fill("pages")
    lab.panel.get_by_label("URL", exact=True).fill(slow_site)
    lab.button("More options").click()
    lab.panel.get_by_label("Allow private addresses").check()
    lab.button("Start").click()
    lab.wait_for_count("new", 3)
    before = lab.count("new")
    lab.wait_for_count("new", before + 3)
    lab.wait_for_count("failed", 1)
    sync_api.expect(lab.button("Start")).to_be_disabled()
    sync_api.expect(lab.panel.locator(".kbkit-pace")).to_contain_text("pages/s")
    # the kernel answers meanwhile
    answered = lab.page.evaluate(
        """async () => {
            const kernel = jupyterapp.shell.currentWidget.sessionContext.session.kernel
            const reply = await kernel.requestExecute({code: "assert panel.running"}).done
            return reply.content.status
        }"""
    )
    assert answered == "ok"
    lab.button("Cancel").click()
    lab.panel.get_by_text(re.compile("Stopped after .* Start again to continue")).wait_for()
    assert 6 <= lab.count("new") < 1000
    problems = lab.panel.get_by_role("region", name="Problems")
    sync_api.expect(problems).to_contain_text("404")
    sync_api.expect(lab.button("Start")).to_be_enabled()
    sync_api.expect(lab.button("Cancel")).to_be_disabled()
    with kbkit.open(lab.folder / "kb") as workspace:
        assert workspace["pages"].info().documents == lab.count("new")


def test_errors_are_one_line(lab: Lab):
    lab.panel.get_by_label("Source", exact=True).select_option("API description (OpenAPI)")
    # the kernel draws the form again, which moves the button
    lab.panel.get_by_label("Path", exact=True).wait_for()
    lab.button("Start").click()
    lab.panel.get_by_role("alert").get_by_text("give either url or path").wait_for()


def test_a_file_is_uploaded(lab: Lab):
    with lab.page.expect_file_chooser() as chooser:
        lab.panel.get_by_role("button", name=re.compile("Upload files")).click()
    chooser.value.set_files(
        [
            {"name": "tulips.md", "mimeType": "text/markdown", "buffer": b"# Tulips\n\nBulbs."},
            {"name": "<img src=x onerror=boom()>.exe", "mimeType": "", "buffer": b"MZ"},
        ]
    )
    lab.panel.get_by_text("Done in").wait_for()
    assert (lab.count("new"), lab.count("skipped")) == (1, 1)
    sync_api.expect(lab.panel.locator("img")).to_have_count(0)
    with kbkit.open(lab.folder / "kb") as workspace:
        assert workspace["pages"].documents["upload:tulips.md"].title == "Tulips"


def test_it_fits_and_everybody_can_use_it(lab: Lab):
    lab.panel.get_by_label("Source", exact=True).select_option("Web site")
    lab.fits_and_everybody_can_use_it("ingest")
    unnamed = lab.panel.evaluate(
        """panel => [...panel.querySelectorAll("input, select, button, textarea")]
            .filter(part => part.checkVisibility() && part.type != 'file')
            .filter(part => !(part.labels?.length && part.labels[0].innerText.trim())
                && !part.innerText.trim() && !part.getAttribute('aria-label'))
            .map(part => part.outerHTML)"""
    )
    assert unnamed == []
