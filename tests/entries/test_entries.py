"""Entries: created, changed, rated, listed, deleted and restored."""

import json
import shutil

import pytest
import yaml

from kbkit.errors import (
    ConfigError,
    ConflictError,
    EntryFormatError,
    InvalidNameError,
    InvalidPathError,
    MissingPathError,
    PathExistsError,
    PathOutsideError,
)
from kbkit.models import Vote
from kbkit.stores.catalog import knowledge_bases
from tests.entries.conftest import votes_of


def skill_of(entries, slug):
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


FIELDS = "id title description tags category status source origin_task_id"


def test_entry_is_a_folder(entries):
    entry = parse_logs(entries)
    assert entry.slug == entry.id == "parse-access-logs"
    folder = entries.path / entry.slug
    paths = "README.md artifacts artifacts/rows.bin code code/run.py prompt.md skill.yaml"
    assert sorted(str(each.relative_to(folder)) for each in folder.rglob("*")) == paths.split()
    skill = skill_of(entries, entry.slug)
    assert list(skill) == [*FIELDS.split(), "created_at", "updated_at"]
    assert (skill["status"], skill["source"]) == ("active", "manual")
    read = entries.read(entry.slug)
    assert read == entry
    assert read.prompt == "# How\n\nUse one regular expression a line.\n"
    assert [(file.path, file.size) for file in read.artifacts] == [("artifacts/rows.bin", 3)]


def test_slugs_are_derived_checked_and_unique(entries):
    slugs = [entries.create(title).slug for title in ("Größe: Ärger!", "GRÖSSE arger", "語")]
    assert slugs == ["grosse-arger", "grosse-arger-2", "entry"]
    assert entries.create("CON").slug == "entry-con"
    assert len(entries.create("long " * 50).slug) <= 64
    for slug in ("../up", "A", "a b", "a--b", "-a", "a/b", "con", "a" * 65, ".git", "a\0"):
        with pytest.raises(InvalidPathError):
            entries.create("A title", slug=slug)
    with pytest.raises(PathExistsError):
        entries.create("Another", slug="entry")


def test_new_entry_does_not_get_the_id_of_one_that_was_deleted_outside(entries):
    old = entries.create("Parse logs")
    shutil.rmtree(entries.path / old.slug)
    new = entries.create("Parse logs")
    assert (new.slug, new.id) == (old.slug, f"{old.id}-2")


@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "/etc/x",
        "code/../../x",
        "skill.yaml",
        "votes.jsonl",
        "Prompt.MD",
        "",
        "code\\x",
        "a/CON",
    ],
)
def test_file_paths_stay_within_the_entry(entries, path):
    with pytest.raises(InvalidPathError):
        entries.create("Right", files={path: "text"})
    assert not entries.path.exists()
    entry = entries.create("Right")
    with pytest.raises(InvalidPathError):
        entries.update(entry.slug, files={path: "text"})
    if path.startswith((".", "/", "code/..")):
        with pytest.raises(PathOutsideError):
            entries.open(entry.slug, path)


def test_update_keeps_other_lines(entries):
    entry = parse_logs(entries)
    path = entries.path / entry.slug / "skill.yaml"
    text = path.read_text().replace("title:", "# of ours\nmood: 1_000  # kept\ntitle:")
    path.write_text(text.replace("status: active", "status: active   # since May"))
    changed = entries.update(
        entry.slug,
        title="true",
        tags=["null", "x: y"],
        prompt="New.\n",
        files={"code/run.py": None, "code/deep/new.py": "1\n"},
    )
    assert (changed.title, changed.tags, changed.prompt) == ("true", ("null", "x: y"), "New.\n")
    assert [file.path for file in changed.files] == ["artifacts/rows.bin", "code/deep/new.py"]
    assert changed.updated_at > entry.updated_at
    assert changed.created_at == entry.created_at
    now = path.read_text()
    assert "# of ours\nmood: 1_000  # kept\n" in now
    assert "status: active   # since May\n" in now
    assert skill_of(entries, entry.slug)["title"] == "true"
    others = [key for key in yaml.safe_load(text) if key not in ("id", "mood")]
    assert list(skill_of(entries, entry.slug)) == ["id", "mood", *others]
    before = path.read_text()
    assert entries.update(entry.slug, title="true") == changed
    assert path.read_text() == before
    with pytest.raises(MissingPathError):
        entries.update(entry.slug, files={"code/never.py": None})


def test_restored_entries_keep_their_votes(entries):
    entry = parse_logs(entries)
    entries.rate(entry.slug, 5, rater="anna")
    entries.delete(entry.slug)
    assert entries.list().total == 0
    back = entries.undelete(entry.slug, to="parse-logs")
    assert (back.slug, back.id, back.rating.count) == ("parse-logs", entry.id, 1)
    assert [each.slug for each in entries.list()] == ["parse-logs"]
    with pytest.raises(MissingPathError):
        entries.undelete(entry.slug)


def test_compact_empties_the_trash(ws):
    ws.entries.create("Gone")
    ws.entries.delete("gone")
    assert ws.compact().entries == 1
    assert ws.entries.trash() == []


def test_list_orders_by_rating_and_number_of_votes(entries):
    for title in ("One five", "Fifty", "Nobody", "Bad"):
        entries.create(title)
    path = entries.path / "fifty/skill.yaml"
    votes = "\n".join(
        f"    - {{score: {5 - (n % 5 == 0)}, timestamp: 2026-01-01T00:00:{n:02}Z, rater: r{n}}}"
        for n in range(50)
    )
    path.write_text(f"{path.read_text()}rating:\n  votes:\n{votes}\n")
    entries.rate("one-five", 5)
    entries.rate("bad", 1)
    found = list(entries.list())
    assert [each.slug for each in found] == ["fifty", "one-five", "nobody", "bad"]
    assert (found[0].rating.average, found[0].rating.count) == (4.8, 50)
    assert entries.rate("fifty", 2).rating.count == 51


def test_votes_are_stored_in_folder_and_catalog(ws):
    entry = ws.entries.create("Vote")
    for score, rater in ((5, "anna"), (2, "ben"), (4, "anna")):
        ws.entries.rate(entry.slug, score, rater=rater)
    read = ws.entries.read(entry.slug)
    assert (read.rating.average, read.rating.count) == (3.67, 3)
    assert votes_of(read) == [(5, "anna"), (2, "ben"), (4, "anna")]
    lines = (ws.entries.path / entry.slug / "votes.jsonl").read_text().splitlines()
    assert [json.loads(line)["score"] for line in lines] == [5, 2, 4]
    logged = [Vote(each.created_at, each.rater, each.score) for each in ws["entries"].ratings]
    assert tuple(logged) == read.rating.votes
    (listed,) = ws.entries.list()
    assert (listed.rating.average, listed.rating.count) == (3.67, 3)
    for score in (0, 6, 2.5, True, "5"):
        with pytest.raises(ConfigError):
            ws.entries.rate(entry.slug, score)


def test_votes_follow_one_with_the_last_time(entries):
    entry = entries.create("Parse logs")
    vote = '{"score": 1, "timestamp": "9999-12-31T23:59:59.999999Z"}\n'
    (entries.path / entry.slug / "votes.jsonl").write_text(vote)
    assert entries.rate(entry.slug, 5).rating.count == 2


def test_ratings_of_search_results_become_votes(ws):
    entry = ws.entries.create("Vote", description="Of apples and pears")
    ws["entries"].rate(entry.slug, 4, rater="anna")
    report = ws.entries.sync()
    assert report.updated == (entry.slug,)
    assert votes_of(ws.entries.read(entry.slug)) == [(4, "anna")]
    assert [each.target.kind for each in ws["entries"].ratings] == ["entry"]
    assert not ws.entries.sync()


def test_search_finds_entries_at_once_and_uses_votes(ws):
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


def test_knowledge_base_of_entries_is_managed_by_them(ws):
    ws.entries.create("One")
    kb = ws["entries"]
    with pytest.raises(ConfigError, match=r"workspace\.entries"):
        kb.add("Two", "text")
    with pytest.raises(ConflictError):
        ws.delete("entries")
    with pytest.raises(InvalidNameError):
        ws.create("entries")


def test_existing_knowledge_base_named_entries_is_a_conflict(ws):
    ws.create("mine")
    with ws._stores.database.write() as transaction:
        row = knowledge_bases.get(transaction, "mine")
        knowledge_bases.rename(transaction, row.id, "entries")
    with pytest.raises(ConflictError, match="rename it"):
        ws.entries.create("One")


def test_renamed_entries_keep_their_votes(ws):
    entry = ws.entries.create("One", description="Marmalade")
    ws.entries.rate(entry.slug, 5)
    document = ws["entries"].documents["one"].id
    assert ws.entries.rename("one", to="two").rating.count == 1
    (ws.entries.path / "two").rename(ws.entries.path / "three")
    report = ws.entries.sync()
    assert (report.added, report.updated, report.removed) == ((), ("three",), ())
    assert ws["entries"].documents["three"].id == document
    assert ws.entries.read("three").id == "one"
    assert ws.search("marmalade").hits[0].uri == "three"
    # a copy is another entry, although its id is equal
    shutil.copytree(ws.entries.path / "three", ws.entries.path / "a-copy")
    assert ws.entries.sync().added == ("a-copy",)
    assert (ws.entries.read("three").id, ws.entries.read("a-copy").id) == ("one", "a-copy")
    (ws.entries.path / "three/skill.yaml").write_text("title: [")
    with pytest.raises(EntryFormatError):
        ws.entries.read("three")
