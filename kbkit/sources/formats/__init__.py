"""Formats of files: bytes in, Markdown out.

Each module has ``read(data, name) -> list[Part]``, or such a function per format, and raises
`UnreadableError` with a one-line reason. Files are hostile and parsers have bugs: `parse` turns any
error into a reason, and `kbkit.sources.formats.file_parser` runs it with limits on time and memory.
"""

from __future__ import annotations

import importlib
import posixpath
from dataclasses import replace

from kbkit.errors import MissingExtraError
from kbkit.sources.decode import binary_kind, decoded
from kbkit.sources.parts import MAX_BYTES, MAX_CHARACTERS, Part, UnreadableError

__all__ = [
    "FORMATS",
    "MULTIPLE",
    "NEED_PROCESS",
    "Part",
    "UnreadableError",
    "belongs",
    "format_of",
    "parse",
]

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

NEED_PROCESS = frozenset(
    {"html", "pdf", "docx", "pptx", "sheet", "csv", "epub", "notebook", "rst", "data", "code"}
)

MULTIPLE = frozenset({"sheet", "epub", "data"})
"""Formats with several documents in a file."""

_REPLACEMENTS = {
    ".doc": ".docx",
    ".xls": ".xlsx",
    ".ppt": ".pptx",
    ".rtf": ".docx",
    ".odt": ".docx",
    ".ods": ".xlsx",
    ".odp": ".pptx",
    ".mobi": ".epub",
}
_MODULES = {"csv": "sheet", **dict.fromkeys(("markdown", "text", "html", "rst"), "written")}
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
        read = getattr(module, f"read_{form}", None) or module.read
        parts: list[Part] = read(data, name)
    except (UnreadableError, MissingExtraError):
        raise
    except MemoryError:
        raise UnreadableError("needs too much memory to be read") from None
    except RecursionError:
        raise UnreadableError("nested too deeply to be read") from None
    except Exception as error:  # a parser's bug must cost only this file
        message = " ".join(str(error).split())[:200]
        kind = type(error).__name__ + (f": {message}" if message else "")
        raise UnreadableError(f"broken, or no {form} file ({kind})") from None
    filled = [part for part in parts if part.content.strip()]
    if not filled:
        raise UnreadableError("no text")
    if sum(len(part.content) for part in filled) > MAX_CHARACTERS:
        raise UnreadableError(f"more than {MAX_CHARACTERS / 1e6:g} million characters of text")
    if form not in _BINARY and (note := decoded(data, markup=form in _SELF_DECLARING).note):
        filled[0] = replace(filled[0], note="; ".join(filter(None, (note, filled[0].note))))
    return filled
