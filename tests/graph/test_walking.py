"""Walks that retrieval may use: what shares rare subjects, and what lies near entities."""

import pytest

from kbkit.graph.walking import chunk_scores
from kbkit.knowledge_base import handle_of
from kbkit.models import Target, TargetKind
from kbkit.stores.catalog.related import related
from kbkit.stores.catalog.relations import Edge


def entity(name):
    return Target(TargetKind.ENTITY, name)


def test_chunks_that_share_rare_subjects_are_related(workspace, kb):
    for number in range(30):
        kb.add(f"d{number}", f"# Page {number}\n\nAll set `pool.size` here ({number}).",
               source=f"http://x.org/{number}")  # fmt: skip
    kb.add("a", "# A\n\nSet `pool.size` and `pool.timeout`.", source="http://x.org/a")
    kb.add("b", "# B\n\n`pool.timeout` is in seconds.", source="http://x.org/b")
    by_text = {chunk.text: chunk.id for chunk in kb.chunks}
    a, b = (
        next(by_text[text] for text in by_text if text.startswith(head)) for head in ("# A", "# B")
    )
    handle = handle_of(kb)
    with handle.stores.database.read() as transaction:
        assert [known for known, _ in related(transaction, handle.id, a, 5)] == [b]
        assert related(transaction, handle.id, "none", 5) == []


def test_chunks_near_entities_score_by_weight_and_distance():
    edges = [
        Edge(1, entity("a"), "uses", entity("b"), 0.9),
        Edge(2, entity("b"), "uses", entity("c"), 0.9),
        Edge(3, entity("c"), "uses", entity("a"), 0.1),
        Edge(4, entity("x"), "uses", entity("y"), 0.9),
    ]
    evidence = {1: [(10, 1.0)], 2: [(20, 1.0)], 3: [(30, 1.0)], 4: [(40, 1.0)]}
    scores = chunk_scores(edges, {entity("a"): 1.0}, evidence)
    assert max(scores, key=scores.get) == 10
    assert scores[10] == pytest.approx(1.0)
    assert scores[10] > scores[20] > scores[30] > 0
    assert 40 not in scores
    assert chunk_scores(edges, {entity("nothing"): 1.0}, evidence) == {}
    assert chunk_scores([], {entity("a"): 1.0}, evidence) == {}
