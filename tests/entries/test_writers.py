"""Concurrent votes and changes, and processes that are killed."""

import os
import random
import signal

import pytest

import kbkit
from kbkit.entries.skill_file import read_votes
from tests.entries.conftest import write_files
from tests.waiting import WAIT, begin, start

WRITER = """
import sys
import kbkit
ws = kbkit.open(sys.argv[1])
me = sys.argv[2]
"""
LONG = "KBKIT_EXAMPLES" in os.environ  # `make soak`
VOTES = 12
KILLED_VOTES, KILLS = (200, (15, 40)) if LONG else (60, (6, 16))
"""All votes, and how many of them a process gives before it is killed."""


@pytest.mark.soak
def test_concurrent_votes_lose_nothing(ws):
    ws.entries.create("One")
    code = f"""
for number in range({VOTES}):
    ws.entries.rate("one", 1 + number % 5, rater=f"{{me}} {{number}}")
"""
    processes = [start(WRITER + WAIT + code, ws.path, name) for name in "abcd"]
    begin(*processes)
    assert [process.wait(250) for process in processes] == [0] * 4
    votes = ws.entries.read("one").rating.votes
    assert sorted((vote.rater, vote.score) for vote in votes) == sorted(
        (f"{me} {number}", 1 + number % 5) for me in "abcd" for number in range(VOTES)
    )
    assert len(ws["entries"].ratings) == 4 * VOTES
    (listed,) = ws.entries.list()
    assert listed.rating.count == 4 * VOTES
    assert listed.rating.average == ws.entries.read("one").rating.average


@pytest.mark.soak
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_kills_during_votes_leave_whole_files(tmp_path):
    """Reported votes are there; average, count and catalog agree with them."""
    place = tmp_path / "ws"
    with kbkit.open(place) as ws:
        ws.entries.create("One", prompt="Stays\n", description="Stays too")
    code = """
for number in range(int(sys.argv[3]), int(sys.argv[4])):
    ws.entries.rate("one", 1 + number % 5, rater=str(number))
    print(number, flush=True)
"""
    chance = random.Random(5)
    reported, kills = set(), 0
    while len(reported) < KILLED_VOTES:
        process = start(
            WRITER + WAIT + code, place, "x", max(reported, default=-1) + 1, KILLED_VOTES
        )
        begin(process)
        left = chance.randint(*KILLS)
        for line in process.stdout:
            reported.add(int(line))
            left -= 1
            if left == 0:
                process.kill()  # during the next vote
        process.wait(60)
        kills += process.returncode != 0
        votes = read_votes((place / "entries/one/votes.jsonl").read_bytes())
        assert reported <= {int(vote.rater) for vote in votes}
    assert kills >= 4
    with kbkit.open(place) as ws:
        entry = ws.entries.read("one")
        (listed,) = ws.entries.list()
        assert listed.rating.count == entry.rating.count
        assert listed.rating.average == entry.rating.average
        assert len(ws["entries"].ratings) == entry.rating.count
        assert {(int(vote.rater), vote.score) for vote in entry.rating.votes} == {
            (number, 1 + number % 5) for number in range(KILLED_VOTES)
        }
        assert (entry.prompt, entry.description) == ("Stays\n", "Stays too")
        ws.entries.sync()
    assert sorted(each.name for each in (place / "entries").iterdir()) == [".gitattributes", "one"]


BETWEEN = """
import os, signal
from kbkit.entries.{module} import {name}
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
{name}.{method} = die
ws.entries.rate("one", 2, rater="last")
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_kill_between_folder_and_catalog_is_repaired(ws):
    ws.entries.create("One")
    ws.entries.rate("one", 5, rater="first")
    code = BETWEEN.format(module="index", name="EntryIndex", method="level")
    process = start(WRITER + WAIT + code, ws.path, "x")
    begin(process)
    assert process.wait(60) == -signal.SIGKILL
    assert ws.entries.read("one").rating.count == 2
    assert len(ws["entries"].ratings) == 1  # the catalog does not know yet
    (listed,) = ws.entries.list()
    assert (listed.rating.count, listed.rating.average) == (2, 3.5)
    assert len(ws["entries"].ratings) == 2


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
@pytest.mark.parametrize("when", [1, 2, 3])
@pytest.mark.soak
def test_kill_during_a_folder_swap_leaves_a_whole_entry(ws, tmp_path, when):
    """A kill at any move leaves the old entry or the new one."""
    task = tmp_path / ".knowledge"
    write_files(task, {"skill.yaml": "title: One\n", "prompt.md": "old", "code/a.py": "old"})
    ws.entries.learn(task)
    ws.entries.rate("one", 4)
    (task / "code/a.py").unlink()
    write_files(task, {"prompt.md": "new", "code/b.py": "new"})
    code = f"""
import os, signal
from kbkit.files.directory import Directory
moves, move = 0, Directory.move
def counted(*arguments):
    global moves
    moves += 1
    if moves == {when}:
        os.kill(os.getpid(), signal.SIGKILL)
    move(*arguments)
Directory.move = counted
ws.entries.learn(sys.argv[2])
"""
    process = start(WRITER + WAIT + code, ws.path, task)
    begin(process)
    assert process.wait(60) == -signal.SIGKILL
    if when > 1:
        ws.entries.sync()
    entry = ws.entries.read("one")
    is_new = when > 1  # it is complete before the second move
    assert entry.prompt == ("new" if is_new else "old")
    assert [file.path for file in entry.files] == ["code/b.py" if is_new else "code/a.py"]
    assert entry.rating.count == 1
    ws.entries.sync()
    names = {each.name for each in ws.entries.path.iterdir()}
    assert names - {".trash"} == {".gitattributes", "one"}
