"""No answer takes more tokens than were asked for, however long names, titles and texts are."""

import asyncio

import pytest
from mcp import Client

import kbkit
from kbkit.mcp.server import server
from tests.mcp.agents import tokens

WIDE, DEEP = "\u2603 " * 450, "/".join(["n" * 200] * 3)
LONG_URI = "https://h.example/" + "p/" * 700
NAME = "a" * 60
BIG = "z" * 50_000
CALLS = [
    ("search_knowledge_base", {"query": "tea", "limit": 20}),
    ("search_knowledge_base", {"query": WIDE[:100], "limit": 3}),
    ("get_context", {"query": "tea"}),
    ("get_document", {"document_name": "b"}),
    ("get_document", {"document_name": LONG_URI}),
    ("list_knowledge_bases", {}),
    ("kb_list", {}),
    ("kb_list", {"path": DEEP}),
    ("kb_tree", {}),
    ("kb_read", {"path": "big.md"}),
    ("kb_read", {"path": f"{DEEP}/x.md"}),
    ("find_entries", {}),
    ("find_entries", {"query": "how is tea made"}),
    ("get_entry", {"slug": "e" * 64}),
    ("search_kb", {"query": "tea", "limit": 20}),
    ("describe_kb_collection", {"collection_name": NAME}),
    ("graph_entities", {}),
]
WRONG = [
    ("search_knowledge_base", {"query": "x", "kb_name": BIG}),
    ("search_knowledge_base", {"query": "x", BIG: 1}),
    ("search_knowledge_base", {"query": "x", "filters": {BIG: 1}}),
    ("search_knowledge_base", {"query": "x", "filters": {"document_type": BIG}}),
    ("search_knowledge_base", {"query": "x", "filters": {"version": BIG}}),
    ("search_knowledge_base", {"query": "x", "cursor": BIG}),
    ("search_knowledge_base", {str(number): number for number in range(5_000)}),
    ("get_document", {"document_name": BIG}),
    ("get_document", {"document_name": "b", "section": BIG}),
    ("get_document", {"document_name": "b", "lines": BIG}),
    ("rate_chunk", {"chunk_id": BIG, "score": 3, "kb_name": NAME}),
    ("kb_read", {"path": BIG}),
    ("kb_write", {"path": BIG, "content": "x"}),
    ("get_entry", {"slug": BIG}),
    ("create_entry", {"title": BIG, "prompt": BIG}),
    ("learn_entry", {"folder": BIG}),
    (BIG, {}),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    with kbkit.open(tmp_path_factory.mktemp("budget") / "ws") as workspace:
        kb = workspace.create(NAME, description="d" * 900 + WIDE[:90])
        heading = "## " + "section " * 300
        kb.add(WIDE, f"# {WIDE}\n\n{heading}\n\ntea is good {'x' * 300}\n", source=LONG_URI)
        kb.add('B"' * 100, "tea " * 500 + '\\"\n\t' * 300, source="b")
        for number in range(3):
            text = f"tea number {number} is green and bitter. " + '"quoted" \\ ' * 40
            kb.add(f"T{number}", text, source=f"https://h.example/{number}")
        workspace.files.write(f"{DEEP}/x.md", "tea " * 100)
        workspace.files.write("big.md", '"\n' * 3_000)
        for number in range(6):
            workspace.files.write(f"{'m' * 100}{number}.md", "x")
        workspace.entries.create(
            "E" * 64, description="D" * 500, prompt='how tea is made "\n' * 400,
            files={f"code/{'f' * 100}{number}.py": "x" for number in range(20)},
        )  # fmt: skip
        yield server(lambda: workspace, tools=["all"], allow_write=True)


def answers(made, calls, **more):
    async def ask():
        async with Client(made) as client:
            return [await client.call_tool(name, given | more) for name, given in calls]

    return asyncio.run(ask())


@pytest.mark.parametrize("most", [500, 700, 2500, 9000])
def test_no_answer_takes_more_than_was_asked_for(made, most):
    for (name, _), answer in zip(CALLS, answers(made, CALLS, max_tokens=most), strict=True):
        said = answer.content[0].text
        assert tokens(answer) <= min(most, 2500), name
        assert not answer.is_error or (most == 500 and "max_tokens" in said), f"{name}: {said}"


def test_no_error_repeats_all_that_was_given(made):
    for (name, _), answer in zip(WRONG, answers(made, WRONG), strict=True):
        assert answer.is_error, name
        assert tokens(answer) <= 400, name
