"""A workspace that something happens to: who does it, and what must hold of it afterwards."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from kbkit.models import DocumentState
from kbkit.workspace import Workspace
from tests.faults.actions import opened


class Children:
    """The process that forks those which are killed.

    Args:
        before: Put before the command that starts it.
    """

    def __init__(self, *before):
        script = Path(__file__).with_name("actions.py")
        self.process = subprocess.Popen(
            [*before, sys.executable, str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert self.process.stdout.readline() == "ready\n"

    def act(self, case, action, **end):
        """Exit status of a child, points that it passed, seconds, if it was late, what it said.

        Args:
            case: What it is done to.
            action: What it does.
            end: ``kill_at`` is the point before which it ends. After ``seconds`` it gets ``signal``
                (by default SIGKILL), or another process does, the ``victim``. ``room`` is what
                the disk has left once the workspace is open.
        """
        order = {
            "action": action,
            "workspace": str(case.folder),
            "url": case.url,
            "place": str(case.place),
            "to": case.to,
            "kill_at": 0,
            "seconds": 0,
            "victim": 0,
            "signal": int(signal.SIGKILL),
            "room": -1,
            **end,
        }
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


@dataclass
class Case:
    """A workspace that may be broken, and a folder beside it."""

    place: Path
    url: str = ""
    to: str = ""
    """Where it is moved to: a folder or a database."""

    @property
    def folder(self):
        return self.place / "kb"

    @property
    def moved(self):
        """What it is once it was moved."""
        if "://" in self.to:
            return Case(self.place, self.to)
        return Case(Path(self.to).parent)


def state_of(case):
    with opened(case.folder, case.url) as workspace:
        return state(workspace)


def state(workspace: Workspace) -> dict:
    """What it holds, by what it is called."""
    found = {}
    for name in workspace:
        kb = workspace[name]
        for document in kb.documents:
            found["document", name, document.uri] = (document.state, document.content_hash)
        documents = {document.id: document.uri for document in kb.documents}
        for rating in kb.ratings:
            if rating.target.id in documents:
                found["rating", name, documents[rating.target.id], rating.rater] = rating.score
    found.update(files_of(workspace.files))
    for info in workspace.entries.list(limit=100):
        entry = workspace.entries.read(info.slug)
        votes = {vote.rater: vote.score for vote in entry.rating.votes}  # the last one counts
        found["entry", entry.slug] = (entry.prompt, votes)
    return found


def files_of(files, folder=""):
    found = {}
    for info in files.list(folder):
        if info.path == "kb":
            continue
        if info.is_folder:
            found.update(files_of(files, info.path))
        else:
            found["file", info.path] = files.read(info.path)
    return found


def check_sound(case):
    """Check what must hold of any workspace; gives its state."""
    if not case.url:
        with sqlite3.connect(case.folder / "catalog.db") as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    with opened(case.folder, case.url) as workspace:
        for name in workspace:
            kb = workspace[name]
            documents = {document.id: document for document in kb.documents}
            chunks = list(kb.chunks)
            present = {each.id for each in kb.documents if each.state != DocumentState.GONE}
            assert {chunk.document_id for chunk in chunks} == present
            for chunk in chunks:
                assert documents[chunk.document_id].content[chunk.start : chunk.end] == chunk.text
            for chunk in chunks[:: max(1, len(chunks) // 3)]:
                for mode in ("lexical", "dense"):
                    hits = kb.search(chunk.text, limit=len(chunks), mode=mode)
                    assert chunk.id in {hit.chunk.id for hit in hits}, (name, mode)
        found = state(workspace)
    for path in case.place.glob("all*.zip"):  # one that is there is whole
        shutil.rmtree(case.place / "restored", ignore_errors=True)
        with opened(case.place / "restored") as workspace:
            workspace.restore(path)
            found["bundle", path.name] = state(workspace)
    return found


def check_between(before, now, after):
    """Check that each thing is as it was or as it is to be."""
    absent = object()
    for key in before.keys() | now.keys() | after.keys():
        sides = (before.get(key, absent), after.get(key, absent))
        assert now.get(key, absent) in sides, key
