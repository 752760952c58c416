"""Several processes use one workspace at once."""

import logging
import multiprocessing
import os
import re
import sqlite3
import traceback
from collections import Counter
from functools import partial

import pytest

import kbkit
from kbkit.errors import ConflictError


def started(context, *calls):
    workers = [context.Process(target=target, args=args) for target, *args in calls]
    for worker in workers:
        worker.start()
    return workers


SLOTS = 100
"""Documents that are replaced in turn, so that the knowledge base keeps its size."""
SECONDS = int(os.environ.get("KBKIT_SOAK_SECONDS", "300"))


class Board:
    """What processes have committed so far."""

    def __init__(self, context):
        self.stop = context.Event()
        self.results = context.Queue()
        self.begun = context.Barrier(6)
        self.documents, self.ratings, self.files = (context.Value("q", 0) for _ in range(3))


def at_work(folder, board, name, begin):
    """Repeat the step of a process until all stop; report counts and errors."""
    counts, error = Counter(), ""
    messages = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: messages.append(record.getMessage())
    logging.getLogger().addHandler(handler)
    try:
        with kbkit.open(folder) as workspace:
            step = begin(workspace, board, counts)
            board.begun.wait(300)
            while not board.stop.is_set():
                step()
    except BaseException as failure:
        error = f"{failure!r}\n{traceback.format_exc()}"
        board.stop.set()
    board.results.put((name, dict(counts), error, [each for each in messages if "locked" in each]))


def ingesting(workspace, board, counts):
    kb = workspace["shared"]

    def step():
        ratings = board.ratings.value
        number = board.documents.value
        title = f"Number {number % SLOTS}"
        kb.add(title, f"# {title}\n\nThe number {number} is called nr{number}x.\n")
        board.documents.value = number + 1
        assert len(kb.ratings) >= ratings
        counts["documents"] += 1

    return step


def rating_and_writing(workspace, board, counts):
    kb = workspace["shared"]

    def step():
        newest = board.documents.value - 1
        assert kb.documents[f"text:Number {newest % SLOTS}"].title == f"Number {newest % SLOTS}"
        number = board.ratings.value
        target = kb.documents[f"text:Number {number % SLOTS}"].id
        kb.rate(target, 1 + number % 5, rater=f"rater {number}")
        board.ratings.value = number + 1
        workspace.files.write(f"notes/{number % 20}.md", f"# Note\n\nWritten {number} times.\n")
        board.files.value = number + 1
        counts["ratings"] += 1
        counts["files"] += 1

    return step


def searching(mode, workspace, board, counts):
    kb = workspace["shared"]

    def step():
        documents, ratings, files = board.documents.value, board.ratings.value, board.files.value
        newest = documents - 1
        hits = kb.search(f"number nr{newest}x", limit=5, mode=mode)
        if board.documents.value < documents + SLOTS:  # else it was replaced meanwhile
            assert f"nr{newest}x" in hits[0].chunk.text, (newest, hits[0].chunk.text)
            counts["found at once"] += 1
        assert len(kb.ratings) >= ratings
        if files:
            text = workspace.files.read(f"notes/{(files - 1) % 20}.md")
            assert int(text.split("Written ")[1].split()[0]) >= files - 1
        counts["searches"] += 1

    return step


def exporting(workspace, board, counts):
    kb = workspace["shared"]
    folder = workspace.path.with_name("site")

    def step():
        newest = board.documents.value - 1
        kb.export(folder=folder, build=False)
        pages = [path.read_text("utf-8") for path in folder.rglob("*.md")]
        numbers = [int(each) for page in pages for each in re.findall(r"nr(\d+)x", page)]
        assert max(numbers, default=-1) >= newest, (newest, numbers)
        counts["exports"] += 1

    return step


@pytest.mark.soak
@pytest.mark.timeout(SECONDS + 600)
def test_five_processes_see_commits_of_each_other_at_once(tmp_path, capsys):
    folder = tmp_path / "kb"
    with kbkit.open(folder) as workspace:
        kb = workspace.create("shared")
        for number in range(SLOTS):
            kb.add(f"Number {number}", f"# Number {number}\n\nIt is called nr{number}x.\n")
    context = multiprocessing.get_context("spawn")
    board = Board(context)
    board.documents.value = SLOTS
    work = {
        "hybrid search": partial(searching, "hybrid"),
        "lexical search": partial(searching, "lexical"),
        "ingest": ingesting,
        "ratings and files": rating_and_writing,
        "export": exporting,
    }
    workers = started(context, *((at_work, folder, board, *each) for each in work.items()))
    board.begun.wait(300)
    board.stop.wait(SECONDS)
    board.stop.set()
    outcomes = sorted(board.results.get(timeout=300) for _ in workers)
    for worker in workers:
        worker.join(60)
    with capsys.disabled():
        print("\n" + "\n".join(f"{name}: {counts}" for name, counts, _, _ in outcomes))
    assert [(name, error, locked) for name, _, error, locked in outcomes] == [
        (name, "", []) for name in sorted(work)
    ]
    with kbkit.open(folder) as workspace:
        kb = workspace["shared"]
        assert kb.info().documents == SLOTS
        assert len(kb.ratings) == board.ratings.value
        newest = board.documents.value - 1
        assert f"nr{newest}x" in kb.search(f"nr{newest}x", limit=1)[0].chunk.text
    with sqlite3.connect(folder / "catalog.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def open_at_once(folder, barrier, results):
    barrier.wait(60)
    try:
        with kbkit.open(folder) as workspace:
            results.put(len(workspace))
    except BaseException as error:
        results.put(repr(error))


@pytest.mark.slow
def test_several_processes_create_one_workspace(tmp_path):
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(3), context.Queue()
    workers = started(context, *[(open_at_once, tmp_path / "kb", barrier, results)] * 3)
    assert [results.get(timeout=100) for _ in workers] == [0, 0, 0]
    for worker in workers:
        worker.join(30)


def hold_source(folder, lines, reading, release):
    with kbkit.open(folder) as workspace:

        def wait(_):
            reading.set()
            release.wait(60)

        workspace["shared"].ingest(kbkit.JsonlSource(path=lines), on_progress=wait)


@pytest.mark.slow
def test_source_is_read_by_one_process_at_a_time(tmp_path):
    lines = tmp_path / "lines.jsonl"
    lines.write_text('{"uri": "a", "title": "A", "text": "Apples."}\n')
    with kbkit.open(tmp_path / "kb") as workspace:
        kb = workspace.create("shared")
        context = multiprocessing.get_context("spawn")
        reading, release = context.Event(), context.Event()
        (other,) = started(context, (hold_source, tmp_path / "kb", str(lines), reading, release))
        assert reading.wait(60)
        with pytest.raises(ConflictError, match=r"lines\.jsonl"):
            kb.ingest(kbkit.JsonlSource(path=str(lines)))
        release.set()
        other.join(60)
        assert other.exitcode == 0
        assert kb.info().documents == 1
