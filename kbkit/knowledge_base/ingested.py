"""Documents into a knowledge base."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbkit.errors import ConfigError, EmbedderError
from kbkit.ingest.document_writer import Place
from kbkit.ingest.pipeline import Pipeline, Stop
from kbkit.ingest.reembed import reembed
from kbkit.knowledge_base.opened import Opened
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
from kbkit.stores.catalog import knowledge_bases, runs, writing
from kbkit.stores.catalog.runs import SourceRow
from kbkit.stores.vector_index import restart
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


class Ingested(Opened):
    """A knowledge base to fill."""

    def ingest(
        self,
        *sources: AnySource | BaseNode | Iterable[Any],
        base: str | Path = ".",
        on_progress: OnProgress | None = None,
        stop: Stop = lambda: False,
    ) -> IngestReport:
        """Read sources into the knowledge base, and remember them for `refresh`.

        What has not changed since the last time is not fetched, cut or embedded again. An
        ingest that was interrupted goes on where it was. Documents of llama-index readers may
        stand in place of sources or among them; each replaces the one with its URI
        (`kbkit.sources.llamaindex.document_events` says which that is), and `refresh` leaves them
        alone.

        Args:
            sources: Parts of a recipe, such as ``CrawlSource(url="https://...")``, or what a
                llama-index reader's ``load_data`` gave.
            base: Folder that relative paths start from.
            on_progress: Called after each document; by default notebooks show a bar.
            stop: Asked often; true ends the work cleanly.

        Returns:
            What was done; pages that failed or were skipped are listed there with the reason.

        Raises:
            ConfigError: Something is neither a source nor a document.
            ConflictError: Another process reads one of the sources right now.
            EmbedderError: The embedder failed; what was stored stays.
        """
        from kbkit.sources.llamaindex import document_events, split_sources

        specs, documents = split_sources(sources)
        rows = [self._save_source(spec, base, from_recipe=False) for spec in specs]
        return self._run(rows, on_progress, stop, document_events(documents, Path(base)))

    def sync(
        self,
        sources: Sequence[AnySource],
        *,
        base: str | Path = ".",
        on_progress: OnProgress | None = None,
        stop: Stop = lambda: False,
    ) -> IngestReport:
        """Read the sources of a recipe; those that it named before and no longer names go.

        Takes what `ingest` takes, and raises what it raises.
        """
        rows = [self._save_source(source, base, from_recipe=True) for source in sources]
        kept = {row.id for row in rows}
        for row in self._sources():
            if row.from_recipe and row.id not in kept:
                self._drop_source(row)
        return self._run(rows, on_progress, stop)

    def local_places(self) -> list[tuple[Path, tuple[str, ...]]]:
        """Where its sources read on this machine's disk: globs, files or folders.

        Returns:
            The path of each, absolute, and the globs that it leaves out.
        """
        return [
            (Path(row.base, row.spec["path"]), tuple(row.spec.get("exclude", ())))
            for row in self._sources()
            if row.spec.get("path")
        ]

    def refresh(
        self,
        *,
        local: bool = False,
        on_progress: OnProgress | None = None,
        stop: Stop = lambda: False,
    ) -> IngestReport:
        """Read all sources again and take over what changed.

        Args:
            local: Only sources that read on this machine's disk.
            on_progress: Called after each document; by default notebooks show a bar.
            stop: Asked often; true ends the work cleanly.

        Raises:
            ConfigError: It has no such sources.
            ConflictError: Another process reads one of the sources right now.
            EmbedderError: The embedder failed; what was stored stays.
        """
        rows = [row for row in self._sources() if row.spec.get("path") or not local]
        if not rows:
            raise ConfigError(
                f"{self.name}: has no sources to refresh; add one with `kbkit add {self.name}`"
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
        """Change how the knowledge base works.

        Another embedder embeds all chunks again; searches go on with the old vectors until there
        is a new one for each. A change of chunking or language cuts and indexes the stored
        documents again. Either is taken up where it was stopped.

        Raises:
            ConflictError: Another process changes the embedder right now.
            EmbedderError: An embedder cannot be opened, or failed; what was embedded is kept.
        """
        report = self._reembed(spec, on_progress, stop)
        if report.interrupted:
            return report
        before = self._current()
        old = KnowledgeBaseSpec.model_validate(before.config)
        if (old.chunking, old.language) != (spec.chunking, spec.language):
            # before the change is noted, so that one that was killed is done again
            renewed = self._pipeline(spec).renew(on_progress=on_progress, stop=stop)
            report = replace(
                renewed,
                chunks_embedded=report.chunks_embedded + renewed.chunks_embedded,
                seconds={**report.seconds, **renewed.seconds},
            )
            if report.interrupted:
                return report
        with self._stores.database.write() as connection:
            knowledge_bases.update(
                connection,
                self.id,
                description=before.description if description is None else description,
                config=spec.model_dump(mode="json"),
            )
            if old.storage != spec.storage:
                restart(connection, knowledge_bases.get_by_id(connection, self.id))
        self._stores.vectors.apply(self.id)
        return self._with_encoder(report)

    def fit_query_encoder(self) -> Mapping[str, Any]:
        """Fit the query encoder to the chunks there are now, whether or not that is due.

        It embeds queries where the recipe says ``query_encoder: fitted``, and stands in for a
        model that cannot be had. `ingest`, `sync`, `refresh` and `configure` fit it when a fifth
        of the chunks came or went, where the recipe says so or the embedder may use the network.

        Returns:
            How it was fitted; see `kbkit.embedding.fitted.FittedEncoder`.

        Raises:
            ConfigError: There are no chunks.
            EmbedderError: No chunk has any term.
        """
        from kbkit.retrieval.encoder_fitting import fit_encoder

        return fit_encoder(self._stores.database, self.id, self._embedder_of)

    def _with_encoder(self, report: IngestReport) -> IngestReport:
        """Fit the query encoder if that is due; the report tells how long it took."""
        from kbkit.retrieval.encoder_fitting import is_due

        with self._stores.database.read() as connection:
            due = is_due(connection, knowledge_bases.get_by_id(connection, self.id))
        if not due or report.interrupted:
            return report
        start = time.perf_counter()
        with suppress(ConfigError, EmbedderError):  # searches say that there is none
            self.fit_query_encoder()
        return replace(
            report, seconds={**report.seconds, "fit": round(time.perf_counter() - start, 3)}
        )

    def _reembed(
        self, spec: KnowledgeBaseSpec, on_progress: OnProgress | None, stop: Stop
    ) -> IngestReport:
        """Change the embedder, if another is wanted or the one there was gives other vectors."""
        try:
            embedder = self._resources.embedder(spec.embedding)
        except (ConfigError, EmbedderError):
            if spec.embedding == self.spec.embedding:
                return IngestReport()  # other settings can change without it
            raise
        if embedder.fingerprint == self._current().embedder:
            return IngestReport()
        place = Place(self._stores.database, self.id, spec, embedder)
        return reembed(self._stores, place, on_progress=on_progress, stop=stop)

    def _pipeline(self, spec: KnowledgeBaseSpec | None = None) -> Pipeline:
        return Pipeline(
            self._stores,
            self.id,
            spec or self.spec,
            self._embedder_of(self._current()),
            self._resources.settings,
        )

    def _sources(self) -> list[SourceRow]:
        with self._stores.database.read() as connection:
            return runs.list_sources(connection, self.id)

    def _save_source(self, source: AnySource, base: str | Path, *, from_recipe: bool) -> SourceRow:
        spec = source.model_dump(mode="json")
        key = runs.source_key(spec, _PLACE[source.type])
        with self._stores.database.write() as connection:
            knowledge_bases.get_by_id(connection, self.id)
            return runs.save_source(
                connection,
                self.id,
                key,
                spec,
                base=str(Path(base).absolute()),
                from_recipe=from_recipe,
            )

    def _drop_source(self, row: SourceRow) -> None:
        with self._stores.database.write() as connection:
            for document_id in writing.document_ids(connection, self.id, row.id):
                writing.delete_document(connection, self.id, document_id)
            runs.delete_source(connection, row.id)

    def _reindex(self, on_progress: OnProgress | None, stop: Stop) -> None:
        """Cut and index all documents again where an older kbkit made the terms."""
        if self._current().analyzer == REVISION:
            return
        with progress_bar(on_progress) as tell:
            report = self._pipeline().renew(on_progress=tell, stop=stop)
        if not report.interrupted:
            with self._stores.database.write() as connection:
                knowledge_bases.set_analyzer(connection, self.id)

    def _run(
        self,
        rows: Sequence[SourceRow],
        on_progress: OnProgress | None,
        stop: Stop,
        handed: Iterable[SourceEvent] = (),
    ) -> IngestReport:
        pairs = [(row, open_reader(parse_source(row.spec))) for row in rows]
        self._reindex(on_progress, stop)
        with progress_bar(on_progress) as tell:
            report = self._pipeline().run(pairs, handed, on_progress=tell, stop=stop)
        self._stores.snapshots.save(self.id)
        return self._with_encoder(report)
