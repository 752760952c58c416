"""Cuts documents into chunks, here or on a worker: all of it follows from the document alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kbkit.ingest.chunking import chunk, embedded_text
from kbkit.ingest.descriptions import describe, is_index
from kbkit.ingest.ids import chunk_id, digest
from kbkit.markdown.structure import outline
from kbkit.models import Chunk, ChunkSpan, Document, DocumentState
from kbkit.recipes import KnowledgeBaseSpec
from kbkit.stores.catalog.chunk_writing import NewChunk
from kbkit.text import analyzer

_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class CutDocument:
    """A document and what it was cut into.

    Attributes:
        document: It, with its description.
        chunks: All of its chunks, in order.
        is_index: It is mostly links.
        texts: What search reads of the chunks, by the hash of that.
    """

    document: Document
    chunks: Sequence[NewChunk]
    is_index: bool
    texts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CutTask:
    """Documents to cut; a `kbkit.processes.Task`.

    Attributes:
        spec: How their knowledge base works.
    """

    documents: tuple[Document, ...]
    spec: KnowledgeBaseSpec

    @property
    def seconds(self) -> float:
        """Longest that it may take."""
        return _SECONDS

    def perform(self) -> list[CutDocument]:
        """Cut them, in order."""
        return [_cut(document, self.spec) for document in self.documents]

    def broken(self, reason: str) -> list[CutDocument]:
        """Documents on which workers ended: whether by them or not, they are cut here."""
        return self.perform()


def _cut(document: Document, spec: KnowledgeBaseSpec) -> CutDocument:
    title, content = document.title, document.content
    structure = outline(content)  # which takes as long as all that is made of it
    line = describe(title, content, document.metadata, structure=structure)
    terms_of = analyzer(spec.language).terms
    seen: Counter[tuple[tuple[str, ...], str]] = Counter()
    new: list[NewChunk] = []
    texts: dict[str, str] = {}
    form = str(document.metadata.get("format", ""))
    gone = document.state is DocumentState.GONE
    spans = [] if gone else chunk(
        content, document.document_type, spec.chunking, form, structure=structure
    )  # fmt: skip
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
