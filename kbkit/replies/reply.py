"""A reply: what an agent is told, as a text and as values, and where it goes on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kbkit.embedding.static import count_tokens
from kbkit.errors import ConfigError
from kbkit.replies.limits import LEAST_TOKENS
from kbkit.retrieval.citations import cut

CURSOR_TOKENS = 36
"""Room that is kept for what says how to go on."""
_BEGINNING = 2
"""Tokens of the beginning of a text, which those of a line do not count."""
_BETWEEN = 3
"""Tokens between parts, of the text and of the values."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What an agent is told.

    Attributes:
        text: All of it, for a language model; where there is more, it ends with how to go on.
        values: The same as JSON values; ``next_cursor`` among them goes on, ``""`` ends.
    """

    text: str
    values: Mapping[str, Any]


@dataclass(slots=True)
class Budget:
    """How many tokens a reply may still take, its text and its values together.

    Some clients hand their model the text of a reply, others its values; neither may be too long,
    nor both. Tokens are counted by the tokenizer of the static embedder (that of Llama 2), which on
    most texts counts more than those of newer models.

    Attributes:
        room: Tokens that are left.
    """

    room: int

    @classmethod
    def of(cls, max_tokens: int, most: int) -> Budget:
        """What a caller allows, at most what the server does.

        Args:
            max_tokens: What the caller allows; 0 leaves it to the server.
            most: What the server allows.

        Raises:
            ConfigError: It is less than `LEAST_TOKENS`.
        """
        if max_tokens and max_tokens < LEAST_TOKENS:
            raise ConfigError(f"max_tokens: {LEAST_TOKENS} or more")
        return cls(min(max_tokens or most, most) - CURSOR_TOKENS)

    def holds(self, text: str, values: Any = None) -> bool:
        """Whether there is room for a text, and for values as JSON."""
        return size(text, values) <= self.room

    def take(self, text: str, values: Any = None) -> None:
        """Take the room of something that must be told."""
        self.room -= size(text, values)

    def takes(self, text: str, values: Any = None) -> bool:
        """Take the room of something, if there is as much."""
        if fits := self.holds(text, values):
            self.take(text, values)
        return fits


def size(text: str, values: Any = None) -> int:
    """Tokens of a text and of values as JSON, with what keeps them apart from others."""
    taken = count_tokens(text) + _BETWEEN
    if values is not None:
        taken += count_tokens(json.dumps(values, ensure_ascii=False)) + _BETWEEN
    return taken


def shortened(message: str, most: int) -> str:
    """A message within so many tokens: errors may repeat what was given."""
    return cut(message, most - _BEGINNING)


def read_cursor(cursor: str) -> int:
    """How many things were told before.

    Raises:
        ConfigError: It is none that a reply gave.
    """
    if not cursor:
        return 0
    kind, _, number = cursor.partition("-")
    if kind != "next" or not number.isascii() or not number.isdigit() or len(number) > 9:
        raise ConfigError(
            f"cursor={cursor[:40]!r}: is none that a reply gave; leave it out to begin anew"
        )
    return int(number)


def write_cursor(start: int) -> str:
    """What a reply gives for `read_cursor`."""
    return f"next-{start}"


def with_cursor(text: str, cursor: str) -> str:
    """A text that says how to go on, where there is more."""
    return f"{text}\n\nThere is more: ask again with cursor={cursor!r}." if cursor else text
