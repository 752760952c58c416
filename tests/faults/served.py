"""`kbkit serve` in a process of its own."""

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
        address = None
        while address is None:
            with suppress(subprocess.TimeoutExpired):  # leaves the processor to the server
                self.process.wait(0.05)
                raise AssertionError(self.log.read_text("utf-8"))
            address = re.search(r"at (http://[\d.]+:\d+) ", self.log.read_text("utf-8")[seen:])
        self.url = address[1]
        self.port = int(self.url.rpartition(":")[2])

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal; return the exit status."""
        self.process.send_signal(number)
        return self.process.wait(60)


def admin_token(workspace: kbkit.Workspace) -> str:
    return Tokens(workspace).create("admin", scope="admin").token


def state(workspace: kbkit.Workspace) -> str:
    bases = {
        name: [
            [document.to_dict() for document in workspace[name].documents],
            [rating.to_dict() for rating in workspace[name].ratings],
            workspace[name].spec.model_dump(mode="json"),
        ]
        for name in workspace
    }
    tree = workspace.files.tree().to_dict()
    entries = [entry.to_dict() for entry in workspace.entries.list()]
    return json.dumps([bases, tree, entries], sort_keys=True)
