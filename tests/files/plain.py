"""Files without a catalog, which most tests do not need."""

from pathlib import Path

from kbkit.errors import MissingPathError
from kbkit.files.files import Files
from kbkit.files.shown import ROOT
from kbkit.files.store import FileStore
from kbkit.models.values import FILES
from kbkit.stores.backend import FolderLocks


class Unsearched:
    """Stands for an empty index."""

    def level(self, path="", **options):
        pass

    def move(self, source, target):
        pass

    def created_times(self, path):
        return {}

    def look_up(self, query, folder):
        return {}

    def find_record(self, path):
        return None


class NoKnowledgeBases:
    """Stands for a workspace without knowledge bases."""

    def names(self):
        return []

    def list(self, parts):
        raise MissingPathError

    info = read = list


def plain_files(folder: Path) -> Files:
    locks = FolderLocks(folder / "locks")
    store = FileStore(folder / FILES, locks, frozenset({ROOT}))
    return Files(store, Unsearched(), NoKnowledgeBases())
