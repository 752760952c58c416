"""How well search answers queries whose answers are known: golden questions and judgements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kbkit.errors import ConfigError
from kbkit.feedback.checks import whole
from kbkit.feedback.judgements import Judgements
from kbkit.feedback.measures import DEPTH, Ranking, figures
from kbkit.feedback.statistics import Difference, Values, difference, interval
from kbkit.feedback.tasks import Searchable, Task, Tasks, Unit, matched, tasks_of
from kbkit.models import Mode, Progress
from kbkit.progress import OnProgress, shown
from kbkit.recipes import Question, RetrievalSpec

if TYPE_CHECKING:
    import pandas as pd

DEEPEST = 100
"""Most places that recall may read."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What search made of one query.

    Attributes:
        relevant: What should be found: suffixes of pages' URIs, or ids of chunks.
        found: URIs of pages or ids of chunks, best first.
        ndcg: nDCG@10.
        recall: Share of the relevant ones among the first k.
        reciprocal_rank: 1 / rank of the first relevant one, 0 where none is among the first 10.
        judged: Share of the first 10 that somebody judged (for pages: that are relevant).
    """

    question: str
    relevant: tuple[str, ...]
    found: tuple[str, ...]
    ndcg: float
    recall: float
    reciprocal_rank: float
    judged: float = 0.0

    @property
    def hit_at_1(self) -> float:
        """1 where the first one is relevant, else 0."""
        return float(self.reciprocal_rank == 1)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Figures over a set of queries; means of the answers' figures, 0 to 1.

    Attributes:
        label: What was measured, such as ``hybrid``.
        unit: Whether ``page`` or ``chunk`` was looked for.
        k: Places that recall reads.
        left_out: Judged queries that no chunk answers; they count nowhere.
        against: The same queries answered by another configuration, if there is one.
    """

    answers: tuple[Answer, ...]
    label: str = Mode.HYBRID.value
    unit: Unit = "page"
    k: int = DEPTH
    left_out: tuple[str, ...] = ()
    against: Evaluation | None = None

    @property
    def ndcg(self) -> float:
        """Mean nDCG@10."""
        return self.means()["ndcg@10"]

    @property
    def recall(self) -> float:
        """Mean Recall@k."""
        return self.means()[f"recall@{self.k}"]

    @property
    def mrr(self) -> float:
        """Mean reciprocal rank within the first 10."""
        return self.means()["mrr@10"]

    @property
    def hit_at_1(self) -> float:
        """Share of queries whose first page or chunk is relevant."""
        return self.means()["hit@1"]

    def values(self) -> dict[str, Values]:
        """The figures of each query, by measure."""
        return {
            "ndcg@10": np.array([answer.ndcg for answer in self.answers]),
            f"recall@{self.k}": np.array([answer.recall for answer in self.answers]),
            "mrr@10": np.array([answer.reciprocal_rank for answer in self.answers]),
            "hit@1": np.array([answer.hit_at_1 for answer in self.answers]),
        }

    def means(self) -> dict[str, float]:
        """The mean of each measure."""
        return {
            name: float(values.mean()) if self.answers else 0.0
            for name, values in self.values().items()
        }

    def intervals(self) -> dict[str, tuple[float, float]]:
        """The 95 % confidence interval of each mean; see `kbkit.feedback.statistics.interval`."""
        return {name: interval(values) for name, values in self.values().items()}

    def differences(self) -> dict[str, Difference]:
        """By measure, how the figures differ from those of `against`; empty without one."""
        if self.against is None:
            return {}
        others = self.against.values()
        return {name: difference(values, others[name]) for name, values in self.values().items()}

    def summary(self) -> pd.DataFrame:
        """One row a measure: ``mean``, ``low`` and ``high`` (95 % confidence).

        With another configuration also its mean (``against``), the ``difference`` of the two with
        its interval, and the ``p_value`` of a paired permutation test.
        """
        import pandas as pd

        means = self.means()
        others = self.against.means() if self.against is not None else {}
        rows = {
            name: {"mean": means[name], "low": low, "high": high}
            for name, (low, high) in self.intervals().items()
        }
        for name, found in self.differences().items():
            rows[name] |= {
                "against": others[name],
                "difference": found.mean,
                "difference_low": found.low,
                "difference_high": found.high,
                "p_value": found.p_value,
            }
        frame = pd.DataFrame.from_dict(rows, orient="index")
        frame.index.name = "measure"
        return frame

    def to_frame(self) -> pd.DataFrame:
        """One row a query.

        With another configuration also its nDCG@10 and the ``difference`` of the two.
        """
        import pandas as pd

        rows = self._per_question()
        frame = pd.DataFrame(rows, columns=list(rows[0]) if rows else ["question"])
        if self.against is not None:
            frame["against_ndcg@10"] = [answer.ndcg for answer in self.against.answers]
            frame["difference"] = frame["ndcg@10"] - frame["against_ndcg@10"]
        return frame.set_index("question")

    def to_dict(self) -> dict[str, Any]:
        """The figures as JSON values, with their intervals and each query's own."""
        values: dict[str, Any] = {
            "questions": len(self.answers),
            "unit": self.unit,
            "configuration": self.label,
            **self.means(),
            "intervals": {name: list(ends) for name, ends in self.intervals().items()},
            "left_out": list(self.left_out),
            "per_question": self._per_question(),
        }
        if self.against is not None:
            others = self.against.means()
            values["against"] = {
                "configuration": self.against.label,
                **{
                    name: {
                        "mean": others[name],
                        "difference": found.mean,
                        "interval": [found.low, found.high],
                        "p_value": found.p_value,
                    }
                    for name, found in self.differences().items()
                },
            }
        return values

    def __repr__(self) -> str:
        return (
            f"<Evaluation of {self.label} by {self.unit}: {len(self.answers)} queries, "
            f"nDCG@10 {self.ndcg:.3f}>"
        )

    def _repr_html_(self) -> str:
        return self.summary().to_html(float_format="{:.3f}".format)

    def _per_question(self) -> list[dict[str, Any]]:
        return [
            {
                "question": answer.question,
                "ndcg@10": answer.ndcg,
                f"recall@{self.k}": answer.recall,
                "reciprocal_rank": answer.reciprocal_rank,
                "judged@10": answer.judged,
                "relevant": list(answer.relevant),
                f"{self.unit}s": list(answer.found),
            }
            for answer in self.answers
        ]


def evaluate(
    kb: Searchable,
    asked: Sequence[Question] | Judgements,
    *,
    mode: str | Mode,
    retrieval: RetrievalSpec | None,
    against: str | Mode | RetrievalSpec | Evaluation | None,
    k: int,
    on_progress: OnProgress | None = None,
) -> Evaluation:
    """Measure how well a knowledge base answers; see `KnowledgeBase.evaluate`.

    Raises:
        ConfigError: There is nothing to measure by, or an argument is wrong.
    """
    k = whole("k", k, 1, DEEPEST)
    tasks = tasks_of(kb, asked)
    runs = [_Run.of(kb, mode, retrieval)]
    if against is not None and not isinstance(against, Evaluation):
        if isinstance(against, RetrievalSpec):
            runs.append(_Run.of(kb, mode, against))
        else:
            runs.append(_Run.of(kb, against, retrieval))
    with shown(on_progress) as tell:
        results = [run.measure(kb, tasks, k, tell) for run in runs]
    measured = results[0]
    if isinstance(against, Evaluation):
        return versus(measured, against)
    return versus(measured, results[1]) if len(results) > 1 else measured


def versus(first: Evaluation, second: Evaluation) -> Evaluation:
    """The first evaluation, to be compared with the second.

    Raises:
        ConfigError: They are not of the same queries, unit and depth.
    """
    same = [(e.unit, e.k, [a.question for a in e.answers]) for e in (first, second)]
    if same[0] != same[1]:
        raise ConfigError(
            "against: that evaluation is of other queries or another k; evaluate both by the same"
        )
    return Evaluation(first.answers, first.label, first.unit, first.k, first.left_out, second)


def score(task: Task, names: Sequence[str], unit: Unit) -> Ranking:
    """A ranking of pages or chunks in terms of what was judged.

    Args:
        task: What was asked.
        names: URIs of pages or ids of chunks, best first, each once.
        unit: Which of the two.
    """
    taken: list[str | None] = []
    for name in names:
        if unit == "page":
            taken.append(matched(name, task, taken))
        else:
            taken.append(name if name in task.gains else None)
    places = {name: i for i, name in enumerate(task.gains)}
    found = tuple(None if name is None else places[name] for name in taken)
    return Ranking(tuple(task.gains.values()), found)


def checked(retrieval: Any) -> RetrievalSpec:
    """How to rank.

    Raises:
        ConfigError: It is something else.
    """
    if not isinstance(retrieval, RetrievalSpec):
        raise ConfigError(f"retrieval={retrieval!r}: give a `kbkit.RetrievalSpec`")
    return retrieval


@dataclass(frozen=True, slots=True)
class _Run:
    """One configuration that is measured."""

    mode: Mode
    settings: RetrievalSpec
    label: str

    @classmethod
    def of(cls, kb: Searchable, mode: str | Mode, settings: RetrievalSpec | None) -> _Run:
        label = str(mode) if settings is None else f"{mode}, other settings"
        settings = kb.spec.retrieval if settings is None else checked(settings)
        try:
            mode = Mode(mode)
        except ValueError:
            raise ConfigError(
                f"mode={mode!r}: not known; choose one of {', '.join(Mode)}"
            ) from None
        return cls(mode, settings, label)

    def measure(self, kb: Searchable, tasks: Tasks, k: int, tell: OnProgress | None) -> Evaluation:
        settings = tasks.settings(self.settings)
        depth = max(DEPTH, k)
        found = []
        for number, task in enumerate(tasks):
            if tell is not None:
                tell(Progress("evaluate", number, len(tasks), task.query))
            found.append(self._names(kb, task.query, settings, tasks.unit, depth))
        rankings = [
            score(task, names, tasks.unit) for task, names in zip(tasks, found, strict=True)
        ]
        answers = tuple(
            Answer(
                question=task.query,
                relevant=task.relevant,
                found=names,
                ndcg=figure.ndcg,
                recall=figure.recall,
                reciprocal_rank=figure.reciprocal_rank,
                judged=figure.judged,
            )
            for task, names, figure in zip(tasks, found, figures(rankings, k), strict=True)
        )
        return Evaluation(answers, self.label, tasks.unit, k, tasks.left_out)

    def _names(
        self, kb: Searchable, query: str, settings: RetrievalSpec, unit: Unit, depth: int
    ) -> tuple[str, ...]:
        """URIs or ids of what is found, best first, each once."""
        names: list[str] = []
        # several hits may be of one page
        for limit in (depth,) if unit == "chunk" else (3 * depth, 10 * depth):
            hits = kb.search(query, limit=limit, mode=self.mode, retrieval=settings)
            names = [hit.uri if unit == "page" else hit.chunk.id for hit in hits]
            names = list(dict.fromkeys(names))[:depth]
            if len(names) == depth or len(hits) < limit:
                break
        return tuple(names)
