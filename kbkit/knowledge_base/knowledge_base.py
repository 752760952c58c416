"""KnowledgeBase: one named collection of documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbkit import models
from kbkit.errors import ConfigError
from kbkit.knowledge_base.handle import Handle, Resources
from kbkit.knowledge_base.searches import Searches
from kbkit.models.values import BUILT_IN
from kbkit.recipes import AnyEmbedding, AnySource, KnowledgeBaseSpec, parse_embedding
from kbkit.runtime.progress import OnProgress, ignore
from kbkit.runtime.validation import explain_calls
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow

if TYPE_CHECKING:
    from llama_index.core.schema import BaseNode

    from kbkit.base_plots import Plots
    from kbkit.ingest.pipeline import Stop
    from kbkit.knowledge_base.annotations import Annotations
    from kbkit.knowledge_base.chunks import Chunks
    from kbkit.knowledge_base.documents import Documents
    from kbkit.knowledge_base.feedback import Feedback, Ratings
    from kbkit.knowledge_base.ingestion import Ingestion
    from kbkit.knowledge_base.sources import Sources


@explain_calls
class KnowledgeBase(Searches):
    """One knowledge base; made by `Workspace`. Its parts load on first use."""

    def __init__(self, resources: Resources, row: KnowledgeBaseRow) -> None:
        super().__init__(Handle(resources, row))
        self._stores = resources.stores

    @cached_property
    def _ingestion(self) -> Ingestion:
        from kbkit.knowledge_base.ingestion import Ingestion

        return Ingestion(self._handle)

    @cached_property
    def documents(self) -> Documents:
        """Its documents; see `Documents`."""
        from kbkit.knowledge_base.documents import Documents

        return Documents(self._handle, self._ingestion)

    @cached_property
    def chunks(self) -> Chunks:
        """Its chunks; see `Chunks`."""
        from kbkit.knowledge_base.chunks import Chunks

        return Chunks(self._handle)

    @cached_property
    def annotations(self) -> Annotations:
        """Statements and names in its chunks; see `Annotations`."""
        from kbkit.knowledge_base.annotations import Annotations

        return Annotations(self._handle)

    @cached_property
    def ratings(self) -> Ratings:
        """Ratings of its documents and chunks; see `Ratings`."""
        from kbkit.knowledge_base.feedback import Ratings

        return Ratings(self._handle)

    @cached_property
    def sources(self) -> Sources:
        """Sources that `refresh` reads; see `Sources`."""
        from kbkit.knowledge_base.sources import Sources

        return Sources(self._handle, self._ingestion)

    @cached_property
    def feedback(self) -> Feedback:
        """Measures, judging and tuning; see `Feedback`."""
        from kbkit.knowledge_base.feedback import Feedback

        return Feedback(self._handle, self.ratings, self._ingestion)

    @cached_property
    def plot(self) -> Plots:
        """Pictures; see `Plots`."""
        from kbkit.base_plots import Plots

        return Plots(self.documents, self.chunks, self.ratings)

    @property
    def id(self) -> str:
        """Permanent id."""
        return self._handle.id

    @property
    def name(self) -> str:
        """Its slug."""
        return self._handle.name

    @property
    def path(self) -> Path:
        """The folder of its workspace."""
        return self._stores.folder

    @property
    def spec(self) -> KnowledgeBaseSpec:
        """The settings: chunking, embedding, retrieval, storage, site. `configure` changes them."""
        return self._handle.spec

    def info(self) -> models.KnowledgeBaseInfo:
        """Return figures: documents, chunks, types, states, embedder, times."""
        return self._handle.info()

    def add(
        self,
        title: str,
        content: str,
        *,
        source: str = "",
        document_type: models.DocumentType | str | None = None,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> models.DocumentInfo:
        """Add one document of Markdown text, or replace the one with the same source.

        It is searchable when the call returns.

        Args:
            title: Its title.
            content: Its text, Markdown.
            source: URI that identifies it; by default ``text:`` and the title.
            document_type: Type; by default as set by `Documents.update`, else detected.
            tags: Free labels; by default as set by `Documents.update`.
            metadata: JSON values to store with it.

        Raises:
            ConfigError: Title or content is empty, or the type is unknown.
            EmbedderError: The embedder failed.
        """
        return self.documents.add(
            title, content, source=source, document_type=document_type, tags=tags, metadata=metadata
        )

    def ingest(
        self,
        *sources: AnySource | models.SourceDocument | BaseNode | Mapping[str, Any] | Iterable[Any],
        base: str | Path = ".",
        remember: bool = True,
        on_progress: OnProgress | None = None,
        stop: Stop = lambda: False,
    ) -> models.IngestReport:
        """Read sources into the knowledge base, and remember them for `refresh`.

        Unchanged content is not fetched, cut or embedded again. An interrupted ingest continues.
        Sources and documents may be mixed. A document replaces the one with its URI (see
        `kbkit.sources.llamaindex.document_events`); `refresh` does not change it.

        Args:
            sources: Parts of a recipe, such as ``CrawlSource(url="https://...")`` or the same as a
                mapping (``{"type": "crawl", "url": "https://..."}``); documents
                (`SourceDocument`); or the output of a llama-index reader's ``load_data``.
            base: Folder of relative paths.
            remember: Let `refresh` read the sources again; otherwise documents count as added by
                hand.
            on_progress: Called after each document; by default notebooks show a bar.
            stop: Called often; true ends the work cleanly.

        Returns:
            Report with failed and skipped pages and reasons.

        Raises:
            ConfigError: Something is neither a source nor a document.
            ConflictError: Another process reads one of the sources now.
            EmbedderError: The embedder failed; stored documents stay.
        """
        return self._ingestion.ingest(sources, base, on_progress, stop, remember=remember)

    def refresh(
        self,
        *,
        local: bool = False,
        on_progress: OnProgress | None = None,
        stop: Stop = lambda: False,
    ) -> models.IngestReport:
        """Read all sources again and store changes.

        Args:
            local: Only sources that read on this machine's disk.
            on_progress: Called after each document; by default notebooks show a bar.
            stop: Called often; true ends the work cleanly.

        Raises:
            ConfigError: It has no such sources.
            ConflictError: Another process reads one of the sources now.
            EmbedderError: The embedder failed; stored documents stay.
        """
        return self._ingestion.refresh(on_progress, stop, local=local)

    def sync(
        self,
        sources: AnySource | Mapping[str, Any] | Iterable[AnySource | Mapping[str, Any]],
        *,
        base: str | Path = ".",
        on_progress: OnProgress | None = None,
        stop: Stop = lambda: False,
    ) -> models.IngestReport:
        """Read the sources of a recipe, and remove those it no longer names; see `ingest`."""
        return self._ingestion.sync(sources, base, on_progress, stop)

    def improve(
        self,
        *,
        embedding: AnyEmbedding | str | None = None,
        background: bool = False,
        estimate: bool = False,
        on_progress: OnProgress | None = None,
        stop: Stop = lambda: False,
    ) -> models.Improvement:
        """Annotate chunks, and embed summaries and chunks with models.

        By default an ingest starts this in a background process (setting `KBKIT_IMPROVE`). This
        call waits for that process, or does the work itself. Until all summaries or chunks are
        embedded, searches use static vectors. Finished vectors survive an interruption.

        Args:
            embedding: New embedding of chunks, as in a recipe, or a preset (``"minilm"``); by
                default the current one.
            background: Return at once; another process does the work, and outlives this one.
            estimate: Only estimate the work, from a few texts.
            on_progress: Called during the work; by default notebooks show a bar.
            stop: Called often; true ends the work cleanly.

        Returns:
            Remaining work; false if there is none.

        Raises:
            ConfigError: There is no such preset.
            EmbedderError: An embedder cannot be opened, or failed; finished vectors stay.
            LanguageModelError: The recipe's language model failed to annotate.
            NotFoundError: The knowledge base was deleted.
        """
        spec = parse_embedding(embedding) if isinstance(embedding, str) else embedding
        if estimate:
            return self._ingestion.improving.estimate(spec)
        return self._ingestion.improving.improve(
            embedding=spec, background=background, on_progress=on_progress, stop=stop
        )

    def configure(
        self,
        spec: KnowledgeBaseSpec,
        *,
        description: str | None = None,
        if_match: str | None = None,
        on_progress: OnProgress | None = None,
        stop: Stop = lambda: False,
    ) -> models.IngestReport:
        """Change the settings; documents are split and embedded again if needed.

        A new embedder embeds all chunks again; searches use the old vectors until it is done. New
        chunking or another language cuts and indexes all documents again. Interrupted work resumes.

        Args:
            spec: New settings.
            description: New description; by default the current one.
            if_match: Expected version of the spec (`KnowledgeBaseSpec.version`).
            on_progress: Called during the work; by default notebooks show a bar.
            stop: Called often; true ends the work cleanly.

        Raises:
            VersionConflictError: Its spec has changed.
            ConflictError: Another process changes the embedder now.
            ConfigError: The language is unknown, or there is no such annotator.
            PostprocessorError: The package of a postprocessor is not installed.
            EmbedderError: An embedder cannot be opened, or failed; finished vectors stay.
        """
        return self._ingestion.configure(
            spec, description=description, if_match=if_match, on_progress=on_progress, stop=stop
        )

    def rate(
        self,
        target: str | models.Target,
        score: int,
        *,
        query: str = "",
        note: str = "",
        rater: str = "",
    ) -> models.Rating:
        """Rate a chunk or a document. Ratings are appended; the last of a rater counts.

        Args:
            target: Id of a chunk or a document, or URI of a document.
            score: 1 (useless) to 5 (exactly right).
            query: The query that found it, if any.
            note: A note.
            rater: Name of the rater; by default ``KBKIT_RATER`` or the login name.

        Raises:
            ConfigError: The score is not 1 to 5.
            NotFoundError: There is no such chunk or document.
        """
        return self.ratings.add(target, score, query=query, note=note, rater=rater)

    def export(
        self,
        *,
        folder: str | Path | None = None,
        build: bool = True,
        standalone: bool = False,
        pages_only: bool = False,
        model: bool | None = None,
        graph: bool | None = None,
        files: bool | None = None,
        entries: bool | None = None,
        on_progress: OnProgress | None = None,
    ) -> models.ExportReport:
        """Write the knowledge base as a MkDocs project, and build its site.

        Args:
            folder: Target folder; by default the recipe's, else ``export/NAME`` in the workspace.
            build: Also run MkDocs.
            standalone: Add requirements and a workflow, so that others can build the project.
            pages_only: Write only the pages, into a documentation folder of your own MkDocs site
                with the plugin ``kbkit``.
            model: Include the 23 MB model for query vectors; default: the recipe's `site.model`.
            graph: Add a page for the knowledge graph; default: the recipe's `site.graph`.
            files: Add the workspace's files as a section; default: the recipe's `site.files`.
            entries: Add its entries as a section; default: the recipe's `site.entries`.
            on_progress: Called as pages are written.

        Raises:
            ConfigError: Options contradict each other.
            ExportError: The folder is not writable or has foreign files, or MkDocs failed.
        """
        from kbkit.export.facts import SiteSection
        from kbkit.export.mkdocs.build import DOCS
        from kbkit.export.publisher import Publisher

        if self._ingestion.improving.left:  # a site shows the final state of search
            self._ingestion.improving.improve(models=False, on_progress=on_progress)
        attachments = self._handle.resources.attachments.get(self.id)
        fit = self._handle.fit_query_encoder
        publisher = Publisher(self._stores, self.id, fit, model, graph, attachments=attachments)
        if pages_only:
            if files or entries:
                raise ConfigError(
                    "pages_only: export files and entries as knowledge bases of their own: "
                    "workspace['files'].export(folder='docs/files', pages_only=True)"
                )
            if folder is None or standalone:
                raise ConfigError(
                    "pages_only: name the folder of your site's documentation, and leave out "
                    "standalone: export(folder='docs/kb', pages_only=True)"
                )
            return publisher.export_pages(Path(folder), on_progress=on_progress or ignore)
        project = Path(folder) if folder is not None else self._handle.site_folder()
        sections = []
        for row in self._stores.database.look_up(self._handle.sections, files, entries):
            section, place = KnowledgeBase(self._handle.resources, row), project / DOCS / row.id
            section.export(
                folder=place, pages_only=True, model=model, graph=False, on_progress=on_progress
            )
            title = section.spec.site.title or row.id.capitalize()
            sections.append(SiteSection(title, f"{row.id}/index.md", BUILT_IN[row.id]))
        return replace(publisher, sections=sections).export(
            project, build=build, standalone=standalone, on_progress=on_progress or ignore
        )

    def __repr__(self) -> str:
        return f"<KnowledgeBase {self.name!r} in {str(self.path)!r}>"

    def _repr_html_(self) -> str:
        return self.info()._repr_html_()


def handle_of(kb: KnowledgeBase) -> Handle:
    return kb._handle
