"""PostgreSQL ranks as SQLite does, with the same ids and scores."""

from collections import Counter, defaultdict
from pathlib import Path

import pytest

import kbkit
from kbkit.models import Mode
from kbkit.recipes import golden_questions, load_recipe
from tests.stores.workspaces import opened

pytestmark = pytest.mark.local

ROOT = Path(__file__).parents[2]
FILTERS = {"path": "*a*"}, {"heading": "e"}, {"tags": ["odd"]}, {"min_rating": 3}


def teach(kb, questions):
    """Rate hits, so that questions are learned, and tag documents."""
    for number, question in enumerate(questions):
        hits = kb.search(question, limit=3, mode="lexical")
        for hit, score in zip(hits, (5, 2), strict=False):
            kb.rate(hit.chunk.id, score, query=question, rater=f"rater{number % 3}")
        if hits:
            kb.documents.update(hits[0].uri, tags=["odd"])


def searches(sets):
    """Searches: kind, names of knowledge bases, question, arguments."""
    for name, questions in sets.items():
        for number, question in enumerate(questions):
            yield "hybrid", [name], question, {}
            yield "words", [name], question, {"mode": Mode.LEXICAL}
            if number % 5 == 0:
                filters = FILTERS[number // 5 % len(FILTERS)]
                yield "filtered", [name], question, {"filters": filters}
                yield "several", list(sets), question, {}


def ranking(workspace, kbs, question, arguments):
    hits = workspace.search(question, kbs=kbs, limit=10, **arguments)
    return [(hit.kb, hit.uri, hit.chunk.id, hit.score) for hit in hits]


def compared(one, two, sets):
    """Numbers of equal (``True``) and different rankings by kind."""
    counts = defaultdict(Counter)
    for kind, *question in searches(sets):
        hits = ranking(one, *question)
        counts[kind][hits == ranking(two, *question)] += bool(hits)
    return counts


@pytest.mark.soak
def test_guides_rank_equally(tmp_path, postgres, monkeypatch):
    monkeypatch.setenv("KBKIT_IMPROVE", "off")
    folder = tmp_path / "kb"
    names = "quickstart", "handbook"
    sets = {
        name: [
            each.question for each in golden_questions(load_recipe(ROOT / f"recipes/{name}.yaml"))
        ]
        for name in names
    }
    with opened(folder) as one:
        for name, path in zip(names, ("site/se*.md", "recipes/handbook/*.md"), strict=True):
            kb = one.create(name)
            kb.ingest(kbkit.FilesSource(path=str(ROOT / path)))
            teach(kb, sets[name][::3])
    url = postgres.empty()
    kbkit.migrate(folder, to=url)
    with opened(folder) as one, opened(tmp_path / "two", url) as two:
        counts = compared(one, two, sets)
        assert counts["hybrid"] == {True: sum(map(len, sets.values()))}
    assert all(count[True] and not count[False] for count in counts.values()), counts
