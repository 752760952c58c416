"""A real JupyterLab that knows no settings of the user, open in a real browser."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.browser.published import chrome, kitchen, kitchen_address, tab  # noqa: F401

FLAGS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
TOKEN = "panel-test"

Opened = AbstractContextManager[tuple[Any, Path, list[str]]]


@pytest.fixture(scope="session")
def jupyterlab(tmp_path_factory: pytest.TempPathFactory, chromium: str) -> Callable[..., Opened]:
    """Opens a notebook of some cells, not run yet.

    The function gives the browser's page, the notebook's folder, and a list that fills with
    requests to elsewhere (which are refused) and with dialogs. With ``app="notebook"`` it is
    Notebook 7 instead.
    """

    @contextmanager
    def opened(*cells: str, app: str = "jupyterlab") -> Iterator[tuple[Any, Path, list[str]]]:
        home = tmp_path_factory.mktemp("jupyter")
        place = "notebooks" if app == "notebook" else "doc/tree"
        with server(home, cells, app) as address, browser(address, chromium) as (page, events):
            page.goto(f"{address}/{place}/panel.ipynb?token={TOKEN}")
            page.wait_for_function("window.jupyterapp")
            yield page, home / "notebooks", events

    return opened


@contextmanager
def browser(address: str, chromium: str) -> Iterator[tuple[Any, list[str]]]:
    """A page of a browser that may talk to this address only, and a list of what it tried."""
    from playwright import sync_api

    events: list[str] = []

    def guard(route: sync_api.Route) -> None:
        if route.request.url.startswith((f"{address}/", "data:", "blob:")):
            route.continue_()
        else:
            events.append(f"request of {route.request.url}")
            route.abort()

    def note_dialog(dialog: sync_api.Dialog) -> None:
        events.append(f"dialog {dialog.message}")
        dialog.dismiss()

    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", *FLAGS]
        )
        context = browser.new_context(viewport={"width": 1200, "height": 900})
        context.route("**/*", guard)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("dialog", note_dialog)
        yield page, events
        browser.close()


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def own_environment(home: Path) -> dict[str, str]:
    """An environment for Jupyter that has nothing of the user's."""
    return {
        **os.environ,
        "HOME": str(home),
        "IPYTHONDIR": str(home / "ipython"),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "KBKIT_RATER": "reader",
    }


@contextmanager
def server(home: Path, cells: tuple[str, ...], app: str) -> Iterator[str]:
    """The address of a JupyterLab or Notebook whose folder holds ``panel.ipynb``."""
    import nbformat

    folder = home / "notebooks"
    folder.mkdir()
    written = [nbformat.v4.new_code_cell(source) for source in cells]
    python = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(cells=written, metadata={"kernelspec": python})
    nbformat.write(notebook, folder / "panel.ipynb")
    settings = home / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    no_news = '{"fetchNews": "false", "checkForUpdates": false}'
    (settings / "notification.jupyterlab-settings").write_text(no_news)
    port = free_port()
    environment = own_environment(home)
    command = [
        sys.executable,
        "-m",
        app,
        "--no-browser",
        "--allow-root",
        f"--ServerApp.root_dir={folder}",
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        f"--IdentityProvider.token={TOKEN}",
        "--LabApp.extension_manager=readonly",
        "--LabApp.news_url=None",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.expose_app_in_browser=True",
        "--JupyterNotebookApp.expose_app_in_browser=True",
    ]
    log = home / "log"
    with log.open("w") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    try:
        address = f"http://127.0.0.1:{port}"
        wait_until_up(f"{address}/api/status?token={TOKEN}", process, log)
        yield address
    finally:
        process.terminate()
        process.wait(timeout=20)


def wait_until_up(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until a server answers."""
    for _ in range(600):
        try:
            urllib.request.urlopen(url).close()
        except (urllib.error.URLError, ConnectionError):
            assert process.poll() is None, log.read_text()
            time.sleep(0.1)
        else:
            return
    raise AssertionError(f"JupyterLab did not start in a minute:\n{log.read_text()}")
