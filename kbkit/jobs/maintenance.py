"""Jobs that look after a workspace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kbkit.models.values import to_json
from kbkit.progress import OnProgress
from kbkit.workspace import Workspace


def doctor(
    workspace: Workspace,
    arguments: Mapping[str, Any],
    on_progress: OnProgress,
    stop: Callable[[], bool],
) -> Mapping[str, Any]:
    """Examine all that is kept, and mend nothing. No arguments."""
    told: Mapping[str, Any] = to_json(workspace.doctor())
    return told
