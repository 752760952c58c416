"""No answer takes more tokens than its budget, however long its parts are."""

import re

import pytest

import kbkit
from kbkit.mcp.passages import search_reply
from kbkit.mcp.replies import Budget
from kbkit.mcp.server import server
from tests.mcp.agents import answers, tokens, unmarked

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
def long_texts(tmp_path_factory):
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
            "E" * 64,
            description="D" * 500,
            prompt='how tea is made "\n' * 400,
            files={f"code/{'f' * 100}{number}.py": "x" for number in range(20)},
        )
        yield server(lambda: workspace, tools=["all"], allow_write=True)


@pytest.fixture(scope="module")
def soup(tmp_path_factory):
    with kbkit.open(tmp_path_factory.mktemp("soup") / "ws") as workspace:
        kb = workspace.create("kitchen")
        names = ("onions", "carrots", "leeks", "beans", "turnips", "parsnips")
        parts = [
            f"## With {name}\n\n"
            + " ".join(
                f"After {minutes} minutes stir the onions and add {name} by the spoon."
                for minutes in range(at * 40, at * 40 + 30)
            )
            for at, name in enumerate(names)
        ]
        kb.add("Soup", "# Soup\n\n" + "\n\n".join(parts), source="https://soup.example/")
        for name in names:
            text = f"# {name}\n\nThe {name} of the {name} farm are sweet, crisp and cheap in May."
            kb.add(name, text, source=f"https://soup.example/{name}")
        yield server(lambda: workspace)


@pytest.mark.parametrize("most", [400, 700, 2500, 9000])
def test_answers_stay_within_their_budget(long_texts, most):
    for (name, _), answer in zip(CALLS, answers(long_texts, CALLS, max_tokens=most), strict=True):
        text = answer.content[0].text
        assert tokens(answer) <= min(most, 2500), name
        assert not answer.is_error or (most == 400 and "max_tokens" in text), f"{name}: {text}"


@pytest.mark.parametrize(
    ("name", "arguments", "least"),
    [
        ("search_knowledge_base", {"query": "how do onions simmer", "limit": 50}, (60, 200, 600)),
        ("get_context", {"query": "how do onions simmer"}, (60, 200, 600)),
        ("get_document", {"document_name": "https://soup.example/"}, (20, 150, 800)),
    ],
)
def test_small_answers_are_mostly_document_text(soup, name, arguments, least):
    for most, characters in zip((400, 500, 1000), least, strict=True):
        (answer,) = answers(soup, [(name, arguments)], max_tokens=most)
        assert tokens(answer) <= most
        values = answer.structured_content
        found = values.get("results", values.get("pieces", [values]))
        texts = [unmarked(each["text"]) for each in found]
        assert sum(map(len, texts)) >= characters, (most, texts)


def test_each_passage_of_a_search_names_its_source(soup):
    cursor, sources = "", []
    while cursor or not sources:
        query = {"query": "sweet, crisp onions", "limit": 50, "max_tokens": 500}
        (answer,) = answers(soup, [("search_knowledge_base", query | {"cursor": cursor})])
        text = answer.content[0].text
        for result in answer.structured_content["results"]:
            sources.append(result["source"])
            names = ("title", "source", "fetched", "version", "kb")
            assert all(re.search(f"^{name}: ", text, re.MULTILINE) for name in names), text
            assert re.search("^fetched: .*, current$", text, re.MULTILINE)
            assert {"title", "source", "fetched_at", "state", "version", "kb"} <= result.keys()
        cursor = answer.structured_content["next_cursor"]
    assert len(sources) > 3


def test_passages_of_one_document_name_its_date_once(tmp_path):
    with kbkit.open(tmp_path) as workspace:
        texts = ("Fire a kiln by day. ", "Clay is wet and grey. ", "Cool a kiln by night. ")
        parts = "".join(f"## Part {n}\n\n{text * 60}\n\n" for n, text in enumerate(texts))
        workspace.create("kilns").add("Kilns", parts, source="https://example.org/kilns")
        hits = workspace["kilns"].search("fire or cool a kiln", limit=3)
    text = search_reply(hits, limit=5, budget=Budget(2_500)).text
    assert text.count("title: Kilns") > 1
    assert text.count("title: Kilns") == text.count("source: https://example.org/kilns#part-")
    assert text.count("fetched: ") == text.count("kb: kilns") == text.count("version: ") == 1


def test_each_passage_of_a_context_names_its_source(soup):
    (answer,) = answers(soup, [("get_context", {"query": "how do onions simmer"})])
    text = answer.content[0].text
    for name in ("title", "source", "fetched", "version", "kb"):
        assert len(re.findall(f"^{name}: ", text, re.MULTILINE)) == text.count("\n["), name
    assert "version: unknown" in text


def test_errors_shorten_long_arguments(long_texts):
    for (name, _), answer in zip(WRONG, answers(long_texts, WRONG), strict=True):
        assert answer.is_error, name
        assert tokens(answer) <= 400, name
