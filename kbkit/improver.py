"""The process in the background that has models embed what static vectors serve meanwhile.

One a workspace is at work: ``python -m kbkit.improver ADDRESS``. It goes on when the process ends
that started it, takes what processors nobody else wants, and ends when nothing is left. What it has
embedded is kept by content, so one that is killed costs some seconds of work; the next ingest, or
`kbkit improve`, starts another.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys

from kbkit.errors import ConflictError, KbkitError
from kbkit.knowledge_base.improving import PROCESS
from kbkit.models import KnowledgeBaseInfo
from kbkit.stores.stores import StoresAddress
from kbkit.workspace import Workspace

_NICE = 15
_PATIENCE = 2.0
"""Seconds to wait for the lock, which others hold for a moment to see whether it is free."""


def main(address: str) -> None:
    """Improve the knowledge bases of a workspace until nothing is left.

    Args:
        address: Of its stores, as JSON.
    """
    with contextlib.suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    stores = StoresAddress.from_json(address).open()
    failed: set[str] = set()
    with Workspace(stores.folder, stores=stores) as workspace:
        # asked again when the lock is free: who stored something while it was held started nobody
        while waiting := _waiting(workspace, failed):
            try:
                with stores.locks.hold(PROCESS, wait=_PATIENCE):
                    for info in waiting:
                        if not _improve(workspace, info):
                            failed.add(info.id)
            except ConflictError:
                return


def _waiting(workspace: Workspace, failed: set[str]) -> list[KnowledgeBaseInfo]:
    return [info for info in workspace.list() if info.waiting and info.id not in failed]


def _improve(workspace: Workspace, info: KnowledgeBaseInfo) -> bool:
    """Whether nothing is left; else it was deleted, its model cannot be had, or another does it."""
    try:
        return not workspace[info.name].improve()
    except KbkitError:  # `kbkit improve` says it to somebody
        return False


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(_NICE)
    main(sys.argv[1])
