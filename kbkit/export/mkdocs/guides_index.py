"""A search index of a site's other pages: a knowledge base from the sections in MkDocs' index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from kbkit.embedding.fitted import FittedEncoder
from kbkit.embedding.static import StaticEmbedder, word_encoder
from kbkit.export.index import IndexContent, IndexedChunk, IndexedDocument, IndexedSummaries
from kbkit.export.mkdocs.page_head import text_of_html
from kbkit.recipes import RetrievalSpec
from kbkit.stores.snapshots.snapshot import Lists, Snapshot
from kbkit.text.analysis import Analyzer, analyzer

NAME = "pages"
_LEAD, _SUMMARY = 350, 600  # characters of a page's start in its summary, and of the summary


def guides_content(
    entries: Sequence[Mapping[str, Any]], title: str, language: str
) -> IndexContent | None:
    """Return the index content of a site's other pages, if any."""
    sections = [_Section(entry) for entry in entries]
    pages: dict[str, str] = {}
    for section in sections:
        pages.setdefault(section.page, section.title)
    sections = [section for section in sections if section.text or section.anchor]
    sections.sort(key=lambda section: list(pages).index(section.page))
    if not sections:
        return None
    chunks = [
        IndexedChunk(s.text or s.title, s.title if s.anchor else "", s.anchor) for s in sections
    ]
    indexed = list(dict.fromkeys(section.page for section in sections))
    counts = Counter(section.page for section in sections)
    owners = [indexed.index(section.page) for section in sections]
    titles = [pages[page] for page in indexed]
    snapshot, encoder = _snapshot(chunks, owners, titles, analyzer(language))
    return IndexContent(
        name=NAME,
        title=title,
        language=language,
        snapshot=snapshot,
        rows=np.arange(len(chunks)),
        prior=np.zeros(len(chunks)),
        documents=[
            IndexedDocument(page, pages[page], "manual", (), 0, False, 0.0, counts[page])
            for page in indexed
        ],
        chunks=chunks,
        encoder=encoder,
        summaries=None if encoder is None else _summaries(chunks, owners, titles, encoder),
        stop_words=sorted(analyzer(language).stop_words),
        retrieval=RetrievalSpec(),
    )


class _Section:
    def __init__(self, entry: Mapping[str, Any]) -> None:
        self.page, _, self.anchor = str(entry["location"]).partition("#")
        self.title = text_of_html(str(entry["title"]))
        self.text = text_of_html(str(entry["text"]))


def _summaries(
    chunks: Sequence[IndexedChunk],
    owners: Sequence[int],
    titles: Sequence[str],
    encoder: FittedEncoder,
) -> IndexedSummaries:
    texts = []
    for number, title in enumerate(titles):
        of_page = [chunk for chunk, owner in zip(chunks, owners, strict=True) if owner == number]
        headings = "; ".join(filter(None, (chunk.heading for chunk in of_page)))
        texts.append(f"{title}. {of_page[0].text[:_LEAD]} {headings}"[:_SUMMARY])
    vectors = StaticEmbedder().embed_passages(texts)
    return IndexedSummaries(vectors, encoder.embedder, encoder)


def _snapshot(
    chunks: Sequence[IndexedChunk], owners: Sequence[int], titles: Sequence[str], of: Analyzer
) -> tuple[Snapshot, FittedEncoder | None]:
    texts = [
        f"{titles[owner]}\n{chunk.heading}\n{chunk.text}"
        for owner, chunk in zip(owners, chunks, strict=True)
    ]
    terms_of_chunks = [of.terms(text) for text in texts]
    headings = [chunk.heading for chunk in chunks]
    encoder = word_encoder(texts, of.terms)
    embedder = "" if encoder is None else encoder.embedder
    vectors = np.zeros((len(chunks), 2), np.float32)
    if encoder is not None:
        vectors = StaticEmbedder().embed_passages(texts)
    terms = sorted(set(chain.from_iterable(terms_of_chunks)))
    numbers = {term: number for number, term in enumerate(terms)}
    postings = sorted(
        (numbers[term], row, count)
        for row, chunk_terms in enumerate(terms_of_chunks)
        for term, count in Counter(chunk_terms).items()
    )
    columns = np.array(postings, np.int64).reshape(-1, 3)
    lengths = np.array([len(chunk_terms) for chunk_terms in terms_of_chunks], np.int32)
    snapshot = Snapshot(
        version=0,
        embedder=embedder,
        seqs=np.arange(len(chunks)),
        ids=[str(row) for row in range(len(chunks))],
        owners=np.array(owners, np.int32),
        lengths=lengths,
        headings=np.arange(len(chunks), dtype=np.int32),
        vectors=vectors,
        document_ids=[str(number) for number in range(len(titles))],
        titles=titles,
        sizes=np.bincount(np.array(owners, np.int64), minlength=len(titles)),
        heading_texts=headings,
        title_terms=_term_lists(map(of.terms, titles), numbers),
        heading_terms=_term_lists(map(of.terms, headings), numbers),
        terms=terms,
        starts=np.searchsorted(columns[:, 0], np.arange(len(terms) + 1)),
        rows=columns[:, 1].astype(np.int32),
        counts=np.minimum(columns[:, 2], 65_535).astype(np.uint16),
        average_length=float(lengths.mean()),
        document_lengths=np.bincount(owners, lengths, len(titles)).astype(np.int64),
        summaries_version=0,
        summary_embedder="",
        summary_vectors=np.zeros((len(titles), 0), np.float32),
    )
    return snapshot, encoder


def _term_lists(texts: Iterable[Iterable[str]], numbers: Mapping[str, int]) -> Lists:
    lists = [sorted({numbers[term] for term in terms if term in numbers}) for terms in texts]
    starts = np.concatenate([[0], np.cumsum([len(rows) for rows in lists])]).astype(np.int64)
    return Lists(starts, np.fromiter(chain.from_iterable(lists), np.int32, int(starts[-1])))
