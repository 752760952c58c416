"""Base classes of panels and of their views."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import Any
from weakref import WeakSet

import anywidget
import ipywidgets as widgets
import traitlets

from kbkit.errors import ConfigError, KbkitError, NotFoundError
from kbkit.export.facts import bundle_modules
from kbkit.panels import controls, render
from kbkit.panels.controls import Home, Topic

_log = logging.getLogger(__name__)

_quiet: ContextVar[bool] = ContextVar("_quiet", default=False)
"""Whether the current thread updates a panel without an action of the reader."""
Answer = dict[str, Any]
Message = Mapping[str, Any]
_INTERVAL = 0.2
"""Seconds between updates of a job."""


class Panel(widgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """A user interface, which shows its errors.

    Messages of the page and timers may run in different threads (ipykernel 7 handles comms in a
    separate one). So changes of a panel hold its lock; see `acting`.

    Attributes:
        error: The last error, or ``None``.
        status_line: Status line, if it is among the children.
        lock: Held while the panel changes; jobs do not hold it.
    """

    error: Exception | None = None

    def __init__(self, home: Home, name: str) -> None:
        self._home = home
        self._loop = controls.running_loop()
        self.lock = threading.RLock()
        self.status_line = widgets.HTML()
        self._first_status = ""
        self.is_outcome = False
        super().__init__()
        self.add_class("kbkit-panel").add_class(f"kbkit-{name}")
        _panels.setdefault(home, WeakSet()).add(self)

    def fill(self, children: Sequence[Any]) -> None:
        """Put widgets into the panel."""
        self.children = (controls.stylesheet(), *children)

    @property
    def keeps_outcome(self) -> bool:
        """Whether the current update must keep the shown outcome of an action."""
        return _quiet.get() and self.is_outcome

    def say(self, text: str) -> None:
        """Show a status; within `update_quietly`, an outcome or an error stays."""
        if not self.keeps_outcome:
            self.is_outcome = False
            self._show_status(render.status(text))

    def announce(self, text: str) -> None:
        """Show an outcome until the next action; within `update_quietly`, beside another one."""
        self._show_status(render.status(text))
        self.is_outcome = True

    @contextmanager
    def update_quietly(self) -> Iterator[None]:
        """Update the panel without an action of the reader, as after a poll."""
        token = _quiet.set(True)
        try:
            yield
        finally:
            _quiet.reset(token)

    def fail(self, error: Exception) -> None:
        """Show an error until the next action; within `update_quietly`, an earlier error stays."""
        if not isinstance(error, KbkitError):
            _log.debug("unexpected error in a panel", exc_info=error)
        if self.keeps_outcome and self.error is not None:
            return
        self.error = error
        self._show_error(error)
        self.is_outcome = True

    @contextmanager
    def show_errors(self) -> Iterator[None]:
        """Show errors of the block instead of raising them."""
        try:
            yield
        except Exception as error:
            self.fail(error)

    @contextmanager
    def acting(self) -> Iterator[None]:
        """Change the panel under its lock, and show errors."""
        with self.lock, self.show_errors():
            yield

    def _problem(self, error: Exception, _message: Message) -> Answer:
        """Return an error for its field in the page."""
        return {"text": render.problem_line(error), "field": "", "now": None}

    def publish(self, topic: Topic) -> None:
        """Notify other panels of the workspace."""
        for panel in list(_panels[self._home]):
            if panel is not self:
                panel._receive(topic)

    def _show_error(self, error: Exception) -> None:
        self._show_status(render.problem(error))

    def _show_status(self, html: str) -> None:
        """Show a status, beside an outcome that stays."""
        if not self.keeps_outcome:
            self._first_status = html
        news = "" if html == self._first_status else html
        self.status_line.value = self._first_status + news

    def _receive(self, topic: Topic) -> None:
        """Handle a change in the panel's thread; publishers may be in another one."""
        if self._loop is not None and self._loop is not controls.running_loop():
            self._loop.call_soon_threadsafe(self._receive, topic)
        else:
            with self.acting(), self.update_quietly():
                self._update(topic)

    def _update(self, topic: Topic) -> None:
        """Show a change made by another panel."""


_panels: dict[Home, WeakSet[Panel]] = {}
"""Panels of each workspace."""


class EditingPanel(Panel):
    """A panel that shows changes made elsewhere, and reverts those made in it step by step."""

    def __init__(self, home: Home, name: str) -> None:
        self._seen: object = None
        self._undo: list[tuple[str, Callable[[], object], str]] = []
        """Changes, with what reverts each, and its outcome unless that returns another text."""
        super().__init__(home, name)

    def undo(self) -> None:
        """Revert the last change made in this panel."""
        with self.acting():
            self._do_undo({})

    def _revision(self) -> object:
        """Return a value that changes with the content of the panel."""
        raise NotImplementedError

    def _reread(self, opened: str = "", *, reveal: str = "") -> None:
        """Show the current state, with an item opened."""
        raise NotImplementedError

    def _do_look(self, _message: Message) -> None:
        with self.acting(), self.update_quietly():
            if self._seen != self._revision():
                self._reread()
                self.publish("documents")

    def _after_create(self, store: Any, path: str, title: str) -> Answer:
        outcome = f"Undone: {path} is in the trash"
        self._undo.append((f"creating {title}", lambda: store.delete(path), outcome))
        return self._after_change(f"Created: {title}", path)

    def _after_delete(self, store: Any, path: str, title: str = "") -> Answer:
        deleted = store.delete(path)
        title = title or deleted.path
        restore = partial(store.undelete, deleted.id)
        self._undo.append((f"deleting {title}", restore, f"Restored: {title}"))
        return self._after_change(f"Deleted: {title}. Undo restores it")

    @property
    def _undo_label(self) -> str:
        return self._undo[-1][0] if self._undo else ""

    def _do_undo(self, _message: Message) -> Answer:
        if not self._undo:
            return {}
        _, revert, outcome = self._undo.pop()
        answer = revert()
        return self._after_change(answer if isinstance(answer, str) else outcome)

    def _after_change(
        self, message: str, opened: str = "", *, reveal: str = "", topic: Topic = "documents"
    ) -> Answer:
        self._reread(opened, reveal=reveal or opened)
        self.publish(topic)
        self.error = None
        self.announce(message)
        return {"said": message}


class ReadingPanel(EditingPanel):
    """An editing panel with a tree, and an open document whose links open others."""

    def __init__(self, home: Home, name: str) -> None:
        self._links: Mapping[str, tuple[str, str]] = {}  # names and anchors by address
        self._serial = self._version = self._reveals = 0
        self._history: list[str] = []
        super().__init__(home, name)

    def show(self, name: Any, anchor: str = "") -> None:
        raise NotImplementedError

    def back(self) -> None:
        """Open the document that was open before."""
        with self.acting():
            while self._history:
                with suppress(NotFoundError):
                    self._show_again(self._history.pop())
                    break

    def _show_again(self, name: str) -> None:
        raise NotImplementedError

    def _do_follow(self, message: Message) -> None:
        link = self._links.get(str(message.get("href")))
        if link is not None:
            self.show(*link)


class JobPanel(Panel):
    """A panel whose work runs in a thread, so that cells and other panels stay usable."""

    running = traitlets.Bool(False, help="Whether work is running.")

    def __init__(self, home: Home, name: str, hint: str) -> None:
        self._cancelled = threading.Event()
        self._thread: threading.Thread | None = None
        self._switching = threading.RLock()  # held while a job starts or ends
        self._again = False
        self._updated = 0.0
        self.cancel_button = controls.button("Cancel", hint, self.cancel)
        self.cancel_button.disabled = True
        super().__init__(home, name)

    def cancel(self) -> None:
        """Stop the work; finished parts stay."""
        if self.running:
            self._cancelled.set()
            self.cancel_button.disabled = True
            self.say("Stopping…")

    def close(self) -> None:
        """Close the panel; its work ends."""
        self._cancelled.set()
        super().close()

    def _start(self, job: Callable[[], None]) -> None:
        """Start a job, or run it once more when it ends; an earlier error stays."""
        with self._switching:
            self._again = self.running
            if not self.running:
                self._cancelled.clear()
                self._set_running(True)
                self._thread = threading.Thread(target=self._run, args=(job,), daemon=True)
                self._thread.start()

    def _run(self, job: Callable[[], None]) -> None:
        """Run the job in the thread. Never raises."""
        while True:
            with self.show_errors():
                job()
            with self._switching:
                if not self._again or self._cancelled.is_set():
                    self._set_running(False)
                    return
                self._again = False

    def _join(self, timeout: float | None) -> None:
        if self._thread is not None:
            self._thread.join(timeout)

    def _set_running(self, running: bool) -> None:
        self.cancel_button.disabled = not running
        self.running = running

    def _is_due(self) -> bool:
        now = time.monotonic()
        if now - self._updated < _INTERVAL:
            return False
        self._updated = now
        return True


_RESERVED = frozenset(widgets.DOMWidget.class_trait_names()) | {"style"}
"""Traits that ipywidgets reads itself; other values there break its ``create_view``."""


class View(anywidget.AnyWidget):
    """A widget drawn by an ES module of ``panels/static``.

    A subclass names its module: ``class Cards(View, module="cards.js")``. The module exports a
    `widget`: an object with a function ``render({model, el})``, as anywidget requires. The panel's
    method ``_do_name`` handles its event ``name``.

    Attributes:
        state: JSON values to draw; assignment draws them.
    """

    state = traitlets.Dict(help="Data to draw, as JSON values.").tag(sync=True)

    def __init_subclass__(cls, *, module: str = "", **kwargs: Any) -> None:
        if reserved := sorted(_RESERVED & vars(cls).keys()):
            raise TypeError(f"{cls.__name__}.{reserved[0]}: ipywidgets has a trait of that name")
        if module:
            modules, exported = bundle_modules(f"panels/static/{module}")
            cls._esm = f"{modules}export default {exported}.widget;\n"
        super().__init_subclass__(**kwargs)

    def __init__(self, panel: Panel, **kwargs: Any) -> None:
        self._panel = panel
        super().__init__(**kwargs)
        self.on_msg(self._on_message)

    def _on_message(self, _view: object, content: object, _buffers: object) -> None:
        """Handle an event of the page; one with a number gets a reply."""
        if not isinstance(content, dict):
            return
        action = getattr(self._panel, f"_do_{content.get('event')}", None)
        number = content.get("number")
        if action is None or not isinstance(number, int | None):
            return
        with self._panel.acting():
            if number is None:
                action(content)
                return
            try:
                reply = {"answer": action(content)}
            except Exception as error:
                if not isinstance(error, KbkitError):
                    self._panel.fail(error)
                reply = {"problem": self._panel._problem(error, content)}
            self.send({"number": number, **reply})


def text_in(message: Message, name: str) -> str:
    """Return a string of a message, which is untrusted."""
    value = message.get(name, "")
    if not isinstance(value, str):
        raise ConfigError(f"{name}={value!r}: give text")
    return value


def texts_in(message: Message, name: str) -> list[str]:
    value = message.get(name, [])
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ConfigError(f"{name}={value!r}: give a list of texts")
    return [each for each in value if each.strip()]
