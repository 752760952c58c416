"""Write the changed pages of a knowledge base."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from filelock import FileLock, Timeout

from kbkit.errors import ConflictError, ExportError
from kbkit.export.facts import Facts
from kbkit.export.manifest import MANIFEST, Manifest, write_file, writing
from kbkit.export.pages.charts import DOCUMENTS, FULL_TEXT, about_page, charts, figures_page
from kbkit.export.pages.document_page import IMAGES, document_page
from kbkit.export.pages.home_page import graph_pages, home_page, list_pages, navigation
from kbkit.export.pages.machine_readable import documents_json, full_text
from kbkit.export.pages.outline import (
    ABOUT,
    BROWSE,
    FIGURES,
    GRAPH,
    GRAPH_DATA,
    HOME,
    SiteOutline,
    make_outline,
    read_entries,
)
from kbkit.export.pages.paths import LinkMap
from kbkit.models import Document, DocumentState, ExportReport, KnowledgeBaseInfo, Progress
from kbkit.recipes import SiteSpec
from kbkit.runtime.progress import OnProgress

_MAX_LOGGED = 5  # links of a page without a target
_log = logging.getLogger(__name__)
_LOCK = ".kbkit-export.lock"
ReadImage = Callable[[str], bytes | None]
"""Returns a picture by name, or ``None``."""


def export_pages(
    info: KnowledgeBaseInfo,
    documents: Iterable[Document],
    directory: Path,
    site: SiteSpec,
    on_progress: OnProgress | None = None,
    *,
    facts: Facts | None = None,
    images: ReadImage = lambda _: None,
) -> ExportReport:
    """Write a Markdown page per document, and list pages, into a folder.

    Removes pages of deleted documents; leaves unchanged pages and files of others untouched.
    """
    start = time.perf_counter()
    facts = facts or Facts()
    with _writing_pages(directory):
        if isinstance(documents, Iterator):
            documents = list(documents)
        before = Manifest.read(directory)
        outline = make_outline(
            site.title or info.name, read_entries(documents, before), facts, before, directory
        )
        pictures = charts(outline)
        lists = {
            **pictures,
            **home_page(info, outline),
            **list_pages(outline),
            FIGURES: figures_page(info, outline, sorted(pictures)),
            ABOUT: about_page(info, outline),
            DOCUMENTS: documents_json(info, outline),
            **graph_pages(outline),
        }
        names = sorted({name for entry in outline.entries.values() for name in entry.images})
        archives = {each.path: each.read for each in (facts.downloads or {}).values()}
        paths = {*outline.paths.values(), *lists, FULL_TEXT, *archives}
        paths |= {f"{IMAGES}/{name}" for name in names}
        for path in (HOME, BROWSE, FIGURES, ABOUT, GRAPH, GRAPH_DATA, DOCUMENTS, FULL_TEXT):
            if path in paths and path not in before.files and (directory / path).exists():
                raise ExportError(
                    f"{directory / path}: not written by kbkit; "
                    "choose an empty folder for the export"
                )
        notes = {uri: revision.encode() for uri, revision in outline.history().items()}
        manifest = Manifest(info.name, outline.title, outline.paths, (), before.nav, notes)
        # the manifest lists every file before it is written, so that a killed export can resume; it
        # keeps the previous history, so that unwritten changes still count as new then
        claimed = tuple(sorted(paths | set(before.files)))
        replace(manifest, files=claimed, history=before.history).write(directory)
        written = done = 0
        for done, (path, text) in enumerate(_texts(documents, outline, lists), 1):
            written += _write(directory / path, text)
            if on_progress:
                on_progress(Progress("export", done, len(paths) - 1, path))
        _write(directory / FULL_TEXT, full_text(documents, outline))
        for name in names:  # names depend on content, so existing files are current
            target = directory / IMAGES / name
            if target.exists():
                continue
            if (data := images(name)) is not None:
                write_file(target, data)
            else:
                _log.warning("%s: no such picture; a page lacks it", name)
        for path, archive in archives.items():
            _write(directory / path, archive())
        removed = sum(_remove(directory, path) for path in sorted(set(before.files) - paths))
        files, nav = tuple(sorted(paths)), tuple(navigation(outline))
        replace(manifest, files=files, nav=nav).write(directory)
    seconds = {"pages": time.perf_counter() - start}
    return ExportReport(
        directory, None, len(outline.paths), written, done - written, removed, seconds=seconds
    )


def remove_pages(directory: Path, kb: str) -> None:
    before = Manifest.read(directory)
    if not before.kb or before.kb != kb:
        return
    with writing(directory, "the pages"):
        with _writing_pages(directory):
            for path in before.files:
                _remove(directory, path)
            (directory / MANIFEST).unlink()
        (directory / _LOCK).unlink(missing_ok=True)
        if not any(directory.iterdir()):
            directory.rmdir()


@contextmanager
def _writing_pages(directory: Path) -> Iterator[None]:
    lock = FileLock(directory / _LOCK)
    with writing(directory, "the pages"):
        directory.mkdir(parents=True, exist_ok=True)
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


def _texts(
    documents: Iterable[Document], outline: SiteOutline, lists: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield the path and text of every page."""
    links = LinkMap(outline.paths)
    yield from lists.items()
    for document in documents:
        entry = outline.entries.get(document.uri)
        if entry is None or document.state is DocumentState.GONE:
            continue
        path = outline.paths[document.uri]
        dead: list[str] = []
        yield path, document_page(document, entry, outline, links, dead=dead)
        if dead:
            _log.warning(
                "%s: links that lead nowhere: %s", document.uri, ", ".join(dead[:_MAX_LOGGED])
            )


def _write(path: Path, content: str | bytes) -> bool:
    data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
    try:
        if path.read_bytes() == data:
            return False
    except FileNotFoundError:
        pass
    write_file(path, data)
    return True


def _remove(directory: Path, path: str) -> bool:
    target = directory / path
    if not target.exists():
        return False
    target.unlink()
    for folder in target.relative_to(directory).parents:
        if folder == Path() or any((directory / folder).iterdir()):
            break
        (directory / folder).rmdir()
    return True
