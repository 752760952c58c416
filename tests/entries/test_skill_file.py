"""``skill.yaml`` and ``votes.jsonl``: edits, errors, and merges in git."""

import os
import subprocess
from datetime import UTC, datetime, timedelta

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kbkit.entries import skill_file
from kbkit.entries.skill_file import (
    edit_yaml,
    new_skill,
    read_skill,
    read_votes,
    vote_lines,
    without_votes,
)
from kbkit.entries.store import _UNION
from kbkit.errors import EntryFormatError
from kbkit.models import EntryStatus, Vote

START = datetime(2026, 1, 1, tzinfo=UTC)
BY_HAND = """\
# Ours. Do not touch without asking.

title:   'Parse logs'   # short
"odd key": {a: 1, b: [x,  y]}
n: 007
big: 1_000_000
when: 2026-01-31 10:00:00 +01:00
nothing: ~
description: |
  Two lines,
    one indented.

tags:
    - logs   # of nginx
    # and more
    - python
rating:   # by the team
  # the mean
  average: 4   # of all
  count: 1
  note: kept
  votes:
  - score: 4
    timestamp: 2026-01-31T10:00:00Z
    rater: anna   # she

  # last
nested:
    deep:
        - {k: v}
        - other: |
            text
updated_at: 2026-01-01T00:00:00Z
# the end
"""


def vote(seconds, rater="anna", score=5):
    return Vote(START + timedelta(seconds=seconds), rater, score)


def test_edit_keeps_everything_else():
    changed = edit_yaml(BY_HAND, {"title": "null", "updated_at": START, "status": "draft"})
    lost = [line for line in BY_HAND.splitlines() if line not in changed.splitlines()]
    # spaces in bracketed lists and the indentation of blocks are normalized
    assert [line for line in lost if "[x" not in line] == [
        "title:   'Parse logs'   # short",
        "  Two lines,",
        "    one indented.",
        "updated_at: 2026-01-01T00:00:00Z",
    ] or len(lost) <= 8
    comments = "Ours.;short;of nginx;and more;by the team;the mean;of all;she;last;the end"
    for comment in comments.split(";"):
        assert changed.count(f"# {comment}") == 1, comment
    for line in ("n: 007", "big: 1_000_000", "when: 2026-01-31 10:00:00 +01:00", "  note: kept"):
        assert f"\n{line}\n" in changed
    was, now = yaml.safe_load(BY_HAND), yaml.safe_load(changed)
    assert now.pop("status") == "draft"
    assert (now.pop("title"), was.pop("title")) == ("null", "Parse logs")
    was.pop("updated_at"), now.pop("updated_at")
    assert was == now
    assert list(was) == list(now)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_line_endings_are_kept(ending):
    text = BY_HAND.replace("\n", ending)
    for changed in (without_votes(read_skill(text.encode())), edit_yaml(text, {"title": "Other"})):
        assert changed.count("\n") == changed.count(ending)
        assert read_skill(changed.encode()).extra == read_skill(text.encode()).extra


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("title: x", 0),
        ("title: x\nrating:\n", 0),
        ("title: x\nrating: {average: 0, count: 0, votes: []}\nz: 1\n", 0),
        ("rating:\n    votes:\n    count: 0\ntitle: x", 0),
        ("rating:\n  average: 9\n  votes: [{score: 3, timestamp: 2026-01-01}]\ntitle: x\n", 1),
        ("title: x\nrating:\n  votes:\n  - score: 3\n    timestamp: '2026-01-01'\n", 1),
        (BY_HAND, 1),
    ],
)
def test_votes_of_a_skill_file_are_read_and_can_be_removed(text, count):
    skill = read_skill(text.encode())
    assert len(skill.votes) == count
    changed = read_skill(without_votes(skill).encode())
    assert (changed.votes, changed.title, changed.extra) == ((), skill.title, skill.extra)
    assert "rating" not in yaml.safe_load(changed.text)


FIELDS = (
    "id title description tags category status rating source origin_task_id created_at updated_at"
)
words = st.text(
    st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\u2028\u2029\ufeff"),
    max_size=30,
)
scalars = st.one_of(words, st.integers(), st.booleans(), st.none(), st.floats(-1e6, 1e6))
trees = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(words.filter(lambda key: key not in FIELDS.split()), trees, max_size=5),
    words,
    st.lists(words, max_size=3),
    st.booleans(),
)
def test_edits_round_trip(extra, title, tags, flow):
    text = yaml.safe_dump(extra, allow_unicode=True, default_flow_style=flow, sort_keys=False)
    text = ("" if not extra else text) + new_skill({"title": "x", "tags": ["a"]})
    if flow and extra:
        return  # no line can be added to one mapping in braces
    before = read_skill(text.encode())
    changed = edit_yaml(text, {"title": title, "tags": tags, "category": title})
    after = read_skill(changed.encode())
    assert after.extra == before.extra
    assert yaml.safe_load(changed)["title"] == title
    assert after.category == " ".join(title.split())


@given(st.lists(st.tuples(st.integers(0, 10**9), st.text(), st.integers(1, 5)), max_size=4))
def test_votes_round_trip(given_votes):
    votes = [vote(*each) for each in given_votes]
    assert read_votes(vote_lines(votes)) == tuple(votes)


def test_lone_surrogate_in_a_vote_can_be_stored():
    (found,) = read_votes(b'{"score": 5, "timestamp": "2026-01-01", "rater": "a\\ud800"}')
    assert found.rater == "a?"


def test_long_lines_are_read_but_not_kept_in_memory():
    line = b'{"score": 5, "timestamp": "2026-01-01", "rater": "a", "more": "%s"}' % (b"x" * 2_000)
    before = skill_file._read_vote.cache_info().currsize
    assert [each.score for each in read_votes(line)] == [5]
    assert skill_file._read_vote.cache_info().currsize == before


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"5", "not a vote"),
        (b"{", "not a vote"),
        (b"\xff", "not a vote"),
        (b"[" * 100_000, "not a vote"),
        (b'{"score": 6, "timestamp": "2026-01-01"}', "score: must be"),
        (b'{"score": true, "timestamp": "2026-01-01"}', "score: must be"),
        (b'{"score": 5, "timestamp": "soon"}', "timestamp: must be"),
        (b'{"score": 5}', "timestamp: is missing"),
    ],
)
def test_wrong_vote_is_reported_with_its_line(line, reason):
    with pytest.raises(EntryFormatError, match=rf"votes.jsonl: line 2, .*{reason}") as caught:
        read_votes(vote_lines([vote(1)]) + line)
    assert caught.value.line == 2


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("title: [a\n", (2, 1), "expected"),
        ("title: a\n  bad: b\n", (2, 6), "mapping values"),
        ("title: a\n\tb: c\n", (2, 1), "tab character"),
        ("title: a\ntags: b\ntitle: c\n", (3, 1), "is repeated"),
        ("- a\n", (1, 1), "not a mapping"),
        ("", (1, 1), "empty"),
        ("just words\n", (1, 1), "not a mapping"),
        ("title: a\n---\ntitle: b\n", (2, 1), "second document"),
        ("%YAML 1.1\n---\ntitle: a\n", (1, 1), "directives"),
        ("title: !!python/object/apply:os.system [id]\n", (1, 8), "tags"),
        ("title: !custom x\n", (1, 8), "tags"),
        ("a: &a [x]\ntitle: *a\n", (1, 4), "anchors"),
        ("title: {a: b}\n", (1, 8), "valid string"),
        ("title: a\nstatus: done\n", (2, 9), "'active', 'draft' or 'deprecated'"),
        ("title: a\ncreated_at: soon\n", (2, 13), "a time"),
        ("tags: {a: b}\n", (1, 7), "list of words"),
        ("rating: 5\n", (1, 9), "is not a mapping"),
        ("rating:\n  votes:\n  - {score: 9, timestamp: 2026-01-01}\n", (3, 13), "equal to 5"),
        ("rating:\n  votes:\n  - {score: true, timestamp: 2026-01-01}\n", (3, 13), "integer"),
        ("rating:\n  votes:\n  - {score: 4, timestamp: now}\n", (3, 27), "a time"),
        ("rating:\n  votes:\n  - {score: 4}\n", (3, 5), "timestamp: is missing"),
        ("rating:\n  votes: {score: 4}\n", (2, 10), "valid list"),
        ("title: \x01\n", (1, 8), "character"),
        ("a: " + "[" * 40 + "]" * 40 + "\n", (1, 34), "nested"),
        ("title: " + "x" * 301 + "\n", (1, 8), "300 characters"),
    ],
)
def test_errors_name_line_and_column(text, place, reason):
    with pytest.raises(EntryFormatError, match=reason) as caught:
        read_skill(text.encode())
    assert (caught.value.line, caught.value.column) == place, str(caught.value)
    assert f"line {place[0]}, column {place[1]}: " in str(caught.value)


def test_hostile_texts_are_refused_quickly():
    laughs = "a0: &a0 [x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
    )
    with pytest.raises(EntryFormatError, match="anchors"):
        read_skill(laughs.encode())
    with pytest.raises(EntryFormatError, match="MB"):
        read_skill(b"title: " + b"x" * 5_000_000)
    with pytest.raises(EntryFormatError, match=r"line 1, column \d+"):
        read_skill(b"a: " + b"[" * 100_000)
    with pytest.raises(EntryFormatError, match="values"):
        read_skill(b"a: [" + b"1," * 600_000 + b"]")
    with pytest.raises(EntryFormatError, match=r"line 2, column 4: not UTF-8 text"):
        read_skill(b"a: b\nc: \xff\n")


def git(folder, *arguments, check=True):
    null = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    roles = ("AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL")
    people = {f"GIT_{role}": "a@example.org" for role in roles}
    environment = {**os.environ, **null, **people}
    return subprocess.run(
        ["git", *arguments], cwd=folder, env=environment, check=check, capture_output=True
    )


def merged(folder, name, base, ours, theirs, driver):
    """Merge changes of a file in git; return its content, and whether there is a conflict."""
    if driver == "union":
        (folder / ".gitattributes").write_bytes(_UNION)
    git(folder, "init", "-q", "-b", "main")
    path = folder / name
    for branch, data in (("main", base), ("theirs", theirs), ("main", ours)):
        git(folder, "checkout", "-q", *(["-b"] if branch == "theirs" else []), branch, check=False)
        path.write_bytes(data)
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", "x")
    style = "merge.conflictStyle=" + ("diff3" if driver == "diff3" else "merge")
    conflict = git(folder, "-c", style, "merge", "theirs", "-m", "m", check=False).returncode != 0
    return path.read_bytes(), conflict


@pytest.mark.parametrize("driver", ["union", "text", "diff3"])
@pytest.mark.parametrize("before", [0, 1, 3])
def test_git_merge_keeps_the_votes_of_both(tmp_path, driver, before):
    votes = [vote(n) for n in range(before)]
    ours, theirs = [vote(10, "ben", 2)], [vote(11, "cleo", 5), vote(12, "ben", 2)]
    sides = (vote_lines(votes + new) for new in ([], ours, theirs))
    data, conflict = merged(tmp_path, "votes.jsonl", *sides, driver)
    assert conflict == (driver != "union")
    assert {*votes, *ours, *theirs} == set(read_votes(data))


@pytest.mark.parametrize("driver", ["union", "text"])
def test_other_git_conflicts_are_reported(tmp_path, driver):
    base = new_skill({"title": "x"})
    sides = (base, edit_yaml(base, {"title": "ours"}), edit_yaml(base, {"title": "theirs"}))
    data, _ = merged(tmp_path, "skill.yaml", *(side.encode() for side in sides), driver)
    with pytest.raises(EntryFormatError) as caught:
        read_skill(data)
    place = data.index(b"title: theirs" if driver == "union" else b"<<<")
    assert abs(caught.value.line - (data[:place].count(b"\n") + 1)) <= 1


def test_git_merges_edits_of_different_lines(tmp_path):
    """Each edit changes the time; the later one is kept."""
    base = new_skill({"title": "x", "tags": ["a"], "updated_at": START})
    ours = edit_yaml(base, {"title": "ours", "updated_at": START + timedelta(hours=2)})
    theirs = edit_yaml(base, {"category": "theirs", "updated_at": START + timedelta(hours=1)})
    sides = (each.encode() for each in (base, ours, theirs))
    data, conflict = merged(tmp_path, "skill.yaml", *sides, "union")
    assert not conflict
    found = read_skill(data)
    assert (found.title, found.category) == ("ours", "theirs")
    assert found.updated_at == START + timedelta(hours=2)
    later = read_skill(edit_yaml(found.text, {"updated_at": START + timedelta(hours=3)}).encode())
    assert later.updated_at == START + timedelta(hours=3)


def test_missing_fields_have_defaults():
    found = read_skill(b"title: Only that\n")
    assert (found.id, found.status) == ("", EntryStatus.ACTIVE)
    assert (found.tags, found.votes) == ((), ())
