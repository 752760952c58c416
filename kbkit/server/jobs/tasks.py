"""Tasks of jobs, by kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kbkit.feedback.judgements import Judgements
from kbkit.models import Mode
from kbkit.models.values import to_json
from kbkit.recipes import Question, RetrievalSpec
from kbkit.server.jobs import exports, knowledge
from kbkit.server.jobs.base import JobRun


def evaluate(run: JobRun) -> Any:
    """Measure search; ``improve`` waits for models first."""
    arguments = run.arguments
    retrieval, against = arguments.get("retrieval"), arguments.get("against")
    evaluation = run.kb.feedback.evaluate(
        _ground_truth(arguments),
        mode=arguments.get("mode", Mode.HYBRID),
        retrieval=None if retrieval is None else RetrievalSpec.model_validate(retrieval),
        against=RetrievalSpec.model_validate(against) if isinstance(against, Mapping) else against,
        k=arguments.get("k", 10),
        wait=arguments.get("improve", False),
        on_progress=run.tell,
    )
    return to_json(evaluation.to_dict())


def tune(run: JobRun) -> Any:
    """Learn the weights of search; ``improve`` waits for models first."""
    arguments = run.arguments
    others: dict[Any, Any] = {
        run.workspace[each["kb"]]: _ground_truth(each) for each in arguments.get("others", ())
    }
    report = run.kb.feedback.tune(
        _ground_truth(arguments),
        others=others or None,
        keep=arguments.get("keep", False),
        seed=arguments.get("seed", 0),
        wait=arguments.get("improve", False),
        on_progress=run.tell,
    )
    return to_json(report.to_dict())


def _ground_truth(arguments: Mapping[str, Any]) -> list[Question] | Judgements | None:
    if questions := arguments.get("questions"):
        return [Question.model_validate(each) for each in questions]
    judgements = arguments.get("judgements")
    return None if judgements is None else Judgements.of(judgements)


JobTask = Callable[[JobRun], Any]
"""Runs a job, and returns its result: a value object or JSON values."""

TASKS: dict[str, JobTask] = {
    "import": knowledge.import_sources,
    "refresh": knowledge.refresh,
    "configure": knowledge.configure,
    "improve": knowledge.improve,
    "annotate": lambda run: run.kb.annotations.make(**run.calls),
    "expand": knowledge.expand,
    "evaluate": evaluate,
    "tune": tune,
    "export": exports.export,
    "doctor": lambda run: run.workspace.doctor(),
    "bundle": exports.bundle,
    "restore": exports.restore,
}
"""Tasks by kind, see `kbkit.models.jobs.KINDS`."""
