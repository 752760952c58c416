"""Collect the input of a published search index."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version

import numpy as np

from kbkit.embedding.fitted import FittedEncoder
from kbkit.embedding.onnx import minilm_fingerprint
from kbkit.embedding.static import word_encoder
from kbkit.errors import EmbedderError
from kbkit.export import index_terms
from kbkit.export.facts import Manifest
from kbkit.models import Chunk, DocumentState, RatingTotal, StatementType
from kbkit.models.documents import disambiguate
from kbkit.models.values import plain
from kbkit.recipes import NameSpec
from kbkit.retrieval.fusion import rating_prior
from kbkit.stores.catalog import corpus, knowledge_bases, ratings, reading, summaries
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow, spec_of
from kbkit.stores.catalog.ratings import EncoderTarget
from kbkit.stores.catalog.reading import heading_text
from kbkit.stores.catalog.subjects import entity_id
from kbkit.stores.catalog.summaries import SummaryVectors
from kbkit.stores.snapshots.making import make
from kbkit.stores.stores import Stores
from kbkit.text.analysis import analyzer
from kbkit.text.markdown.structure import plain_text


def indexed_annotations(
    transaction: Transaction, kb_id: str, seqs: Sequence[int], curated: Sequence[NameSpec] = ()
) -> index_terms.IndexedAnnotations | None:
    numbers = {seq: number for number, seq in enumerate(seqs)}
    masks = np.zeros(len(seqs), np.int64)
    bits = {frame: 1 << place for place, frame in enumerate(StatementType)}
    for seq, frame in reading.iter_frames(transaction, kb_id):
        if seq in numbers:
            masks[numbers[seq]] |= bits[frame]
    curated_ids = {entity_id(name) for spec in curated for name in (spec.name, *spec.aliases)}
    subjects = _subjects(transaction, kb_id, numbers, curated_ids)
    if not masks.any() and not subjects:
        return None
    return index_terms.IndexedAnnotations(masks, subjects)


def _subjects(
    transaction: Transaction, kb_id: str, numbers: dict[int, int], curated_ids: AbstractSet[str]
) -> list[index_terms.IndexedSubject]:
    names = reading.names(transaction)
    rows_of = {
        subject_id: [numbers[seq] for seq in seqs if seq in numbers]
        for subject_id, seqs in reading.mentions(transaction, kb_id).items()
    }
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for subject_id in (*rows_of, *(curated_ids - rows_of.keys())):
        if subject_id in names and (rows_of.get(subject_id) or subject_id in curated_ids):
            groups[names[subject_id].root].append(subject_id)
    subjects = []
    for members in groups.values():
        union = {row for subject_id in members for row in rows_of.get(subject_id, ())}
        rows = np.array(sorted(union), np.int64)
        for subject_id in members if union else ():
            subject = names[subject_id]
            if name := plain(subject.name):
                subjects.append(index_terms.IndexedSubject(subject.kind, name, rows))
    return subjects


_STATIC = "static:"
_NONE = RatingTotal(0, 0.0)
_TARGETS: tuple[EncoderTarget, ...] = ("chunks", "summaries")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_fit(row: KnowledgeBaseRow) -> list[EncoderTarget]:
    """List the query encoders that a site needs; none for static embeddings, which sum words."""
    config = spec_of(row)
    targets: list[EncoderTarget] = []
    if config.retrieval.query_encoder == "fitted" or not row.embedder.startswith(_STATIC):
        targets.append("chunks")
    if row.summary_embedder and not row.summary_embedder.startswith(_STATIC):
        targets.append("summaries")
    return targets


def index_state(stores: Stores, kb_id: str, manifest: Manifest, *, model: bool | None) -> str:
    with stores.database.read() as transaction:
        row = knowledge_bases.get_by_id(transaction, kb_id)
        encoders = [ratings.encoder_state(transaction, kb_id, target) for target in _TARGETS]
        totals = ratings.totals(transaction, kb_id)
        questions = _published_questions(transaction, row)
        # dates of fetches do not change the version
        rows = reading.list_documents(transaction, kb_id)
        annotation_state = reading.state(transaction, kb_id)
    parts: list[object] = [version("kbkit"), row.id, row.name, row.version, row.embedder]
    parts += [row.summary_embedder, row.summaries_version]
    parts += [encoder and encoder.fitted_at.isoformat() for encoder in encoders]
    parts += [row.config, manifest.title, model, annotation_state]
    parts += [sorted(manifest.documents.items()), sorted(manifest.sections().items())]
    parts += [sorted(totals.chunks.items()), sorted(totals.documents.items()), questions]
    parts += sorted((each.id, each.fetched_at.date().isoformat(), str(each.state)) for each in rows)
    return hashlib.blake2b(repr(parts).encode("utf-8", "replace"), digest_size=16).hexdigest()


def index_content(
    stores: Stores, kb_id: str, manifest: Manifest, *, model: bool | None = None
) -> index_terms.IndexContent | None:
    pages, sections = manifest.documents, manifest.sections()
    with stores.database.read() as transaction:
        row = knowledge_bases.get_by_id(transaction, kb_id)
        config = spec_of(row)
        questions = _published_questions(transaction, row)
        terms_of = analyzer(config.language).query_terms
        words: defaultdict[int, set[str]] = defaultdict(set)
        for question, seqs in questions.items():
            for seq in seqs:
                words[seq].update(terms_of(question))
        snapshot = make(transaction, row, added=words)
        summary_vectors = summaries.vectors_of(transaction, row)
        loaded = {target: ratings.load_encoder(transaction, kb_id, target) for target in _TARGETS}
        totals = ratings.totals(transaction, kb_id)
        index_ids = set(corpus.indexes(transaction, kb_id))
        indexed = {
            document.id: index_terms.IndexedDocument(
                path=pages[document.uri],
                title=plain(document.title) or plain(document.uri),
                document_type=document.document_type.value,
                tags=tuple(map(plain, document.tags)),
                day=(document.fetched_at - _EPOCH).days,
                stale=document.state is not DocumentState.CURRENT,
                rating=totals.documents.get(document.id, _NONE).average,
                chunks=0,
                is_index=document.id in index_ids,
                section=sections.get(pages[document.uri], ""),
            )
            for document in reading.iter_documents(transaction, kb_id, in_trash=False)
            if document.uri in pages
        }
        uris = {path: uri for uri, path in pages.items()}
        labels = disambiguate({uris[page.path]: page.title for page in indexed.values()})
        ids: list[str] = []
        chunks: list[index_terms.IndexedChunk] = []
        owners: list[str] = []
        for chunk in reading.iter_chunks(transaction, kb_id):
            if chunk.document_id in indexed:
                ids.append(chunk.id)
                owners.append(chunk.document_id)
                chunks.append(_chunk(chunk, indexed[chunk.document_id].title))
        rows = snapshot.rows_of(ids)
        curated = config.annotation.names
        annotations = indexed_annotations(transaction, kb_id, snapshot.seqs[rows].tolist(), curated)
    if not len(rows):
        return None
    text_analyzer = analyzer(config.language)
    texts = [
        f"{indexed[owner].title}\n{chunk.heading}\n{chunk.text}"
        for owner, chunk in zip(owners, chunks, strict=True)
    ]
    fitted = to_fit(row)
    static = None if len(fitted) == len(_TARGETS) else word_encoder(texts, text_analyzer.terms)
    encoders: dict[EncoderTarget, FittedEncoder | None] = {}
    for target, embedder in zip(_TARGETS, (row.embedder, row.summary_embedder), strict=True):
        stored = loaded[target] if target in fitted else None
        encoder = None if target in fitted else static
        if stored is not None and stored.state.embedder == embedder:
            encoder = FittedEncoder(embedder, stored.terms, stored.vectors, stored.state.report)
        encoders[target] = encoder if encoder and encoder.embedder == embedder else None
    rated = [
        totals.chunks.get(seq, totals.documents.get(owner, _NONE))
        for seq, owner in zip(snapshot.seqs[rows].tolist(), owners, strict=True)
    ]
    return index_terms.IndexContent(
        name=row.name,
        title=manifest.title,
        language=config.language,
        snapshot=snapshot,
        rows=rows,
        prior=rating_prior(rated),
        documents=[
            replace(indexed[owner], chunks=chunks, label=labels[uris[indexed[owner].path]])
            for owner, chunks in Counter(owners).items()
        ],
        chunks=chunks,
        encoder=encoders["chunks"],
        summaries=_summaries(summary_vectors, list(dict.fromkeys(owners)), encoders["summaries"]),
        stop_words=sorted(text_analyzer.stop_words),
        retrieval=config.retrieval,
        model=_model() if (config.site.model if model is None else model) else "",
        annotations=annotations,
    )


def _model() -> str:
    try:
        return minilm_fingerprint()
    except EmbedderError:
        return ""


def _published_questions(
    transaction: Transaction, row: KnowledgeBaseRow
) -> Mapping[str, Sequence[int]]:
    learning = spec_of(row).learning
    if not (learning.questions and learning.publish):
        return {}
    return ratings.learned_questions(transaction, row.id)


def _summaries(
    summary_vectors: SummaryVectors, document_ids: Sequence[str], encoder: FittedEncoder | None
) -> index_terms.IndexedSummaries | None:
    if encoder is None or encoder.embedder != summary_vectors.embedder:
        return None
    vector_of = dict(zip(summary_vectors.document_ids, summary_vectors.vectors, strict=True))
    zero = np.zeros(summary_vectors.vectors.shape[1], np.float32)
    vectors = np.stack([vector_of.get(document_id, zero) for document_id in document_ids])
    return index_terms.IndexedSummaries(vectors, encoder)


def _chunk(chunk: Chunk, title: str) -> index_terms.IndexedChunk:
    text, heading = plain_text(chunk.text, lines=True), heading_text(title, chunk.heading_path)
    return index_terms.IndexedChunk(text, plain(heading), chunk.anchor)
