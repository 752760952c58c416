"""Generate parts of the guides; run this after a change of recipes, commands, tools or routes.

``python site/_generate.py`` rewrites the text between ``<!-- generated: NAME -->`` and
``<!-- end -->``; with ``--check`` it reports guides that are out of date.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import _cli
import _mcp
import _recipes
import _routes

import kbkit.cli
import kbkit.errors
from kbkit.workflows.gallery import list_recipes

SITE = Path(__file__).parent
REGION = re.compile(r"(<!-- generated: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def error_tree() -> str:
    """Return the tree of errors from the docstring of `kbkit.errors`."""
    tree = (kbkit.errors.__doc__ or "").split("::\n\n")[1].split("\n\n")[0]
    return f"```text\n{re.sub('(?m)^    ', '', tree)}\n```\n"


def exit_codes() -> str:
    """Return a table of exit codes from the docstring of `kbkit.cli`."""
    text = " ".join((kbkit.cli.__doc__ or "").split("Exit codes:")[1].split())
    pairs = [part.strip().split(" ", 1) for part in text.rstrip(".").split(";")]
    rows = [f"| {code} | {meaning} |" for code, meaning in pairs]
    return "\n".join(["| code | meaning |", "| --- | --- |", *rows, ""])


def gallery() -> str:
    """Return a table of the included recipes with measured figures, then their descriptions."""
    lines = ["| recipe | documents | seconds | MB | nDCG@10 | Hit@1 | run on |"]
    lines.append("| --- " * 7 + "|")
    abouts = []
    for recipe in list_recipes():
        address = recipe.address
        where = f"<{address}>" if address.startswith("http") else f"`{address}`"
        terms = f" License: {recipe.license}." if recipe.license else ""
        about = f"{recipe.about} Reads {where} (`{'`, `'.join(recipe.sources)}`).{terms}"
        abouts += ["", f"## {recipe.name}", "", about]
        if recipe.figures:
            keys = ("documents", "seconds", "megabytes", "ndcg", "hit1", "run")
            cells = (str(recipe.figures.get(key, "")) for key in keys)
            figures = re.sub(r"on Debian's copy \((.*)\)", r"\1", " | ".join(cells))
            lines.append(f"| [{recipe.name}](#{recipe.name}) | {figures} |")
    return "\n".join([*lines, *abouts, ""])


GENERATORS = {
    "gallery": gallery,
    "recipes": _recipes.reference,
    "cli": _cli.reference,
    "errors": error_tree,
    "exit-codes": exit_codes,
    "mcp-sets": _mcp.sets,
    "mcp-tools": _mcp.tools,
    "routes": _routes.routes,
}


def renew(text: str) -> str:
    """Return a guide with its parts generated again."""
    return REGION.sub(lambda found: f"{found[1]}\n{GENERATORS[found[2]]()}\n{found[3]}", text)


def main(arguments: list[str]) -> int:
    """Update the guides; return 1 if ``--check`` finds one that is out of date, else 0."""
    check = "--check" in arguments
    stale = []
    for path in sorted(SITE.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        renewed = renew(text)
        if renewed != text:
            stale.append(path.name)
            if not check:
                path.write_text(renewed, encoding="utf-8", newline="\n")
    if stale and check:
        sys.stderr.write(f"out of date: {', '.join(stale)}; run python site/_generate.py\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
