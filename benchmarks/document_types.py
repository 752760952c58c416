"""How often kbkit gives a document the type that a reader gave it.

    python benchmarks/document_types.py NAME=FOLDER=ADDRESS ...

Each argument names a site of `data/document-types.tsv`, a folder with its pages, and the address
that the folder stands for. Sites are documentation of Debian packages, and those that
`benchmarks/generated.py` makes.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from pathlib import Path

from kbkit.recipes import MirrorSource
from kbkit.sources import SourceContext
from kbkit.sources.archives import read_mirror

LABELS = Path(__file__).parent / "data/document-types.tsv"


def labels() -> dict[str, dict[str, tuple[str, str]]]:
    """Read use and type of each labelled page, by its site and its path."""
    found: dict[str, dict[str, tuple[str, str]]] = {}
    with LABELS.open(encoding="utf-8", newline="") as file:
        lines = (line for line in file if not line.startswith("#"))
        for use, site, path, kind in csv.reader(lines, delimiter="\t"):
            found.setdefault(site, {})[path] = (use, kind)
    return found


def main() -> None:
    given, right = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    known = labels()
    for argument in sys.argv[1:]:
        name, folder, address = argument.split("=", 2)
        wanted = known[name]
        source = MirrorSource(path=folder, base_url=address)
        for event in read_mirror(source, SourceContext(base=Path.cwd())):
            if event.document is None:
                continue
            path = event.document.uri.removeprefix(address) or "."
            if path not in wanted or event.document.document_type is None:
                continue
            use, kind = wanted[path]
            given_type = event.document.document_type.value
            given[use, given_type] += 1
            right[use, given_type] += given_type == kind
            if given_type not in (kind, "other"):
                print(f"{name}: {path} {given_type} instead of {kind}")
    print("\n| sites | type | given | right | precision |\n| --- | --- | --- | --- | --- |")
    for (use, kind), number in sorted(given.items()):
        if kind != "other":
            correct = right[use, kind]
            print(f"| {use} | {kind} | {number} | {correct} | {correct / number:.2f} |")


if __name__ == "__main__":
    main()
