"""Whether settings learned on half of the questions are worse on the other half.

SciFact and Cranfield of ``../shared/eval``, by page (golden questions) and by chunk (judgements:
every chunk of a relevant abstract has its grade). ``kb.feedback.tune()`` learns from several
settings on one half of the queries, divided at random; the settings before and after answer the
other half.

Run from the project's root: ``python benchmarks/tuning.py [CORPUS ...]``. Takes about six minutes
on two idle cores.
"""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from _corpora import EVAL, bench_folder, corpora, report, table

import kbkit
from kbkit.feedback.judgements import Judgements
from kbkit.recipes import Question, RetrievalSpec

SPLITS = 3
LEGS_ONLY = RetrievalSpec(document_weight=0.0, title_weight=0.0, heading_weight=0.0)
STARTS = {
    "the defaults": RetrievalSpec(),
    "vectors only": LEGS_ONLY.model_copy(update={"dense_weight": 1.0}),
    "words only": LEGS_ONLY.model_copy(update={"dense_weight": 0.0}),
    "titles too heavy": RetrievalSpec(dense_weight=0.6, title_weight=1.0, document_weight=0.0),
}

GroundTruth = Sequence[Question] | Judgements
Grades = Mapping[str, Mapping[str, int]]
"""Grades of relevant abstracts, by query."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """nDCG@10 of the other half before and after tuning on one half."""

    kept: bool
    before: float
    after: float
    seconds: float


def grades(name: str) -> Grades:
    lines = (EVAL / name / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    texts = {one["id"]: one["text"] for one in map(json.loads, lines)}
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for line in (EVAL / name / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, document, grade = line.split("\t")
        if int(grade) > 0:
            found[texts[query]][document] = int(grade)
    return found


def by_page(kb: kbkit.KnowledgeBase, known: Grades) -> GroundTruth:
    return [
        Question(question=query, relevant=tuple(sorted(pages, key=lambda page: -pages[page])))
        for query, pages in known.items()
    ]


def by_chunk(kb: kbkit.KnowledgeBase, known: Grades) -> GroundTruth:
    uris = {document.id: document.uri for document in kb.documents}
    chunks: dict[str, list[str]] = defaultdict(list)
    for chunk in kb.chunks:
        chunks[uris[chunk.document_id]].append(chunk.id)
    return Judgements.of(
        {
            query: {chunk: grade for page, grade in pages.items() for chunk in chunks[page]}
            for query, pages in known.items()
        }
    )


def halves(
    kb: kbkit.KnowledgeBase,
    asked: Callable[[kbkit.KnowledgeBase, Grades], GroundTruth],
    known: Grades,
    seed: int,
) -> Outcome:
    """Learn on one half, measure on the other."""
    queries = list(known)
    order = np.random.default_rng(seed).permutation(len(queries)).tolist()
    half = {queries[i] for i in order[: len(order) // 2]}
    start = time.process_time()
    learned = kb.feedback.tune(
        asked(kb, {query: known[query] for query in queries if query in half})
    )
    seconds = time.process_time() - start
    other = asked(kb, {query: known[query] for query in queries if query not in half})
    before = kb.feedback.evaluate(other).ndcg
    after = kb.feedback.evaluate(other, retrieval=learned.settings).ndcg if learned.wins else before
    return Outcome(learned.wins, before, after, seconds)


def row(label: Sequence[str], outcomes: Sequence[Outcome]) -> list[str]:
    before, after = (
        np.mean([getattr(one, name) for one in outcomes]) for name in ("before", "after")
    )
    worst = min(one.after - one.before for one in outcomes)
    kept = sum(one.kept for one in outcomes)
    seconds = np.median([one.seconds for one in outcomes])
    figures = [f"{kept} of {len(outcomes)}", f"{100 * before:.1f}", f"{100 * after:.1f}"]
    return [*label, *figures, f"{100 * worst:+.1f}", f"{seconds:.1f}"]


def main(names: Sequence[str]) -> None:
    rows = []
    with bench_folder() as folder:
        for corpus in corpora(folder, names=names or ("cranfield", "scifact")):
            known, kb = grades(corpus.name), corpus.kb
            for unit, asked in (("page", by_page), ("chunk", by_chunk)):
                for start, settings in STARTS.items():
                    kb.configure(kb.spec.model_copy(update={"retrieval": settings}))
                    outcomes = [halves(kb, asked, known, seed) for seed in range(SPLITS)]
                    rows.append(row([corpus.name, unit, start], outcomes))
                    print(*rows[-1], flush=True)
    head = [
        "collection",
        "by",
        "settings before",
        "kept",
        "other half before, nDCG@10",
        "after",
        "worst change",
        "CPU seconds",
    ]
    if rows:
        report("tuning", ["# Settings learned on half of the queries", "", *table(head, rows)])


if __name__ == "__main__":
    main(sys.argv[1:])
