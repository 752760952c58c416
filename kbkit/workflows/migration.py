"""Move a workspace between a folder and a server."""

import shutil
import time
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path

from kbkit.errors import ConfigError, ImpossibleError, KbkitError, MissingExtraError, WorkspaceError
from kbkit.models import Migration, Progress
from kbkit.models.values import BUILT_IN
from kbkit.runtime.config import Settings
from kbkit.runtime.progress import OnProgress, progress_bar
from kbkit.stores.backend import take_images
from kbkit.stores.catalog import knowledge_bases
from kbkit.stores.catalog.copying import Copier, copy_folder
from kbkit.stores.stores import DERIVED, Stores, catalog_address


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
        notify = stack.enter_context(progress_bar(on_progress))
        source = Stores.open(folder, replace(settings, pgvector=False))
        stack.enter_context(closing(source))
        destination = stack.enter_context(closing(_open(to, source, settings)))
        address, place = source.catalog_address, destination.catalog_address
        source.require_home()
        task = "migrating a workspace to the same place"
        stack.enter_context(destination.locks.hold("migration", wait=0, task=task))
        folders: list[str] = []
        copier = Copier(
            source=source.database,
            locks=source.locks,
            destination=destination.database,
            address=address,
            place=place,
            notify=notify,
        )
        tables = copier.run(lambda: folders.extend(_copy_folders(source, destination)))
        with suppress(KbkitError):  # the index is repaired on demand
            for kb_id in sorted(destination.database.look_up(knowledge_bases.ids)):
                destination.vectors.apply(kb_id, lambda done: notify(Progress("index", done)))
    seconds = round(time.monotonic() - began, 3)
    return Migration(address, place, tables, copier.kept, tuple(folders), seconds)


def _open(to: str | Path, source: Stores, settings: Settings) -> Stores:
    """Open the destination; with a server, files stay in the folder of the source."""
    is_server = "://" in str(to)
    folder = source.folder if is_server else Path(to).absolute()
    new_settings = replace(settings, database_url=str(to) if is_server else "")
    try:
        source_address = catalog_address(source.folder.resolve(), source.settings)
        if catalog_address(folder.resolve(), new_settings) == source_address:
            raise ImpossibleError(
                f"{source.catalog_address}: the workspace already exists; name another place"
            )
        return Stores.open(folder, new_settings, to_fill=True)
    except (MissingExtraError, ImpossibleError):
        raise
    except ConfigError:
        raise ConfigError(
            "the address to migrate to cannot be read; write "
            "postgresql+psycopg://USER:PASSWORD@HOST:PORT/DATABASE, or the path of a folder"
        ) from None


def _copy_folders(source: Stores, destination: Stores) -> list[str]:
    """Copy files, entries and pictures; delete derived data. Return their names."""
    copied = []
    if destination.settings.database_url:
        destination.other_home()  # record in the server which folder has files and entries
    else:
        for name in DERIVED:
            shutil.rmtree(destination.folder / name, ignore_errors=True)
        if source.folder.resolve() != destination.folder.resolve():
            copied = [name for name in BUILT_IN if (source.folder / name).is_dir()]
        for name in copied:
            copy_folder(source.folder / name, destination.folder / name)
    if take_images(destination.images, source.images):
        copied.append("images")
    return copied
