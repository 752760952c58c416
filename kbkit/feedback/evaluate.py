"""How well search answers golden questions, measured by page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kbkit.models import Hits
from kbkit.recipes import Question

if TYPE_CHECKING:
    import pandas as pd

DEPTH = 10
"""Pages of a ranking that count."""
_CHUNKS = 100
"""Hits read to find that many different pages."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What search made of one question.

    Attributes:
        pages: The pages it found, best first, at most `DEPTH`.
        ndcg: nDCG@10 with gain 2 for the best page and 1 for the other relevant ones.
        recall: Share of the relevant pages among the first 10.
        reciprocal_rank: 1 / rank of the first relevant page, 0 where none is among the first 10.
    """

    question: str
    relevant: tuple[str, ...]
    pages: tuple[str, ...]
    ndcg: float
    recall: float
    reciprocal_rank: float


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Figures over a set of questions; means of the answers' figures, 0 to 1."""

    answers: tuple[Answer, ...]

    @property
    def ndcg(self) -> float:
        """Mean nDCG@10."""
        return _mean(answer.ndcg for answer in self.answers)

    @property
    def recall(self) -> float:
        """Mean Recall@10."""
        return _mean(answer.recall for answer in self.answers)

    @property
    def mrr(self) -> float:
        """Mean reciprocal rank within the first 10 pages."""
        return _mean(answer.reciprocal_rank for answer in self.answers)

    @property
    def hit_at_1(self) -> float:
        """Share of questions whose first page is relevant."""
        return _mean(float(answer.reciprocal_rank == 1) for answer in self.answers)

    def to_dict(self) -> dict[str, Any]:
        """The figures as JSON values, with each question's own."""
        return {
            "questions": len(self.answers),
            "ndcg@10": self.ndcg,
            "recall@10": self.recall,
            "mrr@10": self.mrr,
            "hit@1": self.hit_at_1,
            "per_question": [
                {
                    "question": a.question,
                    "ndcg@10": a.ndcg,
                    "recall@10": a.recall,
                    "reciprocal_rank": a.reciprocal_rank,
                    "relevant": list(a.relevant),
                    "pages": list(a.pages),
                }
                for a in self.answers
            ],
        }

    def to_frame(self) -> pd.DataFrame:
        """One row a question."""
        import pandas as pd

        return pd.DataFrame(self.to_dict()["per_question"]).set_index("question")


def evaluate(search: Callable[[str, int], Hits], questions: Sequence[Question]) -> Evaluation:
    """Ask questions and score the pages that come back.

    Args:
        search: Takes a query and a number of hits.
        questions: What to ask, and the URI suffixes of relevant pages.
    """
    answers = []
    for question in questions:
        uris = dict.fromkeys(hit.uri for hit in search(question.question, _CHUNKS))
        answers.append(score(question, list(uris)[:DEPTH]))
    return Evaluation(tuple(answers))


def score(question: Question, pages: Sequence[str]) -> Answer:
    """Score a ranking of pages.

    nDCG as in Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques"
    (2002), with the discount log2(rank + 1).

    Args:
        question: The question and its relevant pages.
        pages: URIs, best first, each once.
    """
    gains = []
    relevant = list(dict.fromkeys(question.relevant))  # a page counts once
    open_ = relevant.copy()
    for uri in pages[:DEPTH]:
        match = next((suffix for suffix in open_ if _is_page(uri, suffix)), None)
        if match is None:
            gains.append(0)
            continue
        gains.append(2 if match == relevant[0] else 1)
        open_.remove(match)
    ideal = [2] + [1] * (len(relevant) - 1)
    first = next((rank for rank, gain in enumerate(gains, 1) if gain), None)
    return Answer(
        question=question.question,
        relevant=question.relevant,
        pages=tuple(pages[:DEPTH]),
        ndcg=_dcg(gains) / _dcg(ideal[:DEPTH]),
        recall=sum(gain > 0 for gain in gains) / len(relevant),
        reciprocal_rank=1 / first if first else 0.0,
    )


def _is_page(uri: str, suffix: str) -> bool:
    """Whether a URI ends with a page's path, beginning at a boundary of the path."""
    uri = uri.split("#", 1)[0]
    suffix = suffix.split("#", 1)[0].lstrip("/")
    return uri == suffix or uri.endswith("/" + suffix) or uri.endswith(":" + suffix)


def _dcg(gains: Sequence[int]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else 0.0
