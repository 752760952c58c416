"""Jobs of a server, its tokens, and the callers that they admit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from kbkit.errors import ForbiddenError
from kbkit.models.ingest_report import Progress
from kbkit.models.values import Value


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
        kind: Its task, such as ``refresh`` or ``export``.
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
    progress: Progress | None = None
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


class Scope(StrEnum):
    """Scope of a token; each includes those before it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"

    @property
    def implied(self) -> frozenset[Scope]:
        scopes = list(Scope)
        return frozenset(scopes[: scopes.index(self) + 1])


@dataclass(frozen=True, slots=True)
class Caller:
    """Caller of a server, with the rights of a token."""

    name: str
    """Name of the token; ``""`` if none is needed."""
    scopes: frozenset[Scope]
    kbs: tuple[str, ...] = ()
    """Allowed knowledge bases; empty for all. May include ``files`` and ``entries``."""

    def require(self, scope: Scope) -> None:
        if scope not in self.scopes:
            raise ForbiddenError(
                f"this needs the scope {scope.value}; the token {self.name!r} has "
                f"{', '.join(each.value for each in Scope if each in self.scopes) or 'none'}",
                scope.value,
            )

    def require_kb(self, name: str) -> None:
        if self.kbs and name not in self.kbs:
            raise ForbiddenError(
                f"the token {self.name!r} is not for {name!r}, but for {', '.join(self.kbs)}"
            )

    def require_all_kbs(self) -> None:
        if self.kbs:
            raise ForbiddenError(
                f"this needs the whole workspace, but the token {self.name!r} is only for "
                f"{', '.join(self.kbs)}"
            )

    def restrict(self, kbs: Sequence[str] | None) -> list[str] | None:
        """Return the allowed knowledge bases among the requested ones; ``None`` for all."""
        if kbs is None:
            return list(self.kbs) or None
        for name in kbs:
            self.require_kb(name)
        return list(kbs)

    def visible(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if not self.kbs or name in self.kbs]


ALL = Caller("", frozenset(Scope))
"""A caller with all rights."""
