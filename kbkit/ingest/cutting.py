"""Split documents into chunks, here or on a worker; describe, summarize and recognize pages.

Sources store a document's own ``description`` in its metadata: of ``<meta>`` tags, front matter,
docstrings and API descriptions.
"""

import hashlib
import json
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

from kbkit.ingest.spans import cut, strategy_for
from kbkit.models import Chunk, ChunkSpan, Document, DocumentState, DocumentType, Labels
from kbkit.models.values import plain
from kbkit.recipes import ChunkingSpec, KnowledgeBaseSpec
from kbkit.stores.catalog import reading, writing
from kbkit.stores.catalog.database import Database
from kbkit.stores.catalog.summaries import NewSummary
from kbkit.stores.catalog.writing import NewChunk, NewDocument
from kbkit.text.analysis import analyzer
from kbkit.text.markdown import Block, Kind
from kbkit.text.markdown.structure import (
    Outline,
    links,
    outline,
    plain_text,
    without_anchors,
    without_link_targets,
)

_PAGE_SIZE = 3000
"""Maximum characters of a chunk of a PDF with the default chunking."""


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
    strategy: str = spec.strategy
    if strategy == "auto":
        strategy = strategy_for(structure, document_type, form)
    default = spec.strategy == "auto" and spec.size == ChunkingSpec().size
    size = _PAGE_SIZE if default and form == "pdf" else spec.size
    return list(cut(content, structure, strategy, size, spec.overlap))


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


CutDocument = tuple[NewDocument, dict[str, str]]
"""A document with its chunks, and their search texts by hash."""


@dataclass(frozen=True, slots=True)
class CutTask:
    """Documents to cut; a `kbkit.runtime.processes.WorkerTask`."""

    documents: tuple[Document, ...]
    spec: KnowledgeBaseSpec

    seconds: ClassVar[float] = 600.0

    def perform(self) -> list[CutDocument]:
        return [_cut(document, self.spec) for document in self.documents]

    def broken(self, reason: str) -> list[CutDocument]:
        return self.perform()


def _cut(document: Document, spec: KnowledgeBaseSpec) -> CutDocument:
    title, content = document.title, document.content
    structure = outline(content)  # parsed once, since this takes half of the time
    line = describe(title, content, document.metadata, structure=structure)
    terms_of = analyzer(spec.language).terms
    counts: Counter[tuple[tuple[str, ...], str]] = Counter()
    chunks: list[NewChunk] = []
    texts: dict[str, str] = {}
    form = str(document.metadata.get("format", ""))
    spans = chunk(content, document.document_type, spec.chunking, form, structure=structure)
    is_gone = document.state is DocumentState.GONE
    for position, span in enumerate(() if is_gone else spans):
        text = content[span.start : span.end]
        occurrence = counts[span.heading_path, text]
        counts[span.heading_path, text] += 1
        search_text = embedded_text(title, span.heading_path, text)
        terms = terms_of(search_text)
        key = digest(search_text)
        texts[key] = search_text
        chunks.append(
            NewChunk(
                chunk=Chunk(
                    id=chunk_id(document.id, span.heading_path, text, occurrence),
                    document_id=document.id,
                    position=position,
                    text=text,
                    **asdict(span),
                ),
                terms=" ".join(terms),
                length=len(terms),
                embed_hash=key,
            )
        )
    summary = new_summary(document, summary_text(title, content, line, structure=structure))
    described = replace(document, description=line)
    new = NewDocument(described, chunks, None, None, Labels(), is_index(content), summary)
    return new, texts


MAX_SUMMARY_LENGTH = 600

_TITLE_LENGTH = 200
_HEADINGS = 400
_NUMBER = re.compile(r"(?:[A-Z]\.)?(?:\d{1,4}\.)+\d*\s+|[A-Z]\.\s+(?=[A-Z])")


def new_summary(document: Document, text: str) -> NewSummary:
    text = text or document.uri
    return NewSummary(document.content_hash, text, digest(text))


def summary_text(
    title: str, content: str, description: str, *, structure: Outline | None = None
) -> str:
    structure = structure or outline(content)
    name = short_title(title)
    headings = sorted(structure.headings[:_HEADINGS], key=lambda heading: heading.level)
    names = (_without_number(heading.path[-1]) for heading in headings if heading.path)
    parts = dict.fromkeys(each for each in names if each.casefold() != name.casefold())
    if not description and not parts:
        description = _first_text(content, structure.blocks)[:DESCRIPTION_LENGTH]
    sentence = ". ".join(filter(None, (name.rstrip("."), description)))
    return " ".join(filter(None, (sentence, "; ".join(parts))))[:MAX_SUMMARY_LENGTH].rstrip()


def short_title(title: str) -> str:
    return _without_number(title)[:_TITLE_LENGTH]


def _first_text(content: str, blocks: Sequence[Block]) -> str:
    prose = (block for block in blocks if block.kind in (Kind.TEXT, Kind.TABLE))
    return next(filter(None, (_text(content, block) for block in prose)), "")


def _without_number(title: str) -> str:
    return _NUMBER.sub("", " ".join(title.split()), count=1) if _NUMBER.match(title) else title


DESCRIPTION_LENGTH = 300
"""Maximum characters of a description."""

_START = 20_000  # characters at the start of a document that may describe it
_READ = 4_000  # characters read of a paragraph, list or table
_LEAD_WORDS = 8
_WIDE_LETTERS = 16  # letters of scripts without spaces that equal `_LEAD_WORDS` words
_LINKS = 10
_BATCH = 64
_WORD = re.compile(r"\w{2,}")
_ANY_WORD = re.compile(r"\w+")
_WIDE = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_SENTENCE = re.compile(r"[.!?](?=\s)|[\u3002\uff01\uff1f]")
_ASIDE = re.compile(
    r"source:\s|(?:deprecated|(?:new|added|changed) in|note|warning|see also|source code"
    r"|last updated|availability|copyright)\b",
    re.IGNORECASE,
)
_NAME = "name"
_NAMED = re.compile(r"\s[-\u2013\u2014]+\s")


def describe(
    title: str, content: str, metadata: Mapping[str, Any], *, structure: Outline | None = None
) -> str:
    """Describe a document in one line.

    Take the line under NAME of a manual page, ``metadata["description"]``, or the lead: the first
    long paragraph that is not an aside, else the first one.
    """
    parsed = _first_blocks(structure) if structure else outline(content[:_START]).blocks
    for text in (_name_line(content, parsed), first_text(metadata), _lead(content, parsed)):
        line = _shorten(plain(text))
        if line and line.casefold().rstrip(". ") not in title.casefold():
            return line
    return ""


def _first_blocks(structure: Outline) -> Sequence[Block]:
    blocks = structure.blocks
    initial = blocks[: bisect_left(blocks, _START, key=lambda block: block.start)]
    return [block._replace(end=min(block.end, _START)) for block in initial]


def correct_shared(database: Database, kb_id: str) -> None:
    """Replace descriptions that several documents share: they describe the site, not the page."""
    given = database.look_up(reading.given_descriptions, kb_id)
    lines = {id_: _shorten(plain(text[:_READ])) for id_, text, _ in given}
    counts = Counter(line for line in lines.values() if line)
    shared = [id_ for id_, _, line in given if counts[line] > 1 and line == lines[id_]]
    for start in range(0, len(shared), _BATCH):
        with database.write() as transaction:
            documents = reading.documents_of(transaction, shared[start : start + _BATCH])
            descriptions = {each.id: describe(each.title, each.content, {}) for each in documents}
            writing.describe_documents(transaction, kb_id, descriptions)


def first_text(metadata: Mapping[str, Any]) -> str:
    text = metadata.get("description")
    return text[:_READ] if isinstance(text, str) else ""


def is_index(content: str) -> bool:
    """Whether a document has at least `_LINKS` links, whose texts are more than half its words."""
    link_matches = links(content) if content.count("](") >= _LINKS else []
    if len(link_matches) < _LINKS:
        return False
    targets = sum(len(link[0]) - len(link[1]) for link in link_matches)
    if sum(len(link[1]) for link in link_matches) * 4 < len(content) - targets:
        return False  # this check is faster than counting words
    words = len(_ANY_WORD.findall(without_link_targets(content)))
    return 2 * sum(len(_ANY_WORD.findall(link[1])) for link in link_matches) > words


def _name_line(content: str, blocks: Sequence[Block]) -> str:
    heading = ""
    for block in blocks:
        if block.kind is Kind.HEADING:
            heading = block.title.strip().casefold()
        elif heading == _NAME and _is_paragraph(block) and _NAMED.search(_text(content, block)):
            return _text(content, block)
    return ""


def _lead(content: str, blocks: Sequence[Block]) -> str:
    first = ""
    for block in filter(_is_paragraph, blocks):
        text = _text(content, block)
        if _ASIDE.match(text) or _is_link_list(content[block.start : block.end], text):
            continue
        if len(_WORD.findall(text)) >= _LEAD_WORDS or len(_WIDE.findall(text)) >= _WIDE_LETTERS:
            return text
        first = first or text
    return first


def _is_paragraph(block: Block) -> bool:
    return block.kind is Kind.TEXT and block.outermost and not block.item


def _text(content: str, block: Block) -> str:
    return plain_text(content[block.start : min(block.end, block.start + _READ)])


def _is_link_list(markdown: str, text: str) -> bool:
    texts = [link[1] for link in links(markdown)]
    linked = sum(len(_ANY_WORD.findall(each)) for each in texts)
    return len(texts) > 1 and 2 * linked > len(_ANY_WORD.findall(text))


def _shorten(text: str) -> str:
    """Return the first sentences of a paragraph that fit."""
    if len(text) <= DESCRIPTION_LENGTH:
        return text
    ends = [match.end() for match in _SENTENCE.finditer(text, 0, DESCRIPTION_LENGTH)]
    if ends and ends[-1] >= DESCRIPTION_LENGTH * 0.4:
        return text[: ends[-1]]
    return text[:DESCRIPTION_LENGTH].rsplit(" ", 1)[0]
