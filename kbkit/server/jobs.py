"""The jobs of a workspace."""

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from kbkit.errors import ConfigError, ConflictError, KbkitError, ServerError
from kbkit.models import Job, JobError, JobState, Progress
from kbkit.models.values import to_json
from kbkit.server.tasks import TASKS, JobRun, JobTask, Stopped, forget_uploads
from kbkit.stores.catalog import jobs as job_table
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.stores import Stores
from kbkit.workspace import Workspace, stores_of

log = logging.getLogger("kbkit.server.jobs")

WORKERS = 2
ATTEMPTS = 3
"""Maximum attempts of a job whose server was killed."""
MAX_AGE = timedelta(days=7)
_POLL_SECONDS = 0.5
"""Seconds between reads and writes of a job's state; other processes may change it."""


class Jobs:
    """The jobs of a workspace; of several processes, only the one with its lock runs a job."""

    def __init__(self, workspace: Workspace, *, tasks: Mapping[str, JobTask] = TASKS) -> None:
        self._workspace = workspace
        self._stores: Stores = stores_of(workspace)
        self._tasks = tasks
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="kbkit-job")
        self._closing = threading.Event()
        self._changed = threading.Condition()

    def start(
        self,
        kind: str,
        arguments: Mapping[str, Any],
        *,
        owner: str = "",
        kbs: Sequence[str] = (),
        job_id: str = "",
    ) -> Job:
        now = datetime.now(UTC)
        job = Job(job_id or uuid4().hex, kind, tuple(kbs), owner, JobState.QUEUED, now)
        self._stores.database.commit(job_table.add, job, arguments)
        self._submit(job.id)
        return job

    def get(self, job_id: str) -> Job:
        return self._stores.database.look_up(job_table.get, job_id)

    def find_repeated(self, job_id: str, request: str) -> Job | None:
        return self._stores.database.look_up(job_table.find_repeated, job_id, request)

    def list(self) -> list[Job]:
        """List jobs, newest first."""
        return self._stores.database.look_up(job_table.list_jobs)

    def wait(self, job_id: str, seconds: float) -> Job:
        """Return a job once it has ended, or after some seconds."""
        deadline = time.monotonic() + seconds
        while True:
            with self._changed:
                job = self.get(job_id)
                remaining = deadline - time.monotonic()
                if job.state.ended or remaining <= 0:
                    return job
                self._changed.wait(min(remaining, _POLL_SECONDS))  # another process may run it

    def cancel(self, job_id: str) -> Job:
        """Cancel a job; its work so far stays. An ended job stays as it is."""
        with self._stores.database.write() as transaction:
            job = job_table.get(transaction, job_id)
            job_table.cancel(transaction, job_id)
            if job.state in (JobState.QUEUED, JobState.INTERRUPTED):
                self._end(transaction, job_id, JobState.CANCELLED)
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
            self._pool.submit(self._run, job_id)

    def _run(self, job_id: str) -> None:
        try:
            with self._stores.locks.hold(f"job-{job_id}", wait=0):
                self._run_locked(job_id)
        except ConflictError:
            pass  # another process runs it
        except Exception:
            log.exception("job %s", job_id)
        finally:
            self._notify()

    def _run_locked(self, job_id: str) -> None:
        with self._stores.database.write() as transaction:
            job = job_table.begin(transaction, job_id)
            if job.state.ended:
                return
            if job_table.is_cancelled(transaction, job_id):
                self._end(transaction, job_id, JobState.CANCELLED)
                return
            arguments = job_table.arguments_of(transaction, job_id)
        watch = _TaskWatch(self._stores, job_id, self._closing)
        state, outcome = JobState.FAILED, dict[str, Any]()
        try:
            if job.attempts > ATTEMPTS:
                message = f"its server ended {ATTEMPTS} times while it was running; start it again"
                raise ServerError(message)
            if (task := self._tasks.get(job.kind)) is None:
                raise ConfigError(f"this server knows no jobs of the kind {job.kind!r}")
            result = to_json(task(JobRun(self._workspace, arguments, watch.report, watch.stop)))
            state, outcome = watch.state, {"result": result}
        except Stopped:
            state, outcome = watch.state, {"result": {}}
        except KbkitError as error:
            outcome = {"problem": JobError(type(error).__name__, str(error))}
        except Exception as error:
            log.error("job %s (%s) failed", job_id, job.kind, exc_info=error)
            outcome = {"problem": JobError("ServerError", "the server failed; its log says why")}
        watch.write_progress()
        self._stores.database.commit(self._end, job_id, state, **outcome)

    def _end(
        self, transaction: Transaction, /, job_id: str, state: JobState, **outcome: Any
    ) -> None:
        """Record the end of a job; uploaded files stay so that it can be resumed."""
        job_table.end(transaction, job_id, state, **outcome)
        if state.ended:
            forget_uploads(self._workspace, job_table.arguments_of(transaction, job_id))

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()


class _TaskWatch:
    def __init__(self, stores: Stores, job_id: str, closing: threading.Event) -> None:
        self._database = stores.database
        self._id = job_id
        self._closing = closing
        self._progress: Progress | None = None
        self._written_at = float("-inf")
        self._checked_at = time.monotonic()
        self.state = JobState.DONE
        """State of the job when its task returns."""

    def report(self, progress: Progress) -> None:
        self._progress = progress.brief()
        if time.monotonic() - self._written_at >= _POLL_SECONDS:
            self.write_progress()

    def write_progress(self) -> None:
        if self._progress is not None:
            self._database.commit(job_table.report_progress, self._id, self._progress)
            self._progress, self._written_at = None, time.monotonic()

    def stop(self) -> bool:
        if self._closing.is_set() and self.state is JobState.DONE:
            self.state = JobState.INTERRUPTED
        if time.monotonic() - self._checked_at >= _POLL_SECONDS:
            self._checked_at = time.monotonic()
            if self._database.look_up(job_table.is_cancelled, self._id):
                self.state = JobState.CANCELLED
        return self.state is not JobState.DONE
