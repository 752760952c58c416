"""Jobs that write and restore bundles."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

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
from kbkit.jobs.exports import DOWNLOADS, waiting_place
from kbkit.jobs.knowledge import uploaded
from kbkit.jobs.stopping import Stopped, stopping
from kbkit.models import BundleArchive
from kbkit.progress import OnProgress
from kbkit.workspace import Workspace, restored

UPLOAD, KEY = "bundle.zip", "key.pub"
"""Names in an upload's folder: the bundle, and the required signer's key."""
_FOLDER = "bundles"
_SHOWN = "the bundle"


def bundle(
    workspace: Workspace,
    arguments: Mapping[str, Any],
    on_progress: OnProgress,
    stop: Callable[[], bool],
) -> Mapping[str, Any]:
    """Write a bundle, which is kept for a day.

    Arguments: ``kbs``, names of knowledge bases; null for all, with files and entries.
    """
    archive = uuid4().hex
    tell = stopping(on_progress, stop)
    try:
        place = waiting_place(workspace, _FOLDER) / f"{archive}.zip"
        done = workspace.bundle(place, kbs=arguments["kbs"], on_progress=tell)
    except Stopped:
        return {}
    except (BundleError, OSError) as error:  # which names a path of this machine
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
    ).to_dict()


def bundle_of(workspace: Workspace, caller: Caller, archive: str) -> Path:
    found = workspace.path / DOWNLOADS / _FOLDER / f"{archive}.zip"
    if archive.isalnum() and found.is_file() and (not caller.kbs or _is_for(caller, found)):
        return found
    raise NotFoundError(f"no bundle {archive!r}; one is kept for a day: make it again")


def _is_for(caller: Caller, place: Path) -> bool:
    with zipfile.ZipFile(place) as packed:
        said = json.loads(packed.read(MANIFEST))
    names = said["knowledge_bases"]
    return not said["whole"] and caller.visible(names) == names


def restore(
    workspace: Workspace,
    arguments: Mapping[str, Any],
    on_progress: OnProgress,
    stop: Callable[[], bool],
) -> Mapping[str, Any]:
    """Restore an uploaded bundle.

    Its sources never read this machine's disk: no caller has that done. Arguments: ``uploads``, its
    folder; ``name``; ``verify``, whether a key is there; ``trust``.
    """
    folder = uploaded(workspace, arguments["uploads"])
    file, key = folder / UPLOAD, folder / KEY
    if not file.is_file():
        raise NotFoundError(f"{_SHOWN}: is not there any more; send it again")
    try:
        done = restored(
            workspace,
            file,
            name=arguments["name"],
            verify=key if arguments["verify"] else None,
            trust=arguments["trust"],
            paths=False,
            tell=on_progress,
        )
    except KbkitError as error:
        text = str(error).replace(str(file), _SHOWN).replace(str(key), "the key")
        error.args = (text, *error.args[1:])
        if type(error) is ConfigError:  # the text is one, as the schema has it
            raise ImpossibleError(text) from None
        raise
    return {**done.to_dict(), "bundle": ""}
