"""The files panel over a real workspace."""

from threading import Thread

import pytest

import kbkit
from kbkit.panels import Dashboard, DocumentsPanel, FilesPanel
from kbkit.panels.text_rendering import render_file, render_text
from tests.panels.conftest import ask, status, text_of

NOTE = "# Green tea\n\nSteep #hot water. See [[Milk]], [log](log.md#day) and [[Lemon|a lemon]].\n"
HOSTILE = (
    "<script>boom()</script> <img src=x onerror=boom()> ![x](https://evil.example/x.png) "
    "[click](javascript:boom()) [[<img src=x onerror=boom()>]] [up](../../../etc/passwd) "
    "[f](file:///etc/passwd)\n"
)


@pytest.fixture
def files(scratch):
    scratch.files.write("notes/tea.md", NOTE)
    scratch.files.write("notes/log.md", "# Log\n\n## Day\n\nTried it.\n")
    scratch.files.write("milk.md", "---\ntags: [dairy]\n---\n# Milk\n\nSee [[Green tea]].\n")
    return scratch.files


@pytest.fixture
def panel(scratch, files):
    return FilesPanel(scratch)


def names(rows):
    return [row["name"] for row in rows]


def lines(panel, folder=""):
    return names(ask(panel, "children", folder=folder)["answer"]["rows"])


def shown(panel):
    return panel._view.state


def test_folders_are_read_when_opened(panel, files):
    assert names(panel._view.roots) == ["kb", "notes", "milk.md"]
    assert all("rows" not in row for row in panel._view.roots)
    assert lines(panel, "notes") == ["log.md", "tea.md"]
    assert lines(panel, "nowhere") == []
    assert lines(panel, "../..") == []


def test_file_is_shown_and_its_links_open_other_files(panel):
    panel.show("notes/tea.md")
    state = shown(panel)
    assert "<h2" in state["html"]
    assert state["backlinks"] == ["milk.md"]
    assert panel.file.path == "notes/tea.md"
    assert state["links"] == ["#file-milk.md", "#file-notes/log.md#day", "#missing-Lemon"]
    panel._view._handle_custom_msg({"event": "follow", "href": "#file-notes/log.md#day"}, [])
    assert (panel.file.path, shown(panel)["anchor"]) == ("notes/log.md", "day")
    panel.back()
    assert panel.file.path == "notes/tea.md"
    ask(panel, "as_text", on=True)
    assert "[[Milk]]" in text_of(shown(panel)["html"])
    panel.show("milk.md")
    assert "tags:" in text_of(shown(panel)["html"])


def test_hostile_files_are_harmless(panel, files):
    files.write("bad.md", HOSTILE)
    panel.refresh()
    panel.show("bad.md")
    for on in (False, True):
        ask(panel, "as_text", on=on)
        html = shown(panel)["html"]
        for active in ("<script", "<img", 'href="javascript', 'href="file:', 'etc/passwd"'):
            assert active not in html
        assert "onerror" in text_of(html)


def test_code_is_highlighted_and_binary_files_are_not_shown(panel, files):
    files.write("run.py", "def run():\n    return '```'\n")
    (files.path / "data.bin").write_bytes(b"\x00\xff\xfe")
    panel.refresh()
    panel.show("run.py")
    assert 'class="k"' in shown(panel)["html"]
    assert shown(panel)["as_text"] is None
    panel.show("data.bin")
    assert "not text" in shown(panel)["note"]
    assert not shown(panel)["editable"]


def test_poll_waits_until_a_move_is_shown(panel, monkeypatch):
    """Kernels run timers and messages of a page in different threads."""
    panel.show("notes/tea.md")
    polls, free = [], []
    move = panel._files.move

    def moving(source, target):
        info = move(source, target)
        looking = Thread(target=lambda: free.append(panel.lock.acquire(blocking=False)))
        looking.start()
        looking.join()
        polls.append(Thread(target=panel._do_look, args=({},)))  # finds that the open file is gone
        polls[0].start()
        return info

    monkeypatch.setattr(panel._files, "move", moving)
    ask(panel, "move", path="notes/tea.md", target="tea.md")
    polls[0].join()
    assert free == [False]
    assert (panel.file.path, shown(panel)["title"]) == ("tea.md", "tea.md")


def test_file_actions_can_be_undone(panel, files):
    assert ask(panel, "create", path="notes", kind="folder")["problem"]["field"] == "path"
    assert ask(panel, "create", path="a/b.md", kind="file")["answer"]["said"] == "Created: a/b.md"
    assert shown(panel)["undo"] == "creating a/b.md"
    opened = ask(panel, "edit", path="a/b.md")["answer"]
    saved = ask(panel, "save", **{**opened, "text": "# B\n"})["answer"]
    assert saved["version"] == files.info("a/b.md").version
    assert "<h2" in shown(panel)["html"]
    ask(panel, "move", path="a", target="c/d")
    assert panel.file.path == "c/d/b.md"
    ask(panel, "delete", path="c/d/b.md")
    assert panel.file is None
    assert lines(panel, "c/d") == []
    for message, path, text in [
        ("Restored: c/d/b.md", "c/d/b.md", "# B\n"),
        ("Undone: moved back to a", "a/b.md", "# B\n"),
        ("Undone: a/b.md is as before", "a/b.md", ""),
    ]:
        assert ask(panel, "undo")["answer"]["said"] == message
        assert files.read(path) == text
    panel.undo()
    with pytest.raises(kbkit.KbkitError):
        files.read("a/b.md")
    assert shown(panel)["undo"] == ""
    assert ask(panel, "undo") == {"answer": {}}


def test_errors_name_their_field(panel):
    for path in ("", "/etc/passwd", "../x.md", "CON.md", "kb/x.md", "milk.md", "a\x00b"):
        problem = ask(panel, "create", path=path, kind="file")["problem"]
        assert problem["field"] == "path", path
        assert problem["text"]
    assert ask(panel, "move", path="milk.md", target="notes/tea.md")["problem"]["field"] == "target"
    assert "problem" in ask(panel, "delete", path="kb/garden")
    assert ask(panel, "create", path=7, kind="file")["problem"]["text"] == "path=7: give text"


def test_conflicting_edit_of_a_file_shows_both_versions(panel, files):
    opened = ask(panel, "edit", path="milk.md")["answer"]
    files.write("milk.md", "theirs")
    now = ask(panel, "save", **{**opened, "text": "mine"})["problem"]["now"]
    assert now["text"] == files.read("milk.md") == "theirs"
    files.write("milk.md", "theirs again")
    again = ask(panel, "save", **{**opened, **now, "text": "mine"})["problem"]["now"]
    assert again["text"] == files.read("milk.md") == "theirs again"
    ask(panel, "save", **{**opened, **again, "text": "mine"})
    assert files.read("milk.md") == "mine"
    panel.undo()
    assert files.read("milk.md") == "theirs again"
    files.delete("milk.md")
    gone = ask(panel, "save", **{**opened, "text": "mine"})["problem"]["now"]
    assert gone == {"text": "", "version": ""}
    ask(panel, "save", **{**opened, **gone, "text": "mine"})
    assert files.read("milk.md") == "mine"


def test_changes_of_other_writers_appear(panel, files, scratch):
    panel.show("notes/tea.md")
    with kbkit.open(scratch.path) as other:
        other.files.append("notes/tea.md", "An agent was here.")
        other.files.write("agent.md", "New.")
    panel._do_look({})
    assert "An agent was here" in shown(panel)["html"]
    assert "agent.md" in names(panel._view.roots)
    (files.path / "by-editor.md").write_text("# By an editor\n\nQuokka.\n")
    (files.path / "notes" / "tea.md").write_text("# Tea\n")
    panel._do_look({})
    assert "by-editor.md" in names(panel._view.roots)
    assert "An agent was here" not in shown(panel)["html"]
    assert scratch["files"].search("quokka").hits[0].uri == "by-editor.md"
    version = panel._view.tree["version"]
    panel._do_look({})
    assert panel._view.tree["version"] == version
    files.delete("notes")
    panel._do_look({})
    assert panel.file is None
    assert "notes/tea.md no longer exists" in status(panel)


def test_files_are_found_by_name_and_content(panel):
    panel.find_box.value = "green"
    found = panel._view.tree["found"]
    assert [row["id"] for row in found][:2] == ["notes/tea.md", "milk.md"]
    assert found[0]["about"].startswith("notes · ")
    panel.find_box.value = "notes tea"
    assert panel._view.tree["found"][0]["id"] == "notes/tea.md"
    panel.find_box.value = ""
    assert panel._view.tree["found"] is None


def test_knowledge_bases_are_read_only_folders(panel, scratch):
    assert lines(panel, "kb") == ["garden"]
    (page,) = ask(panel, "children", folder="kb/garden")["answer"]["rows"]
    panel.show(page["id"])
    assert "patience" in shown(panel)["html"]
    assert (shown(panel)["badge"], shown(panel)["editable"]) == ("read only", False)


def test_saved_file_updates_other_panels(scratch, panel):
    documents = DocumentsPanel(scratch)
    documents.kb_box.value = "files"
    ask(panel, "save", path="new.md", text="New.", version="")
    assert "files: 4 documents" in status(documents)


def test_panel_works_in_an_empty_workspace(tmp_path):
    with kbkit.open(tmp_path / "none") as workspace:
        panel = FilesPanel(workspace)
        assert panel.error is None
        assert panel._view.roots == []
        assert "New file" in panel._view.tree["empty"]
        panel.find_box.value = "x"
        assert panel.error is None
        ask(panel, "create", path="first.md", kind="file")
        assert panel.file.path == "first.md"
        assert Dashboard(workspace).panel("Files").error is None


def test_long_files_are_cut():
    rendered = render_file("a.md", "word " * 100_000, [])
    assert rendered.cut == 300_000
    assert render_text("a.log", "x" * 250_000).cut == 50_000


def test_poll_keeps_the_outcome_of_an_action(panel, files):
    panel.find_box.value = "tea"
    panel._find()
    found = status(panel)
    assert "of 3 files" in found
    ask(panel, "create", path="notes/oolong.md", kind="file")
    assert "Created: notes/oolong.md" in status(panel)
    files.write("notes/white-tea.md", "# White tea")  # as an agent does
    panel._do_look({})
    assert "Created: notes/oolong.md" in status(panel)
    panel.show("nowhere.md")
    problem = status(panel)
    files.write("notes/black-tea.md", "# Black tea")
    panel._do_look({})
    assert status(panel) == problem
    panel._find()
    assert "of 5 files" in status(panel)
    files.write("notes/red-tea.md", "# Red tea")
    panel._do_look({})
    assert "of 6 files" in status(panel)
