"""The chunks of a knowledge base."""

from __future__ import annotations

import builtins
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from kbkit.errors import ConfigError, ConflictError, ExportError, NotFoundError
from kbkit.extras import extra
from kbkit.frames import chunks_frame, map_frame
from kbkit.knowledge_base.handle import Items
from kbkit.models import Chunk, Document, License
from kbkit.models.licenses import KEYS as LICENSE_KEYS
from kbkit.runtime.validation import check_limit, explain_calls
from kbkit.stores.catalog import copying, corpus, knowledge_bases, reading

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray


_MAX_POINTS = 5000


@explain_calls
class Chunks(Items):
    """The chunks of a knowledge base, ordered by document URI.

    Iterate over them, count them with ``len``, or look one up: ``kb.chunks[id]``.
    """

    _noun = "chunks"
    _kind = Chunk

    def __iter__(self) -> Iterator[Chunk]:
        with self._database.read() as transaction:
            yield from reading.iter_chunks(transaction, self._handle.id)

    def __len__(self) -> int:
        return self._handle.info().chunks

    def __getitem__(self, chunk_id: str) -> Chunk:
        return self._handle.look_up(reading.neighbours, str(chunk_id), 0, 0)[0]

    def __contains__(self, chunk_id: object) -> bool:
        try:
            return isinstance(chunk_id, str) and bool(self[chunk_id])
        except NotFoundError:
            return False

    def list(self, *, after: tuple[str, int] = ("", -1), limit: int | None = None) -> list[Chunk]:
        """List chunks, ordered by the URIs of their documents.

        Args:
            after: URI of a document and a position in it; only later chunks.
            limit: Maximum number of chunks; by default all.

        Raises:
            ConfigError: The limit is wrong.
        """
        check_limit(limit)
        with self._database.read() as transaction:
            return list(reading.iter_chunks(transaction, self._handle.id, after=after, limit=limit))

    def of(self, document: str) -> builtins.list[Chunk]:
        """List the chunks of a document in their order.

        Args:
            document: Id or URI of the document.

        Raises:
            NotFoundError: There is no such document.
        """
        document_id = self._handle.document(document).id
        with self._database.read() as transaction:
            return list(reading.iter_chunks(transaction, self._handle.id, document_id))

    def to_frame(self) -> pd.DataFrame:
        """Return all chunks as a DataFrame, indexed by id."""
        return chunks_frame(self)

    def embedding_map(self, *, limit: int = 2000, seed: int = 0) -> pd.DataFrame:
        """Project chunk vectors onto the plane of the greatest variance.

        Args:
            limit: Maximum number of chunks, 1 to 5,000; a larger number is sampled at random.
            seed: Seed of the sample.

        Returns:
            One row per chunk, indexed by id: ``x``, ``y``, ``title``, ``section``, ``snippet``,
            ``document_type``, ``folder``, ``uri``. ``attrs`` has the ``variance`` of each axis and
            the total number of ``chunks``.

        Raises:
            ConfigError: The limit is out of range.
        """
        if not 1 <= limit <= _MAX_POINTS:
            raise ConfigError(f"limit={limit}: give 1 to {_MAX_POINTS:,} chunks")
        with self._database.read() as transaction:
            row = knowledge_bases.get_by_id(transaction, self._handle.id)
            sampled, vectors = corpus.sample(transaction, row.id, row.dimensions, limit, seed)
            chunks = knowledge_bases.describe(transaction, row.id).chunks
        return map_frame(sampled, vectors, chunks)

    def fit_query_encoder(self) -> Mapping[str, Any]:
        """Fit the query encoder to the current chunks, even if not due.

        It embeds queries if the recipe says ``query_encoder: fitted``, or while the model is
        unreachable. For these recipes and remote embedders, ingests, refreshes and `configure` fit
        it after a fifth of the chunks changed.

        Returns:
            Report of the fit; see `kbkit.embedding.fitted.FittedEncoder`.

        Raises:
            ConfigError: There are no chunks.
            EmbedderError: No chunk has any term.
        """
        return self._handle.fit_query_encoder()


def with_vectors(chunks: Chunks) -> Iterator[tuple[Chunk, NDArray[np.float32]]]:
    """Iterate over chunks with their vectors, from one snapshot of the catalog."""
    handle = chunks._handle
    with handle.stores.database.read() as transaction:
        dimensions = knowledge_bases.get_by_id(transaction, handle.id).dimensions
        chunk_rows = reading.iter_chunks(transaction, handle.id)
        while batch := list(islice(chunk_rows, 500)):
            ids = [chunk.id for chunk in batch]
            yield from zip(batch, corpus.vectors_by_id(transaction, dimensions, ids), strict=True)


Row = Mapping[str, Any]

_DOCUMENT = {
    **dict.fromkeys(("id", "uri", "title", "description", "document_type"), "text"),
    "tags": "texts",
    "state": "text",
    "fetched_at": "time",
    "content_hash": "text",
    **dict.fromkeys(LICENSE_KEYS, "text"),
    "metadata": "json",
    "content": "text",
}
_CHUNK = {
    **dict.fromkeys(("id", "document_id"), "text"),
    **dict.fromkeys(("position", "start", "end", "page"), "number"),
    "heading_path": "texts",
    **dict.fromkeys(("anchor", "text"), "text"),
}


def write_documents(documents: Iterable[Document], path: str | Path) -> int:
    rows = (
        {**document.to_dict(), **License.of(document.metadata).to_metadata()}
        for document in documents
    )
    return _write(path, rows, _DOCUMENT)


def write_chunks(chunks: Iterable[Chunk], path: str | Path, *, vectors: bool = False) -> int:
    if not vectors:
        return _write(path, (chunk.to_dict() for chunk in chunks), _CHUNK)
    if not isinstance(chunks, Chunks):
        raise ConfigError("vectors=True: only `kb.chunks` of a workspace's folder has vectors")
    rows = ({**chunk.to_dict(), "vector": row.tolist()} for chunk, row in with_vectors(chunks))
    return _write(path, rows, _CHUNK | {"vector": "vector"})


def _write(place: str | Path, rows: Iterable[Row], columns: Mapping[str, str]) -> int:
    path = Path(place).absolute()
    write = {".jsonl": _write_lines, ".parquet": _write_parquet}.get(path.suffix.lower())
    if write is None:
        raise ConfigError(f"{place}: name a file that ends with .jsonl or .parquet")
    selected = ({name: row.get(name) for name in columns} for row in rows)
    with _draft(path) as stream:
        return write(stream, selected, columns)


@contextmanager
def _draft(path: Path) -> Iterator[IO[bytes]]:
    """Provide a temporary file that gets its name when it is complete."""
    if os.path.lexists(path):
        raise ConflictError(f"{path}: already exists; choose another name")
    try:
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".kbkit-") as folder:
            draft = Path(folder, path.name)
            with draft.open("wb") as stream:
                yield stream
            draft.replace(path)
    except OSError as error:
        raise ExportError(f"{path}: cannot be written ({error.strerror or error})") from error


def _write_lines(stream: IO[bytes], rows: Iterable[Row], columns: Mapping[str, str]) -> int:
    count = 0
    for row in rows:
        count += 1
        values = {name: value for name, value in row.items() if value is not None}
        stream.write(json.dumps(values, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
    return count


def _write_parquet(stream: IO[bytes], rows: Iterable[Row], columns: Mapping[str, str]) -> int:
    with extra("parquet", "pyarrow", "Writing Parquet"):
        import pyarrow
        from pyarrow.parquet import ParquetWriter
    types = {
        "text": pyarrow.string(),
        "texts": pyarrow.list_(pyarrow.string()),
        "json": pyarrow.string(),
        "number": pyarrow.int64(),
        "time": pyarrow.timestamp("us", "UTC"),
        "vector": pyarrow.list_(pyarrow.float32()),
    }
    schema = pyarrow.schema([(name, types[kind]) for name, kind in columns.items()])
    count = 0
    with ParquetWriter(stream, schema, compression="zstd") as writer:
        for batch in copying.batches(rows):
            count += len(batch)
            typed = [
                {name: _typed_value(value, columns[name]) for name, value in row.items()}
                for row in batch
            ]
            writer.write_table(pyarrow.Table.from_pylist(typed, schema=schema))
    return count


def _typed_value(value: Any, kind: str) -> Any:
    if kind == "time" and value is not None:
        return datetime.fromisoformat(value)
    return json.dumps(value, ensure_ascii=False) if kind == "json" else value
