"""Place the files and entries of a bundle into their folders, all or nothing.

What is going to be there is written down before. Who opens the workspace after a kill takes it
away again, unless the catalog says that the rows which belong to it were committed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from kbkit.bundles.making import stores_of_files
from kbkit.bundles.reader import BundleReader
from kbkit.entries.slugs import slug_fault
from kbkit.entries.store import EntryStore
from kbkit.errors import BundleError, ConflictError, FilesError, KbkitError
from kbkit.files.store import FileStore
from kbkit.stores.catalog import commitments
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.knowledge_bases import ENTRIES, FILES
from kbkit.stores.stores import Stores

LOCK = "restore"
"""Lock of a restoration."""


@dataclass
class Placement:
    """The files of one bundle.

    Attributes:
        placed: Paths that were placed.
        kept: Paths that exist with other content, and stay.
    """

    bundle: BundleReader
    stores: Stores
    placed: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    _token: str = field(default_factory=lambda: uuid4().hex, init=False)
    _folders: dict[str, FileStore] = field(init=False)

    def __post_init__(self) -> None:
        self._folders = stores_of_files(self.stores)

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Lock the folders, and record what will be placed there."""
        names = {folder: self.bundle.names(folder) for folder in (FILES, ENTRIES)}
        if not any(names.values()):
            yield
            return
        self.stores.require_home()
        with self._folders[FILES].locked(), self._folders[ENTRIES].locked():
            for folder, store in self._folders.items():
                for name in names[folder]:
                    if _missing(store, folder, name):
                        self.placed.append(f"{folder}/{name}")
                    elif not self._is_same(folder, name):
                        self.kept.append(f"{folder}/{name}")
            journal = self.stores.folder / commitments.JOURNAL
            members = self.bundle.manifest.members
            said = {name: members[name].sha256 for name in self.placed}
            try:
                if self.placed:
                    draft = journal.with_suffix(".part")
                    draft.write_text(json.dumps({"token": self._token, "files": said}))
                    draft.replace(journal)
                yield
                if self.placed:
                    with self.stores.database.write() as transaction:
                        commitments.forget(transaction, self._token)
                    journal.unlink()
            except Exception:
                settle(self.stores)
                raise

    def put(self, transaction: Transaction) -> None:
        """Place the folders, after the rows of the same transaction."""
        if not self.placed:
            return
        commitments.note(transaction, self._token)
        entries: dict[str, dict[str, bytes]] = {}
        try:
            for place in self.placed:
                folder, _, path = place.partition("/")
                data = self.bundle.read(place)
                if folder == FILES:
                    self._folders[FILES].write(path, data, new=True)
                else:
                    slug, _, inside = path.partition("/")
                    entries.setdefault(slug, {})[inside] = data
            store = self._folders[ENTRIES]
            assert isinstance(store, EntryStore)
            for slug, files in entries.items():
                store.place(slug, files)
        except FilesError as error:
            raise BundleError(f"{error}; nothing was changed") from error

    def _is_same(self, folder: str, name: str) -> bool:
        path = self.stores.folder / folder / name
        if path.is_symlink() or not path.is_file():
            return False
        said = self.bundle.manifest.members[f"{folder}/{name}"].sha256
        return hashlib.sha256(path.read_bytes()).hexdigest() == said


def settle(stores: Stores) -> None:
    """Remove folders that an incomplete restoration has placed.

    Nothing is done where it did, or while somebody restores.
    """
    journal = stores.folder / commitments.JOURNAL
    try:
        said = json.loads(journal.read_text(encoding="utf-8"))
        token, files = str(said["token"]), dict(said["files"])
    except FileNotFoundError:
        return
    except (OSError, ValueError, TypeError, KeyError):
        return
    with stores.database.write() as transaction:
        counts = commitments.counts(transaction, token)
        commitments.forget(transaction, token)
        if not counts:
            for place, digest in files.items():
                with suppress(OSError):
                    _remove(stores.folder, place, digest)
    journal.unlink(missing_ok=True)


def settle_alone(stores: Stores) -> None:
    """Do as `settle`, unless a restoration is running."""
    if (stores.folder / commitments.JOURNAL).exists():
        with suppress(ConflictError, KbkitError), stores.locks.hold(LOCK, wait=0):
            settle(stores)


def _remove(folder: Path, place: str, digest: str) -> None:
    path = folder / place
    if path.is_symlink() or hashlib.sha256(path.read_bytes()).hexdigest() != digest:
        return
    path.unlink()
    for above in list(path.parents):
        if above.parent == folder:
            return
        above.rmdir()


def _missing(store: FileStore, folder: str, name: str) -> bool:
    """Whether a file or entry does not exist; an entry is placed whole or not at all."""
    root = store.root
    if folder == ENTRIES:
        slug = name.partition("/")[0]
        if fault := slug_fault(slug):
            raise BundleError(f"entries/{slug}: {fault}; nothing was changed")
        return not (root / slug).exists()
    return not (root / name).exists()
