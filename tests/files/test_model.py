"""Files against a model of a filesystem, with steps by hypothesis."""

import os
import shutil
import tempfile
import unicodedata
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kbkit.errors import (
    FilesError,
    InvalidPathError,
    IsFolderError,
    MissingPathError,
    NotFolderError,
    NotUniqueError,
    PathExistsError,
    VersionConflictError,
)
from tests.files.plain import plain_files

EXAMPLES = min(200, int(os.environ.get("KBKIT_EXAMPLES", "20")))
"""Of 50 steps each: 10,000 with `make soak`."""

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""A file system in memory, if there is one: each write would wait for the disk."""

names = st.sampled_from(["a", "A", "b.md", "c", "é", unicodedata.normalize("NFD", "é")])
paths = st.lists(names, min_size=1, max_size=3).map("/".join)
texts = st.text(st.sampled_from("xy\n"), max_size=6)


class Model:
    """A filesystem: text by path, ``None`` for a folder."""

    def __init__(self) -> None:
        self.nodes: dict[tuple[str, ...], str | None] = {(): None}
        self.trash: list[tuple[tuple[str, ...], dict[tuple[str, ...], str | None]]] = []

    def below(self, path):
        return {key: node for key, node in self.nodes.items() if key[: len(path)] == path}

    def require(self, path):
        for end in range(1, len(path) + 1):
            part = path[:end]
            if part not in self.nodes:
                raise MissingPathError
            if end < len(path) and self.nodes[part] is not None:
                raise NotFolderError

    def make_folders(self, path):
        for end in range(1, len(path) + 1):
            part = path[:end]
            if part not in self.nodes:
                self.refuse_alike(part)
                self.nodes[part] = None
            elif self.nodes[part] is not None:
                raise NotFolderError

    def refuse_alike(self, path):
        for key in self.nodes:
            beside = len(key) == len(path) and key[:-1] == path[:-1] and key != path
            if beside and key[-1].casefold() == path[-1].casefold():
                raise PathExistsError

    def write(self, path, edit, old=False):
        if old:
            self.require(path)
        self.make_folders(path[:-1])
        if path in self.nodes and self.nodes[path] is None:
            raise IsFolderError
        if path not in self.nodes:
            self.refuse_alike(path)
        self.nodes[path] = edit(self.nodes.get(path))

    def move(self, source, target):
        if target[: len(source)] == source and target != source:
            raise InvalidPathError
        self.require(source)
        self.make_folders(target[:-1])
        if target != source:
            if target in self.nodes:
                raise PathExistsError
            moved = {target + key[len(source) :]: node for key, node in self.below(source).items()}
            for key in self.below(source):
                del self.nodes[key]
            try:
                self.refuse_alike(target)
            except PathExistsError:
                self.nodes |= {source + key[len(target) :]: node for key, node in moved.items()}
                raise
            self.nodes |= moved

    def delete(self, path):
        self.require(path)
        gone = self.below(path)
        self.trash.append((path, {key[len(path) :]: node for key, node in gone.items()}))
        for key in gone:
            del self.nodes[key]

    def undelete(self, path):
        kept = [n for n, (at, _) in enumerate(self.trash) if at == path]
        if not kept:
            raise MissingPathError
        self.make_folders(path[:-1])
        if path in self.nodes:
            raise PathExistsError
        self.refuse_alike(path)
        self.nodes |= {path + key: node for key, node in self.trash.pop(kept[-1])[1].items()}


def parts(path):
    return tuple(unicodedata.normalize("NFC", path).split("/"))


class Filesystem(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(dir=MEMORY))
        self.files = plain_files(self.folder)
        self.files.mkdir("c")
        self.model = Model()
        self.model.nodes["c",] = None

    def teardown(self):
        shutil.rmtree(self.folder)

    def both(self, act, model):
        """Do the same on both, and compare the errors."""
        results = []
        for each in (act, model):
            try:
                each()
                results.append(None)
            except FilesError as error:
                results.append(type(error))
        assert results[0] == results[1], results

    @rule(path=paths, text=texts)
    def write(self, path, text):
        self.both(
            lambda: self.files.write(path, text),
            lambda: self.model.write(parts(path), lambda _: text),
        )

    @rule(path=paths, text=texts)
    def append(self, path, text):
        def edit(before):
            if before and not before.endswith("\n"):
                before += "\n"
            return (before or "") + text

        self.both(
            lambda: self.files.append(path, text), lambda: self.model.write(parts(path), edit)
        )

    @rule(path=paths, old=texts.filter(bool), new=texts)
    def replace(self, path, old, new):
        def edit(before):
            places = [at for at in range(len(before)) if before.startswith(old, at)]
            if len(places) != 1:
                raise NotUniqueError("", len(places))
            return before.replace(old, new, 1)

        self.both(
            lambda: self.files.replace(path, old, new),
            lambda: self.model.write(parts(path), edit, old=True),
        )

    @rule(path=paths, text=texts, stale=st.booleans())
    def write_if_match(self, path, text, stale):
        try:
            seen = self.files.info(path)
        except FilesError:
            return
        if stale and not seen.is_folder:
            now = self.files.read(path)
            self.both(
                lambda: self.files.write(path, now + "z"),
                lambda: self.model.write(parts(path), lambda _: now + "z"),
            )

        def edit(before):
            if stale or seen.is_folder:
                raise VersionConflictError
            return text

        self.both(
            lambda: self.files.write(path, text, if_match=seen.version),
            lambda: self.model.write(parts(path), edit),
        )

    @rule(path=paths)
    def mkdir(self, path):
        def make():
            try:
                self.model.make_folders(parts(path))
            except NotFolderError:
                raise PathExistsError from None

        self.both(lambda: self.files.mkdir(path), make)

    @rule(source=paths, to=paths)
    def move(self, source, to):
        self.both(
            lambda: self.files.move(source, to), lambda: self.model.move(parts(source), parts(to))
        )

    @rule(path=paths)
    def delete(self, path):
        self.both(lambda: self.files.delete(path), lambda: self.model.delete(parts(path)))

    @rule(path=paths)
    def undelete(self, path):
        self.both(lambda: self.files.undelete(path), lambda: self.model.undelete(parts(path)))

    @rule(path=paths)
    def read(self, path):
        found = []

        def look():
            self.model.require(parts(path))
            if self.model.nodes[parts(path)] is None:
                raise IsFolderError
            found.append(self.model.nodes[parts(path)])

        self.both(lambda: found.append(self.files.read(path)), look)
        assert len(set(found)) <= 1

    @invariant()
    def files_equal_the_model(self):
        nodes: dict[tuple[str, ...], str | None] = {(): None}

        def walk(tree):
            for child in tree.children:
                path = tuple(child.info.path.split("/"))
                nodes[path] = None if child.info.is_folder else self.files.read(child.info.path)
                walk(child)

        walk(self.files.tree())
        assert nodes == self.model.nodes
        assert sorted(each.path for each in self.files.trash()) == sorted(
            "/".join(path) for path, _ in self.model.trash
        )


Filesystem.TestCase.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=50, deadline=None
)
TestFilesystem = Filesystem.TestCase
