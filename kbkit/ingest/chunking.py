"""Cuts a document's Markdown into chunks that know their place.

``content[start:end]`` of every span is the chunk, without white space at its ends, and together
the spans hold every other character of the content.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from kbkit.markdown.links import without_link_targets
from kbkit.markdown.structure import without_anchors
from kbkit.models import ChunkSpan, DocumentType
from kbkit.recipes import ChunkingSpec

if TYPE_CHECKING:
    from llama_index.core.schema import TextNode

    from kbkit.ingest.node_parser import SpanParser

_PAGE_SIZE = 3000
_SURROGATE = re.compile("[\ud800-\udfff]")


def chunk(
    content: str, document_type: DocumentType, spec: ChunkingSpec, form: str = ""
) -> list[ChunkSpan]:
    """Cut a document into chunks with the llama-index node parser `SpanParser`.

    A chunk that opens with headings stands under the last of them: ``heading_path`` and
    ``anchor`` are that heading's. Headings without an anchor of their own get the one that
    MkDocs would give. Page marks are form feeds or lines ``<!-- page N -->``.

    Args:
        content: Markdown; any text will do.
        document_type: What ``auto`` chooses the strategy by.
        spec: Strategy, most characters of a chunk, and overlap.
        form: The document's ``format`` (``pdf``, ``docx``, ``code``), which ``auto`` heeds first.

    Returns:
        Spans by start, each with text, none longer than ``spec.size`` characters (`size_for`).
    """
    if not content or content.isspace():
        return []
    from llama_index.core.schema import Document, TextNode

    # The parser's models refuse lone surrogates; one character for another keeps offsets.
    text = _SURROGATE.sub("\ufffd", content)
    about = {"document_type": document_type.value, "format": form}
    parser = _parser(spec.strategy, size_for(spec, form), spec.overlap)
    nodes = parser.get_nodes_from_documents([Document(id_="document", text=text, metadata=about)])
    return [_span(node) for node in nodes if isinstance(node, TextNode)]


def size_for(spec: ChunkingSpec, form: str) -> int:
    """Most characters of a chunk.

    Pages of a PDF may take 3,000 where a recipe leaves strategy and size as they are.
    """
    default = spec.strategy == "auto" and spec.size == ChunkingSpec().size
    return _PAGE_SIZE if default and form == "pdf" else spec.size


@lru_cache(maxsize=16)
def _parser(strategy: str, size: int, overlap: int) -> SpanParser:
    from kbkit.ingest.node_parser import SpanParser

    return SpanParser(strategy=strategy, size=size, overlap=overlap, include_prev_next_rel=False)


def _span(node: TextNode) -> ChunkSpan:
    start, end = node.start_char_idx, node.end_char_idx
    assert start is not None  # the parser sets both
    assert end is not None
    place = node.metadata
    return ChunkSpan(start, end, tuple(place["heading_path"]), place["anchor"], place["page"])


def embedded_text(title: str, heading_path: Sequence[str], text: str) -> str:
    """What search reads of a chunk: title, heading path, and the text as a person sees it.

    Anchors of headings and targets of links are left out: addresses are long, and would be found
    for words that nobody reads there.

    Args:
        title: The document's title; not said again by a heading path that begins with it.
        heading_path: Headings above the chunk, outermost first.
        text: The chunk.
    """
    headings = heading_path[1:] if tuple(heading_path[:1]) == (title,) else heading_path
    lines = (title, " > ".join(headings), without_link_targets(without_anchors(text)))
    return "\n".join(line for line in lines if line)
