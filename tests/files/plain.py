"""Files in a folder of their own, without a catalog: most of what they do needs none."""

from __future__ import annotations

from pathlib import Path

from kbkit.files.files import FOLDER, KNOWLEDGE_BASES, Files
from kbkit.files.store import FileStore
from kbkit.stores.locks import FolderLocks


class Unsearched:
    """In place of the index: nothing is known of any file."""

    def level(self, path="", **options):
        pass

    def move(self, source, target):
        pass

    def created(self, path):
        return {}

    def listed(self, folder):
        return {}

    def known(self, path):
        return None


def plain_files(folder: Path) -> Files:
    locks = FolderLocks(folder / "locks")
    store = FileStore(folder / FOLDER, locks, frozenset({KNOWLEDGE_BASES}))
    return Files(store, Unsearched())
