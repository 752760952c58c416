"""A slow graph is reloaded in the background, but edits show at once."""

import pytest

from kbkit.knowledge_base import handle_of
from kbkit.stores.catalog import graph_tables
from tests.waiting import until


def test_large_graph_reloads_in_background_but_edits_show_at_once(workspace, monkeypatch):
    monkeypatch.setattr(graph_tables, "_LONG", -1.0)
    kb = workspace.create("tools")
    kb.add("Saw", "# Saw\n\n`saw.cut()` cuts wood.")
    graphs, kb_id = handle_of(kb).stores.graphs, handle_of(kb).id
    first = graphs.get(kb_id)
    monkeypatch.setattr(graph_tables, "_PAUSE", 1e9)
    kb.add("Axe", "# Axe\n\n`axe.split()` splits wood.")
    assert graphs.get(kb_id) is first
    workspace.graph.relate("saw.cut", "precedes", "axe.split")
    edited = graphs.get(kb_id)
    assert [relation.name for relation in edited.relations].count("precedes") == 1
    kb.add("Plane", "# Plane\n\n`plane.smooth()` smoothes wood.")
    assert graphs.get(kb_id) is edited


@pytest.mark.slow
def test_large_graph_is_renewed_without_further_commits(workspace, monkeypatch):
    monkeypatch.setattr(graph_tables, "_LONG", -1.0)
    kb = workspace.create("tools")
    kb.add("Saw", "# Saw\n\n`saw.cut()` cuts wood.")
    graphs, kb_id = handle_of(kb).stores.graphs, handle_of(kb).id
    first = graphs.get(kb_id)
    kb.add("Plane", "# Plane\n\n`plane.smooth()` smoothes wood.")
    until(lambda: graphs.get(kb_id) is not first)
