"""The graph panel against a real workspace."""

import pytest

import kbkit
from kbkit.models import Target
from kbkit.panels import GraphPanel
from tests.panels.conftest import ask

HOSTILE = "<script>boom()</script> \u202egnp.exe \x07 " + "long " * 80


@pytest.fixture(scope="module")
def garden(garden):
    with kbkit.open(garden) as workspace:
        for number in range(6):
            workspace["garden"].add(
                f"Pool {number}",
                f"# `pool.part{number}()`\n\nCalls `pool.part{(number + 1) % 6}()`. "
                "Raises `PoolError` if `pool.size` is wrong.",
                source=f"https://docs.example.org/{number}.html",
            )
    return garden


@pytest.fixture
def panel(scratch):
    panel = opened(scratch)
    yield panel
    panel.close()


def opened(target, **options):
    panel = GraphPanel(target, rater="reader", **options)
    panel._join(60)
    assert panel.error is None
    return panel


def picture(panel):
    return panel._view.state["picture"]


def nodes(panel, field):
    return {each[field] for each in picture(panel)["nodes"]}


def node(panel, name):
    (found,) = [each for each in picture(panel)["nodes"] if each["name"].startswith(name)]
    return found


def test_graph_shows_relations_and_gaps(panel):
    assert "PoolError" in nodes(panel, "name")
    assert any(name.startswith("pool.part3") for name in nodes(panel, "name"))
    assert picture(panel)["edges"]
    assert {"kind", "id", "name", "reason"} == set(panel._view.state["gaps"][0])
    assert "All knowledge bases: " in panel.status_line.value
    before = picture(panel)
    panel.refresh()
    panel._join(60)
    assert picture(panel) == before


def test_changes_of_another_panel_appear_in_place(panel, scratch):
    other = opened(scratch)
    before = {each["id"]: (each["x"], each["y"]) for each in picture(other)["nodes"]}
    node_id = node(panel, "PoolError")["id"]
    ask(panel, "relate", id=node_id, relation="handles", target="pool.size", weight="1")
    ask(panel, "create", name="warden", type="component", aliases=[])
    ask(panel, "relate", id=node_id, relation="related_to", target="warden", weight="1")
    other._join(60)
    assert "warden" in nodes(other, "name")
    assert "handles" in {each["name"] for each in picture(other)["edges"]}
    after = {each["id"]: (each["x"], each["y"]) for each in picture(other)["nodes"]}
    assert {known: after[known] for known in before} == before, "nothing jumps"
    other.close()


def test_look_shows_changes_of_another_process(panel, scratch):
    version = panel._view.state["version"]
    ask(panel, "look")
    assert panel._view.state["version"] == version, "nothing has changed"
    with kbkit.open(scratch.path) as other:
        other.graph.create("warden", type="component")
        other.graph.relate("PoolError", "related_to", "warden", by="an agent")
    ask(panel, "look")
    assert "warden" in nodes(panel, "name")


def test_node_details_list_facts_neighbors_and_passages(panel, scratch):
    answer = ask(panel, "details", id=node(panel, "pool.part0")["id"])["answer"]
    assert answer["item"]["name"].startswith("pool.part0")
    assert any("passage" in value for _, value in answer["facts"])
    assert {"raises", "calls"} & {each["relation"] for each in answer["neighbors"]}
    assert answer["documents"][0]["name"] == "Pool 0"
    assert "Raises" in answer["passages"][0]["text"]
    assert panel.entity == scratch.graph.entity(answer["fields"]["name"])
    document = "document:" + answer["documents"][0]["document"]
    assert ask(panel, "details", id=document)["answer"]["item"]["name"] == "Pool 0"
    around = ask(panel, "around", id=document)["answer"]
    assert document in {each["id"] for each in around["nodes"]}
    found = ask(panel, "find", text="poolerr")["answer"]
    assert [each["name"] for each in found] == ["PoolError"]


def test_entity_is_changed_and_the_change_undone(panel, scratch):
    known = node(panel, "PoolError")["id"]
    ask(panel, "details", id=known)
    changed = {"name": "Pool error", "type": "error", "description": "Bad.", "aliases": ["E1"]}
    answer = ask(panel, "update", id=known, **changed)["answer"]
    assert answer["item"]["name"] == "Pool error"
    assert "Pool error" in answer["undo"] or "PoolError" in answer["undo"]
    entity = scratch.graph.entity("Pool error")
    assert (entity.description, entity.made_by) == ("Bad.", "reader")
    assert "E1" in entity.aliases
    assert node(panel, "Pool error")["type"] == "error"
    assert "Undone" in ask(panel, "undo")["answer"]["said"]
    assert scratch.graph.entity("PoolError").description != "Bad."
    assert panel._view.state["undo"] == ""


def test_outcome_stays_until_the_next_request(panel, kb):
    known = node(panel, "PoolError")["id"]
    ask(panel, "details", id=known)
    ask(panel, "update", id=known, name="PoolError", type="error", description="Bad.", aliases=[])
    assert "Saved: PoolError" in panel.status_line.value
    kb.add("Pool 9", "# `pool.part9()`\n\nCalls `pool.part1()`.", source="https://a.example/9")
    ask(panel, "look")
    assert any(each["name"].startswith("pool.part9") for each in picture(panel)["nodes"])
    assert "Saved: PoolError" in panel.status_line.value
    panel.documents_box.value = True
    panel._join(60)
    assert "All knowledge bases: " in panel.status_line.value


def test_invalid_fields_are_named_and_nothing_changes(panel, scratch):
    known = node(panel, "PoolError")["id"]
    ask(panel, "details", id=known)
    good = {"name": "PoolError", "type": "error", "description": "", "aliases": []}
    before = scratch.graph.entity("PoolError")
    for field, value in {"name": " ", "type": "two words!", "aliases": ["x" * 501]}.items():
        problem = ask(panel, "update", id=known, **{**good, field: value})["problem"]
        assert problem["field"] in {field, "name"}, problem
        assert problem["text"]
    taken = ask(panel, "update", id=known, **{**good, "name": "pool.size"})["problem"]
    assert taken["field"] == "name"
    assert scratch.graph.entity("PoolError") == before
    relation = {"id": known, "relation": "depends_on", "target": "pool.size"}
    for field, value in {"target": "nothing", "weight": "7", "relation": "?"}.items():
        assert ask(panel, "relate", **{**relation, field: value})["problem"]["field"] == field
    assert ask(panel, "create", **{**good, "name": "PoolError"})["problem"]["field"] == "name"


def test_conflicting_edit_of_an_entity_is_reported(panel, scratch):
    known = node(panel, "PoolError")["id"]
    ask(panel, "details", id=known)
    with kbkit.open(scratch.path) as other:
        other.graph.update("PoolError", description="From elsewhere.", by="ann")
    mine = {"name": "PoolError", "type": "error", "description": "Mine.", "aliases": []}
    problem = ask(panel, "update", id=known, **mine)["problem"]
    assert "ann" in problem["text"]
    assert problem["now"]["description"] == "From elsewhere."
    assert scratch.graph.entity("PoolError").description == "From elsewhere."
    assert ask(panel, "update", id=known, over=True, **mine)["answer"]
    assert scratch.graph.entity("PoolError").description == "Mine."


def test_relations_are_created_and_deleted(panel, scratch):
    known = node(panel, "PoolError")["id"]
    made = ask(panel, "relate", id=known, relation="caused by", target="pool.size", weight="0.5")
    assert "caused_by" in made["answer"]["said"]
    details = ask(panel, "details", id=known)["answer"]
    (row,) = [each for each in details["neighbors"] if each["relation"] == "caused_by"]
    assert row["forward"]
    ask(panel, "unrelate", relation=row["number"])
    assert scratch.graph.relations("PoolError", name="caused_by") == []
    ask(panel, "undo")
    assert len(scratch.graph.relations("PoolError", name="caused_by")) == 1
    assert "problem" in ask(panel, "unrelate", relation=12345)


def test_entities_with_hostile_names_are_created_and_deleted(panel, scratch):
    made = ask(panel, "create", name=HOSTILE, type="term", description="", aliases=[])["answer"]
    ask(panel, "relate", id=made["item"]["id"], relation="related_to", target="PoolError")
    name = node(panel, "<script>")["name"]
    assert len(name) <= 160
    assert not {"\u202e", "\x07"} & set(name)
    details = ask(panel, "details", id=made["item"]["id"])["answer"]
    assert details["fields"]["name"] == " ".join(HOSTILE.split()), "what is edited is whole"
    too_long = ask(panel, "create", name="x" * 10_000, type="term", description="", aliases=[])
    assert too_long["problem"]["field"] == "name"
    assert len(too_long["problem"]["text"]) <= 300
    ask(panel, "delete", id=made["item"]["id"])
    assert made["item"]["id"] not in nodes(panel, "id")


def test_merge_suggestions_are_applied_undone_and_refused(panel, scratch):
    for name in ("random access memory", "RAM"):
        scratch.graph.create(name, type="term")
    found = ask(panel, "suggestions")["answer"]
    (acronym,) = [each for each in found if each["reason"] == "acronym"]
    assert "RAM" in acronym["evidence"]
    pair = {"keep": acronym["keep"]["id"], "merge": acronym["merge"]["id"]}
    assert "Merged" in ask(panel, "merge", **pair)["answer"]["said"]
    assert "RAM" in scratch.graph.entity("random access memory").aliases
    ask(panel, "undo")
    assert scratch.graph.entity("random access memory").aliases == ()
    ask(panel, "refuse", **pair)
    assert acronym not in ask(panel, "suggestions")["answer"]


def test_malformed_messages_of_a_page_change_nothing(panel, scratch):
    before = scratch.graph.to_json()
    for values in ({"id": 5}, {"id": "nothing"}, {"id": "entity:none"}, {"id": None}, {}):
        assert ask(panel, "details", **values)["problem"]["text"]
    assert ask(panel, "update", id="entity:none", name=[1])["problem"]["text"]
    assert ask(panel, "create", name={"a": 1})["problem"]["text"]
    panel._view._handle_custom_msg({"event": "__init__", "number": 1}, [])
    panel._view._handle_custom_msg({"event": "undo", "number": "x"}, [])
    assert scratch.graph.to_json() == before
    with pytest.raises(ValueError, match="nothing"):
        Target.of_key("nothing")


def test_empty_graph_says_what_to_do(tmp_path):
    with kbkit.open(tmp_path / "empty") as workspace:
        panel = opened(workspace)
        assert "create one" in panel._view.state["notice"]
        workspace.create("bare")
        panel.refresh()
        panel._join(60)
        assert "kbkit annotate" in panel._view.state["notice"]
        assert picture(panel)["nodes"] == []
        workspace.graph.create("by hand")
        panel.refresh()
        panel._join(60)
        panel.close()


def test_one_knowledge_base_and_documents_as_nodes(scratch, kb):
    opens = []
    panel = opened(kb, limit=50, on_open=opens.append)
    assert panel.kb_box is None
    types = {"symbol", "error", "setting", "term", "name", "entity", "file"}
    assert nodes(panel, "type") <= types
    panel.documents_box.value = True
    panel._join(60)
    assert "document" in nodes(panel, "type")
    details = ask(panel, "details", id=node(panel, "PoolError")["id"])["answer"]
    panel._view._handle_custom_msg({"event": "open", "chunk": details["passages"][0]["chunk"]}, [])
    assert opens[0].kb == "garden"
    panel.close()
