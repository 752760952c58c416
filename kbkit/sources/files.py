"""The source ``files``: Markdown, plain text and HTML on disk."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from pathlib import Path

from kbkit.errors import SourceError
from kbkit.models import SourceDocument
from kbkit.recipes import FilesSource
from kbkit.sources.base import Outcome, SourceContext, SourceEvent
from kbkit.sources.decode import binary_kind, decode
from kbkit.sources.doctype import detect
from kbkit.sources.textfile import Text, read_text

MARKDOWN = frozenset({".md", ".markdown", ".mdown", ".mkd", ".mdx"})
TEXTS = frozenset({".txt", ".text", ".rst", ".adoc", ".org", ""})
PAGES = frozenset({".html", ".htm", ".xhtml"})
_MOST_BYTES = 50_000_000


class Files:
    """Files that a glob, a folder or a path names.

    Args:
        spec: The part of the recipe that describes them.
    """

    type = "files"
    exhaustive = True

    def __init__(self, spec: FilesSource) -> None:
        self._spec = spec

    def events(self, context: SourceContext) -> Iterator[SourceEvent]:
        """Read the files in the order of their names.

        Raises:
            SourceError: There is no such file or folder, or the glob matches nothing.
        """
        for path in _found(self._spec.path, context.base):
            if context.stop():
                return
            yield self._read(path, uri_of(path, context.base))

    def _read(self, path: Path, uri: str) -> SourceEvent:
        suffix = path.suffix.lower()
        if suffix not in MARKDOWN | TEXTS | PAGES:
            reason = f"{suffix} files are not read (Markdown, text and HTML are)"
            return SourceEvent(uri, Outcome.SKIPPED, reason=reason)
        try:
            if path.stat().st_size > _MOST_BYTES:
                reason = f"larger than {_MOST_BYTES / 1e6:g} MB"
                return SourceEvent(uri, Outcome.SKIPPED, reason=reason)
            body = path.read_bytes()
        except OSError as error:
            return SourceEvent(uri, Outcome.FAILED, reason=f"cannot be read ({error.strerror})")
        if kind := binary_kind(body):
            return SourceEvent(uri, Outcome.SKIPPED, reason=f"{kind}, not text")
        if suffix in PAGES:
            text, reason = _page(body, path)
        else:
            text, reason = read_text(decode(body, markup=False), uri), ""
        if not text.content:
            return SourceEvent(uri, Outcome.SKIPPED, reason=reason or "no text")
        kind_of = self._spec.document_type or detect(uri, text.title, text.content)
        tags = tuple(dict.fromkeys((*self._spec.tags, *text.tags)))
        document = SourceDocument(uri, text.title, text.content, kind_of, tags, text.metadata)
        return SourceEvent(uri, Outcome.FETCHED, document)


def uri_of(path: Path, base: Path) -> str:
    """The URI of a file: its path from the base folder, with forward slashes.

    A file outside the base keeps its absolute path.
    """
    full = Path(os.path.abspath(path))  # noqa: PTH100 - links are to keep their own names
    root = Path(os.path.abspath(base))  # noqa: PTH100
    if full.is_relative_to(root):
        return full.relative_to(root).as_posix()
    return full.as_posix()


def _page(body: bytes, path: Path) -> tuple[Text, str]:
    from kbkit.sources.extract import extract

    page = extract(decode(body), path.resolve().as_uri())
    return Text(page.title or path.stem, page.content), page.reason


def _found(pattern: str, base: Path) -> list[Path]:
    full = base / Path(pattern).expanduser()
    if full.is_file():
        return [full]
    if full.is_dir():
        known = MARKDOWN | PAGES | TEXTS - {""}
        # a folder means its documents; hidden folders hold tools' own files
        return sorted(
            path
            for path in full.rglob("*")
            if path.suffix.lower() in known
            and path.is_file()
            and not any(part.startswith(".") for part in path.relative_to(full).parts)
        )
    found = sorted(Path(name) for name in glob.iglob(str(full), recursive=True))  # noqa: PTH207
    files = [path for path in found if path.is_file()]
    if not files:
        raise SourceError(
            f"{pattern}: no such file or folder, and no file matches it as a glob "
            f"(relative paths start at {base.resolve()})"
        )
    return files
