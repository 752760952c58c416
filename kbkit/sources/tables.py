"""The sources `jsonl` and `parquet`: documents as rows."""

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Annotated, Any

from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from kbkit.errors import MissingExtraError, SourceError
from kbkit.extras import extra
from kbkit.models import DocumentState, DocumentType, License, SourceDocument
from kbkit.models.licenses import KEYS as LICENSE_KEYS
from kbkit.models.values import valid_values
from kbkit.paths import open_file
from kbkit.recipes import JsonlSource, ParquetSource
from kbkit.recipes.base import find_problems
from kbkit.runtime.processes import run_apart
from kbkit.sources import DiskPlace, Outcome, SourceContext, SourceEvent, public_uri

_DERIVED = ("id", "description", "state", "fetched_at", "content_hash")  # derived keys, ignored
_MAX_LENGTH = 50_000_000  # bytes of a line


def _check_filled(text: str) -> str:
    text = text.replace("\x00", "")
    if not text.strip():
        raise ValueError("is empty")
    return text


_Text = Annotated[str, AfterValidator(_check_filled)]


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid")

    uri: _Text
    content: _Text = Field(validation_alias=AliasChoices("content", "text"))
    title: str = ""
    document_type: DocumentType | None = None
    tags: list[str] = []
    metadata: dict[str, Any] = {}
    license: Any = None
    license_url: Any = None
    attribution: Any = None


def read_jsonl(spec: JsonlSource, context: SourceContext) -> Iterator[SourceEvent]:
    """Read JSON lines, as `kbkit documents NAME --jsonl` writes them."""
    return _read(spec, context, open_file, "line")


def _read(
    spec: JsonlSource | ParquetSource,
    context: SourceContext,
    open_lines: Callable[[Path], AbstractContextManager[IO[bytes]]],
    unit: str,
) -> Iterator[SourceEvent]:
    """Read JSON lines; skip invalid ones with line number and reason."""
    path = context.base / spec.path
    name = (context.place or DiskPlace.of(spec.path, context.base)).name
    seen: dict[str, str] = {}
    try:
        with open_lines(path) as lines:
            number = 0
            while line := lines.readline(_MAX_LENGTH + 1):
                number += 1
                if context.stop():
                    return
                place, where = f"{name}:{number}", f"{unit} {number}"
                if len(line) > _MAX_LENGTH:
                    while line and not line.endswith(b"\n"):
                        line = lines.readline(_MAX_LENGTH)
                    reason = f"{where}: longer than {_MAX_LENGTH / 1e6:g} MB"
                    yield SourceEvent(place, Outcome.SKIPPED, reason=reason)
                elif line.strip():
                    yield _event(line, path.parent, place, where, seen)
    except OSError as error:
        raise SourceError(f"{path}: cannot be read ({error.strerror or error})") from error


def _event(line: bytes, folder: Path, place: str, where: str, seen: dict[str, str]) -> SourceEvent:
    try:
        values = _object(line)
        if values.get("state") == DocumentState.GONE:
            raise ValueError("gone from its source already when it was exported")
        document = _document(values, folder)
    except ValueError as error:
        return SourceEvent(place, Outcome.SKIPPED, reason=f"{where}: {error}")
    if document.uri in seen:
        reason = f"{where}: uri is the same as in {seen[document.uri]}"
        return SourceEvent(document.uri, Outcome.SKIPPED, reason=reason)
    seen[document.uri] = where
    return SourceEvent(document.uri, Outcome.FETCHED, document)


def _document(values: dict[str, Any], folder: Path) -> SourceDocument:
    fields = {k: v for k, v in values.items() if v not in (None, "") and k not in _DERIVED}
    try:
        row = _Row.model_validate(fields)
    except ValidationError as error:
        raise ValueError(str(find_problems(error, _Row)[0])) from None
    uri = public_uri(row.uri, folder)
    title = " ".join(row.title.replace("\x00", "").split()) or uri
    # names of pictures, which are not in the lines
    metadata = {key: value for key, value in row.metadata.items() if key != "images"}
    if not any(metadata.get(key) for key in LICENSE_KEYS):
        metadata |= License.of(values).to_metadata()
    return SourceDocument(uri, title, row.content, row.document_type, tuple(row.tags), metadata)


def _object(line: bytes) -> dict[str, Any]:
    try:
        # lone surrogates are valid JSON, but cannot be stored
        values = valid_values(json.loads(line.decode("utf-8-sig"), parse_constant=_no_number))
    except UnicodeDecodeError:
        raise ValueError("not UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON ({error.msg} at column {error.colno})") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(values, dict):
        raise ValueError("not a JSON object")
    return values


def _no_number(name: str) -> float:
    raise ValueError(f"not JSON ({name} is not a JSON number)")


_MEMORY = 2_500_000_000  # bytes of the reading process
_MAX_BYTES = 8_000_000_000  # of a file's rows, since small files can unpack to any size
_ROWS = 100  # per batch


def read_parquet(spec: ParquetSource, context: SourceContext) -> Iterator[SourceEvent]:
    """Read a Parquet file, as `kbkit documents NAME --output FILE.parquet` writes it.

    A child process with limits converts it to JSON lines, since a hostile file may crash native
    code or exhaust memory.
    """
    return _read(spec, context, partial(_converted, stop=context.stop), "row")


@contextmanager
def _converted(path: Path, stop: Callable[[], bool]) -> Iterator[IO[bytes]]:
    with open_file(path), tempfile.TemporaryDirectory(prefix="kbkit-") as folder:
        lines = Path(folder, "rows.jsonl")
        lines.touch()
        task = _ToLines(str(path.absolute()), str(lines))
        error = run_apart(task, stop, memory=_MEMORY, preload=__name__)
        if isinstance(error, MissingExtraError):
            raise error
        if error is not None:
            raise SourceError(f"{path}: cannot be read as Parquet ({error})")
        with lines.open("rb") as stream:
            yield stream


@dataclass(frozen=True, slots=True)
class _ToLines:
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
    columns = list(_Row.model_fields)
    with ParquetFile(path) as file, Path(lines).open("wb") as stream:
        names = file.schema_arrow.names
        unknown = [name for name in names if name not in {*columns, *_DERIVED, "text"}]
        if unknown:
            raise ValueError(f"unknown column {unknown[0]!r}; the columns are {', '.join(columns)}")
        if len(set(names)) < len(names):
            raise ValueError("two columns have the same name")
        selected = [name for name in names if name not in _DERIVED or name == "state"]
        for batch in file.iter_batches(_ROWS, columns=selected, use_threads=False):
            for row in batch.to_pylist():
                stream.write(json.dumps(_row_values(row), default=_plain).encode() + b"\n")
            if stream.tell() > _MAX_BYTES:
                raise ValueError(f"its rows come to more than {_MAX_BYTES / 1e9:g} GB")


def _row_values(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as a document's values; metadata may be JSON, a struct or a map."""
    values = {name: value for name, value in row.items() if value is not None}
    metadata = values.get("metadata")
    try:
        if isinstance(metadata, str | bytes):
            values["metadata"] = json.loads(metadata)
        elif isinstance(metadata, list):
            values["metadata"] = dict(metadata)
        elif isinstance(metadata, dict):
            values["metadata"] = {key: item for key, item in metadata.items() if item is not None}
    except (TypeError, ValueError, RecursionError):
        pass  # left unchanged: the line is refused
    return values


def _plain(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
