"""Quoted texts in a reply: what a reply says of its quotes, and as much as fits of a long text."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from kbkit.models.plain import quotation_mark
from kbkit.replies.reply import Budget, Reply, size, with_cursor, write_cursor
from kbkit.retrieval.citations import cut
from kbkit.retrieval.quoting import fenced, harmless, instructions

_CHARACTERS = 8
"""Most characters that are told for each token of room: some texts have very long tokens."""
_LINES = (240, 60, 24, 18)
"""Most tokens of a line around a text, the first of them that leaves room for some of it."""
_LEAST_TEXT = 60


@dataclass(frozen=True, slots=True)
class Quotes:
    """Quotes of one reply, all between the same marks, which no document can have foreseen.

    They stand between marks in the text and in the values: some clients show their model only one
    of the two.

    Attributes:
        mark: What stands before and after each quote.
    """

    mark: str = field(default_factory=quotation_mark)

    @property
    def note(self) -> str:
        """What a model is told of them."""
        return instructions(self.mark)

    def text(self, name: str, text: str) -> str:
        """A quote of the reply's text, under a name that it can be cited by."""
        return fenced(self.mark, name, text)

    def value(self, text: str) -> str:
        """A quote of the reply's values."""
        return f"<{self.mark}>{text}</{self.mark}>"


def part_reply(
    content: str,
    *,
    name: str,
    said: str,
    values: dict[str, Any],
    quoted: Collection[str] = (),
    start: int,
    first_line: int = 1,
    numbered: bool = True,
    lines_in_all: int = 0,
    budget: Budget,
) -> Reply:
    """A long text from a character on, as much as the budget holds.

    Args:
        content: All of it.
        name: What it is cited by.
        said: What is said above it, in lines.
        values: What is said of it as values.
        quoted: Names of those values that are quoted.
        start: How many characters were told before.
        first_line: Number of its first line.
        numbered: Whether it is told which lines these are.
        lines_in_all: Lines of what it is a part of, where that is told.
        budget: What the reply may take.
    """
    quotes = Quotes()
    every = f" of {lines_in_all}" if lines_in_all else ""

    def above(first: int, last: int) -> str:
        lines = f"lines: {first}-{last}{every}" if numbered else ""
        return "\n".join(line for line in (said, lines) if line)

    last = first_line + content.count("\n")
    lines = {"first_line": last, "last_line": last} if numbered else {}
    for most in _LINES:
        name, said, values = _shortened(name, said, values, most)
        marked = {key: quotes.value(values[key]) for key in quoted}
        frame = {
            "note": quotes.note, **values, **marked, **lines, "text": quotes.value(""),
            "next_cursor": "",
        }  # fmt: skip
        around = quotes.text(name, f"{quotes.note}\n\n{above(last, last)}\n\n")
        if budget.room - size(around, frame) >= _LEAST_TEXT:
            break
    budget.take(around, frame)
    text = _fitting(content[start:], budget)
    end = start + len(text)
    cursor = write_cursor(end) if end < len(content) else ""
    first = first_line + content.count("\n", 0, start)
    last = first + text.rstrip("\n").count("\n")
    shown = harmless(text)
    if numbered:
        lines = {"first_line": first, "last_line": last}
    head = above(first, last)
    quote = quotes.text(name, f"{head}\n\n{shown}" if head else shown)
    return Reply(
        with_cursor(f"{quotes.note}\n\n{quote}", cursor),
        frame | lines | {"text": quotes.value(shown), "next_cursor": cursor},
    )


def _shortened(
    name: str, said: str, values: dict[str, Any], most: int
) -> tuple[str, str, dict[str, Any]]:
    """What stands around a text, each line and value within so many tokens."""
    lines = [cut(line, most) for line in said.split("\n")]
    short = {
        key: cut(value, most) if isinstance(value, str) else value for key, value in values.items()
    }
    return cut(name, most), "\n".join(lines), short


def _fitting(content: str, budget: Budget) -> str:
    """As much of a text as the budget holds, up to an end of a line where one is near."""
    low, high = 0, min(len(content), max(budget.room, 1) * _CHARACTERS)
    while low < high:
        middle = (low + high + 1) // 2
        if budget.holds(part := harmless(content[:middle]), part):
            low = middle
        else:
            high = middle - 1
    if low == len(content):
        return content
    line = content.rfind("\n", low * 2 // 3, low)
    return content[: line + 1] if line >= 0 else content[: max(low, 1)]
