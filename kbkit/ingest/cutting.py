"""Split documents into chunks, here or on a worker."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kbkit.ingest.descriptions import describe, is_index
from kbkit.ingest.spans import cut, strategy_for
from kbkit.models import Chunk, ChunkSpan, Document, DocumentState, DocumentType
from kbkit.recipes import ChunkingSpec, KnowledgeBaseSpec
from kbkit.stores.catalog.chunk_writing import NewChunk
from kbkit.text.analysis import analyzer
from kbkit.text.markdown.plain_text import without_link_targets
from kbkit.text.markdown.structure import Outline, outline, without_anchors

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

    ``heading_path`` and ``anchor`` are those of the last opening heading. Headings without an
    anchor get MkDocs' default. Page marks are form feeds or lines ``<!-- page N -->``.
    """
    if not content or content.isspace():
        return []
    structure = structure or outline(content)
    auto = spec.strategy == "auto"
    strategy = strategy_for(structure, document_type, form) if auto else spec.strategy
    size = size_for(spec, form)
    return list(cut(content, structure, strategy, size, spec.overlap, lines=auto))


def size_for(spec: ChunkingSpec, form: str) -> int:
    """Return the maximum characters of a chunk; 3,000 for PDF pages with the default chunking."""
    default = spec.strategy == "auto" and spec.size == ChunkingSpec().size
    return _PAGE_SIZE if default and form == "pdf" else spec.size


def embedded_text(title: str, heading_path: Sequence[str], text: str) -> str:
    """Return a chunk's text for search: title, heading path, and text without link targets."""
    headings = heading_path[1:] if tuple(heading_path[:1]) == (title,) else heading_path
    lines = (title, " > ".join(headings), without_link_targets(without_anchors(text)))
    return "\n".join(line for line in lines if line)


def document_id(kb_id: str, uri: str) -> str:
    """Return the id of a document that is stored for the first time under a URI."""
    return digest(f"{kb_id}\0{uri}")


def chunk_id(document_id: str, heading_path: Sequence[str], text: str, occurrence: int) -> str:
    """Return a chunk's id; ``occurrence`` counts equal chunks before it, from 0."""
    return digest(json.dumps([document_id, heading_path, text, occurrence]))


def digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class CutDocument:
    """A document with its chunks.

    Attributes:
        texts: Search texts of the chunks, by hash.
    """

    document: Document
    chunks: Sequence[NewChunk]
    is_index: bool
    texts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CutTask:
    """Documents to cut; a `kbkit.runtime.processes.WorkerTask`."""

    documents: tuple[Document, ...]
    spec: KnowledgeBaseSpec

    @property
    def seconds(self) -> float:
        return _SECONDS

    def perform(self) -> list[CutDocument]:
        return [_cut(document, self.spec) for document in self.documents]

    def broken(self, reason: str) -> list[CutDocument]:
        return self.perform()


def _cut(document: Document, spec: KnowledgeBaseSpec) -> CutDocument:
    title, content = document.title, document.content
    structure = outline(content)  # parsed once, since this takes half of the time
    line = describe(title, content, document.metadata, structure=structure)
    terms_of = analyzer(spec.language).terms
    seen: Counter[tuple[tuple[str, ...], str]] = Counter()
    new: list[NewChunk] = []
    texts: dict[str, str] = {}
    form = str(document.metadata.get("format", ""))
    gone = document.state is DocumentState.GONE
    spans = (
        []
        if gone
        else chunk(content, document.document_type, spec.chunking, form, structure=structure)
    )
    for position, span in enumerate(spans):
        text = content[span.start : span.end]
        occurrence = seen[span.heading_path, text]
        seen[span.heading_path, text] += 1
        read = embedded_text(title, span.heading_path, text)
        terms = terms_of(read)
        key = digest(read)
        texts[key] = read
        new.append(
            NewChunk(
                chunk=_chunk(document, span, text, position, occurrence),
                terms=" ".join(terms),
                length=len(terms),
                embed_hash=key,
            )
        )
    return CutDocument(replace(document, description=line), new, is_index(content), texts)


def _chunk(document: Document, span: ChunkSpan, text: str, position: int, occurrence: int) -> Chunk:
    return Chunk(
        id=chunk_id(document.id, span.heading_path, text, occurrence),
        document_id=document.id,
        position=position,
        start=span.start,
        end=span.end,
        text=text,
        heading_path=span.heading_path,
        anchor=span.anchor,
        page=span.page,
    )
