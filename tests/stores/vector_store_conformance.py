"""What a store of vectors has to pass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from kbkit.errors import WorkspaceError
from kbkit.stores.backend import VectorPayload, VectorStore

_NAME = "notes.0a1b2c3d"
_DIMENSIONS = 16


def _unit(count: int, seed: int = 0) -> NDArray[np.float32]:
    vectors = np.random.default_rng(seed).standard_normal((count, _DIMENSIONS))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float16).astype(np.float32)  # as the catalog stores them


def _ids(count: int) -> list[str]:
    return [f"{number:032x}" for number in range(count)]


class VectorStoreConformance(ABC):
    """Tests of a `kbkit.stores.backend.VectorStore`, which a subclass opens."""

    most = 12_000
    """Vectors of the largest collection; more than the backend takes in one call."""

    @abstractmethod
    def open_store(self, folder: Path) -> VectorStore:
        """Open the store of a folder; the same folder again is the same store."""

    @abstractmethod
    def damage(self, folder: Path) -> None:
        """Remove or damage the files of a closed store."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[VectorStore]:
        """A store with an empty collection."""
        opened = self.open_store(tmp_path)
        opened.reopen()
        opened.create(_NAME, _DIMENSIONS)
        yield opened
        opened.close()

    def test_new_collection_is_empty(self, store: VectorStore) -> None:
        assert store.count(_NAME) == 0
        assert store.nearest(_NAME, _unit(1)[0], 3) == []

    def test_nearest_vectors_come_first(self, store: VectorStore) -> None:
        vectors, ids = _unit(50), _ids(50)
        store.upsert(_NAME, ids, vectors)
        assert store.count(_NAME) == 50
        for query in _unit(5, seed=1):
            expected = [ids[place] for place in np.argsort(-(vectors @ query))]
            assert store.nearest(_NAME, query, 10) == expected[:10]
            assert store.nearest(_NAME, query, 1) == expected[:1]

    def test_items_yields_each_vector_once(self, store: VectorStore) -> None:
        assert list(store.items(_NAME)) == []
        vectors, ids = _unit(1_200), _ids(1_200)
        store.upsert(_NAME, ids, vectors)
        store.settle()
        items = {
            item_id: row
            for each, rows in store.items(_NAME)
            for item_id, row in zip(each, rows, strict=True)
        }
        assert sorted(items) == ids
        assert np.allclose([items[item_id] for item_id in ids], vectors, atol=1e-5)

    def test_k_above_the_count_returns_all(self, store: VectorStore) -> None:
        store.upsert(_NAME, _ids(3), _unit(3))
        assert sorted(store.nearest(_NAME, _unit(1)[0], 10)) == _ids(3)

    def test_upsert_replaces(self, store: VectorStore) -> None:
        vectors, ids = _unit(4), _ids(4)
        store.upsert(_NAME, ids, vectors)
        store.upsert(_NAME, ids, vectors)  # twice is harmless
        store.upsert(_NAME, [ids[0]], -vectors[:1])
        assert store.count(_NAME) == 4
        assert store.nearest(_NAME, -vectors[0], 1) == [ids[0]]
        assert store.nearest(_NAME, vectors[0], 4)[-1] == ids[0]

    def test_deleted_vectors_are_not_found(self, store: VectorStore) -> None:
        vectors, ids = _unit(6), _ids(6)
        store.upsert(_NAME, ids, vectors)
        store.delete(_NAME, [ids[2], "not there"])
        store.delete(_NAME, [ids[2]])
        store.delete(_NAME, [])
        assert store.count(_NAME) == 5
        assert ids[2] not in store.nearest(_NAME, vectors[2], 6)
        store.upsert(_NAME, [ids[2]], vectors[2:3])
        assert store.nearest(_NAME, vectors[2], 1) == [ids[2]]

    def test_payloads_are_accepted(self, store: VectorStore) -> None:
        payloads = [
            VectorPayload("Tee für zwei", {"uri": "a:1", "tags": ["x", "y"]}),
            VectorPayload("", {"uri": "a:2", "tags": []}),
        ]
        store.upsert(_NAME, _ids(2), _unit(2), payloads)
        assert store.nearest(_NAME, _unit(2)[1], 1) == _ids(2)[1:]

    def test_collections_are_separate(self, store: VectorStore) -> None:
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

    def test_one_call_takes_any_number_of_vectors(self, store: VectorStore) -> None:
        vectors, ids = _unit(self.most), _ids(self.most)
        store.upsert(_NAME, ids, vectors)
        assert store.count(_NAME) == self.most
        store.delete(_NAME, ids[1:])
        assert store.count(_NAME) == 1
        assert store.nearest(_NAME, vectors[5], 3) == ids[:1]

    def test_other_dimensions_are_an_error(self, store: VectorStore) -> None:
        store.upsert(_NAME, _ids(1), _unit(1))
        with pytest.raises(WorkspaceError):
            store.upsert(_NAME, ["wide"], np.ones((1, _DIMENSIONS + 1), np.float32))
        with pytest.raises(WorkspaceError):
            store.nearest(_NAME, np.ones(_DIMENSIONS + 1, np.float32), 1)

    def test_missing_collection_is_an_error(self, store: VectorStore) -> None:
        with pytest.raises(WorkspaceError):
            store.count("nothing.1")
        with pytest.raises(WorkspaceError):
            store.nearest("nothing.1", _unit(1)[0], 1)

    def test_content_persists(self, store: VectorStore, tmp_path: Path) -> None:
        vectors = _unit(3)
        store.upsert(_NAME, _ids(3), vectors)
        store.close()
        reopened = self.open_store(tmp_path)
        reopened.reopen()
        assert reopened.nearest(_NAME, vectors[1], 1) == _ids(3)[1:2]
        reopened.close()

    def test_reopening_shows_writes_of_others(self, store: VectorStore, tmp_path: Path) -> None:
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
        """Store a vector from another process; by default from this one."""
        other = self.open_store(folder)
        other.reopen()
        other.upsert(name, [known_as], vector[None, :])
        other.close()

    def test_damaged_store_starts_empty(self, store: VectorStore, tmp_path: Path) -> None:
        store.upsert(_NAME, _ids(2), _unit(2))
        store.close()
        self.damage(tmp_path)
        store.reopen()
        with pytest.raises(WorkspaceError):
            store.nearest(_NAME, _unit(1)[0], 1)
        store.create("notes.anew", _DIMENSIONS)
        store.upsert("notes.anew", ["one"], _unit(1))
        assert store.nearest("notes.anew", _unit(1)[0], 1) == ["one"]
