"""Headings of a PDF without an outline: short paragraphs in larger or bold letters."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

_LARGER = 1.12  # times the height of most letters
_SMALLER = 0.95
_LONGEST = 160  # characters
_MOST_LINES = 3
_FEWEST_LETTERS = 3
_MOST_BOLD = 0.3  # share of letters; where more are bold, that marks no heading
_MOST_HEADINGS = 0.34  # share of a document's lines
_MOST_STEP = 1.15  # times what is usual for letters so high, within a heading
_ALIKE = 1.04  # heights that differ less are one
_SENTENCE = re.compile(r"[.,;:][\"'”’)\]]?$")
_BULLET = re.compile(r"\s*[•‣◦▪●–-]\s")


@dataclass(slots=True)
class Line:
    """A line of a page.

    Attributes:
        begins: A paragraph begins with it.
        height: Of its letters, in points; 0 where that is not known.
        step: Down from the line before, in points; 0 where there is none.
        bold: All of it is.
        spread: Words of it stand far apart, as the cells of a table's head do.
    """

    text: str
    begins: bool
    height: float = 0.0
    bold: bool = False
    spread: bool = False
    step: float = 0.0


def printed_headings(
    pages: Sequence[Sequence[Line]],
) -> tuple[dict[int, list[tuple[int, str]]], str]:
    """The headings of each page as level and text, and the first page's largest.

    Args:
        pages: The lines of all pages.
    """
    letters: Counter[float] = Counter()
    bold = 0
    for line in (line for lines in pages for line in lines):
        letters[round(line.height, 1)] += len(line.text)
        bold += len(line.text) * line.bold
    body = letters.most_common(1)[0][0] if letters else 0.0
    if not body:
        return {}, ""
    steps = [
        line.step / line.height for lines in pages for line in lines
        if line.height and line.step > 0 and not line.begins
    ]  # fmt: skip
    spacing = _MOST_STEP * (median(steps) if steps else 1.2)
    weighs = bold <= _MOST_BOLD * letters.total()
    found = [
        (index, round(run[0].height, 1), " ".join(line.text.strip() for line in run))
        for index, lines in enumerate(pages)
        for run in _paragraphs(lines, body, spacing)
        if _is_heading(run, body, weighs)
    ]
    if len(found) > _MOST_HEADINGS * sum(map(len, pages)):
        return {}, ""
    level = _levels({height for _, height, _ in found}, body)
    headings: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for index, height, title in found:
        headings[index].append((level[height], title))
    opening = [(height, title) for index, height, title in found if index == found[0][0] < 2]
    largest = max((height for height, _ in opening), default=0.0)
    title = next((title for height, title in opening if height == largest > body * _LARGER), "")
    return dict(headings), title


def _paragraphs(lines: Sequence[Line], body: float, spacing: float) -> Iterator[list[Line]]:
    """Paragraphs; lines of large letters stand further apart than those of others do."""
    run: list[Line] = []
    for line in lines:
        large = line.height >= body * _LARGER and 0 < line.step <= spacing * line.height
        same = run and line.bold == run[-1].bold
        goes_on = large and same and 1 / _ALIKE < line.height / (run[-1].height or 1) < _ALIKE
        if run and not goes_on and (line.begins or not same):
            yield run
            run = []
        run.append(line)
    if run:
        yield run


def _is_heading(run: Sequence[Line], body: float, weighs: bool) -> bool:
    text = " ".join(line.text.strip() for line in run)
    height = run[0].height
    larger = height >= body * _LARGER
    bolder = weighs and height >= body * _SMALLER and all(line.bold for line in run)
    return (
        (larger or bolder)
        and not any(line.spread for line in run)
        and len(run) <= _MOST_LINES
        and len(text) <= _LONGEST
        and sum(map(str.isalpha, text)) >= _FEWEST_LETTERS
        and not _SENTENCE.search(text)
        and not _BULLET.match(text)
    )


def _levels(heights: set[float], body: float) -> dict[float, int]:
    """The level of each height, the largest first; bold letters of a text's own size come last."""
    level, top, levels = 0, 0.0, {}
    for height in sorted(heights, reverse=True):
        # letters that are bold are not larger than those around them by more than rounding
        same = top and (top < height * _ALIKE) and not (top >= body * _LARGER > height)
        if not same:
            level, top = min(level + 1, 6), height
        levels[height] = level
    return levels
