"""Run the work of an ingest on this machine or a cluster."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, InvalidStateError, wait
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Protocol

from kbkit.errors import ClusterError, ConfigError
from kbkit.extras import extra
from kbkit.runtime.processes import Workers, WorkerTask, start

if TYPE_CHECKING:
    from distributed import Client
    from distributed import Future as DaskFuture


LOCAL, DASK = "local", "dask"


class WorkerPool(Protocol):
    """Runs tasks."""

    @property
    def count(self) -> int:
        """Number of concurrent tasks."""

    def submit(self, task: WorkerTask, /) -> Future[Any]:
        """Return a future of the result; it raises `ClusterError` if a cluster was lost."""

    def close(self) -> None:
        """Accept no more tasks, and cancel pending ones."""


class Engine:
    """Runs the work of an ingest on this machine; the calling process stores the results."""

    is_local = True
    count = 1

    def child_processes(
        self, count: int | None = None, *, memory: int = 0, preload: str = ""
    ) -> WorkerPool:
        """Start child processes for tasks that may crash or hang.

        Args:
            count: Number of processes on this machine; by default one for each processor.
            memory: Maximum bytes of each.
            preload: Module that each imports first.

        Raises:
            OSError: No process can be started.
        """
        return Workers(count, memory=memory, preload=preload)

    def pool(self) -> WorkerPool:
        """Return a pool for safe tasks, which run at once in the calling thread."""
        return _Pool(1, _perform_here)

    def close(self) -> None:
        """Release resources."""


def _perform_here(task: WorkerTask) -> Future[Any]:
    result: Future[Any] = Future()
    result.set_result(task.perform())
    return result


@dataclass(frozen=True, slots=True)
class _Pool:
    count: int
    submit: Callable[[WorkerTask], Future[Any]]

    def close(self) -> None:
        """Keep the workers: other pools may use them."""


def perform(pool: WorkerPool, tasks: Iterable[WorkerTask]) -> list[Any]:
    """Run tasks at once, and return their results in order."""
    return [result.result() for result in [pool.submit(task) for task in tasks]]


def open_engine(name: str = LOCAL) -> Engine:
    kind, _, address = name.partition(":")
    if kind == DASK:
        return DaskEngine(address)
    if name != LOCAL:
        raise ConfigError(
            f"engine {name!r}: unknown engine; choose local, dask or dask:ADDRESS (such as dask:tcp://10.0.0.5:8786)"
        )
    return Engine()


_REPLY_TIMEOUT = 10  # seconds
_CONNECT_TIMEOUT = 10  # seconds for a scheduler and its first worker
_START_TIMEOUT = 60  # seconds for the first worker of this machine
_NO_WORKER_LIMIT = 60  # seconds without any worker after which a cluster counts as lost
_CHECK_INTERVAL = 2  # seconds
_WORKER_TTL = 30  # seconds without a heartbeat after which a worker of this machine is ended
_CLOSE_TIMEOUT = 5  # seconds
_RETRIES = 2  # of a task on which a worker failed
_CONFIG = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.comm.timeouts.connect": f"{_CONNECT_TIMEOUT}s",
}
_QUIET = dict.fromkeys(("distributed", "distributed.client", "distributed.gc"), "critical")


class DaskEngine(Engine):
    """A Dask cluster; `count` is the number of its threads when it was opened."""

    is_local = False

    def __init__(self, address: str = "") -> None:
        with extra("dask", "distributed", "A build on a cluster"):
            import dask

            verbose = logging.getLogger("kbkit").isEnabledFor(logging.DEBUG)
            if not verbose:  # no effect if the program imported distributed earlier
                dask.config.update_defaults({"logging": _QUIET})
            from distributed import Client, LocalCluster
            from distributed.comm.addressing import parse_address
            from distributed.comm.registry import get_backend

        self._name = f"dask {address or 'of this machine'}"
        self._closing = threading.Event()
        self._opened = ExitStack()
        cluster: LocalCluster | None = None
        try:
            with dask.config.set(_CONFIG):
                get_backend(parse_address(address)[0])  # raises; `Client` would hang
                if not address:
                    cluster = LocalCluster(
                        n_workers=os.cpu_count() or 1,
                        threads_per_worker=1,
                        security=True,
                        host="127.0.0.1",
                        dashboard_address="127.0.0.1:0",
                        scheduler_kwargs={"dashboard": False, "worker_ttl": _WORKER_TTL},
                        silence_logs=False if verbose else logging.CRITICAL,
                    )
                    self._opened.callback(cluster.close, timeout=_CLOSE_TIMEOUT)
                self._client: Client = Client(
                    cluster or address, timeout=_CONNECT_TIMEOUT, set_as_default=False
                )
                self._opened.callback(self._client.close, timeout=_CLOSE_TIMEOUT)
                self._client.wait_for_workers(
                    1, timeout=_CONNECT_TIMEOUT if address else _START_TIMEOUT
                )
            self._check_versions()
        # a wrong address, a scheduler of another version or a closed port
        except Exception as error:
            self.close()
            if isinstance(error, ClusterError):
                raise
            raise ClusterError(
                f"{self._name}: cannot be used ({_line(error)}); is its scheduler running, "
                "with a worker?"
            ) from error
        self.count = max(1, sum(self._client.nthreads().values()))
        self._waiting: dict[Future[Any], DaskFuture[Any]] = {}
        self._lost = ""
        self._lock = threading.Lock()
        threading.Thread(target=self._watch, name="kbkit-dask", daemon=True).start()

    def child_processes(
        self, count: int | None = None, *, memory: int = 0, preload: str = ""
    ) -> _Pool:
        """Start child processes of the workers, one for each of their threads."""
        apart = partial(_perform_apart, memory=memory, preload=preload)
        return _Pool(self.count, partial(self.submit, apart))

    def pool(self) -> _Pool:
        """Return a pool of the workers' threads."""
        return _Pool(self.count, partial(self.submit, _perform))

    def submit(self, function: Callable[[WorkerTask], Any], task: WorkerTask) -> Future[Any]:
        result: Future[Any] = Future()
        with self._lock:
            if self._lost:
                result.set_exception(ClusterError(self._lost))
                return result
            # pure=False: equal tasks must not share a result
            remote = self._client.submit(function, task, pure=False, retries=_RETRIES)
            self._waiting[result] = remote
        remote.add_done_callback(lambda done: self._finish(done, task, result))
        return result

    def close(self) -> None:
        self._closing.set()
        with suppress(Exception):  # closing a lost cluster fails
            self._opened.close()

    def _check_versions(self) -> None:
        expected = version("kbkit")
        versions = self._client.run(
            version, "kbkit", on_error="return", callback_timeout=_REPLY_TIMEOUT
        )
        for worker, installed in versions.items():
            if installed != expected:
                has = f"kbkit {installed}" if isinstance(installed, str) else "no kbkit"
                raise ClusterError(
                    f"{self._name}: its worker {worker} has {has}; install kbkit {expected} where "
                    "it runs, and start it again"
                )

    def _finish(self, dask_future: DaskFuture[Any], task: WorkerTask, result: Future[Any]) -> None:
        """Handle the outcome of a task, in a thread of Dask."""
        from distributed import CancelledError, KilledWorker

        with suppress(InvalidStateError):  # `_give_up` set an error meanwhile
            try:
                result.set_result(dask_future.result())
            except KilledWorker:
                result.set_result(task.broken("the workers of the cluster that did it ended"))
            except CancelledError:
                message = self._loss("its scheduler no longer answers")
                result.set_exception(ClusterError(message))
            except Exception as error:
                failure = f"{self._name}: a worker failed ({_line(error)})"
                result.set_exception(ClusterError(failure))
        with self._lock:
            self._waiting.pop(result, None)

    def _watch(self) -> None:
        assert self._client.scheduler is not None
        identify = self._client.scheduler.identity
        last_seen = time.monotonic()
        while not self._closing.wait(_CHECK_INTERVAL):
            if self._client.status != "running":
                self._give_up("its scheduler no longer answers")
                return
            with suppress(Exception):  # the next check shows its effect
                if self._client.sync(identify, callback_timeout=_REPLY_TIMEOUT)["workers"]:
                    last_seen = time.monotonic()
            if time.monotonic() - last_seen > _NO_WORKER_LIMIT:
                self._give_up(f"no worker has answered for {_NO_WORKER_LIMIT} s")
                return

    def _loss(self, reason: str) -> str:
        return f"{self._name}: {reason}; stored documents stay, and another build continues"

    def _give_up(self, reason: str) -> None:
        with self._lock:
            self._lost = self._loss(reason)
            waiting, self._waiting = self._waiting, {}
        for result in waiting:
            with suppress(InvalidStateError):
                result.set_exception(ClusterError(self._lost))


def _perform(task: WorkerTask) -> Any:
    """Run a task in a thread of a worker; abandon the thread if it takes too long."""
    from distributed import get_worker

    result = start(task.perform)
    if not wait([result], task.seconds).done:
        return task.broken(f"took longer than {task.seconds:g} s on {get_worker().address}")
    return result.result()


def _perform_apart(task: WorkerTask, memory: int, preload: str) -> Any:
    return _children(memory, preload).submit(task).result()


@lru_cache
def _children(memory: int, preload: str) -> Workers:
    from distributed import get_worker

    return Workers(get_worker().state.nthreads, memory=memory, preload=preload)


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
