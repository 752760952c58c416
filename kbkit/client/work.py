"""Start, follow and cancel long work on a server; unpack its archives."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, TypeVar
from uuid import uuid4
from zipfile import BadZipFile, ZipFile

import httpx

from kbkit.client.calls import Request, Steps, error_named
from kbkit.client.declared import KNOWLEDGE, Declare, call, json_body, reads_nothing, url
from kbkit.errors import ConflictError, ExportError, ForbiddenError, ServerError
from kbkit.models import Job, JobError, JobState, Progress
from kbkit.models.values import from_dict

T = TypeVar("T")
OnProgress = Callable[[Progress], None]
Stop = Callable[[], bool]

_PATIENCE = 15.0
"""Seconds to wait for the end of a job."""
_POLL_SECONDS = 0.5
"""Seconds to wait for it between reports of its progress."""


def job(route: str, read: Callable[[Any], Any], **options: Any) -> Declare:
    """Make a method that starts work, waits for its end, and reads the result; see `run_job`."""

    def run(_: object, request: Request[Any], given: Mapping[str, Any]) -> Steps[Any]:
        on_progress, stop = given.get("on_progress"), given.get("stop")
        return run_job(read, request, on_progress=on_progress, stop=stop)

    return call(route, run, read=read, timeout=60.0, **options)


def result_of(kind: type[T], missing: T | str) -> Callable[[Any], T]:
    """Return a parser of results; ``missing`` is the result, or the name, of work stopped early."""

    def read(answer: Any) -> T:
        if answer is not None:
            return from_dict(kind, answer)
        if isinstance(missing, str):
            raise ConflictError(f"the {missing} was stopped on the server without a result")
        return missing

    return read


def run_job(
    read: Callable[[Any], T],
    request: Request[Any],
    *,
    on_progress: OnProgress | None = None,
    stop: Stop | None = None,
) -> Steps[T]:
    """Start long work, and wait until it ends.

    ``read`` parses the JSON of the result, and ``None`` of work that was stopped without one.
    """
    wait = (on_progress, stop) == (None, None)
    body = None if request.files else {**(request.json or {}), "wait": wait}
    files = request.files and [*request.files, ("wait", (None, json.dumps(wait)))]
    headers = {"Idempotency-Key": uuid4().hex, **request.headers}
    reader = partial(_read_work, read)
    job: Any = yield replace(request, json=body, files=files, headers=headers, read=reader)
    if not isinstance(job, Job):
        return job
    path, shown, cancelled = url("/api/jobs/{}", job.id), None, False
    while not job.state.ended:
        if stop is not None and not cancelled and stop():
            cancelled = True
            yield from _cancel(path)
        query = {"wait": _PATIENCE if wait or cancelled else _POLL_SECONDS}
        job = yield Request("GET", path, _read_job, query, timeout=60.0)
        if on_progress is not None and not cancelled and job.progress not in (None, shown):
            shown = job.progress
            try:
                on_progress(shown)
            except BaseException:
                yield from _cancel(path)
                raise
    if job.state is JobState.FAILED:
        problem = job.problem or JobError("ServerError", "the job failed")
        raise error_named(problem.error, problem.detail)
    return read(job.result or None)


def _cancel(path: str) -> Steps[None]:
    with suppress(ForbiddenError):  # a token for reading cannot cancel
        yield Request("DELETE", path, reads_nothing)


def job_request(kb: str, work: str, body: Mapping[str, Any]) -> Request[Any]:
    """Request work on a knowledge base."""
    path = url(f"{KNOWLEDGE}/bases/{{}}/{work}", kb)
    return Request("POST", path, reads_nothing, json=json_body(**body), timeout=60.0)


def _read_job(response: httpx.Response) -> Job:
    return from_dict(Job, response.json())


def _read_work(parse: Callable[[Any], T], response: httpx.Response) -> T | Job:
    return _read_job(response) if response.status_code == 202 else parse(response.json())


_RECORD = ".kbkit-files.json"
"""Lists the files that an archive wrote into a folder; MkDocs does not publish it."""
_MAX_BYTES = 4_000_000_000


def unpack(archive: BinaryIO, folder: Path) -> tuple[int, int, int]:
    """Unpack an archive into a folder, replacing the files of an earlier one."""
    record = folder / _RECORD
    names: list[str] = []
    written = 0
    try:
        before = set(json.loads(record.read_text("utf-8"))) if record.is_file() else set()
        if not record.is_file() and folder.is_dir() and any(folder.iterdir()):
            raise ExportError(
                f"{folder}: has files that kbkit did not write; choose an empty folder for the "
                "export"
            )
        folder.mkdir(parents=True, exist_ok=True)
        with ZipFile(archive) as packed:
            for name in _safe_names(packed):
                names.append(name)
                data, target = packed.read(name), folder / name
                if not target.is_file() or target.read_bytes() != data:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(data)
                    written += 1
        old = [folder / name for name in before.difference(names) if _is_safe(name)]
        removed = [path for path in old if path.is_file()]
        for path in removed:
            path.unlink()
        record.write_text(json.dumps(sorted(names)), "utf-8")
    except (BadZipFile, EOFError) as error:
        raise ServerError(f"the server's archive cannot be read ({error})") from error
    except (ValueError, TypeError) as error:
        raise ExportError(f"{record}: damaged ({error}); choose another folder") from error
    except OSError as error:
        raise ExportError(f"{folder}: cannot be written ({error.strerror})") from error
    return written, len(names) - written, len(removed)


def _safe_names(packed: ZipFile) -> Iterator[str]:
    files = [member for member in packed.infolist() if not member.is_dir()]
    if sum(member.file_size for member in files) > _MAX_BYTES:
        raise ServerError(f"the server's archive is larger than {_MAX_BYTES / 1e9:g} GB")
    for member in files:
        if not _is_safe(member.filename):
            raise ServerError(f"the server's archive has the unsafe path {member.filename!r:.80}")
        yield member.filename


def _is_safe(name: str) -> bool:
    path = PurePosixPath(name)
    unsafe = path.is_absolute() or ".." in path.parts or any(sign in name for sign in "\\:\0")
    return not unsafe
