"""The source ``files``: documents, tables, notebooks, data and source code on disk."""

import os
import posixpath
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import nullcontext, suppress
from dataclasses import replace
from itertools import islice, pairwise, product
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kbkit.errors import SourceError
from kbkit.models import DocumentType, PageRecord, SourceDocument
from kbkit.models.documents import Navigation
from kbkit.paths import bytes_of, find_files, matches
from kbkit.recipes import FilesSource
from kbkit.sources import DiskPlace, Outcome, SourceContext, SourceEvent
from kbkit.sources.formats import MULTIPLE, FileParser, ParsedFile, belongs, format_of
from kbkit.sources.html.images import collect, local_reader
from kbkit.sources.parts import MAX_BYTES, Part, detect, title_from_name
from kbkit.sources.untrusted import UnreadableError, load_values
from kbkit.text.markdown.extensions import resolve_wiki_links
from kbkit.text.markdown.structure import slug

_DEEPEST = 20  # levels of sections
_MAX_ENTRIES = 20_000  # pages

_Above = tuple[tuple[str, Path | None], ...]
"""Titles of the sections around a page, outermost first, with their introductory pages."""

_CONFIGS = ("mkdocs.yml", "mkdocs.yaml", "zensical.yml")
_MAX_CONFIGURATION = 500_000  # bytes of a configuration
_INDEX = ("index", "readme")


def _read_navigation(folder: Path, place: DiskPlace) -> dict[Path, tuple[str, Navigation]]:
    """Return titles and places in MkDocs' ``nav`` by file; the first entry of a page counts."""
    entries: dict[Path, tuple[str, _Above]] = {}
    with suppress(ValueError):  # a null character in a name
        for path, title, above in islice(_read_configuration(folder), _MAX_ENTRIES):
            entries.setdefault(path, (title, above))
    root = place.root.resolve()

    def uri(page: Path | None) -> str:
        if page is None or not page.is_relative_to(root):
            return ""
        return place.uri(place.root / page.relative_to(root))

    following = dict(pairwise(entries))
    navigation = {}
    for path, (title, above) in entries.items():
        sections = [(section, uri(page)) for section, page in above]
        navigation[path] = title, Navigation.of_values(sections, uri(following.get(path)))
    return navigation


def _read_configuration(folder: Path) -> Iterator[tuple[Path, str, _Above]]:
    for place, name in product((folder, folder.parent), _CONFIGS):
        try:
            data = bytes_of(place / name, _MAX_CONFIGURATION + 1)
            loaded = load_values(data.decode()) if len(data) <= _MAX_CONFIGURATION else None
        except (OSError, ValueError):
            continue
        if isinstance(loaded, dict):
            docs = place / str(loaded.get("docs_dir") or "docs")
            return _nav_entries(loaded.get("nav"), docs, (), 0)
    return iter(())


def _nav_entries(
    nav: Any, docs: Path, above: _Above, depth: int
) -> Iterator[tuple[Path, str, _Above]]:
    for item in nav if isinstance(nav, list) and depth < _DEEPEST else ():
        entries = item.items() if isinstance(item, dict) else [("", item)]
        for title, target in entries:
            if isinstance(target, str) and "://" not in target:
                yield _real_path(docs / target), str(title), above
            elif isinstance(target, list):
                inner = (*above, (str(title), _index(target, docs)))
                yield from _nav_entries(target, docs, inner, depth + 1)


def _index(nav: list[Any], docs: Path) -> Path | None:
    """Return the page that introduces a section: an index in first place."""
    first = nav[0] if nav else None
    if isinstance(first, dict):
        first = next(iter(first.values()), None)
    if isinstance(first, str) and Path(first).stem.casefold() in _INDEX:
        return _real_path(docs / first)
    return None


def _real_path(path: Path) -> Path:
    """Follow links; circular ones stay (`Path.resolve` raises `RuntimeError`)."""
    return Path(os.path.realpath(path))


_AHEAD = 8  # files in memory
_ILLUSTRATED = frozenset({"markdown", "notebook"})  # formats that refer to picture files


def _names(paths: Sequence[Path], root: Path) -> dict[str, str]:
    """Map names in wiki links (name or path without suffix) to files, nearest to the top first."""
    places = [_real_path(path) for path in paths]
    relative = [place.relative_to(root) for place in places if root in place.parents]
    names: dict[str, str] = {}
    for path in sorted(relative, key=lambda each: (len(each.parts), each)):
        for name in (path.stem, path.with_suffix("").as_posix()):
            names.setdefault(name.casefold(), path.as_posix())
    return names


def read_files(spec: FilesSource, context: SourceContext) -> Iterator[SourceEvent]:
    """Read the files of a glob, a folder or a path in the order of their names."""
    paths, root = files_of(spec, context.base)
    place = context.place or DiskPlace.of(spec.path, context.base)
    navigation = _read_navigation(root, place) if root else {}
    names = _names(paths, root) if root else {}
    for path, parsed in _parse(paths[: spec.limit], place, root, context):
        uri = place.uri(path)
        if parsed.reason:
            yield from _unread(uri, parsed, context)
        title, nav = navigation.get(_real_path(path), ("", Navigation()))
        for original in _documents(uri, parsed):
            document = _with_files(original, path, root, names)
            if title and document.title == title_from_name(uri):  # no title in the document
                document = replace(document, title=title)
            if nav:
                metadata = {**document.metadata, **nav.to_metadata()}
                document = replace(document, metadata=metadata)
            # so that a later failure of the file is reported for each of its parts
            is_part = document.uri != uri
            record = PageRecord(document.uri, document_uri=document.uri) if is_part else None
            yield SourceEvent(document.uri, Outcome.FETCHED, document, record=record)
    excess = len(paths) - spec.limit
    if excess > 0 and not context.stop():
        reason = f"{excess} more files are beyond the limit of {spec.limit}"
        yield SourceEvent(spec.path, Outcome.SKIPPED, reason=reason)


def _parse(
    paths: Sequence[Path], place: DiskPlace, root: Path | None, context: SourceContext
) -> Iterator[tuple[Path, ParsedFile]]:
    """Parse files, a few ahead, and yield them in order."""
    with FileParser(min(os.cpu_count() or 1, len(paths)), context.engine) as parser:
        submitted = ((path, _submit(parser, path, place.uri(path), root)) for path in paths)
        pending = deque(islice(submitted, _AHEAD))
        while pending and not context.stop():
            if wait([pending[0][1]], 0.2).done:
                path, future = pending.popleft()
                pending.extend(islice(submitted, 1))
                yield path, future.result()


def _submit(parser: FileParser, path: Path, uri: str, root: Path | None) -> Future[ParsedFile]:
    try:
        format_of(path.name)
        if root is not None and not _real_path(path).is_relative_to(root):
            raise UnreadableError("a link that leads out of the folder")
        if not path.is_file():
            raise UnreadableError("not a file")
        # reported sizes are wrong for some files
        return parser.submit(uri, bytes_of(path, MAX_BYTES + 1))
    except UnreadableError as error:
        parsed = ParsedFile(reason=str(error))
    except OSError as error:
        parsed = ParsedFile(reason=f"cannot be read ({error.strerror})", failed=True)
    future: Future[ParsedFile] = Future()
    future.set_result(parsed)
    return future


def _unread(uri: str, parsed: ParsedFile, context: SourceContext) -> Iterator[SourceEvent]:
    """Yield an event for a file that was not read, and one for each of its parts if it failed."""
    outcome = Outcome.FAILED if parsed.failed else Outcome.SKIPPED
    yield SourceEvent(uri, outcome, reason=parsed.reason)
    if parsed.failed and format_of(uri) in MULTIPLE:
        for record in context.memory.known():
            if record.url.startswith((uri + "/", uri + "#/")):
                yield SourceEvent(record.url, outcome, reason=parsed.reason, record=record)


def _with_files(
    document: SourceDocument, path: Path, root: Path | None, names: Mapping[str, str]
) -> SourceDocument:
    """Point a document's wiki links to files, and add its pictures."""
    form, folder = format_of(path.name), root or _real_path(path).parent

    def address(name: str, heading: str) -> str | None:
        target = names.get(name.removesuffix(".md").casefold())
        if target is None:
            return None
        start = _real_path(path).relative_to(folder).parent.as_posix()
        href = quote(posixpath.relpath(target, start))
        return f"{href}#{quote(slug(heading))}" if heading else href

    if form == "markdown" and names:
        content = resolve_wiki_links(document.content, address, keep=True)
        document = replace(document, content=content)
    if form in _ILLUSTRATED:
        images = collect(document.content, local_reader(path, folder))
        document = replace(document, images=images)
    return document


def read_file(name: str, data: bytes, *, reader: FileParser | None = None) -> list[SourceDocument]:
    """Read an uploaded file in a child process."""
    with nullcontext(reader) if reader is not None else FileParser(1) as parser:
        parsed = parser.submit(name, data).result()
    if parsed.reason:
        raise SourceError(f"{name}: {parsed.reason}")
    return _documents(name, parsed)


def _documents(uri: str, parsed: ParsedFile) -> list[SourceDocument]:
    documents: dict[str, SourceDocument] = {}
    for part in parsed.parts:
        part_uri = f"{uri}/{quote(part.name, safe='/ ')}" if part.name else uri
        if part.name.startswith("#/"):  # a JSON pointer into the file
            part_uri = uri + part.name
        number = 1
        while part_uri in documents:
            number += 1
            part_uri = f"{uri}/{quote(part.name, safe='/ ')}-{number}"
        kind, metadata = _detect_type(uri, part), dict(part.metadata)
        documents[part_uri] = SourceDocument(
            part_uri, part.title, part.content, kind, part.tags, metadata, note=part.note
        )
    return list(documents.values())


def _detect_type(uri: str, part: Part) -> DocumentType:
    if part.metadata.get("format") == "openapi":
        return DocumentType.API_SPEC
    kind = detect(uri, part.title, part.content, part.template)
    if kind is DocumentType.OTHER and part.metadata.get("format") == "code":
        return DocumentType.REFERENCE
    return kind


def files_of(spec: FilesSource, base: Path) -> tuple[list[Path], Path | None]:
    """Return the files to read, and the folder that links must not lead out of."""
    root, pattern, files = find_files(spec.path, base)
    if root.is_file():
        return [root], None

    def is_readable(path: Path) -> bool:
        # `_category_` describes a folder to Docusaurus
        is_named = belongs(path.name) and path.stem != "_category_"
        return is_named and bool(path.suffix or path.is_file())

    chosen = ((path, inside) for path, inside in files if pattern or is_readable(path))
    return [path for path, inside in chosen if not matches(inside, spec.exclude)], root.resolve()
