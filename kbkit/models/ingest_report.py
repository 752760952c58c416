"""Progress and reports of ingests, and the jobs and callers of a server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from kbkit.errors import ForbiddenError
from kbkit.models.documents import DocumentInfo
from kbkit.models.reports import Improvement
from kbkit.models.values import Problem, Value, by_reason

MAX_DOCUMENTS = 1_000
"""Maximum documents in a report."""
_PROBLEMS = 100
"""Maximum failed and skipped items each in the progress of an ingest."""
_MAX_POOR_PAGES = 10
"""Maximum poorly read pages in a report."""


@dataclass(frozen=True, slots=True)
class Progress(Value):
    """Progress of long work, for ``on_progress`` callbacks.

    Attributes:
        stage: ``crawl``, ``store``, ``embed``, ``summaries``, ``expand``, ``index``, ``evaluate``,
            ``candidates`` and ``tune`` (of `KnowledgeBase.tune`), ``export`` or ``site``; ``copy``
            and ``check`` (rows of `kbkit.migrate`).
        total: ``None`` if unknown.
        message: Current item.
        so_far: Report of the running ingest, if there is one.
    """

    stage: str
    done: int
    total: int | None = None
    message: str = ""
    so_far: IngestReport | None = None

    def brief(self) -> Progress:
        """Return the progress with the last problems of its report only."""
        if self.so_far is None:
            return self
        report = replace(
            self.so_far,
            documents=(),
            poorly_read=(),
            notes=(),
            warnings=(),
            failed=self.so_far.failed[-_PROBLEMS:],
            skipped=self.so_far.skipped[-_PROBLEMS:],
        )
        return replace(self, so_far=report)


@dataclass(frozen=True, slots=True)
class IngestReport(Value):
    """Result of an ingest or a refresh. Counts are documents unless stated otherwise.

    Attributes:
        fetched: Pages or files read (an HTTP 304 does not count).
        seconds: Time by stage.
        interrupted: Whether the work was stopped early; the next run continues it.
        fidelity: Kept and total items of the measured pages, by kind (``pages`` counts the pages).
            The first pages of a site are measured, then every eighth.
        poorly_read: Measured pages with more than a tenth of losses or surplus.
        notes: Documents that were read with a guess, such as their charset.
        warnings: Sources whose pages were poorly read overall, with the worst pages.
        failed_sources: Sources of which nothing could be read, with the first reason. New ones are
            not saved.
        documents: Ids of documents that were read or are unchanged, the first 1,000.
        improvement: Work left for models; static vectors serve searches until then.
    """

    new: int = 0
    changed: int = 0
    same: int = 0
    gone: int = 0
    fetched: int = 0
    failed: tuple[Problem, ...] = ()
    skipped: tuple[Problem, ...] = ()
    chunks_embedded: int = 0
    chunks_added: int = 0
    chunks_removed: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    interrupted: bool = False
    fidelity: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    poorly_read: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    failed_sources: tuple[Problem, ...] = ()
    improvement: Improvement | None = None
    documents: tuple[str, ...] = ()

    @property
    def nothing_read(self) -> bool:
        """Whether no source had a document."""
        return bool(self.failed or self.skipped) and not (self.new or self.changed or self.same)

    def lines(self) -> list[tuple[str, str]]:
        """Return labels and values for a person."""
        lines = [
            (
                "documents",
                f"{self.new:,} new, {self.changed:,} changed, {self.same:,} same, "
                f"{self.gone:,} gone",
            ),
            ("chunks", f"{self.chunks_embedded:,} embedded, {self.chunks_removed:,} removed"),
            ("fetched", f"{self.fetched:,}"),
        ]
        kinds = (("failed", self.failed), ("skipped", self.skipped), ("note", self.notes))
        for label, problems in kinds:
            lines += ((label, line) for line in by_reason(problems))
        if self.fidelity:
            lines.append(("read", _fidelity_line(self.fidelity)))
        lines += [("warning", f"poorly read: {warning}") for warning in self.warnings]
        lines += [("poorly read", str(page)) for page in self.poorly_read[:_MAX_POOR_PAGES]]
        if (more := len(self.poorly_read) - _MAX_POOR_PAGES) > 0:
            lines.append(("poorly read", f"and {more:,} more pages"))
        if self.improvement:
            lines.append(("left for a model", str(self.improvement)))
        if self.interrupted:
            lines.append(("stopped", "early; the next run continues from here"))
        if self.seconds:
            lines.append(("seconds", seconds_line(self.seconds)))
        return lines


@dataclass(frozen=True, slots=True)
class ImportReport(Value):
    """Result of an import; ``documents`` has the first 1,000 that were read or are unchanged."""

    documents: tuple[DocumentInfo, ...]
    chunks: int
    report: IngestReport


def seconds_line(seconds: Mapping[str, float]) -> str:
    return ", ".join(f"{stage} {value:.1f}" for stage, value in seconds.items())


def _fidelity_line(fidelity: Mapping[str, tuple[int, int]]) -> str:
    shares = ", ".join(
        f"{kind} {100 * kept / total:.1f} %"
        for kind, (kept, total) in fidelity.items()
        if total and kind in ("words", "code", "headings", "rows")
    )
    kept, written = fidelity.get("surplus", (0, 0))
    surplus = f", {1 - kept / written:.1%} of the text is not content" if kept < written else ""
    measured = f"{fidelity['pages'][1]:,} pages measured"
    return measured + (f": kept {shares}" if shares else "") + surplus


POOR = 0.9
"""Fidelity below which a page is poorly read."""
_MIN = {"words": 0.99, "surplus": 0.97, "headings": 0.97, "code": 0.97, "rows": 0.97}
"""Kept shares below which a site is poorly read; of ``surplus``, the share that is content."""

_COUNTED = ("code", "headings", "rows")


def fidelity_score(figures: Mapping[str, tuple[int, int]]) -> float:
    """Return the fidelity of a page, from 0 to 1.

    This is the minimum of three shares: words kept; code blocks, headings and table rows kept;
    written words that are content of the page.
    """
    pairs = [figures.get(kind, (0, 0)) for kind in _COUNTED]
    totals = (sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs))
    return min(_share(counts) for counts in (totals, *(figures.get(k, (0, 0)) for k in _WORDS)))


def losses(figures: Mapping[str, tuple[int, int]]) -> str:
    """Describe losses and surplus of a page in one line; ``""`` if there are none."""
    shares = [
        f"{kind} {kept:,} of {total:,}"
        for kind, (kept, total) in figures.items()
        if kept < total and kind not in ("surplus", "pages")
    ]
    lines = [f"kept of the page: {', '.join(shares)}"] if shares else []
    kept, total = figures.get("surplus", (0, 0))
    if kept < total:
        lines.append(f"{total - kept:,} of {total:,} words written are not its content")
    return "; ".join(lines)


def poor_site(figures: Mapping[str, tuple[int, int]]) -> str:
    """Describe how badly a site's pages were read, in one line; ``""`` if all is well."""
    shares = {kind: _share(figures.get(kind, (0, 0))) for kind in _MIN}
    return ", ".join(
        f"{1 - share:.1%} of the text is not content"
        if kind == "surplus"
        else f"{1 - share:.1%} of the {kind} {'is' if kind == 'code' else 'are'} missing"
        for kind, share in shares.items()
        if share < _MIN[kind]
    )


_WORDS = ("words", "surplus")


def _share(pair: tuple[int, int]) -> float:
    return pair[0] / pair[1] if pair[1] else 1.0


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
