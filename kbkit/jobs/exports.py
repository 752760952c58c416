"""Jobs that write a knowledge base as pages or as a site, to be fetched as an archive."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4
from zipfile import ZIP_DEFLATED, ZipFile

from kbkit.errors import NotFoundError, WorkspaceError
from kbkit.jobs.stopping import Stopped, stopping
from kbkit.knowledge_base import KnowledgeBase
from kbkit.models import SiteArchive
from kbkit.progress import OnProgress
from kbkit.workspace import Workspace

DOWNLOADS = "downloads"
"""Folder of a workspace for archives that wait to be fetched, one folder a knowledge base."""
_KEPT_SECONDS = 86_400
_OPTIONS = ("build", "standalone", "pages_only", "model", "graph", "files", "entries")


def export(
    workspace: Workspace,
    arguments: Mapping[str, Any],
    on_progress: OnProgress,
    stop: Callable[[], bool],
) -> Mapping[str, Any]:
    """Write a knowledge base into an archive, which is kept for a day.

    Arguments: ``kb``, and what `KnowledgeBase.export` takes but for the folder.
    """
    kb = workspace[arguments["kb"]]
    options = {name: arguments[name] for name in _OPTIONS if arguments.get(name) is not None}
    place = _folder(workspace, kb)
    archive = uuid4().hex
    try:
        place.mkdir(parents=True, exist_ok=True)
        _forget(place.parent)
        with TemporaryDirectory(prefix="kbkit-", dir=place) as made:
            folder = Path(made, kb.name)
            tell = stopping(on_progress, stop)
            report = kb.export(folder=folder, on_progress=tell, **options)
            draft = Path(made, "draft.zip")
            with ZipFile(draft, "w", ZIP_DEFLATED) as packed:
                for path in sorted(folder.rglob("*")):
                    if path.is_file() and not path.is_symlink():
                        packed.write(path, path.relative_to(folder).as_posix())
            size = draft.stat().st_size
            draft.rename(place / f"{archive}.zip")
    except Stopped:
        return {}
    except OSError as error:
        raise WorkspaceError(f"the archive cannot be written: {error.strerror}") from None
    built = report.site is not None
    return SiteArchive(archive, size, built, report.documents, report.seconds).to_dict()


def archive_of(workspace: Workspace, kb: KnowledgeBase, archive: str) -> Path:
    """An archive that waits to be fetched.

    Raises:
        NotFoundError: There is none of that id, or it was kept long enough.
    """
    found = _folder(workspace, kb) / f"{archive}.zip"
    if not archive.isalnum() or not found.is_file():
        raise NotFoundError(
            f"{kb.name}: has no archive {archive!r}; it is kept for a day: export it again"
        )
    return found


def _folder(workspace: Workspace, kb: KnowledgeBase) -> Path:
    return workspace.path / DOWNLOADS / kb.id


def _forget(folder: Path) -> None:
    """Delete what nobody fetched, and what a process left that was killed."""
    for old in folder.glob("*/*"):
        if time.time() - old.stat().st_mtime > _KEPT_SECONDS:
            if old.is_dir():
                shutil.rmtree(old, ignore_errors=True)
            else:
                old.unlink(missing_ok=True)
