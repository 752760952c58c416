"""Quoted texts in a reply: what a reply says of its quotes, and as much as fits of a long text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kbkit.models.plain import quotation_mark
from kbkit.replies.reply import Budget, Reply, size, with_cursor, write_cursor
from kbkit.retrieval.citations import cut
from kbkit.retrieval.quoting import fenced, harmless, instructions

_CHARACTERS = 8
"""Most characters that are told for each token of room: some texts have very long tokens."""
_LINES = (240, 60, 24)
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
    start: int,
    first_line: int = 1,
    numbered: bool = True,
    budget: Budget,
) -> Reply:
    """A long text from a character on, as much as the budget holds.

    Args:
        content: All of it.
        name: What it is cited by.
        said: What is said above it, in lines.
        values: What is said of it as values.
        start: How many characters were told before.
        first_line: Number of its first line.
        numbered: Whether it is told which lines these are.
        budget: What the reply may take.
    """
    quotes = Quotes()
    lines = {"first_line": 0, "last_line": 0} if numbered else {}
    for most in _LINES:
        name, said, values = _shortened(name, said, values, most)
        frame = {
            "note": quotes.note, **values, **lines, "text": quotes.value(""), "next_cursor": "",
        }  # fmt: skip
        head = "\n".join(line for line in (said, "lines: 000000-000000 of 000000") if line)
        around = quotes.text(name, f"{quotes.note}\n\n{head}\n\n")
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
        said = "\n".join(line for line in (said, f"lines: {first}-{last}") if line)
    quote = quotes.text(name, f"{said}\n\n{shown}" if said else shown)
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
