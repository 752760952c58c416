"""Writes the pages of a knowledge base into a folder, and only what has changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from kbkit.errors import ConflictError, ExportError
from kbkit.export.facts import Facts
from kbkit.export.files import write_file
from kbkit.export.manifest import Manifest
from kbkit.export.pages.about_page import DOCUMENTS, FULL_TEXT, about_page
from kbkit.export.pages.document_page import Frame, document_page
from kbkit.export.pages.fingerprints import Stamps
from kbkit.export.pages.links import LinkMap
from kbkit.export.pages.list_pages import list_pages
from kbkit.export.pages.machine_readable import documents_json, full_text
from kbkit.export.pages.outline import ABOUT, BROWSE, HOME, Outline, entries, make_outline
from kbkit.export.pages.sections import Section
from kbkit.export.report import ExportReport
from kbkit.models import Document, DocumentState, KnowledgeBaseInfo, Progress
from kbkit.models.plain import plain
from kbkit.progress import OnProgress
from kbkit.recipes import SiteSpec

NAV_SIZE = 20
"""Most sections that the navigation names. The theme renders it anew in every page: 20 more cost
1,900 pages 2 seconds and 13 MB. The home page has them all."""
NAV_DOCUMENTS = 30
"""Most documents of a knowledge base whose documents the navigation names."""


def export_pages(
    info: KnowledgeBaseInfo,
    documents: Iterable[Document],
    directory: Path,
    site: SiteSpec,
    on_progress: OnProgress | None = None,
    *,
    facts: Facts | None = None,
) -> ExportReport:
    """Write one Markdown page a document and pages that lead to them into a folder.

    Pages that are as they should be are not touched, pages of documents that are no more are
    removed, and files that no export wrote are left alone.

    Args:
        info: What the registry knows of the knowledge base.
        documents: Its documents. Those that are gone are left out. A collection that can be
            iterated twice is read twice instead of being held in memory.
        directory: Folder to write to; it becomes part of a MkDocs documentation folder.
        site: What the site says.
        on_progress: Called after each page.
        facts: What else the pages tell.

    Raises:
        ExportError: The folder cannot be written, or holds files of somebody else.
        ConflictError: Another process exports into the same folder.
    """
    start = time.perf_counter()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with _lock(directory):
            if isinstance(documents, Iterator):
                documents = list(documents)
            report = _export(
                info, documents, directory, site, facts=facts or Facts(), on_progress=on_progress
            )
    except OSError as error:
        raise ExportError(
            f"{directory}: cannot write the pages ({error.strerror or error}); "
            "free the place or choose another folder"
        ) from error
    seconds = {"pages": time.perf_counter() - start}
    return ExportReport(directory, None, *report, seconds=seconds)


@contextmanager
def _lock(directory: Path) -> Iterator[None]:
    lock = FileLock(directory / ".kbkit-export.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise ConflictError(
            f"{directory}: another process exports into this folder; wait until it is done"
        ) from None
    try:
        yield
    finally:
        lock.release()


def _export(
    info: KnowledgeBaseInfo,
    documents: Iterable[Document],
    directory: Path,
    site: SiteSpec,
    *,
    facts: Facts,
    on_progress: OnProgress | None,
) -> tuple[int, int, int, int]:
    """Do the work of `export_pages`.

    Returns:
        Documents, and pages written, unchanged and removed.
    """
    before = Manifest.read(directory)
    outline = make_outline(
        site.title or info.name, entries(documents, before), facts, before, directory
    )
    lists = {
        **list_pages(info, outline),
        ABOUT: about_page(info, outline),
        DOCUMENTS: documents_json(info, outline),
    }
    wanted = {*outline.paths.values(), *lists, FULL_TEXT}
    for path in (HOME, BROWSE, ABOUT, DOCUMENTS, FULL_TEXT):
        if path not in before.files and (directory / path).exists():
            raise ExportError(
                f"{directory / path}: written by somebody else; "
                "choose an empty folder for the export"
            )
    notes = {uri: since.note() for uri, since in outline.history().items()}
    made = Manifest(info.name, outline.title, outline.paths, (), before.nav, notes)
    # Every file is claimed before it is written, so that an export that is killed can be resumed.
    # It keeps the history of the one before, so that what it had not come to is news later
    claimed = tuple(sorted(wanted | set(before.files)))
    replace(made, files=claimed, history=before.history, stamps=before.stamps).write(directory)
    stamps = Stamps(before.stamps, outline)
    written = unchanged = 0
    with full_text(directory / FULL_TEXT, outline) as add:
        read = _shared(documents, add)
        for path, text in _texts(read, outline, lists, directory, stamps):
            changed = text is not None and _write(directory / path, text)
            written += changed
            unchanged += not changed
            if on_progress:
                on_progress(Progress("export", written + unchanged, len(wanted) - 1, path))
    removed = sum(_remove(directory, path) for path in sorted(set(before.files) - wanted))
    files, nav = tuple(sorted(wanted)), tuple(_nav(outline))
    replace(made, files=files, nav=nav, stamps=stamps.now).write(directory)
    return len(outline.paths), written, unchanged, removed


def _texts(
    documents: Iterable[Document],
    outline: Outline,
    lists: Mapping[str, str],
    directory: Path,
    stamps: Stamps,
) -> Iterator[tuple[str, str | None]]:
    """The path and the text of every page; no text where the page stands as it should."""
    links = LinkMap(outline.paths)
    yield from lists.items()
    for document in documents:
        entry = outline.entries.get(document.uri)
        if entry is None or document.state is DocumentState.GONE:
            continue
        path = outline.paths[document.uri]
        frame = Frame.of(entry, outline, links)
        made_of = stamps.made_of(entry, frame)
        if stamps.keep(path, directory / path, made_of):
            yield path, None
            continue
        text = document_page(document, entry.title, frame, links, path)
        stamps.note(path, made_of, text)
        yield path, text


def _shared(documents: Iterable[Document], add: Callable[[Document], None]) -> Iterator[Document]:
    """The documents, each shown to somebody else too, so that they are read once for both."""
    for document in documents:
        add(document)
        yield document


def _write(path: Path, text: str) -> bool:
    """Write a page unless it is there already.

    Returns:
        Whether it was written.
    """
    data = text.encode("utf-8", "replace")
    try:
        if path.read_bytes() == data:
            return False
    except FileNotFoundError:
        pass
    write_file(path, data)
    return True


def _remove(directory: Path, path: str) -> bool:
    """Remove a page of an earlier export, and the folders that it leaves empty."""
    target = directory / path
    if not target.exists():
        return False
    target.unlink()
    for folder in target.relative_to(directory).parents:
        if folder == Path() or any((directory / folder).iterdir()):
            break
        (directory / folder).rmdir()
    return True


def _nav(outline: Outline) -> Iterator[dict[str, Any]]:
    """The navigation: the lists, the documents of a short manual, and the largest sections."""
    short = outline.root.size <= NAV_DOCUMENTS
    sections = outline.root.sections
    chosen = _largest(sections, NAV_SIZE)
    inner = _largest(
        [inner for section in sections for inner in section.sections], NAV_SIZE - len(chosen)
    )
    yield {"title": "Home", "path": HOME}
    yield {"title": "By type and tag", "path": BROWSE}
    yield {"title": "Where this comes from", "path": ABOUT}
    if short:
        yield from _nav_documents(outline, outline.root)
    for section in sections:
        if section.folders in chosen:
            entry = _nav_entry(outline, section)
            below = [part for part in section.sections if part.folders in inner]
            children = list(_nav_documents(outline, section)) if short else []
            children += [_nav_entry(outline, part) for part in below]
            yield {**entry, "children": children} if children else entry


def _largest(sections: list[Section], number: int) -> set[tuple[str, ...]]:
    """The folders of the largest sections."""
    ranked = sorted(sections, key=lambda section: -section.size)
    return {section.folders for section in ranked[:number]}


def _nav_documents(outline: Outline, section: Section) -> Iterator[dict[str, Any]]:
    for uri in section.documents:
        yield {"title": outline.entries[uri].title, "path": outline.paths[uri]}


def _nav_entry(outline: Outline, section: Section) -> dict[str, Any]:
    path = outline.section_paths[section.folders]
    return {"title": plain(section.label), "path": path}
