"""Panels show and change local and served workspaces."""

from __future__ import annotations

import pytest

from kbkit.panels import DocumentsPanel, EntriesPanel, FilesPanel, GraphPanel, SearchPanel

PAGE = "# Pools\n\nA connection pool keeps connections open.\n\n## Limits\n\nAt most ten."


@pytest.fixture(scope="module")
def kb(workspace):
    kb = workspace.create("manual", description="Of panels.")
    kb.add("Pools", PAGE, source="pools.md", tags=["pool"])
    return kb


def ask(panel, what, **values):
    """Send an event of the page and return the answer."""
    sent = []
    panel._view.send = lambda content, buffers=None: sent.append(content)
    panel._view._handle_custom_msg({"event": what, "number": 7, **values}, [])
    _done(panel)
    (answer,) = [each for each in sent if each.get("number") == 7]
    assert "problem" not in answer, answer
    return answer


def _done(panel):
    if hasattr(panel, "_join"):
        panel._join(20)
    assert panel.error is None, panel.error
    return panel


@pytest.mark.parametrize("of", ["workspace", "kb"])
def test_search_panel_finds_rates_and_filters(workspace, kb, of):
    panel = SearchPanel(workspace if of == "workspace" else kb, rater=f"ann-{of}")
    panel.search("connection pool")
    hit = _done(panel).hits[0]
    assert hit.title == "Pools"
    card = panel.cards.state["cards"][0]["id"]
    panel.cards._on_message(panel.cards, {"event": "rate", "card": card, "score": 4}, [])
    assert [each.score for each in kb.ratings.of(hit.chunk.id) if each.rater == f"ann-{of}"] == [4]
    again = SearchPanel(kb, rater="bob")
    again.search("connection pool")
    assert "average 4.0 from" in str([each["rated"] for each in _done(again).cards.state["cards"]])
    panel.filter_box.toggle.value = True
    assert panel.filter_box.controls["path"].options is not None
    assert "pool" in str(panel.filter_box.controls["tags"].options)
    panel._do_look({})
    _done(panel).close()


@pytest.mark.parametrize("of", ["workspace", "kb"])
def test_documents_panel_shows_changes_of_others(workspace, kb, of):
    panel = DocumentsPanel(workspace if of == "workspace" else kb)
    if of == "workspace":
        panel.kb_box.value = "manual"
    uri = kb.documents.list()[0].uri
    panel.show(uri)
    assert _done(panel).document.title == "Pools"
    kb.documents.update(uri, content=PAGE + f"\n\nNew in {of}.")
    panel._do_look({})
    assert f"New in {of}." in _done(panel).document.content
    panel.close()


def test_files_panel_shows_writes_and_undoes(workspace):
    first = workspace.files.write("notes/a.md", "# A")
    panel = FilesPanel(workspace)
    panel.show("notes/a.md")
    assert _done(panel).file.path == "notes/a.md"
    ask(panel, "save", path="notes/a.md", text="# AB", version=first.version)
    assert workspace.files.read("notes/a.md") == "# AB"
    panel.undo()
    assert workspace.files.read("notes/a.md") == "# A"
    ask(panel, "create", path="notes/new.md")
    ask(panel, "delete", path="notes/new.md")
    assert workspace.files.trash()[0].path == "notes/new.md"
    workspace.files.write("notes/a.md", "# Others")
    panel.show("notes/a.md")
    workspace.files.write("notes/a.md", "# Others!")
    panel._do_look({})
    assert panel.file.size == 9
    panel.find_box.value = "a.md"
    panel._find()
    _done(panel).close()


def test_panels_show_changes_on_disk(workspace, disk):
    disk /= "server" if hasattr(workspace, "url") else "folder"
    workspace.files.write("notes/by-hand.md", "# Before")
    panel = FilesPanel(workspace)
    panel.show("notes/by-hand.md")
    panel._do_look({})
    (disk / "files" / "notes" / "by-hand.md").write_text("# Written by an editor, and longer")
    panel._do_look({})
    assert _done(panel).file.size == 34
    assert "by an editor" in panel._view.state["html"]
    seen = panel._seen
    panel._do_look({})
    assert panel._seen == seen
    entry = workspace.entries.create("Changed by hand")
    entries = EntriesPanel(workspace)
    entries.show(entry.slug)
    place = disk / "entries" / entry.slug / "skill.yaml"
    place.write_text(place.read_text().replace("Changed by hand", "Changed by an editor"))
    entries._do_look({})
    assert _done(entries).entry.title == "Changed by an editor"
    for each in (panel, entries):
        each.close()


def test_entries_panel_shows_changes_and_votes(workspace):
    entry = workspace.entries.create("Shown in a panel", tags=["t"], files={"code/a.py": "print()"})
    panel = EntriesPanel(workspace, rater="ann")
    panel.show(entry.slug)
    assert _done(panel).entry.slug == entry.slug
    ask(panel, "rate", slug=entry.slug, score=5)
    assert workspace.entries.read(entry.slug).rating.count == 1
    assert "print" in str(ask(panel, "code", slug=entry.slug, path="code/a.py"))
    workspace.entries.rate(entry.slug, 1, rater="bob")
    panel._do_look({})
    assert _done(panel).entry.rating.count == 2
    ask(panel, "delete", slug=entry.slug)
    panel.undo()
    assert workspace.entries.read(entry.slug).rating.count == 2
    panel.close()


@pytest.mark.parametrize("of", ["workspace", "kb"])
def test_graph_panel_draws_and_changes(workspace, kb, of):
    panel = _done(GraphPanel(workspace if of == "workspace" else kb, rater="ann"))
    ask(panel, "create", name=f"Drawn {of}", type="term", description="d", aliases=[])
    entity = workspace.graph.entity(f"Drawn {of}")
    assert (entity.made_by, entity.type) == ("ann", "term")
    panel.show(entity.id)
    assert ask(panel, "details", id=f"entity:{entity.id}")
    ask(panel, "undo")
    _done(panel).close()
