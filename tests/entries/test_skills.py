"""Entries exported as Agent Skills, and skills imported as entries."""

import os
from pathlib import Path

import pytest

from kbkit.errors import EntryFormatError, FilesError, MissingPathError, PathExistsError
from tests.entries.conftest import write_files


def faults(folder: Path) -> list[str]:
    """Return the errors that the reference validator finds in a skill."""
    return pytest.importorskip("skills_ref").validate(folder)


def tree(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def skill(folder, name="pdf-forms", front="description: Fills forms\n", body="# How\n", **files):
    paths = {path.replace("__", "/").replace("_", "."): text for path, text in files.items()}
    content = f"---\nname: {name}\n{front}---\n{body}"
    write_files(folder / name, {"SKILL.md": content, **paths})
    return folder / name


ODD = [
    {"title": "Yes: 'quotes' \"and\" #signs", "description": "One: two\nthree # four"},
    {"title": "x" * 300, "description": "long " * 999, "tags": ["a, b", "true", "null"]},
    {"title": "語 עברית 😀", "description": "語" * 1_500, "category": "1.0"},
    {"title": "No description", "prompt": "---\nname: other\n---\n"},
    {"title": "Long", "prompt": "See `code/run.py`.\n" * 2_000, "files": {"code/run.py": "1"}},
]


@pytest.mark.parametrize("values", ODD, ids=range(len(ODD)))
def test_entries_round_trip_as_valid_skills(ws, tmp_path, values):
    entry = ws.entries.create(**{"readme": "Of `artifacts/a.txt`\n", **values})
    ws.entries.update(entry.slug, files={"artifacts/a.txt": "1", "references/more.md": "m"})
    (place,) = ws.entries.export_skills(tmp_path / "out")
    assert place == tmp_path / "out" / entry.slug
    assert faults(place) == []
    paths = {"SKILL.md", "assets/a.txt", "references/more.md", "references/README.md"}
    assert set(tree(place)) >= paths
    assert len((place / "SKILL.md").read_text()) < 25_000
    assert (place / "references/README.md").read_text() == "Of `assets/a.txt`\n"
    (back,) = ws.entries.import_skills(place)
    assert (back.slug, back.id) == (entry.slug, entry.id)
    assert (back.title, back.category) == (entry.title, entry.category)
    assert back.readme == "Of `artifacts/a.txt`\n"
    assert back.prompt.strip() == entry.prompt.strip()
    files = ["artifacts/a.txt", "references/more.md", *values.get("files", ())]
    assert [file.path for file in back.files] == sorted(files)
    before = tree(place)
    ws.entries.export_skills(tmp_path / "out")
    assert tree(place) == before


def test_skills_contain_no_votes(entries, tmp_path):
    entries.create("One", description="x")
    entries.export_skills(tmp_path / "out")
    before = tree(tmp_path / "out")
    entries.rate("one", 5, rater="anna")
    entries.export_skills(tmp_path / "out")
    assert tree(tmp_path / "out") == before
    assert b"anna" not in b"".join(before.values())


def test_fields_of_skills_are_kept(ws, tmp_path):
    place = skill(
        tmp_path / "in",
        front="description: 'Fills forms: all'\nlicense: Apache-2.0\ncompatibility: Needs qpdf\n"
        "allowed-tools: Bash(git:*) Read\nmetadata:\n  author: ann\n  version: '1.0'\n",
        body="Run scripts/fill.py on assets/form.pdf, not myscripts/fill.py.\n",
        scripts__fill_py="print(1)\n",
        assets__form_pdf="%PDF",
        references__MORE_md="more",
        LICENSE="x",
    )
    assert faults(place) == []
    (entry,) = ws.entries.import_skills(tmp_path / "in")
    assert (entry.slug, entry.title) == ("pdf-forms", "Pdf forms")
    assert (entry.description, entry.source) == ("Fills forms: all", "manual")
    assert entry.prompt == "Run code/fill.py on artifacts/form.pdf, not myscripts/fill.py.\n"
    paths = "LICENSE artifacts/form.pdf code/fill.py references/MORE.md"
    assert [file.path for file in entry.files] == paths.split()
    assert ws.search("fill forms").hits[0].uri == "pdf-forms"
    ws.entries.export_skills(tmp_path / "out", slugs=["pdf-forms"])
    text = (tmp_path / "out/pdf-forms/SKILL.md").read_text()
    for line in (
        'license: "Apache-2.0"',
        'compatibility: "Needs qpdf"',
        '  version: "1.0"',
        'allowed-tools: "Bash(git:*) Read"',
        '  author: "ann"',
    ):
        assert f"{line}\n" in text
    assert "Run scripts/fill.py on assets/form.pdf" in text
    assert faults(tmp_path / "out/pdf-forms") == []


def test_long_titles_of_skills_are_cut(entries, tmp_path):
    long = "word " * 100
    place = skill(
        tmp_path, front=f"description: x\nmetadata:\n  title: {long}\n  category: {long}\n"
    )
    (entry,) = entries.import_skills(place)
    cut = f"{long[:294]}…"
    assert (entry.title, entry.category) == (cut, cut)


def test_non_latin_names_get_a_slug(ws, tmp_path):
    place = skill(tmp_path, name="größe-日本")
    assert faults(place) == []
    assert ws.entries.import_skills(place)[0].slug == "grosse"


def test_second_import_keeps_votes_and_the_replaced_entry(entries, tmp_path):
    place = skill(tmp_path)
    entries.import_skills(place)
    entries.rate("pdf-forms", 5)
    (place / "SKILL.md").write_text("---\nname: pdf-forms\ndescription: New\n---\nNew\n")
    (again,) = entries.import_skills(place)
    assert (again.description, again.rating.count) == ("New", 1)
    assert entries.undelete("pdf-forms", to="old").prompt == "# How\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("no front matter", "line 1: has no front matter"),
        ("---\nname: bad\n", "has no front matter"),
        ("---\ndescription: x\n---\n", "name: is missing"),
        ("---\nname: bad\n---\n", "description: is missing"),
        ("---\nname: other\ndescription: x\n---\n", "line 2, column 7: name: is 'other'"),
        ("---\nname: ../../evil\ndescription: x\n---\n", "name: must consist of lower-case"),
        ("---\nname: ..\ndescription: x\n---\n", "name: must consist of lower-case"),
        ("---\nname: Bad\ndescription: x\n---\n", "name: must consist of lower-case"),
        ("---\nname: a--b\ndescription: x\n---\n", "name: must consist of lower-case"),
        (f"---\nname: {'a' * 65}\ndescription: x\n---\n", "64 characters"),
        (f"---\nname: bad\ndescription: {'x' * 1025}\n---\n", "1,024 characters"),
        (f"---\nname: bad\ndescription: x\ncompatibility: {'x' * 501}\n---\n", "500 characters"),
        ("---\nname: bad\ndescription: x\nmetadata: [a]\n---\n", "mapping of strings"),
        ("---\nname: bad\ndescription: [\n---\n", r"line \d, column \d"),
        ("---\nname: bad\ndescription: !!python/name:os.system x\n---\n", "tags"),
        ("---\na: &a [x, x]\nb: [*a, *a]\nname: bad\ndescription: x\n---\n", "anchors"),
    ],
)
def test_invalid_skills_are_refused_and_nothing_changes(entries, tmp_path, text, reason):
    """A valid skill beside an invalid one is not imported either."""
    skill(tmp_path / "in", name="aaa")
    write_files(tmp_path / "in/bad", {"SKILL.md": text})
    with pytest.raises(EntryFormatError, match=reason):
        entries.import_skills(tmp_path / "in")
    assert not entries.path.exists()


@pytest.mark.skipif(os.name != "posix", reason="needs links")
def test_hostile_folders_are_refused_and_nothing_changes(entries, tmp_path):
    place = skill(tmp_path / "in")

    def refused(match):
        with pytest.raises(FilesError, match=match):
            entries.import_skills(tmp_path / "in")
        assert not entries.path.exists()

    (place / "scripts").mkdir()
    for target in ("/etc/passwd", "/etc"):
        (place / "scripts/link").symlink_to(target)
        refused("is a link")
        (place / "scripts/link").unlink()
    for name in ("CON.txt", "a:b", "x\u202ey", "tail."):
        (place / "scripts" / name).write_text("x")
        refused("scripts/")
        (place / "scripts" / name).unlink()
    with (place / "scripts/huge").open("wb") as file:
        file.truncate(10**9)
    refused("MB")
    (place / "scripts/huge").unlink()
    (place / "SKILL.md").write_bytes(b"---\nname: \xff\n---\n")
    refused("UTF-8")
    (place / "SKILL.md").unlink()
    (place / "SKILL.md").symlink_to("/etc/passwd")
    refused("is a link")
    with pytest.raises(MissingPathError):
        entries.import_skills(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(MissingPathError, match="has no SKILL"):
        entries.import_skills(tmp_path / "empty")


def test_export_replaces_only_skills(entries, tmp_path):
    entries.create("One")
    entries.create("Two")
    (tmp_path / "out/two").mkdir(parents=True)
    (tmp_path / "out/two/thesis.txt").write_text("mine")
    with pytest.raises(PathExistsError, match="not a skill"):
        entries.export_skills(tmp_path / "out")
    assert tree(tmp_path / "out") == {"two/thesis.txt": b"mine"}
    for place in (entries.path, entries.path / "one"):
        with pytest.raises(FilesError, match="the entries themselves"):
            entries.export_skills(place)
    with pytest.raises(MissingPathError):
        entries.export_skills(tmp_path / "other", slugs=["three"])
    assert not (tmp_path / "other").exists()
