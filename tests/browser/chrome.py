"""A real Chromium, and pages in it that may talk to one server only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kbkit.sources.web.browser import WITHOUT_FEATURES

FLAGS = [
    WITHOUT_FEATURES,
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # no page reaches anything else
]

TIMEOUT = 120_000
"""Milliseconds to wait for an event: it costs nothing when the event comes."""

_NOTEBOOKS_OWN = "(reading 'schema')"
"""Notebook 7 raises this in its own code."""


@contextmanager
def launched(chromium: str) -> Iterator[Any]:
    """A running browser, from the path of its program."""
    from playwright import sync_api

    sync_api.expect.set_options(timeout=TIMEOUT)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=FLAGS, chromium_sandbox=False
        )
        yield browser
        browser.close()


@contextmanager
def guarded(chrome: Any, address: str, context: Any = None) -> Iterator[tuple[Any, list[str]]]:
    """A page that talks to one address only, and a list of other requests, dialogs and errors.

    Args:
        chrome: The browser.
        address: Without a slash at the end.
        context: A browser context to open the page in; its pages share a cache, so requests are
            noted when they end. By default a new one, which refuses other requests at once.
    """
    events: list[str] = []
    allowed = (f"{address}/", "data:", "blob:")

    def guard(route: Any) -> None:
        if route.request.url.startswith(allowed):
            route.continue_()
        else:
            events.append(f"request of {route.request.url}")
            route.abort()

    def note_request(request: Any) -> None:
        if not request.url.startswith(allowed) and request.failure != "csp":
            events.append(f"request of {request.url}")

    def note_dialog(dialog: Any) -> None:
        events.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def note_error(error: Any) -> None:
        if not (_NOTEBOOKS_OWN in str(error) and "notebook_core" in (error.stack or "")):
            events.append(f"error {error}")

    own = context is None
    if own:
        context = chrome.new_context()
        context.route("**/*", guard)  # which turns the cache off
    page = context.new_page()
    page.set_viewport_size({"width": 1200, "height": 900})
    if not own:
        page.on("requestfailed", note_request)
        page.on("requestfinished", note_request)
    page.set_default_timeout(TIMEOUT)
    page.on("dialog", note_dialog)
    page.on("pageerror", note_error)
    page.on("console", lambda line: line.type == "error" and events.append(f"console {line.text}"))
    yield page, events
    (context if own else page).close()
