"""A context for an agent, within a budget for its text and for its values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kbkit.errors import ConfigError
from kbkit.models import Context, ContextPiece
from kbkit.replies.passages import citation_values
from kbkit.replies.quotes import Quotes
from kbkit.replies.reply import CURSOR_TOKENS, Budget, Reply, size
from kbkit.retrieval.context import LEAST_TOKENS

_LITTLE = 600
"""Tokens of a budget that leaves no room for all that is to be said of sources."""


def context_reply(ask: Callable[[int], Context], budget: Budget) -> Reply:
    """A context that is within the budget with its values, which its text alone would be.

    Args:
        ask: Gives the context that takes at most so many tokens.
        budget: What the reply may take.
    """
    room = budget.room + CURSOR_TOKENS  # there is no more of it
    most = max(LEAST_TOKENS, room // 2)
    while True:
        try:
            found = ask(most)
        except ConfigError as error:
            if str(error).startswith("max_tokens"):  # which the caller gave otherwise
                raise ConfigError("max_tokens: too few for a passage; give more") from error
            raise
        quotes = Quotes()
        values = {
            "note": quotes.note,
            "pieces": [_values(piece, quotes, room < _LITTLE) for piece in found.pieces],
            "notes": [quotes.value(note) for note in found.notes],
        }
        over = size(found.text, values) - room
        if over <= 0:
            return Reply(found.text, values)
        if most == LEAST_TOKENS:  # notes of services, say
            return Reply(found.text, values | {"pieces": [], "notes": []})
        most = max(LEAST_TOKENS, most - max(over // 2, 8))


def _values(piece: ContextPiece, quotes: Quotes, short: bool) -> dict[str, Any]:
    values: dict[str, Any] = {"number": piece.number, "kind": piece.kind}
    if piece.name:
        values["name"] = piece.name
    if (citation := piece.citation) is not None:
        values |= citation_values(citation, quotes, short=short)
    return values | {"text": quotes.value(piece.text)}
