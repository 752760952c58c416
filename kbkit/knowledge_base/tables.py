"""Documents and chunks as files that other programs read: JSON lines, or Parquet."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from kbkit.errors import ConfigError, ConflictError, ExportError
from kbkit.extras import extra
from kbkit.knowledge_base.chunks import Chunks, with_vectors
from kbkit.models import Chunk, Document, License
from kbkit.models.licenses import KEYS as LICENSE_KEYS

Row = Mapping[str, Any]

_DOCUMENT = {
    "id": "text", "uri": "text", "title": "text", "description": "text", "document_type": "text",
    "tags": "texts", "state": "text", "fetched_at": "time", "content_hash": "text",
    **dict.fromkeys(LICENSE_KEYS, "text"), "metadata": "json", "content": "text",
}  # fmt: skip
_CHUNK = {
    "id": "text", "document_id": "text", "position": "number", "start": "number", "end": "number",
    "page": "number", "heading_path": "texts", "anchor": "text", "text": "text",
}  # fmt: skip
_ROWS = 1_000
_CHARACTERS = 16_000_000
"""Of texts that are in memory at once."""


def write_documents(documents: Iterable[Document], path: str | Path) -> int:
    """Write documents into a file, which `JsonlSource` or `ParquetSource` reads.

    Args:
        documents: Such as ``kb.documents``, of a workspace or of a server.
        path: A file that is not there yet; ``.jsonl`` or ``.parquet`` at its end says which.
            In Parquet ``metadata`` is JSON and ``fetched_at`` a time (UTC).

    Returns:
        How many.

    Raises:
        ConfigError: The name of the file says neither.
        ConflictError: The file is there already.
        ExportError: It cannot be written.
        MissingExtraError: It is Parquet, and pyarrow is not installed.
    """
    rows = (
        {**document.to_dict(), **License.of(document.metadata).to_metadata()}
        for document in documents
    )
    return _write(path, rows, _DOCUMENT)


def write_chunks(chunks: Iterable[Chunk], path: str | Path, *, vectors: bool = False) -> int:
    """Write chunks into a file of JSON lines or Parquet.

    Args:
        chunks: ``kb.chunks``, of a workspace or of a server, or some of them.
        path: A file that is not there yet; ``.jsonl`` or ``.parquet`` at its end says which.
        vectors: Whether each has its ``vector`` too (32-bit floats, as long as the embedder has
            dimensions); for ``kb.chunks`` of a workspace.

    Returns:
        How many.

    Raises:
        ConfigError: The name of the file says neither, or vectors are asked of others.
        ConflictError: The file is there already.
        ExportError: It cannot be written.
        MissingExtraError: It is Parquet, and pyarrow is not installed.
    """
    if not vectors:
        return _write(path, (chunk.to_dict() for chunk in chunks), _CHUNK)
    if not isinstance(chunks, Chunks):
        raise ConfigError("vectors=True: only `kb.chunks` of a workspace's folder has vectors")
    rows = ({**chunk.to_dict(), "vector": one.tolist()} for chunk, one in with_vectors(chunks))
    return _write(path, rows, _CHUNK | {"vector": "vector"})


def _write(place: str | Path, rows: Iterable[Row], columns: Mapping[str, str]) -> int:
    path = Path(place).absolute()
    write = {".jsonl": _write_lines, ".parquet": _write_parquet}.get(path.suffix.lower())
    if write is None:
        raise ConfigError(f"{place}: name a file that ends with .jsonl or .parquet")
    told = ({name: row.get(name) for name in columns} for row in rows)
    with _draft(path) as stream:
        return write(stream, told, columns)


@contextmanager
def _draft(path: Path) -> Iterator[IO[bytes]]:
    """A file that has another name until it is whole."""
    if os.path.lexists(path):
        raise ConflictError(f"{path}: is there already; choose another name")
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
        told = {name: value for name, value in row.items() if value is not None}
        stream.write(json.dumps(told, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
    return count


def _write_parquet(stream: IO[bytes], rows: Iterable[Row], columns: Mapping[str, str]) -> int:
    with extra("parquet", "pyarrow", "Writing Parquet"):
        import pyarrow
        from pyarrow.parquet import ParquetWriter
    types = {
        "text": pyarrow.string(), "texts": pyarrow.list_(pyarrow.string()),
        "json": pyarrow.string(), "number": pyarrow.int64(),
        "time": pyarrow.timestamp("us", "UTC"), "vector": pyarrow.list_(pyarrow.float32()),
    }  # fmt: skip
    schema = pyarrow.schema([(name, types[kind]) for name, kind in columns.items()])
    count = 0
    with ParquetWriter(stream, schema, compression="zstd") as writer:
        for part in _parts(rows):
            count += len(part)
            typed = [
                {name: _typed(one, columns[name]) for name, one in row.items()} for row in part
            ]
            writer.write_table(pyarrow.Table.from_pylist(typed, schema=schema))
    return count


def _typed(value: Any, kind: str) -> Any:
    if kind == "time" and value is not None:
        return datetime.fromisoformat(value)
    return json.dumps(value, ensure_ascii=False) if kind == "json" else value


def _parts(rows: Iterable[Row]) -> Iterator[list[Row]]:
    part: list[Row] = []
    size = 0
    for row in rows:
        part.append(row)
        size += len(row.get("content") or row.get("text") or "")
        if len(part) == _ROWS or size > _CHARACTERS:
            yield part
            part, size = [], 0
    if part:
        yield part
