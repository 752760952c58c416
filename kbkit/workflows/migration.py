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
from kbkit.stores.copier import Copier
from kbkit.stores.stores import Destination, Stores


def migrate(
    workspace: str | Path | None = None, *, to: str | Path, on_progress: OnProgress | None = None
) -> Migration:
    """Move a workspace from a folder to a database on a server, or back, or to another server.

    Copies the catalog with all ids and indexes its words; then reads each table again and compares
    rows and digests. Meanwhile nobody can write to the source, nor open the destination. The source
    does not change. Called again, an interrupted migration continues, or starts again if the source
    changed.

    Pictures of documents are copied. A migration to a folder also copies files and entries and
    builds the vector index; with a server, they stay in the workspace's folder.

    Args:
        workspace: Its folder; by default ``KBKIT_WORKSPACE``, else ``./kb``. If
            ``KBKIT_DATABASE_URL`` names a server, its catalog is there.
        to: Address of an empty database, ``postgresql+psycopg://USER:PASSWORD@HOST:PORT/DATABASE``,
            or a folder without a catalog.
        on_progress: Called during the work; by default notebooks show a bar.

    Raises:
        ConfigError: The address cannot be read.
        ImpossibleError: The workspace is there already.
        ConflictError: Another workspace is there, or another process migrates, or reads a source
            into the workspace.
        MissingExtraError: ``kbkit[postgres]`` is not installed.
        WorkspaceVersionError: A newer kbkit made the source or the destination.
        WorkspaceError: There is no workspace; its files and entries are in another folder; or a
            database is unusable, lost, or cannot store a value.
    """
    began = time.monotonic()
    settings = Settings.load()
    folder = Path(workspace or settings.workspace).absolute()
    if not settings.database_url and not (folder / "catalog.db").is_file():
        raise WorkspaceError(f"{folder}: there is no workspace; name the folder of one")
    with ExitStack() as stack:
        tell = stack.enter_context(progress_bar(on_progress)) or _ignore
        opened = Stores.open(folder, settings.database_url, pgvector=False)
        source = stack.enter_context(closing(opened))
        address = source.catalog_address
        destination = _opened(to, address)
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
            tell=tell,
        )
        tables = copier.run(lambda: folders.extend(destination.prepare(folder, source.images)))
        there = replace(settings, database_url="" if destination.folder else str(to))
        _index(destination.folder or folder, there, tell)
    seconds = round(time.monotonic() - began, 3)
    return Migration(address, destination.address, tables, copier.kept, tuple(folders), seconds)


def _ignore(progress: Progress) -> None:
    pass


def _opened(to: str | Path, address: str) -> Destination:
    try:
        if Destination.is_at(to, address):
            raise ImpossibleError(f"{address}: the workspace is there already; name another place")
        return Destination.open(to)
    except (MissingExtraError, ImpossibleError):
        raise
    except ConfigError:
        raise ConfigError(
            "the address to migrate to cannot be read; write "
            "postgresql+psycopg://USER:PASSWORD@HOST:PORT/DATABASE, or the path of a folder"
        ) from None


def _index(folder: Path, settings: Settings, tell: OnProgress) -> None:
    """Build the vector index from the catalog; failures are repaired on demand."""
    with suppress(KbkitError), closing(Stores.of_settings(folder, settings)) as stores:
        with stores.database.read() as transaction:
            kb_ids = sorted(knowledge_bases.ids(transaction))
        for kb_id in kb_ids:
            stores.vectors.apply(kb_id, lambda done: tell(Progress("index", done)))
