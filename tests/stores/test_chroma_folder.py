"""Chroma never reads files that are not as they were left; what is lost is made anew."""

import logging
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import kbkit
from kbkit.errors import StoreUnreachableError, WorkspaceError
from kbkit.stores.chroma.store import ChromaStore

pytestmark = pytest.mark.local

NAME = "notes.0a1b2c3d"
SAVED = 1_100
"""Vectors that Chroma saves a graph of, beside its database."""


def units(count, seed=0):
    vectors = np.random.default_rng(seed).standard_normal((count, 16)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with a collection, closed."""
    folder = tmp_path_factory.mktemp("written") / "chroma"
    write(folder, 0, SAVED)
    return folder


def write(folder, first, count, *, settle=True):
    store = ChromaStore(folder)
    store.reopen()
    if not first:
        store.create(NAME, 16)
    store.upsert(NAME, [f"{i:032x}" for i in range(first, first + count)], units(count, first))
    if settle:
        store.settle()
        store.close()
    return store


@pytest.fixture
def folder(written, tmp_path):
    return Path(shutil.copytree(written, tmp_path / "chroma"))


def flipped(data):
    changed = bytearray(data)
    changed[len(data) // 3] ^= 4
    return bytes(changed)


DAMAGES = {
    "a bit": flipped,
    "half": lambda data: data[: len(data) // 2],
    "zeros": lambda data: bytes(len(data)),
    "gone": None,
}
FILES = (
    "data_level0.bin",
    "header.bin",
    "length.bin",
    "link_lists.bin",
    "index_metadata.pickle",
    "chroma.sqlite3",
    "checksums.json",
)


@pytest.mark.parametrize(
    ("name", "how"), [*((name, "a bit") for name in FILES), *((FILES[0], how) for how in DAMAGES)]
)
def test_a_damaged_file_is_not_opened(folder, name, how, caplog):
    (path,) = folder.rglob(name)
    damage = DAMAGES[how]
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage(path.read_bytes()))
    store = ChromaStore(folder)
    store.reopen()
    with pytest.raises(WorkspaceError):
        store.count(NAME)
    assert "rebuilt from the catalog" in caplog.text
    store.close()


def test_what_is_as_it_was_left_stays_whoever_opens_it(folder, caplog):
    import chromadb

    settings = chromadb.config.Settings(anonymized_telemetry=False)
    for _ in range(2):
        client = chromadb.PersistentClient(str(folder), settings=settings)
        client.get_collection(NAME, embedding_function=None).query(
            query_embeddings=units(1), n_results=3
        )
        client.close()
        store = ChromaStore(folder)
        store.reopen()
        assert store.count(NAME) == SAVED
        assert store.nearest(NAME, units(SAVED)[7], 1) == [f"{7:032x}"]
        store.close()
    assert not caplog.records


def test_a_write_that_was_cut_off_is_not_believed(folder, caplog):
    write(folder, SAVED, 5, settle=False)._client.close()  # as a kill leaves it
    store = ChromaStore(folder)
    store.reopen()
    with pytest.raises(WorkspaceError):
        store.count(NAME)
    store.close()
    assert "not as it was written" in caplog.text


OTHER = "other.4e5f6a7b"


def with_another(folder):
    """The folder, with a second collection."""
    store = ChromaStore(folder)
    store.reopen()
    store.create(OTHER, 16)
    store.upsert(OTHER, [f"{i:032x}" for i in range(SAVED)], units(SAVED))
    store.close()
    return folder


def check_that_another_stayed(folder, caplog):
    """That only one collection is gone, and that whoever comes next finds nothing wrong."""
    for told in (1, 1):
        store = ChromaStore(folder)
        store.reopen()
        with pytest.raises(WorkspaceError):
            store.count(NAME)
        assert store.count(OTHER) == SAVED
        assert store.nearest(OTHER, units(SAVED)[7], 1) == [f"{7:032x}"]
        store.close()
        (message,) = caplog.messages
        assert f"of its collections {NAME} is rebuilt" in message
        assert caplog.messages[told:] == []


@pytest.mark.parametrize("count", [5, 2_000])
def test_of_a_write_that_was_cut_off_other_collections_stay(folder, caplog, count):
    write(with_another(folder), SAVED, count, settle=False)._client.close()
    check_that_another_stayed(folder, caplog)


def test_of_a_damaged_collection_the_others_stay(folder, caplog):
    (path,) = folder.rglob("data_level0.bin")
    with_another(folder)
    path.write_bytes(flipped(path.read_bytes()))
    check_that_another_stayed(folder, caplog)


def test_where_the_database_is_damaged_too_no_collection_stays(folder, caplog):
    write(with_another(folder), SAVED, 5, settle=False)._client.close()
    path = folder / "chroma.sqlite3"
    path.write_bytes(path.read_bytes()[:8192] + bytes(4096) + path.read_bytes()[12288:])
    store = ChromaStore(folder)
    store.reopen()
    for name in (NAME, OTHER):
        with pytest.raises(WorkspaceError):
            store.count(name)
    store.close()
    (message,) = caplog.messages
    assert message.endswith("it is rebuilt from the catalog")


KILLED = """
import os, signal, sys, kbkit
from kbkit.stores.vector_collections import VectorCollections
upsert = VectorCollections._upsert
VectorCollections._upsert = lambda *told: (upsert(*told), os.kill(os.getpid(), signal.SIGKILL))
kbkit.open(sys.argv[1])["drinks"].add("Cocoa", "Sweet cocoa.")
"""


def test_a_kill_while_one_knowledge_base_is_indexed_costs_the_others_nothing(tmp_path):
    with kbkit.open(tmp_path) as workspace:
        for name in ("drinks", "food"):
            workspace.create(name).add("Tea and bread", f"All about {name}.")
        before = {name: workspace[name].info().collection for name in ("drinks", "food")}
    run = subprocess.run([sys.executable, "-c", KILLED, tmp_path], check=False)
    assert run.returncode == -signal.SIGKILL
    with kbkit.open(tmp_path) as workspace:
        for name in ("drinks", "food"):
            kb = workspace[name]
            kb._stores.vectors.apply(kb.id)
            info = kb.info()
            assert not info.pending
            assert (info.collection == before[name]) is (name == "food")
            assert kb._stores.vectors.faults(kb.id) == []
        assert workspace["drinks"].search("cocoa", mode="dense")[0].title == "Cocoa"


def test_damage_beside_an_open_folder_is_seen_before_the_next_write(folder):
    store = ChromaStore(folder)
    store.reopen()
    (path,) = folder.rglob("length.bin")
    path.write_bytes(flipped(path.read_bytes()))
    with pytest.raises(WorkspaceError, match=r"length\.bin"):
        store.upsert(NAME, ["a"], units(1))
    store.close()


def test_a_knowledge_base_is_searched_in_full_and_its_index_made_anew(tmp_path, caplog):
    with kbkit.open(tmp_path) as workspace:
        kb = workspace.create("drinks")
        kb.add("all", "\n\n".join(f"## Cup {i}\n\nTea number {i}.\n" for i in range(SAVED)))
        index, info = workspace._stores.vectors, kb.info()
        index.apply(kb.id)
        assert info.chunks >= SAVED
    (path,) = (tmp_path / "chroma").rglob("data_level0.bin")
    path.write_bytes(flipped(path.read_bytes()))
    with kbkit.open(tmp_path) as workspace:
        kb = workspace["drinks"]
        kb.add("new", "A jar of honey.")
        assert kb.search("jar of honey", mode="dense")[0].title == "new"
        again = kb.info()
        assert again.collection != info.collection
        assert not again.pending
        assert workspace._stores.vectors._store.count(again.collection) == again.chunks
    (record,) = (known for known in caplog.records if known.levelno >= logging.WARNING)
    assert "data_level0.bin" in record.message


def test_a_file_where_the_folder_is_takes_nothing_along(tmp_path):
    (tmp_path / "chroma").write_text("mine")
    with kbkit.open(tmp_path) as workspace:
        kb = workspace.create("notes")
        with pytest.raises(StoreUnreachableError, match="move it away"):
            kb.add("tea", "Steep for three minutes.")
        assert kb.search("steep")[0].title == "tea"
        assert kb.info().pending
        (tmp_path / "chroma").unlink()
        kb.add("milk", "Keep it cold.")
        assert not kb.info().pending


FULL = """
import sys, kbkit
with kbkit.open(sys.argv[1]) as workspace:
    kb = workspace["notes"]
    try:
        workspace._stores.vectors.apply(kb.id)
    except kbkit.errors.StoreUnreachableError as error:
        print(error)
    print(kb.search("tea number 7", mode="dense")[0].chunk.text)
"""


@pytest.mark.slow
def test_a_full_disk_is_told_and_what_is_stored_is_found(tmp_path):
    with kbkit.open(tmp_path) as workspace:
        kb = workspace.create("notes")
        with workspace._stores.locks.hold("migrate", wait=1):
            (tmp_path / "chroma").write_text("in the way")
            with pytest.raises(StoreUnreachableError):
                kb.add("all", "\n\n".join(f"## {i}\n\nTea number {i}.\n" for i in range(1_500)))
        (tmp_path / "chroma").unlink()
        kb.search("tea")

    def small_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))

    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)],
        capture_output=True,
        text=True,
        preexec_fn=small_files,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "free some space" in done.stdout
    assert "Tea number" in done.stdout
