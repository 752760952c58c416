"""The dashboard: served by Voilà to people without notebooks, and in Notebook 7."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

import kbkit
from tests.browser.accessibility import violations
from tests.browser.chrome import guarded
from tests.browser.jupyter import free_port, own_environment, wait_until_up
from tests.browser.layout import resize, wait_until_fits

sync_api = pytest.importorskip("playwright.sync_api")

pytestmark = pytest.mark.browser

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
TOKEN = "a-token-that-is-long-enough"


def make_workspace(folder: Path) -> None:
    with kbkit.open(folder) as workspace:
        manual = workspace.create("manual")
        for name in ("CSV", "JSON", "TOML"):
            manual.add(
                f"Reading {name} files",
                f"# Reading {name} files\n\nHow to read a {name} file.",
                source=f"https://docs.example.org/{name.lower()}.html",
            )


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory) -> Iterator[tuple[str, Path]]:
    """Address of what ``kbkit panel`` serves, and its workspace; interrupted at last."""
    home = tmp_path_factory.mktemp("voila")
    make_workspace(home / "kb")
    port, log = free_port(), home / "log"
    command = [sys.executable, "-m", "kbkit", "panel", str(home / "kb")]
    options = ["--port", str(port), "--token", TOKEN, "--theme", "dark", "--until-stdin-closes"]
    with log.open("w") as output:
        process = subprocess.Popen(
            [*command, *options],
            env=own_environment(home),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
        )
    address = f"http://127.0.0.1:{port}"
    try:
        wait_until_up(f"{address}/login", process, log)
        yield address, home / "kb"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0, log.read_text()
        assert "Traceback" not in log.read_text()
    finally:
        if process.poll() is None:
            process.kill()


@pytest.fixture
def visit(chrome, dashboard) -> Iterator[tuple[Any, list[str]]]:
    """The dashboard open in a browser by somebody who knows the token, and what the page tried."""
    address, _ = dashboard
    with guarded(chrome, address) as (page, events):
        page.goto(f"{address}/?token={TOKEN}")
        page.locator(".kbkit-card, .kbkit-notice").first.wait_for()
        yield page, events


@pytest.mark.slow
def test_voila_serves_it_to_those_who_know_the_token(dashboard, visit):
    address, folder = dashboard
    page, events = visit
    with urllib.request.urlopen(address) as answer:
        assert "/login" in answer.url
    assert page.title() == "kb - kbkit"
    cookies = page.context.cookies()
    assert cookies
    assert {each["sameSite"] for each in cookies} == {"Strict"}, cookies

    page.get_by_label("Search", exact=True).fill("how to read a toml file")
    card = page.locator(".kbkit-card").first
    card.get_by_role("heading", name="Reading TOML files").wait_for()
    card.get_by_role("button", name="5 stars").click()
    page.get_by_text("Saved: 5 stars").wait_for()

    page.get_by_role("tab", name="Documents").click()
    page.get_by_role("treeitem", name="Reading CSV files").click()
    page.locator(".kbkit-page").get_by_text("How to read a CSV file.").wait_for()

    page.get_by_role("tab", name="Ingest").click()
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Upload files").click()
    chooser.value.set_files(
        [{"name": "xml.md", "mimeType": "text/markdown", "buffer": b"# XML\n\nAngles."}]
    )
    page.get_by_text("Done in").wait_for()
    page.get_by_role("tab", name="Documents").click()
    page.get_by_text("manual: 4 documents").wait_for()  # the tabs are in step

    for tab in ("Judge", "Evaluate"):
        page.get_by_role("tab", name=tab).click()
        page.locator(".kbkit-tab:visible .kbkit-primary").wait_for()
    for tab, button in (("Files", "New file…"), ("Entries", "New entry…")):
        page.get_by_role("tab", name=tab).click()
        page.locator(".kbkit-tab:visible").get_by_role("button", name=button).wait_for()
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.get_by_role("tab", name="Documents").click()
    for name, width in (("wide", 1200), ("narrow", 360)):
        resize(page, width, 900)
        page.screenshot(path=SCREENSHOTS / f"dashboard-voila-{name}.png")
        wait_until_fits(page.locator(".kbkit-dashboard"))
        tabs = [tab.bounding_box() for tab in page.get_by_role("tab").all()]
        tops = [tab["y"] for tab in tabs]
        assert max(tops) - min(tops) < tabs[0]["height"] / 2  # all in one row
        cut = page.eval_on_selector_all(
            ".lm-TabBar-tab",
            "tabs => tabs.filter(t => t.scrollWidth > t.clientWidth + 1).map(t => t.textContent)",
        )
        assert cut == []
    assert violations(page, "html") == []
    assert events == []
    with kbkit.open(folder) as workspace:
        assert workspace["manual"].ratings.to_frame()["score"].tolist() == [5]


@pytest.mark.slow
def test_a_kernel_waits_for_the_next_visitor_and_the_page_has_an_outline(chrome, dashboard):
    address, _ = dashboard
    with guarded(chrome, address) as (page, events):
        page.add_init_script(
            """new MutationObserver(() => {
                window.outlined ||= document.querySelector("#loading .kbkit-outline") !== null;
            }).observe(document, { childList: true, subtree: true });"""
        )
        seen: set[int] = set()
        for _visit in range(2):
            assert wait_for(lambda seen=frozenset(seen): kernels_of(address) - seen)
            seen |= kernels_of(address)
            page.goto(f"{address}/?token={TOKEN}")
            page.locator(".kbkit-card, .kbkit-notice").first.wait_for()
            assert page.evaluate("window.outlined")
            sync_api.expect(page.locator("#loading")).to_have_count(0)
        assert events == []


@pytest.mark.slow
def test_a_kernel_ends_with_its_page(chrome, dashboard):
    address, _ = dashboard
    assert wait_for(lambda: kernels_of(address))
    with guarded(chrome, address) as (page, events):
        page.goto(f"{address}/?token={TOKEN}")
        page.locator(".kbkit-card, .kbkit-notice").first.wait_for()
        running = kernels_of(address)
        page.context.unroute_all()  # what a page sends as it closes has nobody left to let it pass
        page.goto("about:blank")
        assert wait_for(lambda: running - kernels_of(address))
        assert events == []


def wait_for(condition: Callable[[], object]) -> object:
    """What a condition gives at last; nothing if that is not within a minute."""
    deadline = time.monotonic() + 60
    while not (given := condition()) and time.monotonic() < deadline:
        time.sleep(0.2)
    return given


def kernels_of(address: str) -> set[int]:
    """Processes of the kernels that the server at an address runs."""
    port = address.rpartition(":")[2]
    children = psutil.Process().children(recursive=True)
    server = next(child for child in children if port in command_of(child))
    return {
        child.pid
        for child in server.children()
        if any("ipykernel" in part for part in command_of(child))
    }


def command_of(process: psutil.Process) -> list[str]:
    """Words of the command that a process runs; none where it has ended."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:  # or is a zombie
        return []


@pytest.mark.slow
def test_the_page_connects_to_nobody_else(visit):
    page, _ = visit
    refused = """place => new Promise((resolve) => {
        document.addEventListener("securitypolicyviolation", (event) =>
            resolve(`${event.effectiveDirective} ${event.blockedURI}`), { once: true });
        const opened = () => resolve("opened");
        if (place.startsWith("ws")) new WebSocket(place).onopen = opened;
        else fetch(place, { mode: "no-cors" }).then(opened, () => {});
    })"""
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        host = f"127.0.0.1:{elsewhere.getsockname()[1]}"
        for scheme in ("ws", "http"):
            said = page.evaluate(refused, f"{scheme}://{host}/stolen")
            assert said.startswith(f"connect-src {scheme}://{host}")
        elsewhere.settimeout(0)
        with pytest.raises(BlockingIOError):  # nobody came
            elsewhere.accept()


@pytest.mark.slow
def test_it_works_in_notebook_7(jupyterlab):
    cells = (
        "import kbkit\nfrom kbkit.panels import Dashboard\n\nws = kbkit.open('kb')\n"
        "ws.create('notes').add('Bread', 'Flour, water and time.')",
        "Dashboard(ws)",
    )
    with jupyterlab(*cells, app="notebook") as (page, _folder, events):
        page.wait_for_function(
            "jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status == 'idle'"
        )
        page.evaluate("void jupyterapp.commands.execute('notebook:run-all-cells')")
        dashboard = page.locator(".kbkit-dashboard")
        dashboard.get_by_label("Search", exact=True).fill("bread")
        card = dashboard.locator(".kbkit-card").first
        card.get_by_role("button", name="3 stars").click()
        dashboard.get_by_text("Saved: 3 stars").wait_for()
        dashboard.get_by_role("tab", name="Documents").click()
        dashboard.get_by_role("treeitem", name="Bread").click()
        dashboard.locator(".kbkit-page").get_by_text("Flour, water").wait_for()
        assert violations(page, ".kbkit-dashboard") == []
        # Notebook asks for a command of its file browser, sometimes before that is there
        assert [event for event in events if "filebrowser:open-path" not in event] == []
