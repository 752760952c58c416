"""What did not work, and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kbkit.models.values import Value


@dataclass(frozen=True, slots=True)
class Problem(Value):
    """Something that was skipped or failed, and why; the reason does not name it again."""

    uri: str
    reason: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", self.reason.removeprefix(f"{self.uri}: "))

    def __str__(self) -> str:
        return f"{self.uri}: {self.reason}"


def by_reason(problems: Iterable[Problem]) -> list[str]:
    """A line for each reason: what it concerns, and the reason: ``a.md and 2 more: too large``."""
    reasons: dict[str, list[str]] = {}
    for problem in problems:
        reasons.setdefault(problem.reason, []).append(problem.uri)
    return [
        first + (f" and {len(others):,} more" if others else "") + f": {reason}"
        for reason, (first, *others) in reasons.items()
    ]
