"""Entries of local and served workspaces."""

from __future__ import annotations

import pytest

from kbkit import errors
from kbkit.models import EntryStatus

SKILL = "title: Count lines\ndescription: Counts lines of logs.\ntags: [logs]\n"


@pytest.fixture(scope="module")
def entries(workspace):
    return workspace.entries


@pytest.fixture(scope="module")
def logs(entries):
    return entries.create(
        "Parse access logs",
        description="Turns logs of nginx into a table.",
        prompt="Read lines one by one.",
        readme="For **logs**.",
        tags=["logs", "nginx"],
        category="data",
        files={"code/run.py": "print('ä')\n", "artifacts/a b.bin": b"\xff\x00\x01" * 100},
    )


def test_entry_is_created_changed_and_renamed(entries, logs):
    assert logs.slug == "parse-access-logs"
    assert entries.read(logs.slug) == logs
    assert [file.path for file in logs.code] == ["code/run.py"]
    changed = entries.update(logs.slug, title="Parse logs", tags=["logs"], if_match=logs.version)
    assert (changed.title, changed.tags, changed.category) == ("Parse logs", ("logs",), "data")
    with pytest.raises(errors.VersionConflictError, match="was changed since you read it"):
        entries.update(logs.slug, title="x", if_match=logs.version)
    with pytest.raises(errors.VersionConflictError):
        entries.delete(logs.slug, if_match=logs.version)
    emptied = entries.update(logs.slug, files={"code/run.py": None, "code/b.py": "b"}, category="")
    assert ([file.path for file in emptied.code], emptied.category) == (["code/b.py"], "")
    entries.update(logs.slug, files={"code/b.py": None, "code/run.py": "print('ä')\n"})
    assert entries.rename(logs.slug, to="other").id == logs.id
    assert entries.rename("other", to=logs.slug).slug == logs.slug


def test_files_of_an_entry_are_opened(entries, logs):
    with entries.open(logs.slug, "artifacts/a b.bin") as file:
        assert file.read(2) == b"\xff\x00"
        file.seek(299)
        assert file.read() == b"\x01"
    for path, error in (
        ("none", errors.MissingPathError),
        ("code", errors.IsFolderError),
        ("../x", errors.PathOutsideError),
        ("code/../../../x", errors.PathOutsideError),
        ("/etc/passwd", errors.PathOutsideError),
    ):
        with pytest.raises(error):
            entries.open(logs.slug, path)


def test_votes_count(entries, logs):
    entries.rate(logs.slug, 5, rater="ann")
    rated = entries.rate(logs.slug, 2, rater="bob")
    assert (rated.rating.average, rated.rating.count) == (3.5, 2)
    assert [vote.rater for vote in rated.rating.votes] == ["ann", "bob"]
    assert rated.version == entries.read(logs.slug).version
    with pytest.raises(errors.ConfigError, match="score=6"):
        entries.rate(logs.slug, 6)


def test_entries_are_filtered_sorted_and_paged(entries, logs):
    for number in range(5):
        entries.create(
            f"Draft {number}",
            status="draft",
            tags=["many"],
            category="Mixed",
            readme=f"Number {number} of five.",
        )
    page = entries.list(status=EntryStatus.DRAFT, sort="title", limit=2, offset=1)
    assert [each.title for each in page] == ["Draft 1", "Draft 2"]
    assert (page.total, page.offset) == (5, 1)
    assert len(entries.list(tag="many", limit=None)) == 5
    assert entries.list(tag="many", offset=9).entries == ()
    assert [each.slug for each in entries.list(tag="LOGS", text="NGINX")] == [logs.slug]
    found = entries.list(category="MIXED", text="NUMBER 2")
    assert [each.slug for each in found] == ["draft-2"]
    entries.update("draft-0", description="Last")
    assert entries.list(sort="updated").entries[0].slug == "draft-0"
    entries.rate(logs.slug, 5, rater="ann")
    assert entries.list().entries[0].slug == logs.slug  # the best rated first
    for wrong in ({"sort": "size"}, {"status": "gone"}, {"limit": 0}, {"offset": -1}):
        with pytest.raises(errors.ConfigError, match=next(iter(wrong))):
            entries.list(**wrong)


def test_deleted_entry_is_restored(entries):
    entry = entries.create("Short lived")
    deleted = entries.delete(entry.slug, if_match=entry.version)
    assert entries.trash()[0] == deleted
    with pytest.raises(errors.MissingPathError, match="no such entry"):
        entries.read(entry.slug)
    with pytest.raises(errors.MissingPathError, match="no such entry"):
        entries.delete(entry.slug)
    assert entries.undelete(entry.slug, to="back").slug == "back"
    entries.delete("back")


def test_task_files_are_learned_or_refused(entries, tmp_path):
    left = tmp_path / ".knowledge"
    (left / "code").mkdir(parents=True)
    (left / "skill.yaml").write_text(SKILL)
    (left / "prompt.md").write_text("Count them.")
    (left / "code" / "run.py").write_bytes(b"\xff")
    learned = entries.learn(tmp_path, task_id="task 7")
    assert (learned.title, learned.origin_task_id) == ("Count lines", "task 7")
    assert [file.path for file in learned.files] == ["code/run.py"]
    assert entries.learn(left).id == learned.id
    files = {"skill.yaml": SKILL.encode(), "prompt.md": b"Count all."}
    assert entries.learn(files).prompt == "Count all."
    for others in (
        {"code/a": b"", "CODE/b": b""},
        {"code": b"", "code/a": b""},
        {"a": b"", "./a": b""},
        {"../a": b""},
    ):
        with pytest.raises(errors.FilesError):
            entries.learn({**files, **others, "README.md": b"New."})
    assert entries.read(learned.slug).readme == ""
    (left / "skill.yaml").write_text("title: [")
    with pytest.raises(errors.EntryFormatError, match=r"\.knowledge/skill\.yaml") as caught:
        entries.learn(tmp_path)
    assert caught.value.line > 0
    (left / "skill.yaml").write_text(SKILL)
    (left / "link").symlink_to("/etc/passwd")
    with pytest.raises(errors.EntryFormatError, match="is a link"):
        entries.learn(tmp_path)
    (left / "link").unlink()
    (left / "key").write_text("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\n")
    with pytest.raises(errors.SecretsError):
        entries.learn(tmp_path)
    with pytest.raises(errors.MissingPathError):
        entries.learn(tmp_path / "none")
    assert "skill.yaml" in entries.learning_prompt()


def test_relevant_entries_are_found_for_agents(entries, logs):
    assert entries.find("parse logs of nginx", limit=1)[0].slug == logs.slug
    context = entries.context("parse logs of nginx", limit=1)
    assert [piece.name for piece in context.pieces] == [logs.slug]
    assert logs.slug in str(context)
    for wrong in (
        lambda: entries.context(" "),
        lambda: entries.find(""),
        lambda: entries.context("x", max_tokens=3),
        lambda: entries.find("x", limit=0),
        lambda: entries.find(7),
    ):
        with pytest.raises(errors.ConfigError, match=r"^(prompt|max_tokens|limit)"):
            wrong()


def test_entry_errors(entries, logs):
    removed = {"none": None}

    def with_file(path):
        return entries.create("T", files={path: "x"})

    cases = [
        (errors.ConfigError, "^title: is empty", lambda: entries.create(" ")),
        (errors.ConfigError, "^title=7", lambda: entries.create(7)),
        (errors.ConfigError, "^title[:=].*300", lambda: entries.create("x" * 301)),
        (
            errors.ConfigError,
            "^description[:=]",
            lambda: entries.create("T", description="x" * 5001),
        ),
        (errors.ConfigError, "^category=3", lambda: entries.create("T", category=3)),
        (errors.ConfigError, "^tags='x'", lambda: entries.create("T", tags="x")),
        (errors.ConfigError, "^status='x'", lambda: entries.create("T", status="x")),
        (errors.InvalidPathError, "is not a valid slug", lambda: entries.create("T", slug="A b")),
        (errors.ConfigError, "^slug=", lambda: entries.create("T", slug=[])),
        (errors.InvalidPathError, "is not a valid slug", lambda: entries.read("../x")),
        (errors.InvalidPathError, "longer than 64", lambda: entries.read("a" * 65)),
        (errors.PathExistsError, "already exists", lambda: entries.create("T", slug=logs.slug)),
        (errors.InvalidPathError, "their own arguments", lambda: with_file("prompt.md")),
        (errors.PathOutsideError, "may not go up", lambda: with_file("../x")),
        (errors.MissingPathError, "no such file", lambda: entries.update(logs.slug, files=removed)),
        (errors.ArgumentError, "did you mean 'tags'", lambda: entries.create("T", tag="x")),
    ]
    for kind, message, call in cases:
        with pytest.raises(kind, match=message) as caught:
            call()
        assert type(caught.value) is kind


def test_sync_of_entries(entries):
    assert entries.sync().skipped == ()
