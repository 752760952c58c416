"""Cuts a document's Markdown into chunks that know their place.

``content[start:end]`` of every span is the chunk, without white space at its ends, and together
the spans hold every other character of the content.
"""

from __future__ import annotations

from collections.abc import Sequence

from kbkit.ingest.spans import cut, strategy_for
from kbkit.markdown.links import without_link_targets
from kbkit.markdown.structure import Outline, outline, without_anchors
from kbkit.models import ChunkSpan, DocumentType
from kbkit.recipes import ChunkingSpec

_PAGE_SIZE = 3000


def chunk(
    content: str,
    document_type: DocumentType,
    spec: ChunkingSpec,
    form: str = "",
    *,
    structure: Outline | None = None,
) -> list[ChunkSpan]:
    """Cut a document into chunks.

    A chunk that opens with headings stands under the last of them: ``heading_path`` and
    ``anchor`` are that heading's. Headings without an anchor of their own get the one that
    MkDocs would give. Page marks are form feeds or lines ``<!-- page N -->``.

    Args:
        content: Markdown; any text will do.
        document_type: What ``auto`` chooses the strategy by.
        spec: Strategy, most characters of a chunk, and overlap.
        form: The document's ``format`` (``pdf``, ``docx``, ``code``), which ``auto`` heeds first.
        structure: The outline of the content, where it is known already.

    Returns:
        Spans by start, each with text, none longer than ``spec.size`` characters (`size_for`).
    """
    if not content or content.isspace():
        return []
    structure = structure or outline(content)
    auto = spec.strategy == "auto"
    strategy = strategy_for(structure, document_type, form) if auto else spec.strategy
    size = size_for(spec, form)
    return list(cut(content, structure, strategy, size, spec.overlap, lines=auto))


def size_for(spec: ChunkingSpec, form: str) -> int:
    """Most characters of a chunk.

    Pages of a PDF may take 3,000 where a recipe leaves strategy and size as they are.
    """
    default = spec.strategy == "auto" and spec.size == ChunkingSpec().size
    return _PAGE_SIZE if default and form == "pdf" else spec.size


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
