"""Move a workspace between a folder and a server."""

from __future__ import annotations

import time
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path

from kbkit.errors import ConfigError, ImpossibleError, KbkitError, MissingExtraError, WorkspaceError
from kbkit.models import Migration, Progress
from kbkit.runtime.config import Settings
from kbkit.runtime.progress import OnProgress, progress_bar
from kbkit.stores.catalog import knowledge_bases
from kbkit.stores.catalog.copying import Copier
from kbkit.stores.stores import Destination, Stores


def migrate(
    workspace: str | Path | None = None, *, to: str | Path, on_progress: OnProgress | None = None
) -> Migration:
    """Move a workspace from a folder to a database on a server, or back, or to another server.

    Copies the catalog with all ids, and compares rows and digests of each table.
    Meanwhile the source cannot be written and the destination cannot be opened. The source does not
    change. An interrupted migration continues when called again, or restarts if the source changed.

    Copies the pictures of documents. A migration to a folder also copies files and entries and
    builds the vector index; with a server, they stay in the workspace's folder.

    Args:
        workspace: Its folder; by default ``KBKIT_WORKSPACE``, else ``./kb``. The catalog may be on
            the server of ``KBKIT_DATABASE_URL``.
        to: Address of an empty database, ``postgresql+psycopg://USER:PASSWORD@HOST:PORT/DATABASE``,
            or a folder without a catalog.
        on_progress: Called during the work; by default notebooks show a bar.

    Raises:
        ConfigError: The address is invalid.
        ImpossibleError: Source and destination are the same.
        ConflictError: The destination has another workspace, or a process migrates or ingests.
        MissingExtraError: ``kbkit[postgres]`` is not installed.
        WorkspaceVersionError: A newer kbkit made the source or the destination.
        WorkspaceError: The workspace does not exist or its files and entries are in another folder;
            or a database is unusable, lost, or cannot store a value.
    """
    began = time.monotonic()
    settings = Settings.load()
    folder = Path(workspace or settings.workspace).absolute()
    if not settings.database_url and not (folder / "catalog.db").is_file():
        raise WorkspaceError(f"{folder}: there is no workspace; name the folder of one")
    with ExitStack() as stack:
        report_progress = stack.enter_context(progress_bar(on_progress))
        opened = Stores.open(folder, settings.database_url, pgvector=False)
        source = stack.enter_context(closing(opened))
        address = source.catalog_address
        destination = _open(to, address)
        stack.enter_context(closing(destination.database))
        source.require_home()
        task = "migrating a workspace to the same place"
        stack.enter_context(destination.locks.hold("migration", wait=0, task=task))
        folders: list[str] = []
        copier = Copier(
            source=source.database,
            locks=source.locks,
            destination=destination.database,
            address=address,
            place=destination.address,
            tell=report_progress,
        )
        tables = copier.run(lambda: folders.extend(destination.prepare(folder, source.images)))
        new_settings = replace(settings, database_url="" if destination.folder else str(to))
        _index(destination.folder or folder, new_settings, report_progress)
    seconds = round(time.monotonic() - began, 3)
    return Migration(address, destination.address, tables, copier.kept, tuple(folders), seconds)


def _open(to: str | Path, address: str) -> Destination:
    try:
        if Destination.is_at(to, address):
            raise ImpossibleError(f"{address}: the workspace already exists; name another place")
        return Destination.open(to)
    except (MissingExtraError, ImpossibleError):
        raise
    except ConfigError:
        raise ConfigError(
            "the address to migrate to cannot be read; write "
            "postgresql+psycopg://USER:PASSWORD@HOST:PORT/DATABASE, or the path of a folder"
        ) from None


def _index(folder: Path, settings: Settings, on_progress: OnProgress) -> None:
    """Build the vector index from the catalog; failures are repaired on demand."""
    with suppress(KbkitError), closing(Stores.of_settings(folder, settings)) as stores:
        with stores.database.read() as transaction:
            kb_ids = sorted(knowledge_bases.ids(transaction))
        for kb_id in kb_ids:
            stores.vectors.apply(kb_id, lambda done: on_progress(Progress("index", done)))
