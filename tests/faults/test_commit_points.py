"""Actions are killed before points at which changes become permanent; nothing is lost or partial.

`make test` has twenty points, `make soak` all of them, random instants and failing servers.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
from collections import Counter

import pytest

from tests.faults.actions import ACTIONS, MIGRATE, opened, prepare
from tests.faults.cases import Case, check_between, check_sound, state_of
from tests.postgres import TO_0024
from tests.stores.workspaces import oldest_catalog

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


class Cases:
    """Copies of a workspace at one place, since sources are named by paths."""

    def __init__(self, folder, server):
        self.place, self.kept, self.server = folder / "case", folder / "kept", server
        self.last = ""
        self.place.mkdir()
        self.url = server.empty() if server else ""
        with opened(self.place / "kb", self.url) as workspace:
            prepare(workspace, self.place / "source")
        self.place.rename(self.kept)

    def new(self, to=""):
        shutil.rmtree(self.place, ignore_errors=True)
        shutil.copytree(self.kept, self.place, symlinks=True)
        if to == "a folder":
            to = str(self.place / "moved/kb")
        return Case(self.place, self._copied(self.url), to)

    def old(self):
        """A workspace of the oldest kbkit, or of the oldest with servers."""
        if self.server:
            case = self.new()
            for statement in TO_0024:
                self.server.execute(statement, database_of(case.url))
            return case
        shutil.rmtree(self.place, ignore_errors=True)
        oldest_catalog(self.place / "kb")
        return Case(self.place)

    def _copied(self, url):
        """Copy a database, and drop the previous copy."""
        if self.server is None:
            return ""
        if self.last:
            self.server.execute(f"DROP DATABASE {database_of(self.last)} WITH (FORCE)")
        self.last = self.server.copy(url)
        return self.last


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    by_server = {}

    def of(server=None):
        if server not in by_server:
            by_server[server] = Cases(tmp_path_factory.mktemp("points"), server)
        return by_server[server]

    return of


def database_of(url):
    return url.partition("@/")[2].partition("?")[0]


def points(total, count):
    """Evenly spread points, with the first and the last."""
    return sorted({1 + round(step * (total - 1) / max(1, count - 1)) for step in range(count)})


class Trial:
    """An action that is killed and repeated, and then ends as an undisturbed one."""

    def __init__(self, children, cases, action, kills):
        self.children, self.cases, self.action, self.kills = children, cases, action, kills
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
        case = self.new()
        status, _, _, late, _ = self.children.act(case, self.action, **end)
        if end.get("victim") and late:
            self.server.stop()
            self.server.start()
        elif status == 0:
            return
        else:
            assert status == signal.SIGKILL, (self.action, end, status)
        self.check(case, end)
        self.kills[how, self.where, self.action] += 1

    def is_done(self, error):
        """Whether the repetition is refused because the first run completed."""
        return False

    def check(self, case, end):
        if self.before is not None:
            check_between(self.before, check_sound(case), self.after)
        status, *_, error = self.children.act(case, self.action)
        assert status == 0 or self.is_done(error), (self.action, end, error)
        assert self.found(case) == self.after, (self.action, end)


class Move(Trial):
    """A killed migration: the workspace is at its old place, or at both."""

    def __init__(self, children, cases, target, kills):
        self.target = target
        super().__init__(children, cases, MIGRATE, kills)
        assert self.after == self.before

    def new(self):
        return self.cases.new(self.target.empty() if self.target else "a folder")

    def is_done(self, error):
        return "a whole workspace exists there" in error

    def found(self, case):
        assert state_of(case) == self.before
        return check_sound(case.moved)


def check_points(trial, most):
    """Kill before each point, or before some."""
    assert trial.total > 0
    for kill_at in points(trial.total, most or trial.total):
        trial.kill("before a point", kill_at=kill_at)


@pytest.mark.parametrize("action", ["ingest", "refresh", "delete", "rate", "learn"])
def test_kill_at_some_commit_points(children, cases, action):
    kills = Counter()
    check_points(Trial(children, cases(), action, kills), 4)
    assert kills.total() == 4


def check_all(children, cases, kills, target, capsys):
    """Kill all actions at all points and at random instants."""
    rng = random.Random(22)
    server = cases.server
    for action in (*ACTIONS, MIGRATE):
        if action == MIGRATE:
            trial = Move(children, cases, target, kills)
        else:
            trial = Trial(children, cases, action, kills)
        check_points(trial, 4 if server else 0)
        for _ in range(2):
            trial.kill("at an instant", seconds=rng.uniform(0, trial.seconds))
        if server:
            end = {"victim": server.pid, "signal": int(signal.SIGQUIT)}
            trial.kill("the server", seconds=rng.uniform(0, trial.seconds), **end)
        with capsys.disabled():
            print(f"{trial.where}, {action}: {kills.total()} kills so far", flush=True)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_kill_at_all_commit_points(children, cases, postgres, capsys):
    kills = Counter()
    check_all(children, cases(), kills, postgres, capsys)
    check_all(children, cases(postgres), kills, None, capsys)
    with capsys.disabled():
        print(f"\n{kills}")
    assert kills.total() >= 300
    assert {action for *_, action in kills} == {*ACTIONS, MIGRATE}
