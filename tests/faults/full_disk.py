"""Tries actions on a nearly full disk; prints JSON lines.

    python full_disk.py FOLDER ROOMS ACTIONS

FOLDER is on a disk of its own, ROOMS are numbers of free bytes. An action that failed is repeated
with enough room, and must end as one that had it at once.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from tests.faults.actions import MIGRATE, opened, prepare
from tests.faults.cases import Case, Children, check_between, check_sound, state_of


def main(folder: Path, rooms: list[int], actions: list[str]) -> None:
    children, kept, place = Children(), folder / "kept", folder / "case"
    place.mkdir()
    with opened(place / "kb") as workspace:
        prepare(workspace, place / "source")
    place.rename(kept)

    def new(action: str) -> Case:
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(kept, place, symlinks=True)
        return Case(place, to=str(place / "moved/kb") if action == MIGRATE else "")

    before = check_sound(new(""))
    for action in actions:
        after = {}
        for size in (-1, *rooms):
            case = new(action)
            done = case.moved if action == MIGRATE else case
            status, *_, error = children.act(case, action, room=size)
            if size >= 0:
                now = state_of(case) if action == MIGRATE else check_sound(case)
                check_between(before, now, before if action == MIGRATE else after)
                # a moved workspace is not moved twice
                assert not status or children.act(case, action)[0] == 0, (action, size)
            final = check_sound(done)
            after = after or final
            assert final == after, (action, size)
            print(json.dumps([action, size, status, error]), flush=True)
    children.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]), json.loads(sys.argv[3]))
