"""The source ``parquet``: documents that a program wrote as the rows of a Parquet file."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from kbkit.errors import MissingExtraError, SourceError
from kbkit.extras import extra
from kbkit.processes import Workers
from kbkit.regular_files import open_file
from kbkit.sources.base import SourceContext
from kbkit.sources.disk.jsonl import KEYS, TOLD, JsonlReader

_MEMORY = 2_500_000_000
"""Most bytes of memory for the process that reads a file."""
_MOST_BYTES = 8_000_000_000
"""Most that the rows of a file may come to: small files can unpack to anything."""
_ROWS = 100  # at once
_LOOK_SECONDS = 0.05


class ParquetReader(JsonlReader):
    """A Parquet file, as `kbkit documents NAME --output FILE.parquet` writes it.

    Native code reads it, which a damaged or hostile file may crash or fill memory by; so a process
    of its own, with limits, makes JSON lines of it.
    """

    type = "parquet"
    _unit = "row"

    @contextmanager
    def _opened(self, path: Path, context: SourceContext) -> Iterator[IO[bytes] | None]:
        with open_file(path), tempfile.TemporaryDirectory(prefix="kbkit-") as folder:
            lines = Path(folder, "rows.jsonl")
            workers = Workers(1, memory=_MEMORY, preload=__name__)
            try:
                result = workers.submit(_ToLines(str(path.absolute()), str(lines)))
                while not result.done():
                    if context.stop():
                        yield None
                        return
                    time.sleep(_LOOK_SECONDS)
                error = result.result()
            finally:
                workers.close()
            if isinstance(error, MissingExtraError):
                raise error
            if error is not None:
                raise SourceError(f"{path}: cannot be read as Parquet ({error})")
            with lines.open("rb") as stream:
                yield stream


@dataclass(frozen=True, slots=True)
class _ToLines:
    """A Parquet file to write as JSON lines; what comes of it is what went wrong, or ``None``."""

    path: str
    lines: str
    seconds: float = 1_800.0

    def perform(self) -> Exception | None:
        try:
            _write_lines(self.path, self.lines)
        except MissingExtraError as error:
            return error
        except MemoryError:
            return ValueError(f"needs more than {_MEMORY / 1e9:g} GB of memory")
        except Exception as error:
            return ValueError(" ".join(str(error).split())[:300] or type(error).__name__)
        return None

    def broken(self, reason: str) -> Exception:
        return ValueError(reason)


def _write_lines(path: str, lines: str) -> None:
    with extra("parquet", "pyarrow", "Reading Parquet"):
        from pyarrow.parquet import ParquetFile
    keys = {*KEYS, *TOLD, "text"}
    with ParquetFile(path) as file, Path(lines).open("wb") as stream:
        names = file.schema_arrow.names
        unknown = [name for name in names if name not in keys]
        if unknown:
            raise ValueError(f"unknown column {unknown[0]!r}; the columns are {', '.join(KEYS)}")
        if len(set(names)) < len(names):
            raise ValueError("two columns have the same name")
        wanted = [name for name in names if name not in TOLD or name == "state"]
        for batch in file.iter_batches(_ROWS, columns=wanted, use_threads=False):
            for row in batch.to_pylist():
                stream.write(json.dumps(_told(row), default=_plain).encode() + b"\n")
            if stream.tell() > _MOST_BYTES:
                raise ValueError(f"its rows come to more than {_MOST_BYTES / 1e9:g} GB")


def _told(row: Mapping[str, Any]) -> dict[str, Any]:
    """What a row says; its metadata is JSON, a structure, or a map."""
    told = {name: value for name, value in row.items() if value is not None}
    metadata = told.get("metadata")
    try:
        if isinstance(metadata, str | bytes):
            told["metadata"] = json.loads(metadata)
        elif isinstance(metadata, list):
            told["metadata"] = dict(metadata)
        elif isinstance(metadata, dict):
            told["metadata"] = {key: one for key, one in metadata.items() if one is not None}
    except (TypeError, ValueError, RecursionError):
        pass  # as it is: the line is refused
    return told


def _plain(value: Any) -> str:
    """Values that JSON lacks: times, exact numbers, and texts that nobody said to be texts."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
