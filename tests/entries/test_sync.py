"""Changes of other programs in the folder of entries."""

import os
import shutil

import pytest

import kbkit
from kbkit.errors import EntryFormatError, FilesError, InvalidPathError, MissingPathError
from tests.entries.conftest import write_files


def write(folder, **files):
    write_files(folder, {name.replace("_", "."): text for name, text in files.items()})


def test_external_folders_become_entries(tmp_path):
    place = tmp_path / "ws"
    write(place / "entries/by-hand", skill_yaml="title: By hand\n", prompt_md="Marmalade first")
    write(place / "entries/bare", skill_yaml="tags: [x]\n")
    with kbkit.open(place) as ws:
        assert ws.search("marmalade").hits[0].uri == "by-hand"
        report = ws.entries.sync()
        assert (report.synced, report.added, report.updated, report.removed) == (2, (), (), ())
        assert ws.entries.read("bare").title == "Bare"
        # the file is not rewritten
        assert (place / "entries/bare/skill.yaml").read_text() == "tags: [x]\n"
        write(place / "entries/by-hand", prompt_md="Quince first")
        shutil.rmtree(place / "entries/bare")
        write(place / "entries/third", skill_yaml="title: Third\n")
        report = ws.entries.sync()
        assert report.to_dict() == {
            "synced": 2,
            "added": ["third"],
            "updated": ["by-hand"],
            "removed": ["bare"],
            "skipped": [],
        }
        assert ws.search("quince").hits[0].uri == "by-hand"
        assert not ws.entries.sync()


def test_broken_file_is_reported_and_loses_nothing(ws):
    ws.entries.create("One", description="Of quinces")
    ws.entries.rate("one", 5)
    path = ws.entries.path / "one/skill.yaml"
    good = path.read_text()
    broken = good.replace("tags: []", "tags: [\n  'x")
    path.write_text(broken)
    report = ws.entries.sync()
    assert [problem.uri for problem in report.skipped] == ["one"]
    assert "skill.yaml: line " in report.skipped[0].reason
    assert (report.synced, report.removed) == (0, ())
    (listed,) = ws.entries.list()
    assert (listed.title, listed.rating.count) == ("One", 1)
    assert "line " in listed.problem
    assert ws.search("quinces").hits[0].uri == "one"
    for change in (
        lambda: ws.entries.rate("one", 1),
        lambda: ws.entries.update("one", title="Two"),
        lambda: ws.entries.rename("one", to="two"),
        lambda: ws.entries.read("one"),
    ):
        with pytest.raises(EntryFormatError, match=r"line \d+, column \d+"):
            change()
    assert path.read_text() == broken
    assert ws.entries.context("quinces").pieces == ()
    path.write_text(good)
    report = ws.entries.sync()
    assert (report.synced, report.updated, report.skipped) == (1, ("one",), ())
    assert ws.entries.list().entries[0].problem == ""


def test_unreadable_entries_are_listed(ws):
    write(ws.entries.path / "bad", skill_yaml="title: [\n")
    write(ws.entries.path / "none", prompt_md="x")
    report = ws.entries.sync()
    skipped = [(each.uri, each.reason[:11]) for each in report.skipped]
    assert skipped == [("bad", "skill.yaml:"), ("none", "has no skil")]
    listed = [(each.slug, bool(each.problem)) for each in ws.entries.list()]
    assert listed == [("bad", True), ("none", True)]
    write(ws.entries.path / "bad", skill_yaml="title: Good\n")
    assert ws.entries.sync().added == ("bad",)


def test_invalid_folder_names_are_reported(ws):
    for name in ("My Entry", "a--b", "Ä"):
        write(ws.entries.path / name, skill_yaml="title: x\n")
    write(ws.entries.path, stray_md="x")
    report = ws.entries.sync()
    assert sorted(each.uri for each in report.skipped) == ["My Entry", "a--b", "stray.md", "Ä"]
    assert ws.entries.list().total == 0


def test_invalid_vote_is_reported_and_loses_nothing(ws):
    ws.entries.create("One")
    ws.entries.rate("one", 4)
    path = ws.entries.path / "one/votes.jsonl"
    good = path.read_text()
    path.write_text(good + "five\n")
    (problem,) = ws.entries.sync().skipped
    assert "votes.jsonl: line 2, column 1: is not a vote" in problem.reason
    with pytest.raises(EntryFormatError, match="line 2"):
        ws.entries.rate("one", 5)
    assert ws.entries.list().entries[0].rating.count == 1
    path.write_text(good.rstrip("\n"))  # an editor left out the last line break
    assert ws.entries.rate("one", 2).rating.average == 3
    assert len(path.read_text().splitlines()) == 2


@pytest.mark.skipif(os.name != "posix", reason="needs links")
def test_links_are_not_followed(ws, tmp_path):
    secret = tmp_path / "secret"
    write(secret, skill_yaml="title: Secret\n", prompt_md="hidden")
    ws.entries.create("One", files={"code/a.py": "1"})
    (ws.entries.path / "linked").symlink_to(secret)
    (ws.entries.path / "one/code/linked.py").symlink_to(secret / "prompt.md")
    (ws.entries.path / "one/artifacts").symlink_to(secret)
    report = ws.entries.sync()
    assert "linked" not in [each.slug for each in ws.entries.list()]
    assert [file.path for file in ws.entries.read("one").files] == ["code/a.py"]
    assert report.synced == 1
    for slug, path in (("one", "code/linked.py"), ("one", "artifacts/prompt.md")):
        with pytest.raises(FilesError):
            ws.entries.open(slug, path)
    with pytest.raises(FilesError):
        ws.entries.read("linked")
    with pytest.raises(FilesError):
        ws.entries.update("one", files={"artifacts/x": "1"})
    (ws.entries.path / "one/skill.yaml").unlink()
    (ws.entries.path / "one/skill.yaml").symlink_to(secret / "skill.yaml")
    with pytest.raises(FilesError):
        ws.entries.rate("one", 5)
    assert (secret / "skill.yaml").read_text() == "title: Secret\n"
    assert ws.entries.sync().removed == ()


@pytest.mark.parametrize("slug", ["..", "../one", "one/../one", "/etc", "", ".trash", "one/code"])
def test_slugs_never_lead_out(ws, slug):
    ws.entries.create("One", files={"code/a.py": "1"})
    for call in (
        lambda: ws.entries.read(slug),
        lambda: ws.entries.update(slug, title="x"),
        lambda: ws.entries.rate(slug, 5),
        lambda: ws.entries.delete(slug),
        lambda: ws.entries.open(slug, "a.py"),
        lambda: ws.entries.rename(slug, to="two"),
        lambda: ws.entries.rename("one", to=slug or "../x"),
    ):
        with pytest.raises((InvalidPathError, MissingPathError)):
            call()
    assert ws.entries.read("one").title == "One"


def test_pipe_instead_of_a_file_is_ignored(ws):
    ws.entries.create("One")
    os.mkfifo(ws.entries.path / "one/prompt.md")
    ws.entries.sync()
    assert ws.entries.read("one").prompt == ""
