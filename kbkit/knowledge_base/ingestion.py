"""Documents into a knowledge base."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbkit.errors import ConfigError
from kbkit.ingest.pipeline import Pipeline, Stop, disk_place
from kbkit.knowledge_base.handle import Handle
from kbkit.knowledge_base.improving import Improving
from kbkit.models import (
    IngestReport,
)
from kbkit.progress import OnProgress, progress_bar
from kbkit.recipes import (
    AnySource,
    KnowledgeBaseSpec,
    parse_source,
)
from kbkit.sources import open_reader
from kbkit.sources.base import SourceEvent
from kbkit.sources.places import DiskPlace
from kbkit.stores.catalog import knowledge_bases, runs, writing
from kbkit.stores.catalog.outbox import restart
from kbkit.stores.catalog.runs import SourceRow
from kbkit.text import REVISION

if TYPE_CHECKING:
    from llama_index.core.schema import BaseNode


_PLACE = {
    "crawl": ("url",),
    "page": ("url",),
    "mirror": ("path", "base_url"),
    "files": ("path",),
    "jsonl": ("path",),
    "openapi": ("url", "path"),
    "package": ("name",),
    "plugin": ("name", "options"),
}
"""Which options of a source say where it is; the others say how to read it."""


class Ingestion:
    """How documents come into one knowledge base, and how it is made to work otherwise."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._resources = handle.resources
        self._stores = handle.stores
        self.id = handle.id
        self.improving = Improving(handle)

    def ingest(
        self,
        *sources: AnySource | BaseNode | Mapping[str, Any] | Iterable[Any],
        base: str | Path = ".",
        on_progress: OnProgress | None = None,
        stop: Stop = lambda: False,
    ) -> IngestReport:
        """See `KnowledgeBase.ingest`."""
        from kbkit.sources.llamaindex import document_events, split_sources

        specs, documents = split_sources(sources)
        rows = [self._save_source(spec, base, from_recipe=False) for spec in specs]
        return self._run(rows, on_progress, stop, document_events(documents, Path(base)))

    def sync(
        self,
        sources: AnySource | Mapping[str, Any] | Iterable[AnySource | Mapping[str, Any]],
        *,
        base: str | Path = ".",
        on_progress: OnProgress | None = None,
        stop: Stop = lambda: False,
    ) -> IngestReport:
        """See `KnowledgeBase.sync`."""
        from kbkit.sources.llamaindex import split_sources

        specs, documents = split_sources([sources])
        if documents:
            raise ConfigError("sync: takes sources; documents go into `ingest`")
        rows = [self._save_source(source, base, from_recipe=True) for source in specs]
        kept = {row.id for row in rows}
        for row in self.sources():
            if row.from_recipe and row.id not in kept:
                self.drop_source(row.id)
        return self._run(rows, on_progress, stop, wait=True)

    def refresh(
        self,
        *,
        local: bool = False,
        on_progress: OnProgress | None = None,
        stop: Stop = lambda: False,
    ) -> IngestReport:
        """See `KnowledgeBase.refresh`."""
        rows = [row for row in self.sources() if row.spec.get("path") or not local]
        if not rows:
            raise ConfigError(
                f"{self._handle.name}: has no sources to refresh; add one with "
                f"`kbkit add {self._handle.name}`"
            )
        return self._run(rows, on_progress, stop)

    def configure(
        self,
        spec: KnowledgeBaseSpec,
        *,
        description: str | None = None,
        on_progress: OnProgress | None = None,
        stop: Stop = lambda: False,
    ) -> IngestReport:
        """See `KnowledgeBase.configure`."""
        report = self.improving.reembed(spec, on_progress, stop)
        if report.interrupted:
            return report
        before = self._handle.row()
        old = KnowledgeBaseSpec.model_validate(before.config)
        if (old.chunking, old.language) != (spec.chunking, spec.language):
            # before the change is noted, so that one that was killed is done again
            renewed = self.pipeline(spec).renew(on_progress=on_progress, stop=stop)
            report = replace(
                renewed,
                chunks_embedded=report.chunks_embedded + renewed.chunks_embedded,
                seconds={**report.seconds, **renewed.seconds},
            )
            if report.interrupted:
                return report
        with self._stores.database.write() as transaction:
            knowledge_bases.update(
                transaction,
                self.id,
                description=before.description if description is None else description,
                config=spec.model_dump(mode="json"),
            )
            if old.storage != spec.storage:
                restart(transaction, knowledge_bases.get_by_id(transaction, self.id))
        self._stores.vectors.apply(self.id)
        self.improving.after_ingest(wait=True, on_progress=on_progress, stop=stop)
        return self._with_encoder(report)

    def _with_encoder(self, report: IngestReport) -> IngestReport:
        """The report, with how long it took to fit the query encoder if that was due."""
        seconds = None if report.interrupted else self.improving.fit_encoder()
        if seconds is None:
            return report
        return replace(report, seconds={**report.seconds, "fit": seconds})

    def pipeline(self, spec: KnowledgeBaseSpec | None = None) -> Pipeline:
        """What stores documents, by its spec or by another one."""
        return Pipeline(
            self._stores,
            self.id,
            spec or self._handle.spec,
            self._handle.embedder(self._handle.row()),
            self._resources.settings,
            lambda: self._handle.embedder(self._handle.row()),
        )

    def sources(self) -> list[SourceRow]:
        """Its sources, oldest first."""
        with self._stores.database.read() as transaction:
            return runs.list_sources(transaction, self.id)

    def _save_source(self, source: AnySource, base: str | Path, *, from_recipe: bool) -> SourceRow:
        spec = source.model_dump(mode="json")
        key = runs.source_key(spec, _PLACE[source.type])
        base = Path(base).absolute()
        with self._stores.database.write() as transaction:
            knowledge_bases.get_by_id(transaction, self.id)
            place = None
            if path := spec.get("path"):
                rows = runs.list_sources(transaction, self.id)
                others = (disk_place(row) for row in rows if row.key != key)
                place = DiskPlace.of(path, base).apart(filter(None, others))
            return runs.save_source(
                transaction,
                self.id,
                key,
                spec,
                base=str(base),
                from_recipe=from_recipe,
                name=place.name if place else "",
            )

    def drop_source(self, source_id: str) -> None:
        """Forget a source and delete its documents."""
        with self._stores.database.write() as transaction:
            for document_id in writing.document_ids(transaction, self.id, source_id):
                writing.delete_document(transaction, self.id, document_id)
            runs.delete_source(transaction, source_id)

    def _reindex(self, on_progress: OnProgress | None, stop: Stop) -> None:
        """Cut and index all documents again where an older kbkit made the terms."""
        if self._handle.row().analyzer == REVISION:
            return
        with progress_bar(on_progress) as tell:
            report = self.pipeline().renew(on_progress=tell, stop=stop)
        if not report.interrupted:
            with self._stores.database.write() as transaction:
                knowledge_bases.set_analyzer(transaction, self.id)

    def _run(
        self,
        rows: Sequence[SourceRow],
        on_progress: OnProgress | None,
        stop: Stop,
        handed: Iterable[SourceEvent] = (),
        *,
        wait: bool = False,
    ) -> IngestReport:
        pairs = [(row, open_reader(parse_source(row.spec))) for row in rows]
        self._reindex(on_progress, stop)
        with progress_bar(on_progress) as tell:
            report = self.pipeline().run(pairs, handed, on_progress=tell, stop=stop)
            start = time.perf_counter()
            try:
                left = self.improving.after_ingest(wait=wait, on_progress=tell, stop=stop)
                seconds = {**report.seconds, "cards": round(time.perf_counter() - start, 3)}
                report = replace(report, seconds=seconds, improvement=left)
            finally:  # without cards too, documents are searched
                self._stores.snapshots.save(self.id)
        return self._with_encoder(report)
