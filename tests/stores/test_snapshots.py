"""A snapshot shows one version of the catalog despite kills and damage."""

import json
import os
import shutil
import threading
import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kbkit.errors import NotFoundError
from kbkit.stores.backend import FolderLocks
from kbkit.stores.catalog import knowledge_bases, outbox
from kbkit.stores.catalog.database import pack, unpack
from kbkit.stores.catalog.reading import heading_text
from kbkit.stores.catalog.schema import chunks, documents, vectors
from kbkit.stores.catalog.schema import knowledge_bases as knowledge_base_table
from kbkit.stores.snapshots.making import make, merge_segments
from kbkit.stores.snapshots.segment_files import _crc
from kbkit.stores.snapshots.snapshots import Snapshots
from kbkit.stores.sqlite_database import SqliteDatabase
from kbkit.text.analysis import analyzer
from tests.stores.workspaces import create_row

NUMBERS = count()


@pytest.fixture
def stored(database, tmp_path):
    return opened(database, tmp_path)


def opened(database, tmp_path):
    name = f"kb{next(NUMBERS)}"
    with database.write() as connection:
        row = create_row(connection, name)
    return view(database, row.id, tmp_path / "snapshots")


def view(database, kb_id, folder):
    return SimpleNamespace(database=database, id=kb_id, snapshots=Snapshots(folder, database))


def fresh(stored):
    """The same knowledge base in a new process."""
    return view(stored.database, stored.id, stored.snapshots.folder)


def in_files(stored):
    """The current snapshot as files have it; ``None`` if they have none."""
    snapshot = fresh(stored).snapshots._files.read(stored.id)
    return snapshot if snapshot is not None and snapshot.shows(catalog(stored)[0]) else None


def put(stored, name, *texts, title=None, headings=()):
    """Store a document with a chunk for each text; equal chunks stay."""
    prefix = " ".join(analyzer().terms(f"{name if title is None else title} {' '.join(headings)}"))
    document = f"{stored.id}-{name}"
    ids = [f"{document}-{title!r}-{headings}-{text}-{n}" for n, text in enumerate(texts)]
    values = {
        "title": name if title is None else title,
        "content": "",
        "document_type": "other",
        "tags": [],
        "metadata": {},
        "state": "current",
        "content_hash": "",
        "fetched_at": datetime.now(UTC),
    }
    with stored.database.write() as connection:
        update = documents.update().where(documents.c.id == document).values(values)
        if not connection.execute(update).rowcount:
            insert = documents.insert().values(id=document, kb_id=stored.id, uri=name, **values)
            connection.execute(insert)
        of_document = sa.select(chunks.c.id).where(chunks.c.document_id == document)
        present = set(connection.execute(of_document).scalars())
        forget(connection, stored, chunks.c.id.in_(present.difference(ids)))
        for position, (chunk_id, text) in enumerate(zip(ids, texts, strict=True)):
            if chunk_id in present:
                continue
            insert = chunks.insert().values(
                id=chunk_id,
                kb_id=stored.id,
                document_id=document,
                position=position,
                start=0,
                end=0,
                text=text,
                heading_path=list(headings),
                anchor="",
                terms=f"{prefix} {text}".strip(),
                length=len(text.split()),
                embed_hash=chunk_id,
            )
            seq = connection.execute(insert.returning(chunks.c.seq)).scalar_one()
            vector = np.array([[len(text[:9]), text[:9].count("a") - 1.5]], np.float32) * bool(text)
            connection.execute(vectors.insert().values(chunk_seq=seq, vector=pack(vector)[0]))
        knowledge_bases.touch(connection, stored.id)


def forget(connection, stored, which):
    seqs = list(connection.execute(sa.select(chunks.c.seq).where(which)).scalars())
    connection.execute(chunks.delete().where(chunks.c.seq.in_(seqs)))
    outbox.note_removed(connection, stored.id, seqs)


def remove(stored, name):
    with stored.database.write() as connection:
        forget(connection, stored, chunks.c.document_id == f"{stored.id}-{name}")
        connection.execute(documents.delete().where(documents.c.id == f"{stored.id}-{name}"))
        knowledge_bases.touch(connection, stored.id)


def catalog(stored, connection=None):
    """Row and chunks of the knowledge base in the catalog."""
    if connection is None:
        with stored.database.read() as connection:
            return catalog(stored, connection)
    rows = connection.execute(
        sa.select(chunks, documents.c.title, vectors.c.vector)
        .join(documents, documents.c.id == chunks.c.document_id)
        .join(vectors, vectors.c.chunk_seq == chunks.c.seq)
        .where(chunks.c.kb_id == stored.id)
        .order_by(chunks.c.seq)
    ).all()
    sizes = Counter(row.document_id for row in rows)
    contents = [
        {
            "seq": row.seq,
            "id": row.id,
            "document": row.document_id,
            "title": row.title,
            "size": sizes[row.document_id],
            "heading": heading_text(row.title, row.heading_path),
            "length": row.length,
            "vector": unpack([row.vector], 2)[0].tolist(),
            "counts": {term: min(n, 65_535) for term, n in Counter(row.terms.split()).items()},
        }
        for row in rows
    ]
    return knowledge_bases.get_by_id(connection, stored.id), contents


def contents_of(snapshot):
    """Chunks of a snapshot, as `catalog` gives them."""
    counts = [{} for _ in range(len(snapshot))]
    for number, term in enumerate(snapshot.terms):
        rows, times = snapshot.postings(number)
        assert (np.diff(rows) > 0).all()
        for row, n in zip(rows.tolist(), times.tolist(), strict=True):
            counts[row][term] = n
    assert list(snapshot.terms) == sorted(snapshot.terms)
    return [
        {
            "seq": int(snapshot.seqs[i]),
            "id": snapshot.ids[i],
            "document": snapshot.document_ids[owner],
            "title": snapshot.titles[owner],
            "size": int(snapshot.sizes[owner]),
            "heading": snapshot.heading_texts[snapshot.headings[i]],
            "length": int(snapshot.lengths[i]),
            "vector": snapshot.vectors[i].tolist(),
            "counts": counts[i],
        }
        for i, owner in enumerate(snapshot.owners.tolist())
    ]


def check(stored):
    """Check that each way to get a snapshot gives the current one."""
    row, contents = catalog(stored)
    snapshot = stored.snapshots.renew(stored.id)
    assert snapshot.shows(row)
    assert stored.snapshots.cached(row) is snapshot
    with stored.database.read() as connection:
        assert contents_of(make(connection, row)) == contents
    if not snapshot.segments:
        assert contents == []
        return snapshot
    joint = merge_segments(snapshot.segments)
    assert contents_of(joint) == contents
    for texts, lists in (
        (joint.titles, joint.title_terms),
        (joint.heading_texts, joint.heading_terms),
    ):
        every = np.arange(len(texts))
        for number, term in enumerate(joint.terms):
            holding = lists.holding([number], every).tolist()
            assert holding == [int(term in analyzer().terms(text)) for text in texts]
    lengths = [chunk["length"] for chunk in contents]
    assert joint.average_length == pytest.approx(sum(lengths) / len(lengths) if contents else 0)
    return joint


texts = st.lists(st.sampled_from(["", "a", "a b", "b b a", "c", "dd c a b"]), max_size=4)
steps = st.lists(
    st.tuples(
        st.sampled_from(["put", "retitle", "remove", "renew", "save", "reopen"]),
        st.integers(0, 3),
        texts,
    ),
    max_size=12,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(steps)
def test_snapshot_equals_the_catalog_after_any_changes(database, tmp_path, steps):
    stored = opened(database, tmp_path)
    for step, number, given_texts in steps:
        if step == "put":
            put(stored, number, *given_texts)
        elif step == "retitle":
            put(stored, number, *given_texts, title=f"dd {number}", headings=(str(number), "c"))
        elif step == "remove":
            remove(stored, number)
        elif step == "renew":
            check(stored)
        elif step == "save":
            stored.snapshots.save(stored.id)
        else:
            stored = fresh(stored)
    check(stored)
    stored.snapshots.save(stored.id)
    snapshot = in_files(stored)
    contents = contents_of(merge_segments(snapshot.segments)) if snapshot.segments else []
    assert contents == catalog(stored)[1]


def test_transaction_gets_the_snapshot_of_its_state(stored):
    put(stored, "tea", "a", "b")
    put(stored, "milk", "c")
    with stored.snapshots.read(stored.id) as (connection, snapshot):
        row, contents = catalog(stored, connection)
        remove(stored, "tea")
        put(stored, "rum", "dd")
        check(stored)
        stored.snapshots.save(stored.id)
        assert contents_of(make(connection, row)) == contents
        assert contents_of(merge_segments(snapshot.segments)) == contents


def test_snapshot_is_bound_to_version_and_embedder(stored):
    put(stored, "tea", "a")
    stored.snapshots.save(stored.id)
    for reader in (stored, fresh(stored)):
        put(reader, "milk", f"b {reader is stored}")
        check(reader)
    with stored.database.write() as connection:
        connection.execute(knowledge_base_table.update().values(embedder="other"))
        connection.execute(vectors.update().values(vector=pack(np.ones((1, 2)))[0]))
    assert (check(stored).vectors == 1).all()


def test_snapshots_show_writes_of_both_processes(stored):
    other = fresh(stored)
    for turn in range(4):
        put(stored if turn % 2 else other, turn, "a", "b")
        (stored if turn % 3 else other).snapshots.save(stored.id)
        check(stored)
        check(other)


DAMAGES = {
    "empty": lambda path: path.write_bytes(b""),
    "half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "short by a byte": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "gone": lambda path: path.unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_damaged_segment_file_is_ignored_and_replaced(stored, damage):
    put(stored, "tea", "a b b", "c a")
    put(stored, "milk", "dd")
    stored.snapshots.save(stored.id)
    path = segment_file(stored)
    damage(path)
    assert in_files(stored) is None
    check(fresh(stored))
    assert segment_file(stored) != path
    assert in_files(stored) is not None


@pytest.mark.parametrize("large", [False, True])
def test_flipped_bit_in_a_segment_is_noticed(stored, monkeypatch, large):
    if large:
        monkeypatch.setattr("kbkit.stores.snapshots.array_files._LARGE", 0)
    put(stored, "tea", "a b b", "c a")
    stored.snapshots.save(stored.id)
    path = segment_file(stored)
    assert in_files(stored) is not None
    data = path.read_bytes()
    for place in range(0, len(data), len(data) // 40):
        path.write_bytes(data[:place] + bytes([data[place] ^ 16]) + data[place + 1 :])
        assert in_files(stored) is None, place
    path.write_bytes(data)
    assert in_files(stored) is not None
    check(fresh(stored))


def test_flipped_bit_in_the_list_is_noticed(stored, caplog):
    put(stored, "tea", "a b b", "c a")
    stored.snapshots.save(stored.id)
    path = stored.snapshots._files.path(stored.id)
    data = path.read_bytes()
    for place in range(0, len(data), 3):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        assert in_files(stored) is None or json.loads(path.read_bytes()) == json.loads(data)
    assert "rebuilt" in caplog.text


def test_large_file_is_checked_once(stored, monkeypatch):
    monkeypatch.setattr("kbkit.stores.snapshots.array_files._LARGE", 0)
    put(stored, "tea", "a b b", "c a")
    stored.snapshots.save(stored.id)
    path, read = segment_file(stored), []
    monkeypatch.setattr("kbkit.stores.snapshots.array_files.check", read.append)
    assert in_files(stored) is not None
    assert not read
    os.utime(path, (1, 1))
    assert in_files(stored) is not None
    assert read == [path]
    stored.snapshots.save(stored.id)  # sweeps
    assert in_files(stored) is not None
    assert read == [path]


LISTS = {
    "empty": lambda values: {},
    "a list": lambda values: [values],
    "other format": lambda values: values | {"format": 0},
    "no segments": lambda values: {k: v for k, v in values.items() if k != "segments"},
    "a path": lambda values: values | {"segments": [{"file": "../a.safetensors", "gone": []}]},
    "summaries that are not there": lambda values: values | {"summaries": "a.safetensors"},
}


@pytest.mark.parametrize("damage", LISTS.values(), ids=LISTS.keys())
def test_damaged_list_is_ignored_and_replaced(stored, damage):
    put(stored, "tea", "a b b", "c a")
    stored.snapshots.save(stored.id)
    path = stored.snapshots._files.path(stored.id)
    values = json.loads(path.read_text())
    values.pop("crc")
    values = damage(values)
    path.write_text(
        json.dumps(values if isinstance(values, list) else values | {"crc": _crc(values)})
    )
    assert in_files(stored) is None
    check(fresh(stored))
    assert in_files(stored) is not None


def segment_file(stored):
    path = stored.snapshots._files.path(stored.id)
    (segment,) = json.loads(path.read_text())["segments"]
    return path.with_name(segment["file"])


def test_files_removed_during_use_are_harmless(stored):
    put(stored, "tea", "a b", "c")
    stored.snapshots.save(stored.id)
    reopened = fresh(stored)
    check(reopened)
    snapshot = reopened.snapshots.renew(stored.id)
    shutil.rmtree(reopened.snapshots.folder)
    put(stored, "milk", "dd")
    check(reopened)
    assert snapshot.vectors_of(np.arange(2)).tolist() == [[3, -0.5], [1, -1.5]]
    reopened.snapshots.save(stored.id)
    check(fresh(stored))


def test_unwritable_folder_is_no_error(stored):
    stored.snapshots.folder.write_text("a file in the way")
    put(stored, "tea", "a")
    stored.snapshots.save(stored.id)
    check(fresh(stored))


def test_reader_gets_a_whole_snapshot_during_saves(stored):
    put(stored, "tea", *"abcdefgh" * 20)
    stored.snapshots.save(stored.id)
    contents = catalog(stored)[1]
    ended = threading.Event()
    failures = []

    def write():
        reader = fresh(stored)
        snapshot = reader.snapshots.renew(stored.id)
        while not ended.is_set():
            alone = [replace(segment, file="") for segment in snapshot.segments]
            reader.snapshots._files.write(stored.id, replace(snapshot, segments=tuple(alone)))

    def read():
        for _ in range(40):
            snapshot = in_files(stored)
            if snapshot is None or contents_of(merge_segments(snapshot.segments)) != contents:
                failures.append(snapshot)

    writers = [threading.Thread(target=write) for _ in range(2)]
    for thread in writers:
        thread.start()
    read()
    ended.set()
    for thread in writers:
        thread.join()
    assert not failures
    hours_ago = time.time() - 7200
    folder = stored.snapshots.folder
    for path in folder.iterdir():
        os.utime(path, (hours_ago, hours_ago))
    stored.snapshots.save(stored.id)
    assert sorted(folder.iterdir()) == sorted(
        [segment_file(stored), stored.snapshots._files.path(stored.id)]
    )


def test_saving_removes_leftovers_of_a_kill(stored):
    put(stored, "tea", "a")
    stored.snapshots.save(stored.id)
    folder = stored.snapshots.folder
    old = [folder / f"{stored.id}.1.part", folder / f"{stored.id}.1.safetensors"]
    new = [folder / f"{stored.id}.2.part", folder / f"{stored.id}.2.safetensors"]
    hours_ago = time.time() - 7200
    for path in (*old, *new, folder / "deleted.safetensors", folder / "deleted.json"):
        path.write_text("{}")
    for path in (*old, *(path for path in folder.iterdir() if path not in new)):
        os.utime(path, (hours_ago, hours_ago))
    stored.snapshots.save(stored.id)
    assert sorted(folder.iterdir()) == sorted(
        [*new, segment_file(stored), stored.snapshots._files.path(stored.id)]
    )


def test_deleted_knowledge_base_leaves_no_file(stored):
    put(stored, "tea", "a")
    stored.snapshots.save(stored.id)
    with stored.database.write() as connection:
        connection.execute(
            knowledge_base_table.delete().where(knowledge_base_table.c.id == stored.id)
        )
    stored.snapshots.drop(stored.id)
    stored.snapshots.drop(stored.id)
    assert list(stored.snapshots.folder.iterdir()) == []
    with pytest.raises(NotFoundError):
        fresh(stored).snapshots.renew(stored.id)


@pytest.mark.local
def test_restored_catalog_has_its_own_history(stored, tmp_path):
    put(stored, "tea", "a", "b")
    stored.database.close()
    copy = shutil.copy(stored.database.path, tmp_path / "copy.db")
    put(stored, "milk", "c", "a")
    put(stored, "rum", "dd")
    stored.snapshots.save(stored.id)
    restored = SqliteDatabase(copy, FolderLocks(tmp_path / "locks"))
    other = view(restored, stored.id, stored.snapshots.folder)
    try:
        put(other, "wine", "b", "b b a")
        check(other)
        put(other, "beer", "a")  # as many changes, as many chunks
        assert catalog(other)[0].version == catalog(stored)[0].version
        check(fresh(other))
        check(other)
        put(other, "gin", "c")
        check(fresh(other))
    finally:
        restored.close()


def test_titles_and_headings_hold_any_text(stored):
    put(stored, "a", "x", title="two\nlines", headings=("two\nlines", "a\nb", "c"))
    put(stored, "b", "x y", title="", headings=("", ""))
    put(stored, "c", "x", title="tea \U0001f375 – été\u2028", headings=())
    check(stored)
    stored.snapshots.save(stored.id)
    assert contents_of(merge_segments(in_files(stored).segments)) == catalog(stored)[1]


def test_nul_in_a_title_or_heading_shifts_nothing(stored):
    put(stored, "a", "x", title="nul\0nul\0", headings=("\0", "a\0b"))
    put(stored, "b", "y", title="after", headings=("after", "under"))
    stored.snapshots.save(stored.id)
    contents = catalog(stored)[1]
    first, second = contents_of(merge_segments(in_files(stored).segments))
    assert (first["title"], first["heading"]) == ("nul nul ", "  > a b")
    assert second == contents[1]


def test_odd_knowledge_bases(stored):
    snapshot = stored.snapshots.renew(stored.id)
    assert (len(snapshot), snapshot.average_length) == (0, 0)
    put(stored, "without chunks")
    assert len(stored.snapshots.renew(stored.id)) == 0
    put(stored, "without terms", "")
    assert not check(stored).vectors.any()
    put(stored, "many", "a " * 70_000 + "b")
    snapshot = check(stored)
    numbers = snapshot.numbers(["a", "zebra", ""])
    assert list(numbers) == ["a"]
    assert snapshot.postings(numbers["a"])[1].tolist() == [65_535]
    for name in ("without terms", "many"):
        stored.snapshots.save(stored.id)
        stored = fresh(stored)
        check(stored)
        remove(stored, name)
    assert len(stored.snapshots.renew(stored.id)) == 0


def test_rows_of_skips_unknown_ids(stored):
    put(stored, "tea", "a", "b")
    snapshot = check(stored)
    assert snapshot.rows_of([snapshot.ids[1], "gone", snapshot.ids[0]]).tolist() == [1, 0]
    assert snapshot.rows_of([]).tolist() == []
