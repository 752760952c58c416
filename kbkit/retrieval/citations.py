"""Where a quoted text is from, in lines for a language model; and texts cut to a budget."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache

from kbkit.embedding.static import count_tokens
from kbkit.models import Citation, Hit
from kbkit.retrieval.quoting import one_line

LINE_TOKENS = 60
"""Most tokens of what a document says of itself in a line, lest one take all the room."""
_LINE_TOKENS = {"title": 40, "source": 120}
_SHORT_TOKENS = {"title": 12, "source": 24, "version": 8}
_BEGINNING = 2
"""Tokens of the beginning of a text and of a line end."""
_CUT = " [...]"
_ENDS = ("\n\n", "\n", ". ", " ")


def citation_of(
    hit: Hit,
    now: datetime,
    heading_path: tuple[str, ...] | None = None,
    chunk_ids: tuple[str, ...] = (),
) -> Citation:
    """Where a hit is from, without what tells a browser where to scroll.

    Args:
        hit: What was found.
        now: What its age is counted to.
        heading_path: Headings above all that is quoted; by default those of the hit's chunk.
        chunk_ids: Of all chunks that are quoted; by default the hit's.
    """
    return Citation(
        title=hit.title,
        heading_path=hit.chunk.heading_path if heading_path is None else heading_path,
        url=hit.anchor_url,
        uri=hit.uri,
        kb=hit.kb,
        document_id=hit.chunk.document_id,
        chunk_ids=chunk_ids or (hit.chunk.id,),
        page=hit.chunk.page,
        fetched_at=hit.fetched_at,
        age_days=max(0, (now - hit.fetched_at).days),
        state=hit.state,
        version=hit.version,
    )


def source_of(citation: Citation, *, short: bool = False) -> dict[str, str]:
    """Where a piece is from: title, section, source, page, fetched, version, kb; within bounds.

    The section is what stands below the title. An address that is too long is cut, and ``document``
    is the id of the document then.

    Args:
        citation: It.
        short: Within narrow bounds, without the section.
    """
    age = f"{citation.age_days} day{'s' if citation.age_days > 1 else ''} ago"
    path = citation.heading_path[citation.heading_path[:1] == (citation.title,) :]
    said = {
        "title": citation.title,
        "section": "" if short else " > ".join(path),
        "source": citation.url,
        "page": "" if citation.page is None else str(citation.page),
        "fetched": f"{citation.fetched_at:%Y-%m-%d}, {age if citation.age_days else 'today'}, "
        f"{citation.state.value}",
        "version": citation.version or "unknown",
        "kb": citation.kb,
    }
    bounds = _SHORT_TOKENS if short else _LINE_TOKENS
    shown = {
        name: cut(one_line(value), bounds.get(name, LINE_TOKENS))
        for name, value in said.items()
        if value
    }
    whole = shown.get("source", "") == one_line(citation.url)
    return shown if whole else shown | {"document": citation.document_id}


def source_lines(citation: Citation, *, short: bool = False) -> str:
    """Where a piece is from, in lines, each within bounds; see `source_of`."""
    said = source_of(citation, short=short)
    return "\n".join(f"{name}: {value}" for name, value in said.items())


def cut(text: str, tokens: int) -> str:
    """A text as far as a budget lets it, cut where something ends."""
    # a token has a byte at least, so short texts need not be counted
    if len(text.encode("utf-8", "replace")) <= tokens or count_line_tokens(text) <= tokens:
        return text
    low, high = 0, len(text)
    while low < high:  # the longest beginning that fits, with the sign that it is one
        middle = (low + high + 1) // 2
        if count_line_tokens(text[:middle] + _CUT) <= tokens:
            low = middle
        else:
            high = middle - 1
    return cut_at(text, low)


def cut_at(text: str, length: int) -> str:
    """A text up to so many characters, cut before that where something ends."""
    if length >= len(text):
        return text
    ends = ((text.rfind(end, length * 2 // 3, length), len(end.rstrip())) for end in _ENDS)
    kept = next((end + signs for end, signs in ends if end > 0), length)
    return text[:kept].rstrip() + _CUT


@lru_cache(maxsize=1024)  # what answers one question answers others too
def count_line_tokens(text: str) -> int:
    """Tokens of a text where it begins a line; on its own, a mark of a word's beginning counts."""
    return count_tokens(f"\n{text}") - _BEGINNING
