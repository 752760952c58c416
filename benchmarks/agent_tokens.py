"""What a right answer costs an agent over MCP, in tokens: kbkit beside a server of plain files.

Both servers have the same documents: kbkit a knowledge base, the other one
(`@modelcontextprotocol/server-filesystem`, out of npm) its documents as Markdown files. A script
asks, no model: all that is counted is what a model would have to read, the text of each answer. A
question is answered right when the agent has read something of a page that answers it, and it stops
there, in the knowledge of what is right; that favours the server of files, of which it reads up to
ten pages.

The server of files has no search in texts. So its agent looks at the tree of files and reads those
first whose names are nearest in meaning to the question, by kbkit's own vectors, which is more than
a word search in names would find. It does so in three ways: it reads whole pages; it reads whole
pages and knows the tree already, so that this costs nothing; it reads the first hundred lines of a
page, which count as read even where the answer stands further down; and so again, but so many pages
that it finds as many right ones as kbkit does.

Run from the project's root: ``python benchmarks/agent_tokens.py --files SERVER [SET ...]``, where
SERVER is the folder ``node_modules/@modelcontextprotocol/server-filesystem`` (``npm install`` it).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import numpy as np
from _corpora import Corpus, Question, bench_folder, corpora, path_of, report, table
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import CallToolResult, TextContent

from kbkit.embedding.static import count_tokens
from kbkit.knowledge_base import handle_of

SETS = ("apache", "django")
MAX_ANSWERS = 3
"""Answers of a search that are read: the first, and what follows by its cursor."""
MAX_FILES = 10
HEAD = 100


@dataclass(slots=True)
class Tally:
    """What an agent read for its questions.

    Attributes:
        right: Questions that it found a page for.
        tokens: What it read for all of them.
        calls: How often it asked.
    """

    right: int = 0
    tokens: int = 0
    calls: int = 0
    costs: list[int] = field(default_factory=list)

    def add(self, tokens: int, calls: int, *, right: bool) -> None:
        """One question more."""
        self.right += right
        self.tokens += tokens
        self.calls += calls
        self.costs.append(tokens)

    def row(self, corpus: str, way: str) -> list[str]:
        """Its line of the table."""
        count = len(self.costs)
        right = f"{self.tokens / self.right:,.0f}" if self.right else "-"
        return [
            corpus,
            way,
            f"{self.right} of {count}",
            f"{np.median(self.costs):,.0f}",
            f"{self.tokens / count:,.0f}",
            right,
            f"{self.calls / count:.1f}",
        ]


@asynccontextmanager
async def client_of(command: str, *arguments: str) -> Any:
    """A client of a server that is started, and tokens of its tools."""
    quiet = {**os.environ, "KBKIT_IMPROVE": "off"}
    parameters = StdioServerParameters(command=command, args=list(arguments), env=quiet)
    async with Client(stdio_client(parameters)) as client:
        listed = await client.list_tools()
        tools = [tool.model_dump(mode="json", exclude_none=True) for tool in listed.tools]
        yield client, len(tools), count_tokens(json.dumps(tools))


def text_of(answer: CallToolResult) -> str:
    """What a model reads of an answer."""
    return "\n".join(part.text for part in answer.content if isinstance(part, TextContent))


async def ask_kbkit(client: Client, corpus: Corpus, most: int) -> Tally:
    """Search, and read on by the cursor."""
    tally = Tally()
    for question in corpus.questions:
        tokens, calls, cursor, right = 0, 0, "", False
        while not right and calls < most and (cursor or not calls):
            calls += 1
            asked = {"query": question.text, "kb_name": corpus.name, "cursor": cursor}
            answer = await client.call_tool("search_knowledge_base", asked)
            assert not answer.is_error, text_of(answer)
            tokens += count_tokens(text_of(answer))
            values = answer.structured_content or {}
            pages = {path_of(each["source"]) for each in values["results"] if "source" in each}
            right = any(page in question.grades for page in pages)
            cursor = values["next_cursor"]
        tally.add(tokens, calls, right=right)
    return tally


async def ask_files(
    client: Client,
    root: Path,
    pages: dict[str, str],
    corpus: Corpus,
    *,
    tree_known: bool = False,
    head: int = 0,
    most: int = MAX_FILES,
) -> Tally:
    """Look at the tree, and read the files whose names are nearest to the question."""
    tally = Tally()
    tree = await client.call_tool("directory_tree", {"path": str(root)})
    read: dict[str, int] = {}
    for question, order in zip(corpus.questions, orders(corpus, list(pages)), strict=True):
        tokens = 0 if tree_known else count_tokens(text_of(tree))
        calls = 0 if tree_known else 1
        right = False
        for name in order[:most]:
            if name not in read:
                asked: dict[str, Any] = {"path": str(root / name)}
                answer = await client.call_tool(
                    "read_text_file", asked | ({"head": head} if head else {})
                )
                assert not answer.is_error, text_of(answer)
                read[name] = count_tokens(text_of(answer))
            tokens, calls = tokens + read[name], calls + 1
            if right := pages[name] in question.grades:
                break
        tally.add(tokens, calls, right=right)
    return tally


def orders(corpus: Corpus, names: list[str]) -> list[list[str]]:
    """For each question the files, those first whose names are nearest to it."""
    handle = handle_of(corpus.kb)
    embedder = handle.embedder(handle.row())

    def embed(texts: list[str]) -> Any:
        found = np.asarray(embedder.embed_passages(texts))
        return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9)

    vectors = embed([re.sub(r"[/_-]", " ", name.removesuffix(".md")) for name in names])
    asked = embed([question.text for question in corpus.questions])
    return [[names[int(at)] for at in np.argsort(-(vectors @ each))] for each in asked]


def files_for(corpus: Corpus, pages: dict[str, str], right: int) -> int:
    """Of how many files so many questions need no more, in the best order there is."""
    ranks = sorted(
        next(
            (rank for rank, name in enumerate(order, 1) if pages[name] in question.grades),
            len(pages),
        )
        for question, order in zip(corpus.questions, orders(corpus, list(pages)), strict=True)
    )
    return ranks[right - 1]


def write_files(corpus: Corpus, root: Path) -> dict[str, str]:
    """The documents as Markdown files; gives the page of each, by its path."""
    found = {}
    for document in corpus.kb.documents:
        page = path_of(document.uri)
        name = page.removesuffix(".html") + ".md"
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {document.title}\n\n{document.content}", encoding="utf-8")
        found[name] = page
    return found


def questions_of(corpus: Corpus) -> list[Question]:
    """Those that the documents can answer."""
    held = {path_of(document.uri) for document in corpus.kb.documents.list()}
    return [each for each in corpus.questions if held & each.grades.keys()]


async def measured(corpus: Corpus, folder: Path, server: Path | None) -> tuple[list[Any], str]:
    """Lines of the table, and what the tools of both cost."""
    rows, right = [], 0
    kbkit = ("-m", "kbkit", "--workspace", str(folder), "mcp")
    async with client_of(sys.executable, *kbkit) as (client, count, cost):
        said = f"tools of kbkit: {count}, {cost:,} tokens"
        for most, way in ((1, "kbkit, one answer"), (MAX_ANSWERS, "kbkit, up to three answers")):
            tally = await ask_kbkit(client, corpus, most)
            right = tally.right
            rows.append(tally.row(corpus.name, way))
    if server is None:
        return rows, said
    root = folder / "files" / corpus.name
    pages = write_files(corpus, root)
    most = files_for(corpus, pages, right)
    async with client_of("node", str(server / "dist/index.js"), str(root)) as (client, count, cost):
        said += f"; of the server of files: {count}, {cost:,} tokens"
        for way, options in (
            ("files, whole pages", {}),
            ("files, whole pages, tree known", {"tree_known": True}),
            (f"files, first {HEAD} lines, tree known", {"tree_known": True, "head": HEAD}),
            (
                f"files, the same, up to {most} pages",
                {"tree_known": True, "head": HEAD, "most": most},
            ),
        ):
            tally = await ask_files(client, root, pages, corpus, **options)
            rows.append(tally.row(corpus.name, way))
    return rows, said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", type=Path, help="folder of server-filesystem")
    parser.add_argument("sets", nargs="*", default=SETS)
    options = parser.parse_args()
    rows, said = [], ""
    with bench_folder() as folder:
        for found in corpora(folder, names=options.sets):
            corpus = Corpus(found.name, found.kb, questions_of(found))
            more, said = anyio.run(measured, corpus, folder, options.files)
            rows += more
    head = [
        "set",
        "way",
        "right",
        "tokens a question, median",
        "mean",
        "tokens a right answer",
        "calls a question",
    ]
    report("agent_tokens", [f"{said}.", "", *table(head, rows)])


if __name__ == "__main__":
    main()
