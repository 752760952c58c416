"""What the tests in a browser share: the browser, a Jupyter server, a published site."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.browser.chrome import guarded, launched
from tests.browser.jupyter import Server, server
from tests.browser.published import kitchen, kitchen_address, tab  # noqa: F401

Opened = AbstractContextManager[tuple[Any, Path, list[str]]]


# Of the package, not of the session: while it runs, other tests could not use asyncio.
@pytest.fixture(scope="package")
def chrome(chromium: str) -> Iterator[Any]:
    """A running browser."""
    with launched(chromium) as browser:
        yield browser


@pytest.fixture(scope="package")
def jupyter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A running Jupyter server."""
    with server(tmp_path_factory.mktemp("jupyter")) as running:
        yield running


@pytest.fixture(scope="package")
def jupyterlab(chrome: Any, jupyter: Server) -> Callable[..., Opened]:
    """Opens a notebook of some cells, not run yet.

    The function gives the browser's page, the notebook's folder, and a list that fills with
    requests to elsewhere (which are refused) and with dialogs. With ``app="notebook"`` it is
    Notebook 7 instead.
    """

    context = chrome.new_context()

    @contextmanager
    def opened(*cells: str, app: str = "jupyterlab") -> Iterator[tuple[Any, Path, list[str]]]:
        folder, address = jupyter.write(cells, app)
        with guarded(chrome, jupyter.address, context) as (page, events):
            page.goto(address)
            page.wait_for_function("window.jupyterapp")
            yield page, folder, events
        jupyter.stop_kernels()

    return opened


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Where a test fails, its report says what the page showed."""
    report = yield
    lab = getattr(item, "funcargs", {}).get("lab")
    if report.when == "call" and report.failed and lab is not None:
        report.sections.append(("What the page showed", lab.page.inner_text(".jp-Notebook")))
    return report
