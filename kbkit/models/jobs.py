"""Jobs of a server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from kbkit.models.ingest_report import IngestReport, Progress
from kbkit.models.values import Value

_PROBLEMS = 100
"""Maximum problems listed during an ingest."""


KINDS = (
    "import",
    "refresh",
    "configure",
    "improve",
    "annotate",
    "expand",
    "evaluate",
    "tune",
    "export",
    "doctor",
    "bundle",
    "restore",
)
"""Kinds of jobs. They are stable: this version resumes older jobs."""


class JobState(StrEnum):
    """State of a job."""

    QUEUED = "queued"
    """It waits for its turn."""
    RUNNING = "running"
    """It is at work."""
    INTERRUPTED = "interrupted"
    """Its server ended; the next one takes it up where it was."""
    DONE = "done"
    """Finished; the result has the outcome."""
    FAILED = "failed"
    """It came to an error."""
    CANCELLED = "cancelled"
    """Cancelled; finished parts are kept."""

    @property
    def ended(self) -> bool:
        """Whether the job is over."""
        return self in (JobState.DONE, JobState.FAILED, JobState.CANCELLED)


@dataclass(frozen=True, slots=True)
class JobProgress(Value):
    """Progress of a job; see `kbkit.models.Progress`.

    Of an ingest that is under way ``so_far`` has the last problems only.
    """

    stage: str
    done: int
    total: int | None = None
    message: str = ""
    so_far: IngestReport | None = None

    @classmethod
    def of(cls, progress: Progress) -> JobProgress:
        """Convert progress."""
        so_far = progress.so_far
        if so_far is not None:
            so_far = replace(
                so_far,
                documents=(),
                poorly_read=(),
                notes=(),
                warnings=(),
                failed=so_far.failed[-_PROBLEMS:],
                skipped=so_far.skipped[-_PROBLEMS:],
            )
        return cls(progress.stage, progress.done, progress.total, progress.message, so_far)


@dataclass(frozen=True, slots=True)
class JobError(Value):
    """Error of a failed job.

    Attributes:
        error: Class of `kbkit.errors`.
        detail: Message.
    """

    error: str
    detail: str


@dataclass(frozen=True, slots=True)
class Job(Value):
    """Long work of a server in the background.

    Attributes:
        id: Identifies it.
        kind: Kind of work; one of `KINDS`.
        kbs: Names of the knowledge bases that it works at.
        owner: Name of the token that began it; ``""`` without tokens.
        state: State of the job.
        progress: Progress, once it runs.
        result: Result as JSON values, once it has ended.
        problem: Why it failed.
        attempts: Number of attempts: more than one if its server ended.
        created_at: When it was asked for (UTC).
        started_at: When it was begun last.
        ended_at: When it ended.
    """

    id: str
    kind: str
    kbs: tuple[str, ...]
    owner: str
    state: JobState
    created_at: datetime
    progress: JobProgress | None = None
    result: Mapping[str, Any] | None = None
    problem: JobError | None = None
    attempts: int = 0
    started_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class TokenInfo(Value):
    """A token without its secret.

    Attributes:
        id: The part of it that is no secret.
        name: Name, such as its user's.
        scope: ``read``, ``write`` or ``admin``; each includes the ones before it.
        kbs: Names of the only knowledge bases that it is for; empty for all.
        created_at: When it was made (UTC).
        expires_at: Expiry; ``None`` for never.
        used_at: Last use, to the minute; ``None`` for never.
    """

    id: str
    name: str
    scope: str
    kbs: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None = None
    used_at: datetime | None = None
