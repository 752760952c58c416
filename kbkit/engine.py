"""Run the work of an ingest on this machine or a cluster."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any, Protocol

from kbkit.errors import ConfigError
from kbkit.processes import Task, Workers

LOCAL, DASK = "local", "dask"


class Pool(Protocol):
    """Does tasks; closed when no more come."""

    @property
    def count(self) -> int:
        """Number of tasks that run at once."""
        ...

    def submit(self, task: Task) -> Future[Any]:
        """Submit a task, and return a future of its result.

        What it gives raises `ClusterError` where a cluster was lost.
        """
        ...

    def close(self) -> None:
        """Accept no more tasks; pending ones are cancelled."""
        ...


class Engine(Protocol):
    """Runs the work of an ingest; the calling process stores the results.

    Attributes:
        is_local: All is done on this machine.
    """

    is_local: bool

    @property
    def count(self) -> int:
        """Number of tasks that run at once."""
        ...

    def child_processes(
        self, count: int | None = None, *, memory: int = 0, preload: str = ""
    ) -> Pool:
        """Child processes for tasks that may crash or hang; see `kbkit.processes.Workers`.

        Args:
            count: Number of processes on this machine; by default one for each processor.
            memory: Most bytes that each may use.
            preload: Module that each imports first.

        Raises:
            OSError: No process can be started.
        """
        ...

    def pool(self) -> Pool:
        """Return a pool for safe tasks, which need no process of their own."""
        ...

    def close(self) -> None:
        """Close the engine."""
        ...


class LocalEngine:
    """This machine."""

    is_local = True
    count = 1

    def child_processes(
        self, count: int | None = None, *, memory: int = 0, preload: str = ""
    ) -> Workers:
        return Workers(count, memory=memory, preload=preload)

    def pool(self) -> Pool:
        """Return a pool that runs tasks at once, in the calling thread."""
        return _Here()

    def close(self) -> None:
        """Nothing is held."""


class _Here:
    """Does each task when it is submitted."""

    count = 1

    def submit(self, task: Task) -> Future[Any]:
        result: Future[Any] = Future()
        result.set_result(task.perform())
        return result

    def close(self) -> None:
        """Nothing is held."""


def perform(pool: Pool, tasks: Iterable[Task]) -> list[Any]:
    """Run tasks at once, and return their results in order."""
    return [result.result() for result in [pool.submit(task) for task in tasks]]


def open_engine(name: str = LOCAL) -> Engine:
    kind, _, address = name.partition(":")
    if kind == DASK:
        from kbkit.dask_engine import DaskEngine

        return DaskEngine(address)
    if name != LOCAL:
        raise ConfigError(
            f"engine {name!r}: unknown engine; choose local, dask or dask:ADDRESS (such as dask:tcp://10.0.0.5:8786)"
        )
    return LocalEngine()
