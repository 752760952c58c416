"""The documents panel against a real workspace."""

from dataclasses import replace

import pytest

import kbkit
from kbkit.errors import KbkitError
from kbkit.panels import DocumentsPanel
from kbkit.panels.document_tree import MAX_FOUND, DocumentTree
from kbkit.text.markdown.structure import plain_text
from tests.panels.conftest import status

SITE = "https://docs.example.org/en/latest"
MANY = (
    "See [open](../io/open.html#modes), <https://docs.example.org/en/latest/io/csv.html>, "
    "[there](https://elsewhere.example/), [here](#part) and [bad](javascript:bad()).\n\n"
    "## Part {#part}\n\n```python\ndef read(): ...\n```\n"
)
HOSTILE = (
    "<script>boom()</script> <img src=x onerror=boom()> ![x](https://evil.example/x.png) "
    "[click](javascript:boom()) \u202egnp.exe " + "x" * 1_000_000
)


@pytest.fixture(scope="module")
def garden(garden):
    with kbkit.open(garden) as workspace:
        kb = workspace["garden"]
        kb.add("Start", MANY, source=f"{SITE}/guide/start.html", tags=["first"])
        kb.add("Open", "# Open\n\n## Modes {#modes}\n\nRead.", source=f"{SITE}/io/open.html")
        kb.add("CSV", "# CSV\n\nRows.", source=f"{SITE}/io/csv.html")
        kb.add("<script>boom()</script>", HOSTILE, source="javascript:boom()")
    return garden


def names(rows):
    return [(row["name"], names(row["rows"])) if "rows" in row else row["name"] for row in rows]


def send(view, event, **content):
    """Send an event as the page does."""
    view._handle_custom_msg({"event": event, **content}, [])


def shown(panel):
    return panel._text.state


def test_tree_follows_paths(kb):
    tree = DocumentTree(kb.documents.list())
    assert names(tree.roots()) == [
        ("docs.example.org/en/latest", ["guide", "io"]),
        "javascript",
        "text",
    ]
    folder = "docs.example.org/en/latest/"
    assert names(tree.rows(folder)) == ["guide", "io"]
    assert [row["count"] for row in tree.rows(folder)] == [1, 2]
    assert names(tree.rows(f"{folder}io/")) == ["CSV", "Open"]
    assert tree.rows("nowhere/") == []
    (csv,) = [each.id for each in tree.documents.values() if each.title == "CSV"]
    assert tree.ancestors(csv)[-2:] == [folder, f"{folder}io/"]
    assert tree.ancestors("nothing") == []


def test_folder_with_most_documents_is_open(kb):
    documents = [each for each in kb.documents.list() if each.uri.startswith(SITE)]
    (top,) = DocumentTree(documents).roots()
    assert names([top]) == [("docs.example.org/en/latest", ["guide", ("io", ["CSV", "Open"])])]
    assert DocumentTree(()).roots() == []


def test_filter_matches_titles_and_addresses(kb):
    tree = DocumentTree(kb.documents.list())
    rows, many = tree.search("IO html csv")
    assert (names(rows), many) == ([("docs.example.org/en/latest/io", ["CSV"])], 1)
    assert tree.search("zebra") == ([], 0)


def test_filter_shows_a_limited_number(kb):
    (one,) = [each for each in kb.documents.list() if each.title == "CSV"]
    many = [replace(one, id=str(n), uri=f"{SITE}/{n}") for n in range(MAX_FOUND + 7)]
    rows, count = DocumentTree(many).search("csv")
    assert (len(rows[0]["rows"]), count) == (MAX_FOUND, MAX_FOUND + 7)


def test_document_opens_and_its_links_are_followed(kb):
    panel = DocumentsPanel(kb)
    assert panel.kb_box is None
    assert status(panel) == "garden: 5 documents"
    send(panel._view, "select", document=kb.documents[f"{SITE}/guide/start.html"].id)
    assert panel.document.title == shown(panel)["title"] == "Start"
    assert panel._view.state["ancestors"][-1].endswith("/guide/")
    html = shown(panel)["html"]
    assert '<span class="k">def</span>' in html
    assert "javascript" not in html
    assert 'href="https://elsewhere.example/"' in html
    inner = shown(panel)["links"]
    (opens,) = [href for href in inner if href.endswith("#modes")]
    (csv,) = [href for href in inner if kb.documents[f"{SITE}/io/csv.html"].id in href]
    send(panel._text, "follow", href=opens)
    assert (panel.document.title, shown(panel)["anchor"]) == ("Open", "modes")
    panel.back_button.click()
    assert panel.document.title == "Start"
    assert panel.back_button.disabled
    send(panel._text, "follow", href=csv)
    assert panel.document.title == "CSV"
    send(panel._text, "follow", href="#document-nothing")
    assert panel.document.title == "CSV"


def test_hit_opens_at_its_passage(scratch, kb):
    text = "# Long\n\n" + "".join(
        f"## Part {n} {{#p{n}}}\n\n{'Many words of it. ' * 60}\n\nThe {name} is said here.\n\n"
        for n, name in enumerate(["quagga", "tapir"])
    )
    kb.add("Long", text, source="long")
    (hit,) = kb.search("tapir", limit=1)
    panel = DocumentsPanel(scratch)
    scratch.create("other").add("Else", "Nothing.")
    panel.refresh()
    panel.kb_box.value = "other"
    panel.show(hit)
    state = panel._text.state
    assert panel.kb_box.value == "garden"
    assert (panel.document.title, state["anchor"]) == ("Long", hit.chunk.anchor)
    first, last = state["passage"].split("…")
    assert plain_text(hit.chunk.text).startswith(first)
    assert last.endswith("The tapir is said here.")
    serial = state["serial"]
    panel.show(hit)  # scrolls to the passage again
    assert panel._text.state["serial"] > serial
    panel.show("long")
    assert panel._text.state["passage"] == ""
    scratch.delete("garden")
    panel.show(hit)
    assert "no knowledge base named 'garden'" in status(panel)


def test_labels_are_stored_at_once_and_shown_in_other_panels(scratch, kb):
    panel, other = DocumentsPanel(scratch), DocumentsPanel(kb)
    for each in (panel, other):
        each.show(f"{SITE}/io/csv.html")
    panel.type_box.value = "policy"
    panel.tags_box.value = " one, two ,, one"
    document = kb.documents[f"{SITE}/io/csv.html"]
    assert (document.document_type, document.tags) == ("policy", ("one", "two"))
    assert status(panel) == "Saved: policy; one, two"
    assert panel.tags_box.value == "one, two"
    assert panel.document == document
    assert (other.type_box.value, other.tags_box.value) == ("policy", "one, two")


def test_stars_are_stored_and_undone(scratch, kb):
    panel = DocumentsPanel(scratch, rater="ann")
    panel.show(f"{SITE}/io/csv.html")
    kb.rate(panel.document.id, 2, rater="bob")
    send(panel._text, "rate", score=5)
    assert shown(panel)["stars"] == 5
    assert shown(panel)["rated"] == "3.5 of 5 by 2"
    send(panel._text, "rate", score=9)
    assert "score" in status(panel)
    panel.undo_button.click()
    assert (shown(panel)["stars"], panel.undo_button.disabled) == (0, True)
    assert kb.ratings.to_frame()["rater"].tolist() == ["bob"]


def test_document_is_deleted_and_restored(kb):
    panel = DocumentsPanel(kb)
    panel.show(f"{SITE}/io/csv.html")
    panel.delete_button.click()
    assert panel.document is None
    assert shown(panel)["title"] == ""
    assert status(panel) == "Deleted: “CSV”"
    assert "CSV" not in [document.title for document in kb.documents.list()]
    panel.undo_button.click()
    assert status(panel) == "Restored: “CSV”"
    assert "CSV" in [document.title for document in kb.documents.list()]
    assert panel.undo_button.disabled


def test_documents_panel_follows_changes(scratch):
    panel = DocumentsPanel(scratch)
    assert status(panel) == "garden: 5 documents"
    scratch["garden"].add("Lilies", "They float.")  # as another process does
    send(panel._view, "look")
    assert status(panel) == "garden: 6 documents"
    scratch.create("kitchen").add("Bread", "Bake it.")
    panel.refresh()
    assert panel.kb_box.options == ("garden", "kitchen")
    panel.show("text:Lilies")
    panel.kb_box.value = "kitchen"
    assert panel.document is None
    assert status(panel) == "kitchen: 1 document"
    scratch.delete("kitchen")
    panel.refresh()
    assert panel.kb_box.value == "garden"


def test_errors_are_one_line_and_keep_the_document(kb):
    panel = DocumentsPanel(kb)
    panel.show("nothing")
    assert isinstance(panel.error, KbkitError)
    assert 'role="alert"' in panel.status_line.value
    panel.show("text:Roses")
    kb.documents.delete("text:Roses")
    panel.tags_box.value = "thorny"
    assert "no document" in status(panel)
    assert panel.tags_box.value == ""


def test_empty_workspace_is_no_error(tmp_path):
    with kbkit.open(tmp_path / "none") as workspace:
        panel = DocumentsPanel(workspace)
        assert panel.error is None
        assert status(panel) == "No knowledge base yet"


def test_selection_survives_a_change_of_the_filter(kb):
    panel = DocumentsPanel(kb)
    panel.show(f"{SITE}/io/csv.html")
    panel.filter_box.value = "open"
    assert status(panel) == "1 of 5 documents"
    assert panel.document.title == "CSV"
    panel.filter_box.value = ""
    assert panel._view.state["found"] is None
