"""Actions on a workspace whose process may be killed.

As a program, it forks a child for each JSON object that it reads, and writes its exit status, the
number of points it passed, its duration, whether a signal was sent, and its error. A point is a
commit of written data, or a file that is renamed, linked or removed. The child is killed before a
point of its choice; or it, or another process, gets a signal after some time.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import chromadb
import llama_index.core.node_parser
import psycopg
import sqlalchemy as sa
import trafilatura

import kbkit
import kbkit.bundles
import kbkit.embedding.static
import kbkit.sources.web.readers
import kbkit.stores.chroma_folder
import kbkit.stores.postgres_database
import kbkit.workflows.builder
import kbkit.workflows.migration
from kbkit.errors import KbkitError
from kbkit.recipes import KnowledgeBaseSpec
from kbkit.workspace import Workspace

LOADED = (chromadb, llama_index, psycopg, trafilatura, kbkit)
"""Imported before forking, to save time in children."""
_LASTING = {"os.rename", "os.link", "os.remove", "os.rmdir"}
BUNDLE = "guest.kbkit.zip"
"""The bundle to restore, beside the workspace."""
_WRITES = ("INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "COPY")


@contextmanager
def opened(folder: Path | str, url: str = "") -> Iterator[Workspace]:
    os.environ.update(KBKIT_DATABASE_URL=url, KBKIT_IMPROVE="off")
    with kbkit.open(folder) as workspace:
        yield workspace


def write_source(folder: Path, numbers: range, words: str) -> None:
    folder.mkdir(exist_ok=True)
    for number in numbers:
        lines = "\n\n".join(f"{words} {number} line {line}." for line in range(12))
        (folder / f"{number}.md").write_text(f"# Kiln {number}\n\n{lines}\n")


def prepare(workspace: Workspace, source: Path) -> None:
    """Fill the workspace that actions change."""
    guest = workspace.create("guest")
    for number in range(3):
        guest.rate(guest.add(f"Guest {number}", f"# Guest {number}\n\nBrings tea.\n").id, 3)
    workspace.bundle(source.parent / BUNDLE, kbs=["guest"])
    workspace.delete("guest")
    workspace.compact()
    write_source(source, range(6), "Clay fires at")
    kb = workspace.create("manual")
    kb.ingest({"type": "files", "path": str(source)})
    for number, document in enumerate(kb.documents):
        kb.rate(document.id, 1 + number % 5, rater="ann")
    for name in ("plan", "old", "log", "gone"):
        workspace.files.write(f"notes/{name}.md", f"# {name}\n\nAs it was.\n")
    workspace.entries.create("Glaze a bowl", prompt="Dip it.", slug="glaze")
    workspace.entries.rate("glaze", 4, rater="ann")


def _write_more(place: Path) -> None:
    write_source(place / "more", range(6, 10), "Glaze melts at")


def _change_source(place: Path) -> None:
    write_source(place / "source", range(4, 8), "Changed since")
    (place / "source/0.md").unlink(missing_ok=True)


def _delete(workspace: Workspace, place: Path) -> None:
    documents = workspace["manual"].documents
    for document in list(documents):
        if document.title in ("Kiln 1", "Kiln 2"):
            documents.delete(document.id)


def _delete_base(workspace: Workspace, place: Path) -> None:
    if "manual" in workspace:
        workspace.delete("manual")
    workspace.compact()


def _rate(workspace: Workspace, place: Path) -> None:
    kb = workspace["manual"]
    for document in list(kb.documents)[:4]:
        kb.rate(document.id, 2, rater="bob", query="what bob asked")


def _write(workspace: Workspace, place: Path) -> None:
    files = workspace.files
    files.write("notes/plan.md", "# plan\n\nAs it is.\n")
    files.write("new/idea.md", "# idea\n\nNew.\n")
    if "More." not in files.read("notes/log.md"):
        files.append("notes/log.md", "More.\n")
    names = {info.name for info in files.list("notes")}
    if "old.md" in names:
        files.move("notes/old.md", "kept/old.md")
    if "gone.md" in names:
        files.delete("notes/gone.md")


def _leave_knowledge(place: Path) -> None:
    folder = place / "task" / ".knowledge"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "skill.yaml").write_text("title: Wedge clay\ndescription: Frees it of air\n")
    (folder / "prompt.md").write_text("Press and turn.\n")


def _learn(workspace: Workspace, place: Path) -> None:
    workspace.entries.learn(place / "task" / ".knowledge")
    workspace.entries.rate("glaze", 1, rater="bob")


def _snapshot(workspace: Workspace, place: Path) -> None:
    kb = workspace["manual"]
    kb.add("Raku", "# Raku\n\nTaken from the kiln while it glows.\n", source="raku")
    kb.search("glowing kiln")
    workspace.compact()


def _bundle(workspace: Workspace, place: Path) -> None:
    path = place / "all.kbkit.zip"
    if not path.exists():
        workspace.bundle(path)


ACTIONS: dict[str, Callable[[Workspace, Path], object]] = {
    "ingest": lambda workspace, place: workspace["manual"].ingest(
        {"type": "files", "path": str(place / "more")}
    ),
    "refresh": lambda workspace, _: workspace["manual"].refresh(),
    "delete": _delete,
    "delete a base": _delete_base,
    "rate": _rate,
    "write": _write,
    "learn": _learn,
    "embed again": lambda workspace, _: workspace["manual"].configure(
        KnowledgeBaseSpec(chunking={"size": 100})
    ),
    "snapshot": _snapshot,
    "export": lambda workspace, place: workspace["manual"].export(
        folder=place / "site", build=False
    ),
    "bundle": _bundle,
    "restore": lambda workspace, place: workspace.restore(place / BUNDLE),
    "upgrade": lambda workspace, place: None,  # opening it upgrades the tables
}
"""Idempotent actions; they get a folder beside the workspace's."""
_GIVEN = {"ingest": _write_more, "refresh": _change_source, "learn": _leave_knowledge}
"""Preparations of actions."""
MIGRATE = "migrate"
"""An action on a closed workspace."""
LOOK = "look"
"""An action that only repairs damage."""
BUILD = "build"
"""An action on no workspace yet, with a recipe beside it."""


def look(workspace: Workspace) -> None:
    for name in workspace:
        for mode in ("lexical", "dense", "hybrid"):
            workspace[name].search("clay fires", mode=mode)
        workspace[name].ratings.to_frame()
    workspace.doctor(repair=True)


def _count_points(kill_at: int) -> list[int]:
    """Count points, and kill this process before one of them."""
    passed = [0]

    def point() -> None:
        passed[0] += 1
        if passed[0] == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def on_event(event: str, _arguments: Any) -> None:
        if event in _LASTING:
            point()

    def on_statement(connection: sa.Connection, _cursor: Any, statement: str, *_rest: Any) -> None:
        if statement.lstrip().upper().startswith(_WRITES):
            connection.info["writes"] = True

    def on_commit(connection: sa.Connection) -> None:
        if connection.info.pop("writes", False):
            point()

    sys.addaudithook(on_event)
    sa.event.listen(sa.Engine, "before_cursor_execute", on_statement)
    sa.event.listen(sa.Engine, "commit", on_commit)
    return passed


@contextmanager
def room(folder: Path, size: int) -> Iterator[None]:
    """Leave so many bytes free on the disk of a folder; -1 leaves all."""
    filler = folder.with_name("filler")
    if size >= 0:
        with filler.open("wb") as file:
            free = shutil.disk_usage(folder).free
            os.posix_fallocate(file.fileno(), 0, max(1, free - size))
    try:
        yield
    finally:
        filler.unlink(missing_ok=True)


def act(order: dict[str, Any]) -> None:
    place = Path(order["place"])
    _GIVEN.get(order["action"], lambda _: None)(place)
    if order["action"] == MIGRATE:
        os.environ.update(KBKIT_DATABASE_URL=order["url"], KBKIT_IMPROVE="off")
        with room(place, order["room"]):
            kbkit.migrate(order["workspace"], to=order["to"])
        return
    if order["action"] == BUILD:
        kbkit.build(place / "recipe.yaml", order["workspace"], site=False, trust=True)
        return
    if order["action"] == LOOK:
        with opened(order["workspace"], order["url"]) as workspace:
            look(workspace)
        return
    with opened(order["workspace"], order["url"]) as workspace, room(place, order["room"]):
        ACTIONS[order["action"]](workspace, place)


def main() -> None:
    print("ready", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        reading, writing = os.pipe()
        began = time.monotonic()
        child = os.fork()
        if child == 0:
            code, message = 1, ""
            try:
                passed = _count_points(order["kill_at"])
                try:
                    act(order)
                    code = 0
                except KbkitError as error:
                    message = f"{type(error).__name__}: {error}"
                os.write(writing, json.dumps([passed[0], message]).encode())
            finally:
                os._exit(code)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            late = order["seconds"] and not select.select([pipe], [], [], order["seconds"])[0]
            if late:
                os.kill(order["victim"] or child, order["signal"])
            passed, message = json.loads(pipe.read() or '[0, ""]')
        status = os.waitpid(child, 0)[1]
        took = time.monotonic() - began
        print(json.dumps([status, passed, took, bool(late), message]), flush=True)


if __name__ == "__main__":
    main()
