"""Passages and documents for agents."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kbkit.errors import ConfigError, NotFoundError
from kbkit.mcp import replies
from kbkit.mcp.replies import short
from kbkit.models import Citation, Context, ContextPiece, Document, Hits, KnowledgeBaseInfo
from kbkit.models.values import pluralize
from kbkit.retrieval import delimiting

HITS_PER_PASSAGE = 4
"""Hits to search for each passage, since some overlap or adjoin others."""
_MAX_NOTES = 3
_SHARES = 3
"""A passage takes at most this part (1/n) of the budget if others fit too."""
_SHARED_LINES = ("fetched", "version", "kb")
"""Lines of the source that only the first passage of a document shows."""
_MIN_LENGTH = 200
"""Minimum characters of a shortened passage."""


def search_reply(
    hits: Hits, *, limit: int, budget: replies.Budget, with_ids: bool = False
) -> replies.Reply:
    """Return a page of passages of a search."""
    quotes, now, start = replies.Quotes(), datetime.now(UTC), budget.start
    extracts = delimiting.excerpts(hits, start + limit + 1)
    notes = [short(note) for note in hits.notes[:_MAX_NOTES]]
    noted = [quotes.text("note", note) for note in notes]
    frame = {
        "note": quotes.note,
        "results": [],
        "notes": [quotes.value(note) for note in notes],
        "next_cursor": "",
    }
    budget.take("\n\n".join([quotes.note, *noted]), frame)
    document_keys = [(extract.hit.kb, extract.hit.chunk.document_id) for extract in extracts]
    passages = [
        _Passage(
            quotes,
            str(number),
            delimiting.citation_of(excerpt.hit, now, excerpt.heading_path),
            excerpt.hit.chunk.id if with_ids else "",
            delimiting.harmless(excerpt.text),
            document_keys[number - 1] in document_keys[start : number - 1],
        )
        for number, excerpt in enumerate(extracts[start : start + limit], start + 1)
    ]
    rendered: list[tuple[str, dict[str, Any]]] = []
    share = budget.room // min(limit, _SHARES)
    for passage in passages:
        room = replies.Budget(min(share, budget.room))
        if not room.holds(*passage.render(_MIN_LENGTH)):
            if rendered:
                break
            room = budget
        rendered.append(passage.within(room))
        budget.take(*rendered[-1])
    # give the rest of the budget to shortened passages
    for index, passage in enumerate(passages[: len(rendered)]):
        budget.room += replies.size(*rendered[index])
        rendered[index] = passage.within(budget)
        budget.take(*rendered[index])
    end = start + len(rendered)
    cursor = replies.write_cursor(end) if rendered and len(extracts) > end else ""
    parts = [part for part, _ in rendered]
    text = "\n\n".join([quotes.note, *parts, *noted]) if parts or noted else delimiting.NOTHING
    results = [values for _, values in rendered]
    return replies.Reply(
        replies.with_cursor(text, cursor), frame | {"results": results, "next_cursor": cursor}
    )


def citation_values(
    citation: Citation, quotes: replies.Quotes, *, short: bool = False
) -> dict[str, Any]:
    source = delimiting.source_of(citation, short=short)
    headings = [source.pop(name) for name in ("title", "section") if name in source]
    del source["fetched"]
    return {
        "title": quotes.value(" > ".join(headings)),
        **source,
        "fetched_at": f"{citation.fetched_at:%Y-%m-%d}",
        "state": citation.state.value,
    }


@dataclass(frozen=True, slots=True)
class _Passage:
    quotes: replies.Quotes
    number: str
    citation: Citation
    chunk_id: str
    text: str
    same_document: bool  # an earlier passage shows date and version

    def render(
        self, length: int | None = None, *, short: bool = False
    ) -> tuple[str, dict[str, Any]]:
        text = self.text if length is None else delimiting.cut_at(self.text, length)
        ids = {"chunk_id": self.chunk_id} if self.chunk_id else {}
        source = delimiting.source_of(self.citation, short=short) | ids
        hidden = _SHARED_LINES if self.same_document else ()
        lines = [f"{name}: {value}" for name, value in source.items() if name not in hidden]
        values = citation_values(self.citation, self.quotes, short=short) | ids
        values["text"] = self.quotes.value(text)
        return self.quotes.text(self.number, "\n".join([*lines, "", text])), values

    def within(self, budget: replies.Budget) -> tuple[str, dict[str, Any]]:
        """Fit the passage into a budget by shortening its text and a long source."""
        if budget.holds(*(full := self.render())):
            return full
        short = not budget.holds(*self.render(min(len(self.text), _MIN_LENGTH)))
        max_length = delimiting.longest(
            min(len(self.text), max(budget.room, 0) * 4),
            lambda length: budget.holds(*self.render(length, short=short)),
        )
        return self.render(max_length, short=short)


_SHORT_BUDGET = 600
"""Tokens of a budget too small for full sources."""


def context_reply(ask: Callable[[int], Context], budget: replies.Budget) -> replies.Reply:
    from kbkit.retrieval.context import MIN_TOKENS

    room = budget.room + replies.CURSOR_TOKENS  # a context has no next page
    max_tokens = max(MIN_TOKENS, room // 2)
    while True:
        try:
            context = ask(max_tokens)
        except ConfigError as error:
            if str(error).startswith("max_tokens"):  # in terms of the caller's argument
                raise ConfigError("max_tokens: too few for a passage; give more") from error
            raise
        quotes = replies.Quotes()
        values = {
            "note": quotes.note,
            "pieces": [_values(piece, quotes, room < _SHORT_BUDGET) for piece in context.pieces],
            "notes": [quotes.value(note) for note in context.notes],
        }
        excess = replies.size(context.text, values) - room
        if excess <= 0:
            return replies.Reply(context.text, values)
        if max_tokens == MIN_TOKENS:  # only notes remain
            return replies.Reply(context.text, values | {"pieces": [], "notes": []})
        max_tokens = max(MIN_TOKENS, max_tokens - max(excess // 2, 8))


def _values(piece: ContextPiece, quotes: replies.Quotes, short: bool) -> dict[str, Any]:
    values: dict[str, Any] = {"number": piece.number, "kind": piece.kind}
    if piece.name:
        values["name"] = piece.name
    if (citation := piece.citation) is not None:
        values |= citation_values(citation, quotes, short=short)
    return values | {"text": quotes.value(piece.text)}


_SOURCE_TOKENS = 120
_LINES = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)


def document_reply(
    document: Document,
    *,
    kb: str,
    section: str = "",
    lines: str = "",
    anchor: str = "",
    budget: replies.Budget,
) -> replies.Reply:
    """Return a page of a document."""
    from kbkit.knowledge_base.document_collection import anchor_span, section_span

    if section and lines:
        raise ConfigError("give either section or lines")
    if lines:
        begin, end = _lines(document, lines)
    else:
        begin, end = section_span(document, section) if section else anchor_span(document, anchor)
    total = len(_split(document.content))
    title = short(document.title)
    source = delimiting.cut(delimiting.one_line(document.uri), _SOURCE_TOKENS)
    fetched = f"{document.fetched_at:%Y-%m-%d}"
    version = short(document.version) or "unknown"
    state = document.state.value
    heading = f"title: {title}\nsource: {source}\nkb: {kb}\nfetched: {fetched}, {state}"
    values = {"kb": kb, "title": title, "source": source, "fetched_at": fetched, "state": state}
    return replies.part_reply(
        document.content[begin:end],
        name="1",
        heading=f"{heading}\nversion: {version}",
        budget=budget,
        first_line=document.content.count("\n", 0, begin) + 1,
        lines_in_all=total,
        values={**values, "version": version, "lines": total},
    )


def _lines(document: Document, lines: str) -> tuple[int, int]:
    match = _LINES.fullmatch(lines.strip())
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not 1 <= first <= last:
        raise ConfigError(f"lines={lines[:40]!r}: give a range such as 10-40, counted from 1")
    every = _split(document.content)
    if first > len(every):
        raise NotFoundError(f"{document.uri[:200]}: has {len(every)} lines")
    begin, end = (sum(len(line) + 1 for line in every[:count]) for count in (first - 1, last))
    return begin, min(end, len(document.content))


def _split(content: str) -> list[str]:
    return content.removesuffix("\n").split("\n") if content else []


def index_reply(
    info: KnowledgeBaseInfo,
    documents: Iterable[Document],
    address: Callable[[Document], str],
    *,
    budget: replies.Budget,
) -> replies.Reply:
    topic = delimiting.cut(delimiting.one_line(info.description), 2 * delimiting.LINE_TOKENS)

    def row(document: Document) -> tuple[str, dict[str, Any]]:
        title = short(document.title).translate(_BRACKETS)
        description = short(document.description)
        return f"- [{title}]({address(document)})" + f": {description}" * bool(description), {}

    return replies.listing(
        map(row, documents),
        name="documents",
        above=f"# {info.name}\n\n{pluralize(info.documents, 'document')}. ",
        about=topic and f"> {topic}",
        nothing=f"# {info.name}\n\nIt contains no documents yet.",
        budget=budget,
    )


_BRACKETS = str.maketrans("[]", "()")
