"""A site with files and entries as sections: found by its search, read, downloaded, harmless."""

from __future__ import annotations

import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import kbkit
from tests.browser.accessibility import violations
from tests.browser.layout import resize, wait_until_fits
from tests.browser.published import Tab, opened

sync_api = pytest.importorskip("playwright.sync_api")

pytestmark = pytest.mark.browser

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
HOSTILE = "<script>alert(1)</script> <svg onload=alert(2)></svg> [x](javascript:alert(3))\n"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> Iterator[str]:
    """Where the site is served."""
    folder = tmp_path_factory.mktemp("sections")
    with kbkit.open(folder / "ws") as ws:
        manual = ws.create("manual", description="How to make pots")
        manual.add("Kilns", "# Kilns\n\nFire stoneware.", source="https://x.example/a/kilns.html")
        manual.add("Clay", "# Clay\n\nKnead it.", source="https://x.example/a/clay.html")
        note = "---\ntags: [drinks]\n---\n# Green tea\n\nA quokka steeps it. See [[Milk#How]].\n"
        ws.files.write("plans/tea.md", note)
        ws.files.write("milk.md", "# Milk\n\n" + "Cold. " * 900 + "\n\n## How\n\nBy the glass.\n")
        ws.files.write("hostile.md", HOSTILE)
        ws.entries.create(
            "Parse a kiln log",
            description="Reads what a kiln has written.",
            prompt="# How\n\nThe numbat reads line by line.\n",
            tags=["logs"],
            files={"code/parse.py": "def parse(): ...\n", "artifacts/page.html": HOSTILE},
        )
        ws.entries.rate("parse-a-kiln-log", 4, rater="ann")
        site = manual.export(folder=folder / "site", files=True, entries=True, model=False).site
    handler = partial(_Quiet, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture
def tab(chrome, address) -> Iterator[Tab]:
    yield from opened(chrome, address)


@pytest.mark.slow
def test_notes_and_entries_are_found_read_and_downloaded(tab: Tab):
    resize(tab.page, 1440, 900)
    tab.open("index.html")
    assert tab.type("what does the quokka do")[0] == "Green tea"
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_url("**/files/pages/**/tea.html*")
    article = tab.page.locator("article")
    article.get_by_role("link", name="Milk › How").click()
    tab.page.wait_for_url("**/milk.html#how")
    sync_api.expect(tab.page.locator("h2#how")).to_be_in_viewport()
    sidebar = tab.page.locator(".md-sidebar--primary")
    sidebar.get_by_role("link", name="‹ manual").click()
    tab.page.wait_for_url("**/index.html")
    tab.page.locator(".md-sidebar--primary").get_by_role("link", name="Entries").click()
    tab.page.wait_for_url("**/entries/index.html")
    tab.page.locator("article").get_by_role("link", name="Parse a kiln log").first.click()
    article = tab.page.locator("article")
    article.get_by_text("rated 4.0 of 5 by 1 person").wait_for()
    article.get_by_role("heading", name="code/parse.py").wait_for()
    with tab.page.expect_download() as download:
        article.get_by_role("link", name="Download all of it").click()
    with zipfile.ZipFile(download.value.path()) as archive:
        assert "parse-a-kiln-log/scripts/parse.py" in archive.namelist()
    assert tab.type("numbat")[0] == "Parse a kiln log"


@pytest.mark.slow
def test_sections_fit_and_everybody_can_read_them(tab: Tab):
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    tab.open("files/index.html")
    home = tab.page.locator("article")
    home.get_by_role("link", name="hostile", exact=False).first.click()
    article = tab.page.locator("article")
    article.get_by_role("heading", name="hostile").wait_for()
    sync_api.expect(article.locator("script, svg[onload], a[href^=javascript]")).to_have_count(0)
    for name, path in (
        ("files", "files/index.html"),
        ("entries", "entries/index.html"),
        ("home", "index.html"),
    ):
        tab.open(path)
        for scheme in ("dark", "light"):
            shown = {"dark": "slate", "light": "default"}[scheme]
            if tab.page.locator(f"body[data-md-color-scheme={shown}]").count() == 0:
                tab.page.locator("label[for^=__palette]:visible").first.click()
            tab.page.locator(f"body[data-md-color-scheme={shown}]").wait_for()
            for width in (1440, 390):
                resize(tab.page, width, 900)
                tab.page.screenshot(path=SCREENSHOTS / f"sections-{name}-{scheme}-{width}.png")
                wait_until_fits(tab.page.locator("body"))
            assert violations(tab.page, "article") == []
    tab.open("entries/index.html")
    tab.page.locator("article").get_by_role("link", name="Parse a kiln log").first.click()
    tab.page.locator("article").get_by_role("heading", name="Files").wait_for()
    resize(tab.page, 1440, 1000)
    tab.page.screenshot(path=SCREENSHOTS / "sections-entry.png", full_page=True)
    assert violations(tab.page, "article") == []
