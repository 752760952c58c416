"""What a store of vectors has to pass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from kbkit.errors import WorkspaceError
from kbkit.stores.vector_store import VectorPayload, VectorStore

_NAME = "notes.0a1b2c3d"
_DIMENSIONS = 16


def _unit(count: int, seed: int = 0) -> NDArray[np.float32]:
    vectors = np.random.default_rng(seed).standard_normal((count, _DIMENSIONS))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float16).astype(np.float32)  # as the catalog keeps them


def _ids(count: int) -> list[str]:
    return [f"{number:032x}" for number in range(count)]


class VectorStoreConformance(ABC):
    """Tests of a `kbkit.stores.vector_store.VectorStore`; a subclass says how it is opened."""

    most = 12_000
    """Vectors of the largest collection; more than the backend takes in one call."""

    @abstractmethod
    def open_store(self, folder: Path) -> VectorStore:
        """Open the store of a folder; the same folder again is the same store."""

    @abstractmethod
    def damage(self, folder: Path) -> None:
        """Take away or break what a closed store keeps."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[VectorStore]:
        """One with an empty collection."""
        opened = self.open_store(tmp_path)
        opened.reopen()
        opened.create(_NAME, _DIMENSIONS)
        yield opened
        opened.close()

    def test_a_new_collection_is_empty(self, store: VectorStore) -> None:
        """A new collection is empty."""
        assert store.count(_NAME) == 0
        assert store.nearest(_NAME, _unit(1)[0], 3) == []

    def test_the_nearest_come_first(self, store: VectorStore) -> None:
        """The nearest come first."""
        vectors, ids = _unit(50), _ids(50)
        store.upsert(_NAME, ids, vectors)
        assert store.count(_NAME) == 50
        for query in _unit(5, seed=1):
            expected = [ids[place] for place in np.argsort(-(vectors @ query))]
            assert store.nearest(_NAME, query, 10) == expected[:10]
            assert store.nearest(_NAME, query, 1) == expected[:1]

    def test_all_items_are_told(self, store: VectorStore) -> None:
        """All ids and vectors are told, each once."""
        assert list(store.items(_NAME)) == []
        vectors, ids = _unit(1_200), _ids(1_200)
        store.upsert(_NAME, ids, vectors)
        store.settle()
        told = {
            known: row
            for each, rows in store.items(_NAME)
            for known, row in zip(each, rows, strict=True)
        }
        assert sorted(told) == ids
        assert np.allclose([told[known] for known in ids], vectors, atol=1e-5)

    def test_more_than_there_are_gives_all(self, store: VectorStore) -> None:
        """More than there are gives all."""
        store.upsert(_NAME, _ids(3), _unit(3))
        assert sorted(store.nearest(_NAME, _unit(1)[0], 10)) == _ids(3)

    def test_upsert_replaces(self, store: VectorStore) -> None:
        """Upsert replaces."""
        vectors, ids = _unit(4), _ids(4)
        store.upsert(_NAME, ids, vectors)
        store.upsert(_NAME, ids, vectors)  # twice is harmless
        store.upsert(_NAME, [ids[0]], -vectors[:1])
        assert store.count(_NAME) == 4
        assert store.nearest(_NAME, -vectors[0], 1) == [ids[0]]
        assert store.nearest(_NAME, vectors[0], 4)[-1] == ids[0]

    def test_what_is_deleted_is_found_no_more(self, store: VectorStore) -> None:
        """What is deleted is found no more."""
        vectors, ids = _unit(6), _ids(6)
        store.upsert(_NAME, ids, vectors)
        store.delete(_NAME, [ids[2], "not there"])
        store.delete(_NAME, [ids[2]])
        store.delete(_NAME, [])
        assert store.count(_NAME) == 5
        assert ids[2] not in store.nearest(_NAME, vectors[2], 6)
        store.upsert(_NAME, [ids[2]], vectors[2:3])
        assert store.nearest(_NAME, vectors[2], 1) == [ids[2]]

    def test_payloads_are_taken(self, store: VectorStore) -> None:
        """Payloads are taken."""
        payloads = [
            VectorPayload("Tee für zwei", {"uri": "a:1", "tags": ["x", "y"]}),
            VectorPayload("", {"uri": "a:2", "tags": []}),
        ]
        store.upsert(_NAME, _ids(2), _unit(2), payloads)
        assert store.nearest(_NAME, _unit(2)[1], 1) == _ids(2)[1:]

    def test_collections_are_apart(self, store: VectorStore) -> None:
        """Collections are apart."""
        vectors = _unit(2)
        store.create("other.1", _DIMENSIONS)
        store.upsert(_NAME, ["one"], vectors[:1])
        store.upsert("other.1", ["two"], vectors[1:])
        assert store.nearest(_NAME, vectors[1], 5) == ["one"]
        store.drop("other.1")
        store.drop("other.1")  # twice is harmless
        assert store.count(_NAME) == 1
        with pytest.raises(WorkspaceError):
            store.count("other.1")

    def test_as_many_as_one_likes_at_once(self, store: VectorStore) -> None:
        """As many as one likes at once."""
        vectors, ids = _unit(self.most), _ids(self.most)
        store.upsert(_NAME, ids, vectors)
        assert store.count(_NAME) == self.most
        store.delete(_NAME, ids[1:])
        assert store.count(_NAME) == 1
        assert store.nearest(_NAME, vectors[5], 3) == ids[:1]

    def test_other_dimensions_are_an_error(self, store: VectorStore) -> None:
        """Other dimensions are an error."""
        store.upsert(_NAME, _ids(1), _unit(1))
        with pytest.raises(WorkspaceError):
            store.upsert(_NAME, ["wide"], np.ones((1, _DIMENSIONS + 1), np.float32))
        with pytest.raises(WorkspaceError):
            store.nearest(_NAME, np.ones(_DIMENSIONS + 1, np.float32), 1)

    def test_a_collection_that_is_not_there_is_an_error(self, store: VectorStore) -> None:
        """A collection that is not there is an error."""
        with pytest.raises(WorkspaceError):
            store.count("nothing.1")
        with pytest.raises(WorkspaceError):
            store.nearest("nothing.1", _unit(1)[0], 1)

    def test_it_is_kept(self, store: VectorStore, tmp_path: Path) -> None:
        """It is kept."""
        vectors = _unit(3)
        store.upsert(_NAME, _ids(3), vectors)
        store.close()
        again = self.open_store(tmp_path)
        again.reopen()
        assert again.nearest(_NAME, vectors[1], 1) == _ids(3)[1:2]
        again.close()

    def test_reopening_sees_what_others_wrote(self, store: VectorStore, tmp_path: Path) -> None:
        """Reopening sees what others wrote."""
        vectors = _unit(2)
        store.upsert(_NAME, ["old"], vectors[:1])
        store.close()
        self.write_elsewhere(tmp_path, _NAME, "new", vectors[1])
        store.reopen()
        assert store.count(_NAME) == 2
        assert store.nearest(_NAME, vectors[1], 1) == ["new"]

    def write_elsewhere(
        self, folder: Path, name: str, known_as: str, vector: NDArray[np.float32]
    ) -> None:
        """Have another process store a vector; by default this one plays it."""
        other = self.open_store(folder)
        other.reopen()
        other.upsert(name, [known_as], vector[None, :])
        other.close()

    def test_a_damaged_store_begins_anew(self, store: VectorStore, tmp_path: Path) -> None:
        """A damaged store begins anew."""
        store.upsert(_NAME, _ids(2), _unit(2))
        store.close()
        self.damage(tmp_path)
        store.reopen()
        with pytest.raises(WorkspaceError):
            store.nearest(_NAME, _unit(1)[0], 1)
        store.create("notes.anew", _DIMENSIONS)
        store.upsert("notes.anew", ["one"], _unit(1))
        assert store.nearest("notes.anew", _unit(1)[0], 1) == ["one"]
