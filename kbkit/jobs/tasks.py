"""What jobs do, by the kind that the catalog names it by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from kbkit.jobs import bundles, exports, knowledge, maintenance, measures
from kbkit.progress import OnProgress
from kbkit.workspace import Workspace

Stop = Callable[[], bool]


class Task(Protocol):
    """Does the work of a job; done again from its arguments, it goes on where it was."""

    def __call__(
        self,
        workspace: Workspace,
        arguments: Mapping[str, Any],
        on_progress: OnProgress,
        stop: Stop,
    ) -> Mapping[str, Any]:
        """Do it.

        Args:
            workspace: Where.
            arguments: JSON values, as they were when the job was asked for.
            on_progress: Called with how far it has come.
            stop: Asked often; true ends the work cleanly.

        Returns:
            What came of it, as JSON values.

        Raises:
            KbkitError: It cannot be done.
        """


TASKS: dict[str, Task] = {
    "import": knowledge.import_sources,
    "refresh": knowledge.refresh,
    "configure": knowledge.configure,
    "improve": knowledge.improve,
    "annotate": knowledge.annotate,
    "expand": knowledge.expand,
    "evaluate": measures.evaluate,
    "tune": measures.tune,
    "export": exports.export,
    "doctor": maintenance.doctor,
    "bundle": bundles.bundle,
    "restore": bundles.restore,
}
"""By kind, of `kbkit.models.jobs.KINDS`."""
