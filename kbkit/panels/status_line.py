"""Buttons, and a line that says how things are: what panels of long work have in common."""

from __future__ import annotations

import logging
from collections.abc import Callable

import ipywidgets as widgets

from kbkit.errors import KbkitError
from kbkit.panels import render

_log = logging.getLogger(__name__)


def button(label: str, tooltip: str, action: Callable[[], None]) -> widgets.Button:
    """A button that does something when it is pressed."""
    made = widgets.Button(
        description=label, tooltip=tooltip, layout=widgets.Layout(width="auto")
    ).add_class("kbkit-button")
    made.on_click(lambda _button: action())
    return made


class StatusLine(widgets.HTML):  # type: ignore[misc]  # ipywidgets has no types
    """One line that says what happened last; screen readers read it when it changes."""

    def say(self, text: str) -> None:
        """Show how things are."""
        self.value = render.status(text)

    def fail(self, error: Exception) -> None:
        """Show an error; what nobody expected goes to the log with its traceback."""
        if not isinstance(error, KbkitError):
            _log.debug("unexpected error in a panel", exc_info=error)
        self.value = render.problem(error)
