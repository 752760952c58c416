"""Jobs that export pages or a site as an archive."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4
from zipfile import ZIP_DEFLATED, ZipFile

from kbkit.errors import NotFoundError, WorkspaceError
from kbkit.jobs.old_files import delete_old
from kbkit.jobs.stopping import Stopped, stopping
from kbkit.knowledge_base import KnowledgeBase
from kbkit.models import ExportReport, SiteArchive
from kbkit.progress import OnProgress
from kbkit.workspace import Workspace

DOWNLOADS = "downloads"
"""Folder of a workspace for archives that wait to be fetched, in folders."""
_KEPT_SECONDS = 86_400
_OPTIONS = ("build", "standalone", "pages_only", "model", "graph", "files", "entries")


def waiting_place(workspace: Workspace, name: str) -> Path:
    """A folder for archives that wait to be fetched, made if it is not there.

    What nobody fetched for a day is deleted, and what a process left that was killed.
    """
    place = workspace.path / DOWNLOADS / name
    place.mkdir(parents=True, exist_ok=True)
    delete_old(place.parent.glob("*/*"), _KEPT_SECONDS)
    return place


def export(
    workspace: Workspace,
    arguments: Mapping[str, Any],
    on_progress: OnProgress,
    stop: Callable[[], bool],
) -> Mapping[str, Any]:
    """Write a knowledge base into an archive, which is kept for a day, or renew its site here.

    Arguments: ``kb``, ``publish`` (whether it is the site), and what `KnowledgeBase.export` takes
    but for the folder.
    """
    kb = workspace[arguments["kb"]]
    options = {name: arguments[name] for name in _OPTIONS if arguments.get(name) is not None}
    tell = stopping(on_progress, stop)
    archive = uuid4().hex
    try:
        if arguments.get("publish"):
            return _told(kb.export(on_progress=tell, **options))
        place = waiting_place(workspace, kb.id)
        with TemporaryDirectory(prefix="kbkit-", dir=place) as made:
            folder = Path(made, kb.name)
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
    return _told(report, archive, size)


def _told(report: ExportReport, archive: str = "", size: int = 0) -> Mapping[str, Any]:
    built = report.site is not None
    return SiteArchive(archive, size, built, report.documents, report.seconds).to_dict()


def archive_of(workspace: Workspace, kb: KnowledgeBase, archive: str) -> Path:
    found = workspace.path / DOWNLOADS / kb.id / f"{archive}.zip"
    if not archive.isalnum() or not found.is_file():
        raise NotFoundError(
            f"{kb.name}: has no archive {archive!r}; it is kept for a day: export it again"
        )
    return found
