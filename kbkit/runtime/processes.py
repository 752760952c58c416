"""Worker processes: a task that crashes or hangs affects only itself.

Child processes exchange pickles over pipes. Unlike those of a `ProcessPoolExecutor`, they never
import the caller's ``__main__``, so scripts without a guard, notebooks and Windows work; a crash or
hang costs one task; and they end with the parent, however it ends.
"""

import atexit
import contextlib
import importlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, NoReturn, Protocol

_WAIT_SECONDS = 1.0
_LOOK_SECONDS = 0.1


class WorkerTask(Protocol):
    """A task for a worker; pickled, like its result."""

    @property
    def seconds(self) -> float:
        """Maximum duration."""

    def perform(self) -> Any:
        """Return the result, in the worker."""

    def broken(self, reason: str) -> Any:
        """Return the result for a task whose worker died."""


class Workers:
    """Child processes that run tasks."""

    def __init__(self, count: int | None = None, *, memory: int = 0, preload: str = "") -> None:
        self.count = count or os.cpu_count() or 1
        self._arguments = (str(memory), preload)
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._idle: list[subprocess.Popen[bytes]] = []
        self._closed = False
        self._opening = threading.Lock()
        # fail early: the caller can still do the work in its own process
        self._idle.append(self._take())
        self._threads = ThreadPoolExecutor(self.count)

    def submit(self, task: WorkerTask) -> Future[Any]:
        try:
            return self._threads.submit(self._perform, task)
        except RuntimeError:  # closed
            result: Future[Any] = Future()
            result.cancel()
            return result

    def close(self) -> None:
        """End the processes: running tasks are broken, the others are cancelled."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        with self._opening:
            self._closed = True
        for process in list(self._processes):
            _end(process)

    def _take(self) -> subprocess.Popen[bytes]:
        """Return an idle process, or a new one."""
        with self._opening:  # so that `close` sees every process
            if self._closed:
                raise OSError("the workers are closed")
            if self._idle:
                return self._idle.pop()
            process = run_module("kbkit.runtime.processes", *self._arguments)
            self._processes.add(process)
            return process

    def _perform(self, task: WorkerTask) -> Any:
        """Have a process do a task, in a thread; end the process if it breaks."""
        process, late = None, threading.Event()
        try:
            process = self._take()
            result = _ask(process, task, late)
        # any failure, also of pickling, breaks this task only
        except Exception:
            if process is not None:
                self._processes.discard(process)
                _end(process)
            reason = f"took longer than {task.seconds:g} s"
            return task.broken(reason if late.is_set() else "the process that did it ended")
        self._idle.append(process)
        return result


def run_apart(
    task: WorkerTask, stop: Callable[[], bool], *, memory: int = 0, preload: str = ""
) -> Any:
    """Return the result of a task in a process of its own, or ``None`` after a stop."""
    with contextlib.closing(Workers(1, memory=memory, preload=preload)) as workers:
        result = workers.submit(task)
        while not stop():
            with contextlib.suppress(TimeoutError):
                return result.result(_LOOK_SECONDS)
    return None


def run_module(
    name: str,
    *arguments: str,
    variables: Mapping[str, str] = MappingProxyType({}),
    outlives: bool = False,
) -> subprocess.Popen[bytes]:
    """Start a module in a child process with this process's kbkit, more variables, and pipes.

    The child imports nothing from the working directory, whose files are untrusted. One that
    outlives this process has no pipes, and a process group of its own, which Ctrl-C spares. It
    shares the session, since Linux divides processors among sessions before it considers niceness.
    """
    if not sys.executable:
        raise OSError("this Python does not know its own executable")
    pipes = subprocess.DEVNULL if outlives else subprocess.PIPE
    flags = ["CREATE_NO_WINDOW"] + ["CREATE_NEW_PROCESS_GROUP"] * outlives
    places = (str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH"))
    path = os.pathsep.join(filter(None, places))
    process = subprocess.Popen(  # noqa: S603 - our own code
        [sys.executable, "-P", "-m", name, *arguments],
        stdin=pipes,
        stdout=pipes,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": path, **variables},
        process_group=0 if outlives else None,
        creationflags=sum(getattr(subprocess, flag, 0) for flag in flags),
    )
    if outlives:
        _outliving[:] = [each for each in (*_outliving, process) if each.poll() is None]
    return process


_outliving: list[subprocess.Popen[bytes]] = []
"""Processes to reap."""


def ending_signals() -> list[signal.Signals]:
    """Return the signals that end a server: interrupt, termination, and a closed terminal.

    A shell makes background processes ignore interrupts; a server must not. ``nohup`` makes it
    ignore the end of the terminal.
    """
    signals = [signal.SIGINT, signal.SIGTERM]
    hangup = getattr(signal, "SIGHUP", None)
    if hangup is not None and signal.getsignal(hangup) is not signal.SIG_IGN:
        signals.append(hangup)
    return signals


@contextlib.contextmanager
def at_end(act: Callable[[], object]) -> Iterator[None]:
    """Call a function at each ending signal; for the main thread."""
    before = {number: signal.signal(number, lambda *_: act()) for number in ending_signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def waiting_for_end() -> Iterator[Callable[[], None]]:
    """Wait for an ending signal in the main thread; see `at_end`."""
    ended = threading.Event()

    def wait() -> None:
        while not ended.wait(_WAIT_SECONDS):  # on Windows a wait blocks interrupts
            pass

    with at_end(ended.set):
        yield wait


def start(work: Callable[[], Any]) -> Future[Any]:
    """Run a function in a thread that does not keep the process alive, if it hangs."""
    result: Future[Any] = Future()

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:  # raised by `result.result()`
            result.set_exception(error)

    threading.Thread(target=copy_context().run, args=(run,), daemon=True).start()
    return result


def end_with_input() -> None:
    """End this process when its standard input ends; the input is ignored.

    The system closes the pipe when the program that started a server ends, however it ends.
    """
    if sys.stdin is not None and sys.stdin.isatty():
        from kbkit.errors import ConfigError  # workers do not need it

        raise ConfigError(
            "--until-stdin-closes: standard input is a terminal, where Ctrl+C ends a server; the "
            "option is for programs that start it and keep a pipe to it open"
        )
    threading.Thread(target=_end_with_input, name="stdin", daemon=True).start()


def end_process() -> NoReturn:
    """End this process with status 0, without finalizing the interpreter.

    Finalization can abort while a daemon thread runs in a native library (onnxruntime, Chroma).
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(0)


def _end_with_input() -> None:
    with contextlib.suppress(OSError):
        while os.read(0, 1 << 16):
            pass
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, signal.SIGTERM)  # wakes a blocked main thread
    else:
        signal.raise_signal(signal.SIGTERM)


def _ask(process: subprocess.Popen[bytes], task: WorkerTask, late: threading.Event) -> Any:
    assert process.stdin is not None
    assert process.stdout is not None

    def expire() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(task.seconds, expire)
    timer.daemon = True
    timer.start()
    try:
        _write(process.stdin, task)
        return pickle.load(process.stdout)  # noqa: S301 - from our own child process
    finally:
        timer.cancel()


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        process.kill()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(2)


def _write(stream: IO[bytes], value: object) -> None:
    pickle.dump(value, stream, protocol=5)
    stream.flush()


def main(memory: int = 0, preload: str = "") -> None:
    """Serve one parent until it closes the pipe."""
    if preload:
        importlib.import_module(preload)
    # Ctrl-C reaches the whole process group; the parent handles it
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if memory:
        with contextlib.suppress(ImportError, ValueError, OSError):
            import resource  # Windows has none

            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    incoming, outgoing = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # output of libraries must not mix with the results
    os.dup2(2, 1)
    tasks: queue.SimpleQueue[WorkerTask] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(incoming, tasks.put), daemon=True).start()
    while True:
        _write(outgoing, tasks.get().perform())


def _receive(stream: IO[bytes], put: Callable[[WorkerTask], None]) -> None:
    """Receive tasks until the parent ends, then end this process, even during a task."""
    try:
        while True:
            put(pickle.load(stream))  # noqa: S301 - from our own parent process
    finally:
        os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
