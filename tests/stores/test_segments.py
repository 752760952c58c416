"""Segments read as the whole snapshot of their version would, whatever came and went."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kbkit.stores.catalog import knowledge_bases, removed_chunks, statement_vectors, summaries
from kbkit.stores.catalog.database import pack
from kbkit.stores.catalog.schema import chunks
from kbkit.stores.snapshots import advancing, making
from kbkit.stores.snapshots.making import make
from kbkit.stores.snapshots.segments import DocumentNumbers, Segment, SegmentedSnapshot, joined
from tests.stores.test_snapshots import catalog, fresh, opened, put, remove

TERMS = ("a", "b", "c", "dd", "none")


def read(found):
    """All that retrievers can read of a snapshot, by chunk."""
    rows = np.arange(len(found))
    titles, headings = zip(*(found.coverage(rows, [term]) for term in TERMS), strict=True)
    holding = found.holding(TERMS)
    counts = {
        (term, int(found.seqs[row])): int(count)
        for term, (held, times) in holding.items()
        for row, count in zip(held.tolist(), times.tolist(), strict=True)
    }
    for held, _ in holding.values():
        assert (np.diff(held) > 0).all()
        assert len(held)
    scored = found.scored(lambda vectors: vectors[:, 0])
    vectors = found.vectors_of(rows)
    assert scored.tolist() == [vector[0] for vector in vectors.tolist()]
    documents = [found.document_ids[owner] for owner in found.owners.tolist()]
    return {
        "seqs": found.seqs.tolist(),
        "documents": documents,
        "lengths": found.lengths.tolist(),
        "sizes": [int(found.sizes[owner]) for owner in found.owners.tolist()],
        "words": [int(found.document_lengths[owner]) for owner in found.owners.tolist()],
        "titles": [each.tolist() for each in titles],
        "vectors": vectors.tolist(),
        "headings": [each.tolist() for each in headings],
        "counts": counts,
        "headed": found.headed(lambda text: "c" in text).tolist(),
        "average": pytest.approx(found.average_length),
    }


def check(stored, found=None):
    """That segments are level, and read as the whole snapshot does."""
    row, _ = catalog(stored)
    found = stored.snapshots.renew(stored.id) if found is None else found
    assert (found.version, found.summaries_version) == (row.version, row.summaries_version)
    with stored.database.read() as transaction:
        whole = make(transaction, row, None)
    assert read(found) == read(whole)
    assert found.rows_of([*whole.ids, "gone"]).tolist() == list(range(len(whole)))
    scores = [
        dict(zip(each.document_ids, each.summary_scores(first).tolist(), strict=True))
        for each in (found, whole)
    ]
    held = [{known: score for known, score in each.items() if score} for each in scores]
    # a summary that went serves until the next one comes
    assert held[1].items() <= held[0].items()
    return found


def first(vectors):
    """The first number of each vector; 0 where there are none."""
    return vectors[:, 0].copy() if vectors.shape[1] else np.zeros(len(vectors), np.float32)


def embed_again(stored, number):
    """Give a chunk another vector, as annotations do."""
    row, held = catalog(stored)
    if not held:
        return
    chosen = held[number % len(held)]["seq"]
    with stored.database.write() as transaction:
        knowledge_bases.touch(transaction, stored.id)
        statement_vectors.put(
            transaction,
            stored.id,
            {chosen: f"k{row.version}"},
            {f"k{row.version}": pack(np.full((1, 2), row.version + 1, np.float32))[0]},
            text="statements",
            version=row.version + 1,
        )


def embed_summary(stored, number):
    """Make a summary, or make it anew; every other time what is to embed it has not come yet."""
    row, held = catalog(stored)
    if not held:
        return
    document = held[number % len(held)]["document"]
    key = f"c{row.summaries_version}"
    with stored.database.write() as transaction:
        summaries.put(transaction, stored.id, 1, {document: summaries.NewSummary("", key, key)})
        if number % 2:
            vector = np.full((1, 3), row.summaries_version + 1, np.float32)
            summaries.add_vectors(transaction, stored.id, "model", {key: pack(vector)[0]})
        summaries.search_with(transaction, stored.id, "model", "other")


def test_summaries_without_vectors_are_as_wide_as_those_of_their_model(stored):
    """Segments may hold summaries of the model before, which are narrower."""

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
    found = check(stored)
    assert found.summaries_of(documents).tolist() == [[1] * 3, [2] * 3, [3] * 3, [0] * 3]


def test_an_earlier_file_of_summaries_is_noticed(stored, caplog):
    stored.snapshots.save(stored.id)
    files = []
    for _ in range(2):
        embed_summary(stored, 1)
        stored.snapshots.save(stored.id)
        listed = json.loads(stored.snapshots._files.path(stored.id).read_text())
        path = stored.snapshots.folder / listed["summaries"]
        files.append(path.read_bytes())
    path.write_bytes(files[0])
    again = fresh(stored)
    assert again.snapshots.get(catalog(stored)[0]) is None
    assert "another file" in caplog.text
    check(again)


texts = st.lists(st.sampled_from(["", "a", "a b", "b b a", "c", "dd c a b"]), max_size=4)
WAYS = [
    "put",
    "retitle",
    "remove",
    "embed",
    "summary",
    "search",
    "save",
    "merge",
    "reopen",
    "other",
]
steps = st.lists(
    st.tuples(st.sampled_from(WAYS), st.integers(0, 4), texts), min_size=1, max_size=14
)


@pytest.mark.slow
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60
)
@given(steps)
def test_segments_read_as_the_whole_snapshot(database, tmp_path, steps):
    """Whatever came and went, was embedded anew, merged, and by which process."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(advancing, "MAX", 4)
        patched.setattr(advancing, "SLICE", 5)
        patched.setattr(making, "_TIER", 2)
        patched.setattr(making, "_SMALLEST", 2)
        patched.setattr(making, "LARGEST", 9)
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
                found = stored.snapshots.get(catalog(stored)[0])
                if found is not None:
                    check(stored, found)
            elif step == "save":
                stored.snapshots.save(stored.id)
            elif step == "merge":
                stored.snapshots.save(stored.id, merging=True)
            elif step == "reopen":
                stored = fresh(stored)
            else:
                stored, other = other, stored
        # what is indexed of a chunk begins with title and headings
        for seen in (stored, other, fresh(stored)):
            check(seen)
            seen.snapshots.save(stored.id, merging=True)
            found = fresh(stored).snapshots.get(catalog(stored)[0])
            check(stored, found)


@pytest.fixture
def stored(database, tmp_path):
    found = opened(database, tmp_path)
    for number in range(4):
        put(found, number, "a b", "c")
    return found


def test_a_search_gets_a_new_segment_unless_much_has_changed(stored, monkeypatch):
    stored.snapshots.save(stored.id)
    for seen in (stored, fresh(stored)):
        put(seen, "new", "dd", f"b {seen is stored}")
        row, held = catalog(seen)
        found = seen.snapshots.get(row)
        assert isinstance(found, SegmentedSnapshot)
        assert found.seqs.tolist() == [chunk["seq"] for chunk in held]
        assert len(found.segments) == 2
        assert found.segments[0].file
        assert seen.snapshots.get(row) is found
        with seen.database.read() as transaction:
            assert seen.snapshots.table(transaction, row) is found
    monkeypatch.setattr(advancing, "MAX", 1)
    put(stored, "more", "a", "b", "c")
    assert stored.snapshots.get(catalog(stored)[0]) is None
    check(stored)


def test_a_change_costs_what_it_changes(stored, monkeypatch):
    """Of the catalog only what came is read, of the disk only what is new written."""
    stored.snapshots.save(stored.id)
    folder, read = stored.snapshots.folder, []
    real = advancing.make

    def made(*given, **bounds):
        read.append(real(*given, **bounds))
        return read[-1]

    monkeypatch.setattr(advancing, "make", made)
    before = {path.name: path.stat().st_ino for path in folder.glob("*.safetensors")}
    put(stored, "new", "dd", "a")
    stored.snapshots.save(stored.id)
    after = {path.name: path.stat().st_ino for path in folder.glob("*.safetensors")}
    assert before.items() < after.items()
    assert len(after) == len(before) + 1
    assert [len(each) for each in read] == [2]
    assert fresh(stored).snapshots.get(catalog(stored)[0]) is not None  # made by the first one
    remove(stored, "new")
    stored.snapshots.save(stored.id)
    assert fresh(stored).snapshots.get(catalog(stored)[0]) is not None
    assert len(read) == 1


def test_another_process_maps_what_the_first_has_made(stored, monkeypatch):
    other = fresh(stored)
    stored.snapshots.save(stored.id)
    assert other.snapshots.get(catalog(stored)[0]) is not None
    put(stored, "new", "dd")
    stored.snapshots.save(stored.id)
    monkeypatch.setattr(advancing, "make", None)
    found = other.snapshots.get(catalog(stored)[0])
    assert all(segment.file for segment in found.segments)
    assert len(found.segments) == 2


def test_a_full_disk_costs_nothing_but_speed(stored, monkeypatch):
    stored.snapshots.save(stored.id)
    kept = fresh(stored).snapshots.get(catalog(stored)[0])

    def full(*_):
        raise OSError(28, "No space left on device")

    put(stored, "new", "dd")
    monkeypatch.setattr("kbkit.stores.snapshots.segment_files.save", full)
    stored.snapshots.save(stored.id, merging=True)
    check(stored)
    monkeypatch.undo()
    again = fresh(stored)
    assert again.snapshots._files.read(stored.id).seqs.tolist() == kept.seqs.tolist()
    check(again)


def test_a_kill_in_the_middle_of_a_merge_loses_nothing(stored, monkeypatch):
    monkeypatch.setattr(making, "_TIER", 2)
    stored.snapshots.save(stored.id)
    put(stored, "new", "dd")

    def killed(*_):
        raise KeyboardInterrupt

    files = stored.snapshots._files
    monkeypatch.setattr(type(files), "_replace", killed)
    with pytest.raises(KeyboardInterrupt):
        stored.snapshots.save(stored.id, merging=True)
    monkeypatch.undo()
    assert fresh(stored).snapshots._files.read(stored.id) is not None  # the one before
    check(fresh(stored))
    stored = fresh(stored)
    stored.snapshots.save(stored.id, merging=True)
    check(fresh(stored), fresh(stored).snapshots.get(catalog(stored)[0]))


def test_segments_are_few_however_many_changes_there_were(stored, monkeypatch):
    monkeypatch.setattr(making, "_SMALLEST", 4)
    for number in range(60):
        put(stored, f"more {number}", "a", "b")
        stored.snapshots.save(stored.id)
        found = stored.snapshots.get(catalog(stored)[0])
        assert len(found.segments) <= 3 * making._TIER
    check(stored)
    assert len(list(stored.snapshots.folder.glob("*.safetensors"))) >= len(found.segments)


def test_what_has_gone_long_ago_is_forgotten(stored, monkeypatch):
    monkeypatch.setattr(removed_chunks, "_MIN_ENTRIES", 2)
    stored.snapshots.save(stored.id)
    behind = fresh(stored)
    assert behind.snapshots.get(catalog(stored)[0]) is not None
    for number in range(4):
        remove(stored, number)
        put(stored, f"new {number}", "b")
        stored.snapshots.save(stored.id)
    with stored.database.read() as transaction:
        assert removed_chunks.since(transaction, stored.id, 0) is None
    check(behind)
    check(stored)


def test_a_version_that_is_gone_has_no_snapshot(stored):
    row, _ = catalog(stored)
    stored.snapshots.save(stored.id)
    put(stored, "new", "dd")
    newer, _ = catalog(stored)
    assert stored.snapshots.get(newer) is not None
    assert stored.snapshots.get(row) is None
    put(stored, "newest", "dd")
    assert stored.snapshots.get(newer) is None or stored.snapshots.get(newer).shows(newer)


def test_a_catalog_that_was_restored_takes_nothing_of_another(stored):
    held = stored.snapshots.renew(stored.id)
    with stored.database.write() as transaction:
        transaction.execute(chunks.update().values(id=chunks.c.id + "-restored"))
        knowledge_bases.touch(transaction, stored.id)
    with stored.database.read() as transaction:
        row = knowledge_bases.get_by_id(transaction, stored.id)
        assert advancing.advanced(transaction, row, held) is None
    check(stored)


def test_segments_follow_the_catalog_that_they_were_made_of(stored):
    """Each reason for which they do not, by itself."""
    remove(stored, 0)
    row, held = catalog(stored)
    with stored.database.read() as transaction:
        # the last one is small: chunks before it, in the other, tell nothing of its history
        parts = [
            Segment(make(transaction, row, None, after=after, until=until))
            for after, until in ((0, held[-3]["seq"]), (held[-3]["seq"], held[-1]["seq"]))
        ]
        last = removed_chunks.last(transaction, stored.id)
        found = joined(advancing.shown(row, last), parts, DocumentNumbers())
        assert [len(segment) for segment in found.segments] == [len(held) - 2, 2]

        def follows(row=row, **different):
            return advancing.follows(transaction, row, replace(found, **different))

        assert last > 0
        assert follows()
        assert follows(segments=())
        assert follows(replace(row, version=row.version + 1))
        assert not follows(replace(row, version=row.version - 1))
        assert not follows(replace(row, embedder="another"))
        assert not follows(removed=last + 1)
    with stored.database.write() as transaction:
        which = chunks.c.seq == held[-1]["seq"]
        transaction.execute(chunks.update().where(which).values(id="restored"))
        assert not advancing.follows(transaction, row, found)
