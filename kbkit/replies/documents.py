"""A document for an agent: whole, a section, or a range of lines, as much as a budget holds."""

from __future__ import annotations

import re

from kbkit.errors import ConfigError, NotFoundError
from kbkit.knowledge_base.document_parts import anchor_span, section_span
from kbkit.models import Document
from kbkit.replies.quotes import part_reply
from kbkit.replies.reply import Budget, Reply
from kbkit.retrieval.citations import LINE_TOKENS, cut
from kbkit.retrieval.quoting import one_line

_SOURCE_TOKENS = 120
_LINES = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)


def document_reply(
    found: Document,
    *,
    kb: str,
    section: str = "",
    lines: str = "",
    anchor: str = "",
    start: int,
    budget: Budget,
) -> Reply:
    """A document, from a character on.

    Args:
        found: It.
        kb: Name of its knowledge base.
        section: Heading, or anchor of one, of the part that is wanted; ``""`` for all.
        lines: Range of its lines, such as ``10-40``; ``""`` for all.
        anchor: What it was asked for with, which leads to a part of it where nothing else is said.
        start: How many characters of that were told before.
        budget: What the reply may take.

    Raises:
        NotFoundError: It has no such section or line; the message says what it has.
        ConfigError: The range is none, or a section is asked for too.
    """
    if section and lines:
        raise ConfigError("give either section or lines")
    if lines:
        begin, end = _lines(found, lines)
    else:
        begin, end = section_span(found, section) if section else anchor_span(found, anchor)
    total = len(_split(found.content))
    title = cut(one_line(found.title), LINE_TOKENS)
    source = cut(one_line(found.uri), _SOURCE_TOKENS)
    fetched = f"{found.fetched_at:%Y-%m-%d}"
    version = cut(one_line(found.version), LINE_TOKENS) or "unknown"
    said = [
        f"title: {title}", f"source: {source}", f"kb: {kb}",
        f"fetched: {fetched}, {found.state.value}", f"version: {version}",
    ]  # fmt: skip
    return part_reply(
        found.content[begin:end], name="1", said="\n".join(said), start=start, budget=budget,
        first_line=found.content.count("\n", 0, begin) + 1, lines_in_all=total, quoted=("title",),
        values={
            "kb": kb, "title": title, "source": source, "fetched_at": fetched,
            "state": found.state.value, "version": version, "lines": total,
        },
    )  # fmt: skip


def _lines(found: Document, lines: str) -> tuple[int, int]:
    """Where a range of lines begins and ends."""
    given = _LINES.fullmatch(lines.strip())
    first, last = (int(given[1]), int(given[2] or given[1])) if given else (0, 0)
    if not 1 <= first <= last:
        raise ConfigError(f"lines={lines[:40]!r}: give a range such as 10-40, counted from 1")
    every = _split(found.content)
    if first > len(every):
        raise NotFoundError(f"{found.uri[:200]}: has {len(every)} lines")
    begin, end = (sum(len(line) + 1 for line in every[:count]) for count in (first - 1, last))
    return begin, min(end, len(found.content))


def _split(content: str) -> list[str]:
    """Its lines, without their ends."""
    return content.removesuffix("\n").split("\n") if content else []
