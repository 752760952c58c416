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
"""Maximum failed and skipped items each in the progress of an ingest."""


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
"""Kinds of jobs. Stable names, because a new version resumes the jobs of an older one."""


class JobState(StrEnum):
    """State of a job."""

    QUEUED = "queued"
    RUNNING = "running"
    INTERRUPTED = "interrupted"
    """The server stopped; the next one resumes the job."""
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    """Finished parts are kept."""

    @property
    def ended(self) -> bool:
        """Whether the job is done, failed or cancelled."""
        return self in (JobState.DONE, JobState.FAILED, JobState.CANCELLED)


@dataclass(frozen=True, slots=True)
class JobProgress(Value):
    """Progress of a job; see `Progress`. ``so_far`` has only the last problems."""

    stage: str
    done: int
    total: int | None = None
    message: str = ""
    so_far: IngestReport | None = None

    @classmethod
    def of(cls, progress: Progress) -> JobProgress:
        """Convert the progress of an operation."""
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
        error: Name of a class of `kbkit.errors`.
    """

    error: str
    detail: str


@dataclass(frozen=True, slots=True)
class Job(Value):
    """A long operation that a server runs in the background.

    Attributes:
        kind: One of `KINDS`.
        kbs: Names of its knowledge bases.
        owner: Name of the token that started it; ``""`` without tokens.
        result: JSON values, once it has ended.
        problem: Why it failed.
        attempts: More than one if the server stopped in between.
        created_at: Time of the request (UTC).
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
        id: Its public part.
        name: Such as the user's name.
        scope: ``read``, ``write`` or ``admin``; each includes the ones before it.
        kbs: Names of the knowledge bases that it is limited to; empty for all.
        expires_at: ``None`` for never.
        used_at: Last use, to the minute (UTC); ``None`` for never.
    """

    id: str
    name: str
    scope: str
    kbs: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None = None
    used_at: datetime | None = None
