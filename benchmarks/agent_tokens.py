"""Tokens that a right answer costs an agent over MCP: kbkit beside a server of plain files.

Both serve the same documents: kbkit as a knowledge base, `@modelcontextprotocol/server-filesystem`
(from npm) as Markdown files. A script without a model asks and counts the tokens of every answer.
A question counts as answered at the first page that answers it, and the script stops there. This
favours the server of files, of which it reads up to ten pages.

The server of files cannot search texts. So its agent reads the tree of files, then the files whose
names are nearest to the question by kbkit's vectors. It does so in four ways: whole pages; whole
pages with the tree for nothing; the first hundred lines of a page, which count as the whole page;
and the same with as many pages as it takes to find as many answers as kbkit.

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
"""Number of answers read for a question: the first, and others by the cursor."""
MAX_FILES = 10
HEAD = 100


@dataclass(slots=True)
class Tally:
    """Cost of the questions.

    Attributes:
        right: Number of questions answered.
        tokens: Tokens read for all questions.
        calls: Number of calls.
    """

    right: int = 0
    tokens: int = 0
    calls: int = 0
    costs: list[int] = field(default_factory=list)

    def add(self, tokens: int, calls: int, *, right: bool) -> None:
        """Count a question."""
        self.right += right
        self.tokens += tokens
        self.calls += calls
        self.costs.append(tokens)

    def row(self, corpus: str, way: str) -> list[str]:
        """Format a row of the table."""
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
    """Start a server and yield a client and the tokens of its tool descriptions."""
    quiet = {**os.environ, "KBKIT_IMPROVE": "off"}
    parameters = StdioServerParameters(command=command, args=list(arguments), env=quiet)
    async with Client(stdio_client(parameters)) as client:
        listed = await client.list_tools()
        tools = [tool.model_dump(mode="json", exclude_none=True) for tool in listed.tools]
        yield client, len(tools), count_tokens(json.dumps(tools))


def text_of(answer: CallToolResult) -> str:
    """Return the text that a model reads of an answer."""
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
    """Read the tree, then the files whose names are nearest to the question."""
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
    """Order the files for each question, nearest names first."""
    handle = handle_of(corpus.kb)
    embedder = handle.embedders.of(handle.row())

    def embed(texts: list[str]) -> Any:
        found = np.asarray(embedder.embed_passages(texts))
        return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9)

    vectors = embed([re.sub(r"[/_-]", " ", name.removesuffix(".md")) for name in names])
    asked = embed([question.text for question in corpus.questions])
    return [[names[int(at)] for at in np.argsort(-(vectors @ each))] for each in asked]


def files_for(corpus: Corpus, pages: dict[str, str], right: int) -> int:
    """Return how many files answer at least ``right`` questions, in the best possible order."""
    ranks = sorted(
        next(
            (rank for rank, name in enumerate(order, 1) if pages[name] in question.grades),
            len(pages),
        )
        for question, order in zip(corpus.questions, orders(corpus, list(pages)), strict=True)
    )
    return ranks[right - 1]


def write_files(corpus: Corpus, root: Path) -> dict[str, str]:
    """Write the documents as Markdown files and return each path's page."""
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
    """Return the questions that the documents can answer."""
    held = {path_of(document.uri) for document in corpus.kb.documents.list()}
    return [each for each in corpus.questions if held & each.grades.keys()]


async def measured(corpus: Corpus, folder: Path, server: Path | None) -> tuple[list[Any], str]:
    """Return rows of the table and the tokens of both servers' tools."""
    rows, right = [], 0
    kbkit = ("-m", "kbkit", "--workspace", str(folder), "mcp")
    async with client_of(sys.executable, *kbkit) as (client, count, cost):
        summary = f"tools of kbkit: {count}, {cost:,} tokens"
        for most, way in ((1, "kbkit, one answer"), (MAX_ANSWERS, "kbkit, up to three answers")):
            tally = await ask_kbkit(client, corpus, most)
            right = tally.right
            rows.append(tally.row(corpus.name, way))
    if server is None:
        return rows, summary
    root = folder / "files" / corpus.name
    pages = write_files(corpus, root)
    most = files_for(corpus, pages, right)
    async with client_of("node", str(server / "dist/index.js"), str(root)) as (client, count, cost):
        summary += f"; of the server of files: {count}, {cost:,} tokens"
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
    return rows, summary


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", type=Path, help="folder of server-filesystem")
    parser.add_argument("sets", nargs="*", default=SETS)
    options = parser.parse_args()
    rows, summary = [], ""
    with bench_folder() as folder:
        for found in corpora(folder, names=options.sets):
            corpus = Corpus(found.name, found.kb, questions_of(found))
            more, summary = anyio.run(measured, corpus, folder, options.files)
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
    report("agent_tokens", [f"{summary}.", "", *table(head, rows)])


if __name__ == "__main__":
    main()
