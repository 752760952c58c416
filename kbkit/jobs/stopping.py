"""Stop work through its progress callback."""

from __future__ import annotations

from collections.abc import Callable

from kbkit.models import Progress
from kbkit.progress import OnProgress


class Stopped(Exception):  # noqa: N818 - it ends work, and is no error
    """The job was cancelled."""


def stopping(on_progress: OnProgress, stop: Callable[[], bool]) -> OnProgress:
    def tell(progress: Progress) -> None:
        if stop():
            raise Stopped
        on_progress(progress)

    return tell
