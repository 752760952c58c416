"""Parse files in processes with limits on time and memory."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from kbkit.errors import MissingExtraError
from kbkit.runtime.engine import Engine, WorkerPool
from kbkit.sources.formats import NEED_PROCESS, Part, UnreadableError, format_of, parse

FILE_SECONDS = 120.0  # time limit for reading one file
MEMORY = 2_500_000_000  # bytes of the reading process


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """Result of reading a file; if it `failed`, the content is unknown."""

    parts: tuple[Part, ...] = ()
    reason: str = ""
    failed: bool = False


@dataclass(frozen=True, slots=True)
class ParseTask:
    """A file to read; a `kbkit.runtime.processes.WorkerTask`."""

    name: str
    data: bytes

    @property
    def seconds(self) -> float:
        return FILE_SECONDS

    def perform(self) -> ParsedFile:
        try:
            return ParsedFile(tuple(parse(self.name, self.data)))
        except UnreadableError as error:
            return ParsedFile(reason=str(error))
        except MissingExtraError as error:
            return ParsedFile(reason=str(error), failed=True)

    def broken(self, reason: str) -> ParsedFile:
        return ParsedFile(reason=reason, failed=True)


class FileParser:
    """Reads files in child processes, started when the first file needs one."""

    def __init__(self, count: int | None = None, engine: Engine | None = None) -> None:
        self._count = count
        self._engine = engine or Engine()
        self._workers: WorkerPool | None = None
        self._possible = True

    def submit(self, name: str, data: bytes) -> Future[ParsedFile]:
        """Parse a file in a child process; plain text, and all files without processes, here."""
        task = ParseTask(name, data)
        try:
            needed = format_of(name) in NEED_PROCESS
        except UnreadableError as error:
            result: Future[ParsedFile] = Future()
            result.set_result(ParsedFile(reason=str(error)))
            return result
        workers = self._start() if needed else None
        return (workers or self._engine.pool()).submit(task)

    def _start(self) -> WorkerPool | None:
        if self._workers is None and self._possible:
            try:
                self._workers = self._engine.child_processes(
                    self._count, memory=MEMORY, preload="kbkit.sources.html.extract"
                )
            except OSError:
                self._possible = False
        return self._workers

    def close(self) -> None:
        """End the processes."""
        if self._workers is not None:
            self._workers.close()
            self._workers = None

    def __enter__(self) -> FileParser:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
