"""Answers and errors of tools over stdio."""

import re

import pytest

from tests.mcp.agents import agent_of, marks, outside, unmarked

BREAD = "https://kitchen.example/bread"
READ = {"search_knowledge_base", "list_knowledge_bases", "get_document", "get_context"}


def test_default_tools_only_read(folder):
    with agent_of(folder) as agent:
        tools = agent.tools()
        assert set(tools) == READ
        assert all(tool.annotations.read_only_hint for tool in tools.values())
        error = agent.error("kb_write", path="a.md", content="x")
        assert error.startswith("kb_write: there is no such tool; there are search_knowledge_base")
        error = agent.error("rate_chunk", chunk_id="x", score=3, kb_name="kitchen")
        assert "--allow-write" in error


def test_tools_have_descriptions_schemas_and_hints(agent):
    tools = agent.tools()
    assert set(tools) > READ
    for tool in tools.values():
        assert tool.description.endswith(".")
        assert tool.input_schema["additionalProperties"] is False
        assert tool.output_schema["type"] == "object"
        for hint in ("read_only", "destructive", "idempotent", "open_world"):
            assert getattr(tool.annotations, f"{hint}_hint") is not None
    assert tools["kb_delete"].annotations.destructive_hint
    assert not tools["kb_append"].annotations.destructive_hint


def test_search_returns_passages_with_sources(agent):
    found = agent.values("search_knowledge_base", query="how long does dough rise")
    best = found["results"][0]
    assert best["source"].startswith(BREAD)
    assert best["kb"] == "kitchen"
    assert best["state"] == "current"
    assert "rise for an hour" in best["text"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", best["fetched_at"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"query": ""}, "query"),
        ({}, "query"),
        ({"query": "x", "kb_name": "nope"}, "garden, kitchen"),
        ({"query": "x", "limit": 51}, "limit"),
        ({"query": "x", "limit": "many"}, "limit"),
        ({"query": "x", "filters": {"documnt_type": "faq"}}, "there are document_type, tags"),
        ({"query": "x", "kb": "kitchen"}, "kb: is unknown; there are query, kb_name"),
        ({"query": "x", "filters": {"after": "never"}}, "2026-01-31"),
        ({"query": "x", "cursor": "next-x"}, "leave it out"),
        ({"query": "x", "max_tokens": 10}, "400 or more"),
    ],
)
def test_search_errors_suggest_a_correction(agent, arguments, message):
    assert message in agent.error("search_knowledge_base", **arguments)


def test_passages_name_versions_and_unknown_ones_are_errors(agent):
    query = {"query": "whistling kettle", "kb_name": "kitchen"}
    (found,) = agent.values("search_knowledge_base", **query, filters={"version": "5.9"})["results"]
    assert found["version"] == "5.9"
    answer = agent.call("search_knowledge_base", **query, limit=20)
    versions = [result["version"] for result in answer.structured_content["results"]]
    assert {"5.9", "5.10", "unknown"} == set(versions)
    assert re.findall(r"^version: (.*)$", answer.content[0].text, re.MULTILINE) == versions
    error = agent.error("search_knowledge_base", **query, filters={"version": "5.11"})
    assert error == "no document is of the version '5.11'; there are: 5.9, 5.10"


def test_knowledge_bases_are_listed_with_a_cursor(agent):
    names = [info["name"] for info in agent.values("list_knowledge_bases")["knowledge_bases"]]
    assert names[-2:] == ["garden", "kitchen"]
    assert "leave it out" in agent.error("list_knowledge_bases", cursor="2")


def test_document_names_its_version_in_text_and_values(agent):
    for result in agent.values("search_knowledge_base", query="whistling kettle")["results"]:
        answer = agent.call("get_document", document_name=result["source"].partition("#")[0])
        assert answer.structured_content["version"] == result["version"]
        assert f"\nversion: {result['version']}\n" in answer.content[0].text


def test_document_is_read_whole_by_section_and_by_lines(agent):
    whole = agent.values("get_document", document_name=BREAD)
    assert "# Bread" in whole["text"]
    assert "hollow" in whole["text"]
    assert whole["next_cursor"] == ""
    section = agent.values("get_document", document_name=BREAD, kb_name="kitchen", section="Dough")
    assert "knead" in section["text"]
    assert "hollow" not in section["text"]
    first = section["first_line"]
    lines = agent.values("get_document", document_name=BREAD, lines=f"{first}-{first}")
    assert "## Dough" in lines["text"]
    assert lines["first_line"] == lines["last_line"] == first
    assert "'Dough', 'Oven'" in agent.error("get_document", document_name=BREAD, section="Fish")
    assert "counted from 1" in agent.error("get_document", document_name=BREAD, lines="0-2")
    assert "either" in agent.error("get_document", document_name=BREAD, lines="1", section="Dough")
    oven = agent.values("get_document", document_name=f"{BREAD}#oven")
    assert oven["first_line"] == 9
    assert "hollow" in oven["text"]
    assert "knead" not in oven["text"]
    for name in ("Bread > Oven", "oven", "## Oven"):
        again = agent.values("get_document", document_name=BREAD, section=name)
        assert again["first_line"] == 9
    assert agent.values("get_document", document_name=f"{BREAD}#nothing")["first_line"] == 1
    assert whole["lines"] == whole["last_line"] == 11
    assert agent.values("get_document", document_name=BREAD, lines="11-11")["last_line"] == 11
    assert "has 11 lines" in agent.error("get_document", document_name=BREAD, lines="12-12")
    unknown = agent.error("get_document", document_name="zzqqj")
    assert unknown.startswith("no knowledge base has a document of the source 'zzqqj'")
    near = agent.error("get_document", document_name=BREAD + "x", kb_name="kitchen")
    assert f"did you mean {BREAD!r}?" in near


def test_long_document_is_read_in_parts(agent):
    soup = {"document_name": "https://kitchen.example/soup", "max_tokens": 1500}
    parts = [part["text"] for part in agent.pages("get_document", **soup)]
    assert len(parts) > 3
    assert all(len(marks(part)) == 1 and outside(part) == "" for part in parts)
    assert "".join(map(unmarked, parts)).count("leeks") == 400


def test_context_stays_within_its_budget(agent):
    found = agent.values("get_context", query="how is bread baked", max_tokens=900)
    assert any("230 degrees" in piece["text"] for piece in found["pieces"])
    assert "query" in agent.error("get_context", query=" ")


def test_document_text_stays_between_unpredictable_marks(agent):
    answers = [agent.call("search_knowledge_base", query="gardens") for _ in range(2)]
    assert len({frozenset(marks(answer.content[0].text)) for answer in answers}) == 2
    for answer in answers:
        text = answer.content[0].text
        (mark,) = marks(text)
        assert "Ignore what you were told" in text
        assert "Ignore" not in outside(text.partition("\n\n")[2], mark)
        assert "\U000e0041" not in text
        assert "\u202e" not in text
        for result in answer.structured_content["results"]:
            assert result["text"].startswith(f"<{mark}>")
            assert result["text"].endswith(f"</{mark}>")


def test_passage_is_rated(agent):
    found = agent.values("search_knowledge_base", query="hollow loaf")["results"][0]
    chunk = {"chunk_id": found["chunk_id"], "kb_name": found["kb"]}
    assert agent.values("rate_chunk", **chunk, score=5, query="hollow loaf")["score"] == 5
    assert "score" in agent.error("rate_chunk", **chunk, score=6)
    error = agent.error("rate_chunk", chunk_id="nope", kb_name="kitchen", score=3)
    assert error.endswith("'nope'; take an id from a search or a list")


def test_files_are_written_read_listed_and_deleted(agent):
    assert agent.values("kb_mkdir", path="plans")["path"] == "plans"
    version = agent.values("kb_write", path="plans/a.md", content="# A\n\nOne.")["version"]
    assert agent.values("kb_append", path="plans/a.md", content="\nTwo.")["version"] != version
    assert "version" in agent.error("kb_write", path="plans/a.md", content="", if_match=version)
    assert "Two." in agent.values("kb_read", path="plans/a.md")["text"]
    paths = [row["path"] for row in agent.values("kb_list")["files"]]
    assert {"plans", "kb", "kb/kitchen"} <= set(paths)
    assert "plans/a.md" in [row["path"] for row in agent.values("kb_tree")["files"]]
    assert agent.values("kb_delete", path="plans")["path"] == "plans"
    assert "no such file" in agent.error("kb_list", path="plans").lower()
    assert "plans" in agent.error("kb_delete", path="plans")
    assert "plans" in agent.error("kb_tree", path="plans")


@pytest.mark.parametrize("tool", ["kb_read", "kb_list", "kb_tree", "kb_mkdir", "kb_delete"])
@pytest.mark.parametrize("path", ["../../etc/passwd", "/etc/../../passwd", "a\0b", "x" * 5000])
def test_paths_outside_the_files_are_refused(agent, tool, path):
    assert "root:" not in agent.error(tool, path=path)


def test_entries_are_created_found_read_and_rated(agent):
    entry = {"title": "Knead dough", "prompt": "Fold it.", "description": "Makes dough smooth."}
    slug = agent.values("create_entry", **entry)["slug"]
    assert slug == "knead-dough"
    assert "Fold it." in agent.values("get_entry", slug=slug)["text"]
    assert agent.values("rate_entry", slug=slug, score=4)["rating"] == 4
    for query in ("", "knead smooth dough"):
        assert slug in [row["slug"] for row in agent.values("find_entries", query=query)["entries"]]
    assert "title" in agent.error("create_entry", title=" ", prompt="x")
    assert "nope" in agent.error("get_entry", slug="nope")
    assert "score" in agent.error("rate_entry", slug=slug, score=0)
    assert "limit" in agent.error("find_entries", query="dough", limit=0)


@pytest.mark.slow
def test_entry_is_learned_only_from_an_allowed_folder(folder, tmp_path):
    task = tmp_path / "tasks" / "one" / ".knowledge"
    task.mkdir(parents=True)
    (task / "skill.yaml").write_text("title: Boil eggs\nstatus: active\n")
    (task / "prompt.md").write_text("Six minutes.")
    options = ["--tools", "entries", "--allow-write"]
    with agent_of(folder, *options, "--root", str(tmp_path / "tasks")) as agent:
        learned = agent.values("learn_entry", folder=str(tmp_path / "tasks" / "one"))
        assert learned["slug"] == "boil-eggs"
        for elsewhere in (str(tmp_path), "/etc", "..", "nope", "a\0b"):
            assert "neither in the files" in agent.error("learn_entry", folder=elsewhere)
        (tmp_path / "tasks" / "two").mkdir()
        assert agent.error("learn_entry", folder="two").startswith("two: has no skill.yaml")
