"""Writes the pages of a knowledge base into a folder, and only what has changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from kbkit.errors import ConflictError, ExportError
from kbkit.export.links import LinkMap
from kbkit.export.manifest import Manifest, write_file
from kbkit.export.markdown import plain
from kbkit.export.pages import HOME, Outline, document_page, home_page, listing_pages
from kbkit.export.paths import assign_paths, digest, natural_path
from kbkit.export.report import ExportReport
from kbkit.export.sections import Section, section_tree
from kbkit.models import Document, DocumentState, KnowledgeBaseInfo, Progress
from kbkit.recipes import SiteSpec

NAV_SIZE = 20
"""Most sections that the navigation names. The theme renders it anew in every page: 20 more cost
1,900 pages 2 seconds and 13 MB. The home page has them all."""

OnProgress = Callable[[Progress], None]


def export_pages(
    info: KnowledgeBaseInfo,
    documents: Iterable[Document],
    directory: Path,
    site: SiteSpec,
    on_progress: OnProgress | None = None,
) -> ExportReport:
    """Write one Markdown page a document, pages of sections and a home page into a folder.

    Pages that are as they should be are not touched, pages of documents that are no more are
    removed, and files that no export wrote are left alone.

    Args:
        info: What the registry knows of the knowledge base.
        documents: Its documents. Those that are gone are left out. A collection that can be
            iterated twice is read twice instead of being held in memory.
        directory: Folder to write to; it becomes part of a MkDocs documentation folder.
        site: What the site says.
        on_progress: Called after each page.

    Raises:
        ExportError: The folder cannot be written, or holds a home page of somebody else.
        ConflictError: Another process exports into the same folder.
    """
    start = time.perf_counter()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with _lock(directory):
            if isinstance(documents, Iterator):
                documents = list(documents)
            report = _export(info, documents, directory, site, on_progress)
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
    on_progress: OnProgress | None,
) -> tuple[int, int, int, int]:
    """Do the work of `export_pages`.

    Returns:
        Documents, and pages written, unchanged and removed.
    """
    before = Manifest.read(directory)
    titles = {
        document.uri: plain(document.title) or plain(document.uri)
        for document in documents
        if document.state is not DocumentState.GONE
    }
    outline = _outline(site.title or info.name, titles, before, directory)
    lists = _lists(info, outline)
    if HOME not in before.files and (directory / HOME).exists():
        raise ExportError(
            f"{directory / HOME}: written by somebody else; choose an empty folder for the export"
        )
    wanted = {*outline.paths.values(), *lists}
    # Every file is claimed before it is written, so that an export that is killed can be resumed
    Manifest(info.name, outline.title, outline.paths, tuple(sorted(wanted | set(before.files))),
             before.nav).write(directory)  # fmt: skip
    links = LinkMap(outline.paths)
    written = unchanged = 0
    total = len(wanted)
    for path, text in _texts(documents, outline, links, lists):
        changed = _write(directory / path, text)
        written += changed
        unchanged += not changed
        if on_progress:
            on_progress(Progress("export", written + unchanged, total, path))
    removed = sum(_remove(directory, path) for path in sorted(set(before.files) - wanted))
    nav = tuple(_nav(outline))
    Manifest(info.name, outline.title, outline.paths, tuple(sorted(wanted)), nav).write(directory)
    return len(outline.paths), written, unchanged, removed


def _outline(title: str, titles: Mapping[str, str], before: Manifest, directory: Path) -> Outline:
    root = section_tree(titles)
    paths = assign_paths(
        titles, "pages", kept=before.documents, taken=_foreign(directory, before.files)
    )
    section_paths = {root.folders: "sections/all.md"}
    above: dict[str, tuple[Section, ...]] = dict.fromkeys(root.documents, (root,))
    for over, section in root.walk():
        # The digest keeps sections apart whose folders differ in case or in odd characters
        name = natural_path((), " ".join(section.folders[len(root.folders) :]))
        section_paths[section.folders] = f"sections/{name}-{digest('/'.join(section.folders))}.md"
        above.update(dict.fromkeys(section.documents, (*over, section)))
    return Outline(plain(title), paths, titles, root, section_paths, above)


def _foreign(directory: Path, ours: Iterable[str]) -> list[str]:
    """Pages in the way that no export wrote."""
    known = set(ours)
    found = (
        path.relative_to(directory).as_posix() for path in (directory / "pages").glob("**/*.md")
    )
    return [path for path in found if path not in known]


def _lists(info: KnowledgeBaseInfo, outline: Outline) -> dict[str, str]:
    """The home page and the pages of all sections."""
    pages = home_page(info, outline)
    for above, section in outline.root.walk():
        pages |= listing_pages(outline, section, above, outline.section_paths[section.folders])
    return pages


def _texts(
    documents: Iterable[Document], outline: Outline, links: LinkMap, lists: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    yield from lists.items()
    for document in documents:
        if document.uri in outline.paths and document.state is not DocumentState.GONE:
            yield outline.paths[document.uri], document_page(document, outline, links)


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
    """The navigation: the home page and as many sections as it has room for, large ones first."""
    sections = outline.root.sections
    chosen = _largest(sections, NAV_SIZE)
    inner = _largest(
        [inner for section in sections for inner in section.sections], NAV_SIZE - len(chosen)
    )
    yield {"title": "Home", "path": HOME}
    for section in sections:
        if section.folders in chosen:
            entry = _nav_entry(outline, section)
            below = [part for part in section.sections if part.folders in inner]
            if below:
                entry["children"] = [_nav_entry(outline, part) for part in below]
            yield entry


def _largest(sections: list[Section], number: int) -> set[tuple[str, ...]]:
    """The folders of the largest sections."""
    ranked = sorted(sections, key=lambda section: -section.size)
    return {section.folders for section in ranked[:number]}


def _nav_entry(outline: Outline, section: Section) -> dict[str, Any]:
    path = outline.section_paths[section.folders]
    return {"title": plain(section.label), "path": path}
