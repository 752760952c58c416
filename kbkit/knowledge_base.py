"""KnowledgeBase: one named collection of documents, and all that can be done with it."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbkit.config import Settings
from kbkit.embedding.base import Embedder
from kbkit.errors import ConfigError, EmbedderError
from kbkit.feedback.evaluate import Evaluation, evaluate
from kbkit.feedback.judgements import Judgements
from kbkit.feedback.pooling import JudgingPool, pool
from kbkit.feedback.rating import judgements_of, rate, rating_of, unrate
from kbkit.feedback.tune import TuneReport, tune
from kbkit.frames import chunks_frame, documents_frame, info_html, ratings_frame
from kbkit.ingest.pipeline import Pipeline, Stop
from kbkit.ingest.reembed import reembed
from kbkit.ingest.storing import Place
from kbkit.models import (
    Chunk,
    Document,
    DocumentType,
    Filters,
    Hits,
    IngestReport,
    KnowledgeBaseInfo,
    Mode,
    Rating,
    SourceDocument,
)
from kbkit.progress import OnProgress, shown
from kbkit.recipes import (
    AnyEmbedding,
    AnySource,
    KnowledgeBaseConfig,
    Question,
    RetrievalSpec,
    parse_source,
)
from kbkit.retrieval.retriever import Query, Retriever, search
from kbkit.sources import open_source
from kbkit.sources.base import SourceEvent
from kbkit.stores import catalog, contents, ratings, registry, runs
from kbkit.stores.database import Database
from kbkit.stores.locks import FolderLocks
from kbkit.stores.ratings import Total as RatingTotal
from kbkit.stores.registry import KnowledgeBaseRow
from kbkit.stores.runs import SourceRow
from kbkit.stores.snapshots import Snapshots
from kbkit.stores.vectors import VectorIndex, restart
from kbkit.stores.warming import Warmer
from kbkit.text import REVISION

if TYPE_CHECKING:
    import pandas as pd
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.schema import BaseNode
    from llama_index.core.tools import FunctionTool

    from kbkit.export.report import ExportReport

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


@dataclass(frozen=True, slots=True)
class Resources:
    """What the knowledge bases of one workspace share."""

    folder: Path
    database: Database
    vectors: VectorIndex
    snapshots: Snapshots
    warmer: Warmer
    locks: FolderLocks
    settings: Settings
    embedder: Callable[[AnyEmbedding], Embedder]


@dataclass(frozen=True, slots=True)
class Added:
    """What adding a document by hand gave.

    Attributes:
        document_id: Id of the document.
        chunks: Number of its chunks.
    """

    document_id: str
    chunks: int


class KnowledgeBase:
    """One knowledge base of a workspace; `Workspace` makes these."""

    def __init__(self, resources: Resources, row: KnowledgeBaseRow) -> None:
        self._resources = resources
        self._row = row
        self._embedder: Embedder | None = None

    @property
    def id(self) -> str:
        """Identifies it for ever."""
        return self._row.id

    @property
    def name(self) -> str:
        """Its slug."""
        return self._row.name

    def config(self) -> KnowledgeBaseConfig:
        """How it works: chunking, embedding, retrieval, storage, site."""
        return KnowledgeBaseConfig.model_validate(self._current().config)

    # --- documents in -------------------------------------------------------------------------

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
        (`kbkit.sources.llamaindex.events` says which that is), and `refresh` leaves them alone.

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
        from kbkit.sources.llamaindex import events, told_apart

        specs, documents = told_apart(sources)
        rows = [self._save_source(spec, base, from_recipe=False) for spec in specs]
        return self._run(rows, on_progress, stop, events(documents, Path(base)))

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

    def refresh(
        self, *, on_progress: OnProgress | None = None, stop: Stop = lambda: False
    ) -> IngestReport:
        """Read all sources again and take over what changed.

        Raises:
            ConfigError: It has no sources.
            ConflictError: Another process reads one of the sources right now.
            EmbedderError: The embedder failed; what was stored stays.
        """
        rows = self._sources()
        if not rows:
            raise ConfigError(
                f"{self.name}: has no sources to refresh; add one with `kbkit add {self.name}`"
            )
        return self._run(rows, on_progress, stop)

    def add(
        self,
        title: str,
        content: str,
        *,
        source: str = "",
        document_type: DocumentType | str | None = None,
        tags: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> Added:
        """Add one document of Markdown text, or replace the one with the same source.

        It is searchable when the call returns.

        Args:
            title: Its title.
            content: Its text, Markdown.
            source: URI of where it comes from, which identifies it; by default ``text:`` and the
                title.
            document_type: Its type; detected by default.
            tags: Free labels.
            metadata: JSON values to keep with it.

        Raises:
            ConfigError: Title or content is empty, or the type is unknown.
            EmbedderError: The embedder failed.
        """
        document = SourceDocument(
            uri=source or f"text:{title.strip()}",
            title=title.strip(),
            content=content,
            document_type=_known_type(document_type),
            tags=tuple(tags),
            metadata=metadata or {},
        )
        return self._put(document)

    def update(
        self,
        document: str,
        *,
        title: str | None = None,
        content: str | None = None,
        document_type: DocumentType | str | None = None,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Added:
        """Change a document, given by id or URI; what is not named stays.

        The change is searchable when the call returns. A document of a crawled or read source is
        what its source says again when that source next changes it.

        Raises:
            ConfigError: Title or content is empty, or the type is unknown.
            NotFoundError: There is no such document.
            EmbedderError: The embedder failed.
        """
        old = self.document(document)
        new_type = _known_type(document_type)
        return self._put(
            SourceDocument(
                uri=old.uri,
                title=old.title if title is None else title.strip(),
                content=old.content if content is None else content,
                document_type=old.document_type if new_type is None else new_type,
                tags=old.tags if tags is None else tuple(tags),
                metadata=old.metadata if metadata is None else metadata,
            )
        )

    def _put(self, document: SourceDocument) -> Added:
        if not document.title or not document.content.strip():
            raise ConfigError("a document needs a title and content; give both")
        document_id, _ = self._pipeline().store(document)
        return Added(document_id, sum(1 for _ in self.iter_chunks(document_id)))

    def delete_document(self, document: str) -> None:
        """Delete a document, given by id or URI.

        Raises:
            NotFoundError: There is no such document.
        """
        with self._resources.database.write() as connection:
            found = contents.get_document(connection, self.id, document)
            catalog.delete_document(connection, self.id, found.id)
        self._resources.vectors.apply(self.id)

    def reconfigure(
        self,
        config: KnowledgeBaseConfig,
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
        report = self._reembed(config, on_progress, stop)
        if report.interrupted:
            return report
        before = self._current()
        old = KnowledgeBaseConfig.model_validate(before.config)
        if (old.chunking, old.language) != (config.chunking, config.language):
            # before the change is noted, so that one that was killed is done again
            renewed = self._pipeline(config).renew(on_progress=on_progress, stop=stop)
            report = replace(
                renewed,
                chunks_embedded=report.chunks_embedded + renewed.chunks_embedded,
                seconds={**report.seconds, **renewed.seconds},
            )
            if report.interrupted:
                return report
        with self._resources.database.write() as connection:
            registry.update(
                connection,
                self.id,
                description=before.description if description is None else description,
                config=config.model_dump(mode="json"),
            )
            if old.storage != config.storage:
                restart(connection, registry.get_by_id(connection, self.id))
        self._resources.vectors.apply(self.id)
        return self._with_encoder(report)

    def fit_query_encoder(self) -> Mapping[str, Any]:
        """Fit the query encoder to the chunks there are now, whether or not that is due.

        It embeds queries where the recipe says ``query_encoder: fitted``, and stands in for a
        model that cannot be had. `ingest`, `sync`, `refresh` and `reconfigure` fit it when a fifth
        of the chunks came or went, where the recipe says so or the embedder may use the network.

        Returns:
            How it was fitted; see `kbkit.embedding.fitted.FittedEncoder`.

        Raises:
            ConfigError: There are no chunks.
            EmbedderError: No chunk has any term.
        """
        from kbkit.retrieval.fitting import fit_encoder

        return fit_encoder(self._resources.database, self.id, self._embedder_of)

    def _with_encoder(self, report: IngestReport) -> IngestReport:
        """Fit the query encoder if that is due; the report tells how long it took."""
        from kbkit.retrieval.fitting import is_due

        with self._resources.database.read() as connection:
            due = is_due(connection, registry.get_by_id(connection, self.id))
        if not due or report.interrupted:
            return report
        start = time.perf_counter()
        with suppress(ConfigError, EmbedderError):  # searches say that there is none
            self.fit_query_encoder()
        return replace(
            report, seconds={**report.seconds, "fit": round(time.perf_counter() - start, 3)}
        )

    def _reembed(
        self, config: KnowledgeBaseConfig, on_progress: OnProgress | None, stop: Stop
    ) -> IngestReport:
        """Change the embedder, if another is wanted or the one there was gives other vectors."""
        resources = self._resources
        embedder = resources.embedder(config.embedding)
        if embedder.fingerprint == self._current().embedder:
            return IngestReport()
        place = Place(resources.database, self.id, config, embedder)
        return reembed(
            place, resources.vectors, resources.locks, on_progress=on_progress, stop=stop
        )

    # --- answers out --------------------------------------------------------------------------

    def search(
        self,
        query: str,
        limit: int = 10,
        mode: str | Mode = Mode.HYBRID,
        *,
        filters: Filters | Mapping[str, Any] | None = None,
        settings: RetrievalSpec | None = None,
    ) -> Hits:
        """The chunks that answer a query, best first.

        Args:
            query: A question or some words.
            limit: Most hits.
            mode: ``hybrid``, ``dense`` (by meaning only) or ``lexical`` (by words only).
            filters: What a document must be, as `Filters` or as a mapping of its attributes, such
                as ``{"document_type": "manual", "tags": ["api"]}``.
            settings: How to rank, in place of the recipe's ``retrieval`` part.

        Raises:
            ConfigError: The query is empty, or limit, mode or a filter is wrong.
            EmbedderError: The embedder failed.
            NotFoundError: The knowledge base was deleted.
        """
        return search([self.retriever], Query.of(query, limit, mode, filters, settings))

    def as_retriever(
        self,
        limit: int = 10,
        mode: str | Mode = Mode.HYBRID,
        *,
        filters: Filters | Mapping[str, Any] | None = None,
    ) -> BaseRetriever:
        """The search as a llama-index retriever, for its query engines and agents.

        Takes what `search` takes. The id of a node is its chunk's, and its metadata is what a hit
        says of itself.

        Raises:
            ConfigError: Limit, mode or a filter is wrong.
        """
        from kbkit.retrieval.llamaindex import KbkitRetriever

        asked = Query.of("anything", limit, mode, filters)
        return KbkitRetriever(
            lambda text: self.search(text, asked.limit, asked.mode, filters=asked.filters)
        )

    def as_tool(
        self, limit: int = 5, *, filters: Filters | Mapping[str, Any] | None = None
    ) -> FunctionTool:
        """The search as a llama-index tool, for agents.

        It gives passages with their sources, marked as quoted material.

        Args:
            limit: Passages where the agent does not say how many, 1 to 20.
            filters: What a document must be.

        Raises:
            ConfigError: The limit or a filter is wrong.
        """
        from kbkit.retrieval.llamaindex import search_tool

        asked = Filters.of(filters)
        about = self.describe().description
        return search_tool(
            f"search_{self.name.replace('-', '_')}",
            f"Search the knowledge base {self.name!r}{about and ': '}{about}\n"
            "Gives passages of its documents, best first, each with its source.",
            lambda text, most: self.search(text, most, filters=asked),
            limit,
        )

    # --- feedback -----------------------------------------------------------------------------

    def rate(
        self, target: str, score: int, *, query: str = "", note: str = "", rater: str = ""
    ) -> Rating:
        """Rate a chunk or a document. Ratings are appended; the last of a rater counts.

        Args:
            target: Id of a chunk or a document.
            score: 1 (useless) to 5 (exactly right).
            query: What it was found for, if it was.
            note: Anything else to say.
            rater: Who rates; by default ``KBKIT_RATER`` or the login name.

        Raises:
            ConfigError: The score is not 1 to 5.
            NotFoundError: There is no such chunk or document.
        """
        resources = self._resources
        rater = resources.settings.rater if rater == "" else rater
        return rate(resources.database, self.id, target, score, query=query, rater=rater, note=note)

    def unrate(self, rating_id: int) -> None:
        """Take back a rating that was a slip; the one before it counts again.

        Args:
            rating_id: The ``id`` of the rating that `rate` returned.

        Raises:
            NotFoundError: There is no such rating.
        """
        unrate(self._resources.database, self.id, rating_id)

    def rating_of(self, target: str) -> RatingTotal | None:
        """Average and number of the ratings of a chunk or a document; ``None`` without any.

        Raises:
            NotFoundError: There is no such chunk or document.
        """
        return rating_of(self._resources.database, self.id, target)

    def iter_ratings(self, targets: Collection[str] | None = None) -> Iterator[Rating]:
        """All ratings, oldest first, or those of some chunks and documents, given by id."""
        conditions = () if targets is None else (ratings.of_targets(targets),)
        with self._resources.database.read() as connection:
            yield from ratings.listed(connection, self.id, *conditions)

    def ratings(self) -> pd.DataFrame:
        """All ratings as a DataFrame, oldest first, indexed by id.

        ``average`` and ``raters`` tell what all ratings of the same chunk or document come to.
        """
        return ratings_frame(self.iter_ratings())

    def judgements(self) -> Judgements:
        """How well chunks answer queries: graded labels made from ratings that name a query.

        See `Judgements.from_ratings` for how ratings become grades. Chunks that are gone are left
        out, and come back with them.
        """
        return judgements_of(self._resources.database, self.id)

    def evaluate(
        self,
        questions: Sequence[Question] | Judgements | None = None,
        mode: str | Mode = Mode.HYBRID,
        *,
        settings: RetrievalSpec | None = None,
        against: str | Mode | RetrievalSpec | Evaluation | None = None,
        k: int = 10,
        on_progress: OnProgress | None = None,
    ) -> Evaluation:
        """Measure how well search answers queries whose answers are known.

        Golden questions are measured by page, judgements by chunk. What nobody judged counts as
        not relevant; ratings have no weight where judgements measure, since those come from them.

        Args:
            questions: Golden questions or judgements; by default those that `judgements` gives.
            mode: ``hybrid``, ``dense`` or ``lexical``.
            settings: How to rank, in place of the recipe's ``retrieval`` part.
            against: What to compare with: another mode, other settings, or an evaluation of the
                same queries, of another knowledge base, say.
            k: Places that Recall@k reads, 1 to 100.
            on_progress: Called after each query; by default notebooks show a bar.

        Raises:
            ConfigError: There is nothing to measure by, or an argument is wrong.
            EmbedderError: The embedder failed.
        """
        asked = self.judgements() if questions is None else questions
        return evaluate(
            self, asked, mode=mode, settings=settings, against=against, k=k, on_progress=on_progress
        )

    def tune(
        self,
        questions: Sequence[Question] | Judgements | None = None,
        *,
        keep: bool = False,
        seed: int = 0,
        on_progress: OnProgress | None = None,
    ) -> TuneReport:
        """Learn the weights of hybrid search from queries whose answers are known.

        Weights of meaning, document, title and headings are learned; what else the settings say
        stays. They are proposed only if they win clearly on queries that had no part in learning.

        Args:
            questions: Golden questions or judgements; by default those that `judgements` gives.
            keep: Write the proposed settings to the knowledge base, if they win. The next build of
                a recipe undoes that, unless `TuneReport.to_yaml` is put there.
            seed: Another one divides the queries in other ways.
            on_progress: Called as the work goes on; by default notebooks show a bar.

        Raises:
            ConfigError: There are fewer than 10 queries, or one is wrong.
            EmbedderError: The embedder failed.
        """
        asked = self.judgements() if questions is None else questions
        report = tune(self, asked, seed=seed, on_progress=on_progress)
        if not (keep and report.wins):
            return report
        self.reconfigure(self.config().model_copy(update={"retrieval": report.settings}))
        return replace(report, kept=True)

    def pool(
        self, query: str, depth: int = 10, *, unshown: int = 5, seed: int = 0, rater: str = ""
    ) -> JudgingPool:
        """Candidates for judging a query: what every mode finds, and some of what none shows.

        They come in an order that does not tell how they were found, the same each time, so that
        ratings do not only confirm what search shows.

        Args:
            query: What is asked.
            depth: Hits of each mode (``hybrid``, ``dense``, ``lexical``), 1 to 100.
            unshown: Candidates drawn at random from further down, 0 to 100.
            seed: Another one gives another order and draws others.
            rater: Whose ratings are marked; by default ``KBKIT_RATER`` or the login name.

        Raises:
            ConfigError: The query is empty, or a number is out of range.
            EmbedderError: The embedder failed.
        """
        rater = rater or self._resources.settings.rater
        given = self.iter_ratings()
        return pool(
            self, query, depth=depth, unshown=unshown, seed=seed, ratings=given, rater=rater
        )

    # --- what is there ------------------------------------------------------------------------

    def describe(self) -> KnowledgeBaseInfo:
        """Its figures: documents, chunks, types, states, embedder, times."""
        with self._resources.database.read() as connection:
            return registry.describe(connection, registry.get_by_id(connection, self.id))

    def document(self, document: str) -> Document:
        """One document, given by id or URI.

        Raises:
            NotFoundError: There is no such document.
        """
        with self._resources.database.read() as connection:
            return contents.get_document(connection, self.id, document)

    def iter_documents(self, *, gone: bool = True) -> Iterator[Document]:
        """All documents in order of URI, those that are gone from their source with ``gone``."""
        with self._resources.database.read() as connection:
            yield from contents.iter_documents(connection, self.id, gone=gone)

    def iter_chunks(self, document_id: str | None = None) -> Iterator[Chunk]:
        """All chunks, or those of one document, in document order."""
        with self._resources.database.read() as connection:
            yield from contents.iter_chunks(connection, self.id, document_id)

    def documents(self) -> pd.DataFrame:
        """All documents as a DataFrame, indexed by id; ``content`` is the Markdown."""
        return documents_frame(self.iter_documents())

    def chunks(self) -> pd.DataFrame:
        """All chunks as a DataFrame, indexed by id."""
        return chunks_frame(self.iter_chunks())

    def export(
        self,
        directory: str | Path | None = None,
        *,
        build: bool = True,
        on_progress: OnProgress | None = None,
    ) -> ExportReport:
        """Write the knowledge base as a MkDocs project, and build its site.

        Args:
            directory: Folder of the project; by default the recipe's, or ``export/NAME`` in the
                workspace.
            build: Also run MkDocs, so that the site lies ready in the project.
            on_progress: Called as pages are written.

        Raises:
            ExportError: The folder cannot be written, or MkDocs refuses the project.
        """
        from kbkit.export import export_site

        return export_site(
            self.describe(),
            self.iter_documents(gone=False),
            Path(directory) if directory is not None else self.site_directory(),
            self.config().site,
            build=build,
            on_progress=on_progress,
        )

    def site_directory(self) -> Path:
        """Folder that `export` writes to when none is named."""
        directory = self.config().site.directory
        return Path(directory) if directory else self._resources.folder / "export" / self.name

    def __repr__(self) -> str:
        return f"<KnowledgeBase {self.name!r} in {str(self._resources.folder)!r}>"

    def _repr_html_(self) -> str:
        return info_html(self.describe())

    # --- inside -------------------------------------------------------------------------------

    @cached_property
    def retriever(self) -> Retriever:
        """What finds candidates in it; `Workspace.search` ranks those of several together."""
        resources = self._resources
        return Retriever(
            database=resources.database,
            vectors=resources.vectors,
            snapshots=resources.snapshots,
            warmer=resources.warmer,
            kb_id=self.id,
            embedder=self._embedder_of,
        )

    def _embedder_of(self, row: KnowledgeBaseRow) -> Embedder:
        """The embedder of a knowledge base that the catalog has like this.

        Raises:
            EmbedderError: It cannot be opened, or is not the one that made the vectors.
        """
        if self._embedder is None or self._embedder.fingerprint != row.embedder:
            spec = KnowledgeBaseConfig.model_validate(row.config).embedding
            found = self._resources.embedder(spec)
            if found.fingerprint != row.embedder:
                raise EmbedderError(
                    f"{self.name}: was embedded by {row.embedder}, but the embedder is now "
                    f"{found.fingerprint}; install the version it was made with, or change the "
                    "recipe's embedding so that it is embedded again"
                )
            self._embedder = found
        return self._embedder

    def _current(self) -> KnowledgeBaseRow:
        with self._resources.database.read() as connection:
            return registry.get_by_id(connection, self.id)

    def _pipeline(self, config: KnowledgeBaseConfig | None = None) -> Pipeline:
        resources = self._resources
        return Pipeline(
            database=resources.database,
            vectors=resources.vectors,
            locks=resources.locks,
            kb_id=self.id,
            config=config or self.config(),
            embedder=self._embedder_of(self._current()),
            settings=resources.settings,
        )

    def _sources(self) -> list[SourceRow]:
        with self._resources.database.read() as connection:
            return runs.list_sources(connection, self.id)

    def _save_source(self, source: AnySource, base: str | Path, *, from_recipe: bool) -> SourceRow:
        spec = source.model_dump(mode="json")
        key = runs.source_key(spec, _PLACE[source.type])
        with self._resources.database.write() as connection:
            registry.get_by_id(connection, self.id)
            return runs.save_source(
                connection,
                self.id,
                key,
                spec,
                base=str(Path(base).absolute()),
                from_recipe=from_recipe,
            )

    def _drop_source(self, row: SourceRow) -> None:
        with self._resources.database.write() as connection:
            for document_id in catalog.document_ids(connection, self.id, row.id):
                catalog.delete_document(connection, self.id, document_id)
            runs.delete_source(connection, row.id)

    def _reindex(self, on_progress: OnProgress | None, stop: Stop) -> None:
        """Cut and index all documents again where an older kbkit made the terms."""
        if self._current().analyzer == REVISION:
            return
        with shown(on_progress) as tell:
            report = self._pipeline().renew(on_progress=tell, stop=stop)
        if not report.interrupted:
            with self._resources.database.write() as connection:
                registry.set_analyzer(connection, self.id)

    def _run(
        self,
        rows: Sequence[SourceRow],
        on_progress: OnProgress | None,
        stop: Stop,
        handed: Iterable[SourceEvent] = (),
    ) -> IngestReport:
        pairs = [(row, open_source(parse_source(row.spec))) for row in rows]
        self._reindex(on_progress, stop)
        with shown(on_progress) as tell:
            report = self._pipeline().run(pairs, handed, on_progress=tell, stop=stop)
        self._resources.snapshots.save(self.id)
        return self._with_encoder(report)


def _known_type(document_type: DocumentType | str | None) -> DocumentType | None:
    if document_type is None:
        return None
    try:
        return DocumentType(document_type)
    except ValueError:
        types = ", ".join(DocumentType)
        raise ConfigError(f"document_type={document_type!r}: choose one of {types}") from None
