"""A document for an agent: whole, a section, or a range of lines, as much as a budget holds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches

from kbkit.errors import ConfigError, NotFoundError
from kbkit.markdown.structure import Heading, outline
from kbkit.models import Document
from kbkit.replies.quotes import part_reply
from kbkit.replies.reply import Budget, Reply
from kbkit.retrieval.citations import LINE_TOKENS, cut
from kbkit.retrieval.quoting import one_line

_SOURCE_TOKENS = 120
_LINES = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)


def document_reply(
    found: Document, *, kb: str, section: str, lines: str, start: int, budget: Budget
) -> Reply:
    """A document, from a character on.

    Args:
        found: It.
        kb: Name of its knowledge base.
        section: Heading, or anchor of one, of the part that is wanted; ``""`` for all.
        lines: Range of its lines, such as ``10-40``; ``""`` for all.
        start: How many characters of that were told before.
        budget: What the reply may take.

    Raises:
        NotFoundError: It has no such section or line; the message says what it has.
        ConfigError: The range is none, or a section is asked for too.
    """
    if section and lines:
        raise ConfigError("give either section or lines")
    begin, end = _lines(found, lines) if lines else span_of(found, section)
    title = cut(one_line(found.title), LINE_TOKENS)
    source = cut(one_line(found.uri), _SOURCE_TOKENS)
    fetched = f"{found.fetched_at:%Y-%m-%d}"
    version = found.version[:80]
    total = found.content.count("\n") + 1
    said = [
        f"title: {title}", f"source: {source}", f"kb: {kb}",
        f"fetched: {fetched}, {found.state.value}, version {version or 'unknown'}",
        f"lines in all: {total}",
    ]  # fmt: skip
    return part_reply(
        found.content[begin:end], name="1", said="\n".join(said), start=start, budget=budget,
        first_line=found.content.count("\n", 0, begin) + 1,
        values={
            "kb": kb, "title": title, "source": source, "fetched_at": fetched,
            "state": found.state.value, "version": version, "lines": total,
        },
    )  # fmt: skip


def span_of(found: Document, section: str) -> tuple[int, int]:
    """Where a section begins and ends; all of the document without one.

    Raises:
        NotFoundError: It has no such section.
    """
    if not section:
        return 0, len(found.content)
    headings = outline(found.content).headings
    sought = section.strip().lstrip("#").strip().casefold()
    for at, heading in enumerate(headings):
        names = (heading.anchor, heading.path[-1], " > ".join(heading.path))
        if sought in (name.casefold() for name in names):
            below = (other.start for other in headings[at + 1 :] if other.level <= heading.level)
            return heading.start, next(below, len(found.content))
    raise NotFoundError(_no_section(found.uri, section, headings))


def _no_section(uri: str, section: str, headings: Sequence[Heading]) -> str:
    names = [heading.path[-1] for heading in headings]
    near = get_close_matches(section, names, 5, 0.4) or names[:10]
    listed = ", ".join(repr(one_line(name)[:80]) for name in near)
    return f"{uri[:200]}: has no section {section[:80]!r}" + (f"; it has {listed}" if near else "")


def _lines(found: Document, lines: str) -> tuple[int, int]:
    """Where a range of lines begins and ends."""
    given = _LINES.fullmatch(lines.strip())
    first, last = (int(given[1]), int(given[2] or given[1])) if given else (0, 0)
    if not 1 <= first <= last:
        raise ConfigError(f"lines={lines[:40]!r}: give a range such as 10-40, counted from 1")
    every = found.content.splitlines(keepends=True)
    if first > len(every):
        raise NotFoundError(f"{found.uri[:200]}: has {len(every)} lines")
    return sum(map(len, every[: first - 1])), sum(map(len, every[:last]))
