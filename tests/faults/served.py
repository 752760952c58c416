"""`kbkit serve` as a process of its own, for tests that send it what nobody should, or end it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import kbkit
from kbkit.access import Tokens


class Served:
    """A server that runs.

    Attributes:
        url: Its address.
        token: That it lets everything be done with.
        process: It.
        log: What it wrote to its log.
    """

    def __init__(self, folder: Path, token: str, *options: str) -> None:
        self.token = token
        self.log = folder.parent / f"{folder.name}.log"
        command = [sys.executable, "-m", "kbkit", "--workspace", str(folder), "serve"]
        with self.log.open("a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [*command, "--port", "0", "--rate", "0", "--until-stdin-closes", *options],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env={**os.environ, "KBKIT_IMPROVE": "off"},
            )
        seen = len(self.log.read_text("utf-8"))
        found = None
        while found is None:
            with suppress(subprocess.TimeoutExpired):  # the processor is for it, not for looking
                self.process.wait(0.05)
                raise AssertionError(self.log.read_text("utf-8"))
            found = re.search(r"at (http://[\d.]+:\d+) ", self.log.read_text("utf-8")[seen:])
        self.url = found[1]
        self.port = int(self.url.rpartition(":")[2])

    @property
    def headers(self) -> dict[str, str]:
        """What lets somebody in."""
        return {"Authorization": f"Bearer {self.token}"}

    def end(self, number: int = signal.SIGTERM) -> int:
        """End it; its exit status."""
        self.process.send_signal(number)
        return self.process.wait(60)


def admin_token(workspace: kbkit.Workspace) -> str:
    """A token for everything."""
    return Tokens(workspace).create("admin", scope="admin").token


def state(workspace: kbkit.Workspace) -> str:
    """All that a workspace holds."""
    held = {
        name: [
            [document.to_dict() for document in workspace[name].documents],
            [rating.to_dict() for rating in workspace[name].ratings],
            workspace[name].spec.model_dump(mode="json"),
        ]
        for name in workspace
    }
    tree = workspace.files.tree().to_dict()
    entries = [entry.to_dict() for entry in workspace.entries.list()]
    return json.dumps([held, tree, entries], sort_keys=True)
