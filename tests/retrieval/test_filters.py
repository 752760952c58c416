"""Filters let through what they say, on both retrievers, however odd the URIs are."""

import json
import os
import random
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

import pytest

import kbkit
from kbkit.errors import NotFoundError
from kbkit.models import Filters, Hits, Mode
from kbkit.recipes import JsonlSource, RetrievalSpec
from kbkit.stores.catalog import corpus
from kbkit.stores.catalog.reading import heading_text
from kbkit.stores.catalog.schema import chunks as chunk_rows
from kbkit.stores.catalog.schema import documents

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
PLAIN = RetrievalSpec(
    document_weight=0,
    title_weight=0,
    heading_weight=0,
    rating_weight=0,
    summary_weight=0,
    page_weight=0,
    per_document=10_000,
    duplicates=1,
)
URIS = [
    "https://docs.org/",
    "https://docs.org/library/os.html",
    "https://docs.org/library/a/b.pdf",
    "https://docs.org/library/os.html?page=2#top",
    "https://docs.org/Library/os.html",
    "https://docs.organic/x",
    "file:///home/a%20b/100%.md",
    "file:///home/a_b/100_.md",
    "text:green tea",
    "text:[draft] tea*",
    "text:what is tea?",
    "doc:[a-z]!x",
    "doc:b!x",
    "doc:ünï/cödé",
    "http://[broken",
    "%",
    "_",
    "text:new\nline",
]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """Two knowledge bases of documents that differ in all that filters ask for."""
    folder = tmp_path_factory.mktemp("filters")
    with kbkit.open(folder / "kb") as opened:
        for seed, name in enumerate(("one", "two")):
            rng = random.Random(seed)
            lines = [
                {
                    "uri": uri if name == "one" else f"two/{uri}",
                    "title": f"Page {n}",
                    "text": f"# A\n\nGreen tea number {n}. \n\n# B\n\nBlack tea and {'x' * n}.",
                    "document_type": rng.choice(["faq", "manual", "other"]),
                    "tags": rng.sample(["api", "draft", "v1", "%"], rng.randint(0, 4)),
                }
                for n, uri in enumerate(URIS)
            ]
            path = folder / f"{name}.jsonl"
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))
            kb = opened.create(name)
            kb.ingest(JsonlSource(path=str(path)))
            with opened._stores.database.write() as connection:
                for n, document in enumerate(list(kb.documents)):
                    connection.execute(
                        documents.update()
                        .where(documents.c.id == document.id)
                        .values(
                            fetched_at=NOON + timedelta(microseconds=n - 9),
                            state=["current", "stale"][n % 3 == 0],
                        )
                    )
                rows = chunk_rows.c
                connection.execute(
                    chunk_rows.update()
                    .where(rows.kb_id == kb.id, rows.seq % 3 != 0)
                    .values(page=rows.position + 1)
                )
            chunks = list(kb.chunks)
            for chunk in rng.sample(chunks, len(chunks) // 2):
                target = chunk.id if rng.random() < 0.5 else chunk.document_id
                kb.rate(target, rng.randint(1, 5), rater=rng.choice(["ann", "bob"]))
        yield opened


def fits(pattern, path):
    """A glob without braces, name by name."""
    row = pattern.strip("/").split("/") if pattern.strip("/") else []
    if row and "/" not in pattern.rstrip("/"):
        row = ["**", *row]
    if pattern.endswith("/"):
        row.append("**")
    return fits_names(row, [name for name in path.split("/") if name])


def fits_names(row, names):
    if not row:
        return not names
    if row[0] == "**":
        return fits_names(row[1:], names) or (bool(names) and fits_names(row, names[1:]))
    return bool(names) and fnmatchcase(names[0], row[0]) and fits_names(row[1:], names[1:])


def path_of(uri):
    try:
        return urlsplit(uri).path.lstrip("/")
    except ValueError:
        return uri


def passing(kb, conditions):
    """Ids of the chunks that may be found, written down as it is told."""
    filters = Filters.of(conditions)
    last = {}
    for rating in kb.ratings:
        last.setdefault(rating.target.id, {})[rating.rater] = rating.score
    average = {target: sum(s.values()) / len(s) for target, s in last.items()}
    there = {d.id: d for d in kb.documents}
    found = set()
    for chunk in kb.chunks:
        document = there[chunk.document_id]
        rating = average.get(chunk.id, average.get(document.id))
        if (
            (not filters.document_type or document.document_type in filters.document_type)
            and all(tag in document.tags for tag in filters.tags)
            and document.uri.startswith(filters.source)
            and (not filters.path or fits(filters.path, path_of(document.uri)))
            and (filters.after is None or document.fetched_at >= filters.after)
            and (filters.before is None or document.fetched_at < filters.before)
            and (not filters.state or document.state in filters.state)
            and filters.heading.casefold()
            in heading_text(document.title, chunk.heading_path).casefold()
            and (not filters.page or chunk.page in filters.page)
            and (
                filters.min_rating is None or (rating is not None and rating >= filters.min_rating)
            )
        ):
            found.add(chunk.id)
    return found


SINGLE = [
    {"document_type": "faq"},
    {"document_type": ["faq", "manual"]},
    {"document_type": "policy"},
    {"tags": "api"},
    {"tags": ["api", "draft"]},
    {"tags": "%"},
    {"tags": "ap"},
    {"tags": "API"},
    *({"source": uri[: len(uri) * 2 // 3]} for uri in URIS),
    {"source": "https://docs.org"},
    {"source": "%"},
    {"source": "_"},
    {"source": "*"},
    {"source": "text:["},
    {"source": "TEXT:"},
    {"source": "x\0"},
    {"source": "file:///home/a_b"},
    {"source": "'; DROP TABLE chunks; --"},
    {"path": "*"},
    {"path": "library/*"},
    {"path": "/library/**"},
    {"path": "library/"},
    {"path": "*.html"},
    {"path": "library/os.htm?"},
    {"path": "[a-z]*"},
    {"path": "[a-z]!x"},
    {"path": "[[]*"},
    {"path": "*%*"},
    {"path": "*_*"},
    {"path": "?"},
    {"path": "/"},
    {"path": "*tea"},
    {"path": "ünï/*"},
    {"path": "**"},
    {"path": "*\n*"},
    {"path": "[draft] tea*"},
    {"path": "*a" * 40 + "b"},
    {"path": "b!x"},
    {"path": "(.*)"},
    {"path": "library"},
    {"after": NOON},
    {"before": NOON},
    {"after": NOON + timedelta(microseconds=1)},
    {"after": NOON, "before": NOON},
    {"after": "2026-02-01"},
    {"before": "2026-02-01"},
    {"after": NOON - timedelta(microseconds=2), "before": NOON + timedelta(microseconds=2)},
    {"after": "0001-01-01", "before": "9999-12-31"},
    {"heading": "A"},
    {"heading": "b"},
    {"heading": "page"},
    {"heading": "%"},
    {"page": 1},
    {"page": [1, 2]},
    {"page": 99},
    *({"min_rating": least} for least in (1, 2, 3.5, 4, 5)),
    {"state": "stale"},
    {"state": ["stale", "current"]},
    {"state": "gone"},
]


def combined(seed):
    rng = random.Random(seed)
    together = {}
    for conditions in rng.sample(SINGLE, 3):
        together |= conditions
    return together


ALL = SINGLE + [combined(seed) for seed in range(40)]


@pytest.mark.parametrize("conditions", ALL, ids=lambda c: ascii(c)[:60])
def test_what_passes_is_found_and_nothing_else(workspace, conditions):
    kb = workspace["one"]
    allowed = passing(kb, conditions)
    whole = {mode: kb.search("green black tea", limit=10**6, mode=mode) for mode in Mode}
    for mode, unfiltered in whole.items():
        found = kb.search("green black tea", limit=10**6, mode=mode, filters=conditions)
        ids = {hit.chunk.id for hit in unfiltered}
        assert {hit.chunk.id for hit in found} == allowed & ids, mode
        assert len(found) == len(allowed & ids)


@pytest.mark.parametrize("mode", [Mode.DENSE, Mode.LEXICAL])
@pytest.mark.parametrize("conditions", ALL[::3], ids=lambda c: ascii(c)[:60])
def test_what_passes_keeps_its_order(workspace, conditions, mode):
    kb = workspace["one"]
    allowed = passing(kb, conditions)
    whole = kb.search("green black tea", limit=10**6, mode=mode, retrieval=PLAIN)
    found = kb.search(
        "green black tea", limit=10**6, mode=mode, filters=conditions, retrieval=PLAIN
    )
    expected = [hit for hit in whole if hit.chunk.id in allowed]
    assert [hit.chunk.id for hit in found] == [hit.chunk.id for hit in expected]
    for one, other in zip(found, expected, strict=True):
        assert (one.parts.cosine, one.parts.bm25) == (other.parts.cosine, other.parts.bm25)


@pytest.mark.parametrize("conditions", ALL[::5], ids=lambda c: ascii(c)[:60])
def test_several_knowledge_bases_are_filtered_alike(workspace, conditions):
    allowed = passing(workspace["one"], conditions) | passing(workspace["two"], conditions)
    found = workspace.search("green black tea", limit=10**6, filters=conditions)
    whole = workspace.search("green black tea", limit=10**6)
    assert {h.chunk.id for h in found} == allowed & {h.chunk.id for h in whole}


def test_few_candidates_are_the_best_that_pass(workspace):
    """Whatever does not pass takes no places among the candidates."""
    few = RetrievalSpec(candidates=1)
    for mode in Mode:
        hits = workspace["one"].search(
            "tea", limit=3, mode=mode, filters={"tags": "api"}, retrieval=few
        )
        assert len(hits) == 3
        assert all("api" in hit.tags for hit in hits)


def test_filters_see_what_is_changed(tmp_path):
    """Tags, ratings and documents of now, without and with a snapshot of before."""
    with kbkit.open(tmp_path) as workspace:
        kb = workspace.create("drinks")

        def found(**conditions):
            return sorted(hit.title for hit in kb.search("tea", filters=conditions))

        assert found(tags="new") == []
        kb.add("green", "Green tea.", tags=["old"])
        kb.add("black", "Black tea.", tags=["new"])
        assert (found(tags="old"), found(tags="new")) == (["green"], ["black"])
        kb.documents.update("text:green", tags=["new"])
        assert (found(tags="old"), found(tags="new")) == ([], ["black", "green"])
        kb.rate(kb.search("green")[0].chunk.id, 5)
        assert found(min_rating=4) == ["green"]
        kb.documents.delete("text:green")
        assert found(tags="new") == ["black"]
        assert found(min_rating=4) == []


@pytest.mark.parametrize("conditions", [{"heading": "b"}, {"page": 2}])
def test_chunks_are_filtered_not_only_documents(workspace, conditions):
    kb = workspace["one"]
    let_through = passing(kb, conditions)
    owners = {chunk.document_id for chunk in kb.chunks if chunk.id in let_through}
    others = [c for c in kb.chunks if c.document_id in owners and c.id not in let_through]
    assert let_through
    assert others, "of the same documents"
    for found in (
        kb.search("tea", limit=10**6, filters=conditions),
        workspace.search("tea", kbs=["one"], limit=10**6, filters=conditions),
    ):
        assert {hit.chunk.id for hit in found} == let_through
    nodes = kb.as_retriever(limit=100, filters=conditions).retrieve("tea")
    assert {node.node.node_id for node in nodes} == let_through


def test_a_version_is_found_and_one_that_is_not_there_is_an_error(tmp_path):
    with kbkit.open(tmp_path) as workspace:
        kb, other = workspace.create("guide"), workspace.create("other")
        kb.add("new", "Tea, new.", source="https://docs.example/en/5.10/tea.html")
        kb.add("old", "Tea, old.", source="https://docs.example/en/5.9/tea.html")
        kb.add("dated", "Tea, dated.", source="https://docs.example/2026/05/tea.html")
        other.add("package", "Tea, packaged.", source="tea", metadata={"version": "5.10"})

        def found(where, version):
            hits = where.search("tea", filters={"version": version})
            return {hit.title: hit.version for hit in hits}

        assert found(kb, "5.9") == {"old": "5.9"}
        assert found(workspace, "5.10") == {"new": "5.10", "package": "5.10"}
        for where in (kb, workspace):
            with pytest.raises(NotFoundError, match=r"'5'; there are: 5\.9, 5\.10$"):
                found(where, "5")
        with pytest.raises(NotFoundError, match=r"5\.10"):
            workspace.context("tea", filters={"version": "5.11"})
        hits = {hit.title: hit.version for hit in kb.search("tea")}
        assert hits == {"new": "5.10", "old": "5.9", "dated": ""}
        assert Hits.from_dict(kb.search("old tea").to_dict())[0].version


def test_masks_are_made_once_and_follow_every_change(tmp_path, monkeypatch):
    made = []
    look = corpus.matching_documents

    def matching(transaction, kb_id, filters):
        made.append(filters)
        return look(transaction, kb_id, filters)

    monkeypatch.setattr(corpus, "matching_documents", matching)
    by_path, rated = {"path": "a/**"}, {"path": "a/**", "min_rating": 4}

    def found(filters):
        return {hit.title for hit in kb.search("green tea", filters=filters)}

    with kbkit.open(tmp_path / "kb") as opened:
        kb = opened.create("drinks")
        one = kb.add("one", "Green tea one.", source="https://tea.example/a/one").id
        kb.add("two", "Green tea two.", source="https://tea.example/b/two")
        assert [found(by_path) for _ in range(3)] == [{"one"}] * 3
        assert len(made) == 1
        assert found(rated) == set()
        kb.rate(one, 5, rater="ann")
        assert found(rated) == {"one"}
        assert [each.path for each in made].count("a/**") == 1  # what people say is looked at apart
        kb.rate(one, 1, rater="ann")
        assert found(rated) == set()
        kb.add("three", "Green tea three.", source="https://tea.example/a/three")
        assert found(by_path) == {"one", "three"}
        kb.documents.delete(one)
        assert found(by_path) == {"three"}
        assert len([each for each in made if each.path]) == 3


SCANS = """
import sys, threading
from pathlib import Path
import kbkit
kb = kbkit.open(sys.argv[1])["drinks"]
for turn in range(3):
    kb.search(f"green tea {turn}")
def ticks():
    own = {str(thread.native_id) for thread in threading.enumerate()}
    return sum(
        sum(map(int, (task / "stat").read_text().rpartition(")")[2].split()[11:13]))
        for task in Path("/proc/self/task").iterdir() if task.name not in own
    )
before = ticks()
for turn in range(40):
    assert kb.search(f"green tea number {turn}", filters={"path": "**"} if turn % 2 else None)
print(ticks() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads what threads took from /proc")
def test_a_search_hands_nothing_to_other_threads(tmp_path):
    with kbkit.open(tmp_path / "kb") as opened:
        kb = opened.create("drinks")
        for number in range(60):
            kb.add(f"tea {number}", f"Green tea number {number}. " * 9)
    kept = {name: value for name, value in os.environ.items() if not name.endswith("NUM_THREADS")}
    ran = subprocess.run(
        [sys.executable, "-c", SCANS, str(tmp_path / "kb")],
        capture_output=True,
        text=True,
        check=True,
        env={**kept, "KBKIT_IMPROVE": "off"},
    )
    assert int(ran.stdout) <= 1  # hundredths of a second
