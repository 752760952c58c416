"""What a task works with, and files that jobs leave for some days."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kbkit.knowledge_base import KnowledgeBase
from kbkit.models import Progress
from kbkit.runtime.progress import OnProgress
from kbkit.workspace import Workspace


class Stopped(Exception):  # noqa: N818 - it ends work, and is no error
    """The job was cancelled."""


@dataclass(frozen=True, slots=True)
class JobRun:
    """One run of a job; a second run continues the first.

    Attributes:
        arguments: As the request gave them, JSON values.
        on_progress: Stores the progress.
        stop: Asked often; true ends the work cleanly.
    """

    workspace: Workspace
    arguments: Mapping[str, Any]
    on_progress: OnProgress = lambda _: None
    stop: Callable[[], bool] = lambda: False

    @property
    def kb(self) -> KnowledgeBase:
        """The knowledge base that the arguments name."""
        return self.workspace[self.arguments["kb"]]

    @property
    def calls(self) -> dict[str, Any]:
        """Arguments of methods that ask whether to stop."""
        return {"on_progress": self.on_progress, "stop": self.stop}

    def tell(self, progress: Progress) -> None:
        """Take the progress of a method that does not ask whether to stop.

        Raises:
            Stopped: It shall.
        """
        if self.stop():
            raise Stopped
        self.on_progress(progress)


def delete_old(places: Iterable[Path], seconds: float) -> None:
    for place in places:
        with suppress(FileNotFoundError):
            if time.time() - place.stat().st_mtime <= seconds:
                continue
            if place.is_dir():
                shutil.rmtree(place, ignore_errors=True)
            else:
                place.unlink()
