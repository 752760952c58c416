"""View: a widget drawn by an ES module of kbkit.

Python gives a view its ``state``, plain JSON values, and the module draws it; what a reader does
there comes back as an *event*: a message ``{"event": name, ...}``. Modules build the page from text
nodes only (``dom.js``), so text of documents is never read as HTML.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from posixpath import dirname, join, normpath
from typing import Any

import anywidget
import ipywidgets
import traitlets

Handler = Callable[[Mapping[str, Any]], None]

_IMPORT = re.compile(r'^import \{[^}]*\} from "([\w./-]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?:(?=function|const|class|async)|\{[^}]*\};\n)", re.MULTILINE)


_TAKEN = frozenset(ipywidgets.DOMWidget.class_trait_names()) | {"style"}
"""Traits that ipywidgets reads itself: text where it awaits a widget ends in an error of its
``create_view`` that names neither (``Cannot read properties of undefined (reading 'then')``)."""


class View(anywidget.AnyWidget):
    """A widget drawn by an ES module of ``panels/static``.

    A kind of view names its module: ``class Cards(View, module="cards.js")``. The module's default
    export is what anywidget asks for: an object with a function ``render({model, el})``.

    Attributes:
        state: JSON values to draw; assignment draws them.
    """

    state = traitlets.Dict(help="Data to draw, as JSON values.").tag(sync=True)

    def __init_subclass__(cls, *, module: str = "", **kwargs: Any) -> None:
        taken = sorted(_TAKEN & vars(cls).keys())
        if taken:
            raise TypeError(f"{cls.__name__}.{taken[0]}: ipywidgets has a trait of that name")
        if module:
            cls._esm = bundled(module)
        super().__init_subclass__(**kwargs)

    def __init__(self, handlers: Mapping[str, Handler] | None = None, **kwargs: Any) -> None:
        self._handlers = dict(handlers or {})
        super().__init__(**kwargs)
        self.on_msg(self._received)

    def _received(self, _view: object, content: object, _buffers: object) -> None:
        """Dispatch an event to its handler; unknown ones are ignored."""
        if not isinstance(content, dict):
            return
        handler = self._handlers.get(str(content.get("event")))
        if handler is not None:
            handler(content)


@cache
def bundled(module: str) -> str:
    """A module with the modules that it imports, as one text, since anywidget takes one.

    Modules name what they import from each other, and from those of exported sites, in one line
    each, ``import { a, b } from "./dom.js";``, and no name is used twice among modules that come
    together.
    """
    folder = resources.files("kbkit") / "panels/static"
    parts: dict[str, str] = {}

    def read(name: str) -> None:
        if name in parts:
            return
        text = folder.joinpath(name).read_text("utf-8")
        for imported in _IMPORT.findall(text):
            read(normpath(join(dirname(name), imported)))
        body = _IMPORT.sub("", text)
        parts[name] = body if name == module else _EXPORT.sub("", body)

    read(module)
    return "\n".join(parts.values())
