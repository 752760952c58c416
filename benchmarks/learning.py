"""What search learns from ratings, for similar questions, other words and other questions.

For each question of ``data/paraphrases.tsv``, a passage of the right page is rated 5: the first
that search finds, or the page's first. Before and after, the questions, their paraphrases and the
set's own questions are asked. nDCG@10 by page and Hit@1.

Run from the project's root: ``python benchmarks/learning.py [MANUAL ...]``. Ingests each manual.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from _corpora import Corpus, Question, about_pages, bench_folder, corpora, path_of, report, table
from quality import places

import kbkit
from kbkit.recipes import RetrievalSpec

FILE = Path(__file__).parent / "data" / "paraphrases.tsv"
KINDS = ("rated", "asked alike", "in other words")
MANUALS = ("python", "sqlite", "apache", "django")


def rows_of(corpus: str) -> list[list[str]]:
    """Read page, question and paraphrases of each row."""
    lines = FILE.read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    return [row for name, *row in rows if name == corpus]


def rate(kb: kbkit.KnowledgeBase, page: str, question: str) -> None:
    """Rate a passage of a page 5 for a question."""
    hits = kb.search(question, limit=100, retrieval=RetrievalSpec(learned_weight=0))
    found = [hit.chunk.id for hit in hits if path_of(hit.uri).endswith(page)]
    if not found:
        document = next(each for each in kb.documents if path_of(each.uri).endswith(page))
        found = [chunk.id for chunk in kb.chunks if chunk.document_id == document.id]
    kb.rate(found[0], 5, query=question)


def figures(kb: kbkit.KnowledgeBase, questions: Sequence[Question]) -> str:
    """Return nDCG@10 and Hit@1 of some questions."""
    found = [
        question.figures(places(kb.search(question.text, limit=100))) for question in questions
    ]
    return f"{np.mean([f['ndcg'] for f in found]):.3f} ({np.mean([f['hit'] for f in found]):.2f})"


def measured(corpus: Corpus) -> Iterator[list[str]]:
    """Return a row before the ratings and one after them."""
    rows = rows_of(corpus.name)
    asked: Mapping[str, Sequence[Question]] = {
        kind: [about_pages(row[1 + place], [row[0]], path_of) for row in rows]
        for place, kind in enumerate(KINDS)
    }
    for when in ("before", "after"):
        if when == "after":
            for page, question, *_ in rows:
                rate(corpus.kb, page, question)
        sets = [*asked.values(), corpus.questions]
        yield [corpus.name, when, *(figures(corpus.kb, questions) for questions in sets)]


def main(names: Sequence[str]) -> None:
    with bench_folder() as folder:
        rows = [
            row for corpus in corpora(folder, names=names or MANUALS) for row in measured(corpus)
        ]
    head = ["manual", "ratings", *KINDS, "questions of others"]
    if rows:
        report("learning", ["# What search learns from ratings", "", *table(head, rows)])


if __name__ == "__main__":
    main(sys.argv[1:])
