"""Time of a context beside its parts, search and graph, which run at once.

The goal is at most 1.3 times the slower part. Search, graph and context answer in turn, so that
other work on the machine affects all three alike. Each gets half of the questions first and then
all of them, because a repeated question is answered faster.

Run from the project's root: ``python benchmarks/context.py [SET ...]``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from _corpora import bench_folder, corpora, report, table

from kbkit.knowledge_base import KnowledgeBase, handle_of
from kbkit.retrieval.context import SOUGHT
from kbkit.workspace import Workspace
from kbkit.workspace.searches import EntityFacts

SETS = ("apache", "policy")
WARM = 10
"""Number of questions to warm up with."""
PASSAGES, ENTITIES = 3, 5


def seconds(ask: Callable[[str], Any], query: str) -> float:
    start = time.perf_counter()
    ask(query)
    return time.perf_counter() - start


def measured(workspace: Workspace, kb: KnowledgeBase, queries: list[str]) -> list[str]:
    """Return a row of the table."""
    handle = handle_of(kb)
    facts = EntityFacts(handle.stores.database, {kb.name: handle.retriever}, ENTITIES)
    ways: tuple[Callable[[str], Any], ...] = (
        lambda query: kb.search(query, limit=SOUGHT * PASSAGES),
        facts.find,
        lambda query: workspace.context(query, kbs=[kb.name], limit=PASSAGES),
    )
    for query in queries[:WARM]:
        for way in ways:
            way(query)
    # what is asked first leaves the others less to do: so search and context have questions of
    # their own, and then all are asked again
    first: tuple[list[float], ...] = ([], [], [])
    for number, query in enumerate(queries[WARM:]):
        for column in (1, 2 * (number % 2)):
            first[column].append(seconds(ways[column], query))
    for query in queries[WARM:]:
        for way in ways:
            way(query)
    again = [[seconds(ask, query) for query in queries[WARM:]] for ask in ways]
    search, graph, whole = map(median, first)
    ratios = [
        middle[2] / max(middle[:2]) for middle in ([search, graph, whole], [*map(median, again)])
    ]
    named = sum(bool(facts.find(query).facts) for query in queries) / len(queries)
    middle = [f"{each * 1000:.1f}" for each in (search, graph, whole)]
    return [
        kb.name,
        str(len(queries) - WARM),
        f"{named:.0%}",
        *middle,
        *(f"{ratio:.2f}" for ratio in ratios),
    ]


def main() -> None:
    rows = []
    with bench_folder() as folder:
        for corpus in corpora(folder, names=sys.argv[1:] or SETS):
            corpus.kb.improve()
            with Workspace(folder) as workspace:
                queries = [question.text for question in corpus.questions]
                rows.append(measured(workspace, workspace[corpus.name], queries))
    head = [
        "set",
        "questions",
        "that name entities",
        "search, ms",
        "graph, ms",
        "context, ms",
        "context by the slower finder",
        "the same, asked again",
    ]
    report("context", ["Medians, 3 passages and 5 entities at most:", "", *table(head, rows)])


if __name__ == "__main__":
    main()
