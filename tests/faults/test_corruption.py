"""Damaged or unreadable files give at most one clear error and lose nothing."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.actions import LOOK, opened, prepare
from tests.faults.cases import Case, Children, check_sound

pytestmark = [pytest.mark.soak, pytest.mark.local, pytest.mark.timeout(7200)]

ROUNDS = int(os.environ.get("KBKIT_SOAK_DAMAGES", "60"))
DERIVED = ("chroma", "snapshots")
BOUND = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all")
"""Makes permissions apply to root."""


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A closed workspace with a graph of Chroma and a snapshot."""
    place = tmp_path_factory.mktemp("damaged") / "kept"
    place.mkdir()
    with opened(place / "kb") as workspace:
        prepare(workspace, place / "source")
        text = "\n\n".join(f"## Cup {number}\n\nClay {number}.\n" for number in range(1_100))
        kb = workspace["manual"]
        kb.add("Cups", f"# Cups\n\n{text}")
        workspace._stores.vectors.apply(kb.id)
        workspace._stores.snapshots.save(kb.id)
    return place


@contextmanager
def children(*before):
    running = Children(*before)
    yield running
    running.close()


def new(kept):
    place = kept.with_name("case")
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(kept, place)
    return Case(place)


def damaged(chance, path):
    """Damage a file in a random way, which is returned."""
    data = bytearray(path.read_bytes())
    how = chance.choice(["bits", "cut off", "zeros", "noise"])
    if how == "bits":
        for _ in range(chance.randint(1, 20)):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    elif how == "cut off":
        del data[chance.randrange(len(data)) :]
    else:
        start, size = chance.randrange(len(data)), chance.choice([16, 512, 4096])
        some = data[start : start + size]
        some[:] = bytes(len(some)) if how == "zeros" else chance.randbytes(len(some))
        data[start : start + size] = some
    path.write_bytes(data)
    return how


def test_damaged_file_gives_at_most_one_error(kept, capsys):
    chance, counts = random.Random(os.environ.get("KBKIT_SEED")), {}
    before = check_sound(new(kept))
    with children() as running:
        for number in range(ROUNDS):
            case = new(kept)
            files = [
                path
                for path in sorted(case.folder.rglob("*"))
                if path.is_file()
                and path.stat().st_size
                and path.relative_to(case.folder).parts[0] in (*DERIVED, "catalog.db")
            ]
            path = chance.choice(files)
            how = damaged(chance, path)
            place = (str(path.relative_to(case.folder)), how, number)
            status, *_, error = running.act(case, LOOK)
            assert not status or error, place  # neither a raw error nor a signal
            if path.name != "catalog.db":
                assert status == 0, (place, error)
                assert check_sound(case) == before, place
            counts[how, bool(status)] = counts.get((how, bool(status)), 0) + 1
    with capsys.disabled():
        print(f"\n{ROUNDS} damages, by kind and whether an error was told: {counts}")


def test_unreadable_file_gives_at_most_one_error(kept):
    before = BOUND if os.geteuid() == 0 else ()
    test = [*before, sys.executable, "-c", f"import os; print(os.access({str(kept)!r}, 4))"]
    if before and (not shutil.which("setpriv") or subprocess.run(test, check=False).returncode):
        pytest.skip("runs as root, and there is no setpriv that permissions bind")
    content = check_sound(new(kept))
    paths = sorted(path.relative_to(kept) for path in (kept / "kb").rglob("*"))
    with children(*before) as running:
        for path in [Path("kb"), *paths]:
            if "locks" in path.parts:
                continue
            case = new(kept)
            shut = case.place / path
            mode = shut.stat().st_mode
            shut.chmod(0)
            status, *_, error = running.act(case, LOOK)
            shut.chmod(mode)
            assert not status or error, path
            assert running.act(case, LOOK)[0] == 0, path
            assert check_sound(case) == content, path
