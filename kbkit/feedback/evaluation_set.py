"""Queries with known answers, by page or by chunk."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from kbkit.errors import ImpossibleError
from kbkit.feedback.evaluation_report import Unit
from kbkit.feedback.judgements import Judgements
from kbkit.models import KnowledgeBaseInfo
from kbkit.models.ratings import fold_query
from kbkit.models.values import Several
from kbkit.recipes import KnowledgeBaseSpec, Question, RetrievalSpec, check_questions
from kbkit.retrieval.retriever import Retriever
from kbkit.stores.catalog import corpus

_POINTER = "#/"
"""Start of a JSON pointer to a part of a data file."""
_HOST = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#]*", re.IGNORECASE)


class Searchable(Protocol):
    """The parts of a knowledge base that feedback uses."""

    @property
    def name(self) -> str: ...

    @property
    def retriever(self) -> Retriever: ...

    @property
    def spec(self) -> KnowledgeBaseSpec: ...

    def info(self) -> KnowledgeBaseInfo: ...


@dataclass(frozen=True, slots=True)
class EvaluationQuery:
    """A query with known answers; ``gains`` are by suffix of a page's URI or by chunk id."""

    text: str
    gains: Mapping[str, int]

    @property
    def relevant(self) -> tuple[str, ...]:
        return tuple(name for name, gain in self.gains.items() if gain > 0)


@dataclass(frozen=True, slots=True)
class EvaluationSet(Several[EvaluationQuery]):
    """Queries by page or by chunk; ``left_out`` are those without a relevant chunk."""

    _items: ClassVar = "queries"
    unit: Unit
    queries: tuple[EvaluationQuery, ...]
    left_out: tuple[str, ...] = ()

    def retrieval(self, settings: RetrievalSpec) -> RetrievalSpec:
        return settings if self.unit == "page" else without_ratings(settings)


def without_ratings(settings: RetrievalSpec) -> RetrievalSpec:
    return settings.model_copy(update={"rating_weight": 0.0, "learned_weight": 0.0})


def unfinished_warnings(kb: Searchable, task: str) -> tuple[str, ...]:
    """Return warnings about figures of a knowledge base that is still changing."""
    work = kb.info().waiting
    if not work:
        return ()
    return (
        f"{kb.name}: static vectors served {work} that a model has still to embed, so these "
        f"figures will change; `kbkit improve {kb.name}` embeds them, or {task} with `wait`",
    )


def evaluation_set(kb: Searchable, ground_truth: Sequence[Question] | Judgements) -> EvaluationSet:
    """Convert golden questions or judgements to queries of a knowledge base.

    The first page of a question has a gain of 2, the others of 1; a judged chunk has its grade.
    """
    if isinstance(ground_truth, Judgements):
        return _by_chunk(kb, ground_truth)
    return _by_page(ground_truth)


def query_of(query: str, ground_truth: Sequence[Question] | Judgements) -> EvaluationSet:
    if not isinstance(ground_truth, Judgements):
        return _by_page([item for item in ground_truth if item.question == query][:1])
    key = fold_query(query)
    gains = {item.chunk_id: item.grade for item in ground_truth if fold_query(item.query) == key}
    return EvaluationSet("chunk", (EvaluationQuery(query, gains),))


def _by_page(questions: Any) -> EvaluationSet:
    queries = [
        EvaluationQuery(each.question, dict.fromkeys(each.relevant, 1) | {each.relevant[0]: 2})
        for each in check_questions(questions)
    ]
    return EvaluationSet("page", tuple(queries))


def _by_chunk(kb: Searchable, judgements: Judgements) -> EvaluationSet:
    if not judgements:
        raise ImpossibleError(
            f"{kb.name}: there are no judgements; rate some chunks with the query they were found "
            "for, or give golden questions"
        )
    ids = list({judgement.chunk_id for judgement in judgements})
    existing = kb.retriever.stores.database.look_up(corpus.seqs_by_id, ids)
    all_queries = [
        EvaluationQuery(text, {name: grade for name, grade in grades.items() if name in existing})
        for text, grades in judgements.grades.items()
    ]
    answered = tuple(query for query in all_queries if query.relevant)
    if not answered:
        why = "is rated 3 stars or better" if existing else "exists any more"
        raise ImpossibleError(f"{kb.name}: no judged chunk {why}; rate what answers the queries")
    return EvaluationSet(
        "chunk", answered, tuple(query.text for query in all_queries if not query.relevant)
    )


def matching_page(uri: str, query: EvaluationQuery, used: Sequence[str | None] = ()) -> str | None:
    """Return the relevant page of a URI; ``None`` if there is none, or it is taken."""
    for suffix in query.gains:
        if suffix not in used and is_page(uri, suffix):
            return suffix
    return None


def is_page(uri: str, suffix: str) -> bool:
    """Whether a URI ends with a page's path, at a path boundary.

    A path with a leading slash is the whole path: ``/guide/`` does not match ``/api/guide/``.
    Fragments are ignored, except JSON pointers (``api.yaml#/paths/~1books/get``).
    """
    if not (_POINTER in uri and _POINTER in suffix):
        uri = uri.split("#", 1)[0]
        suffix = suffix.split("#", 1)[0]
    if suffix.startswith("/"):
        host = _HOST.match(uri)
        return (uri[host.end() :] if host else f"/{uri}") == suffix
    return uri == suffix or uri.endswith("/" + suffix) or uri.endswith(":" + suffix)
