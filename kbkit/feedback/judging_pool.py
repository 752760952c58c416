"""Candidates for judging a query, as a judge sees them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

from kbkit.models import Hit

if TYPE_CHECKING:
    import pandas as pd

MAX_LIMIT = 100
"""Maximum hits of each mode, and of others, in a pool."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk to be judged.

    Attributes:
        hit: The chunk and its document. Its score reveals the mode: do not show it.
        found_by: The modes that show it; empty for one that was drawn from further down. Not to
            be shown either.
        score: The rater's earlier score for this query, 1 to 5, or ``None``.
        raters: Number of raters for this query.
    """

    hit: Hit
    found_by: tuple[str, ...]
    score: int | None
    raters: int


@dataclass(frozen=True, slots=True)
class JudgingPool(Sequence[Candidate]):
    """Candidates for one query, in an order that hides how they were found."""

    query: str
    candidates: tuple[Candidate, ...]

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> JudgingPool:
        """A pool out of its fields as JSON values.

        Raises:
            ValueError: They are something else.
            KeyError: The same.
        """
        candidates = tuple(
            Candidate(
                hit=Hit.from_dict(one["hit"]),
                found_by=tuple(one["found_by"]),
                score=one["score"],
                raters=one["raters"],
            )
            for one in data["candidates"]
        )
        return cls(data["query"], candidates)

    def to_frame(self) -> pd.DataFrame:
        """Return one row a candidate, with what a judge needs to see."""
        import pandas as pd

        columns = ["chunk_id", "title", "heading_path", "text", "url", "score", "raters"]
        rows = [
            (
                one.hit.chunk.id,
                one.hit.title,
                list(one.hit.chunk.heading_path),
                one.hit.chunk.text,
                one.hit.url,
                one.score,
                one.raters,
            )
            for one in self.candidates
        ]
        return pd.DataFrame(rows, columns=columns).astype({"score": "Int64", "raters": int})

    def __len__(self) -> int:
        return len(self.candidates)

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.candidates)

    @overload
    def __getitem__(self, index: int) -> Candidate: ...
    @overload
    def __getitem__(self, index: slice) -> JudgingPool: ...
    def __getitem__(self, index: int | slice) -> Candidate | JudgingPool:
        if isinstance(index, slice):
            return JudgingPool(self.query, self.candidates[index])
        return self.candidates[index]

    def __repr__(self) -> str:
        rated = sum(one.score is not None for one in self.candidates)
        return f"<JudgingPool for {self.query!r}: {len(self)} candidates, {rated} rated>"

    def _repr_html_(self) -> str:
        return self.to_frame().to_html(index=False, max_rows=20)
