"""Which entities a query names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from kbkit.stores.catalog.graph_tables import GraphTable
from kbkit.stores.catalog.subjects import entity_id
from kbkit.text.stopwords import stop_words

_MOST_WORDS = 5
"""Words of a name in a query."""
_WORDS = 60
"""Words of a query that are looked at."""
_EDGES = ".,:;!?\"'`“”‘’«»()[]{}<>"


class NamedEntity(NamedTuple):
    """An entity that a query names.

    Attributes:
        row: Of the entity, in a `GraphTable`.
        words: How many words of the query name it.
        share: How often who writes these words means it, 0 to 1: *times* is seldom ``times()``.
    """

    row: int
    words: int
    share: float


def entities_in(
    query: str, graph: GraphTable, frequency: Callable[[str], int]
) -> list[NamedEntity]:
    """The entities that a query names; of names within one another the longest.

    Args:
        query: A question or some words.
        graph: Of the knowledge base that is asked.
        frequency: Gives how many of its chunks have a word.
    """
    words = query.split()[:_WORDS]
    taken: set[int] = set()
    found: dict[int, NamedEntity] = {}
    for (start, end), text in _spans(words):
        row = graph.rows.get(entity_id(text))
        if row is None or not taken.isdisjoint(range(start, end)):
            continue
        taken.update(range(start, end))
        share = 1.0
        if end - start == 1 and text == words[start].rstrip(".,:;!?") and text.islower():
            share = min(1.0, graph.entities[row].chunks / max(1, frequency(text)))
        if row not in found or found[row].share < share:
            found[row] = NamedEntity(row, end - start, share)
    return list(found.values())


def _spans(words: Sequence[str]) -> Iterator[tuple[tuple[int, int], str]]:
    """What may be a name among some words, long ones first."""
    for length in range(min(_MOST_WORDS, len(words)), 0, -1):
        for start in range(len(words) - length + 1):
            text = " ".join(words[start : start + length])
            bare = text.strip(_EDGES)
            common = length == 1 and bare.lower() in stop_words("english")
            if bare and not (common and bare == text.rstrip(".,:;!?")):
                yield (start, start + length), bare
