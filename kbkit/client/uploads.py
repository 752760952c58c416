"""Upload local files, which the server reads as a source."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from kbkit.errors import ConfigError, SourceError
from kbkit.globs import matches, split_glob
from kbkit.models import SourceDocument
from kbkit.models.values import to_json
from kbkit.recipes import AnySource, SourceSpec, parse_source

_DOCUMENT_KEYS = frozenset({"text", "text_resource", "metadata", "extra_info", "id_", "doc_id"})

_BATCH_BYTES = 50_000_000
"""Maximum bytes of a batch."""
_BATCH_FILES = 500
MAX_BYTES = 90_000_000
"""Maximum size of a file; servers take 100 MB by default."""


class UploadBatch(NamedTuple):
    """Files that are sent at once, and the source that they are.

    Attributes:
        source: The source as in a recipe, with the uploaded path.
    """

    source: dict[str, Any]
    files: list[tuple[str, bytes]]
    left_out: list[tuple[str, str]]


def batches(source: Mapping[str, Any], base: Path) -> Iterator[UploadBatch]:
    """Iterate over uploads for a source on disk, in parts.

    Hidden files stay here, and so do those that links lead out of the folder to.
    """
    root, found = _found(str(source["path"]), base)
    name = _name(root, base)
    files: list[tuple[str, bytes]] = []
    left_out: list[tuple[str, str]] = []
    told = {**source, "path": name or "."}
    size, sent = 0, False
    for path in found:
        inside = PurePosixPath(name, path.relative_to(root).as_posix()).as_posix()
        try:
            if path.stat().st_size > MAX_BYTES:
                left_out.append((inside, f"larger than {MAX_BYTES / 1e6:g} MB"))
                continue
            data = path.read_bytes()
        except OSError as error:
            left_out.append((inside, f"cannot be read ({error.strerror})"))
            continue
        if files and (size + len(data) > _BATCH_BYTES or len(files) == _BATCH_FILES):
            yield UploadBatch(told, files, left_out)
            files, left_out, size, sent = [], [], 0, True
        files.append((inside, data))
        size += len(data)
    if files or left_out or not sent:
        yield UploadBatch(told, files, left_out)


def _found(path: str, base: Path) -> tuple[Path, list[Path]]:
    full = base / Path(path).expanduser()
    if full.is_file():
        return full, [full]
    root, pattern = full, ""
    if not full.is_dir():
        start, pattern = split_glob(path.replace(os.sep, "/"))
        root = base / Path(start).expanduser()
    found = []
    if root.is_dir() and (pattern or full.is_dir()):
        found = [
            each
            for each in _walk(root)
            if not pattern or matches(each.relative_to(root).as_posix(), (pattern,))
        ]
    if not found:
        raise SourceError(
            f"{path}: no such file or folder, and no file matches it as a glob "
            f"(relative paths start at {base.resolve()})"
        )
    return root, found


def _walk(root: Path) -> Iterator[Path]:
    """The files of a folder, by name; none that is hidden or lies elsewhere."""
    inside = root.resolve()
    for above, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(above, name)
            lies_here = not name.startswith(".") and path.resolve().is_relative_to(inside)
            if lies_here and path.is_file():
                yield path


def _name(root: Path, base: Path) -> str:
    """Return a path's name in URIs, as a local workspace would have it."""
    here = Path.cwd()
    full, start = (Path(os.path.normpath(here / each)) for each in (root, base))
    if full.is_relative_to(start) and start != Path(start.anchor):
        inside = full.relative_to(start).as_posix()
        return "" if inside == "." else inside
    return "" if full == Path.home() else full.name


def split(items: Iterable[Any]) -> tuple[list[AnySource], list[dict[str, Any]]]:
    """Separate sources from documents, as JSON, in nested lists of both."""
    sources: list[AnySource] = []
    documents: list[dict[str, Any]] = []
    for item in items:
        if isinstance(item, SourceSpec):
            sources.append(item)  # type: ignore[arg-type]  # each of those is one
        elif isinstance(item, Mapping) and not _DOCUMENT_KEYS.intersection(item):
            sources.append(_described(item))
        elif isinstance(item, SourceDocument):
            documents.append(_document(item))
        elif isinstance(item, Mapping):
            documents.append(to_json(item))
        elif hasattr(item, "get_content"):
            documents.append(to_json(item.to_dict()))
        elif isinstance(item, Iterable) and not isinstance(item, (str, bytes)):
            more, others = split(item)
            sources += more
            documents += others
        else:
            raise ConfigError(
                f"{item!r:.80} cannot be ingested: give sources, such as FilesSource(path='docs') "
                "or {'type': 'files', 'path': 'docs'}, or documents of a llama-index reader"
            )
    return sources, documents


def _described(values: Mapping[str, Any]) -> AnySource:
    try:
        return parse_source(values)
    except ConfigError as error:
        raise ConfigError(f"{dict(values)!r:.80} describes no source: {error}") from None


def _document(document: SourceDocument) -> dict[str, Any]:
    """A document as JSON; a server takes no pictures with it."""
    told: dict[str, Any] = to_json(replace(document, images={}))
    return told
