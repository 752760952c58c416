"""Work after an ingest: vectors of models, and annotations."""

import threading
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from subprocess import Popen
from typing import TypeVar

from kbkit.embedding import Embedder
from kbkit.errors import ConfigError, ConflictError, EmbedderError, KbkitError, LanguageModelError
from kbkit.graph.building import build_waiting
from kbkit.ingest.cutting import embedded_text
from kbkit.ingest.embedding import IngestTarget, embed_statements, reembed
from kbkit.ingest.pipeline import Stop
from kbkit.ingest.summaries import SummariesLeft
from kbkit.knowledge_base.annotations import maker_of
from kbkit.knowledge_base.handle import Handle
from kbkit.models import Improvement, IngestReport, Progress
from kbkit.recipes import AnyEmbedding, AutoEmbedding, KnowledgeBaseSpec, LlmAnnotation
from kbkit.runtime.processes import run_module
from kbkit.runtime.progress import OnProgress, ignore, progress_bar
from kbkit.stores.catalog import corpus, knowledge_bases, reading, summaries, writing
from kbkit.stores.catalog.knowledge_bases import spec_of

_T = TypeVar("_T")
PROCESS = "improver"
"""Lock of the background process."""
# limits of immediate annotation: new chunks, and chunks in total
_MAX_NEW, _MAX_CHUNKS = 500, 5_000
_FOREGROUND = 60.0  # seconds of summaries that an ingest embeds before it returns
# stages of progress by kind of remaining work, in order
_STAGES = {"summaries": "summaries", "annotations": "annotations", "chunks": "embed"}
_PAUSE = 30.0  # seconds between processes that a server starts for single documents
_START = 30.0  # seconds that a process may take to start
_SAMPLE = 16  # texts timed for an estimate
_POLL = 0.2  # seconds between checks of another process


class Improving:
    """Annotates and embeds the remaining texts of a knowledge base."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._stores = handle.stores
        self._lock = f"improve-{handle.id}"

    @property
    def left(self) -> Improvement:
        locks = self._stores.locks
        running = locks.is_held(self._lock) or locks.is_held(PROCESS)
        return replace(self._handle.info().waiting, running=running)

    def after_ingest(
        self,
        *,
        wait: bool = False,
        renew: bool = True,
        on_progress: OnProgress | None = None,
        stop: Stop = lambda: False,
    ) -> Improvement | None:
        mode = self._handle.resources.settings.improve
        models = mode == "wait"
        seconds = _FOREGROUND if mode == "background" else 0.0
        summary_work = self._handle.summaries.make(
            seconds=seconds, renew=renew, on_progress=on_progress, stop=stop
        )
        self._handle.embed_questions()
        self._annotate_few(on_progress or ignore, stop)
        if models or mode == "background":
            self._choose_model()
        remaining = replace(self._handle.info().waiting, seconds=summary_work.seconds)
        if remaining and (wait or models):
            remaining = self.improve(models=models, on_progress=on_progress, stop=stop)
        if remaining and mode == "background" and not stop():
            remaining = replace(remaining, running=self._start())
        return remaining or None

    def after_few(self, uris: Collection[str]) -> None:
        """Schedule the work for a few changed documents; a server batches it."""
        self._stores.later.do(self._handle.id, self._improve_few, uris)

    def _improve_few(self, uris: Collection[str]) -> None:
        # remaining work is not counted: counting is slow in large knowledge bases
        complete = self._stores.later.complete
        ids = self._handle.look_up(writing.ids_by_uri, uris).values()
        is_complete = self._handle.id in complete
        complete.discard(self._handle.id)
        remaining = self._handle.summaries.make_few(ids if is_complete else None)
        complete.add(self._handle.id)
        self._handle.embed_questions()
        self._annotate_few(ignore, lambda: False)
        mode = self._handle.resources.settings.improve
        if mode == "off":
            return
        self._choose_model()
        if not (remaining.summaries or self._has_work()):
            return
        if mode == "wait":
            self.improve()
        elif self._stores.vectors.gathers:
            self._start_with_pause()
        else:
            self._start()

    def _has_work(self) -> bool:
        with self._stores.database.read() as transaction:
            row = knowledge_bases.get_by_id(transaction, self._handle.id)
            return (
                row.waits
                or corpus.count_lacking_vectors(transaction, row.id, row.embedded_text) > 0
                or knowledge_bases.some_unannotated(transaction, row, 1) > 0
            )

    def _annotate_few(self, on_progress: OnProgress, stop: Stop) -> None:
        """Annotate new chunks at once, unless there are many."""
        with self._stores.database.read() as transaction:
            row = knowledge_bases.get_by_id(transaction, self._handle.id)
            if corpus.some_chunks(transaction, row.id, _MAX_CHUNKS + 1) > _MAX_CHUNKS:
                return
            if knowledge_bases.some_unannotated(transaction, row, _MAX_NEW + 1) > _MAX_NEW:
                return
        with suppress(ConfigError, LanguageModelError):  # `improve` reports it
            self._annotate(on_progress, stop)
        # other embedders may take long or cost money
        if self._handle.row().embedder.startswith("static:"):
            self._embed_statements(on_progress, stop)

    def improve(
        self,
        *,
        embedding: AnyEmbedding | None = None,
        background: bool = False,
        models: bool = True,
        on_progress: OnProgress | None = None,
        stop: Stop = lambda: False,
    ) -> Improvement:
        """Do the remaining work; ``models=False`` leaves out the model that `auto` chose."""
        if embedding is not None:
            self._choose(embedding, background, on_progress, stop)
        if models:
            self._choose_model()
        work = self._remaining(models)
        if background:
            return replace(work, running=self._start()) if work else work
        with progress_bar(on_progress) as notify:
            before = None
            while work != before and not stop():  # includes documents that were added meanwhile
                try:
                    self.once(notify, stop, models=models)
                except ConflictError:  # another process works on it, or just did
                    self._watch(notify, stop, models)
                    if work := self._remaining(models):
                        continue
                    break
                before, work = work, self._remaining(models)
        return self.left

    def _remaining(self, models: bool) -> Improvement:
        remaining = self.left
        return remaining if models or not self._awaits_choice() else replace(remaining, chunks=0)

    def _awaits_choice(self) -> bool:
        """Whether static vectors are used until the model that `auto` chose has finished."""
        row = self._handle.row()
        return row.waits and isinstance(spec_of(row).embedding, AutoEmbedding)

    def _choose_model(self) -> None:
        """Choose the model of `auto` by the number of chunks; MiniLM stays up to twice as many."""
        from kbkit.embedding.onnx import minilm_fingerprint  # not needed for a search

        limit = self._handle.resources.settings.minilm_chunks
        database = self._stores.database
        with database.read() as transaction:
            row = knowledge_bases.get_by_id(transaction, self._handle.id)
            current = spec_of(row).embedding
            if not isinstance(current, AutoEmbedding):
                return
            limit *= 1 if current.model == "static" else 2
            is_small = 0 < corpus.some_chunks(transaction, row.id, limit + 1) <= limit
        model = "minilm" if is_small and row.summary_model == minilm_fingerprint() else "static"
        if model == current.model:
            return
        if model == "minilm" or row.waits:
            chosen = current.model_copy(update={"model": model})
            with database.write() as transaction:
                row = knowledge_bases.get_by_id(transaction, self._handle.id)
                knowledge_bases.set_spec(transaction, row.id, spec_of(row).with_embedding(chosen))
            return
        self.use_static()

    def use_static(self) -> Embedder:
        """Return to static vectors, so that an ingest need not wait for a model.

        The vectors of the model stay pending, for the background process.
        """
        spec = self._handle.spec
        static = spec.with_embedding(AutoEmbedding(text=spec.embedding.text))
        self.reembed(static, None, lambda: False)
        return self._handle.embedders.of(self._handle.row())

    def once(
        self, on_progress: OnProgress = ignore, stop: Stop = lambda: False, *, models: bool = True
    ) -> None:
        with self._stores.locks.hold(self._lock, wait=0):
            remaining = SummariesLeft(1)
            while remaining.summaries and not stop():  # documents may be added meanwhile
                remaining = self._handle.summaries.make(on_progress=on_progress, stop=stop)
            self._handle.embed_questions()
            self._annotate(on_progress, stop)
            build_waiting(self._stores, stop=stop)
            self._embed_statements(on_progress, stop)
            if stop() or (not models and self._awaits_choice()):
                return
            if not self.reembed(self._handle.spec, on_progress, stop).interrupted:
                self.fit_encoder()
                self._stores.snapshots.save(self._handle.id)

    def reembed(
        self, spec: KnowledgeBaseSpec, on_progress: OnProgress | None, stop: Stop
    ) -> IngestReport:
        try:
            embedder = self._handle.resources.embedders.open(spec.embedding)
        except (ConfigError, EmbedderError):
            if spec.embedding == self._handle.spec.embedding and not self._handle.row().waits:
                return IngestReport()  # other settings can change without it
            raise
        if embedder.fingerprint == self._handle.row().embedder:
            return IngestReport()
        place = IngestTarget(self._stores, self._handle.id, spec, embedder)
        return reembed(place, on_progress=on_progress, stop=stop)

    def fit_encoder(self) -> float | None:
        """Fit the query encoder if due; return the seconds it took."""
        from kbkit.retrieval.encoder_fitting import is_due

        with self._stores.database.read() as transaction:
            row = knowledge_bases.get_by_id(transaction, self._handle.id)
            if row.waits or not is_due(transaction, row):
                return None
        start = time.perf_counter()
        with suppress(ConfigError, EmbedderError):  # searches report the missing encoder
            self._handle.fit_query_encoder()
        return round(time.perf_counter() - start, 3)

    def estimate(self, embedding: AnyEmbedding | None = None) -> Improvement:
        spec = self._handle.spec.embedding if embedding is None else embedding
        row, database = self._handle.row(), self._stores.database
        embedder = self._handle.resources.embedders.open(spec)
        model = self._handle.embedders.summary_model(row)
        texts: list[str] = []
        with database.read() as transaction:
            count, chunks = summaries.counts(transaction, row.id, model.fingerprint)[1], 0
            lacking = list(summaries.lacking(transaction, row.id, model.fingerprint).values())
            if embedder.fingerprint != row.embedder:
                find = (transaction, row.id, embedder.fingerprint)
                chunks = corpus.count_without_pending(*find)
                rows = corpus.without_pending(*find, after=0, limit=chunks)
                seqs = [each.seq for each in _sample(rows)]
            else:
                chunks = corpus.count_lacking_vectors(transaction, row.id, spec.text)
                seqs = _sample(corpus.lacking_vectors(transaction, row.id, spec.text, chunks))
            for chunk, document in reading.get_chunks(transaction, seqs).values():
                texts.append(embedded_text(document.title, chunk.heading_path, chunk.text))
        seconds = count * _seconds(model, _sample(lacking)) + chunks * _seconds(embedder, texts)
        numbers = count * model.dimensions + chunks * embedder.dimensions
        running = self.left.running
        return Improvement(count, chunks, round(seconds, 3), round(4e-6 * numbers, 1), running)

    def _choose(
        self, embedding: AnyEmbedding, background: bool, on_progress: OnProgress | None, stop: Stop
    ) -> None:
        self._handle.resources.embedders.open(embedding)
        row = self._handle.row()
        current = spec_of(row)
        spec = current.with_embedding(embedding).keep_choice(current)
        # searches use the old vectors until the new ones are complete
        if not row.embedder.startswith("static:"):
            if background:
                raise ConfigError(
                    f"{row.name}: is embedded by {row.embedder}, and only static vectors make way "
                    "in the background; leave background out"
                )
            with self._stores.locks.hold(self._lock, wait=0, task="improving this knowledge base"):
                if self.reembed(spec, on_progress, stop).interrupted:
                    return
        self._stores.database.commit(knowledge_bases.set_spec, row.id, spec)

    def _annotate(self, on_progress: OnProgress, stop: Stop) -> None:
        """Annotate chunks, unless a language model would get more than the recipe's limit."""
        spec = self._handle.spec.annotation
        maker = maker_of(self._handle)
        if maker is None or (isinstance(spec, LlmAnnotation) and maker.count_left() > spec.limit):
            return
        maker.make(on_progress=on_progress, stop=stop)

    def _embed_statements(self, on_progress: OnProgress, stop: Stop) -> None:
        row = self._handle.row()
        if self._handle.look_up(corpus.count_lacking_vectors, row.embedded_text):
            embedder = self._handle.embedders.of(row)
            embed_statements(self._stores.database, row.id, embedder, on_progress, stop)
            self._stores.vectors.apply(row.id)

    def _watch(self, on_progress: OnProgress, stop: Stop, models: bool) -> None:
        """Report the progress of another process until it is done."""
        start = remaining = self._remaining(models)
        while remaining and not stop() and self._stores.locks.is_held(self._lock):
            kind = next(kind for kind in _STAGES if getattr(remaining, kind))
            total = getattr(start, kind)
            done = max(0, total - getattr(remaining, kind))
            on_progress(Progress(_STAGES[kind], done, total, "in the background"))
            time.sleep(_POLL)
            remaining = self._remaining(models)

    def _start(self) -> bool:
        """Start a background process unless one runs or starts; return whether one does."""
        stores, now = self._stores, time.monotonic()
        child, until = _children.get(stores.folder, (None, now))
        # a process takes the lock once it has started
        is_starting = child is not None and child.poll() is None and now < until
        with suppress(OSError):  # the next ingest tries again
            if not is_starting and not stores.locks.is_held(PROCESS):
                variables = stores.settings.variables()
                name = "kbkit.workspace.processes"
                child = run_module(name, str(stores.folder), variables=variables, outlives=True)
                _children[stores.folder] = child, now + _START
            return True
        return False

    def _start_with_pause(self) -> None:
        folder, now = self._stores.folder, time.monotonic()

        def start() -> None:
            with _starting:
                _next_start[folder] = time.monotonic() + _PAUSE
                _timers.pop(folder, None)
            with suppress(KbkitError):  # the folder may be gone
                self._start()

        with _starting:
            wait = _next_start.get(folder, now) - now
            if folder in _timers:
                return
            timer = _timers[folder] = threading.Timer(max(0.0, wait), start)
            timer.daemon = True
        timer.start()


_starting = threading.Lock()
_next_start: dict[Path, float] = {}
_children: dict[Path, tuple[Popen[bytes], float]] = {}
_timers: dict[Path, threading.Timer] = {}


def _sample(values: list[_T]) -> list[_T]:
    return values[:: max(1, len(values) // _SAMPLE)][:_SAMPLE]


def _seconds(embedder: Embedder, texts: list[str]) -> float:
    if not texts:
        return 0.0
    embedder.embed_passages(texts[:2])  # warm up
    start = time.perf_counter()
    embedder.embed_passages(texts)
    return (time.perf_counter() - start) / len(texts)
