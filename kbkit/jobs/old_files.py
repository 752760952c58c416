"""Delete files of jobs that nobody needs any more."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def delete_old(places: Iterable[Path], seconds: float) -> None:
    for place in places:
        with suppress(FileNotFoundError):
            if time.time() - place.stat().st_mtime <= seconds:
                continue
            if place.is_dir():
                shutil.rmtree(place, ignore_errors=True)
            else:
                place.unlink()
