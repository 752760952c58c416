"""The engine ``dask``: a cluster of Dask does the work of an ingest.

Workers fetch, read, cut and embed; this process decides what is fetched and when, and is the only
one that writes into the workspace. So a worker needs kbkit and nothing else, and one that is lost
costs its tasks only, which Dask gives to others.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from kbkit.errors import ClusterError
from kbkit.extras import extra
from kbkit.processes import Task, Workers

if TYPE_CHECKING:
    from distributed import Client
    from distributed import Future as DaskFuture

_log = logging.getLogger(__name__)

_CONNECT = 10  # seconds until a scheduler has to answer, and a worker to be there
_START = 60  # seconds until workers of this machine have to be there
_ALONE = 60  # seconds without any worker after which a cluster counts as lost
_LOOK = 2  # seconds between two looks at it
_SILENT = 60  # seconds without a sign of life after which a worker of this machine is given up
_CONFIG = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.comm.timeouts.connect": f"{_CONNECT}s",
}


class DaskEngine:
    """A cluster of Dask.

    Args:
        address: Of its scheduler; ``""`` starts one of this machine's processors, which listens on
            the loopback address alone, over TLS with keys of its own.

    Raises:
        MissingExtraError: ``distributed`` is not installed.
        ClusterError: The scheduler does not answer, it has no workers, or they have no kbkit or
            another one.
    """

    is_local = False

    def __init__(self, address: str = "") -> None:
        with extra("dask", "distributed", "A build on a cluster"):
            import dask
            from distributed import Client, LocalCluster

        self._address = address or "of this machine"
        self._cluster: LocalCluster | None = None
        self._client: Client | None = None
        try:
            with dask.config.set(_CONFIG):
                if not address:
                    self._cluster = LocalCluster(
                        n_workers=os.cpu_count() or 1,
                        threads_per_worker=1,
                        security=True,
                        host="127.0.0.1",
                        dashboard_address="127.0.0.1:0",
                        scheduler_kwargs={"dashboard": False, "worker_ttl": _SILENT},
                        silence_logs=50,
                    )
                self._client = Client(
                    self._cluster or address, timeout=_CONNECT, set_as_default=False
                )
                self._client.wait_for_workers(1, timeout=_CONNECT if address else _START)
            self._check_workers()
        except ClusterError:
            self.close()
            raise
        # what a wrong address, a scheduler of another version and a closed port raise
        except Exception as error:
            self.close()
            raise ClusterError(
                f"dask {self._address}: cannot be used ({_line(error)}); is its scheduler running, "
                "with a worker?"
            ) from error
        self._count: int = max(1, sum(self._client.nthreads().values()))
        self._waiting: dict[Future[Any], DaskFuture[Any]] = {}
        self._lost = ""
        self._lock = threading.Lock()
        self._closing = threading.Event()
        threading.Thread(target=self._watch, name="kbkit-dask", daemon=True).start()

    @property
    def count(self) -> int:
        """Threads of its workers when it was opened."""
        return self._count

    def child_processes(
        self, count: int | None = None, *, memory: int = 0, preload: str = ""
    ) -> _Pool:
        """Child processes of the workers, as many as they have threads."""
        return _Pool(self, _perform_apart, memory, preload)

    def pool(self) -> _Pool:
        """Threads of the workers."""
        return _Pool(self, _perform)

    def submit(self, function: Any, task: Task, *arguments: Any) -> Future[Any]:
        """Have a worker call a function with a task, and give what it will return."""
        result: Future[Any] = Future()
        with self._lock:
            if self._lost:
                result.set_exception(ClusterError(self._lost))
                return result
            assert self._client is not None
            # each is done anew, also one that is the same as another
            asked = self._client.submit(function, task, *arguments, pure=False)
            self._waiting[result] = asked
        asked.add_done_callback(lambda done: self._came(done, task, result))
        return result

    def close(self) -> None:
        """Leave the cluster, and end one that was started here."""
        if hasattr(self, "_closing"):
            self._closing.set()
        for each in (self._client, self._cluster):
            if each is not None:
                with suppress(Exception):  # one that was lost cannot be left in order
                    each.close(timeout=5)

    def _came(self, asked: DaskFuture[Any], task: Task, result: Future[Any]) -> None:
        """Take what became of a task; called in a thread of Dask's."""
        from distributed import CancelledError, KilledWorker

        with suppress(InvalidStateError):  # the watch has given it up meanwhile
            try:
                # where the worker that had it died meanwhile, this waits for another one
                result.set_result(asked.result())
            except KilledWorker:
                result.set_result(task.broken("the workers of the cluster that did it ended"))
            except CancelledError:
                result.set_exception(ClusterError(self._loss("its scheduler no longer answers")))
            except Exception as error:
                result.set_exception(
                    ClusterError(f"dask {self._address}: a worker failed ({_line(error)})")
                )
        with self._lock:
            self._waiting.pop(result, None)

    def _check_workers(self) -> None:
        """Raise if a worker cannot do the work.

        Raises:
            ClusterError: One has no kbkit, or another one.
        """
        assert self._client is not None
        ours = version("kbkit")
        found = self._client.run(version, "kbkit", on_error="return")
        for worker, theirs in found.items():
            if theirs != ours:
                has = "no kbkit" if isinstance(theirs, Exception) else f"kbkit {theirs}"
                raise ClusterError(
                    f"dask {self._address}: its worker {worker} has {has}; install kbkit {ours} "
                    "where it runs, and start it again"
                )

    def _watch(self) -> None:
        """Give up what waits for a cluster that is gone, or that no worker has come back to."""
        assert self._client is not None
        seen = time.monotonic()
        while not self._closing.wait(_LOOK):
            try:
                if self._client.status != "running":
                    self._give_up("its scheduler no longer answers")
                    return
                if self._client.nthreads():
                    seen = time.monotonic()
                elif time.monotonic() - seen > _ALONE:
                    self._give_up(f"it has had no worker for {_ALONE} s")
                    return
            except Exception as error:  # whatever it is: the next look tells what it means
                _log.debug("dask %s: %s", self._address, error)

    def _loss(self, reason: str) -> str:
        return f"dask {self._address}: {reason}; what was stored stays, and building again goes on"

    def _give_up(self, reason: str) -> None:
        with self._lock:
            self._lost = self._loss(reason)
            waiting, self._waiting = self._waiting, {}
        for result in waiting:
            with suppress(InvalidStateError):
                result.set_exception(ClusterError(self._lost))


class _Pool:
    """Workers of a cluster; a `kbkit.engine.Pool`."""

    def __init__(self, engine: DaskEngine, function: Any, *arguments: Any) -> None:
        self._engine = engine
        self._function = function
        self._arguments = arguments

    @property
    def count(self) -> int:
        return self._engine.count

    def submit(self, task: Task) -> Future[Any]:
        return self._engine.submit(self._function, task, *self._arguments)

    def close(self) -> None:
        """Others may use the workers; they go on."""


def _perform(task: Task) -> Any:
    """Do a task, in a thread of a worker."""
    return task.perform()


def _perform_apart(task: Task, memory: int, preload: str) -> Any:
    """Do a task in a child process of a worker, which outlives one that crashes or hangs."""
    return _children(memory, preload).submit(task).result()


@lru_cache
def _children(memory: int, preload: str) -> Workers:
    """Child processes of this worker, which end when it does."""
    from distributed import get_worker

    return Workers(get_worker().state.nthreads, memory=memory, preload=preload)


def _line(error: BaseException) -> str:
    """What went wrong, in one line."""
    return " ".join(str(error).split())[:300] or type(error).__name__
