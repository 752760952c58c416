"""Chroma never reads damaged files; lost vectors are rebuilt."""

import logging
import resource
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import kbkit
from kbkit.errors import StoreUnreachableError, WorkspaceError
from kbkit.stores.chroma_folder import ChromaStore

pytestmark = pytest.mark.local

NAME = "notes.0a1b2c3d"
SAVED = 1_100
"""Enough vectors for Chroma to save a graph beside its database."""


def units(count, seed=0):
    vectors = np.random.default_rng(seed).standard_normal((count, 16)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("written") / "chroma"
    with opened(folder) as store:
        store.create(NAME, 16)
        write(store, 0, SAVED)
        store.settle()
    return folder


@contextmanager
def opened(folder):
    store = ChromaStore(folder)
    store.reopen()
    yield store
    store.close()


def write(store, first, count, name=NAME):
    store.upsert(name, [f"{i:032x}" for i in range(first, first + count)], units(count, first))


def interrupt_a_write(folder, count):
    """Write more vectors, and leave the folder as a kill does."""
    store = ChromaStore(folder)
    store.reopen()
    write(store, SAVED, count)
    store._api._system.stop()


@pytest.fixture
def folder(written, tmp_path):
    return Path(shutil.copytree(written, tmp_path / "chroma"))


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 4
    path.write_bytes(data)


DAMAGES = {
    "a bit": flip,
    "half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "gone": lambda path: path.unlink(),
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
def test_damaged_file_is_not_opened(folder, name, how, caplog):
    (path,) = folder.rglob(name)
    DAMAGES[how](path)
    with opened(folder) as store, pytest.raises(WorkspaceError):
        store.count(NAME)
    assert "rebuilt from the catalog" in caplog.text


def check_vectors(folder, name):
    with opened(folder) as store:
        assert store.count(name) == SAVED
        assert store.nearest(name, units(SAVED)[7], 1) == [f"{7:032x}"]


def test_folder_opened_by_another_client_stays_valid(folder, caplog):
    import chromadb

    settings = chromadb.config.Settings(anonymized_telemetry=False)
    for _ in range(2):
        client = chromadb.PersistentClient(str(folder), settings=settings)
        client.get_collection(NAME, embedding_function=None).query(
            query_embeddings=units(1), n_results=3
        )
        client.close()
        check_vectors(folder, NAME)
    assert not caplog.records


def test_interrupted_write_is_discarded(folder, caplog):
    interrupt_a_write(folder, 5)
    with opened(folder) as store, pytest.raises(WorkspaceError):
        store.count(NAME)
    assert "not as it was written" in caplog.text


KILLED = """
import os, signal, sys, kbkit
from kbkit.stores.vector_index import VectorIndex
upsert = VectorIndex._upsert
VectorIndex._upsert = lambda *args: (upsert(*args), os.kill(os.getpid(), signal.SIGKILL))
kbkit.open(sys.argv[1])["drinks"].add("Cocoa", "Sweet cocoa.")
"""


def test_killed_indexing_is_made_up_for(tmp_path):
    with kbkit.open(tmp_path) as workspace:
        for name in ("drinks", "food"):
            workspace.create(name).add("Tea and bread", f"All about {name}.")
    run = subprocess.run([sys.executable, "-c", KILLED, tmp_path], check=False)
    assert run.returncode == -signal.SIGKILL
    with kbkit.open(tmp_path) as workspace:
        for name in ("drinks", "food"):
            kb = workspace[name]
            kb._stores.vectors.open(kb.id)
            kb._stores.vectors.apply(kb.id)
            assert not kb.info().pending
            assert kb._stores.vectors.faults(kb.id) == []
        assert workspace["drinks"].search("cocoa", mode="dense")[0].title == "Cocoa"


def test_damage_to_an_open_folder_is_noticed_before_a_write(folder):
    with opened(folder) as store:
        (path,) = folder.rglob("length.bin")
        flip(path)
        with pytest.raises(WorkspaceError, match=r"length\.bin"):
            store.upsert(NAME, ["a"], units(1))


def test_damaged_index_is_rebuilt_and_search_stays_complete(tmp_path, caplog):
    with kbkit.open(tmp_path) as workspace:
        kb = workspace.create("drinks")
        kb.add("all", "\n\n".join(f"## Cup {i}\n\nTea number {i}.\n" for i in range(SAVED)))
        index, info = workspace._stores.vectors, kb.info()
        index.apply(kb.id)
        assert info.chunks >= SAVED
    (path,) = (tmp_path / "chroma").rglob("data_level0.bin")
    flip(path)
    with kbkit.open(tmp_path) as workspace:
        kb = workspace["drinks"]
        kb.add("new", "A jar of honey.")
        assert kb.search("jar of honey", mode="dense")[0].title == "new"
        rebuilt = kb.info()
        assert rebuilt.collection != info.collection
        assert not rebuilt.pending
        assert workspace._stores.vectors._store.count(rebuilt.collection) == rebuilt.chunks
    (record,) = (each for each in caplog.records if each.levelno >= logging.WARNING)
    assert "data_level0.bin" in record.message


def test_file_in_place_of_the_folder_loses_nothing(tmp_path):
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
def test_full_disk_is_reported_and_search_still_works(tmp_path):
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
