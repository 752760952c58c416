"""The jobs of a workspace."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from kbkit.errors import ConflictError, KbkitError
from kbkit.models import Job, JobError, JobState, Progress
from kbkit.models.values import to_json
from kbkit.server.tasks import TASKS, JobRun, JobTask, Stopped, forget_uploads
from kbkit.stores.catalog import runs as job_table
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.stores import Stores
from kbkit.workspace import Workspace, stores_of

log = logging.getLogger("kbkit.server.jobs")

WORKERS = 2
ATTEMPTS = 3
"""Maximum attempts of a job whose server was killed."""
MAX_AGE = timedelta(days=7)
_REPORT_SECONDS = 0.5
"""Seconds between writes of progress to the catalog."""


class Jobs:
    """The jobs of a workspace; of several processes, only the one with its lock runs a job."""

    def __init__(
        self,
        workspace: Workspace,
        *,
        tasks: Mapping[str, JobTask] | None = None,
        workers: int = WORKERS,
    ) -> None:
        self._workspace = workspace
        self._stores: Stores = stores_of(workspace)
        self._tasks = TASKS if tasks is None else tasks
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="kbkit-job")
        self._closing = threading.Event()
        self._changed = threading.Condition()
        self._progress: dict[str, Progress] = {}
        self._cancelled: dict[str, threading.Event] = {}

    def start(
        self, kind: str, arguments: Mapping[str, Any], *, owner: str = "", kbs: Sequence[str] = ()
    ) -> Job:
        now = datetime.now(UTC)
        job = Job(uuid4().hex, kind, tuple(kbs), owner, JobState.QUEUED, now)
        with self._stores.database.write() as transaction:
            job_table.add(transaction, job, arguments)
        self._submit(job.id)
        return job

    def get(self, job_id: str) -> Job:
        with self._stores.database.read() as transaction:
            job = job_table.get(transaction, job_id)
        return self._current(job)

    def list(self) -> list[Job]:
        """List jobs, newest first."""
        with self._stores.database.read() as transaction:
            return [self._current(job) for job in job_table.list_jobs(transaction)]

    def wait(self, job_id: str, seconds: float) -> Job:
        """Return a job once it has ended, or after some seconds."""
        deadline = time.monotonic() + seconds
        while True:
            with self._changed:
                job = self.get(job_id)
                left = deadline - time.monotonic()
                if job.state.ended or left <= 0:
                    return job
                self._changed.wait(min(left, _REPORT_SECONDS))  # another process may run it

    def cancel(self, job_id: str) -> Job:
        """Cancel a job; its work so far stays. An ended job stays as it is."""
        with self._stores.database.write() as transaction:
            job = job_table.get(transaction, job_id)
            job_table.cancel(transaction, job_id)
            if job.state in (JobState.QUEUED, JobState.INTERRUPTED):
                self._record_end(transaction, job_id, JobState.CANCELLED)
        if event := self._cancelled.get(job_id):
            event.set()
        self._notify()
        return self.get(job_id)

    def resume(self) -> None:
        with self._stores.database.write() as transaction:
            job_table.forget(transaction, MAX_AGE)
            waiting = job_table.list_jobs(transaction, ended=False)
        for job in reversed(waiting):
            self._submit(job.id)

    def close(self) -> None:
        """Stop running jobs cleanly; the next process resumes them."""
        self._closing.set()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _submit(self, job_id: str) -> None:
        if not self._closing.is_set():
            self._cancelled.setdefault(job_id, threading.Event())
            self._pool.submit(self._run, job_id)

    def _current(self, job: Job) -> Job:
        progress = self._progress.get(job.id)
        if progress is None or job.state is not JobState.RUNNING:
            return job
        return replace(job, progress=progress)

    def _run(self, job_id: str) -> None:
        try:
            with self._stores.locks.hold(f"job-{job_id}", wait=0):
                self._run_locked(job_id)
        except ConflictError:
            pass  # another process runs it
        except Exception:
            log.exception("job %s", job_id)
        finally:
            self._cancelled.pop(job_id, None)
            self._progress.pop(job_id, None)
            self._notify()

    def _run_locked(self, job_id: str) -> None:
        with self._stores.database.write() as transaction:
            job = job_table.begin(transaction, job_id)
            arguments = job_table.arguments_of(transaction, job_id)
            cancelled = job_table.is_cancelled(transaction, job_id)
        if job.state.ended:
            return
        if cancelled:
            self._end(job_id, JobState.CANCELLED)
            return
        if job.attempts > ATTEMPTS:
            message = f"its server ended {ATTEMPTS} times while it was running; start it again"
            self._end(job_id, JobState.FAILED, problem=JobError("ServerError", message))
            return
        task = self._tasks.get(job.kind)
        if task is None:
            message = f"this server knows no jobs of the kind {job.kind!r}"
            self._end(job_id, JobState.FAILED, problem=JobError("ConfigError", message))
            return
        watch = _TaskWatch(self, job_id)
        try:
            try:
                result = to_json(task(JobRun(self._workspace, arguments, watch.report, watch.stop)))
            except Stopped:
                result = {}
        except KbkitError as error:
            problem = JobError(type(error).__name__, str(error))
            self._end(job_id, JobState.FAILED, problem=problem)
        except Exception as error:
            log.error("job %s (%s) failed", job_id, job.kind, exc_info=error)
            problem = JobError("ServerError", "the server failed; its log says why")
            self._end(job_id, JobState.FAILED, problem=problem)
        else:
            state = JobState.DONE
            if watch.cancelled:
                state = JobState.CANCELLED
            elif watch.stopped:
                state = JobState.INTERRUPTED
            self._end(job_id, state, result=result)

    def _end(
        self,
        job_id: str,
        state: JobState,
        *,
        result: Mapping[str, Any] | None = None,
        problem: JobError | None = None,
    ) -> None:
        with self._stores.database.write() as transaction:
            last = self._progress.get(job_id)
            if last is not None:
                job_table.report_progress(transaction, job_id, last)
            self._record_end(transaction, job_id, state, result=result, problem=problem)

    def _record_end(
        self, transaction: Transaction, job_id: str, state: JobState, **outcome: Any
    ) -> None:
        """Record the end of a job; uploaded files stay so that it can be resumed."""
        job_table.end(transaction, job_id, state, **outcome)
        if state.ended:
            forget_uploads(self._workspace, job_table.arguments_of(transaction, job_id))

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()


class _TaskWatch:
    def __init__(self, jobs: Jobs, job_id: str) -> None:
        self._jobs = jobs
        self._id = job_id
        self._event = jobs._cancelled.setdefault(job_id, threading.Event())
        self._reported_at = self._checked_at = time.monotonic()
        self.cancelled = False
        self.stopped = False

    def report(self, progress: Progress) -> None:
        current = progress.brief()
        self._jobs._progress[self._id] = current
        now = time.monotonic()
        if now - self._reported_at >= _REPORT_SECONDS:
            self._reported_at = now
            with self._jobs._stores.database.write() as transaction:
                job_table.report_progress(transaction, self._id, current)
        self._jobs._notify()

    def stop(self) -> bool:
        now = time.monotonic()
        if not self.cancelled and now - self._checked_at >= _REPORT_SECONDS:
            self._checked_at = now  # another process may have cancelled it
            with self._jobs._stores.database.read() as transaction:
                self.cancelled = job_table.is_cancelled(transaction, self._id)
        self.cancelled = self.cancelled or self._event.is_set()
        self.stopped = self.cancelled or self._jobs._closing.is_set()
        return self.stopped
