"""Evaluate search with golden questions and judgements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches

from kbkit.feedback.evaluation_report import Evaluation, MissingPage, QueryResult, Unit, compare
from kbkit.feedback.evaluation_set import (
    EvaluationQuery,
    EvaluationSet,
    Searchable,
    evaluation_set,
    is_page,
    matching_page,
    unfinished,
)
from kbkit.feedback.judgements import Judgements
from kbkit.feedback.statistics import DEPTH, Ranking, measure
from kbkit.models import Mode, Progress
from kbkit.recipes import Question, RetrievalSpec
from kbkit.retrieval.query import check_mode, check_retrieval
from kbkit.runtime.progress import OnProgress, progress_bar
from kbkit.runtime.validation import check_integer
from kbkit.stores.catalog import reading

_NOTED = 10
"""Missing pages listed one by one in notes."""
_SUGGESTED = 50
"""Missing pages that get a suggestion; each is compared with all pages."""


def missing_pages(kb: Searchable, queries: EvaluationSet) -> tuple[MissingPage, ...]:
    if queries.unit != "page":
        return ()
    with kb.retriever.stores.database.read() as transaction:
        uris = reading.searched_uris(transaction, kb.retriever.kb_id)
    by_end: dict[str, list[str]] = {}  # compare each page with a few URIs only
    for uri in uris:
        for end in _last_parts(uri):
            by_end.setdefault(end, []).append(uri)
    missing: list[MissingPage] = []
    for query in queries:
        for page in query.gains:
            candidates = [uri for end in _last_parts(page) for uri in by_end.get(end, ())]
            if not any(is_page(uri, page) for uri in candidates):
                near = _nearest(page, uris) if len(missing) < _SUGGESTED else ""
                missing.append(MissingPage(query.text, page, near))
    return tuple(missing)


def missing_notes(missing: Sequence[MissingPage]) -> tuple[str, ...]:
    notes = [str(page) for page in missing[:_NOTED]]
    if missing:
        notes[0] = f"{notes[0]} These questions count as not answered."
    if len(missing) > _NOTED:
        notes.append(f"{len(missing) - _NOTED:,} more pages that questions name do not exist")
    return tuple(notes)


def _last_parts(uri: str) -> Iterable[str]:
    for text in {uri, uri.partition("#")[0]}:
        yield text.rstrip("/").replace(":", "/").rpartition("/")[2]


def _nearest(page: str, uris: Sequence[str]) -> str:
    path = page.lstrip("/")
    parts = path.count("/") + 1
    tails = {"/".join(uri.split("/")[-parts:]): uri for uri in uris}
    near = get_close_matches(path, tails, 1, 0.6)
    if near:
        return near[0]
    # the same file name in another folder
    name = path.rpartition("/")[2]
    return next((uri for uri in uris if uri.rpartition("/")[2] == name), "")


MAX_K = 100
"""Maximum `k` of recall."""


def evaluate(
    kb: Searchable,
    ground_truth: Sequence[Question] | Judgements,
    *,
    mode: str | Mode,
    retrieval: RetrievalSpec | None,
    against: str | Mode | RetrievalSpec | Evaluation | None,
    k: int,
    on_progress: OnProgress | None = None,
) -> Evaluation:
    """Measure search; see `KnowledgeBase.evaluate`."""
    k = check_integer("k", k, 1, MAX_K)
    queries = evaluation_set(kb, ground_truth)
    runs = [_Configuration.of(kb, mode, retrieval)]
    if against is not None and not isinstance(against, Evaluation):
        if isinstance(against, RetrievalSpec):
            runs.append(_Configuration.of(kb, mode, against))
        else:
            runs.append(_Configuration.of(kb, against, retrieval))
    with progress_bar(on_progress) as report:
        measured, *others = [run.measure(kb, queries, k, report) for run in runs]
    if isinstance(against, Evaluation):
        others.append(against)
    missing = missing_pages(kb, queries)
    notes = (*missing_notes(missing), *measured.notes)
    measured = replace(measured, missing=missing, notes=notes)
    return compare(measured, others[0]) if others else measured


def to_ranking(query: EvaluationQuery, names: Sequence[str], unit: Unit) -> Ranking:
    items: list[str | None] = []
    for name in names:
        if unit == "page":
            items.append(matching_page(name, query, items))
        else:
            items.append(name if name in query.gains else None)
    places = {name: i for i, name in enumerate(query.gains)}
    ranked = tuple(None if item is None else places[item] for item in items)
    return Ranking(tuple(query.gains.values()), ranked)


@dataclass(frozen=True, slots=True)
class _Configuration:
    mode: Mode
    retrieval: RetrievalSpec
    label: str

    @classmethod
    def of(
        cls, kb: Searchable, mode: str | Mode, retrieval: RetrievalSpec | None
    ) -> _Configuration:
        if retrieval is None:
            return cls(check_mode(mode), kb.spec.retrieval, str(mode))
        return cls(check_mode(mode), check_retrieval(retrieval), f"{mode}, other settings")

    def measure(
        self, kb: Searchable, queries: EvaluationSet, k: int, report: OnProgress | None
    ) -> Evaluation:
        retrieval, depth = queries.retrieval(self.retrieval), max(DEPTH, k)
        rankings_by_query = []
        for number, query in enumerate(queries, 1):
            rankings_by_query.append(self._names(kb, query.text, retrieval, queries.unit, depth))
            if report is not None:
                report(Progress("evaluate", number, len(queries), query.text))
        rankings = [
            to_ranking(query, names, queries.unit)
            for query, names in zip(queries, rankings_by_query, strict=True)
        ]
        results = tuple(
            QueryResult(query=query.text, relevant=query.relevant, found=names, **asdict(measures))
            for query, names, measures in zip(
                queries, rankings_by_query, measure(rankings, k), strict=True
            )
        )
        return Evaluation(
            results, self.label, queries.unit, k, queries.left_out, notes=unfinished(kb, "evaluate")
        )

    def _names(
        self, kb: Searchable, query: str, retrieval: RetrievalSpec, unit: Unit, depth: int
    ) -> tuple[str, ...]:
        names: list[str] = []
        # several hits may be of one page
        for limit in (depth,) if unit == "chunk" else (3 * depth, 10 * depth):
            hits = kb.search(query, limit=limit, mode=self.mode, retrieval=retrieval)
            names = [hit.uri if unit == "page" else hit.chunk.id for hit in hits]
            names = list(dict.fromkeys(names))[:depth]
            if len(names) == depth or len(hits) < limit:
                break
        return tuple(names)
