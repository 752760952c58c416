"""Files in a folder of their own, without a catalog: most of what they do needs none."""

from __future__ import annotations

from pathlib import Path

from kbkit.errors import MissingPathError
from kbkit.files.files import FOLDER, Files
from kbkit.files.shown import ROOT
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

    def look_up(self, query, folder):
        return {}

    def known(self, path):
        return None


class NoKnowledgeBases:
    """In place of those that are shown."""

    def names(self):
        return []

    def list(self, parts):
        raise MissingPathError

    info = read = list


def plain_files(folder: Path) -> Files:
    locks = FolderLocks(folder / "locks")
    store = FileStore(folder / FOLDER, locks, frozenset({ROOT}))
    return Files(store, Unsearched(), NoKnowledgeBases())
