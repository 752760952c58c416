"""Write skills outside the workspace, each as a whole."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path

from kbkit.entries.agent_skills import FILE
from kbkit.entries.store import put_file
from kbkit.errors import FilesError, PathExistsError
from kbkit.files.directory import PART, Directory
from kbkit.files.paths import parts_of


def write(
    folder: Path, skills: Mapping[str, Mapping[str, bytes]], entries: Path
) -> tuple[Path, ...]:
    """Write skills into a folder, replacing those of the same name."""
    place = folder.resolve()
    if place == entries.resolve() or entries.resolve() in place.parents:
        raise FilesError(f"{folder}: holds the entries themselves; name another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FilesError(f"{folder}: cannot be made ({error.strerror})") from error
    with Directory.open(place) as root:
        for name in skills:
            if root.stat(name) is not None and not _is_skill(root, name):
                raise PathExistsError(
                    f"{folder / name}: is there already and no skill; name another folder"
                )
        for name, files in skills.items():
            part = f"{PART}{secrets.token_hex(8)}"
            root.make(part)
            try:
                with root.child(part, name) as made:
                    for path, data in files.items():
                        put_file(made, parts_of(path), data, f"{name}/{path}")
                if root.stat(name) is not None:
                    root.remove(name)
                root.move(part, root, name, name)
            except BaseException:
                root.remove(part)
                raise
    return tuple(folder / name for name in skills)


def _is_skill(root: Directory, name: str) -> bool:
    if not root.is_directory(name):
        return False
    with root.child(name, name) as found:
        return found.stat(FILE) is not None
