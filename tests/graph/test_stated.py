"""Relations that a language model states, and what a recipe says of the graph."""

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


def says(*relations):
    """A model that says of every passage that its entities are related so."""

    def answer(given):
        statement = {"normalized_text": "A pool needs a gateway.", "relations": list(relations)}
        numbers = re.findall(r"^\[(\d+)\]$", given, re.MULTILINE)
        return json.dumps(
            {"passages": [{"number": int(n), "statements": [statement]} for n in numbers]}
        )

    return answer


def spec(service, **more):
    llm = LlmAnnotation(llm=PATH, arguments={"api_base": service.address})
    return KnowledgeBaseSpec(annotation=llm, **more)


def stated(workspace, made_by="kbkit"):
    found = workspace.graph.relations("open_pool")
    names = workspace.graph.names([end for each in found for end in (each.source, each.target)])
    return {
        (names[each.source], each.name, names[each.target])
        for each in found
        if each.made_by == made_by and each.name not in ("defined_in", "co_occurs")
    }


def test_a_model_states_relations_between_names_that_stand_in_the_passage(workspace):
    said = [
        related("open_pool", "Depends on", "gateway"),
        related("open_pool", "heeds", "idle_limit"),
        related("open_pool", "needs", "Samovar"),
        related("open_pool", "is", "open_pool"),
        related("open_pool", "<b>bad</b> name!", "Gateway"),
    ]
    with serve(says(*said)) as service:
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
        assert relation.evidence == (annotation_chunk(kb),)
        asked = len(service.asked)
        workspace.graph.delete(relation)
        kb.add("More", "More of `open_pool` and a `Gateway`.\n", source="text:2")
        kb.improve()
        assert ("open_pool", "heeds", "idle_limit") not in stated(workspace)  # by hand
        assert ("open_pool", "depends_on", "Gateway") in stated(workspace)
        assert len(service.asked) == asked + 1
        kb.documents.delete("text:1")
        kb.documents.delete("text:2")
        assert stated(workspace) == set()


def annotation_chunk(kb):
    return next(iter(kb.chunks)).id


NONSENSE = {
    "no list": {"relations": "open_pool needs Gateway"},
    "no name": {"relations": [{"source": "open_pool", "target": "Gateway"}]},
    "a number": {"relations": [{"source": 1, "name": "needs", "target": "Gateway"}]},
}


@pytest.mark.parametrize("wrong", NONSENSE.values(), ids=NONSENSE)
def test_relations_that_do_not_fit_are_told_the_model_once(workspace, wrong):
    said = [wrong, {}]

    def answer(given):
        statement = {"normalized_text": "A pool needs a gateway.", **said.pop(0)}
        return json.dumps({"passages": [{"number": 1, "statements": [statement]}]})

    with serve(answer) as service:
        kb = workspace.create("pools", spec=spec(service))
        kb.add("Pools", TEXT, source="text:1")
        kb.improve()
        assert len(service.asked) == 2
        assert "relations" in service.asked[1]["messages"][-1]["content"]
        assert [each.normalized_text for each in kb.annotations] == ["A pool needs a gateway."]


def together(workspace):
    return [one for one in workspace.graph.to_networkx().edges(keys=True) if one[2] == "co_occurs"]


def names_of_relations(workspace):
    return set(workspace.graph.to_frame()["relation"])


def test_a_recipe_says_whether_relations_are_read_and_which_are_too_weak(workspace):
    kb = workspace.create("manual")
    for n in range(8):
        both = "Set `pool.size` and `pool.limit`." if n < 4 else f"Set `other.key{n}` alone."
        kb.add(f"P{n}", f"# P{n}\n\n{both} See [P0](p0).\n", source=f"http://x.org/p{n}")
    kb.improve()
    workspace.graph.relate("pool.size", "limits", "pool.limit")
    assert {"co_occurs", "links_to", "limits"} <= names_of_relations(workspace)
    kb.configure(KnowledgeBaseSpec(graph=GraphSpec(co_occurrence=1)))
    assert "co_occurs" not in names_of_relations(workspace)
    assert {"links_to", "limits"} <= names_of_relations(workspace)
    kb.configure(KnowledgeBaseSpec(graph=GraphSpec(least_sections=5)))
    assert "co_occurs" not in names_of_relations(workspace)
    kb.configure(KnowledgeBaseSpec(graph=GraphSpec(co_occurrences=0)))
    assert "co_occurs" not in names_of_relations(workspace)
    kb.configure(KnowledgeBaseSpec(graph=GraphSpec(build=False)))
    assert names_of_relations(workspace) == {"limits"}
    assert {each.name for each in workspace.graph.entities("pool")} == {"pool.size", "pool.limit"}
    kb.add("P9", "# P9\n\nSee [P0](p0).\n", source="http://x.org/p9")
    assert names_of_relations(workspace) == {"limits"}
    kb.configure(KnowledgeBaseSpec())
    assert {"co_occurs", "links_to", "limits"} <= names_of_relations(workspace)


def test_a_wrong_key_is_named_with_its_line(tmp_path):
    recipe = tmp_path / "r.yaml"
    recipe.write_text(
        "name: r\nsources:\n- {type: files, path: .}\ngraph:\n  built: false\n  co_occurrence: 2\n"
    )
    with pytest.raises(RecipeError) as error:
        load_recipe(recipe)
    told = str(error.value)
    assert re.search(r"r\.yaml:5: graph\.built: unknown key; did you mean 'build'\?", told)
    assert re.search(r"r\.yaml:6: graph\.co_occurrence: input should be less than or equal", told)


def test_names_of_a_recipe_have_the_types_that_it_says(workspace):
    names = [{"name": "make", "type": "command"}, {"name": "Go", "type": "term"}]
    spec = KnowledgeBaseSpec.model_validate({"annotation": {"names": names}})
    kb = workspace.create("tools", spec=spec)
    kb.add("Tools", "# Tools\n\nRun `make`. Go is compiled, and `gofmt` too.\n", source="text:1")
    found = {each.name: each.type for each in workspace.graph.entities()}
    assert found["make"] == "command"
    assert found["Go"] == "term"


def test_other_names_of_a_recipe_lead_to_its_entities(workspace):
    names = [{"name": "Go", "aliases": ["golang", "gofmt"]}, {"name": "absent", "aliases": ["x1"]}]
    spec = KnowledgeBaseSpec.model_validate({"annotation": {"names": names}})
    own = KnowledgeBaseSpec.model_validate({"annotation": {"names": ["gofmt"]}})
    other = workspace.create("other", spec=own)  # here one of them is something of its own
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
