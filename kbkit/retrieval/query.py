"""A validated query."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from kbkit.errors import ConfigError
from kbkit.models import Filters, Mode
from kbkit.models.scores import MAX_QUERY_LENGTH
from kbkit.recipes import RetrievalSpec
from kbkit.stores.catalog.graph_tables import GraphTable
from kbkit.stores.catalog.subjects import entity_id
from kbkit.text.language import stop_words
from kbkit.validation import check_integer, check_text

_NO_FILTERS = Filters()


@dataclass(frozen=True, slots=True)
class Query:
    """A query with its parameters.

    Attributes:
        graph: Overrides their `graph_weight`.
        unlearned: Ignore what was learned from this very question, to judge by the same ratings.
    """

    text: str
    limit: int = 10
    mode: Mode = Mode.HYBRID
    filters: Filters = _NO_FILTERS
    retrieval: RetrievalSpec | None = None
    graph: float | None = None
    unlearned: bool = False

    def settings(self, own: RetrievalSpec) -> RetrievalSpec:
        found = own if self.retrieval is None else self.retrieval
        if self.graph is None or self.graph == found.graph_weight:
            return found
        return found.model_copy(update={"graph_weight": self.graph})

    @classmethod
    def of(
        cls,
        text: str,
        limit: int = 10,
        mode: str | Mode = Mode.HYBRID,
        filters: Filters | Mapping[str, Any] | None = None,
        retrieval: RetrievalSpec | None = None,
        *,
        graph: float | None = None,
    ) -> Query:
        # without lone surrogates, as broken bytes of a command line become
        text = check_text("query", text)
        if not text.strip():
            raise ConfigError("the query is empty; ask for something")
        if len(text) > MAX_QUERY_LENGTH:
            text = text.strip()[:MAX_QUERY_LENGTH]
        return cls(
            text=text,
            limit=check_integer("limit", limit, 1),
            mode=check_mode(mode),
            filters=Filters.of(filters),
            retrieval=None if retrieval is None else check_retrieval(retrieval),
            graph=None if graph is None else check_weight("graph", graph),
        )


def check_mode(mode: str | Mode) -> Mode:
    try:
        return Mode(mode)
    except ValueError:
        modes = ", ".join(Mode)
        raise ConfigError(f"mode={mode!r}: not known; choose one of {modes}") from None


def check_retrieval(retrieval: Any) -> RetrievalSpec:
    if not isinstance(retrieval, RetrievalSpec):
        raise ConfigError(f"retrieval={retrieval!r}: give a `kbkit.RetrievalSpec`")
    return retrieval


def check_weight(name: str, weight: Any) -> float:
    if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 <= weight <= 5:
        raise ConfigError(f"{name}={weight!r}: give a number from 0 to 5; 0 switches it off")
    return float(weight)


_MAX_WORDS = 5
"""Words of a name in a query."""
_WORDS = 60
"""Words used of a query."""
_EDGES = ".,:;!?\"'`“”‘’«»()[]{}<>"


class NamedEntity(NamedTuple):
    """An entity that a query names.

    Attributes:
        row: Row of the entity in a `GraphTable`.
        share: Probability that these words mean it, 0 to 1: *times* is seldom ``times()``.
    """

    row: int
    words: int
    share: float


def entities_in(
    query: str, graph: GraphTable, frequency: Callable[[str], int]
) -> list[NamedEntity]:
    """The entities that a query names; of names within one another the longest."""
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
    for length in range(min(_MAX_WORDS, len(words)), 0, -1):
        for start in range(len(words) - length + 1):
            text = " ".join(words[start : start + length])
            bare = text.strip(_EDGES)
            common = length == 1 and bare.lower() in stop_words("english")
            if bare and not (common and bare == text.rstrip(".,:;!?")):
                yield (start, start + length), bare
