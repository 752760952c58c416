"""Publishes a knowledge base: its pages, the index that browsers search, and the built site."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from kbkit.errors import EmbedderError
from kbkit.export import ExportReport, build_site, export_pages, write_project, write_standalone
from kbkit.export.facts import GraphFacts, SiteSection
from kbkit.export.index import is_written, remove_index, write_index
from kbkit.export.index.stemmers import check_stemmers
from kbkit.export.manifest import Manifest
from kbkit.export.mkdocs.project import DOCS
from kbkit.export.pages.graph_page import kept_pages
from kbkit.export.pages.writer import remove_pages
from kbkit.models import Progress
from kbkit.progress import OnProgress
from kbkit.publishing.archives import Attachments, downloads
from kbkit.publishing.facts import gather_facts
from kbkit.publishing.graph_facts import GraphView, look_at_graph
from kbkit.publishing.index_content import index_content, index_state, to_fit
from kbkit.publishing.stored_documents import StoredDocuments
from kbkit.retrieval.encoder_fitting import is_outdated
from kbkit.stores.catalog import annotated_chunks, entries, knowledge_bases
from kbkit.stores.catalog.built_in import BUILT_IN, ENTRIES
from kbkit.stores.catalog.configs import spec_of
from kbkit.stores.catalog.query_encoders import EncoderTarget
from kbkit.stores.stores import Stores


@dataclass(frozen=True, slots=True)
class Publisher:
    """Publishes one knowledge base.

    Attributes:
        stores: Of its workspace.
        kb_id: The knowledge base.
        fit: Fits its query encoder for chunks or for cards anew; called where what it holds has
            changed.
        model: Whether browsers get the model that embeds queries; by default as its recipe says.
        graph: Whether its graph gets a page; by default as its recipe says.
        sections: What else the site has.
        attachments: Gives the files of its documents, where they have some.
    """

    stores: Stores
    kb_id: str
    fit: Callable[[EncoderTarget], object]
    model: bool | None = None
    graph: bool | None = None
    sections: Sequence[SiteSection] = ()
    attachments: Attachments | None = None

    def export(
        self,
        folder: Path,
        *,
        build: bool = True,
        standalone: bool = False,
        on_progress: OnProgress | None = None,
    ) -> ExportReport:
        """Write the knowledge base as a MkDocs project, and build its site.

        Args:
            folder: Of the project: ``mkdocs.yml``, ``docs`` and, once built, ``site``.
            build: Also run MkDocs, in its strict mode, so that the site lies ready in the project.
            standalone: Add what others need to build the project: requirements, a workflow.
            on_progress: Called after each page (stage ``export``), and before and after the index
                and the build (stages ``index`` and ``site``).

        Raises:
            ExportError: The folder cannot be written, or MkDocs refuses the project.
            ConflictError: Another process exports into it.
            MissingExtraError: The extra ``site`` is not installed.
        """
        report = replace(self._export(folder / DOCS, on_progress, project=folder), folder=folder)
        if standalone:
            write_standalone(folder)
        if not build:
            return report
        start = time.perf_counter()
        _tell(on_progress, "site", 0, "mkdocs build")
        site = build_site(folder)
        _tell(on_progress, "site", 1, str(site))
        seconds = {**report.seconds, "site": time.perf_counter() - start}
        return replace(report, site=site, seconds=seconds)

    def export_pages(self, folder: Path, *, on_progress: OnProgress | None = None) -> ExportReport:
        """Write only the pages and their index, into a folder of the documentation of a site.

        Args:
            folder: The folder; the site needs the plugin ``kbkit``.
            on_progress: Called after each page, and before and after the index.

        Raises:
            ExportError: The folder cannot be written, or holds files of somebody else.
            ConflictError: Another process exports into it.
            MissingExtraError: The extra ``site`` is not installed.
        """
        return self._export(folder, on_progress)

    def _export(
        self, folder: Path, on_progress: OnProgress | None, *, project: Path | None = None
    ) -> ExportReport:
        check_stemmers()  # before the work is done
        graph = self._graph(folder)
        with self.stores.database.read() as transaction:
            row = knowledge_bases.get_by_id(transaction, self.kb_id)
            info = knowledge_bases.describe(transaction, row)
            site = spec_of(row).site
            if self.kb_id in BUILT_IN and not site.title:
                site = site.model_copy(update={"title": row.name.capitalize()})
            if project is not None:
                write_project(project, info, site)
            facts = gather_facts(
                transaction,
                self.kb_id,
                self.stores.snapshots.made(transaction, row),
                site.questions,
                graph,
            )
            documents = StoredDocuments(transaction, self.kb_id)
            archives = {}
            if self.attachments is not None:
                uris = {document.id: document.uri for document in documents}
                archives = downloads(uris, self.attachments)
            report = export_pages(
                info,
                documents,
                folder,
                site,
                on_progress,
                images=self.stores.images.read,
                facts=replace(
                    facts,
                    sections=self.sections,
                    downloads=archives,
                    best=entries.best(transaction) if self.kb_id == ENTRIES else (),
                ),
            )
        _tell(on_progress, "index", 0, "search index")
        seconds = {**report.seconds, **self._fit(on_progress), **self._write_index(folder)}
        _tell(on_progress, "index", 1, "search index")
        return replace(report, seconds=seconds)

    def _graph(self, folder: Path) -> GraphView | GraphFacts | None:
        """What is drawn of its graph, if that is to have a page; what the folder has, if it is."""
        with self.stores.database.read() as transaction:
            row = knowledge_bases.get_by_id(transaction, self.kb_id)
            known = annotated_chunks.graph_state(transaction, self.kb_id)
        site = spec_of(row).site
        if not (site.graph if self.graph is None else self.graph):
            return None
        state = f"{version('kbkit')} {known} {site.title or row.name}"
        if kept := kept_pages(folder, state):
            return GraphFacts(state=state, pages=kept)
        return look_at_graph(self.stores, row.name, state)

    def _fit(self, on_progress: OnProgress | None) -> dict[str, float]:
        """Fit the query encoders that are due.

        Returns:
            The seconds of stage ``fit``, if there were any.
        """
        with self.stores.database.read() as transaction:
            row = knowledge_bases.get_by_id(transaction, self.kb_id)
            due = [target for target in to_fit(row) if is_outdated(transaction, row, target)]
        if not due:
            return {}
        start = time.perf_counter()
        for number, target in enumerate(due):
            _tell(on_progress, "fit", number, f"query encoder for {target}", len(due))
            # no chunk has a word, or the model is missing: these vectors are not searched then
            with suppress(EmbedderError):
                self.fit(target)
        _tell(on_progress, "fit", len(due), "query encoders", len(due))
        return {"fit": time.perf_counter() - start}

    def _write_index(self, folder: Path) -> dict[str, float]:
        """Write the search index of pages that were exported; without chunks there is none.

        Returns:
            The seconds of stage ``index``.
        """
        start = time.perf_counter()
        manifest = Manifest.read(folder)
        of = (self.stores, self.kb_id, manifest.documents, manifest.title)
        state = index_state(*of, model=self.model)
        if not is_written(folder, state):
            content = index_content(*of, model=self.model)
            if content is None:
                remove_index(folder)
            else:
                write_index(content, folder, state)
        return {"index": time.perf_counter() - start}


def section_folder(project: Path, kb: str) -> Path:
    """Where a project has the pages of another knowledge base than its own."""
    return project / DOCS / kb


def withdraw(folder: Path, kb: str) -> None:
    """Remove the pages and the index of a knowledge base that were exported into a folder.

    Args:
        folder: The folder; files that no export wrote stay.
        kb: Name of the knowledge base; pages of another one stay.

    Raises:
        ExportError: The folder cannot be written.
        ConflictError: Another process exports into it.
    """
    if Manifest.read(folder).kb == kb:
        remove_index(folder)
        remove_pages(folder, kb)


def _tell(
    on_progress: OnProgress | None, stage: str, done: int, message: str, total: int = 1
) -> None:
    if on_progress is not None:
        on_progress(Progress(stage, done, total, message))
