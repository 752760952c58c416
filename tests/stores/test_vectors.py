"""The Chroma collection follows the catalog, whatever happened to either."""

import shutil
import sqlite3
import threading
from contextlib import contextmanager

import pytest

import kbkit
from kbkit.errors import ConflictError
from kbkit.stores.catalog import knowledge_bases
from kbkit.stores.locks import FolderLocks
from tests.waiting import until

DRINKS = [
    "green tea",
    "black coffee",
    "cold milk",
    "red wine",
    "fresh water",
    "apple juice",
    "hot chocolate",
    "ginger beer",
    "rum",
    "tonic",
]


pytestmark = pytest.mark.local


@pytest.fixture(autouse=True)
def large(monkeypatch):
    """No search waits for a snapshot, as if there were too many chunks."""
    monkeypatch.setattr("kbkit.retrieval.retriever._SMALL", 0)


@pytest.fixture
def folder(tmp_path):
    """A workspace with one knowledge base, closed."""
    with kbkit.open(tmp_path / "kb") as workspace:
        kb = workspace.create("drinks")
        for drink in DRINKS:
            kb.add(drink, f"# {drink}\n\nHow to serve {drink} to guests.\n")
    return tmp_path / "kb"


def sql(folder, *statements):
    with sqlite3.connect(folder / "catalog.db") as connection:
        for statement in statements:
            connection.execute(statement)


@contextmanager
def chroma(folder):
    """Chroma's own client on a closed workspace."""
    import chromadb

    settings = chromadb.config.Settings(anonymized_telemetry=False)
    client = chromadb.PersistentClient(str(folder / "chroma"), settings=settings)
    yield client
    client.close()


def collection_ids(folder):
    """Ids in each collection."""
    with chroma(folder) as client:
        return {
            found.name: sorted(
                client.get_collection(found.name, embedding_function=None).get(include=[])["ids"]
            )
            for found in client.list_collections()
        }


def state(folder):
    """Name of the collection, ids of the chunks that it should hold, and what is pending."""
    with kbkit.open(folder) as workspace:
        kb = workspace["drinks"]
        info = kb.info()
        return info.collection, sorted(chunk.id for chunk in kb.chunks), info.pending


def ranked(kb, query, limit=10):
    return [hit.title for hit in kb.search(query, limit=limit, mode="dense")]


@contextmanager
def busy(folder):
    """Somebody else holds the lock of the Chroma folder; tells whether they still do.

    They do for as long as the test needs, but for a minute at most: who waits comes too late.
    """
    held, release = threading.Event(), threading.Event()

    def hold():
        with FolderLocks(folder / "locks").hold("chroma", wait=10):
            held.set()
            release.wait(60)
            held.clear()

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(60)
    try:
        yield held.is_set
    finally:
        release.set()
        thread.join()


def test_entries_that_were_applied_before_a_kill_are_harmless_to_apply_again(folder):
    """Chroma has it all, and the process died before the catalog said so."""
    sql(
        folder,
        "INSERT INTO outbox(kb_id, chunk_seq, chunk_id) SELECT kb_id, seq, id FROM chunks",
        "INSERT INTO outbox(kb_id, chunk_seq, chunk_id) SELECT kb_id, NULL, 'gone' FROM chunks",
        "UPDATE knowledge_bases SET applied_seq = 0",
    )
    with kbkit.open(folder) as workspace:
        kb = workspace["drinks"]
        assert kb.info().pending == 2 * len(DRINKS)
        assert ranked(kb, "serve red wine")[0] == "red wine"
        kb.add("mate", "# mate\n\nHow to serve mate.\n")  # applies what is pending
        assert kb.info().pending == 0
        assert len(ranked(kb, "serve", 50)) == len(DRINKS) + 1
    collection, ids, _ = state(folder)
    assert collection_ids(folder) == {collection: ids}


def test_a_deletion_that_chroma_missed_is_made_up_for(folder):
    """The catalog lost a document, and the process died before Chroma heard of it."""
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
    assert len(ids) == len(DRINKS) - 1
    assert (collection_ids(folder), pending) == ({collection: ids}, 0)


def lose_a_vector(folder):
    with chroma(folder) as client:
        (found,) = client.list_collections()
        collection = client.get_collection(found.name, embedding_function=None)
        collection.delete(ids=collection.get(include=[])["ids"][:1])


def lose_the_collection(folder):
    with chroma(folder) as client:
        (found,) = client.list_collections()
        client.delete_collection(found.name)


def lose_the_folder(folder):
    shutil.rmtree(folder / "chroma")


def damage_the_database(folder):
    (folder / "chroma" / "chroma.sqlite3").write_bytes(b"not a database " * 500)


@pytest.mark.parametrize(
    "damage", [lose_a_vector, lose_the_collection, lose_the_folder, damage_the_database]
)
def test_a_damaged_collection_is_built_anew_from_the_catalog(folder, damage):
    damage(folder)
    with kbkit.open(folder) as workspace:
        kb = workspace["drinks"]
        for drink in DRINKS:
            assert ranked(kb, f"serve {drink}")[0] == drink
        assert kb.info().pending == 0
    collection, ids, _ = state(folder)
    assert len(ids) == len(DRINKS)
    assert collection_ids(folder) == {collection: ids}


def test_two_workspaces_of_one_process_see_each_others_documents(folder):
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


def test_sweeping_drops_the_collections_of_deleted_knowledge_bases_only(folder):
    with kbkit.open(folder) as workspace:
        workspace.create("food").add("bread", "Bake it.")
        resources = workspace._stores
        with resources.database.write() as connection:  # and killed before the sweep
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


def test_search_does_not_wait_for_a_thread_that_waits_for_a_writer(folder):
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


def test_what_chroma_does_not_know_ranks_as_if_it_did(folder):
    """Chroma's ranking, the exact one from the catalog, and half of each are the same."""
    queries = ["hot tea for guests", "cold juice", "serve wine", "chocolate milk"]
    with kbkit.open(folder) as workspace:
        kb = workspace["drinks"]
        by_chroma = [ranked(kb, query, 50) for query in queries]
    with busy(folder), kbkit.open(folder) as workspace:
        by_catalog = [ranked(workspace["drinks"], query, 50) for query in queries]
    with kbkit.open(folder) as workspace:
        kb = workspace["drinks"]
        workspace._stores.vectors.open(kb.id)
        known = workspace._stores.vectors._state.seqs
        known[kb.info().collection] //= 2
        by_both = [ranked(kb, query, 50) for query in queries]
    assert by_chroma == by_catalog == by_both
    assert {len(titles) for titles in by_chroma} == {len(DRINKS)}


def test_a_deletion_does_not_wait_for_another_writer_and_is_completed_by_the_next_open(tmp_path):
    with kbkit.open(tmp_path) as workspace:
        workspace.create("notes").add("Tea", "Steep for three minutes.")
        name = workspace["notes"].info().collection
        with busy(tmp_path) as still:
            workspace.delete("notes")
            assert still()
        assert name in collection_ids(tmp_path)
    with kbkit.open(tmp_path):
        assert name not in collection_ids(tmp_path)


def test_who_writes_to_the_index_waits_for_who_does(folder):
    """Two who write at once would each hand over what the other has in hand."""
    with kbkit.open(folder) as workspace:
        kb, vectors = workspace["drinks"], workspace._stores.vectors
        vectors.gather()  # a document that is added waits
        kb.add("mate", "Drunk from a gourd.")
        with busy(folder), pytest.raises(ConflictError):
            vectors.apply(kb.id, wait=0)
        assert kb.info().pending == 1
        assert vectors.apply(kb.id) == 1


def test_changes_of_another_knowledge_base_wait_for_it(folder):
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
