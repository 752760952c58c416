"""Run the work of an ingest on this machine or a cluster."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, InvalidStateError, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Protocol

from kbkit.errors import ClusterError, ConfigError
from kbkit.extras import extra
from kbkit.runtime.processes import Workers, WorkerTask

if TYPE_CHECKING:
    from distributed import Client
    from distributed import Future as DaskFuture


LOCAL, DASK = "local", "dask"


class WorkerPool(Protocol):
    """Does tasks; closed when no more come."""

    @property
    def count(self) -> int:
        """Number of tasks that run at once."""
        ...

    def submit(self, task: WorkerTask) -> Future[Any]:
        """Submit a task, and return a future of its result.

        What it gives raises `ClusterError` where a cluster was lost.
        """
        ...

    def close(self) -> None:
        """Accept no more tasks; pending ones are cancelled."""
        ...


class Engine:
    """Runs the work of an ingest on this machine; the calling process stores the results.

    Attributes:
        is_local: All is done on this machine.
        count: Number of tasks that run at once.
    """

    is_local = True
    count = 1

    def child_processes(
        self, count: int | None = None, *, memory: int = 0, preload: str = ""
    ) -> WorkerPool:
        """Child processes for tasks that may crash or hang; see `kbkit.runtime.processes.Workers`.

        Args:
            count: Number of processes on this machine; by default one for each processor.
            memory: Maximum number of bytes that each may use.
            preload: Module that each imports first.

        Raises:
            OSError: No process can be started.
        """
        return Workers(count, memory=memory, preload=preload)

    def pool(self) -> WorkerPool:
        """Return a pool for safe tasks, which run at once in the calling thread."""
        return _Here()

    def close(self) -> None:
        """Nothing is held."""


class _Here:
    """Does each task when it is submitted."""

    count = 1

    def submit(self, task: WorkerTask) -> Future[Any]:
        result: Future[Any] = Future()
        result.set_result(task.perform())
        return result

    def close(self) -> None:
        """Nothing is held."""


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


_log = logging.getLogger(__name__)

_ANSWER = 10  # seconds until a worker has to answer
_SILENT = 30  # seconds without a sign of life after which a worker counts as one that hangs
_NO_ANSWER = "does not answer"


@dataclass(slots=True)
class _Known:
    """Facts about a worker.

    Attributes:
        fault: Why it can never do the work, or ``""``.
        seen: When its scheduler last heard of it, by the clock of that.
    """

    fault: str
    seen: float
    since: float


class ClusterWorkers:
    """The workers of a cluster, as they were found by the last look.

    Attributes:
        unfit: Why the others cannot, by address: they hang, or have no kbkit or another one.
    """

    def __init__(self, client: Client, name: str) -> None:
        self.fit: frozenset[str] = frozenset()
        self.unfit: dict[str, str] = {}
        self.faulty: dict[str, str] = {}
        self._client = client
        self._name = name
        self._health: dict[str, _Known] = {}

    def look(self) -> dict[str, str]:
        scheduler = self._client.scheduler
        assert scheduler is not None
        identity = self._client.sync(scheduler.identity, callback_timeout=_ANSWER)
        before, self._health = self._health, {}
        unfit: dict[str, str] = {}
        for worker, each in identity["workers"].items():
            health = before.get(worker) or self._examined(worker)
            if health is not None:
                self._health[worker] = health
                # clocks of machines differ: what counts is that it is heard of anew
                if health.seen != each["last_seen"]:
                    health.seen, health.since = each["last_seen"], time.monotonic()
            if reason := self._reason(health):
                unfit[worker] = reason
        became = {worker: unfit[worker] for worker in unfit.keys() - self.unfit.keys()}
        self.fit, self.unfit = frozenset(identity["workers"].keys() - unfit.keys()), unfit
        self.faulty = {worker: each.fault for worker, each in self._health.items() if each.fault}
        return became

    def _reason(self, health: _Known | None) -> str:
        if health is None:
            return _NO_ANSWER
        if not health.fault and time.monotonic() - health.since > _SILENT:
            return f"has given no sign of life for {_SILENT} s"
        return health.fault

    def _examined(self, worker: str) -> _Known | None:
        """Examine a new worker; ``None`` if it does not answer, and is asked again."""
        ours = version("kbkit")
        try:
            theirs = self._client.run(version, "kbkit", workers=[worker], callback_timeout=_ANSWER)[
                worker
            ]
        except PackageNotFoundError:
            theirs = ""
        except Exception as error:  # it hangs, or is gone by now
            _log.debug("%s: its worker %s: %s", self._name, worker, error)
            return None
        has = f"kbkit {theirs}" if theirs else "no kbkit"
        mend = f"has {has}; install kbkit {ours} where it runs, and start it again"
        return _Known("" if theirs == ours else mend, 0.0, time.monotonic())


_CONNECT = 10  # seconds until a scheduler has to answer, and a worker to be there
_START = 60  # seconds until workers of this machine have to be there
_ALONE = 60  # seconds without any worker after which a cluster counts as lost
_LOOK = 2  # seconds between two looks at it
_ENDED = 30  # seconds without a sign of life after which a worker of this machine is ended
_FAILURES = 3  # workers that may fail at a task, as one does that lacks kbkit
_CONFIG = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.comm.timeouts.connect": f"{_CONNECT}s",
}
_QUIET = dict.fromkeys(("distributed", "distributed.client", "distributed.gc"), "critical")


@dataclass(eq=False, slots=True)
class _Asked:
    """A task that workers are asked to do.

    Attributes:
        places: The workers that it was sent to; empty for any.
        sent: Future of Dask; ``None`` until it is sent.
    """

    function: Any
    task: WorkerTask
    arguments: tuple[Any, ...]
    result: Future[Any]
    places: frozenset[str] = frozenset()
    sent: DaskFuture[Any] | None = None
    failures: int = 0


class _LateError(Exception):
    """A task took longer than it may."""


class DaskEngine(Engine):
    """A cluster of Dask; `count` is of the threads of its workers when it was opened."""

    is_local = False

    def __init__(self, address: str = "") -> None:
        with extra("dask", "distributed", "A build on a cluster"):
            import dask

            verbose = logging.getLogger("kbkit").isEnabledFor(logging.DEBUG)
            if not verbose:  # who imported it before has had a say in what it logs
                dask.config.update_defaults({"logging": _QUIET})
            from distributed import Client, LocalCluster
            from distributed.comm.addressing import parse_address
            from distributed.comm.registry import get_backend

        self._name = f"dask {address or 'of this machine'}"
        self._cluster: LocalCluster | None = None
        self._client: Client | None = None
        try:
            with dask.config.set(_CONFIG):
                get_backend(parse_address(address)[0])  # a client that cannot be made hangs
                if not address:
                    self._cluster = LocalCluster(
                        n_workers=os.cpu_count() or 1,
                        threads_per_worker=1,
                        security=True,
                        host="127.0.0.1",
                        dashboard_address="127.0.0.1:0",
                        scheduler_kwargs={"dashboard": False, "worker_ttl": _ENDED},
                        silence_logs=False if verbose else logging.CRITICAL,
                    )
                self._client = Client(
                    self._cluster or address, timeout=_CONNECT, set_as_default=False
                )
                self._client.wait_for_workers(1, timeout=_CONNECT if address else _START)
            self._workers = ClusterWorkers(self._client, self._name)
            became = self._workers.look()
            self._check_workers()
            self._log_changes(became)
        except ClusterError:
            self.close()
            raise
        # what a wrong address, a scheduler of another version and a closed port raise
        except Exception as error:
            self.close()
            raise ClusterError(
                f"{self._name}: cannot be used ({_line(error)}); is its scheduler running, "
                "with a worker?"
            ) from error
        self.count = max(1, sum(self._client.nthreads().values()))
        self._waiting: set[_Asked] = set()
        self._lost = ""
        self._lock = threading.Lock()
        self._closing = threading.Event()
        threading.Thread(target=self._watch, name="kbkit-dask", daemon=True).start()

    def child_processes(
        self, count: int | None = None, *, memory: int = 0, preload: str = ""
    ) -> _Pool:
        """Child processes of the workers, as many as they have threads."""
        return _Pool(self, _perform_apart, memory, preload)

    def pool(self) -> _Pool:
        """Threads of the workers."""
        return _Pool(self, _perform)

    def submit(self, function: Any, task: WorkerTask, *arguments: Any) -> Future[Any]:
        asked = _Asked(function, task, arguments, Future())
        with self._lock:
            if self._lost:
                asked.result.set_exception(ClusterError(self._lost))
            else:
                self._waiting.add(asked)
                self._send(asked)
        return asked.result

    def close(self) -> None:
        if hasattr(self, "_closing"):
            self._closing.set()
        for each in (self._client, self._cluster):
            if each is not None:
                with suppress(Exception):  # one that was lost cannot be left in order
                    each.close(timeout=5)

    def _send(self, asked: _Asked) -> None:
        assert self._client is not None
        before, asked.sent = asked.sent, None
        asked.places = self._workers.fit if self._workers.unfit else frozenset()
        if asked.places or not self._workers.unfit:
            # each is done anew, also one that is the same as another
            asked.sent = self._client.submit(
                asked.function,
                asked.task,
                *asked.arguments,
                pure=False,
                workers=sorted(asked.places) or None,
            )
            asked.sent.add_done_callback(lambda done: self._came(done, asked))
        if before is not None:
            before.release()

    def _came(self, done: DaskFuture[Any], asked: _Asked) -> None:
        """Handle the outcome of a task, in a thread of Dask's."""
        from distributed import CancelledError, KilledWorker

        try:
            # where the worker that had it died meanwhile, this waits for another one
            result = done.result()
        except Exception as error:
            with self._lock:
                if asked.sent is not done:
                    return  # it was sent to others
                asked.failures += 1
                is_lost = isinstance(error, KilledWorker | CancelledError | _LateError)
                if not is_lost and asked.failures < _FAILURES:
                    asked.sent = None  # until the next look tells who can do it
                    return
            self._fail(asked, error)
        else:
            with suppress(InvalidStateError):  # the watch has given it up meanwhile
                asked.result.set_result(result)
        with self._lock:
            self._waiting.discard(asked)

    def _fail(self, asked: _Asked, error: Exception) -> None:
        from distributed import CancelledError, KilledWorker

        with suppress(InvalidStateError):
            if isinstance(error, KilledWorker):
                ended = "the workers of the cluster that did it ended"
                asked.result.set_result(asked.task.broken(ended))
            elif isinstance(error, _LateError):
                asked.result.set_result(asked.task.broken(str(error)))
            elif isinstance(error, CancelledError):
                lost = self._loss("its scheduler no longer answers")
                asked.result.set_exception(ClusterError(lost))
            else:
                failed = f"{self._name}: a worker failed ({_line(error)})"
                asked.result.set_exception(ClusterError(failed))

    def _check_workers(self) -> None:
        """Raise if a worker can never do the work, or none can now."""
        for worker, reason in self._workers.faulty.items():
            raise ClusterError(f"{self._name}: its worker {worker} {reason}")
        if not self._workers.fit:
            raise ClusterError(f"{self._name}: none of its workers answers; start them again")

    def _log_changes(self, became: Mapping[str, str]) -> None:
        for worker, reason in became.items():
            _log.warning("%s: its worker %s %s; others do its tasks", self._name, worker, reason)

    def _watch(self) -> None:
        assert self._client is not None
        fit = time.monotonic()
        while not self._closing.wait(_LOOK):
            try:
                if self._client.status != "running":
                    self._give_up("its scheduler no longer answers")
                    return
                self._log_changes(self._workers.look())
                if self._workers.fit:
                    fit = time.monotonic()
                    self._send_again()
            except Exception as error:  # whatever it is: the next look tells what it means
                _log.debug("%s: %s", self._name, error)
            if time.monotonic() - fit > _ALONE:
                self._give_up(f"it has had no worker that answers for {_ALONE} s")
                return

    def _send_again(self) -> None:
        assert self._client is not None
        unfit, fit = self._workers.unfit, self._workers.fit
        held = self._client.processing(workers=list(unfit)) if unfit else {}
        stuck = {str(key) for keys in held.values() for key in keys}
        with self._lock:
            for asked in self._waiting:
                nowhere = asked.places and not asked.places & fit
                if asked.sent is None or nowhere or str(asked.sent.key) in stuck:
                    self._send(asked)

    def _loss(self, reason: str) -> str:
        return f"{self._name}: {reason}; stored documents stay, and another build continues"

    def _give_up(self, reason: str) -> None:
        with self._lock:
            self._lost = self._loss(reason)
            waiting, self._waiting = self._waiting, set()
        for asked in waiting:
            with suppress(InvalidStateError):
                asked.result.set_exception(ClusterError(self._lost))


class _Pool:
    """Workers of a cluster; a `kbkit.runtime.engine.WorkerPool`."""

    def __init__(self, engine: DaskEngine, function: Any, *arguments: Any) -> None:
        self._engine = engine
        self._function = function
        self._arguments = arguments

    @property
    def count(self) -> int:
        return self._engine.count

    def submit(self, task: WorkerTask) -> Future[Any]:
        return self._engine.submit(self._function, task, *self._arguments)

    def close(self) -> None:
        """Others may use the workers; they go on."""


def _perform(task: WorkerTask) -> Any:
    """Run a task in a thread of a worker; abandon the thread if it takes too long."""
    from distributed import get_worker

    result: Future[Any] = Future()

    def work() -> None:
        try:
            result.set_result(task.perform())
        except BaseException as error:  # who waits for it gets it
            result.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    if not wait([result], task.seconds).done:
        raise _LateError(f"took longer than {task.seconds:g} s on {get_worker().address}")
    return result.result()


def _perform_apart(task: WorkerTask, memory: int, preload: str) -> Any:
    return _children(memory, preload).submit(task).result()


@lru_cache
def _children(memory: int, preload: str) -> Workers:
    from distributed import get_worker

    return Workers(get_worker().state.nthreads, memory=memory, preload=preload)


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
