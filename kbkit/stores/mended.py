"""What was found damaged and made anew by itself, noted for whoever looks after the workspace."""

from __future__ import annotations

import contextlib
import json
from datetime import UTC, datetime
from pathlib import Path

_NAME = "mended.jsonl"
_LONGEST = 100_000
"""Bytes of notes, behind which they begin anew."""


def note(folder: Path, part: str, problem: str) -> None:
    """Note what was found; a folder that cannot be written gets none.

    Args:
        folder: Of the workspace.
        part: What was damaged, as `kbkit.models.health.Finding` names it.
        problem: What was wrong, in words.
    """
    path = folder / _NAME
    text = json.dumps([f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", part, problem]) + "\n"
    with contextlib.suppress(OSError):
        mode = "a" if path.exists() and path.stat().st_size < _LONGEST else "w"
        with path.open(mode, encoding="utf-8") as file:
            file.write(text)


def notes(folder: Path) -> list[tuple[str, str]]:
    """Part, and problem with the time it was found last, of all that was noted."""
    last: dict[tuple[str, str], str] = {}
    with contextlib.suppress(OSError):
        for line in (folder / _NAME).read_bytes().splitlines():
            with contextlib.suppress(ValueError, TypeError, RecursionError):
                at, part, problem = map(str, json.loads(line))
                last[part, problem] = at
    return [(part, f"{problem} (found {at})") for (part, problem), at in last.items()]


def forget(folder: Path) -> None:
    """Forget what was noted."""
    with contextlib.suppress(OSError):
        (folder / _NAME).unlink(missing_ok=True)
