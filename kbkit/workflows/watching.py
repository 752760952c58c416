"""Rebuild a site when files or the catalog change."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kbkit.errors import KbkitError
from kbkit.export import ExportReport
from kbkit.globs import matches, split_glob
from kbkit.knowledge_base import KnowledgeBase, handle_of
from kbkit.runtime.progress import OnProgress
from kbkit.sources.disk.files import walk

if TYPE_CHECKING:
    from kbkit.models import SyncReport

_POLL = 0.5  # seconds between checks for a missing folder
_CHECK_INTERVAL = 5_000  # milliseconds
SHARE = 10
"""Checks take at most a tenth of the time."""


def watch(
    kb: KnowledgeBase,
    *,
    folder: Path | None = None,
    build: bool = True,
    interval: float = 1.0,
    on_export: Callable[[ExportReport], None] = lambda _: None,
    on_trouble: Callable[[KbkitError], None] = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Export a knowledge base, and again whenever its files or its catalog change.

    Reads local sources again when one of their files changes. Changes of the catalog by others (an
    ingest, a rating, an edit of the graph) count too. `KnowledgeBase.refresh` reads web sources.
    """
    files: str | None = None
    revision: tuple[object, ...] | None = None
    while not stop():
        start = time.monotonic()
        files_now, revision_now = file_fingerprint(kb), handle_of(kb).site_revision()
        seconds = time.monotonic() - start
        try:
            if files_now != files and kb.sources.paths():
                kb.refresh(local=True)
                revision_now = handle_of(kb).site_revision()
            if revision_now != revision:
                on_export(kb.export(folder=folder, build=build))
        except KbkitError as error:
            on_trouble(error)
        files, revision = files_now, revision_now
        time.sleep(max(interval, SHARE * seconds))


class SyncedFolder(Protocol):
    """A folder that other programs may change: files, or entries."""

    @property
    def path(self) -> Path: ...

    def sync(self, *, on_progress: OnProgress) -> SyncReport:
        """Import changes."""


def watch_files(
    files: SyncedFolder,
    *,
    stop: threading.Event,
    on_sync: Callable[[SyncReport], None] = lambda _: None,
    on_trouble: Callable[[KbkitError], None] = lambda _: None,
) -> None:
    """Import changes by other programs to files or entries immediately."""
    import watchfiles

    def sync() -> None:
        try:
            if report := files.sync(on_progress=lambda _: None):
                on_sync(report)
        except KbkitError as error:
            on_trouble(error)

    while not stop.is_set():
        sync()
        if not files.path.is_dir():  # nothing was written yet
            stop.wait(_POLL)
            continue
        # also on timeouts: changes during the start are not reported
        for _ in watchfiles.watch(
            files.path, stop_event=stop, rust_timeout=_CHECK_INTERVAL, yield_on_timeout=True
        ):
            sync()
            if not files.path.is_dir():
                break


def file_fingerprint(kb: KnowledgeBase) -> str:
    state = hashlib.blake2b(digest_size=16)
    for place, left_out in kb.sources.paths():
        for path in _files(place, left_out):
            try:
                about = path.stat()
            except OSError:
                continue
            state.update(f"{path}\0{about.st_size}\0{about.st_mtime_ns}\n".encode(errors="replace"))
    return state.hexdigest()


def _files(place: Path, left_out: tuple[str, ...]) -> Iterator[Path]:
    """Yield the files of a glob's folder, which may include others."""
    folder = Path(split_glob(place.as_posix())[0])
    if folder.is_file():
        yield folder
    else:
        yield from (path for path, inside in walk(folder) if not matches(inside, left_out))
