"""Controls of panels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from kbkit.models import Mode
from kbkit.panels import render

_MODES = (
    ("Meaning and words", Mode.HYBRID.value),
    ("Meaning", Mode.DENSE.value),
    ("Words", Mode.LEXICAL.value),
)


def control(kind: Callable[..., Any], label: str, **options: Any) -> Any:
    return kind(description=label, layout=widgets.Layout(width="auto"), **options)


def button(label: str, tooltip: str, action: Callable[[], None]) -> widgets.Button:
    made = control(widgets.Button, label, tooltip=tooltip).add_class("kbkit-button")
    made.on_click(lambda _button: action())
    return made


def toggle(label: str, **options: Any) -> widgets.ToggleButton:
    return control(widgets.ToggleButton, label, **options).add_class("kbkit-more")


def mode_box(**options: Any) -> widgets.Dropdown:
    return control(widgets.Dropdown, "Search by", options=_MODES, **options)


def row(*controls: Any) -> widgets.HBox:
    """Arrange controls in a row, labels above them; ``None`` is left out."""
    present = [each for each in controls if each is not None]
    return widgets.HBox(present).add_class("kbkit-controls")


def buttons(*controls: Any) -> widgets.HBox:
    return widgets.HBox(list(controls)).add_class("kbkit-buttons")


def stylesheet() -> widgets.HTML:
    return widgets.HTML(render.stylesheet(), layout=widgets.Layout(display="none"))


def show(widget: Any, visible: bool) -> None:
    widget.layout.display = None if visible else "none"


class StatusLine(widgets.HTML):  # type: ignore[misc]  # ipywidgets has no types
    """A status line; screen readers announce its changes."""

    _first = ""

    def say(self, text: str, *, beside: bool = False) -> None:
        """Show a status, after the current text or in its place."""
        self._show(render.status(text), beside)

    def fail(self, error: Exception, *, beside: bool = False) -> None:
        """Show an error, after the current text or in its place."""
        self._show(render.problem(error), beside)

    def _show(self, html: str, beside: bool) -> None:
        if not beside:
            self._first = html
        self.value = self._first if html == self._first else self._first + html


class MutedUpdates:
    """True while Python itself changes controls, so that their observers leave that aside.

    ::

        with self._muted:
            self.box.value = "set by Python"
    """

    def __init__(self) -> None:
        self._depth = 0

    def __enter__(self) -> None:
        self._depth += 1

    def __exit__(self, *_error: object) -> None:
        self._depth -= 1

    def __bool__(self) -> bool:
        return self._depth > 0
