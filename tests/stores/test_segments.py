"""Segments equal the whole snapshot of their version."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kbkit.stores.catalog import corpus, knowledge_bases, outbox, summaries
from kbkit.stores.catalog.database import pack
from kbkit.stores.catalog.schema import chunks
from kbkit.stores.snapshots import making, segments
from kbkit.stores.snapshots.making import make
from kbkit.stores.snapshots.segments import (
    DocumentNumbers,
    Segment,
    SnapshotState,
    join_segments,
    merge_summaries,
)
from kbkit.stores.snapshots.snapshot import SummaryPart, save_summaries
from tests.stores.test_snapshots import catalog, fresh, in_files, opened, put, remove, texts

TERMS = ("a", "b", "c", "dd", "none")


def read(snapshot):
    """What retrievers can read of a snapshot."""
    all_rows = np.arange(len(snapshot))
    titles, headings = zip(*(snapshot.coverage(all_rows, [term]) for term in TERMS), strict=True)
    holding = snapshot.holding(TERMS)
    counts = {
        (term, int(snapshot.seqs[row])): int(count)
        for term, (rows, times) in holding.items()
        for row, count in zip(rows.tolist(), times.tolist(), strict=True)
    }
    for rows, _ in holding.values():
        assert (np.diff(rows) > 0).all()
        assert len(rows)
    scored = snapshot.score(lambda vectors: vectors[:, 0])
    vectors = snapshot.vectors_of(all_rows)
    assert scored.tolist() == [vector[0] for vector in vectors.tolist()]
    documents = [snapshot.document_ids[owner] for owner in snapshot.owners.tolist()]
    return {
        "seqs": snapshot.seqs.tolist(),
        "documents": documents,
        "lengths": snapshot.lengths.tolist(),
        "sizes": [int(snapshot.sizes[owner]) for owner in snapshot.owners.tolist()],
        "words": [int(snapshot.document_lengths[owner]) for owner in snapshot.owners.tolist()],
        "titles": [each.tolist() for each in titles],
        "vectors": vectors.tolist(),
        "headings": [each.tolist() for each in headings],
        "counts": counts,
        "headed": snapshot.match_headings(lambda text: "c" in text).tolist(),
        "average": pytest.approx(snapshot.average_length),
    }


def check(stored, snapshot=None):
    """Check that segments are current and equal the whole snapshot."""
    row, _ = catalog(stored)
    snapshot = stored.snapshots.renew(stored.id) if snapshot is None else snapshot
    assert replace(snapshot.state, removed=0) == SnapshotState.of(row)
    with stored.database.read() as transaction:
        made, kept = make(transaction, row), summaries.vectors_of(transaction, row)
    numbers = DocumentNumbers()
    numbers.add([Segment(made)])
    parts = [SummaryPart(numbers.of_ids(kept.document_ids), kept.vectors)] if kept.embedder else []
    expected = join_segments(SnapshotState.of(row), [Segment(made)], numbers, parts)
    assert read(snapshot) == read(expected)
    assert snapshot.rows_of([*made.ids, "gone"]).tolist() == list(range(len(expected)))
    scores = [
        dict(zip(each.document_ids, each.summary_scores(first).tolist(), strict=True))
        for each in (snapshot, expected)
    ]
    present = [{key: score for key, score in each.items() if score} for each in scores]
    # a deleted summary stays until the next one
    assert present[1].items() <= present[0].items()
    return snapshot


def first(vectors):
    return vectors[:, 0].copy()


def embed_again(stored, number):
    """Give a chunk another vector, as annotations do."""
    row, rows = catalog(stored)
    if not rows:
        return
    chosen = rows[number % len(rows)]["seq"]
    with stored.database.write() as transaction:
        knowledge_bases.touch(transaction, stored.id)
        corpus.put_vectors(
            transaction,
            stored.id,
            {chosen: f"k{row.version}"},
            {f"k{row.version}": pack(np.full((1, 2), row.version + 1, np.float32))[0]},
            text="statements",
            version=row.version + 1,
        )


def embed_summary(stored, number):
    """Write a summary; every other time its vector is missing."""
    row, rows = catalog(stored)
    if not rows:
        return
    document = rows[number % len(rows)]["document"]
    key = f"c{row.summaries_version}"
    with stored.database.write() as transaction:
        summaries.put(transaction, stored.id, 1, {document: summaries.NewSummary("", key, key)})
        if number % 2:
            vector = np.full((1, 3), row.summaries_version + 1, np.float32)
            summaries.add_vectors(transaction, stored.id, "model", {key: pack(vector)[0]})
        summaries.search_with(transaction, stored.id, "model", "other")


def test_missing_summary_vectors_have_the_width_of_their_model(stored):
    """The previous model's were narrower."""

    def search_with(model, width, *numbers, embed=True):
        with stored.database.write() as transaction:
            for number in numbers:
                new = {documents[number]: summaries.NewSummary("", str(number), str(number))}
                summaries.put(transaction, stored.id, 1, new)
                if embed:
                    vector = np.full((1, width), number + 1, np.float32)
                    packed = {str(number): pack(vector)[0]}
                    summaries.add_vectors(transaction, stored.id, model, packed)
            summaries.search_with(transaction, stored.id, model, "other")

    documents = list(dict.fromkeys(row["document"] for row in catalog(stored)[1]))
    search_with("small", 2, 0, 1, 2)
    stored.snapshots.save(stored.id, merging=True)
    search_with("large", 3, 0, 1, 2)
    stored.snapshots.renew(stored.id)
    search_with("large", 3, 3, embed=False)
    snapshot = check(stored)
    merged = merge_summaries(snapshot.summaries)
    vector_of = dict(zip(merged.numbers.tolist(), merged.vectors.tolist(), strict=True))
    numbers = snapshot.numbers.of_ids(documents).tolist()
    assert [vector_of[number] for number in numbers] == [[1] * 3, [2] * 3, [3] * 3, [0] * 3]


def test_summaries_of_another_embedder_are_refused(stored):
    embed_summary(stored, 1)
    stored.snapshots.save(stored.id)
    (path,) = stored.snapshots.folder.glob("*.summaries.safetensors")
    save_summaries(path, "other", ["0"], np.ones((1, 7), np.float32))
    assert in_files(stored) is None
    check(fresh(stored))


WAYS = ["put", "retitle", "remove", "embed", "summary", "search", "save", "merge", "reopen", "swap"]
steps = st.lists(
    st.tuples(st.sampled_from(WAYS), st.integers(0, 4), texts), min_size=1, max_size=14
)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(steps)
def test_segments_equal_a_whole_snapshot(database, tmp_path, steps):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(making, "MAX", 4)
        patched.setattr(making, "SLICE", 5)
        patched.setattr(segments, "_TIER", 2)
        patched.setattr(segments, "_SMALLEST", 2)
        patched.setattr(segments, "LARGEST", 9)
        stored = opened(database, tmp_path)
        other = fresh(stored)
        for number in range(3):
            put(stored, number, "a b", f"c {number}", "dd")
        for step, number, given_texts in steps:
            if step == "put":
                put(stored, number, *given_texts)
            elif step == "retitle":
                titled = [f"dd {number} {number} c {text}" for text in given_texts]
                put(stored, number, *titled, title=f"dd {number}", headings=(str(number), "c"))
            elif step == "remove":
                remove(stored, number)
            elif step == "embed":
                embed_again(stored, number)
            elif step == "summary":
                embed_summary(stored, number)
            elif step == "search":
                check(stored)
            elif step == "save":
                stored.snapshots.save(stored.id)
            elif step == "merge":
                stored.snapshots.save(stored.id, merging=True)
            elif step == "reopen":
                stored = fresh(stored)
            else:
                stored, other = other, stored
        # indexed text begins with title and headings
        for seen in (stored, other, fresh(stored)):
            check(seen)
            seen.snapshots.save(stored.id, merging=True)
            check(stored, in_files(stored))


@pytest.fixture
def stored(database, tmp_path):
    filled = opened(database, tmp_path)
    for number in range(4):
        put(filled, number, "a b", "c")
    return filled


def test_search_gets_a_new_segment_after_small_changes(stored):
    stored.snapshots.save(stored.id)
    for seen in (stored, fresh(stored)):
        put(seen, "new", "dd", f"b {seen is stored}")
        row, rows = catalog(seen)
        snapshot = seen.snapshots.renew(seen.id)
        assert snapshot.seqs.tolist() == [chunk["seq"] for chunk in rows]
        assert len(snapshot.segments) == 2
        assert snapshot.segments[0].file
        assert seen.snapshots.cached(row) is seen.snapshots.renew(seen.id) is snapshot


def test_many_changes_are_written_for_other_processes(stored, monkeypatch):
    for name in ("making", "snapshots"):
        monkeypatch.setattr(f"kbkit.stores.snapshots.{name}.MAX", 1)
    check(stored)
    put(stored, "more", "a", "b", "c")
    check(stored)
    snapshot = in_files(stored)
    assert [len(segment) for segment in snapshot.segments] == [8, 3]
    check(stored, snapshot)


def test_update_reads_and_writes_only_changes(stored, monkeypatch):
    stored.snapshots.save(stored.id)
    folder, read = stored.snapshots.folder, []
    real = making.make

    def recorded(*arguments, **bounds):
        read.append(real(*arguments, **bounds))
        return read[-1]

    monkeypatch.setattr(making, "make", recorded)
    before = {path.name: path.stat().st_ino for path in folder.glob("*.safetensors")}
    put(stored, "new", "dd", "a")
    stored.snapshots.save(stored.id)
    after = {path.name: path.stat().st_ino for path in folder.glob("*.safetensors")}
    assert before.items() < after.items()
    assert len(after) == len(before) + 1
    assert [len(each) for each in read] == [2]
    assert in_files(stored) is not None
    remove(stored, "new")
    stored.snapshots.save(stored.id)
    assert in_files(stored) is not None
    assert len(read) == 1


def test_other_process_maps_existing_segments(stored, monkeypatch):
    other = fresh(stored)
    stored.snapshots.save(stored.id)
    other.snapshots.renew(stored.id)
    put(stored, "new", "dd")
    stored.snapshots.save(stored.id)
    monkeypatch.setattr(making, "make", None)
    snapshot = other.snapshots.renew(stored.id)
    assert all(segment.file for segment in snapshot.segments)
    assert len(snapshot.segments) == 2


def test_full_disk_only_costs_speed(stored, monkeypatch):
    stored.snapshots.save(stored.id)
    kept = in_files(stored)

    def full(*_):
        raise OSError(28, "No space left on device")

    put(stored, "new", "dd")
    monkeypatch.setattr("kbkit.stores.snapshots.segment_files.save", full)
    stored.snapshots.save(stored.id, merging=True)
    check(stored)
    monkeypatch.undo()
    reopened = fresh(stored)
    assert reopened.snapshots._files.read(stored.id).seqs.tolist() == kept.seqs.tolist()
    check(reopened)


def test_killed_merge_loses_nothing(stored, monkeypatch):
    monkeypatch.setattr(segments, "_TIER", 2)
    stored.snapshots.save(stored.id)
    put(stored, "new", "dd")

    def killed(*_):
        raise KeyboardInterrupt

    files = stored.snapshots._files
    monkeypatch.setattr(type(files), "_replace", killed)
    with pytest.raises(KeyboardInterrupt):
        stored.snapshots.save(stored.id, merging=True)
    monkeypatch.undo()
    assert fresh(stored).snapshots._files.read(stored.id) is not None
    check(fresh(stored))
    stored = fresh(stored)
    stored.snapshots.save(stored.id, merging=True)
    check(stored, in_files(stored))


def test_many_changes_leave_few_segments(stored, monkeypatch):
    monkeypatch.setattr(segments, "_SMALLEST", 4)
    for number in range(60):
        put(stored, f"more {number}", "a", "b")
        stored.snapshots.save(stored.id)
        snapshot = stored.snapshots.renew(stored.id)
        assert len(snapshot.segments) <= 3 * segments._TIER
    check(stored)
    assert len(list(stored.snapshots.folder.glob("*.safetensors"))) >= len(snapshot.segments)


def test_old_removals_are_forgotten(stored, monkeypatch):
    monkeypatch.setattr(outbox, "_MIN_ENTRIES", 2)
    stored.snapshots.save(stored.id)
    behind = fresh(stored)
    behind.snapshots.renew(stored.id)
    for number in range(4):
        remove(stored, number)
        put(stored, f"new {number}", "b")
        stored.snapshots.save(stored.id)
    with stored.database.read() as transaction:
        assert outbox.removed_since(transaction, stored.id, 0) is None
    check(behind)
    check(stored)


def test_past_version_has_no_snapshot(stored):
    row, _ = catalog(stored)
    stored.snapshots.save(stored.id)
    put(stored, "new", "dd")
    newer, _ = catalog(stored)
    assert stored.snapshots.renew(stored.id).shows(newer)
    assert stored.snapshots.cached(newer) is not None
    assert stored.snapshots.cached(row) is None


def test_restored_catalog_reuses_no_foreign_segment(stored):
    snapshot = stored.snapshots.renew(stored.id)
    with stored.database.write() as transaction:
        transaction.execute(chunks.update().values(id=chunks.c.id + "-restored"))
        knowledge_bases.touch(transaction, stored.id)
    with stored.database.read() as transaction:
        row = knowledge_bases.get_by_id(transaction, stored.id)
        assert making.advance(transaction, row, snapshot) is None
    check(stored)


def test_segments_follow_only_their_own_catalog(stored):
    remove(stored, 0)
    row, rows = catalog(stored)
    with stored.database.read() as transaction:
        # the last segment is small, so that only its chunks show the history
        parts = [
            Segment(make(transaction, row, after=after, until=until))
            for after, until in ((0, rows[-3]["seq"]), (rows[-3]["seq"], rows[-1]["seq"]))
        ]
        last = outbox.last_removed(transaction, stored.id)
        snapshot = join_segments(SnapshotState.of(row, last), parts, DocumentNumbers())
        assert [len(segment) for segment in snapshot.segments] == [len(rows) - 2, 2]

        def follows(row=row, **different):
            return making.follows(transaction, row, replace(snapshot, **different))

        assert last > 0
        assert follows()
        assert follows(segments=())
        assert follows(replace(row, version=row.version + 1))
        assert not follows(replace(row, version=row.version - 1))
        assert not follows(replace(row, embedder="another"))
        assert outbox.removed_since(transaction, stored.id, last) == ([], last)
        assert outbox.removed_since(transaction, stored.id, last + 1) is None
    with stored.database.write() as transaction:
        which = chunks.c.seq == rows[-1]["seq"]
        transaction.execute(chunks.update().where(which).values(id="restored"))
        assert not making.follows(transaction, row, snapshot)
