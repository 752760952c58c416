"""Lists for an agent: a line and values for each thing, as many as a budget holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from kbkit.replies.reply import Budget, Reply, with_cursor, write_cursor

_TOO_LONG = "(one is too long to be shown)"


def listing(
    rows: Iterable[tuple[str, Mapping[str, Any]]],
    *,
    name: str,
    head: str,
    nothing: str,
    start: int,
    budget: Budget,
    foot: str = "",
    more: Mapping[str, Any] | None = None,
    limit: int | None = None,
) -> Reply:
    """A list, from one of its rows on.

    Args:
        rows: A line of text and the values of each.
        name: What the values call the list.
        head: A line above it.
        nothing: What is said where it is empty.
        start: How many rows were told before.
        budget: What the reply may take.
        foot: A line below it.
        more: Values beside it.
        limit: Most rows.
    """
    frame = {**(more or {}), name: [], "next_cursor": ""}
    budget.take(f"{head}\n\n{foot}\n\n{_TOO_LONG}", frame)
    lines: list[str] = []
    told: list[Mapping[str, Any]] = []
    cursor = ""
    for line, values in islice(iter(rows), start, None):
        if len(lines) == limit:
            cursor = write_cursor(start + len(lines))
            break
        if budget.takes(line, values):
            lines.append(line)
            told.append(values)
        elif lines:
            cursor = write_cursor(start + len(lines))
            break
        else:  # it would not fit the next time either
            lines.append(_TOO_LONG)
    parts = [head, "\n".join(lines), foot] if lines else [nothing]
    text = "\n\n".join(part for part in parts if part)
    return Reply(with_cursor(text, cursor), frame | {name: told, "next_cursor": cursor})
