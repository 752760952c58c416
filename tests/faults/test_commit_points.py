"""Whatever is done ends before each point at which something lasts; nothing is lost or half there.

All points, random instants beside them, and servers that go down are for `make soak`, which counts
them; `make test` has twenty points.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import zipfile
from collections import Counter
from dataclasses import dataclass, field

import pytest

from tests.faults.actions import ACTIONS, MIGRATE, opened, prepare
from tests.faults.cases import Case, Children, check_between, check_sound, state_of
from tests.make_old_catalogs import ARCHIVE, OLDEST
from tests.postgres import TO_0024

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.fixture(scope="module")
def children():
    running = Children()
    yield running
    running.close()


class Cases:
    """Gives copies of a workspace at one place, which its sources are named by."""

    def __init__(self, folder, server):
        self.place, self.kept, self.server = folder / "case", folder / "kept", server
        self.last = ""
        self.place.mkdir()
        self.url = server.empty() if server else ""
        with opened(self.place / "kb", self.url) as workspace:
            prepare(workspace, self.place / "source")
        self.place.rename(self.kept)

    def new(self, to=""):
        """As it was at first, perhaps to be moved."""
        shutil.rmtree(self.place, ignore_errors=True)
        shutil.copytree(self.kept, self.place, symlinks=True)
        if to == "a folder":
            to = str(self.place / "moved/kb")
        return Case(self.place, self._copied(self.url), to)

    def old(self):
        """One that an older kbkit has made: the first one, or the first that knew servers."""
        if self.server:
            case = self.new()
            for statement in TO_0024:
                self.server.execute(statement, database_of(case.url))
            return case
        shutil.rmtree(self.place, ignore_errors=True)
        (self.place / "kb").mkdir(parents=True)
        with zipfile.ZipFile(ARCHIVE) as archive:
            (self.place / "kb/catalog.db").write_bytes(archive.read(f"{OLDEST}.db"))
        return Case(self.place)

    def _copied(self, url):
        """A copy of a database, in place of the one before."""
        if self.server is None:
            return ""
        if self.last:
            self.server.execute(f"DROP DATABASE {database_of(self.last)} WITH (FORCE)")
        self.last = self.server.copy(url)
        return self.last


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    made = {}

    def of(server=None):
        if server not in made:
            made[server] = Cases(tmp_path_factory.mktemp("points"), server)
        return made[server]

    return of


def database_of(url):
    return url.partition("@/")[2].partition("?")[0]


def points(total, count):
    """Some of all points, first and last among them."""
    return sorted({1 + round(step * (total - 1) / max(1, count - 1)) for step in range(count)})


@dataclass
class Tally:
    """What was killed, and what was looked at afterwards."""

    kills: Counter = field(default_factory=Counter)
    documents: int = 0
    ratings: int = 0

    def count(self, what, action, *states):
        self.kills[what, action] += 1
        for found in states:
            kinds = Counter(key[0] for key in found)
            self.documents += kinds["document"]
            self.ratings += kinds["rating"]
            self.ratings += sum(len(value[1]) for key, value in found.items() if key[0] == "entry")

    def __str__(self):
        total = self.kills.total()
        lines = [f"{count:5} {what}: {action}" for (what, action), count in self.kills.items()]
        return "\n".join(
            [
                *lines,
                f"{total:5} kills; {self.documents:,} documents and {self.ratings:,} ratings "
                "looked at afterwards, none lost, none half there",
            ]
        )


class Trial:
    """An action that is killed; each time it is done again, and ends as one that was not."""

    def __init__(self, children, cases, action, tally):
        self.children, self.cases, self.action, self.tally = children, cases, action, tally
        self.server = cases.server
        self.where = "on a server" if self.server else "in a folder"
        self.before = None if action == "upgrade" else check_sound(self.new())
        whole = self.new()
        status, self.total, self.seconds, *_ = children.act(whole, action)
        assert status == 0, action
        self.after = self.found(whole)

    def new(self):
        return self.cases.old() if self.action == "upgrade" else self.cases.new()

    def found(self, case):
        return check_sound(case)

    def kill(self, how, **end):
        """Do it until it is killed; whether it was."""
        case = self.new()
        status, _, _, late, _ = self.children.act(case, self.action, **end)
        if end.get("victim") and late:
            self.server.stop()
            self.server.start()
        elif status == 0:
            return False
        else:
            assert status == signal.SIGKILL, (self.action, end, status)
        self.check(case, f"{how}, {self.where}", end)
        return True

    def is_done(self, said):
        """Whether doing it again is refused, since it was done before the end came."""
        return False

    def check(self, case, how, end):
        now = self.after if self.before is None else check_sound(case)
        if self.before is not None:
            check_between(self.before, now, self.after)
        status, *_, said = self.children.act(case, self.action)
        assert status == 0 or self.is_done(said), (self.action, end, said)
        again = self.found(case)
        assert again == self.after, (self.action, end)
        self.tally.count(how, self.action, *(() if self.before is None else (now,)), again)


class Move(Trial):
    """A workspace that is moved while it is killed: it is where it was, or in both places."""

    def __init__(self, children, cases, target, tally):
        self.target = target
        super().__init__(children, cases, MIGRATE, tally)
        assert self.after == self.before

    def new(self):
        return self.cases.new(self.target.empty() if self.target else "a folder")

    def is_done(self, said):
        return "a whole workspace exists there" in said

    def found(self, case):
        assert state_of(case) == self.before
        return check_sound(case.moved)


def check_points(trial, most):
    """Kill before each point, or some."""
    assert trial.total > 0
    for kill_at in points(trial.total, most or trial.total):
        trial.kill("before a point", kill_at=kill_at)


@pytest.mark.parametrize("action", ["ingest", "refresh", "delete", "rate", "learn"])
def test_some_points(children, cases, action):
    tally = Tally()
    check_points(Trial(children, cases(), action, tally), 4)
    assert tally.kills.total() == 4


def check_all(children, server_of, tally, target, capsys):
    """Kill all actions at all points and at some instants."""
    rng = random.Random(22)
    server = server_of.server
    for action in (*ACTIONS, MIGRATE):
        if action == MIGRATE:
            trial: Trial = Move(children, server_of, target, tally)
        else:
            trial = Trial(children, server_of, action, tally)
        check_points(trial, 4 if server else 0)
        for _ in range(2):
            trial.kill("at an instant", seconds=rng.uniform(0, trial.seconds))
        if server:
            end = {"victim": server.pid, "signal": int(signal.SIGQUIT)}
            trial.kill("the server", seconds=rng.uniform(0, trial.seconds), **end)
        with capsys.disabled():
            print(f"{trial.where}, {action}: {tally.kills.total()} kills so far", flush=True)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_three_hundred_kills(children, cases, postgres, capsys):
    tally = Tally()
    check_all(children, cases(), tally, postgres, capsys)
    check_all(children, cases(postgres), tally, None, capsys)
    with capsys.disabled():
        print(f"\n{tally}")
    assert tally.kills.total() >= 300
    assert {action for _, action in tally.kills} == {*ACTIONS, MIGRATE}
