"""Filters of search, on both retrievers, with odd URIs."""

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
from kbkit.models import DocumentType, Filters, Hits, Mode, SourceDocument
from kbkit.recipes import RetrievalSpec
from kbkit.stores.catalog import reading
from kbkit.stores.catalog.reading import heading_text
from kbkit.stores.catalog.schema import chunks as chunk_rows
from kbkit.stores.catalog.schema import documents

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
WEIGHTS = ("document", "title", "heading", "rating", "summary", "page")
NO_WEIGHTS = {f"{name}_weight": 0 for name in WEIGHTS}
PLAIN = RetrievalSpec(**NO_WEIGHTS, per_document=10_000, duplicates=1)
URIS = [
    *("https://docs.org/", "https://docs.org/library/os.html", "https://docs.org/library/a/b.pdf"),
    *("https://docs.org/library/os.html?page=2#top", "https://docs.org/Library/os.html"),
    *("https://docs.organic/x", "file:///home/a%20b/100%.md", "file:///home/a_b/100_.md"),
    *("text:green tea", "text:[draft] tea*", "text:what is tea?", "doc:[a-z]!x", "doc:b!x"),
    *("doc:ünï/cödé", "http://[broken", "%", "_", "text:new\nline"),
]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """Two knowledge bases whose documents differ in all attributes of filters."""
    with kbkit.open(tmp_path_factory.mktemp("filters")) as opened:
        for seed, name in enumerate(("one", "two")):
            rng = random.Random(seed)
            kb = opened.create(name)
            kb.ingest(
                SourceDocument(
                    uri if name == "one" else f"two/{uri}",
                    f"Page {n}",
                    f"# A\n\nGreen tea number {n}. \n\n# B\n\nBlack tea and {'x' * n}.",
                    DocumentType(rng.choice(["faq", "manual", "other"])),
                    tuple(rng.sample(["api", "draft", "v1", "%"], rng.randint(0, 4))),
                )
                for n, uri in enumerate(URIS)
            )
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


def matches_glob(pattern, path):
    """A glob without braces, part by part."""
    patterns = pattern.strip("/").split("/") if pattern.strip("/") else []
    if patterns and "/" not in pattern.rstrip("/"):
        patterns = ["**", *patterns]
    if pattern.endswith("/"):
        patterns.append("**")
    return matches_parts(patterns, [name for name in path.split("/") if name])


def matches_parts(patterns, names):
    if not patterns:
        return not names
    first, *rest = patterns
    if first == "**":
        return matches_parts(rest, names) or (bool(names) and matches_parts(patterns, names[1:]))
    return bool(names) and fnmatchcase(names[0], first) and matches_parts(rest, names[1:])


def path_of(uri):
    try:
        return urlsplit(uri).path.lstrip("/")
    except ValueError:
        return uri


def passing(kb, conditions):
    """Ids of the chunks that pass, computed naively."""
    filters = Filters.of(conditions)
    last = {}
    for rating in kb.ratings:
        last.setdefault(rating.target.id, {})[rating.rater] = rating.score
    average = {target: sum(s.values()) / len(s) for target, s in last.items()}
    by_id = {d.id: d for d in kb.documents}
    ids = set()
    for chunk in kb.chunks:
        document = by_id[chunk.document_id]
        rating = average.get(chunk.id, average.get(document.id))
        if (
            (not filters.document_type or document.document_type in filters.document_type)
            and all(tag in document.tags for tag in filters.tags)
            and document.uri.startswith(filters.source)
            and (not filters.path or matches_glob(filters.path, path_of(document.uri)))
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
            ids.add(chunk.id)
    return ids


SINGLE = [
    *({"document_type": value} for value in ("faq", ["faq", "manual"], "policy")),
    *({"tags": value} for value in ("api", ["api", "draft"], "%", "ap", "API")),
    *({"source": uri[: len(uri) * 2 // 3]} for uri in URIS),
    *({"source": value} for value in ("https://docs.org", "%", "_", "*", "text:[", "TEXT:", "x\0")),
    *({"source": value} for value in ("file:///home/a_b", "'; DROP TABLE chunks; --")),
    *({"path": value} for value in ("*", "library/*", "/library/**", "library/", "*.html")),
    *({"path": value} for value in ("library/os.htm?", "[a-z]*", "[a-z]!x", "[[]*", "*%*", "*_*")),
    *({"path": value} for value in ("?", "/", "*tea", "ünï/*", "**", "*\n*", "[draft] tea*")),
    *({"path": value} for value in ("*a" * 40 + "b", "b!x", "(.*)", "library")),
    {"after": NOON},
    {"before": NOON},
    {"after": NOON + timedelta(microseconds=1)},
    {"after": NOON, "before": NOON},
    {"after": "2026-02-01"},
    {"before": "2026-02-01"},
    {"after": NOON - timedelta(microseconds=2), "before": NOON + timedelta(microseconds=2)},
    {"after": "0001-01-01", "before": "9999-12-31"},
    *({"heading": value} for value in ("A", "b", "page", "%")),
    *({"page": value} for value in (1, [1, 2], 99)),
    *({"min_rating": value} for value in (1, 2, 3.5, 4, 5)),
    *({"state": value} for value in ("stale", ["stale", "current"], "gone")),
]


def combined(seed):
    rng = random.Random(seed)
    together = {}
    for conditions in rng.sample(SINGLE, 3):
        together |= conditions
    return together


ALL = SINGLE + [combined(seed) for seed in range(40)]


@pytest.mark.parametrize("conditions", ALL, ids=lambda c: ascii(c)[:60])
def test_search_finds_all_passing_chunks_and_no_others(workspace, conditions):
    kb = workspace["one"]
    allowed = passing(kb, conditions)
    whole = {mode: kb.search("green black tea", limit=10**6, mode=mode) for mode in Mode}
    for mode, unfiltered in whole.items():
        hits = kb.search("green black tea", limit=10**6, mode=mode, filters=conditions)
        ids = {hit.chunk.id for hit in unfiltered}
        assert {hit.chunk.id for hit in hits} == allowed & ids, mode
        assert len(hits) == len(allowed & ids)


@pytest.mark.parametrize("mode", [Mode.DENSE, Mode.LEXICAL])
@pytest.mark.parametrize("conditions", ALL[::3], ids=lambda c: ascii(c)[:60])
def test_filters_keep_order_and_scores(workspace, conditions, mode):
    kb = workspace["one"]
    allowed = passing(kb, conditions)
    whole = kb.search("green black tea", limit=10**6, mode=mode, retrieval=PLAIN)
    hits = kb.search("green black tea", limit=10**6, mode=mode, filters=conditions, retrieval=PLAIN)
    expected = [hit for hit in whole if hit.chunk.id in allowed]
    assert [hit.chunk.id for hit in hits] == [hit.chunk.id for hit in expected]
    for one, other in zip(hits, expected, strict=True):
        assert (one.parts.cosine, one.parts.bm25) == (other.parts.cosine, other.parts.bm25)


@pytest.mark.parametrize("conditions", ALL[::5], ids=lambda c: ascii(c)[:60])
def test_filters_hold_over_several_knowledge_bases(workspace, conditions):
    allowed = passing(workspace["one"], conditions) | passing(workspace["two"], conditions)
    hits = workspace.search("green black tea", limit=10**6, filters=conditions)
    whole = workspace.search("green black tea", limit=10**6)
    assert {h.chunk.id for h in hits} == allowed & {h.chunk.id for h in whole}


def test_filtered_out_chunks_take_no_candidate_places(workspace):
    few = RetrievalSpec(candidates=1)
    for mode in Mode:
        hits = workspace["one"].search(
            "tea", limit=3, mode=mode, filters={"tags": "api"}, retrieval=few
        )
        assert len(hits) == 3
        assert all("api" in hit.tags for hit in hits)


def test_filters_follow_changed_tags_ratings_and_documents(tmp_path):
    with kbkit.open(tmp_path) as workspace:
        kb = workspace.create("drinks")

        def titles(**conditions):
            return sorted(hit.title for hit in kb.search("tea", filters=conditions))

        assert titles(tags="new") == []
        kb.add("green", "Green tea.", tags=["old"])
        kb.add("black", "Black tea.", tags=["new"])
        assert (titles(tags="old"), titles(tags="new")) == (["green"], ["black"])
        kb.documents.update("text:green", tags=["new"])
        assert (titles(tags="old"), titles(tags="new")) == ([], ["black", "green"])
        kb.rate(kb.search("green")[0].chunk.id, 5)
        assert titles(min_rating=4) == ["green"]
        kb.documents.delete("text:green")
        assert titles(tags="new") == ["black"]
        assert titles(min_rating=4) == []


@pytest.mark.parametrize("conditions", [{"heading": "b"}, {"page": 2}])
def test_chunks_of_one_document_are_filtered_apart(workspace, conditions):
    kb = workspace["one"]
    let_through = passing(kb, conditions)
    owners = {chunk.document_id for chunk in kb.chunks if chunk.id in let_through}
    others = [c for c in kb.chunks if c.document_id in owners and c.id not in let_through]
    assert let_through
    assert others, "of the same documents"
    for hits in (
        kb.search("tea", limit=10**6, filters=conditions),
        workspace.search("tea", kbs=["one"], limit=10**6, filters=conditions),
    ):
        assert {hit.chunk.id for hit in hits} == let_through
    nodes = kb.as_retriever(limit=100, filters=conditions).retrieve("tea")
    assert {node.node.node_id for node in nodes} == let_through


def test_version_filter_and_its_error_for_an_unknown_version(tmp_path):
    with kbkit.open(tmp_path) as workspace:
        kb, other = workspace.create("guide"), workspace.create("other")
        kb.add("new", "Tea, new.", source="https://docs.example/en/5.10/tea.html")
        kb.add("old", "Tea, old.", source="https://docs.example/en/5.9/tea.html")
        kb.add("dated", "Tea, dated.", source="https://docs.example/2026/05/tea.html")
        other.add("package", "Tea, packaged.", source="tea", metadata={"version": "5.10"})

        def titles(where, version):
            hits = where.search("tea", filters={"version": version})
            return {hit.title: hit.version for hit in hits}

        assert titles(kb, "5.9") == {"old": "5.9"}
        assert titles(workspace, "5.10") == {"new": "5.10", "package": "5.10"}
        for where in (kb, workspace):
            with pytest.raises(NotFoundError, match=r"'5'; there are: 5\.9, 5\.10$"):
                titles(where, "5")
        with pytest.raises(NotFoundError, match=r"5\.10"):
            workspace.context("tea", filters={"version": "5.11"})
        hits = {hit.title: hit.version for hit in kb.search("tea")}
        assert hits == {"new": "5.10", "old": "5.9", "dated": ""}
        assert Hits.from_dict(kb.search("old tea").to_dict())[0].version


def test_masks_are_cached_and_follow_changes(tmp_path, monkeypatch):
    calls = []
    original = reading.matching_documents

    def matching(transaction, kb_id, filters):
        calls.append(filters)
        return original(transaction, kb_id, filters)

    monkeypatch.setattr(reading, "matching_documents", matching)
    by_path, rated = {"path": "a/**"}, {"path": "a/**", "min_rating": 4}

    def titles(filters):
        return {hit.title for hit in kb.search("green tea", filters=filters)}

    with kbkit.open(tmp_path / "kb") as opened:
        kb = opened.create("drinks")
        one = kb.add("one", "Green tea one.", source="https://tea.example/a/one").id
        kb.add("two", "Green tea two.", source="https://tea.example/b/two")
        assert [titles(by_path) for _ in range(3)] == [{"one"}] * 3
        assert len(calls) == 1
        assert titles(rated) == set()
        kb.rate(one, 5, rater="ann")
        assert titles(rated) == {"one"}
        kb.rate(one, 1, rater="ann")
        assert titles(rated) == set()
        kb.add("three", "Green tea three.", source="https://tea.example/a/three")
        assert titles(by_path) == {"one", "three"}
        kb.documents.delete(one)
        assert titles(by_path) == {"three"}


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
def test_search_uses_no_other_threads(tmp_path):
    with kbkit.open(tmp_path / "kb") as opened:
        kb = opened.create("drinks")
        for number in range(60):
            kb.add(f"tea {number}", f"Green tea number {number}. " * 9)
    kept = {name: value for name, value in os.environ.items() if not name.endswith("NUM_THREADS")}
    command = [sys.executable, "-c", SCANS, str(tmp_path / "kb")]
    environment = {**kept, "KBKIT_IMPROVE": "off"}
    ticks = subprocess.check_output(command, text=True, env=environment)
    assert int(ticks) <= 1  # hundredths of a second
