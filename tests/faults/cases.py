"""Workspaces under faults, and the checks of them afterwards."""

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
    """The process that forks children to kill; `before` is put before its command."""

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
        """Exit status of a child, points it passed, seconds, whether it was late, its error.

        Before the point ``kill_at`` it is killed. After ``seconds`` it, or the ``victim``, gets
        ``signal``. ``room`` are the free bytes of the disk once the workspace is open.
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
    """A workspace that may be damaged, and a folder beside it."""

    place: Path
    url: str = ""
    to: str = ""
    """The target of a migration: a folder or a database."""

    @property
    def folder(self):
        return self.place / "kb"

    @property
    def moved(self):
        """The workspace after its migration."""
        if "://" in self.to:
            return Case(self.place, self.to)
        return Case(Path(self.to).parent)


def state_of(case):
    with opened(case.folder, case.url) as workspace:
        return state(workspace)


def state(workspace: Workspace) -> dict:
    """The content of a workspace by name."""
    content = {}
    for name in workspace:
        kb = workspace[name]
        for document in kb.documents:
            content["document", name, document.uri] = (document.state, document.content_hash)
        documents = {document.id: document.uri for document in kb.documents}
        for rating in kb.ratings:
            if rating.target.id in documents:
                content["rating", name, documents[rating.target.id], rating.rater] = rating.score
    content.update(files_of(workspace.files))
    for info in workspace.entries.list(limit=100):
        entry = workspace.entries.read(info.slug)
        votes = {vote.rater: vote.score for vote in entry.rating.votes}  # the last vote counts
        content["entry", entry.slug] = (entry.prompt, votes)
    return content


def files_of(files, folder=""):
    texts = {}
    for info in files.list(folder):
        if info.path == "kb":
            continue
        if info.is_folder:
            texts.update(files_of(files, info.path))
        else:
            texts["file", info.path] = files.read(info.path)
    return texts


def check_sound(case):
    """Check invariants of any workspace; return its state."""
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
        content = state(workspace)
    for path in case.place.glob("all*.zip"):  # never partial
        shutil.rmtree(case.place / "restored", ignore_errors=True)
        with opened(case.place / "restored") as workspace:
            workspace.restore(path)
            content["bundle", path.name] = state(workspace)
    return content


def check_between(before, now, after):
    """Check that each item has its old or its new state."""
    absent = object()
    for key in before.keys() | now.keys() | after.keys():
        sides = (before.get(key, absent), after.get(key, absent))
        assert now.get(key, absent) in sides, key
