"""Ingest documents into a knowledge base."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from kbkit import recipes
from kbkit.errors import ImpossibleError
from kbkit.ingest.pipeline import Pipeline, Stop, disk_place
from kbkit.knowledge_base.handle import Handle, check_spec
from kbkit.knowledge_base.improving import Improving
from kbkit.models import IngestReport
from kbkit.runtime.progress import OnProgress, ignore, progress_bar
from kbkit.sources import DiskPlace, SourceEvent, open_reader
from kbkit.stores.catalog import graph, knowledge_bases, runs, writing
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.knowledge_bases import spec_of
from kbkit.stores.catalog.outbox import restart
from kbkit.stores.catalog.runs import SourceRow
from kbkit.text.analysis import REVISION


class Ingestion:
    """Ingests documents into one knowledge base, and changes its settings."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._resources = handle.resources
        self._stores = handle.stores
        self.id = handle.id
        self.improving = Improving(handle)

    def ingest(
        self,
        sources: Sequence[Any],
        base: str | Path,
        on_progress: OnProgress | None,
        stop: Stop,
        *,
        remember: bool,
    ) -> IngestReport:
        """See `KnowledgeBase.ingest`; likewise for the methods below."""
        from kbkit.sources.llamaindex import document_events

        self._handle.check_own()
        specs, documents = recipes.split_sources(sources)
        handed = document_events(documents, Path(base))
        if not remember:
            folder = Path(base).absolute()
            once = (
                self.pipeline().read(
                    open_reader(spec), runs.location_of(spec.model_dump()), folder, stop
                )
                for spec in specs
            )
            return self._run([], on_progress, stop, chain(chain.from_iterable(once), handed))
        ids_before = {row.id for row in self.sources()}
        rows = [self.save_source(spec, base, from_recipe=False) for spec in specs]
        for row in rows:
            self._stores.database.commit(runs.change_source, row, enabled=True)
        report = self._run(rows, on_progress, stop, handed)
        failed = {problem.uri for problem in report.failed_sources}
        counts = self.document_counts()
        for row in rows:  # new ones that could not be read are probably mistyped
            is_lost = row.location in failed and not counts.get(row.id) and not report.interrupted
            if is_lost and row.id not in ids_before:
                self.drop_source(row.id)
        return report

    def sync(
        self, sources: Any, base: str | Path, on_progress: OnProgress | None, stop: Stop
    ) -> IngestReport:
        self._handle.check_own()
        specs = recipes.only_sources("sync", sources)
        rows = [self.save_source(source, base, from_recipe=True) for source in specs]
        recipe_ids = {row.id for row in rows}
        for row in self.sources():
            if row.from_recipe and row.id not in recipe_ids:
                self.drop_source(row.id)
        rows = [row for row in rows if row.enabled]
        return self._run(rows, on_progress, stop, wait=True)

    def refresh(self, on_progress: OnProgress | None, stop: Stop, *, local: bool) -> IngestReport:
        sources = self.sources()
        rows = [row for row in sources if row.enabled and (row.spec.get("path") or not local)]
        name = self._handle.name
        if sources and not rows and not local:
            raise ImpossibleError(
                f"{name}: all its sources are disabled; enable one with "
                f"`kbkit sources enable {name} SOURCE`"
            )
        if not rows:
            raise ImpossibleError(
                f"{name}: has no sources to refresh; add one with `kbkit add {name}`"
            )
        return self._run(rows, on_progress, stop)

    def configure(
        self,
        spec: recipes.KnowledgeBaseSpec,
        *,
        description: str | None = None,
        if_match: str | None = None,
        on_progress: OnProgress | None = None,
        stop: Stop = lambda: False,
    ) -> IngestReport:
        self._handle.spec.check_version(if_match)
        check_spec(spec)  # first, since missing parts would break searches
        before = self._handle.row()
        old_spec = spec_of(before)
        spec = spec.keep_choice(old_spec)
        report = IngestReport()
        if not (before.waits and isinstance(spec.embedding, recipes.AutoEmbedding)):
            report = self.improving.reembed(spec, on_progress, stop)
        if report.interrupted:
            return report
        if (old_spec.chunking, old_spec.language) != (spec.chunking, spec.language):
            # before the settings are stored, so that a killed change is repeated
            renewed = self.pipeline(spec).renew(on_progress=on_progress or ignore, stop=stop)
            report = replace(
                renewed,
                chunks_embedded=report.chunks_embedded + renewed.chunks_embedded,
                seconds={**report.seconds, **renewed.seconds},
            )
            if report.interrupted:
                return report
        with self._stores.database.write() as transaction:
            current = knowledge_bases.get_by_id(transaction, self.id)
            spec_of(current).check_version(if_match)
            text = before.description if description is None else description
            values = spec.model_dump(mode="json")
            knowledge_bases.update(transaction, self.id, description=text, config=values)
            if old_spec.graph != spec.graph:
                graph.forget_built(transaction, self.id)
            if old_spec.storage != spec.storage:
                restart(transaction, knowledge_bases.get_by_id(transaction, self.id))
        self._stores.vectors.apply(self.id)
        self.improving.after_ingest(wait=True, on_progress=on_progress, stop=stop)
        return self._with_encoder(report)

    def _with_encoder(self, report: IngestReport) -> IngestReport:
        seconds = None if report.interrupted else self.improving.fit_encoder()
        if seconds is None:
            return report
        return replace(report, seconds={**report.seconds, "fit": seconds})

    def pipeline(self, spec: recipes.KnowledgeBaseSpec | None = None) -> Pipeline:
        row = self._handle.row()
        spec = spec or self._handle.spec
        slow = isinstance(spec.embedding, recipes.AutoEmbedding) and not row.embedder.startswith(
            "static:"
        )
        return Pipeline(
            self._stores,
            self.id,
            spec,
            self._handle.embedders.of(row),
            self._resources.settings,
            give_way=self.improving.use_static if slow else None,
            reopen=lambda: self._handle.embedders.of(self._handle.row()),
            engine=self._resources.engine,
        )

    def sources(self) -> list[SourceRow]:
        """Return the sources, oldest first."""
        return self._handle.look_up(runs.list_sources)

    def document_counts(self) -> dict[str, int]:
        return self._handle.look_up(runs.document_counts)

    def save_source(
        self, source: recipes.AnySource, base: str | Path, *, from_recipe: bool
    ) -> SourceRow:
        """Store a source for the next refresh; replaces one with the same location."""
        self._handle.check_own()
        spec = source.model_dump(mode="json")
        key = runs.source_key(spec)
        base = Path(base).absolute()
        with self._stores.database.write() as transaction:
            knowledge_bases.get_by_id(transaction, self.id)
            name = self.place_name(transaction, spec, base, key)
            return runs.save_source(
                transaction, self.id, key, spec, base=str(base), from_recipe=from_recipe, name=name
            )

    def place_name(
        self, transaction: Transaction, spec: Mapping[str, Any], base: Path, key: str
    ) -> str:
        """Return a source's name in URIs, distinct from those of others."""
        if not (path := spec.get("path")):
            return ""
        rows = runs.list_sources(transaction, self.id)
        other_places = (disk_place(row) for row in rows if row.key != key)
        return DiskPlace.of(path, base).apart(filter(None, other_places)).name

    def drop_source(
        self, source_id: str, *, keep_documents: bool = False, if_match: str | None = None
    ) -> None:
        """Delete a source, and by default its documents."""
        with self._stores.database.write() as transaction:
            runs.check_version(transaction, source_id, if_match)
            if not keep_documents:
                for document_id in writing.document_ids(transaction, self.id, source_id):
                    writing.delete_document(transaction, self.id, document_id)
            runs.delete_source(transaction, source_id)

    def _reindex(self, on_progress: OnProgress | None, stop: Stop) -> None:
        if self._handle.row().analyzer == REVISION:
            return
        with progress_bar(on_progress) as notify:
            report = self.pipeline().renew(on_progress=notify, stop=stop)
        if not report.interrupted:
            self._stores.database.commit(knowledge_bases.change, self.id, analyzer=REVISION)

    def _run(
        self,
        rows: Sequence[SourceRow],
        on_progress: OnProgress | None,
        stop: Stop,
        events: Iterable[SourceEvent] = (),
        *,
        wait: bool = False,
    ) -> IngestReport:
        pairs = [(row, open_reader(recipes.parse_source(row.spec))) for row in rows]
        self._reindex(on_progress, stop)
        with progress_bar(on_progress) as notify:
            report = self.pipeline().run(pairs, events, on_progress=notify, stop=stop)
            start = time.perf_counter()
            try:
                work = self.improving.after_ingest(wait=wait, on_progress=notify, stop=stop)
                seconds = {**report.seconds, "summaries": round(time.perf_counter() - start, 3)}
            finally:  # documents can be searched without summaries
                self._stores.snapshots.save(self.id)
        return self._with_encoder(replace(report, seconds=seconds, improvement=work))
