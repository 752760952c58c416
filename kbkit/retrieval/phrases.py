"""Phrases in quotation marks: passages that contain them go first."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from kbkit.text.analysis import fold

_T = TypeVar("_T")

PHRASED = 50
"""Number of best hits that are reordered by phrases."""
_QUOTED = re.compile(r"[\"“„«]([^\"“”„«»]*\S\s+\S[^\"“”„«»]*)[\"”“»]")


def phrases_in(query: str) -> list[str]:
    """Return the phrases of two words or more in a query, folded."""
    return [_folded(phrase) for phrase in _QUOTED.findall(query)]


def phrases_first(
    hits: Sequence[_T], phrases: Sequence[str], text_of: Callable[[_T], str]
) -> list[_T]:
    """Move hits that contain all phrases to the front; otherwise keep the order."""

    def lacks(hit: _T) -> bool:
        text = _folded(text_of(hit))
        return not all(phrase in text for phrase in phrases)

    return sorted(hits, key=lacks) if phrases else list(hits)


def _folded(text: str) -> str:
    return " ".join(fold(text).split())
