"""Several processes use one workspace at once."""

import multiprocessing
import sqlite3
import time

import pytest

import kbkit
from kbkit.errors import ConflictError

DOCUMENTS = 80


def ingest(folder, done):
    try:
        with kbkit.open(folder) as workspace:
            kb = workspace["shared"]
            for n in range(DOCUMENTS):
                kb.add(f"Number {n}", f"# Number {n}\n\nThe number {n} is called nr{n}x.\n")
    finally:
        done.set()


def search_and_rate(folder, rater, done, results):
    """Search for the newest documents and rate what is found until the ingest has ended."""
    ratings = searches = 0
    try:
        with kbkit.open(folder) as workspace:
            kb = workspace["shared"]
            while True:
                last = done.is_set()
                count = kb.info().documents
                for mode in ("hybrid", "dense", "lexical"):
                    newest = count - 1
                    hits = kb.search(f"number nr{newest}x", limit=5, mode=mode)
                    searches += 1
                    if mode != "dense":  # what others committed is seen at once
                        assert hits[0].title == f"Number {newest}", (mode, newest, hits[0])
                kb.rate(hits[0].chunk.id, 1 + searches % 5, rater=rater)
                ratings += 1
                if last:
                    break
        results.put((rater, ratings, searches, ""))
    except BaseException as error:
        results.put((rater, ratings, searches, repr(error)))
        raise


@pytest.mark.soak
def test_two_search_and_rate_while_a_third_ingests(tmp_path):
    with kbkit.open(tmp_path) as workspace:
        workspace.create("shared").add("Number 0", "# Number 0\n\nThe number 0 is called nr0x.\n")
    context = multiprocessing.get_context("spawn")
    done, results = context.Event(), context.Queue()
    workers = [
        context.Process(target=search_and_rate, args=(tmp_path, rater, done, results))
        for rater in ("ann", "bob")
    ]
    workers.append(context.Process(target=ingest, args=(tmp_path, done)))
    for worker in workers:
        worker.start()
    outcomes = [results.get(timeout=200) for _ in range(2)]
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    assert [outcome[3] for outcome in outcomes] == ["", ""]
    with kbkit.open(tmp_path) as workspace:
        kb = workspace["shared"]
        assert kb.info().documents == DOCUMENTS
        assert kb.info().pending == 0
        counts = kb.ratings.to_frame().groupby("rater").size().to_dict()
        assert counts == {rater: ratings for rater, ratings, _, _ in outcomes}
        assert kb.search(f"nr{DOCUMENTS - 1}x")[0].title == f"Number {DOCUMENTS - 1}"
    with sqlite3.connect(tmp_path / "catalog.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def open_at_once(folder, barrier, results):
    barrier.wait(60)
    try:
        with kbkit.open(folder) as workspace:
            results.put(len(workspace))
    except BaseException as error:
        results.put(repr(error))


def test_a_new_workspace_may_be_opened_by_several_at_once(tmp_path):
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(3), context.Queue()
    workers = [
        context.Process(target=open_at_once, args=(tmp_path / "kb", barrier, results))
        for _ in range(3)
    ]
    for worker in workers:
        worker.start()
    assert [results.get(timeout=100) for _ in workers] == [0, 0, 0]
    for worker in workers:
        worker.join(30)


def hold_source(folder, lines, started, release):
    with kbkit.open(folder) as workspace:

        def wait(_):
            started.set()
            release.wait(60)

        workspace["shared"].ingest(kbkit.JsonlSource(path=lines), on_progress=wait)


def test_a_source_is_read_by_one_process_at_a_time(tmp_path):
    lines = tmp_path / "lines.jsonl"
    lines.write_text('{"uri": "a", "title": "A", "text": "Apples."}\n')
    with kbkit.open(tmp_path / "kb") as workspace:
        kb = workspace.create("shared")
        context = multiprocessing.get_context("spawn")
        started, release = context.Event(), context.Event()
        other = context.Process(
            target=hold_source, args=(tmp_path / "kb", str(lines), started, release)
        )
        other.start()
        assert started.wait(60)
        start = time.monotonic()
        with pytest.raises(ConflictError, match=r"lines\.jsonl"):
            kb.ingest(kbkit.JsonlSource(path=str(lines)))
        assert time.monotonic() - start < 5
        release.set()
        other.join(60)
        assert other.exitcode == 0
        assert kb.info().documents == 1
