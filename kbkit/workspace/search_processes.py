"""Run searches and contexts in other processes, with JSON results.

Python computes in one thread at a time, so a search would wait for each write. These processes see
all commits, like other processes with the workspace open.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from kbkit.errors import KbkitError
from kbkit.models.values import to_json
from kbkit.runtime.config import Settings
from kbkit.runtime.processes import Workers
from kbkit.workspace import Workspace, settings_of

_SECONDS = 300.0
_WARMED = 20
"""Knowledge bases whose snapshots a process has mapped when it takes its first search."""
_FIRST = 5
"""Queries after which the embedder has opened its model."""
_PATIENCE = 10.0
"""Seconds that a search waits for starting processes, rather than load the data here."""
SWITCH_SECONDS = 0.0005
"""Thread switch interval. Python's 5 ms are long for a search beside writes: with 50 clients it
took twenty times as long."""


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

    @property
    def seconds(self) -> float:
        return _SECONDS

    def perform(self) -> bytes | KbkitError:
        try:
            return _answered(_opened(self.folder, self.settings), self)
        except KbkitError as error:
            return error

    def broken(self, reason: str) -> None:
        """A search whose process ended: it is made in this one."""
        return


@dataclass(frozen=True, slots=True)
class WarmTask:
    """Opens the workspace and maps snapshots in a process."""

    folder: Path
    settings: Settings

    @property
    def seconds(self) -> float:
        return _SECONDS

    def perform(self) -> bool:
        """Search once in each knowledge base, and a few times in one."""
        workspace = _opened(self.folder, self.settings)
        names = list(workspace)[:_WARMED]
        for number, name in enumerate(names + names[:1] * _FIRST):
            with suppress(KbkitError):  # whoever searches is told
                workspace.context(f"first {number}", kbs=[name])
        gc.collect()
        gc.freeze()  # what stays in memory is not looked through again, while searches wait
        return True

    def broken(self, reason: str) -> bool:
        """Return ``False``: searches go on without such processes."""
        return False


class SearchProcesses:
    """Answers searches and contexts of a workspace in other processes."""

    def __init__(self, workspace: Workspace, processes: int) -> None:
        self._workspace = workspace
        self._settings = settings_of(workspace)
        self._count = processes
        self._workers: Workers | None = None
        self._warm = False
        self._settled = threading.Event()
        self._settled.set()

    @property
    def is_ready(self) -> bool:
        """Whether a search would begin at once: no process is starting."""
        return self._settled.is_set()

    def start(self) -> None:
        """Begin to start the processes; searches wait for them a while."""
        if not self._count:
            return
        with suppress(OSError):  # then this process goes on searching
            self._workers = Workers(self._count, preload="kbkit.workspace")
            self._settled.clear()
            threading.Thread(
                target=self._warm_up, name="kbkit-search-processes", daemon=True
            ).start()

    def close(self) -> None:
        """End the processes."""
        if self._workers is not None:
            self._workers.close()

    def answer(self, method: str, query: str, **arguments: Any) -> bytes:
        task = SearchTask(self._workspace.path, self._settings, method, query, arguments)
        self._settled.wait(_PATIENCE)
        reply: bytes | KbkitError | None = None
        if asked := self._asked(task):
            with suppress(CancelledError):  # the server ends, and this is its last answer
                reply = asked.result()
        return _checked(_answered(self._workspace, task) if reply is None else reply)

    async def answer_async(self, method: str, query: str, **arguments: Any) -> bytes:
        """Answer as `answer` does, without blocking a thread: writers need them all."""
        task = SearchTask(self._workspace.path, self._settings, method, query, arguments)
        if not self._settled.is_set():
            await asyncio.to_thread(self._settled.wait, _PATIENCE)
        reply: bytes | KbkitError | None = None
        if asked := self._asked(task):
            waiting = asyncio.wrap_future(asked)
            await asyncio.wait([waiting])
            reply = None if waiting.cancelled() else waiting.result()
        if reply is None:
            reply = await asyncio.to_thread(_answered, self._workspace, task)
        return _checked(reply)

    def _asked(self, task: SearchTask) -> Future[Any] | None:
        """Send a task to a process; ``None`` if there is none."""
        if self._workers is None or not self._settled.is_set() or not self._warm:
            return None
        return self._workers.submit(task)

    def _warm_up(self) -> None:
        assert self._workers is not None
        task = WarmTask(self._workspace.path, self._settings)
        # one for each, since none takes a second before its first is done
        warming = [self._workers.submit(task) for _ in range(self._count)]
        with suppress(CancelledError):  # the server ends
            self._warm = all(each.result() for each in warming)
        self._settled.set()


def _checked(answer: bytes | KbkitError) -> bytes:
    if isinstance(answer, KbkitError):
        raise answer
    return answer


def _answered(workspace: Workspace, task: SearchTask) -> bytes:
    result = getattr(workspace, task.method)(task.query, **task.arguments)
    text = json.dumps(to_json(result), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode()


@lru_cache(maxsize=1)
def _opened(folder: Path, settings: Settings) -> Workspace:
    sys.setswitchinterval(SWITCH_SECONDS)
    return Workspace(folder, settings=settings)
