"""The cost of a write or a list does not grow with other content."""

import re
import threading
from contextlib import contextmanager

import pytest
import sqlalchemy as sa

import kbkit
from kbkit import placed_yaml
from kbkit.entries import skill_file
from kbkit.knowledge_base import handle_of, improving
from kbkit.retrieval import query, retriever
from kbkit.stores.catalog import summaries
from kbkit.workspace import stores_of


@contextmanager
def statements(workspace):
    """Collect the SQL statements of a block."""
    engine, collected = stores_of(workspace).database._engine, []

    def note(*arguments):
        if not arguments[2].startswith("BEGIN"):
            collected.append(arguments[2])

    sa.event.listen(engine, "before_cursor_execute", note)
    yield collected
    sa.event.remove(engine, "before_cursor_execute", note)


def test_append_cost_does_not_grow_with_other_files(workspace):
    files, counts = workspace.files, []
    files.write("notes/a.md", "# A\n\nOne.\n")
    for others in (3, 12):
        for n in range(others):
            files.write(f"notes/{others}-{n}.md", f"# Other {n}\n\nSays {n}.\n")
        files.append("notes/a.md", "Two.")
        with statements(workspace) as asked:
            files.append("notes/a.md", "Three.")
        counts.append(len(asked))
    assert counts[0] == counts[1] < 130


def test_update_does_not_count_all_documents(workspace):
    kb = workspace.create("drinks")
    kb.add("Tea", "Steep it.")
    judged = query._judged_english.cache_info().currsize
    with statements(workspace) as asked:
        kb.documents.update("text:Tea", tags=["hot"])
    assert judged
    assert len(asked) < 110
    assert not [each for each in asked if "count(distinct" in each.lower()]  # as `info` does


def test_repeated_search_reads_nothing_until_a_change(workspace):
    kb = workspace.create("drinks")
    kb.add("Tea", "Steep it.")
    kb.search("steep")
    with statements(workspace) as asked:
        assert [hit.chunk.text for hit in kb.search("steep")] == ["Steep it."]
    assert asked == []
    kb.documents.update("text:Tea", content="Steep it for three minutes.")
    assert [hit.chunk.text for hit in kb.search("steep")] == ["Steep it for three minutes."]
    kb.documents.delete("text:Tea")
    assert not kb.search("steep")


def test_list_takes_as_many_statements_for_many_knowledge_bases_as_for_one(workspace):
    counts = []
    for number in range(4):
        workspace.create(f"kb-{number}").add("Tea", "Steep it.")
        with statements(workspace) as asked:
            listed = workspace.list()
        counts.append(len(asked))
        assert listed == [workspace[name].info() for name in workspace]
    assert [info.documents for info in listed] == [1] * 4
    assert set(counts) == {counts[0]}


@pytest.mark.parametrize("room", ["documents", "files", "entries"])
def test_adding_a_document_walks_over_no_others(workspace, room):
    kb, plans = workspace.create("drinks"), set()
    add = {
        "documents": lambda name: kb.add(name, "Cool it."),
        "files": lambda name: workspace.files.write(f"{name}.md", "Cool it."),
        "entries": lambda name: workspace.entries.create(name, prompt="Cool it."),
    }[room]
    add("Tea")

    def explain(connection, cursor, statement, parameters, context, many):
        if statement.startswith("SELECT") and "LIMIT" not in statement and not many:
            cursor.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
            plans.update(row[3] for row in cursor.fetchall())

    engine = stores_of(workspace).database._engine
    sa.event.listen(engine, "before_cursor_execute", explain)
    add("Milk")
    sa.event.remove(engine, "before_cursor_execute", explain)
    walks = re.compile(r"(?:SCAN|SEARCH) (?:documents|summar\w+)\b(?:.*\(kb_id=\?\)|(?!.*=)).*")
    assert plans
    assert not [plan for plan in plans if walks.fullmatch(plan)]


def test_first_added_document_of_a_process_makes_up_for_lost_summaries(workspace):
    kb, stores = workspace.create("drinks"), stores_of(workspace)
    for drink in ("Tea", "Milk"):
        kb.add(drink, f"Serve the {drink}.")
    with stores.database.write() as transaction:  # as if the process was killed before
        summaries.remove(transaction, [kb.documents["text:Tea"].id])
    stores.later.complete.clear()  # as in a new process
    kb.add("Water", "Drink it cold.")
    assert kb.info().summaries_waiting == 0


def test_vote_reads_its_lines_once_and_stores_no_document(workspace):
    entries = workspace.entries
    entries.create("Parse logs", slug="logs", prompt="Parse them.")
    for n in range(3):
        entries.rate("logs", 4, rater=f"r{n}")
    before = workspace["entries"].info(), skill_file._read_vote.cache_info().misses
    parsed = placed_yaml._read_once.cache_info().misses
    with statements(workspace) as asked:
        assert entries.rate("logs", 5, rater="ann").rating.count == 4
    assert skill_file._read_vote.cache_info().misses == before[1] + 1
    assert placed_yaml._read_once.cache_info().misses == parsed
    assert workspace["entries"].info() == before[0]
    assert len(asked) < 40


def test_gathered_chunks_are_indexed_together(tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        kb = workspace.create("drinks")
        kb.add("Tea", "Steep green leaves.")
        assert kb.info().pending == 0
        vectors = stores_of(workspace).vectors
        vectors.gather()
        for drink in ("Coffee", "Milk"):
            kb.add(drink, f"How to serve {drink} to guests.")
        assert kb.info().pending == 2
        assert kb.search("coffee for guests", mode="dense")[0].title == "Coffee"
        kb.documents.delete("text:Milk")  # a deletion writes everything
        assert kb.info().pending == 0
        kb.add("Water", "Drink it cold.")
        assert kb.info().pending == 1
    with kbkit.open(tmp_path / "kb") as workspace:
        assert workspace["drinks"].info().pending == 0
        assert stores_of(workspace).vectors._store.count(workspace["drinks"].info().collection) == 3


def test_gathering_delays_summaries_and_annotations(workspace, monkeypatch):
    monkeypatch.setattr("kbkit.stores.stores._SECONDS", 3600.0)
    kb, stores = workspace.create("drinks"), stores_of(workspace)
    kb.add("Milk", "Drink it warm.")
    stores.gather()
    done = []
    improve = improving.Improving._improve_few
    monkeypatch.setattr(
        improving.Improving, "_improve_few", lambda it, ids: done.append(improve(it, ids))
    )
    for drink in ("Tea", "Coffee"):
        kb.add(drink, f"How to serve `{drink}` to guests.")
    assert kb.search("coffee for guests")[0].title == "Coffee"
    waiting = kb.info()
    assert (waiting.summaries_waiting, waiting.annotations_waiting, done) == (2, 2, [])
    stores.gather(more=False)
    level = kb.info()
    assert (level.summaries_waiting, level.annotations_waiting, len(done)) == (0, 0, 1)
    kb.add("Water", "Drink it cold.")
    assert kb.info().summaries_waiting == 0


def test_full_batch_is_indexed_at_once(workspace, monkeypatch):
    monkeypatch.setattr("kbkit.stores.vector_index._MIN_CHANGES", 3)
    kb = workspace.create("drinks")
    vectors = stores_of(workspace).vectors
    vectors.gather()
    pending = []
    for n in range(4):
        kb.add(f"Drink {n}", f"How to serve number {n}.")
        pending.append(kb.info().pending)
    assert pending == [1, 2, 0, 1]
    vectors.gather(more=False)
    assert kb.info().pending == 0


@pytest.mark.parametrize("size", [10, placed_yaml._MAX_CACHED_LENGTH + 10])
def test_long_texts_are_not_cached(size):
    misses = placed_yaml._read_once.cache_info().misses
    text = f"title: {'x' * size}{size}\n"
    assert placed_yaml.read_yaml(text).values == placed_yaml.read_yaml(text).values
    assert placed_yaml._read_once.cache_info().misses == misses + (size == 10)


def test_searches_wait_for_a_slot_and_release_it(monkeypatch):
    monkeypatch.setattr(retriever, "_MAX_SECONDS", 5.0)
    inside, most, mutex = [], [], threading.Lock()
    all_there = threading.Barrier(6)

    def compute():
        all_there.wait(10)
        with retriever.search_slot():
            with mutex:
                inside.append(1)
                most.append(len(inside))
            with mutex:
                inside.pop()

    threads = [threading.Thread(target=compute) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(most) == 6
    assert max(most) == 1
    assert not retriever._turn.locked()


def test_improving_starts_one_process_for_many_documents(workspace, monkeypatch):
    started, again = [], threading.Event()

    def start(_):
        started.append(1)
        again.set()

    monkeypatch.setattr(improving.Improving, "_start", start)
    stores_of(workspace).vectors.gather()
    at_work = improving.Improving(handle_of(workspace.create("drinks")))
    for _ in range(5):
        at_work._start_with_pause()
    assert again.wait(10)
    assert len(started) == 1
    at_work._start_with_pause()
    timer = improving._timers.pop(workspace.path)
    assert 0 < timer.interval <= improving._PAUSE
    timer.cancel()
