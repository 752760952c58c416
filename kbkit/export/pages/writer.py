"""Write the changed pages of a knowledge base."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple, replace
from importlib.metadata import version
from pathlib import Path

from filelock import FileLock, Timeout

from kbkit.errors import ConflictError, ExportError
from kbkit.export.facts import Facts
from kbkit.export.manifest import MANIFEST, Manifest, write_file, writing
from kbkit.export.pages.charts import DOCUMENTS, FULL_TEXT, about_page, charts, figures_page
from kbkit.export.pages.document_page import IMAGES, PageLayout, document_page
from kbkit.export.pages.home_page import graph_pages, home_page, list_pages, navigation
from kbkit.export.pages.machine_readable import documents_json, full_text
from kbkit.export.pages.outline import (
    ABOUT,
    BROWSE,
    FIGURES,
    GRAPH,
    GRAPH_DATA,
    HOME,
    OutlineEntry,
    SiteOutline,
    make_outline,
    read_entries,
)
from kbkit.export.pages.paths import LinkMap
from kbkit.models import Document, DocumentState, ExportReport, KnowledgeBaseInfo, Progress
from kbkit.recipes import SiteSpec
from kbkit.runtime.progress import OnProgress

_REVISION = 3
"""Raise it when the page of an unchanged document changes."""


class PageFingerprints:
    """The fingerprints of the pages of an export and the previous one."""

    def __init__(self, directory: Path, before: Mapping[str, str], outline: SiteOutline) -> None:
        self._directory = directory
        self._before = before
        links = json.dumps(dict(outline.paths), sort_keys=True)
        self._common = _digest(f"{version('kbkit')} {_REVISION} {links}".encode())
        self.current: dict[str, str] = {}

    def of_sources(self, entry: OutlineEntry, layout: PageLayout) -> str:
        parts = (self._common, entry.revision.digest, *astuple(layout))
        return _digest("\0".join(parts).encode("utf-8", "replace"))

    def keep(self, path: str, sources: str) -> bool:
        """Whether a page is up to date; if so, keep its fingerprint."""
        sources_before, _, output_before = self._before.get(path, "").partition(" ")
        if sources_before != sources:
            return False
        try:
            same = _digest((self._directory / path).read_bytes()) == output_before
        except OSError:
            return False
        if same:
            self.current[path] = self._before[path]
        return same

    def add(self, path: str, sources: str, text: str) -> None:
        self.current[path] = f"{sources} {_digest(text.encode('utf-8', 'replace'))}"


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=10).hexdigest()


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
        replace(
            manifest, files=claimed, history=before.history, fingerprints=before.fingerprints
        ).write(directory)
        fingerprints = PageFingerprints(directory, before.fingerprints, outline)
        written = unchanged = 0
        with full_text(directory / FULL_TEXT, outline) as add:
            for path, text in _texts(documents, add, outline, lists, fingerprints):
                changed = text is not None and _write(directory / path, text)
                written += changed
                unchanged += not changed
                if on_progress:
                    on_progress(Progress("export", written + unchanged, len(paths) - 1, path))
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
        replace(manifest, files=files, nav=nav, fingerprints=fingerprints.current).write(directory)
    seconds = {"pages": time.perf_counter() - start}
    return ExportReport(
        directory, None, len(outline.paths), written, unchanged, removed, seconds=seconds
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
    documents: Iterable[Document],
    add: Callable[[Document], None],
    outline: SiteOutline,
    lists: Mapping[str, str],
    fingerprints: PageFingerprints,
) -> Iterator[tuple[str, str | None]]:
    """Yield the path and text of every page; ``None`` for an unchanged page."""
    links = LinkMap(outline.paths)
    yield from lists.items()
    for document in documents:
        add(document)
        entry = outline.entries.get(document.uri)
        if entry is None or document.state is DocumentState.GONE:
            continue
        path = outline.paths[document.uri]
        layout = PageLayout.of(entry, outline, links)
        sources = fingerprints.of_sources(entry, layout)
        if fingerprints.keep(path, sources):
            yield path, None
            continue
        dead: list[str] = []
        text = document_page(document, entry.title, layout, links, path, dead=dead)
        if dead:
            _log.warning(
                "%s: links that lead nowhere: %s", document.uri, ", ".join(dead[:_MAX_LOGGED])
            )
        fingerprints.add(path, sources, text)
        yield path, text


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
