"""Facts on published pages, in addition to the documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from kbkit.export.facts import ExampleQuestion, Facts, GraphFacts, RelatedPassage, SourceFacts
from kbkit.export.publishing.graph_facts import GraphView, entity_mentions, graph_facts
from kbkit.feedback.evaluation_set import is_page
from kbkit.models import RatingTotal
from kbkit.recipes import Question
from kbkit.stores.catalog import corpus, ratings, reading, runs
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.snapshots.snapshot import Snapshot

NEIGHBOURS = 4
"""Maximum related passages of a page."""
NEAR_ENOUGH = 0.3
"""Minimum cosine of two documents' centred means."""
_ROWS = 256  # documents compared with all others at once; bounds memory


def gather_facts(
    transaction: Transaction,
    kb_id: str,
    snapshot: Snapshot,
    questions: Sequence[Question] = (),
    graph: GraphView | GraphFacts | None = None,
) -> Facts:
    lists = corpus.indexes(transaction, kb_id)
    numbers = {document_id: number for number, document_id in enumerate(snapshot.document_ids)}
    mentions = entity_mentions(transaction, kb_id, snapshot)
    about = mentions.main_subjects(
        {numbers[document_id] for document_id in lists if document_id in numbers}
    )
    scores = {(r.target.id, r.rater, r.query): r.score for r in ratings.listed(transaction, kb_id)}
    return Facts(
        related=related_passages(transaction, snapshot),
        ratings=_ratings(ratings.totals(transaction, kb_id), snapshot),
        scores=Counter(scores.values()),
        lengths=reading.chunk_lengths(transaction, kb_id),
        sources=[_source(transaction, row) for row in runs.list_sources(transaction, kb_id)],
        questions=_examples(transaction, snapshot, questions),
        subjects={snapshot.document_ids[owner]: names for owner, names in about.items()},
        graph=graph_facts(transaction, kb_id, snapshot, graph, mentions)
        if isinstance(graph, GraphView)
        else graph,
    )


def _examples(
    transaction: Transaction, snapshot: Snapshot, questions: Sequence[Question]
) -> list[ExampleQuestion]:
    if not questions:
        return []
    uris = list(reading.uris_of(transaction, snapshot.document_ids).values())
    uris.sort(key=lambda uri: (len(uri), uri))  # a suffix more likely means a page near the top
    return [
        ExampleQuestion(
            question.question,
            tuple(uri for suffix in question.relevant for uri in uris if is_page(uri, suffix)),
        )
        for question in questions
    ]


def related_passages(
    transaction: Transaction, snapshot: Snapshot
) -> dict[str, tuple[RelatedPassage, ...]]:
    """Return the nearest passages of other documents, by document id.

    Compares the means of the documents' chunk vectors, minus the mean of all chunks. The passage is
    the other document's chunk that is nearest to that difference.
    """
    # a snapshot may have documents without chunks
    documents, owners = np.unique(snapshot.owners, return_inverse=True)
    if len(documents) < 2:
        return {}
    rows = np.argsort(owners, kind="stable")
    starts = np.searchsorted(owners[rows], np.arange(len(documents) + 1)).tolist()
    vectors = np.asarray(snapshot.vectors, np.float32)[rows]
    sums = np.add.reduceat(vectors, starts[:-1], axis=0)
    means = sums / np.diff(starts)[:, None].astype(np.float32) - vectors.mean(axis=0)
    means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9)
    chosen: list[tuple[int, int, int]] = []
    for number, other in _nearest(means):
        # subtracting the mean of all here would lower all scores equally
        best = int((vectors[starts[other] : starts[other + 1]] @ means[number]).argmax())
        row = int(rows[starts[other] + best])
        chosen.append((int(documents[number]), int(documents[other]), row))
    return _passages(transaction, snapshot, chosen)


def _nearest(means: NDArray[np.float32]) -> Iterator[tuple[int, int]]:
    limit, count = min(NEIGHBOURS, len(means) - 1), len(means)
    descending = np.arange(count, 0, -1, dtype=np.int32)
    for first in range(0, count, _ROWS):
        # in thousandths, so that rounding errors do not change the order of ties; the first
        # documents win ties
        cosines = means[first : first + _ROWS] @ means.T
        cosines *= 1000
        near = np.rint(cosines, out=cosines).astype(np.int32)
        near[np.arange(len(near)), np.arange(first, first + len(near))] = -2_000
        near *= np.int32(count)
        near += descending
        near.partition(count - limit, axis=1)
        best = np.sort(near[:, count - limit :], axis=1)[:, ::-1] - 1
        thousandths, others = np.divmod(best, count)
        for row, place in np.argwhere(thousandths >= 1000 * NEAR_ENOUGH).tolist():
            yield first + row, int(count - 1 - others[row, place])


def _passages(
    transaction: Transaction, snapshot: Snapshot, chosen: list[tuple[int, int, int]]
) -> dict[str, tuple[RelatedPassage, ...]]:
    seqs = sorted({int(snapshot.seqs[row]) for _, _, row in chosen})
    places = reading.places_of(transaction, seqs)
    uris = reading.uris_of(transaction, {snapshot.document_ids[other] for _, other, _ in chosen})
    headings = list(snapshot.heading_texts)
    by_document: dict[str, list[RelatedPassage]] = {}
    for number, other, row in chosen:
        anchor, passage = places.get(int(snapshot.seqs[row]), ("", ""))
        related = RelatedPassage(
            uri=uris[snapshot.document_ids[other]],
            anchor=anchor,
            heading=headings[int(snapshot.headings[row])],
            passage=passage,
        )
        by_document.setdefault(snapshot.document_ids[number], []).append(related)
    return {document: tuple(passages) for document, passages in by_document.items()}


def _ratings(totals_by_target: ratings.Totals, snapshot: Snapshot) -> dict[str, tuple[float, int]]:
    owners = dict(zip(snapshot.seqs.tolist(), snapshot.owners.tolist(), strict=True))
    of_chunks: dict[str, list[RatingTotal]] = {}
    for seq, total in totals_by_target.chunks.items():
        if seq in owners:
            of_chunks.setdefault(snapshot.document_ids[owners[seq]], []).append(total)
    averages = {}
    for document, totals in of_chunks.items():
        people = sum(total.raters for total in totals)
        average = sum(total.average * total.raters for total in totals) / people
        averages[document] = (average, max(total.raters for total in totals))
    return averages | {
        document: (total.average, total.raters)
        for document, total in totals_by_target.documents.items()
    }


def _source(transaction: Transaction, row: runs.SourceRow) -> SourceFacts:
    ended = runs.finished_runs(transaction, row.id)
    # a refresh measures changed pages only, so take the run that measured most
    measured: Mapping[str, tuple[int, int]] = max(
        (report.get("fidelity") or {} for _, report in ended),
        key=lambda fidelity: fidelity.get("pages", (0, 0))[1],
        default={},
    )
    return SourceFacts(
        type=row.type,
        place=row.place,
        day=ended[0][0].date().isoformat() if ended else "",
        fidelity={
            kind: (int(retained), int(total)) for kind, (retained, total) in measured.items()
        },
    )
