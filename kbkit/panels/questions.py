"""Views whose requests are answered by number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kbkit.errors import ConfigError, KbkitError
from kbkit.panels.panel import Handler, Panel, View

Answer = dict[str, Any]
Message = Mapping[str, Any]
Answers = Mapping[str, Callable[[Message], Any]]
"""Handlers by name of the request."""


class AskingView(View):
    """A view that sends requests as messages; errors are shown beside their fields."""

    def __init__(
        self,
        panel: Panel,
        answers: Answers,
        problem: Callable[[Exception, Message], Answer],
        handlers: Mapping[str, Handler] | None = None,
    ) -> None:
        self._panel = panel
        self._answers = answers
        self._problem = problem
        super().__init__({**(handlers or {}), "ask": self._answer})

    def _answer(self, message: Message) -> None:
        number, what = message.get("number"), message.get("what")
        action = self._answers.get(str(what))
        if not isinstance(number, int) or action is None:
            return
        try:
            answer = {"answer": action(message)}
        except Exception as error:
            if not isinstance(error, KbkitError):
                self._panel.fail(error)
            answer = {"problem": self._problem(error, message)}
        self.send({"number": number, **answer})


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
