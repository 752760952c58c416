"""Entries are folders that are made, read, changed, voted on, deleted and brought back."""

from __future__ import annotations

import pytest
import yaml

import kbkit
from kbkit.errors import (
    ConfigError,
    ConflictError,
    EntryFormatError,
    InvalidNameError,
    InvalidPathError,
    MissingPathError,
    PathExistsError,
    PathOutsideError,
    VersionConflictError,
)
from kbkit.models import Vote


def said(entries, slug):
    return yaml.safe_load((entries.path / slug / "skill.yaml").read_text("utf-8"))


def parse_logs(entries, **more):
    return entries.create(
        "Parse access logs",
        **{
            "description": "Turns the logs of nginx into a table.",
            "prompt": "# How\n\nUse one regular expression a line.\n",
            "readme": "Written for the weekly report.\n",
            "tags": ["logs", "python"],
            "category": "data",
            "files": {"code/run.py": "print('rows')\n", "artifacts/rows.bin": b"\0\1\2"},
        }
        | more,
    )


def test_an_entry_is_a_folder(entries):
    made = parse_logs(entries)
    assert made.slug == made.id == "parse-access-logs"
    folder = entries.path / made.slug
    assert sorted(each.relative_to(folder).as_posix() for each in folder.rglob("*")) == [
        "README.md",
        "artifacts",
        "artifacts/rows.bin",
        "code",
        "code/run.py",
        "prompt.md",
        "skill.yaml",
    ]
    found = said(entries, made.slug)
    assert list(found) == [
        "id",
        "title",
        "description",
        "tags",
        "category",
        "status",
        "rating",
        "source",
        "origin_task_id",
        "created_at",
        "updated_at",
    ]
    assert found["rating"] == {"average": 0, "count": 0, "votes": []}
    assert (found["status"], found["source"]) == ("active", "manual")
    read = entries.read(made.slug)
    assert read == made
    assert read.prompt == "# How\n\nUse one regular expression a line.\n"
    assert [(file.path, file.size) for file in (*read.code, *read.artifacts)] == [
        ("code/run.py", 14),
        ("artifacts/rows.bin", 3),
    ]
    with entries.open(made.slug, "artifacts/rows.bin") as stream:
        assert [stream.read(2), stream.read(2), stream.read(2)] == [b"\0\1", b"\2", b""]


def test_slugs_are_made_checked_and_unique(entries):
    assert [entries.create(title).slug for title in ("Größe: Ärger!", "GRÖSSE arger", "語")] == [
        "grosse-arger",
        "grosse-arger-2",
        "entry",
    ]
    assert entries.create("CON").slug == "entry-con"
    assert len(entries.create("long " * 50).slug) <= 64
    for slug in ("../up", "A", "a b", "a--b", "-a", "a/b", "con", "a" * 65, ".git", "a\0"):
        with pytest.raises(InvalidPathError):
            entries.create("A title", slug=slug)
    with pytest.raises(PathExistsError):
        entries.create("Another", slug="entry")


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"title": "  "}, "title"),
        ({"title": "x" * 301}, "title"),
        ({"description": "x" * 5_001}, "description"),
        ({"status": "done"}, "status"),
        ({"tags": "logs"}, "tags"),
        ({"category": 3}, "category"),
        ({"files": {"code/x": 3}}, "files"),
    ],
)
def test_what_is_wrong_is_named(entries, wrong, name):
    with pytest.raises(ConfigError, match=f"^{name}"):
        entries.create(**{"title": "Right", **wrong})
    assert not entries.path.exists() or not list(entries.path.iterdir())


@pytest.mark.parametrize(
    "path", ["../x", "/etc/x", "code/../../x", "skill.yaml", "Prompt.MD", "", "code\\x", "a/CON"]
)
def test_files_stay_in_their_entry(entries, path):
    with pytest.raises(InvalidPathError):
        entries.create("Right", files={path: "text"})
    assert not entries.path.exists()
    made = entries.create("Right")
    with pytest.raises(InvalidPathError):
        entries.update(made.slug, files={path: "text"})
    if path.startswith((".", "/", "code/..")):
        with pytest.raises(PathOutsideError):
            entries.open(made.slug, path)


def test_updates_leave_the_rest(entries):
    made = parse_logs(entries)
    path = entries.path / made.slug / "skill.yaml"
    text = path.read_text().replace("title:", "# of ours\nmood: 1_000  # kept\ntitle:")
    path.write_text(text.replace("status: active", "status: active   # since May"))
    changed = entries.update(
        made.slug,
        title="true",
        tags=["null", "x: y"],
        prompt="New.\n",
        files={"code/run.py": None, "code/deep/new.py": "1\n"},
    )
    assert (changed.title, changed.tags, changed.prompt) == ("true", ("null", "x: y"), "New.\n")
    assert [file.path for file in changed.files] == ["artifacts/rows.bin", "code/deep/new.py"]
    assert changed.updated_at > made.updated_at
    assert changed.created_at == made.created_at
    now = path.read_text()
    assert "# of ours\nmood: 1_000  # kept\n" in now
    assert "status: active   # since May\n" in now
    assert said(entries, made.slug)["title"] == "true"
    assert list(said(entries, made.slug)) == [
        "id",
        "mood",
        *[key for key in yaml.safe_load(text) if key not in ("id", "mood")],
    ]
    before = path.read_text()
    assert entries.update(made.slug, title="true") == changed
    assert path.read_text() == before
    with pytest.raises(MissingPathError):
        entries.update(made.slug, files={"code/never.py": None})


def test_a_version_keeps_one_change_from_undoing_another(entries):
    made = parse_logs(entries)
    assert entries.rate(made.slug, 4).version == made.version
    changed = entries.update(made.slug, title="Other", if_match=made.version)
    assert changed.version != made.version
    with pytest.raises(VersionConflictError):
        entries.update(made.slug, title="Third", if_match=made.version)
    (entries.path / made.slug / "code/run.py").write_text("other")
    with pytest.raises(VersionConflictError):
        entries.update(made.slug, title="Third", if_match=changed.version)
    assert entries.read(made.slug).title == "Other"


def test_deleted_entries_come_back_with_their_votes(entries):
    made = parse_logs(entries)
    entries.rate(made.slug, 5, rater="anna")
    entries.delete(made.slug)
    assert entries.list().total == 0
    with pytest.raises(MissingPathError):
        entries.read(made.slug)
    assert [each.path for each in entries.trash()] == [made.slug]
    back = entries.undelete(made.slug, to="parse-logs")
    assert (back.slug, back.id, back.rating.count) == ("parse-logs", made.id, 1)
    assert [each.slug for each in entries.list()] == ["parse-logs"]
    with pytest.raises(MissingPathError):
        entries.undelete(made.slug)


def test_compact_empties_the_trash(ws):
    ws.entries.create("Gone")
    ws.entries.delete("gone")
    assert ws.compact().entries == 1
    assert ws.entries.trash() == []


def test_entries_are_listed_by_what_they_are(entries):
    parse_logs(entries)
    entries.create("Bake bread", category="Kitchen", tags=["Oven"], status="draft")
    entries.create("Brew tea", category="kitchen", readme="Two minutes.", status="deprecated")
    entries.update("brew-tea", description="Hot")

    def slugs(**wanted):
        return [each.slug for each in entries.list(**wanted)]

    assert slugs(sort="title") == ["bake-bread", "brew-tea", "parse-access-logs"]
    assert slugs(sort="updated")[0] == "brew-tea"
    assert slugs(status="draft") == ["bake-bread"]
    assert slugs(category="KITCHEN", sort="title") == ["bake-bread", "brew-tea"]
    assert slugs(tag="oven") == ["bake-bread"]
    assert slugs(text="two MINUTES") == ["brew-tea"]
    assert slugs(text="nowhere") == []
    page = entries.list(sort="title", limit=1, offset=1)
    assert ([each.slug for each in page], page.total, page.offset) == (["brew-tea"], 3, 1)
    for wrong in ({"sort": "size"}, {"status": "new"}, {"limit": 0}, {"offset": -1}):
        with pytest.raises(ConfigError):
            entries.list(**wrong)


def test_few_votes_count_little_and_low_rated_ones_come_later(entries):
    for title in ("One five", "Fifty", "Nobody", "Bad"):
        entries.create(title)
    path = entries.path / "fifty/skill.yaml"
    votes = "\n".join(
        f"    - {{score: {5 - (n % 5 == 0)}, timestamp: 2026-01-01T00:00:{n:02}Z, rater: r{n}}}"
        for n in range(50)
    )
    path.write_text(path.read_text().replace("  votes: []", f"  votes:\n{votes}"))
    entries.rate("one-five", 5)
    entries.rate("bad", 1)
    found = list(entries.list())
    assert [each.slug for each in found] == ["fifty", "one-five", "nobody", "bad"]
    assert (found[0].rating.average, found[0].rating.count) == (4.8, 50)
    assert said(entries, "fifty")["rating"]["average"] == 4.8


def test_votes_are_in_the_folder_and_in_the_catalog(ws):
    made = ws.entries.create("Vote")
    for score, rater in ((5, "anna"), (2, "ben"), (4, "anna")):
        ws.entries.rate(made.slug, score, rater=rater)
    read = ws.entries.read(made.slug)
    assert (read.rating.average, read.rating.count) == (3.67, 3)
    assert [(vote.score, vote.rater) for vote in read.rating.votes] == [
        (5, "anna"),
        (2, "ben"),
        (4, "anna"),
    ]
    assert said(ws.entries, made.slug)["rating"]["average"] == 3.67
    logged = [Vote(each.created_at, each.rater, each.score) for each in ws["entries"].ratings]
    assert tuple(logged) == read.rating.votes
    (listed,) = ws.entries.list()
    assert (listed.rating.average, listed.rating.count) == (3.67, 3)
    for score in (0, 6, 2.5, True, "5"):
        with pytest.raises(ConfigError):
            ws.entries.rate(made.slug, score)


def test_stars_that_a_search_result_is_given_are_votes(ws):
    made = ws.entries.create("Vote", description="Of apples and pears")
    ws["entries"].rate(made.slug, 4, rater="anna")
    report = ws.entries.sync()
    assert report.updated == (made.slug,)
    assert [(vote.score, vote.rater) for vote in ws.entries.read(made.slug).rating.votes] == [
        (4, "anna")
    ]
    assert [each.target.kind for each in ws["entries"].ratings] == ["entry"]
    assert not ws.entries.sync()


def test_entries_are_searched_at_once_and_by_their_votes(ws):
    good = ws.entries.create("Peel pears", description="Peels ripe pears in a bowl")
    bad = ws.entries.create("Peel pears fast", description="Peels ripe pears in a bowl")
    ws.entries.create("Bake bread", files={"code/oven.py": "set_quokka_heat(220)"})
    assert ws.search("set_quokka_heat").hits[0].uri == "bake-bread"
    for _ in range(5):
        ws.entries.rate(bad.slug, 1)
        ws.entries.rate(good.slug, 5)
    assert [hit.uri for hit in ws.search("peel ripe pears").hits[:2]] == [good.slug, bad.slug]
    ws.entries.update(good.slug, prompt="Best with a wallaby knife")
    assert ws.search("wallaby knife").hits[0].uri == good.slug
    ws.entries.delete(good.slug)
    assert good.slug not in [hit.uri for hit in ws.search("wallaby knife")]


def test_the_knowledge_base_goes_with_the_entries(ws):
    ws.entries.create("One")
    kb = ws["entries"]
    with pytest.raises(ConfigError, match=r"workspace\.entries"):
        kb.add("Two", "text")
    with pytest.raises(ConflictError):
        ws.delete("entries")
    with pytest.raises(InvalidNameError):
        ws.create("entries")


def test_a_knowledge_base_of_the_same_name_is_in_the_way(tmp_path):
    with kbkit.open(tmp_path / "ws") as ws:
        ws.create("mine")
        with ws._stores.database.write() as transaction:
            from kbkit.stores.catalog import knowledge_bases

            row = knowledge_bases.get(transaction, "mine")
            knowledge_bases.rename(transaction, row.id, "entries")
        with pytest.raises(ConflictError, match="rename it"):
            ws.entries.create("One")


def test_renamed_entries_keep_their_votes(ws):
    made = ws.entries.create("One", description="Marmalade")
    ws.entries.rate(made.slug, 5)
    document = ws["entries"].documents["one"].id
    assert ws.entries.rename("one", to="two").rating.count == 1
    (ws.entries.path / "two").rename(ws.entries.path / "three")
    report = ws.entries.sync()
    assert (report.added, report.updated, report.removed) == ((), ("three",), ())
    assert ws["entries"].documents["three"].id == document
    assert ws.entries.read("three").id == "one"
    assert ws.search("marmalade").hits[0].uri == "three"
    # a copy is another entry, whatever its file says
    import shutil

    shutil.copytree(ws.entries.path / "three", ws.entries.path / "a-copy")
    assert ws.entries.sync().added == ("a-copy",)
    assert (ws.entries.read("three").id, ws.entries.read("a-copy").id) == ("one", "a-copy")
    (ws.entries.path / "three/skill.yaml").write_text("title: [")
    with pytest.raises(EntryFormatError):
        ws.entries.read("three")
