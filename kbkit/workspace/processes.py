"""Work of a workspace in other processes: searches, and models that embed.

Python computes in one thread at a time, so a search would wait for each write.

A workspace has at most one process that embeds: ``python -m kbkit.workspace.processes FOLDER``. It
outlives the process that started it, runs at low priority, and ends when nothing is left to embed.
It pauses after work, so that documents that arrive meanwhile are embedded together. Vectors are
stored by content: a kill costs seconds of work, and the next ingest or `kbkit improve` starts it
again.
"""

import asyncio
import gc
import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from concurrent.futures import CancelledError, Future, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from kbkit.errors import ConflictError, KbkitError
from kbkit.knowledge_base import handle_of
from kbkit.knowledge_base.improving import PROCESS, Improving
from kbkit.models import KnowledgeBaseInfo
from kbkit.models.values import to_json
from kbkit.runtime.config import Settings
from kbkit.runtime.processes import Workers
from kbkit.workspace import Workspace, settings_of, stores_of

_SECONDS = 300.0
_WARMED = 20  # knowledge bases whose snapshots a process maps at its start
_FIRST = 5  # queries after which the embedder has opened its model
_PATIENCE = 10.0  # seconds that a search waits for starting processes
# thread switch interval; with Python's 5 ms, searches during writes took twenty times as long
SWITCH_SECONDS = 0.0005


@dataclass(frozen=True, slots=True)
class SearchTask:
    """A search or context; a `kbkit.runtime.processes.WorkerTask`.

    Attributes:
        method: Method of the workspace: ``search`` or ``context``.
    """

    folder: Path
    settings: Settings
    method: str
    query: str
    arguments: Mapping[str, Any]

    seconds: ClassVar[float] = _SECONDS

    def perform(self) -> bytes | KbkitError:
        try:
            return _answer(_open(self.folder, self.settings), self)
        except KbkitError as error:
            return error

    def broken(self, reason: str) -> None:
        """Search in this process, since the other one has ended."""
        return


@dataclass(frozen=True, slots=True)
class WarmTask:
    """Opens the workspace and maps its snapshots in a process."""

    folder: Path
    settings: Settings

    seconds: ClassVar[float] = _SECONDS

    def perform(self) -> bool:
        workspace = _open(self.folder, self.settings)
        names = list(workspace)[:_WARMED]
        for number, name in enumerate(names + names[:1] * _FIRST):
            with suppress(KbkitError):  # later searches report it
                workspace.context(f"first {number}", kbs=[name])
        gc.collect()
        gc.freeze()  # spares the loaded data from garbage collection during searches
        return True

    def broken(self, reason: str) -> bool:
        """Return ``False``: searches continue without these processes."""
        return False


class SearchProcesses:
    """Answers searches and contexts of a workspace in other processes."""

    def __init__(self, workspace: Workspace, processes: int) -> None:
        self._workspace = workspace
        self._settings = settings_of(workspace)
        self._count = processes
        self._workers: Workers | None = None
        self._warmings: list[Future[bool]] = []

    @property
    def is_ready(self) -> bool:
        return all(warming.done() for warming in self._warmings)

    def start(self) -> None:
        """Start the processes in the background; searches wait up to `_PATIENCE` for them."""
        if not self._count:
            return
        task = WarmTask(self._workspace.path, self._settings)
        with suppress(OSError):  # this process continues to search
            self._workers = Workers(self._count, preload="kbkit.workspace")
            # one for each process: none takes a second task before its first is done
            self._warmings = [self._workers.submit(task) for _ in range(self._count)]

    def close(self) -> None:
        if self._workers is not None:
            self._workers.close()

    def answer(self, method: str, query: str, **arguments: Any) -> bytes:
        task = SearchTask(self._workspace.path, self._settings, method, query, arguments)
        reply: bytes | KbkitError | None = None
        if self._workers is not None and not wait(self._warmings, _PATIENCE).not_done:
            with suppress(CancelledError):  # the server stops; this process gives the last answer
                if all(warming.result() for warming in self._warmings):
                    reply = self._workers.submit(task).result()
        if reply is None:
            reply = _answer(self._workspace, task)
        if isinstance(reply, KbkitError):
            raise reply
        return reply

    async def answer_async(self, method: str, query: str, **arguments: Any) -> bytes:
        """Answer as `answer` does, outside the server's pool of threads: writers need them."""
        return await asyncio.to_thread(self.answer, method, query, **arguments)


def _answer(workspace: Workspace, task: SearchTask) -> bytes:
    result = getattr(workspace, task.method)(task.query, **task.arguments)
    text = json.dumps(to_json(result), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode()


@lru_cache(maxsize=1)
def _open(folder: Path, settings: Settings) -> Workspace:
    sys.setswitchinterval(SWITCH_SECONDS)
    return Workspace(folder, settings=settings)


_NICE = 15
_LOCK_WAIT = 2.0  # seconds to wait for a lock that others only test
# pause after work: multiple of its time, maximum seconds, and seconds after which much work ends it
_RESTS, _MAX_REST, _MIN_REST = 9, 600.0, 30.0
_MUCH = 0.01  # of the chunks of a knowledge base


def main(folder: str) -> None:
    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    failed: set[str] = set()
    with Workspace(folder) as workspace:
        stores = stores_of(workspace)
        stores.pause_between_writes()
        # checked again after the lock is free: writers started no process while it was held
        while waiting := _waiting(workspace, failed):
            try:
                with stores.locks.hold(PROCESS, wait=_LOCK_WAIT):
                    began = time.monotonic()
                    failed |= {info.id for info in waiting if not _improve(workspace, info)}
                    if _waiting(workspace, failed):
                        _rest(workspace, failed, _RESTS * (time.monotonic() - began))
            except ConflictError:
                return


def _waiting(workspace: Workspace, failed: set[str]) -> list[KnowledgeBaseInfo]:
    return [info for info in workspace.list() if info.waiting and info.id not in failed]


def _rest(workspace: Workspace, failed: set[str], seconds: float) -> None:
    """Pause until much work waits: each pass reads whole knowledge bases, even for one document."""
    end = time.monotonic() + min(seconds, _MAX_REST)
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, _MIN_REST))
        for info in _waiting(workspace, failed):
            work = info.waiting
            if max(work.summaries, work.chunks, work.annotations) > _MUCH * info.chunks:
                return


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
