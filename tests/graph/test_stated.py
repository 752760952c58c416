"""Relations that a language model states, and settings of a recipe for the graph."""

import json
import re

import pytest

from kbkit.errors import RecipeError
from kbkit.models import StatedRelation
from kbkit.recipes import GraphSpec, KnowledgeBaseSpec, LlmAnnotation, load_recipe
from tests.ingest.scripted_llm import serve

PATH = "tests.ingest.scripted_llm:ScriptedLLM"
TEXT = "Before `open_pool` there has to be a `Gateway`, whose `idle_limit` it heeds.\n"


def related(source, name, target):
    return {"source": source, "name": name, "target": target}


def state(*relations):
    """A model that states the relations for every passage."""
    statement = {"normalized_text": "A pool needs a gateway.", "relations": list(relations)}

    def answer(prompt):
        numbers = re.findall(r"^\[(\d+)\]$", prompt, re.MULTILINE)
        passages = [{"number": int(number), "statements": [statement]} for number in numbers]
        return json.dumps({"passages": passages})

    return answer


def spec(service, **more):
    llm = LlmAnnotation(llm=PATH, arguments={"api_base": service.address})
    return KnowledgeBaseSpec(annotation=llm, **more)


def stated(workspace, made_by="kbkit"):
    return {
        (each.source_name, each.name, each.target_name)
        for each in workspace.graph.relations("open_pool")
        if each.made_by == made_by and each.name not in ("defined_in", "co_occurs")
    }


def test_stated_relations_between_names_of_the_passage_are_stored(workspace):
    relations = [
        related("open_pool", "Depends on", "gateway"),
        related("open_pool", "heeds", "idle_limit"),
        related("open_pool", "needs", "Samovar"),
        related("open_pool", "is", "open_pool"),
        related("open_pool", "<b>bad</b> name!", "Gateway"),
    ]
    with serve(state(*relations)) as service:
        kb = workspace.create("pools", spec=spec(service))
        kb.add("Pools", TEXT, source="text:1")
        kb.improve()
        [annotation] = kb.annotations
        assert set(annotation.relations) == {
            StatedRelation("open_pool", "depends_on", "Gateway"),
            StatedRelation("open_pool", "heeds", "idle_limit"),
        }
        expected = {("open_pool", "depends_on", "Gateway"), ("open_pool", "heeds", "idle_limit")}
        assert stated(workspace) == expected
        [relation] = [one for one in workspace.graph.relations("open_pool") if one.name == "heeds"]
        assert relation.evidence == (next(iter(kb.chunks)).id,)
        calls = len(service.asked)
        workspace.graph.delete(relation)
        kb.add("More", "More of `open_pool` and a `Gateway`.\n", source="text:2")
        kb.improve()
        assert ("open_pool", "heeds", "idle_limit") not in stated(workspace)  # deleted by hand
        assert ("open_pool", "depends_on", "Gateway") in stated(workspace)
        assert len(service.asked) == calls + 1
        kb.documents.delete("text:1")
        kb.documents.delete("text:2")
        assert stated(workspace) == set()


INVALID = {
    "no list": {"relations": "open_pool needs Gateway"},
    "no name": {"relations": [{"source": "open_pool", "target": "Gateway"}]},
    "a number": {"relations": [{"source": 1, "name": "needs", "target": "Gateway"}]},
}


@pytest.mark.parametrize("wrong", INVALID.values(), ids=INVALID)
def test_model_is_asked_again_once_after_invalid_relations(workspace, wrong):
    answers = [wrong, {}]

    def answer(prompt):
        statement = {"normalized_text": "A pool needs a gateway.", **answers.pop(0)}
        return json.dumps({"passages": [{"number": 1, "statements": [statement]}]})

    with serve(answer) as service:
        kb = workspace.create("pools", spec=spec(service))
        kb.add("Pools", TEXT, source="text:1")
        kb.improve()
        assert len(service.asked) == 2
        assert "relations" in service.asked[1]["messages"][-1]["content"]
        assert [each.normalized_text for each in kb.annotations] == ["A pool needs a gateway."]


def names_of_relations(workspace):
    return set(workspace.graph.to_frame()["relation"])


def test_recipe_sets_which_relations_are_built(workspace):
    kb = workspace.create("manual")
    for n in range(8):
        both = "Set `pool.size` and `pool.limit`." if n < 4 else f"Set `other.key{n}` alone."
        kb.add(f"P{n}", f"# P{n}\n\n{both} See [P0](p0).\n", source=f"http://x.org/p{n}")
    kb.improve()
    workspace.graph.relate("pool.size", "limits", "pool.limit")
    assert {"co_occurs", "links_to", "limits"} <= names_of_relations(workspace)
    for graph in ({"co_occurrence": 1}, {"least_sections": 5}, {"co_occurrences": 0}):
        kb.configure(KnowledgeBaseSpec(graph=GraphSpec(**graph)))
        assert "co_occurs" not in names_of_relations(workspace)
        assert {"links_to", "limits"} <= names_of_relations(workspace)
    kb.configure(KnowledgeBaseSpec(graph=GraphSpec(build=False)))
    assert names_of_relations(workspace) == {"limits"}
    assert {each.name for each in workspace.graph.entities("pool")} == {"pool.size", "pool.limit"}
    kb.add("P9", "# P9\n\nSee [P0](p0).\n", source="http://x.org/p9")
    assert names_of_relations(workspace) == {"limits"}
    kb.configure(KnowledgeBaseSpec())
    assert {"co_occurs", "links_to", "limits"} <= names_of_relations(workspace)


def test_unknown_key_and_value_are_named_with_their_lines(tmp_path):
    recipe = tmp_path / "r.yaml"
    recipe.write_text(
        "name: r\nsources:\n- {type: files, path: .}\ngraph:\n  built: false\n  co_occurrence: 2\n"
    )
    with pytest.raises(RecipeError) as error:
        load_recipe(recipe)
    message = str(error.value)
    assert "r.yaml:5: graph.built: unknown key; did you mean 'build'?" in message
    assert "r.yaml:6: graph.co_occurrence: must be less than or equal" in message


def test_names_of_a_recipe_have_its_types(workspace):
    names = [{"name": "make", "type": "command"}, {"name": "Go", "type": "term"}]
    spec = KnowledgeBaseSpec.model_validate({"annotation": {"names": names}})
    kb = workspace.create("tools", spec=spec)
    kb.add("Tools", "# Tools\n\nRun `make`. Go is compiled, and `gofmt` too.\n", source="text:1")
    types = {each.name: each.type for each in workspace.graph.entities()}
    assert (types["make"], types["Go"]) == ("command", "term")


def test_aliases_of_a_recipe_lead_to_its_entities(workspace):
    names = [{"name": "Go", "aliases": ["golang", "gofmt"]}, {"name": "absent", "aliases": ["x1"]}]
    spec = KnowledgeBaseSpec.model_validate({"annotation": {"names": names}})
    own = KnowledgeBaseSpec.model_validate({"annotation": {"names": ["gofmt"]}})
    other = workspace.create("other", spec=own)  # one alias is an entity here
    other.add("gofmt", "# gofmt\n\nThe command `gofmt` formats code.\n", source="text:1")
    kb = workspace.create("tools", spec=spec)
    kb.add("Tools", "# Tools\n\nThe compiler of golang is quick.\n", source="text:1")
    go = workspace.graph.entity("golang")
    assert (go.name, go.aliases) == ("Go", ("golang",))
    assert workspace.graph.entity("gofmt").name == "gofmt"
    assert [each.title for each in workspace.about("golang").documents] == ["Tools"]
    workspace.graph.update("Go", aliases=[])
    kb.add("More", "# More\n\nGo runs anywhere.\n", source="text:2")
    assert workspace.graph.entity("Go").aliases == ()
