"""Formats of files: bytes in, Markdown out.

Each module has ``read(data, name) -> list[Part]``, or such a function per format, and raises
`UnreadableError` with a one-line reason. Files are hostile and parsers have bugs: `parse` turns any
error into a reason, and `FileParser` runs it in a process with limits on time and memory.
"""

import importlib
import posixpath
from concurrent.futures import Future
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

from kbkit.errors import MissingExtraError
from kbkit.runtime.engine import Engine, WorkerPool
from kbkit.sources.decode import binary_kind, decode_text
from kbkit.sources.parts import MAX_BYTES, Part, check_length
from kbkit.sources.untrusted import UnreadableError

_SUFFIXES = {
    "markdown": "md markdown mdown mkd mdx",
    "text": "txt text adoc org log",
    "html": "html htm xhtml",
    "pdf": "pdf",
    "docx": "docx docm",
    "pptx": "pptx pptm",
    "sheet": "xlsx xlsm",
    "csv": "csv tsv",
    "epub": "epub",
    "notebook": "ipynb",
    "rst": "rst rest",
    "data": "json jsonc yaml yml ndjson",
    "code": (
        "py pyi js mjs cjs jsx ts tsx java kt kts scala go rs c h cc cpp cxx hpp hh cs rb php "
        "swift m lua pl pm r jl hs ex exs erl clj dart zig sh bash zsh ps1 sql proto graphql tf "
        "toml ini cfg"
    ),
}
FORMATS = {f".{suffix}": name for name, line in _SUFFIXES.items() for suffix in line.split()}

NEED_PROCESS = _SUFFIXES.keys() - {"markdown", "text"}

MULTIPLE = frozenset({"sheet", "epub", "data"})
"""Formats with several documents in a file."""

_REPLACEMENTS = {
    **dict.fromkeys((".doc", ".rtf", ".odt"), ".docx"),
    **dict.fromkeys((".xls", ".ods"), ".xlsx"),
    **dict.fromkeys((".ppt", ".odp"), ".pptx"),
    ".mobi": ".epub",
}
_MODULES = {
    "csv": "sheet",
    "data": "code",
    **dict.fromkeys(("docx", "pptx"), "office"),
    **dict.fromkeys(("markdown", "text", "html", "rst", "notebook", "epub"), "text"),
}
_BINARY = frozenset({"pdf", "docx", "pptx", "sheet", "epub"})
_SELF_DECLARING = frozenset({"html", "code"})  # may declare their charset


def belongs(name: str) -> bool:
    """Whether a file of a folder is read, or reported because its format is outdated."""
    suffix = posixpath.splitext(name)[1].lower()
    return not suffix or suffix in FORMATS or suffix in _REPLACEMENTS


def format_of(name: str) -> str:
    suffix = posixpath.splitext(name.replace("\\", "/").rpartition("/")[2])[1].lower()
    if not suffix:
        return "text"
    if suffix in FORMATS:
        return FORMATS[suffix]
    if suffix in _REPLACEMENTS:
        raise UnreadableError(f"{suffix} files are not read; save it as {_REPLACEMENTS[suffix]}")
    raise UnreadableError(
        f"{suffix} files are not read (Markdown, text, HTML, PDF, DOCX, PPTX, XLSX, CSV, EPUB, "
        "notebooks, RST, JSON, YAML and source code are)"
    )


def parse(name: str, data: bytes) -> list[Part]:
    """Read a file in this process."""
    form = format_of(name)
    if len(data) > MAX_BYTES:
        raise UnreadableError(f"larger than {MAX_BYTES / 1e6:g} MB")
    if not data.strip():
        raise UnreadableError("no text" if form in ("text", "markdown") else "empty file")
    if form not in _BINARY and (kind := binary_kind(data)):
        raise UnreadableError(f"{kind}, not text")
    module = importlib.import_module(f"kbkit.sources.formats.{_MODULES.get(form, form)}")
    try:
        reader = getattr(module, f"read_{form}", None) or module.read
        parts: list[Part] = reader(data, name)
    except (UnreadableError, MissingExtraError):
        raise
    except MemoryError:
        raise UnreadableError("needs too much memory to be read") from None
    except RecursionError:
        raise UnreadableError("nested too deeply to be read") from None
    except Exception as error:  # a parser's bug must cost only this file
        message = " ".join(str(error).split())[:200]
        kind = type(error).__name__ + (f": {message}" if message else "")
        raise UnreadableError(f"broken, or not a valid {form} file ({kind})") from None
    nonempty = [part for part in parts if part.content.strip()]
    if not nonempty:
        raise UnreadableError("no text")
    check_length(sum(len(part.content) for part in nonempty))
    if form not in _BINARY and (note := decode_text(data, markup=form in _SELF_DECLARING).note):
        nonempty[0] = replace(nonempty[0], note="; ".join(filter(None, (note, nonempty[0].note))))
    return nonempty


MEMORY = 2_500_000_000  # bytes of the reading process


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """Result of reading a file; if it `failed`, the content is unknown."""

    parts: tuple[Part, ...] = ()
    reason: str = ""
    failed: bool = False


@dataclass(frozen=True, slots=True)
class ParseTask:
    """A file to read; a `kbkit.runtime.processes.WorkerTask`."""

    name: str
    data: bytes
    seconds: ClassVar[float] = 120.0

    def perform(self) -> ParsedFile:
        try:
            return ParsedFile(tuple(parse(self.name, self.data)))
        except UnreadableError as error:
            return ParsedFile(reason=str(error))
        except MissingExtraError as error:
            return ParsedFile(reason=str(error), failed=True)

    def broken(self, reason: str) -> ParsedFile:
        return ParsedFile(reason=reason, failed=True)


class FileParser(ExitStack):
    """Reads files in child processes, started when the first file needs one."""

    def __init__(self, count: int | None = None, engine: Engine | None = None) -> None:
        super().__init__()
        self._count = count
        self._engine = engine or Engine()

    def submit(self, name: str, data: bytes) -> Future[ParsedFile]:
        """Parse a file in a child process, or here for plain text and without child processes."""
        needed = FORMATS.get(posixpath.splitext(name)[1].lower()) in NEED_PROCESS
        workers = self._workers if needed else None
        return (workers or self._engine.pool()).submit(ParseTask(name, data))

    @cached_property
    def _workers(self) -> WorkerPool | None:
        try:
            workers = self._engine.child_processes(
                self._count, memory=MEMORY, preload="kbkit.sources.html.extract"
            )
        except OSError:
            return None
        return self.enter_context(closing(workers))
