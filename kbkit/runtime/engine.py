"""Run the work of an ingest on this machine or a cluster."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterable
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
    """Runs tasks."""

    @property
    def count(self) -> int:
        """Number of concurrent tasks."""
        ...

    def submit(self, task: WorkerTask) -> Future[Any]:
        """Return a future of the result; it raises `ClusterError` if a cluster was lost."""
        ...

    def close(self) -> None:
        """Accept no more tasks, and cancel pending ones."""
        ...


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
        return _InlinePool()

    def close(self) -> None:
        """Release resources."""


class _InlinePool:
    count = 1

    def submit(self, task: WorkerTask) -> Future[Any]:
        result: Future[Any] = Future()
        result.set_result(task.perform())
        return result

    def close(self) -> None:
        pass


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

_REPLY_TIMEOUT = 10  # seconds
_SILENCE_LIMIT = 30  # seconds without a heartbeat after which a worker counts as hanging
_NO_ANSWER = "does not answer"


@dataclass(slots=True)
class _WorkerHealth:
    fault: str
    """Why it can never do the work."""
    seen: float
    """Last heartbeat, by the scheduler's clock."""
    since: float


class ClusterWorkers:
    """The workers of a cluster at the last check.

    Attributes:
        fit: Addresses of workers that can do tasks.
        unfit: Why other workers cannot, by address.
    """

    def __init__(self, client: Client, name: str) -> None:
        self.fit: frozenset[str] = frozenset()
        self.unfit: dict[str, str] = {}
        self._client = client
        self._name = name
        self._health: dict[str, _WorkerHealth] = {}

    def look(self, *, first: bool = False) -> None:
        """Warn of workers that have become unfit; the first time, raise if one always is."""
        scheduler = self._client.scheduler
        assert scheduler is not None
        identity = self._client.sync(scheduler.identity, callback_timeout=_REPLY_TIMEOUT)
        before, self._health = self._health, {}
        unfit: dict[str, str] = {}
        for worker, each in identity["workers"].items():
            health = before.get(worker) or self._examine(worker)
            if health is not None:
                self._health[worker] = health
                # clocks of machines differ: only a change of the heartbeat counts
                if health.seen != each["last_seen"]:
                    health.seen, health.since = each["last_seen"], time.monotonic()
            if reason := self._reason(health):
                unfit[worker] = reason
        for worker, each in self._health.items():
            if first and each.fault:
                raise ClusterError(f"{self._name}: its worker {worker} {each.fault}")
        self.fit = frozenset(identity["workers"].keys() - unfit.keys())
        if first and not self.fit:
            raise ClusterError(f"{self._name}: none of its workers answers; start them again")
        before_unfit, self.unfit = self.unfit, unfit
        for worker in unfit.keys() - before_unfit.keys():
            reason = unfit[worker]
            _log.warning("%s: its worker %s %s; others do its tasks", self._name, worker, reason)

    def _reason(self, health: _WorkerHealth | None) -> str:
        if health is None:
            return _NO_ANSWER
        if not health.fault and time.monotonic() - health.since > _SILENCE_LIMIT:
            return f"has given no sign of life for {_SILENCE_LIMIT} s"
        return health.fault

    def _examine(self, worker: str) -> _WorkerHealth | None:
        """Check the version of a new worker; ``None`` if it does not answer."""
        ours = version("kbkit")
        try:
            theirs = self._client.run(
                version, "kbkit", workers=[worker], callback_timeout=_REPLY_TIMEOUT
            )[worker]
        except PackageNotFoundError:
            theirs = ""
        except Exception as error:  # the worker hangs or is gone
            _log.debug("%s: its worker %s: %s", self._name, worker, error)
            return None
        has = f"kbkit {theirs}" if theirs else "no kbkit"
        fault = f"has {has}; install kbkit {ours} where it runs, and start it again"
        return _WorkerHealth("" if theirs == ours else fault, 0.0, time.monotonic())


_CONNECT_TIMEOUT = 10  # seconds for a scheduler and its first worker
_START_TIMEOUT = 60  # seconds for the first worker of this machine
_NO_WORKER_LIMIT = 60  # seconds without any worker after which a cluster counts as lost
_CHECK_INTERVAL = 2  # seconds
_WORKER_TTL = 30  # seconds without a heartbeat after which a worker of this machine is ended
_FAILURES = 3  # attempts of a task; a worker without kbkit fails, for example
_CONFIG = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.comm.timeouts.connect": f"{_CONNECT_TIMEOUT}s",
}
_QUIET = dict.fromkeys(("distributed", "distributed.client", "distributed.gc"), "critical")


@dataclass(eq=False, slots=True)
class _Submission:
    function: Any
    task: WorkerTask
    arguments: tuple[Any, ...]
    result: Future[Any]
    places: frozenset[str] = frozenset()
    """Workers that it was sent to; empty for any."""
    sent: DaskFuture[Any] | None = None
    failures: int = 0


class _LateError(Exception):
    pass


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
        self._cluster: LocalCluster | None = None
        self._client: Client | None = None
        try:
            with dask.config.set(_CONFIG):
                get_backend(parse_address(address)[0])  # raises; `Client` would hang
                if not address:
                    self._cluster = LocalCluster(
                        n_workers=os.cpu_count() or 1,
                        threads_per_worker=1,
                        security=True,
                        host="127.0.0.1",
                        dashboard_address="127.0.0.1:0",
                        scheduler_kwargs={"dashboard": False, "worker_ttl": _WORKER_TTL},
                        silence_logs=False if verbose else logging.CRITICAL,
                    )
                self._client = Client(
                    self._cluster or address, timeout=_CONNECT_TIMEOUT, set_as_default=False
                )
                self._client.wait_for_workers(
                    1, timeout=_CONNECT_TIMEOUT if address else _START_TIMEOUT
                )
            self._workers = ClusterWorkers(self._client, self._name)
            self._workers.look(first=True)
        except ClusterError:
            self.close()
            raise
        # a wrong address, a scheduler of another version or a closed port
        except Exception as error:
            self.close()
            raise ClusterError(
                f"{self._name}: cannot be used ({_line(error)}); is its scheduler running, "
                "with a worker?"
            ) from error
        self.count = max(1, sum(self._client.nthreads().values()))
        self._waiting: set[_Submission] = set()
        self._lost = ""
        self._lock = threading.Lock()
        self._closing = threading.Event()
        threading.Thread(target=self._watch, name="kbkit-dask", daemon=True).start()

    def child_processes(
        self, count: int | None = None, *, memory: int = 0, preload: str = ""
    ) -> _Pool:
        """Start child processes of the workers, one for each of their threads."""
        return _Pool(self, _perform_apart, memory, preload)

    def pool(self) -> _Pool:
        """Return a pool of the workers' threads."""
        return _Pool(self, _perform)

    def submit(self, function: Any, task: WorkerTask, *arguments: Any) -> Future[Any]:
        submission = _Submission(function, task, arguments, Future())
        with self._lock:
            if self._lost:
                submission.result.set_exception(ClusterError(self._lost))
            else:
                self._waiting.add(submission)
                self._send(submission)
        return submission.result

    def close(self) -> None:
        if hasattr(self, "_closing"):
            self._closing.set()
        for each in (self._client, self._cluster):
            if each is not None:
                with suppress(Exception):  # closing a lost cluster fails
                    each.close(timeout=5)

    def _send(self, submission: _Submission) -> None:
        assert self._client is not None
        before, submission.sent = submission.sent, None
        submission.places = self._workers.fit if self._workers.unfit else frozenset()
        if submission.places or not self._workers.unfit:
            # pure=False: equal tasks must not share a result
            submission.sent = self._client.submit(
                submission.function,
                submission.task,
                *submission.arguments,
                pure=False,
                workers=sorted(submission.places) or None,
            )
            submission.sent.add_done_callback(lambda done: self._finish(done, submission))
        if before is not None:
            before.release()

    def _finish(self, done: DaskFuture[Any], submission: _Submission) -> None:
        """Handle the outcome of a task, in a thread of Dask."""
        from distributed import CancelledError, KilledWorker

        try:
            # waits for another worker if this one died
            result = done.result()
        except Exception as error:
            with self._lock:
                if submission.sent is not done:
                    return  # already sent to others
                submission.failures += 1
                is_lost = isinstance(error, KilledWorker | CancelledError | _LateError)
                if not is_lost and submission.failures < _FAILURES:
                    submission.sent = None  # until the next check finds a fit worker
                    return
            self._fail(submission, error)
        else:
            with suppress(InvalidStateError):  # `_give_up` set an error meanwhile
                submission.result.set_result(result)
        with self._lock:
            self._waiting.discard(submission)

    def _fail(self, submission: _Submission, error: Exception) -> None:
        from distributed import CancelledError, KilledWorker

        with suppress(InvalidStateError):
            if isinstance(error, KilledWorker):
                ended = "the workers of the cluster that did it ended"
                submission.result.set_result(submission.task.broken(ended))
            elif isinstance(error, _LateError):
                submission.result.set_result(submission.task.broken(str(error)))
            elif isinstance(error, CancelledError):
                lost = self._loss("its scheduler no longer answers")
                submission.result.set_exception(ClusterError(lost))
            else:
                failed = f"{self._name}: a worker failed ({_line(error)})"
                submission.result.set_exception(ClusterError(failed))

    def _watch(self) -> None:
        assert self._client is not None
        fit = time.monotonic()
        while not self._closing.wait(_CHECK_INTERVAL):
            try:
                if self._client.status != "running":
                    self._give_up("its scheduler no longer answers")
                    return
                self._workers.look()
                if self._workers.fit:
                    fit = time.monotonic()
                    self._send_again()
            except Exception as error:  # the next check shows its effect
                _log.debug("%s: %s", self._name, error)
            if time.monotonic() - fit > _NO_WORKER_LIMIT:
                self._give_up(f"no worker has answered for {_NO_WORKER_LIMIT} s")
                return

    def _send_again(self) -> None:
        assert self._client is not None
        unfit, fit = self._workers.unfit, self._workers.fit
        processing = self._client.processing(workers=list(unfit)) if unfit else {}
        stuck = {str(key) for keys in processing.values() for key in keys}
        with self._lock:
            for submission in self._waiting:
                all_unfit = submission.places and not submission.places & fit
                if submission.sent is None or all_unfit or str(submission.sent.key) in stuck:
                    self._send(submission)

    def _loss(self, reason: str) -> str:
        return f"{self._name}: {reason}; stored documents stay, and another build continues"

    def _give_up(self, reason: str) -> None:
        with self._lock:
            self._lost = self._loss(reason)
            waiting, self._waiting = self._waiting, set()
        for submission in waiting:
            with suppress(InvalidStateError):
                submission.result.set_exception(ClusterError(self._lost))


class _Pool:
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
        """Keep the workers: other pools may use them."""


def _perform(task: WorkerTask) -> Any:
    """Run a task in a thread of a worker; abandon the thread if it takes too long."""
    from distributed import get_worker

    result: Future[Any] = Future()

    def work() -> None:
        try:
            result.set_result(task.perform())
        except BaseException as error:  # raised by `result.result()`
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
