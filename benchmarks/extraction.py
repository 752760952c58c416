"""Measures extraction against plain trafilatura: what is kept, on articles, and how fast.

    python benchmarks/extraction.py [--pages N] [--before N] [--speed N]

Reads the documentation of Debian's packages under /usr/share/doc and the articles under
``../shared/eval/articles`` (and says what is missing); prints Markdown tables and writes them to
``build/bench/extraction.md``.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import re
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import trafilatura
from _corpora import EVAL, report

from kbkit.sources.decode import decode
from kbkit.sources.html.extract import extract
from kbkit.sources.html.fidelity import KINDS, Fidelity
from kbkit.sources.html.site_extractor import SiteExtractor

ARTICLES = EVAL / "articles"
MANUALS = {
    "python3.11-doc": "/usr/share/doc/python3.11/html",
    "python-django-doc": "/usr/share/doc/python-django-doc/html",
    "python-flask-doc": "/usr/share/doc/python-flask-doc/html",
    "debian-policy": "/usr/share/doc/debian-policy/policy.html",
    "sqlite3-doc": "/usr/share/doc/sqlite3",
    "nodejs-doc": "/usr/share/doc/nodejs/api",
}
AHEAD = 64


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", type=int, default=100_000, help="pages of each manual")
    parser.add_argument("--before", type=int, default=40, help="pages that trafilatura reads")
    parser.add_argument("--speed", type=int, default=120, help="pages to time trafilatura with")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    parts = [fidelity_table(options.pages, options.before), article_table()]
    parts.append(speed_table(options.speed))
    report("extraction", ["\n\n".join(parts)])


def pages_of(folder: Path, most: int) -> list[Path]:
    """Pages of a manual in a random but fixed order."""
    pages = [path for path in sorted(folder.rglob("*.html")) if path.is_file()]
    random.Random(11).shuffle(pages)
    return pages[:most]


def read(folder: Path, pages: list[Path]) -> Iterator[tuple[Path, str]]:
    """Pages and their Markdown as kbkit reads a site: streamed, with all processors."""
    reader = SiteExtractor(expected=len(pages))

    def ready() -> Iterator[tuple[Path, str]]:
        reading = reader.poll(0.2)
        if reading is not None and reading.final and reading.page.content:
            yield reading.key, reading.page.content

    try:
        for path in pages:
            url = f"https://docs.example/{path.relative_to(folder).as_posix()}"
            reader.submit(path, url, path.read_bytes(), "")
            while reader.pending >= AHEAD:
                yield from ready()
        while reader.pending:
            if not reader.busy:
                reader.settle()
            yield from ready()
    finally:
        reader.close()


def plain(html: str, *, links: bool = False) -> str:
    """The Markdown of plain trafilatura."""
    text = trafilatura.extract(
        html, output_format="markdown", include_comments=False, include_links=links
    )
    return text or ""


def fidelity_table(most: int, before: int) -> str:
    """What the Markdown keeps of each manual, before and after."""
    lines = [
        "Kept share in per cent, of all things of the kind (navigation: pages free of it).\n",
        f"| manual | reader | pages | {' | '.join(KINDS)} |",
        "|" + " --- |" * (3 + len(KINDS)),
    ]
    for name, place in MANUALS.items():
        folder = Path(place)
        if not folder.is_dir():
            lines.append(f"| {name} | not installed |" + " |" * (1 + len(KINDS)))
            continue
        pages = pages_of(folder, most)
        sample = [path for path in pages if path.stat().st_size < 300_000][:before]
        figures = Fidelity()
        for path in sample:
            html = decode(path.read_bytes(), "")
            figures.add(html, plain(html))
        lines.append(row(name, "trafilatura", len(sample), figures))
        figures = Fidelity()
        count = 0
        for path, markdown in read(folder, pages):
            figures.add(decode(path.read_bytes(), ""), markdown)
            count += 1
        lines.append(row(name, "kbkit", count, figures))
        print(lines[-1], file=sys.stderr)
    return "\n".join(lines)


def row(name: str, reader: str, pages: int, figures: Fidelity) -> str:
    """One line of the table of fidelity."""
    cells = (
        f"{100 * figures.share(kind):.2f} of {figures.wanted[kind]:,}" if figures.wanted[kind]
        else "none"
        for kind in KINDS
    )  # fmt: skip
    return f"| {name} | {reader} | {pages} | {' | '.join(cells)} |"


def article_table() -> str:
    """Precision, recall and F of the segments that ordinary articles should and should not keep."""
    if not ARTICLES.is_dir():
        return f"Articles: {ARTICLES} is not here."
    expected = json.loads((ARTICLES / "expected.json").read_text("utf-8"))
    with tarfile.open(ARTICLES / "pages.tar.gz") as archive:
        members = {Path(member.name).name: member for member in archive if member.isfile()}
        html = {}
        for page in expected:
            stream = archive.extractfile(members[page["file"]])
            html[page["file"]] = decode(stream.read() if stream else b"", "")
    readers: dict[str, Callable[[dict[str, str]], str]] = {
        "trafilatura, Markdown": lambda page: plain(html[page["file"]]),
        "trafilatura, Markdown with links": lambda page: plain(html[page["file"]], links=True),
        "kbkit": lambda page: extract(html[page["file"]], page["url"]).content,
    }
    lines = [
        "Articles: segments kept, as written and with the marks of Markdown taken off.\n",
        "| reader | P | R | F | P, text | R, text | F, text |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, reader in readers.items():
        texts = [reader(page) for page in expected]
        raw = scores([fold(text) for text in texts], expected)
        bare = scores([fold(unmarked(text)) for text in texts], expected)
        lines.append(f"| {name} | " + " | ".join(f"{value:.3f}" for value in raw + bare) + " |")
        print(lines[-1], file=sys.stderr)
    return "\n".join(lines)


def fold(text: str) -> str:
    """A text with its white space folded."""
    return " ".join(text.split())


def unmarked(markdown: str) -> str:
    """Markdown without addresses, escapes, emphasis and heading marks."""
    text = re.sub(r"!?\[((?:[^\[\]\\]|\\.)*)\]\([^)\s]*\)", r"\1", markdown)
    text = re.sub(r"\\([^\w\s])", r"\1", text).replace("&lt;", "<").replace("&amp;", "&")
    return re.sub(r"[*`]|^#+ |\{#[^}]*\}", "", text, flags=re.MULTILINE)


def scores(texts: list[str], expected: list[dict[str, list[str]]]) -> list[float]:
    """Precision, recall and F over all segments."""
    kept = wanted = wrong = 0
    for text, page in zip(texts, expected, strict=True):
        wanted += len(page["with"])
        kept += sum(fold(segment) in text for segment in page["with"])
        wrong += sum(fold(segment) in text for segment in page["without"])
    precision, recall = kept / (kept + wrong), kept / wanted
    return [precision, recall, 2 * precision * recall / (precision + recall)]


def speed_table(sample: int) -> str:
    """Pages a second on one site in one run."""
    name = "python3.11-doc"
    folder = Path(MANUALS[name])
    if not folder.is_dir():
        return f"Speed: {folder} is not installed."
    pages = pages_of(folder, 100_000)
    plain("<p>warm</p>")
    began = time.perf_counter()
    for path in pages[:sample]:
        plain(decode(path.read_bytes(), ""))
    slow = len(pages[:sample]) / (time.perf_counter() - began)
    began = time.perf_counter()
    first = 0.0
    count = 0
    for _ in read(folder, pages):
        first = first or time.perf_counter() - began
        count += 1
    fast = count / (time.perf_counter() - began)
    return "\n".join(
        [
            f"Speed on {name}, {os.cpu_count()} processors.\n",
            "| reader | pages | pages a second | against plain |",
            "| --- | --- | --- | --- |",
            f"| trafilatura.extract | {min(sample, len(pages))} | {slow:.1f} | 1.0 |",
            f"| kbkit, streamed (first page after {first:.1f} s) | {count} | {fast:.1f} | "
            f"{fast / slow:.1f} |",
        ]
    )


if __name__ == "__main__":
    main()
