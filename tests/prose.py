"""Check the words of guides, notebooks and docstrings: ``python tests/prose.py [FILE ...]``.

proselint's checks of clichés, archaisms, redundancy and misused words, and the list below. Code in
Markdown is not looked at.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from markdown_it import MarkdownIt
from proselint.checks import __register__ as proselint_checks
from proselint.registry.checks import Check, types

HOUSE = {
    "anew": "again",
    "is to be a": "must be a",
    "is said": "a verb that says who does it",
    "are said": "a verb that says who does it",
    "is told": "a verb that says who does it",
    "are told": "a verb that says who does it",
    "whoever": "who, or the person",
    "comes of": "results from",
    "came of": "resulted from",
    "all the same": "anyway",
    "thereby": "so",
    "lest": "so that ... not",
    "as it were": "nothing",
}
"""Words that a reader stumbles over, and what to write instead."""
GROUPS = ("archaism", "cliches", "malapropisms", "mondegreens", "nonwords", "redundancy")
"""Checks of proselint that fit technical prose."""


def main(names: list[str]) -> int:
    """Print each finding as ``file:line: message``; return whether there is any."""
    tracked = [
        "git",
        "ls-files",
        "*.md",
        "*.py",
        "*.ipynb",
        ":!recipes/handbook",
        ":!tests/**/*.md",
        ":!site/gallery.md",
    ]
    done = subprocess.run(tracked, capture_output=True, text=True, check=True)
    files = names or done.stdout.split()
    found = [finding for name in files for finding in findings(Path(name))]
    print(*found, sep="\n", end="\n" if found else "")
    return bool(found)


def findings(path: Path) -> Iterator[str]:
    read = {".py": docstrings, ".ipynb": cells}.get(path.suffix, paragraphs)
    for line, text in read(path.read_text("utf-8")):
        padded = f"\n{text}\n"
        for check in CHECKS:
            for result in check.check_with_flags(padded):
                before = padded[1 : result.span[0]].count("\n")
                yield f"{path}:{line + before}: {result.message}"


def paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Yield the prose of Markdown, each part with the number of its first line."""
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.type == "inline" and token.map and token.children:
            parts = (
                "\n" if each.type == "softbreak" else each.content
                for each in token.children
                if each.type in ("text", "softbreak")
            )
            yield token.map[0] + 1, "".join(parts)


def cells(text: str) -> Iterator[tuple[int, str]]:
    """Yield the prose of a notebook, each part with the number of its cell."""
    for number, cell in enumerate(json.loads(text)["cells"], 1):
        if cell["cell_type"] == "markdown":
            yield from ((number, part) for _, part in paragraphs("".join(cell["source"])))


def docstrings(text: str) -> Iterator[tuple[int, str]]:
    """Yield docstrings and the strings below constants and fields."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for each in node.body:
                if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
                    yield each.lineno, str(each.value.value)


CHECKS = [
    *(each for each in proselint_checks if each.path.partition(".")[0] in GROUPS),
    Check(check_type=types.PreferredForms(items=HOUSE), path="house", message="'{1}': write {0}"),
]

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
