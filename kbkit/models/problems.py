"""Skipped and failed items, and findings of checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kbkit.models.values import Value


@dataclass(frozen=True, slots=True)
class Problem(Value):
    """A skipped or failed item, and the reason."""

    uri: str
    reason: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", self.reason.removeprefix(f"{self.uri}: "))

    def __str__(self) -> str:
        return f"{self.uri}: {self.reason}"


def by_reason(problems: Iterable[Problem]) -> list[str]:
    reasons: dict[str, list[str]] = {}
    for problem in problems:
        reasons.setdefault(problem.reason, []).append(problem.uri)
    return [
        first + (f" and {len(others):,} more" if others else "") + f": {reason}"
        for reason, (first, *others) in reasons.items()
    ]


@dataclass(frozen=True, slots=True)
class Finding(Value):
    """A defect.

    Attributes:
        part: ``catalog``, ``configuration``, ``vectors``, ``words``, ``embedder``, ``index``,
            ``snapshot``, ``jobs``, ``tokens``, ``files`` or ``entries``.
        kb: Name of the knowledge base; empty for the whole workspace.
        mended: Whether it was repaired.
    """

    part: str
    kb: str
    problem: str
    remedy: str
    mended: bool = False

    def __str__(self) -> str:
        where = f"{self.kb}: " if self.kb else ""
        return f"{where}{self.problem}; {'mended' if self.mended else self.remedy}"


@dataclass(frozen=True, slots=True)
class Health(Value):
    """Result of `Workspace.doctor`.

    Attributes:
        findings: Causes before consequences.
    """

    findings: tuple[Finding, ...] = ()
    knowledge_bases: int = 0

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong, or all was repaired."""
        return all(finding.mended for finding in self.findings)

    def __str__(self) -> str:
        return "\n".join(map(str, self.findings)) or "sound"


@dataclass(frozen=True, slots=True)
class Run(Value):
    """One reading of a source.

    Attributes:
        source: Its address, path or name.
        finished_at: ``None`` while it runs, or if it was interrupted.
        seconds: 0 if it has not ended.
        counts: Numbers of documents added, updated and so on.
    """

    kb: str
    source: str
    started_at: datetime
    finished_at: datetime | None
    seconds: float
    counts: Mapping[str, Any]
