"""Runs of jobs, and their old files."""

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


class Stopped(Exception):  # noqa: N818 - not an error
    """The job was cancelled."""


@dataclass(frozen=True, slots=True)
class JobRun:
    """One run of a job, with the JSON values of its request; a second run continues the first."""

    workspace: Workspace
    arguments: Mapping[str, Any]
    on_progress: OnProgress = lambda _: None
    stop: Callable[[], bool] = lambda: False

    @property
    def kb(self) -> KnowledgeBase:
        return self.workspace[self.arguments["kb"]]

    @property
    def calls(self) -> dict[str, Any]:
        """Keyword arguments for methods that support `stop`."""
        return {"on_progress": self.on_progress, "stop": self.stop}

    def tell(self, progress: Progress) -> None:
        """Report progress of a method without `stop`; raise `Stopped` if the job must end."""
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
