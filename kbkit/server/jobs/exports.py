"""Jobs that export sites and read and write bundles."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4
from zipfile import ZIP_DEFLATED, ZipFile

from kbkit.access import Caller
from kbkit.bundles.writer import MANIFEST
from kbkit.errors import (
    BundleError,
    ConfigError,
    ImpossibleError,
    KbkitError,
    NotFoundError,
    WorkspaceError,
)
from kbkit.knowledge_base import KnowledgeBase
from kbkit.models import BundleArchive, ExportReport, SiteArchive
from kbkit.server.jobs.base import JobRun, delete_old
from kbkit.server.jobs.knowledge import uploaded
from kbkit.workspace import Workspace, restored

DOWNLOADS = "downloads"
_MAX_AGE_SECONDS = 86_400
_OPTIONS = ("build", "standalone", "pages_only", "model", "graph", "files", "entries")


def archive_folder(workspace: Workspace, name: str) -> Path:
    """Return a folder for archives, created if missing; delete archives older than a day."""
    place = workspace.path / DOWNLOADS / name
    place.mkdir(parents=True, exist_ok=True)
    delete_old(place.parent.glob("*/*"), _MAX_AGE_SECONDS)
    return place


def export(run: JobRun) -> Any:
    """Export to an archive, kept for a day, or with ``publish`` to the site."""
    kb, arguments = run.kb, run.arguments
    options = {name: arguments[name] for name in _OPTIONS if arguments.get(name) is not None}
    archive = uuid4().hex
    try:
        if arguments.get("publish"):
            return _site_archive(kb.export(on_progress=run.tell, **options))
        place = archive_folder(run.workspace, kb.id)
        with TemporaryDirectory(prefix="kbkit-", dir=place) as temporary:
            folder = Path(temporary, kb.name)
            report = kb.export(folder=folder, on_progress=run.tell, **options)
            draft = Path(temporary, "draft.zip")
            with ZipFile(draft, "w", ZIP_DEFLATED) as archive_file:
                for path in sorted(folder.rglob("*")):
                    if path.is_file() and not path.is_symlink():
                        archive_file.write(path, path.relative_to(folder).as_posix())
            size = draft.stat().st_size
            draft.rename(place / f"{archive}.zip")
    except OSError as error:
        raise WorkspaceError(f"the archive cannot be written: {error.strerror}") from None
    return _site_archive(report, archive, size)


def _site_archive(report: ExportReport, archive: str = "", size: int = 0) -> SiteArchive:
    built = report.site is not None
    return SiteArchive(archive, size, built, report.documents, report.seconds)


def archive_of(workspace: Workspace, kb: KnowledgeBase, archive: str) -> Path:
    path = workspace.path / DOWNLOADS / kb.id / f"{archive}.zip"
    if not archive.isalnum() or not path.is_file():
        raise NotFoundError(
            f"{kb.name}: has no archive {archive!r}; archives are kept for a day: export again"
        )
    return path


UPLOAD, KEY = "bundle.zip", "key.pub"
"""File names of an uploaded bundle, and of the required signer's key."""
_FOLDER = "bundles"
_LABEL = "the bundle"


def bundle(run: JobRun) -> Any:
    """Write a bundle of ``kbs`` (null: everything), kept for a day."""
    archive = uuid4().hex
    try:
        place = archive_folder(run.workspace, _FOLDER) / f"{archive}.zip"
        done = run.workspace.bundle(place, kbs=run.arguments["kbs"], on_progress=run.tell)
    except (BundleError, OSError) as error:  # the message has a path of this machine
        reason = getattr(error.__cause__ or error, "strerror", None)
        raise WorkspaceError(f"the bundle cannot be written: {reason}") from error
    return BundleArchive(
        archive,
        done.knowledge_bases,
        done.documents,
        done.chunks,
        done.bytes,
        done.sha256,
        done.skipped,
        done.seconds,
    )


def bundle_of(workspace: Workspace, caller: Caller, archive: str) -> Path:
    path = workspace.path / DOWNLOADS / _FOLDER / f"{archive}.zip"
    if archive.isalnum() and path.is_file() and (not caller.kbs or _may_read(caller, path)):
        return path
    raise NotFoundError(f"no bundle {archive!r}; bundles are kept for a day: make it again")


def _may_read(caller: Caller, place: Path) -> bool:
    with zipfile.ZipFile(place) as archive_file:
        manifest = json.loads(archive_file.read(MANIFEST))
    names = manifest["knowledge_bases"]
    return not manifest["whole"] and caller.visible(names) == names


def restore(run: JobRun) -> Any:
    """Restore an uploaded bundle, whose sources never read this machine's disk."""
    workspace, arguments = run.workspace, run.arguments
    folder = uploaded(workspace, arguments["uploads"])
    file, key = folder / UPLOAD, folder / KEY
    if not file.is_file():
        raise NotFoundError(f"{_LABEL}: does not exist any more; send it again")
    try:
        done = restored(
            workspace,
            file,
            name=arguments["name"],
            verify=key if arguments["verify"] else None,
            trust=arguments["trust"],
            paths=False,
            tell=run.on_progress,
        )
    except KbkitError as error:
        text = str(error).replace(str(file), _LABEL).replace(str(key), "the key")
        error.args = (text, *error.args[1:])
        if type(error) is ConfigError:  # the request was valid by its schema
            raise ImpossibleError(text) from None
        raise
    return replace(done, bundle="")
