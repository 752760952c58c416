"""The dashboard over a real workspace."""

import ipywidgets as widgets
import pytest

import kbkit
from kbkit.panels import Dashboard, DocumentsPanel, IngestPanel, SearchPanel


def open_tab(dashboard, title):
    dashboard.tabs.selected_index = dashboard.tabs.titles.index(title)
    return dashboard.panel(title)


def test_panels_are_created_when_their_tab_opens(scratch):
    dashboard = Dashboard(scratch)
    titles = "Search Documents Files Entries Graph Ingest Judge Evaluate"
    assert dashboard.tabs.titles == tuple(titles.split())
    assert [len(tab.children) for tab in dashboard.tabs.children] == [1, 0, 0, 0, 0, 0, 0, 0]
    assert isinstance(dashboard.panel("Search"), SearchPanel)
    panel = open_tab(dashboard, "Documents")
    assert isinstance(panel, DocumentsPanel)
    assert dashboard.tabs.children[1].children == (panel,)
    assert open_tab(dashboard, "Documents") is panel
    with pytest.raises(KeyError, match="there are Search, Documents"):
        dashboard.panel("Nothing")


def test_chosen_knowledge_base_carries_over_to_other_tabs(scratch):
    scratch.create("kitchen").add("Bread", "Bake it.")
    dashboard = Dashboard(scratch)
    open_tab(dashboard, "Documents").kb_box.value = "kitchen"
    assert open_tab(dashboard, "Ingest").kb_box.value == "kitchen"
    assert open_tab(dashboard, "Judge").kb_box.value == "kitchen"
    assert open_tab(dashboard, "Search").kb_box.value == ""  # all of them
    dashboard.panel("Ingest").kb_box.value = "not there yet"
    open_tab(dashboard, "Ingest")
    assert open_tab(dashboard, "Documents").kb_box.value == "kitchen"


def test_panels_begin_with_the_last_used_knowledge_base(scratch):
    scratch.create("attic").add("Trunks", "Old ones.")
    scratch["garden"].add("Tulips", "Bulbs.")
    assert DocumentsPanel(scratch).kb_box.value == "garden"  # changed last
    panel = DocumentsPanel(scratch)
    panel.kb_box.value = "attic"
    assert IngestPanel(scratch).kb_box.value == "attic"
    scratch.delete("attic")
    assert DocumentsPanel(scratch).kb_box.value == "garden"


def test_card_opens_its_document_at_the_passage(scratch):
    scratch.create("kitchen").add("Bread", "Bake it for an hour.")
    dashboard = Dashboard(scratch)
    search = dashboard.panel("Search")
    open_tab(dashboard, "Documents").kb_box.value = "garden"
    open_tab(dashboard, "Search")
    assert search.search("bake for an hour")[0].title == "Bread"
    cards = search.cards
    assert cards.state["opens"]
    cards._handle_custom_msg({"event": "document", "card": cards.state["cards"][0]["id"]}, [])
    documents = dashboard.panel("Documents")
    assert dashboard.tabs.titles[dashboard.tabs.selected_index] == "Documents"
    assert (documents.kb_box.value, documents.document.title) == ("kitchen", "Bread")
    assert documents._text.state["passage"] == "Bake it for an hour."
    assert not SearchPanel(scratch).cards.state["opens"]


def test_changes_in_one_tab_show_in_the_others(scratch):
    dashboard = Dashboard(scratch)
    documents = dashboard.panel("Documents")
    judge = dashboard.panel("Judge")
    ingest = dashboard.panel("Ingest")
    ingest.kb_box.value = "kitchen"
    ingest.add_files([("bread.md", b"# Bread\n\nBake it.")])
    assert ingest.wait(60).new == 1
    assert documents.kb_box.options == ("garden", "kitchen")
    assert judge.kb_box.options == ("garden", "kitchen")
    documents.kb_box.value = "garden"
    ingest.kb_box.value = "garden"
    ingest.add_files([("tulips.md", b"# Tulips\n\nBulbs.")])
    ingest.wait(60)
    assert "garden: 2 documents" in documents.status_line.value


def test_judge_and_evaluate_tabs_open_their_panels(scratch):
    dashboard = Dashboard(scratch, rater="ann")
    judge = dashboard.panel("Judge")
    judge.open_button.click()
    assert 'role="alert"' in judge.status_line.value  # there are no ratings
    judge.input_box.value = "roses\n\n water "
    judge.open_button.click()
    assert list(judge.panel.judging.queries) == ["roses", "water"]
    evaluate = dashboard.panel("Evaluate")
    evaluate.input_box.value = "nowhere.tsv"
    evaluate.open_button.click()
    assert "nowhere.tsv" in evaluate.status_line.value
    evaluate.input_box.value = ""
    evaluate.open_button.click()
    assert evaluate.panel is not None


def test_tab_that_fails_shows_the_error(scratch):
    def fail():
        raise kbkit.KbkitError("<b>no graph</b>")

    def graph():
        return widgets.HTML("a graph")

    dashboard = Dashboard(scratch, more=[("Broken", fail), ("More", graph)])
    open_tab(dashboard, "Broken")
    (message,) = dashboard.tabs.children[8].children
    assert "&lt;b&gt;no graph" in message.value
    assert open_tab(dashboard, "More").value == "a graph"


def test_empty_workspace_has_a_dashboard(tmp_path):
    with kbkit.open(tmp_path / "none") as workspace:
        dashboard = Dashboard(workspace)
        for title in dashboard.tabs.titles:
            assert open_tab(dashboard, title) is not None
        dashboard.panel("Evaluate").open_button.click()
        assert 'role="alert"' in dashboard.panel("Evaluate").status_line.value
