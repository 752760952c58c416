"""The background process in which models embed; until it ends, static vectors serve searches.

A workspace has at most one: ``python -m kbkit.workspace.improver ADDRESS``. It outlives the process
that started it, runs at low priority, and ends when nothing is left to embed. It pauses after work,
so that documents that arrive meanwhile are embedded together. Vectors are stored by content: a kill
costs seconds of work, and the next ingest or `kbkit improve` starts it again.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time

from kbkit.errors import ConflictError, KbkitError
from kbkit.knowledge_base import handle_of
from kbkit.knowledge_base.improving import PROCESS, Improving
from kbkit.models import KnowledgeBaseInfo
from kbkit.stores.stores import StoresAddress
from kbkit.workspace import Workspace

_NICE = 15
_PATIENCE = 2.0  # seconds to wait for a lock that others only test
# pause after work, as a multiple of its time, and its maximum in seconds
_RESTS, _MAX_REST_LENGTH = 4, 30.0


def main(address: str) -> None:
    with contextlib.suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    stores = StoresAddress.from_json(address).open()
    failed: set[str] = set()
    with Workspace(stores.folder, stores=stores) as workspace:
        # checked again after the lock is free: writers started no process while it was held
        while waiting := _waiting(workspace, failed):
            try:
                with stores.locks.hold(PROCESS, wait=_PATIENCE):
                    began = time.monotonic()
                    failed |= {info.id for info in waiting if not _improve(workspace, info)}
                    if _waiting(workspace, failed):
                        worked = time.monotonic() - began
                        time.sleep(min(_RESTS * worked, _MAX_REST_LENGTH))
            except ConflictError:
                return


def _waiting(workspace: Workspace, failed: set[str]) -> list[KnowledgeBaseInfo]:
    return [info for info in workspace.list() if info.waiting and info.id not in failed]


def _improve(workspace: Workspace, info: KnowledgeBaseInfo) -> bool:
    """Improve a knowledge base; ``False`` if it is gone, lacks its model, or is being improved."""
    try:
        kb = workspace[info.name]
        Improving(handle_of(kb)).once()
        return kb.info() != info
    except KbkitError:  # `kbkit improve` reports it
        return False


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(_NICE)
    main(sys.argv[1])
