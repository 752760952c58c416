"""Vectors on a Chroma server or in Chroma Cloud.

Collections stay if the server does not answer; faulty ones are rebuilt from the catalog.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kbkit.errors import WorkspaceError
from kbkit.stores.chroma.address import ChromaAddress
from kbkit.stores.chroma.collections import ChromaCollections
from kbkit.stores.vector_store import VectorPayload

if TYPE_CHECKING:
    from kbkit.stores.chroma.collections import Collection
    from kbkit.stores.chroma.connection import ChromaConnection

# default quotas of Chroma Cloud
_RECORDS = 300
_RESULTS = 300
_DOCUMENT_BYTES = 16_384
_METADATA_BYTES = 4_096


class ChromaServer(ChromaCollections):
    """A `kbkit.stores.vector_store.VectorStore` on a server."""

    def __init__(self, address: ChromaAddress, workspace: str) -> None:
        super().__init__()
        self.address = address
        self.suffix = hashlib.blake2b(workspace.encode(), digest_size=6).hexdigest()
        self._connection: ChromaConnection | None = None

    def close(self) -> None:
        self._collections.clear()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def reopen(self) -> None:
        """Forget the open collections; the connection recovers by itself."""
        self._collections.clear()
        with self._explained():
            self._connected()

    def nearest(self, name: str, query: NDArray[np.float32], k: int) -> list[str]:
        return super().nearest(name, query, min(k, _RESULTS))

    def _connected(self) -> ChromaConnection:
        if self._connection is None:
            from kbkit.stores.chroma.connection import ChromaConnection

            self._connection = ChromaConnection(self.address)
        return self._connection

    def _max_batch(self) -> int:
        return min(_RECORDS, self._connected().most)

    def _create_collection(self, name: str) -> Collection:
        return self._connected().create(name)

    def _open_collection(self, name: str) -> Collection:
        return self._connected().get(name)

    def _drop_collection(self, name: str) -> None:
        self._connected().drop(name)

    def _fitting(self, payload: VectorPayload) -> VectorPayload:
        fitting, left = {}, _METADATA_BYTES
        for name, value in payload.metadata.items():
            values = value if isinstance(value, list) else [value]
            left -= len(name) + sum(len(str(each).encode()) for each in values)
            if left < 0:
                break
            fitting[name] = value
        return VectorPayload(
            payload.text.encode()[:_DOCUMENT_BYTES].decode(errors="ignore"), fitting
        )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except WorkspaceError:
            raise
        except Exception as error:
            from kbkit.stores.chroma.connection import fault_of

            raise fault_of(error, self.address) from error
