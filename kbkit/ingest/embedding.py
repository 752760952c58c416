"""Embed and batch the documents of an ingest."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import numpy as np

from kbkit.embedding import Embedder, Matrix, batch_size
from kbkit.ingest.cutting import digest, embedded_text
from kbkit.models import Chunk, Document, IngestReport, Labels, Problem, Progress, SourceDocument
from kbkit.models.ingest_report import MAX_DOCUMENTS, POOR, fidelity_score, losses, poor_site
from kbkit.recipes import AutoEmbedding, KnowledgeBaseSpec
from kbkit.runtime.engine import Engine
from kbkit.runtime.progress import OnProgress, ignore
from kbkit.sources import SourceEvent
from kbkit.stores.catalog import corpus, database, knowledge_bases, outbox, reading
from kbkit.stores.catalog.corpus import CHUNK, Source
from kbkit.stores.catalog.database import Database, Transaction, batches
from kbkit.stores.catalog.outbox import restart
from kbkit.stores.stores import Stores


def source_document(document: Document) -> SourceDocument:
    return SourceDocument(
        document.uri,
        document.title,
        document.content,
        document.document_type,
        document.tags,
        document.metadata,
    )


def embed(embedder: Embedder, texts: Mapping[str, str]) -> dict[str, bytes]:
    matrix = embedder.embed_passages(list(texts.values()))
    return dict(zip(texts, database.pack(matrix), strict=True))


@dataclass(frozen=True, slots=True)
class Origin:
    """Origin of a document; empty if it was added by hand.

    Attributes:
        labels: Current labels by a person; ``None`` keeps the former ones.
        stored: The stored document, if its source was not read: its state and time of fetching
            stay, and it must not have changed meanwhile.
        expected: Expected content hash; ``None`` for any.
        seen: Time of the event.
    """

    source_id: str | None = None
    run_id: int | None = None
    event: SourceEvent | None = None
    labels: Labels | None = None
    stored: Document | None = None
    undeleted: bool = False
    expected: str | None = None
    seen: datetime = field(default_factory=lambda: datetime.now(UTC))


@dataclass(frozen=True, slots=True)
class IngestTarget:
    """Target knowledge base with its settings.

    Attributes:
        reopen: Returns the current embedder after another process changed it.
        give_way: Switches to a faster embedder, and returns it; ``None`` if there is none.
    """

    stores: Stores
    kb_id: str
    spec: KnowledgeBaseSpec
    embedder: Embedder
    reopen: Callable[[], Embedder] | None = field(default=None, kw_only=True)
    give_way: Callable[[], Embedder] | None = field(default=None, kw_only=True)
    engine: Engine = field(default_factory=Engine, kw_only=True)


_PROBLEMS = ("failed", "skipped", "poorly_read", "notes", "warnings", "failed_sources")
_WORST = 3  # pages that a warning names
Figures = dict[str, tuple[int, int]]  # units kept and wanted, by kind


@dataclass(slots=True)
class RunCounters:
    """Counters of a run; become an `IngestReport`."""

    counts: Counter[str] = field(default_factory=Counter)
    failed: list[Problem] = field(default_factory=list)
    skipped: list[Problem] = field(default_factory=list)
    seconds: Counter[str] = field(default_factory=Counter)
    interrupted: bool = False
    fidelity: Figures = field(default_factory=dict)
    """Of judged sources; `unjudged` is of the current one."""
    unjudged: Figures = field(default_factory=dict)
    poorly_read: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    scores: list[tuple[float, str]] = field(default_factory=list)
    failed_sources: list[Problem] = field(default_factory=list)
    documents: list[str] = field(default_factory=list)
    stored: int = 0
    outcomes: dict[str, str] | None = None
    """Outcomes by document id, if several sources may yield one document."""

    def count(self, document_id: str, outcome: str) -> None:
        """Count a document once a run as ``new``, ``changed`` or ``same``: by its first change."""
        self.stored += 1
        if self.outcomes is not None:
            previous = self.outcomes.get(document_id)
            if previous is not None and (previous != "same" or outcome == "same"):
                return
            if previous is not None:
                self.counts[previous] -= 1
            self.outcomes[document_id] = outcome
        self.counts[outcome] += 1

    def read(self, document_ids: Iterable[str]) -> None:
        """Note documents that now equal their source."""
        self.documents += islice(document_ids, MAX_DOCUMENTS - len(self.documents))

    def count_fidelity(self, document: SourceDocument) -> None:
        self.counts["fetched"] += 1
        if document.note:
            self.notes.append(Problem(document.uri, document.note))
        if not document.fidelity:
            return
        self.unjudged = _add_figures(self.unjudged, {"pages": (1, 1), **document.fidelity})
        score = fidelity_score(document.fidelity)
        self.scores.append((score, document.uri))
        if score < POOR:
            self.poorly_read.append(Problem(document.uri, losses(document.fidelity)))

    def judge(self, place: str) -> Figures:
        """Return the fidelity of a source; warn if its pages were poorly read."""
        scores, self.scores = sorted(self.scores), []
        figures, self.unjudged = self.unjudged, {}
        self.fidelity = _add_figures(self.fidelity, figures)
        if reason := poor_site(figures):
            worst = ", ".join(uri for _, uri in scores[:_WORST])
            message = f"{reason} ({len(scores):,} pages measured; worst: {worst})"
            self.warnings.append(Problem(place, message))
        return figures

    def totals(self) -> Counter[str]:
        return self.counts + Counter(failed=len(self.failed), skipped=len(self.skipped))

    @contextmanager
    def time_stage(self, stage: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] += time.perf_counter() - start  # type: ignore[assignment]

    def report(self) -> IngestReport:
        values: dict[str, Any] = {name: tuple(getattr(self, name)) for name in _PROBLEMS}
        return IngestReport(
            **values | self.counts,
            seconds={stage: round(value, 3) for stage, value in self.seconds.items()},
            interrupted=self.interrupted,
            fidelity=_add_figures(self.fidelity, self.unjudged),
            documents=tuple(dict.fromkeys(self.documents)),
        )


def _add_figures(figures: Figures, added: Figures) -> Figures:
    sums = dict(figures)
    for kind, (kept, wanted) in added.items():
        total = sums.get(kind, (0, 0))
        sums[kind] = total[0] + kept, total[1] + wanted
    return sums


def embedded_texts(
    text: str, document: Document, chunk: Chunk, statements: Sequence[str]
) -> tuple[str, ...]:
    headings = document.title, chunk.heading_path
    chunk_text = embedded_text(*headings, chunk.text)
    facts = tuple(dict.fromkeys(embedded_text(*headings, fact) for fact in statements if fact))
    if text == CHUNK or not facts:
        return (chunk_text,)
    return facts if text == "normalized" else (chunk_text, *facts)


def texts_of_source(source: Source, document: Document, chunk: Chunk) -> tuple[str, ...]:
    """Return the texts of a chunk's vector for another embedder, from its current annotations."""
    texts = embedded_texts(CHUNK, document, chunk, ())
    if hash_of(texts) == source.embed_hash:
        return texts
    return embedded_texts(source.text or "normalized", document, chunk, source.statements)


def hash_of(texts: Sequence[str]) -> str:
    return digest("\0".join(texts))


def embed_sums(embedder: Embedder, texts: Mapping[str, Sequence[str]]) -> dict[str, bytes]:
    matrix = embedder.embed_passages([text for group in texts.values() for text in group])
    sizes = [len(group) for group in texts.values()]
    starts = np.cumsum([0, *sizes[:-1]])
    sums: Matrix = np.add.reduceat(matrix, starts, axis=0, dtype=np.float32) if sizes else matrix
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    several = (np.array(sizes)[:, None] > 1) & (lengths > 0)
    scaled = np.divide(sums, lengths, out=sums.copy(), where=several)
    return dict(zip(texts, database.pack(scaled), strict=True))


def embed_statements(
    database: Database,
    kb_id: str,
    embedder: Embedder,
    on_progress: OnProgress,
    stop: Callable[[], bool],
) -> None:
    """Embed the chunks that lack vectors of the current embedder; resumes after a stop."""
    size, done = batch_size(embedder), 0
    with database.read() as transaction:
        text = knowledge_bases.get_by_id(transaction, kb_id).embedded_text
        total = corpus.count_lacking_vectors(transaction, kb_id, text)

    def lacking(transaction: Transaction) -> list[tuple[int, Source, Chunk, Document]]:
        row = knowledge_bases.get_by_id(transaction, kb_id)
        if (row.embedder, row.embedded_text) != (embedder.fingerprint, text):
            return []  # another process has changed the settings
        seqs = corpus.lacking_vectors(transaction, kb_id, text, size)
        sources = corpus.vector_sources(transaction, seqs)
        passages = reading.get_chunks(transaction, seqs)
        return [(seq, sources[seq], *passage) for seq, passage in passages.items()]

    for batch in batches(database, lacking):
        if stop():
            break
        texts: dict[str, tuple[str, ...]] = {}
        hashes: dict[int, str] = {}
        for seq, source, chunk, document in batch:
            new_texts = embedded_texts(text, document, chunk, source.statements)
            hashes[seq] = key = hash_of(new_texts)
            if key != source.embed_hash:
                texts[key] = new_texts
        packed = embed_sums(embedder, texts)
        with database.write() as transaction:
            row = knowledge_bases.get_by_id(transaction, kb_id)
            if (row.embedder, row.embedded_text) != (embedder.fingerprint, text):
                break
            current = corpus.vector_sources(transaction, list(hashes))
            unchanged = [(seq, source) for seq, source, *_ in batch if current.get(seq) == source]
            valid = {seq: hashes[seq] for seq, _ in unchanged}
            changed = {source.id: seq for seq, source in unchanged if hashes[seq] in packed}
            version = row.version + 1
            corpus.put_vectors(transaction, kb_id, valid, packed, text=text, version=version)
            if changed:
                outbox.add(transaction, kb_id, changed)
                knowledge_bases.touch(transaction, kb_id)
        done += len(valid)
        on_progress(Progress("embed", min(done, total), total))


def reembed(
    destination: IngestTarget,
    *,
    on_progress: OnProgress | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> IngestReport:
    counters, stores = RunCounters(), destination.stores

    def notify(stage: str, done: int, total: int | None = None) -> None:
        (on_progress or ignore)(Progress(stage, done, total))

    task = "changing the embedder of this knowledge base"
    with stores.locks.hold(f"embedder-{destination.kb_id}", wait=0, task=task):
        while not counters.interrupted and not _take_over(destination):
            counters.interrupted = not _embed(destination, counters, notify, stop)
    if not counters.interrupted:
        with counters.time_stage("index"):
            stores.vectors.apply(destination.kb_id, lambda done: notify("index", done))
            stores.vectors.sweep()
    return counters.report()


def _embed(
    destination: IngestTarget,
    counters: RunCounters,
    notify: Callable[[str, int, int], None],
    stop: Callable[[], bool],
) -> bool:
    """Embed texts without a vector of the new embedder; ``False`` if stopped."""
    database, kb_id = destination.stores.database, destination.kb_id
    embedder = destination.embedder
    fingerprint, size = embedder.fingerprint, batch_size(embedder)
    total = database.look_up(corpus.count_without_pending, kb_id, fingerprint)
    done = last = 0
    while not stop():
        with database.read() as transaction:
            rows = corpus.without_pending(transaction, kb_id, fingerprint, after=last, limit=size)
            seqs = [row.seq for row in rows]
            passages = reading.get_chunks(transaction, seqs)
            sources = corpus.vector_sources(transaction, seqs)
        if not rows:
            return True
        texts = {}
        for row in rows:
            chunk, document = passages[row.seq]
            texts[row.embed_hash] = texts_of_source(sources[row.seq], document, chunk)
        with counters.time_stage("embed"):
            vectors = embed_sums(embedder, texts)
        with database.write() as transaction:
            knowledge_bases.get_by_id(transaction, kb_id)
            corpus.add_pending(transaction, kb_id, fingerprint, vectors)
        counters.counts["chunks_embedded"] += len(vectors)
        last = rows[-1].seq
        done += len(rows)
        notify("embed", done, total)
    return False


def _take_over(destination: IngestTarget) -> bool:
    """Switch to the new vectors if every chunk has one; new documents may lack some."""
    kb_id, embedder = destination.kb_id, destination.embedder
    with destination.stores.database.write() as transaction:
        row = knowledge_bases.get_by_id(transaction, kb_id)
        if corpus.without_pending(transaction, kb_id, embedder.fingerprint, after=0, limit=1):
            return False
        embedding = destination.spec.embedding
        gives_way = isinstance(embedding, AutoEmbedding) and embedding.model == "static"
        keep = row.embedder if gives_way else ""
        corpus.take_over(transaction, row.id, embedder.fingerprint, keep)
        knowledge_bases.set_embedder(transaction, row.id, embedder.fingerprint, embedder.dimensions)
        spec = knowledge_bases.spec_of(row).with_embedding(embedding)
        knowledge_bases.set_spec(transaction, row.id, spec)
        restart(transaction, row)
    return True
