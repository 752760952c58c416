"""The Chroma collection follows the catalog despite kills and damage."""

import shutil
import sqlite3
import threading
from contextlib import contextmanager

import pytest

import kbkit
from kbkit.errors import ConflictError
from kbkit.stores.backend import FolderLocks
from kbkit.stores.catalog import knowledge_bases
from tests.stores.workspaces import DRINKS, fill, ranked
from tests.waiting import until

ALL_DRINKS = [*DRINKS, "fresh water", "apple juice", "hot chocolate", "ginger beer", "tonic"]
pytestmark = [pytest.mark.local, pytest.mark.usefixtures("index_asked")]


@pytest.fixture
def folder(tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        fill(workspace, ALL_DRINKS)
    return tmp_path / "kb"


def sql(folder, *statements):
    with sqlite3.connect(folder / "catalog.db") as connection:
        for statement in statements:
            connection.execute(statement)


@contextmanager
def chroma(folder):
    import chromadb

    settings = chromadb.config.Settings(anonymized_telemetry=False)
    client = chromadb.PersistentClient(str(folder / "chroma"), settings=settings)
    yield client
    client.close()


def collection_ids(folder):
    with chroma(folder) as client:
        return {
            each.name: sorted(
                client.get_collection(each.name, embedding_function=None).get(include=[])["ids"]
            )
            for each in client.list_collections()
        }


def state(folder):
    """Name of the collection, ids of its chunks, and number of pending changes."""
    with kbkit.open(folder) as workspace:
        kb = workspace["drinks"]
        info = kb.info()
        return info.collection, sorted(chunk.id for chunk in kb.chunks), info.pending


@contextmanager
def busy(folder):
    """Hold the lock of the Chroma folder for a minute at most; yield whether it still is held."""
    is_held, release = threading.Event(), threading.Event()

    def hold():
        with FolderLocks(folder / "locks").hold("chroma", wait=10):
            is_held.set()
            release.wait(60)
            is_held.clear()

    thread = threading.Thread(target=hold)
    thread.start()
    assert is_held.wait(60)
    try:
        yield is_held.is_set
    finally:
        release.set()
        thread.join()


def test_outbox_entries_can_be_applied_twice(folder):
    """As if a process died after Chroma's write and before the commit."""
    sql(
        folder,
        "INSERT INTO outbox(kb_id, chunk_seq, chunk_id) SELECT kb_id, seq, id FROM chunks",
        "INSERT INTO outbox(kb_id, chunk_seq, chunk_id) SELECT kb_id, NULL, 'gone' FROM chunks",
        "UPDATE knowledge_bases SET applied_seq = 0",
    )
    with kbkit.open(folder) as workspace:
        kb = workspace["drinks"]
        assert kb.info().pending == 2 * len(ALL_DRINKS)
        assert ranked(kb, "serve red wine")[0] == "red wine"
        kb.add("mate", "# mate\n\nHow to serve mate.\n")  # applies what is pending
        assert kb.info().pending == 0
        assert len(ranked(kb, "serve", 50)) == len(ALL_DRINKS) + 1
    collection, ids, _ = state(folder)
    assert collection_ids(folder) == {collection: ids}


def test_deletion_missed_by_chroma_is_applied_later(folder):
    """As if a process died after the commit and before Chroma's write."""
    with kbkit.open(folder) as workspace:
        kb = workspace["drinks"]
        this = f"id = '{kb.search('rum', mode='lexical')[0].chunk.id}'"
        sql(
            folder,
            "INSERT INTO outbox(kb_id, chunk_seq, chunk_id) "
            f"SELECT kb_id, NULL, id FROM chunks WHERE {this}",
            f"DELETE FROM vectors WHERE chunk_seq IN (SELECT seq FROM chunks WHERE {this})",
            f"DELETE FROM chunks WHERE {this}",
            "UPDATE knowledge_bases SET version = version + 1",
        )
        assert "rum" not in ranked(kb, "rum", 50)
        kb.documents.delete("text:rum")
    collection, ids, pending = state(folder)
    assert len(ids) == len(ALL_DRINKS) - 1
    assert (collection_ids(folder), pending) == ({collection: ids}, 0)


def lose_a_vector(folder):
    with chroma(folder) as client:
        (listed,) = client.list_collections()
        collection = client.get_collection(listed.name, embedding_function=None)
        collection.delete(ids=collection.get(include=[])["ids"][:1])


def lose_the_collection(folder):
    with chroma(folder) as client:
        (listed,) = client.list_collections()
        client.delete_collection(listed.name)


def lose_the_folder(folder):
    shutil.rmtree(folder / "chroma")


def lose_the_files(folder):
    for path in (folder / "chroma").rglob("*"):
        if path.is_file():
            path.unlink()


def damage_the_database(folder):
    (folder / "chroma" / "chroma.sqlite3").write_bytes(b"not a database " * 500)


def empty_the_database(folder):
    (folder / "chroma" / "chroma.sqlite3").write_bytes(b"")


@pytest.mark.parametrize(
    "damage",
    [
        lose_a_vector,
        lose_the_collection,
        lose_the_folder,
        lose_the_files,
        damage_the_database,
        empty_the_database,
    ],
)
def test_damaged_collection_is_rebuilt_from_the_catalog(folder, damage):
    damage(folder)
    with kbkit.open(folder) as workspace:
        kb = workspace["drinks"]
        for drink in ALL_DRINKS:
            assert ranked(kb, f"serve {drink}")[0] == drink
        assert kb.info().pending == 0
    collection, ids, _ = state(folder)
    assert len(ids) == len(ALL_DRINKS)
    assert collection_ids(folder) == {collection: ids}


def test_two_workspaces_of_one_process_share_documents(folder):
    one, two = kbkit.open(folder), kbkit.open(folder)
    try:
        assert ranked(two["drinks"], "rum")[0] == "rum"
        one["drinks"].add("mate", "Mate is drunk from a gourd.")
        assert ranked(two["drinks"], "mate gourd")[0] == "mate"
        two["drinks"].add("kvass", "Kvass is made of bread.")
        assert ranked(one["drinks"], "kvass bread")[0] == "kvass"
        one["drinks"].documents.delete("text:mate")
        assert "mate" not in ranked(two["drinks"], "mate gourd", 50)
        one.close()
        two["drinks"].add("cola", "Cola fizzes.")
        assert ranked(two["drinks"], "cola fizzes")[0] == "cola"
    finally:
        two.close()


def test_sweep_drops_only_collections_of_deleted_knowledge_bases(folder):
    with kbkit.open(folder) as workspace:
        workspace.create("food").add("bread", "Bake it.")
        resources = workspace._stores
        with resources.database.write() as connection:  # like a kill before the sweep
            knowledge_bases.delete(connection, workspace["food"].id)
    assert len(collection_ids(folder)) == 2
    with kbkit.open(folder) as workspace:  # opening sweeps
        kept = workspace["drinks"].info().collection
        workspace._stores.vectors.sweep()  # nothing left to do
        assert ranked(workspace["drinks"], "rum")[0] == "rum"
    assert list(collection_ids(folder)) == [kept]


def test_search_does_not_wait_for_a_writer(folder):
    with busy(folder) as still, kbkit.open(folder) as workspace:
        for drink in DRINKS[:3]:
            assert ranked(workspace["drinks"], f"serve {drink}")[0] == drink
        assert still()


def test_search_does_not_wait_for_a_waiting_writer(folder):
    with kbkit.open(folder) as workspace:
        kb = workspace["drinks"]
        ranked(kb, "anything")
        with busy(folder) as still:
            waiting = threading.Thread(target=kb.add, args=("mate", "Drunk from a gourd."))
            waiting.start()
            until(lambda: not still() or kb.info().pending)
            assert ranked(kb, "gourd")[0] == "mate"
            assert still()
        waiting.join()
        assert kb.info().pending == 0


def test_ranking_is_equal_with_and_without_chroma(folder):
    queries = ["hot tea for guests", "cold juice", "serve wine", "chocolate milk"]
    with kbkit.open(folder) as workspace:
        kb = workspace["drinks"]
        by_chroma = [ranked(kb, query, 50) for query in queries]
    with busy(folder), kbkit.open(folder) as workspace:
        by_catalog = [ranked(workspace["drinks"], query, 50) for query in queries]
    with kbkit.open(folder) as workspace:
        kb = workspace["drinks"]
        workspace._stores.vectors.open(kb.id)
        seqs = workspace._stores.vectors._seqs
        seqs[kb.info().collection] //= 2
        by_both = [ranked(kb, query, 50) for query in queries]
    assert by_chroma == by_catalog == by_both
    assert {len(titles) for titles in by_chroma} == {len(ALL_DRINKS)}


def test_deletion_does_not_wait_and_the_next_open_completes_it(tmp_path):
    with kbkit.open(tmp_path) as workspace:
        workspace.create("notes").add("Tea", "Steep for three minutes.")
        name = workspace["notes"].info().collection
        with busy(tmp_path) as still:
            workspace.delete("notes")
            assert still()
        assert name in collection_ids(tmp_path)
    with kbkit.open(tmp_path):
        assert name not in collection_ids(tmp_path)


def test_index_has_one_writer_at_a_time(folder):
    """Two concurrent writers would both apply the same entries."""
    with kbkit.open(folder) as workspace:
        kb, vectors = workspace["drinks"], workspace._stores.vectors
        vectors.gather()  # additions stay pending
        kb.add("mate", "Drunk from a gourd.")
        with busy(folder), pytest.raises(ConflictError):
            vectors.apply(kb.id, wait=0)
        assert kb.info().pending == 1
        assert vectors.apply(kb.id) == 1


def test_changes_of_other_knowledge_bases_stay_pending(folder):
    with kbkit.open(folder) as workspace:
        first, second = workspace["drinks"], workspace.create("more")
        index = workspace._stores.vectors
        index.gather()
        first.add("kvass", "# kvass\n\nBread that is drunk.\n")
        second.add("mate", "# mate\n\nLeaves that are drunk.\n")
        index.apply(second.id)
        assert [pending_of(folder, each.id) for each in (first, second)] == [1, 0]
        index.apply(first.id)
        assert pending_of(folder, first.id) == 0


def pending_of(folder, kb_id):
    with sqlite3.connect(folder / "catalog.db") as connection:
        query = "SELECT count(*) FROM outbox WHERE kb_id = ?"
        return connection.execute(query, (kb_id,)).fetchone()[0]
