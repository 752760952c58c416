"""Changes files and entries on a nearly full disk; prints JSON lines.

    python small_disk.py FOLDER ROOMS CHECKED

FOLDER is on a disk of its own, ROOMS are numbers of free bytes. With CHECKED being "no", the check
for room before a change is off.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kbkit
from kbkit.errors import KbkitError
from kbkit.files import store
from tests.faults.actions import room

TEXT = "# Text\n\n" + "".join(f"word{number} " for number in range(3_000))
Change = Callable[[kbkit.Workspace, Path], Any]
CHANGES: dict[str, Change] = {
    "write": lambda ws, _: ws.files.write("new/deep/er.md", TEXT),
    "overwrite": lambda ws, _: ws.files.write("a.md", TEXT),
    "append": lambda ws, _: ws.files.append("a.md", TEXT),
    "move": lambda ws, _: ws.files.move("a.md", "m/o/v.md"),
    "delete": lambda ws, _: ws.files.delete("a.md"),
    "undelete": lambda ws, _: ws.files.undelete("gone.md"),
    "create": lambda ws, _: ws.entries.create("New", slug="new", prompt=TEXT),
    "update": lambda ws, _: ws.entries.update("brew", readme="# Read\n", prompt=TEXT),
    "rate": lambda ws, _: ws.entries.rate("brew", 5, rater="ann"),
    "rename": lambda ws, _: ws.entries.rename("brew", to="brewed"),
    "delete an entry": lambda ws, _: ws.entries.delete("brew"),
    "undelete an entry": lambda ws, _: ws.entries.undelete("old"),
    "learn": lambda ws, task: ws.entries.learn(task),
    "learn anew": lambda ws, task: ws.entries.learn(task / "again"),
}


def make(folder: Path) -> Path:
    """Create a workspace with files and entries, and results of a task."""
    with kbkit.open(folder / "made") as ws:
        ws.files.write("a.md", "# A\n")
        ws.files.write("gone.md", "# Gone\n")
        ws.files.delete("gone.md")
        ws.entries.create("Brew tea", slug="brew", prompt="Boil water.")
        ws.entries.create("Old", slug="old", prompt="Forget it.")
        ws.entries.delete("old")
        task = folder / "task"
        for place, text in ((task / "once", "title: Peel eggs\n"), (task, "title: Boil eggs\n")):
            place.mkdir(parents=True, exist_ok=True)
            (place / "skill.yaml").write_text(text)
            (place / "notes.md").write_text(TEXT)
        ws.entries.learn(task / "once")
        (task / "once").rename(task / "again")
        (task / "again" / "more.md").write_text(TEXT)
    return task


def tree(folder: Path) -> dict[str, bytes | None]:
    """Files and entries without the trash."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for name in ("files", "entries")
        for path in sorted((folder / name).rglob("*"))
        if ".trash" not in path.parts
    }


def tried(folder: Path, task: Path, name: str, size: int) -> dict[str, Any]:
    """Try a change with little room, and again with enough."""
    shutil.rmtree(folder / "kb", ignore_errors=True)
    shutil.copytree(folder / "made", folder / "kb")
    with kbkit.open(folder / "kb") as ws:
        before, error = tree(folder / "kb"), ""
        with room(folder / "kb", size):
            try:
                CHANGES[name](ws, task)
            except KbkitError as problem:
                error = f"{type(problem).__name__}: {problem}"
        same = tree(folder / "kb") == before
        if error and same:
            CHANGES[name](ws, task)
        ws.files.sync()
        ws.entries.sync()
        sound = ws.doctor().findings == ()
    return {"change": name, "room": size, "error": error, "same": same, "sound": sound}


if __name__ == "__main__":
    if sys.argv[3] == "no":
        store._ROOM = store._ROOM_FACTOR = 0
    where = Path(sys.argv[1])
    left = make(where)
    for each in CHANGES:
        for size in json.loads(sys.argv[2]):
            print(json.dumps(tried(where, left, each, size)), flush=True)
