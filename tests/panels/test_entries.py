"""The entries panel over a real workspace."""

import base64
import re

import pytest

import kbkit
from kbkit.panels import Dashboard, EntriesPanel
from tests.panels.conftest import ask, status, text_of

HOSTILE = "<script>boom()</script> <img src=x onerror=boom()> [click](javascript:boom())"


@pytest.fixture
def entries(scratch):
    scratch.entries.create(
        "Parse a log",
        description="Reads logs of a server.",
        prompt="# How\n\nRead [it](https://example.org) line by line.",
        readme="For people.",
        tags=["logs", "python"],
        category="tools",
        files={
            "code/parse.py": "def parse():\n    return 1\n",
            "artifacts/out.bin": bytes(range(256)) * 2_000,
        },
    )
    scratch.entries.create("Brew tea", description="Hot water.", tags=["kitchen"], status="draft")
    scratch.entries.rate("parse-a-log", 5, rater="ann")
    return scratch.entries


@pytest.fixture
def panel(scratch, entries):
    return EntriesPanel(scratch, rater="bob")


def titles(panel):
    return re.findall('data-title="(.*?)"', panel._view.table["html"])


def shown(panel):
    return panel._view.state["entry"]


FORM = {
    "title": "Bake bread",
    "slug": "",
    "description": "",
    "tags": "a, b",
    "category": "",
    "status": "active",
    "prompt": "",
    "readme": "",
}


def test_table_is_filtered_and_sorted(panel):
    assert titles(panel) == ["Parse a log", "Brew tea"]
    ask(panel, "sort", by="title")
    assert titles(panel) == ["Brew tea", "Parse a log"]
    assert "problem" in ask(panel, "sort", by="colour")
    ask(panel, "sort", by="rating")
    for box, value, found in [
        (panel.find_box, "server", ["Parse a log"]),
        (panel.status_box, "draft", ["Brew tea"]),
        (panel.category_box, "tools", ["Parse a log"]),
        (panel.tag_box, "kitchen", ["Brew tea"]),
    ]:
        box.value = value
        assert titles(panel) == found
        assert "1 entry found" in status(panel)
        box.value = ""
    panel.find_box.value = "nothing has this"
    assert text_of(panel._view.table["html"]).strip() == "No matches."


def test_entry_is_shown_with_its_parts(panel):
    panel.show("parse-a-log")
    entry = shown(panel)
    assert panel.entry.slug == "parse-a-log"
    assert "line by line" in text_of(entry["prompt"])
    assert entry["code"] == ["code/parse.py"]
    assert "artifacts/out.bin512.0 kB" in text_of(entry["artifacts"])
    assert "★★★★★ 5ann" in text_of(entry["history"])
    code = ask(panel, "code", slug="parse-a-log", path="code/parse.py")["answer"]
    assert 'class="k"' in code["html"]
    problem = ask(panel, "code", slug="parse-a-log", path="artifacts/out.bin")["problem"]
    assert "is not text" in problem["text"]
    assert "problem" in ask(panel, "code", slug="parse-a-log", path="../../catalog.sqlite")
    panel.show("nowhere")
    assert 'role="alert"' in panel.status_line.value


def test_files_are_downloaded_in_pieces(panel, entries):
    data, start, end = b"", 0, False
    while not end:
        answer = ask(panel, "download", slug="parse-a-log", path="artifacts/out.bin", start=start)
        piece = answer["answer"]
        data += base64.b64decode(piece["data"])
        start, end = piece["next"], piece["end"]
    assert data == bytes(range(256)) * 2_000
    for path in ("../brew-tea/skill.yaml", "/etc/passwd", "code"):
        assert "problem" in ask(panel, "download", slug="parse-a-log", path=path, start=0)


def test_votes_are_stored(panel, entries):
    panel.show("brew-tea")
    ask(panel, "rate", slug="brew-tea", score=4)
    assert "4 stars for Brew tea; now 4 of 5 by 1" in status(panel)
    assert (shown(panel)["stars"], shown(panel)["rated"]) == (4, "4 of 5, 1 vote")
    assert [vote.rater for vote in entries.read("brew-tea").rating.votes] == ["bob"]
    for score in (0, 6, "5", None):
        assert "problem" in ask(panel, "rate", slug="brew-tea", score=score)
    assert entries.read("brew-tea").rating.count == 1


def test_entries_are_created_changed_deleted_and_undone(panel, entries):
    problem = ask(panel, "create", **{**FORM, "title": " "})["problem"]
    assert problem["field"] == "title"
    assert "is empty" in problem["text"]
    assert ask(panel, "create", **{**FORM, "slug": "brew-tea"})["problem"]["field"] == "slug"
    assert ask(panel, "create", **{**FORM, "slug": "../x"})["problem"]["field"] == "slug"
    assert ask(panel, "create", **{**FORM, "title": "x" * 500})["problem"]["field"] == "title"
    assert ask(panel, "create", **{**FORM, "status": "odd"})["problem"]["field"] == "status"
    ask(panel, "create", **FORM)
    assert panel.entry.tags == ("a", "b")
    fields = shown(panel)["fields"]
    ask(panel, "update", slug="bake-bread", **{**fields, "prompt": "Knead."})
    assert entries.read("bake-bread").prompt == "Knead."
    text = {"slug": "bake-bread", "path": "code/x.py", "text": "1"}
    ask(panel, "write", new=True, **text)
    assert ask(panel, "write", new=True, **text)["problem"]["field"] == "path"
    assert ask(panel, "write", **{**text, "path": "../x"})["problem"]["field"] == "path"
    ask(panel, "write", slug="bake-bread", path="code/x.py", remove=True)
    assert shown(panel)["code"] == []
    ask(panel, "delete", slug="bake-bread")
    assert panel.entry is None
    for message in (
        "Restored: Bake",
        "Undone: code/x.py",
        "Undone: code/x.py",
        "Undone: Bake",
        "Undone: bake-bread is in the trash",
    ):
        assert ask(panel, "undo")["answer"]["said"].startswith(message)
    assert titles(panel) == ["Parse a log", "Brew tea"]


def test_conflicting_edit_of_an_entry_is_reported(panel, entries):
    panel.show("brew-tea")
    fields = shown(panel)["fields"]
    entries.update("brew-tea", prompt="Theirs.")
    mine = {"slug": "brew-tea", **fields, "prompt": "Mine."}
    problem = ask(panel, "update", **mine)["problem"]
    assert problem["now"]["prompt"] == "Theirs."
    assert entries.read("brew-tea").prompt == "Theirs."
    entries.rate("brew-tea", 2, rater="ann")  # a vote is no conflict
    ask(panel, "update", over=True, **mine)
    assert entries.read("brew-tea").prompt == "Mine."
    panel.undo()
    assert entries.read("brew-tea").prompt == "Theirs."


def test_changes_of_other_writers_appear(panel, entries, scratch):
    panel.show("brew-tea")
    with kbkit.open(scratch.path) as other:
        other.entries.rate("brew-tea", 1, rater="ann")
        other.entries.create("From an agent")
    panel._do_look({})
    assert "From an agent" in titles(panel)
    assert shown(panel)["rated"] == "1 of 5, 1 vote"
    skill = entries.path / "brew-tea" / "skill.yaml"
    skill.write_text(skill.read_text().replace("title: Brew tea", "title: Brew coffee"))
    panel._do_look({})
    assert shown(panel)["title"] == "Brew coffee"
    table = panel._view.table
    panel._do_look({})
    assert panel._view.table is table
    skill.write_text("title: [broken")
    panel._do_look({})
    assert re.search(r"kbkit-problem.*line \d", panel._view.table["html"])


def test_outcome_stays_until_the_next_request(panel, entries):
    ask(panel, "create", **FORM)
    entries.create("From an agent")
    panel._do_look({})
    assert "From an agent" in titles(panel)
    assert "Created: Bake bread" in status(panel)
    ask(panel, "sort", by="title")
    assert "4 entries" in status(panel)
    panel.show("bake-bread")
    entries.delete("bake-bread")
    panel._do_look({})
    assert "bake-bread no longer exists" in status(panel)
    panel.refresh()
    assert "3 entries" in status(panel)


def test_hostile_entries_are_harmless(panel, entries):
    entries.create(
        HOSTILE[:100],
        slug="bad",
        description=HOSTILE,
        prompt=HOSTILE,
        readme=HOSTILE,
        tags=["<b>"],
        files={"code/x.html": HOSTILE},
    )
    panel.refresh()
    panel.show("bad")
    html = ask(panel, "code", slug="bad", path="code/x.html")["answer"]["html"]
    pages = (shown(panel)[name] for name in ("head", "prompt", "readme", "history"))
    for markup in (*pages, panel._view.table["html"], html):
        assert "<script" not in markup
        assert "<img" not in markup
        assert 'href="javascript' not in markup


def test_panel_works_in_an_empty_workspace(tmp_path):
    with kbkit.open(tmp_path / "none") as workspace:
        panel = EntriesPanel(workspace)
        assert panel.error is None
        assert "New entry" in panel._view.table["html"]
        ask(panel, "create", **FORM)
        assert titles(panel) == ["Bake bread"]
        assert Dashboard(workspace).panel("Entries").error is None
