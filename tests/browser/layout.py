"""How a page is laid out, once it has come to rest."""

from __future__ import annotations

from typing import Any

_DRAW = """async () => {
    await document.fonts.ready;
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    await frame();
    await frame();
}"""
_AT_REST = """() => !document.getAnimations().some(({ effect, playState }) =>
    playState === "running" && effect?.getComputedTiming().endTime !== Infinity)"""
"""Nobody waits for what ``finished`` of an animation promises: where ``content-visibility`` skips
an element, as JupyterLab lets it for cells out of sight, that never comes."""
_FITS = "part => part.scrollWidth <= part.clientWidth"


def settle(page: Any) -> None:
    """Wait until fonts are there, transitions are over, and what they changed is drawn.

    Args:
        page: A page of Playwright's synchronous API.

    Raises:
        playwright.sync_api.TimeoutError: Something moves on and on.
    """
    page.evaluate(_DRAW)
    page.wait_for_function(_AT_REST)
    page.evaluate(_DRAW)


def resize(page: Any, width: int, height: int) -> None:
    """Give a page another size, and wait until it is laid out in it."""
    page.set_viewport_size({"width": width, "height": height})
    settle(page)


def wait_until_fits(part: Any) -> None:
    """Wait until nothing of a part is wider than it is.

    Args:
        part: A locator of it.

    Raises:
        playwright.sync_api.TimeoutError: Something stays wider.
    """
    part.page.wait_for_function(_FITS, arg=part.element_handle())
