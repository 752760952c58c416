"""Validate and embed queries, find entities in them, and open a knowledge base's embedders."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from kbkit import recipes
from kbkit.embedding import Embedder, Embedders, Vector
from kbkit.embedding.fitted import FittedEncoder
from kbkit.errors import ConfigError, EmbedderError, EmbedderUnreachableError, KbkitError
from kbkit.models import Filters, Mode
from kbkit.models.ratings import MAX_QUERY_LENGTH
from kbkit.recipes import RetrievalSpec
from kbkit.runtime.validation import check_integer, check_text
from kbkit.stores.catalog import ratings, reading
from kbkit.stores.catalog.database import Database
from kbkit.stores.catalog.graph_reading import GraphReader
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow, spec_of
from kbkit.stores.catalog.subjects import entity_id
from kbkit.text import is_english, stop_words

if TYPE_CHECKING:
    from kbkit.models import Chunk, Entity

_NO_FILTERS = Filters()


@dataclass(frozen=True, slots=True)
class Query:
    """A query with its parameters.

    Attributes:
        filters: Conditions on chunks; `min_probability` is one on hits.
        graph: Overrides `graph_weight` of the retrieval settings.
        unlearned: Whether to ignore what was learned from this question, for evaluations.
    """

    text: str
    limit: int = 10
    mode: Mode = Mode.HYBRID
    filters: Filters = _NO_FILTERS
    retrieval: RetrievalSpec | None = None
    graph: float | None = None
    unlearned: bool = False
    min_probability: float | None = None

    def settings(self, default: RetrievalSpec) -> RetrievalSpec:
        spec = default if self.retrieval is None else self.retrieval
        if self.graph is None or self.graph == spec.graph_weight:
            return spec
        return spec.model_copy(update={"graph_weight": self.graph})

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
        # replaces lone surrogates, which come from invalid bytes on a command line
        text = check_text("query", text)
        if not text.strip():
            raise ConfigError("the query is empty; ask for something")
        if len(text) > MAX_QUERY_LENGTH:
            text = text.strip()[:MAX_QUERY_LENGTH]
        conditions = Filters.of(filters)
        return cls(
            text=text,
            limit=check_integer("limit", limit, 1),
            mode=check_mode(mode),
            filters=replace(conditions, min_probability=None),
            retrieval=None if retrieval is None else check_retrieval(retrieval),
            graph=None if graph is None else check_weight("graph", graph),
            min_probability=conditions.min_probability,
        )


def check_mode(mode: str | Mode, name: str = "mode") -> Mode:
    try:
        return Mode(mode)
    except ValueError:
        modes = ", ".join(Mode)
        raise ConfigError(f"{name}={mode!r}: not known; choose one of {modes}") from None


def check_retrieval(retrieval: Any) -> RetrievalSpec:
    if not isinstance(retrieval, RetrievalSpec):
        raise ConfigError(f"retrieval={retrieval!r}: give a `kbkit.RetrievalSpec`")
    return retrieval


def check_weight(name: str, weight: Any) -> float:
    if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 <= weight <= 5:
        raise ConfigError(f"{name}={weight!r}: give a number from 0 to 5; 0 switches it off")
    return float(weight)


_MAX_WORDS = 5
"""Maximum words of a name."""
_WORDS = 60
"""Maximum words of a query to examine."""
_EDGES = ".,:;!?\"'`“”‘’«»()[]{}<>"


class NamedEntity(NamedTuple):
    """An entity that a query names.

    Attributes:
        share: Probability that the words mean it, 0 to 1: *times* rarely means ``times()``.
    """

    entity: Entity
    words: int
    share: float


def entities_in(
    query: str, graph: GraphReader, frequency: Callable[[str], int]
) -> list[NamedEntity]:
    """Return the entities that a query names; the longest of overlapping names."""
    words = query.split()[:_WORDS]
    names = list(spans(words))
    known = graph.entities({entity_id(text) for _, text in names})
    used_places: set[int] = set()
    entities: dict[str, NamedEntity] = {}
    for (start, end), text in names:
        entity = known.get(entity_id(text))
        if entity is None or not used_places.isdisjoint(range(start, end)):
            continue
        used_places.update(range(start, end))
        share = 1.0
        if end - start == 1 and text == words[start].rstrip(".,:;!?") and text.islower():
            share = min(1.0, entity.chunks / max(1, frequency(text)))
        if entity.id not in entities or entities[entity.id].share < share:
            entities[entity.id] = NamedEntity(entity, end - start, share)
    return list(entities.values())


def spans(words: Sequence[str]) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield positions and texts of possible names, the longest first, without common words."""
    for length in range(min(_MAX_WORDS, len(words)), 0, -1):
        for start in range(len(words) - length + 1):
            text = " ".join(words[start : start + length])
            name = text.strip(_EDGES)
            common = length == 1 and name.lower() in stop_words("english")
            if name and not (common and name == text.rstrip(".,:;!?")):
                yield (start, start + length), name


# cached: it counts the words of 200,000 characters, which rarely change
_judged_english = lru_cache(maxsize=8)(is_english)


@dataclass(slots=True)
class KnowledgeBaseEmbedders:
    """Opens the embedders of a knowledge base."""

    database: Database
    embedders: Embedders
    _opened: Embedder | None = None
    _spec: tuple[Mapping[str, Any], recipes.KnowledgeBaseSpec] | None = None

    def spec_of(self, row: KnowledgeBaseRow) -> recipes.KnowledgeBaseSpec:
        """Return the parsed settings, checked once while they stay the same."""
        if self._spec is None or self._spec[0] is not row.config:
            self._spec = row.config, spec_of(row)
        return self._spec[1]

    def of(self, row: KnowledgeBaseRow) -> Embedder:
        if self._opened is None or self._opened.fingerprint != row.embedder:
            spec = recipes.StaticEmbedding() if row.waits else self.spec_of(row).embedding
            embedder = self.embedders.open(spec)
            if embedder.fingerprint != row.embedder:
                raise EmbedderError(
                    f"{row.name}: was embedded by {row.embedder}, but the embedder is now "
                    f"{embedder.fingerprint}; install the version it was made with, or change the "
                    "recipe's embedding so that it is embedded again"
                )
            self._opened = embedder
        return self._opened

    def of_summaries(self, row: KnowledgeBaseRow) -> Embedder:
        if row.summary_embedder.startswith("static:"):  # until the model has embedded everything
            return self.embedders.open(recipes.StaticEmbedding())
        if row.summary_embedder.startswith("multilingual:"):
            return self.embedders.open(recipes.MultilingualEmbedding())
        spec = self.spec_of(row).summary_embedding
        if spec is None and row.summary_embedder:  # an earlier default
            return self.embedders.of_summaries(english=True)
        return self.summary_model(row)

    def summary_model(self, row: KnowledgeBaseRow) -> Embedder:
        spec = self.spec_of(row)
        if spec.summary_embedding is not None:
            return self.embedders.open(spec.summary_embedding)
        return self.embedders.of_summaries(english=self._is_english(row, spec))

    def _is_english(self, row: KnowledgeBaseRow, spec: recipes.KnowledgeBaseSpec) -> bool:
        # the setting alone is inconclusive: English is the default
        if spec.language not in ("english", "porter"):
            return False
        return _judged_english(tuple(self.database.look_up(reading.beginnings, row.id)))


_RETRY_AFTER = 30.0
"""Seconds to wait after a connection error before trying the model again."""


@dataclass(frozen=True, slots=True)
class QueryVector:
    """Vector of a query, or ``None`` and a note for the reader."""

    vector: Vector | None = None
    note: str = ""


@dataclass(slots=True)
class QueryEncoder:
    """Embeds the queries of one knowledge base."""

    database: Database
    embedders: KnowledgeBaseEmbedders
    _fitted: tuple[datetime, FittedEncoder] | None = None
    _cached: tuple[int, KnowledgeBaseRow, FittedEncoder | None] | None = None
    _last_failure: tuple[float, EmbedderUnreachableError] | None = None

    def encode(
        self, row: KnowledgeBaseRow, query: Query, settings: RetrievalSpec, terms: Sequence[str]
    ) -> QueryVector:
        note = ""
        if settings.query_encoder == "fitted":
            encoder = self._load(row)
            if encoder is not None:
                return QueryVector(encoder.encode(terms))
            note = f"{row.name}: its model embedded the query, since no query encoder is fitted yet"
        problem: KbkitError | None = None
        if query.mode is not Mode.DENSE and self._last_failure is not None:
            # spares the user another timeout
            problem = self._last_failure[1] if time.monotonic() < self._last_failure[0] else None
        if problem is None:
            try:
                embedder = self.embedders.of(row)
            except (ConfigError, EmbedderError) as error:
                problem = error
            else:
                try:
                    return QueryVector(embedder.embed_query(query.text), note)
                except EmbedderUnreachableError as error:
                    self._last_failure = time.monotonic() + _RETRY_AFTER, error
                    problem = error
        encoder = self._load(row)
        if encoder is None and query.mode is Mode.DENSE:
            raise problem
        vector = None if encoder is None else encoder.encode(terms)
        result = "passages were searched by words only"
        if encoder is not None:
            result = "fitted query encoder embedded the query"
        return QueryVector(vector, f"{row.name}: its {result}, since {problem}")

    def _load(self, row: KnowledgeBaseRow) -> FittedEncoder | None:
        changes = self.database.changes()
        if self._cached is None or self._cached[:2] != (changes, row):
            self._cached = changes, row, self._read(row)
        return self._cached[2]

    def _read(self, row: KnowledgeBaseRow) -> FittedEncoder | None:
        with self.database.read() as transaction:
            current = ratings.fitted_embedder(transaction, row.id)
            if current is None or current[0] != row.embedder:
                return None
            cached = self._fitted
            if cached is not None and cached[0] == current[1]:
                return cached[1]
            record = ratings.load_encoder(transaction, row.id)
        if record is None:
            return None
        state = record.state
        encoder = FittedEncoder(state.embedder, record.terms, record.vectors, state.report)
        self._fitted = state.fitted_at, encoder
        return encoder


_THREADS = ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="kbkit-summaries")


def encode_for_summaries(
    embedders: KnowledgeBaseEmbedders, row: KnowledgeBaseRow, text: str
) -> Future[QueryVector]:
    """Return a future of a query's vector for summaries, or of the reason why there is none."""

    def encode() -> QueryVector:
        if not row.summary_embedder:
            return QueryVector()
        try:
            embedder = embedders.of_summaries(row)
            if embedder.fingerprint != row.summary_embedder:
                reason = f"which is not installed; `kbkit refresh {row.name}` embeds them again"
                note = f"its document summaries were embedded by {row.summary_embedder}, {reason}"
                return QueryVector(note=f"{row.name}: {note}")
            return QueryVector(embedder.embed_query(text))
        except (ConfigError, EmbedderError) as error:
            return QueryVector(note=f"{row.name}: summaries were not searched, since {error}")

    return _THREADS.submit(encode)


def distance_of(chunk: Chunk, names: Collection[str]) -> tuple[int, int]:
    """Return how far a chunk is from defining one of the names, by its heading and position."""
    heading = chunk.heading_path[-1] if chunk.heading_path else ""
    distances = [len(heading) - len(name) for name in names if name in heading]
    return min(distances, default=1_000), chunk.position
