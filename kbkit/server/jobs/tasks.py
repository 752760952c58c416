"""The tasks behind jobs, by kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from kbkit.feedback.judgements import Judgements
from kbkit.models import Mode
from kbkit.models.values import to_json
from kbkit.recipes import Question, RetrievalSpec
from kbkit.runtime.progress import OnProgress
from kbkit.server.jobs import exports, knowledge
from kbkit.server.jobs.base import Stopped, stopping
from kbkit.workspace import Workspace


def doctor(
    workspace: Workspace,
    arguments: Mapping[str, Any],
    on_progress: OnProgress,
    stop: Callable[[], bool],
) -> Mapping[str, Any]:
    values: Mapping[str, Any] = to_json(workspace.doctor())
    return values


def evaluate(
    workspace: Workspace,
    arguments: Mapping[str, Any],
    on_progress: OnProgress,
    stop: Callable[[], bool],
) -> Mapping[str, Any]:
    """Measure search.

    Arguments: ``kb``; ``questions`` or ``judgements``; ``mode``, ``retrieval``, ``against``, ``k``;
    ``improve``, whether to wait for models first.
    """
    try:
        return evaluated(workspace, arguments, stopping(on_progress, stop))
    except Stopped:
        return {}


def evaluated(
    workspace: Workspace, arguments: Mapping[str, Any], on_progress: OnProgress
) -> Mapping[str, Any]:
    """Return an evaluation as JSON values; see `evaluate`."""
    retrieval, against = arguments.get("retrieval"), arguments.get("against")
    evaluation = workspace[arguments["kb"]].feedback.evaluate(
        _ground_truth(arguments),
        mode=arguments.get("mode", Mode.HYBRID),
        retrieval=None if retrieval is None else RetrievalSpec.model_validate(retrieval),
        against=RetrievalSpec.model_validate(against) if isinstance(against, Mapping) else against,
        k=arguments.get("k", 10),
        wait=arguments.get("improve", False),
        on_progress=on_progress,
    )
    values: Mapping[str, Any] = to_json(evaluation.to_dict())
    return values


def tune(
    workspace: Workspace,
    arguments: Mapping[str, Any],
    on_progress: OnProgress,
    stop: Callable[[], bool],
) -> Mapping[str, Any]:
    """Learn the weights of search.

    Arguments: ``kb``; ``questions`` or ``judgements``; ``others``, each with ``kb`` and the same;
    ``keep``, ``seed``, ``improve``.
    """
    others: dict[Any, Any] = {
        workspace[each["kb"]]: _ground_truth(each) for each in arguments.get("others", ())
    }
    try:
        report = workspace[arguments["kb"]].feedback.tune(
            _ground_truth(arguments),
            others=others or None,
            keep=arguments.get("keep", False),
            seed=arguments.get("seed", 0),
            wait=arguments.get("improve", False),
            on_progress=stopping(on_progress, stop),
        )
    except Stopped:
        return {}
    values: Mapping[str, Any] = to_json(report.to_dict())
    return values


def _ground_truth(arguments: Mapping[str, Any]) -> list[Question] | Judgements | None:
    if questions := arguments.get("questions"):
        return [Question.model_validate(each) for each in questions]
    judgements = arguments.get("judgements")
    return None if judgements is None else Judgements.of(judgements)


Stop = Callable[[], bool]


class JobTask(Protocol):
    """Runs a job from its arguments; a second run continues the first."""

    def __call__(
        self,
        workspace: Workspace,
        arguments: Mapping[str, Any],
        on_progress: OnProgress,
        stop: Stop,
    ) -> Mapping[str, Any]:
        """Do it."""


TASKS: dict[str, JobTask] = {
    "import": knowledge.import_sources,
    "refresh": knowledge.refresh,
    "configure": knowledge.configure,
    "improve": knowledge.improve,
    "annotate": knowledge.annotate,
    "expand": knowledge.expand,
    "evaluate": evaluate,
    "tune": tune,
    "export": exports.export,
    "doctor": doctor,
    "bundle": exports.bundle,
    "restore": exports.restore,
}
"""Tasks by kind, see `kbkit.models.jobs.KINDS`."""
