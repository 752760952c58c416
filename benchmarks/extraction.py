"""Compare extraction with plain trafilatura: fidelity, articles and speed.

    python benchmarks/extraction.py [--pages N] [--before N] [--speed N] [--sites FOLDER]

Reads documentation of Debian packages in /usr/share/doc, sets that `generated.py` made in a folder,
and the articles in ``../shared/eval/articles``; missing ones are reported. Prints Markdown tables
and writes them to ``build/bench/extraction.md``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import logging
import os
import random
import re
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import trafilatura
from _corpora import EVAL, report, table

from kbkit.sources.decode import decode
from kbkit.sources.fidelity_report import FidelityReport, PageFidelity
from kbkit.sources.html import regions
from kbkit.sources.html.extract import ExtractedPage, extract
from kbkit.sources.html.fidelity import KINDS, Fidelity, recurring, survey
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
SITE_PAGES = 150
SURVEYED = 100
HALVES = 20
LOST, PLACES, KEPT = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0), (3, 6, 12), (20, 60)
"""Thresholds to choose from."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", type=int, default=100_000, help="pages of each manual")
    parser.add_argument("--before", type=int, default=40, help="pages that trafilatura reads")
    parser.add_argument("--speed", type=int, default=120, help="pages to time trafilatura with")
    parser.add_argument("--sites", type=Path, help="sets of `generated.py`, 150 pages of each")
    options = parser.parse_args()
    if options.sites:
        options.pages = min(options.pages, SITE_PAGES)
    logging.disable(logging.CRITICAL)
    manuals = {name: Path(place) for name, place in MANUALS.items()}
    if options.sites:
        manuals = {
            one.name: one
            for one in sorted(options.sites.iterdir())
            if one.is_dir() and one.name != "tools"
        }
    parts = [fidelity_table(manuals, options.pages, options.before), article_table()]
    parts.append(speed_table(options.speed))
    report("extraction", ["\n\n".join(parts)])


class Thresholds(NamedTuple):
    """Thresholds that decide whether a page on its own is read as an article.

    Attributes:
        lost: Share of the words under its headings that trafilatura may lose.
        places: Number of links to its own places, as a manual has.
        kept: Number of words that trafilatura must keep.
    """

    lost: float
    places: int
    kept: int

    def __str__(self) -> str:
        return f"{self.lost}/{self.places}/{self.kept}"


def pages_of(folder: Path, most: int) -> list[Path]:
    """Return pages of a manual in a fixed random order."""
    pages = [path for path in sorted(folder.rglob("*.html")) if path.is_file()]
    random.Random(11).shuffle(pages)
    return pages[:most]


def read(folder: Path, pages: list[Path]) -> Iterator[tuple[Path, ExtractedPage]]:
    """Read pages as kbkit reads a site: streamed, on all processors."""
    tasks = ((path, address(folder, path), path.read_bytes(), "") for path in pages)
    for path, page in SiteExtractor().read(tasks):
        if page.content:
            yield path, page


def plain(html: str, *, links: bool = False) -> str:
    """Return the Markdown of plain trafilatura."""
    text = trafilatura.extract(
        html, output_format="markdown", include_comments=False, include_links=links
    )
    return text or ""


def address(folder: Path, page: Path) -> str:
    """Return a page's address on the web."""
    return f"https://docs.example/{page.relative_to(folder).as_posix()}"


def fidelity_table(manuals: dict[str, Path], most: int, before: int) -> str:
    """Tabulate the fidelity of each manual, before and after."""
    lines = [
        "Kept share in per cent, of all things of the kind (surplus: share of the text that is "
        "not content).\n",
        f"| manual | reader | pages | lost | titles | {' | '.join(KINDS)} |",
        "|" + " --- |" * (5 + len(KINDS)),
    ]
    for name, folder in manuals.items():
        if not folder.is_dir():
            lines.append(f"| {name} | not installed |" + " |" * (3 + len(KINDS)))
            continue
        pages = pages_of(folder, most)
        template = recurring([survey(decode(path.read_bytes(), "")) for path in pages[:SURVEYED]])
        measured = []
        for path in [path for path in pages if path.stat().st_size < 300_000][:before]:
            html = decode(path.read_bytes(), "")
            figures = Fidelity()
            figures.add(html, plain(html, links=True), url=address(folder, path), template=template)
            measured.append(PageFidelity(path.name, figures, path.name))
        lines.append(row(name, "trafilatura", len(measured), measured))
        measured = []
        for path, page in read(folder, pages):
            figures = Fidelity()
            found = figures.add(
                decode(path.read_bytes(), ""),
                page.content,
                url=address(folder, path),
                template=template,
                article=page.article,
            )
            names = found.names if found is not None else ()
            one = PageFidelity(path.name, figures, page.title, page.article, names=names)
            measured.append(one)
        lines.append(row(name, "kbkit", len(pages), measured))
        print(lines[-1], file=sys.stderr)
    return "\n".join(lines)


def row(name: str, reader: str, pages: int, measured: list[PageFidelity]) -> str:
    total = Fidelity()
    for page in measured:
        total.include(page.fidelity)
    titles = FidelityReport(tuple(measured), total).titles
    cells = (
        f"{100 * total.share(kind):.2f} of {total.wanted[kind]:,}" if total.wanted[kind] else "none"
        for kind in KINDS
    )
    first = f"| {name} | {reader} | {pages} | {pages - len(measured)} | {100 * titles:.1f}"
    return f"{first} | {' | '.join(cells)} |"


def article_table() -> str:
    """Tabulate precision, recall and F of the segments that articles should and should not keep."""
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
    rows = []
    folded: dict[str, list[str]] = {}
    for name, reader in readers.items():
        texts = [reader(page) for page in expected]
        raw = scores([fold(text) for text in texts], expected)
        bare = scores([fold(unmarked(text)) for text in texts], expected)
        rows.append([name, *(f"{value:.3f}" for value in raw + bare)])
        print(*rows[-1], file=sys.stderr)
        folded[name] = [fold(text) for text in texts]
    chosen = cross_validated(html, folded["trafilatura, Markdown"], expected)
    head = ["reader", "P", "R", "F", "P, text", "R, text", "F, text"]
    about = "Articles: segments kept, as written and with the marks of Markdown taken off.\n"
    return "\n".join([about, *table(head, rows), "", halves(folded, expected), "", chosen])


def random_halves(number: int) -> Iterator[tuple[list[int], list[int]]]:
    """Divide some numbers at random, several times."""
    numbers = list(range(number))
    for seed in range(HALVES):
        random.Random(seed).shuffle(numbers)
        yield numbers[: number // 2], numbers[number // 2 :]


def spread(head: str, found: dict[str, list[float]]) -> list[str]:
    """Tabulate means and extremes."""
    rows = [
        [name, f"{sum(values) / len(values):+.4f}", f"{min(values):+.4f}", f"{max(values):+.4f}"]
        for name, values in found.items()
    ]
    return table([head, "mean", "worst half", "best half"], rows)


def halves(texts: dict[str, list[str]], expected: list[dict[str, list[str]]]) -> str:
    """Compare F with plain trafilatura's on random halves of the articles.

    A rule chosen on one half shows its worth on the other.
    """
    base, *others = texts
    parts = [part for pair in random_halves(len(expected)) for part in pair]

    def f_of(name: str, part: list[int]) -> float:
        return scores([texts[name][at] for at in part], [expected[at] for at in part])[2]

    found = {name: [f_of(name, part) - f_of(base, part) for part in parts] for name in others}
    about = f"F less that of {base}, on {HALVES} pairs of random halves.\n"
    return "\n".join([about, *spread("reader", found)])


def cross_validated(
    html: dict[str, str], plain_texts: list[str], expected: list[dict[str, Any]]
) -> str:
    """Measure thresholds on articles that they were not chosen on.

    Each half of a random pair chooses thresholds (the best F of all combinations); the other half
    measures them.
    """
    choices = [Thresholds(*each) for each in itertools.product(LOST, PLACES, KEPT)]
    texts, decisions = both_readings(html, expected, choices)

    def f_of(choice: Thresholds | None, part: list[int]) -> float:
        picked = [
            plain_texts[at] if choice is None else texts[at][decisions[at][choices.index(choice)]]
            for at in part
        ]
        return scores(picked, [expected[at] for at in part])[2]

    today = Thresholds(regions._LOST_ALONE, regions._PLACES, regions._KEPT_WORDS)
    found: list[float] = []
    fixed: list[float] = []
    counts: Counter[Thresholds] = Counter()
    for pair in random_halves(len(expected)):
        for one, other in (pair, pair[::-1]):
            best = max((f_of(choice, one), -at, choice) for at, choice in enumerate(choices))[2]
            counts[best] += 1
            found.append(f_of(best, other) - f_of(None, other))
            fixed.append(f_of(today, other) - f_of(None, other))
    about = (
        f"Thresholds chosen on one half and measured on the other, both ways, {HALVES} times: "
        "F less that of plain trafilatura's Markdown.\n"
    )
    made = spread("thresholds", {"chosen on the other half": found, f"as they are: {today}": fixed})
    chosen = ", ".join(f"{choice}: {count}" for choice, count in counts.most_common(5))
    return "\n".join([about, *made, "", f"Most often chosen: {chosen}."])


def both_readings(
    html: dict[str, str], expected: list[dict[str, Any]], choices: list[Thresholds]
) -> tuple[list[tuple[str, str]], list[list[bool]]]:
    """Read each page whole and as an article; return both, and what each choice would take."""
    decide = regions.is_article
    texts, decisions = [], []
    decided: list[bool] = []

    def ask_all(*about: Any, **known: Any) -> bool:
        before = regions._LOST_ALONE, regions._PLACES, regions._KEPT_WORDS
        for choice in choices:
            regions._LOST_ALONE, regions._PLACES, regions._KEPT_WORDS = choice
            decided.append(decide(*about, **known))
        regions._LOST_ALONE, regions._PLACES, regions._KEPT_WORDS = before
        return True

    for page in expected:
        decided.clear()
        with patch("kbkit.sources.html.regions.is_article", ask_all):
            as_article = extract(html[page["file"]], page["url"]).content
        with patch("kbkit.sources.html.regions.is_article", return_value=False):
            whole = extract(html[page["file"]], page["url"]).content
        texts.append((fold(whole), fold(as_article)))
        decisions.append(list(decided) or [False] * len(choices))
    return texts, decisions


def fold(text: str) -> str:
    """Fold white space."""
    return " ".join(text.split())


def unmarked(markdown: str) -> str:
    """Strip addresses, escapes, emphasis and heading marks from Markdown."""
    text = re.sub(r"!?\[((?:[^\[\]\\]|\\.)*)\]\([^)\s]*\)", r"\1", markdown)
    text = re.sub(r"\\([^\w\s])", r"\1", text).replace("&lt;", "<").replace("&amp;", "&")
    return re.sub(r"[*`]|^#+ |\{#[^}]*\}", "", text, flags=re.MULTILINE)


def scores(texts: list[str], expected: list[dict[str, list[str]]]) -> list[float]:
    """Return precision, recall and F over all segments."""
    kept = wanted = wrong = 0
    for text, page in zip(texts, expected, strict=True):
        wanted += len(page["with"])
        kept += sum(fold(segment) in text for segment in page["with"])
        wrong += sum(fold(segment) in text for segment in page["without"])
    precision, recall = kept / (kept + wrong), kept / wanted
    return [precision, recall, 2 * precision * recall / (precision + recall)]


def speed_table(sample: int) -> str:
    """Tabulate pages a second on one site."""
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
    first, count = 0.0, 0
    for count, _ in enumerate(read(folder, pages), 1):  # noqa: B007 - the last one counts
        first = first or time.perf_counter() - began
    fast = count / (time.perf_counter() - began)
    ours = f"kbkit, streamed (first page after {first:.1f} s)"
    rows = [
        ["trafilatura.extract", str(min(sample, len(pages))), f"{slow:.1f}", "1.0"],
        [ours, str(count), f"{fast:.1f}", f"{fast / slow:.1f}"],
    ]
    head = ["reader", "pages", "pages a second", "against plain"]
    return "\n".join([f"Speed on {name}, {os.cpu_count()} processors.\n", *table(head, rows)])


if __name__ == "__main__":
    main()
