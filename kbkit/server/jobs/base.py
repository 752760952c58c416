"""What tasks share: they stop through their progress callback, and delete old files."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from kbkit.models import Progress
from kbkit.runtime.progress import OnProgress


class Stopped(Exception):  # noqa: N818 - it ends work, and is no error
    """The job was cancelled."""


def stopping(on_progress: OnProgress, stop: Callable[[], bool]) -> OnProgress:
    def tell(progress: Progress) -> None:
        if stop():
            raise Stopped
        on_progress(progress)

    return tell


def delete_old(places: Iterable[Path], seconds: float) -> None:
    for place in places:
        with suppress(FileNotFoundError):
            if time.time() - place.stat().st_mtime <= seconds:
                continue
            if place.is_dir():
                shutil.rmtree(place, ignore_errors=True)
            else:
                place.unlink()
