"""KnowledgeBase: one named collection of documents, and all that can be done with it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kbkit.errors import EmbedderError
from kbkit.frames import info_html
from kbkit.knowledge_base.plotted import Plotted
from kbkit.models import Progress
from kbkit.progress import OnProgress
from kbkit.recipes import KnowledgeBaseSpec
from kbkit.stores import registry

if TYPE_CHECKING:
    from kbkit.export.facts import Facts
    from kbkit.export.report import ExportReport
    from kbkit.models import Document, KnowledgeBaseInfo
    from kbkit.recipes import SiteSpec


class KnowledgeBase(Plotted):
    """One knowledge base of a workspace; `Workspace` makes these."""

    def export(
        self,
        directory: str | Path | None = None,
        *,
        build: bool = True,
        standalone: bool = False,
        on_progress: OnProgress | None = None,
    ) -> ExportReport:
        """Write the knowledge base as a MkDocs project, and build its site.

        Args:
            directory: Folder of the project; by default the recipe's, or ``export/NAME`` in the
                workspace.
            build: Also run MkDocs, so that the site lies ready in the project.
            standalone: Add what others need to build the project: requirements, a workflow.
            on_progress: Called as pages are written.

        Raises:
            ExportError: The folder cannot be written, or MkDocs refuses the project.
        """
        from kbkit.export import build_html, export_site, write_standalone
        from kbkit.export.mkdocs.project import DOCS

        project = Path(directory) if directory is not None else self.site_directory()
        with self._one_version() as (info, documents, site, facts):
            report = export_site(
                info, documents, project, site, facts=facts, build=False, on_progress=on_progress
            )
        report = self._indexed(report, project / DOCS, on_progress)
        if standalone:
            write_standalone(project)
        return build_html(report, on_progress) if build else report

    def export_pages(
        self, directory: str | Path, *, on_progress: OnProgress | None = None
    ) -> ExportReport:
        """Write only the pages, into a folder of the documentation of a MkDocs site.

        Args:
            directory: The folder; the site needs the plugin ``kbkit``.
            on_progress: Called as pages are written.

        Raises:
            ExportError: The folder cannot be written, or holds files of somebody else.
        """
        from kbkit.export import export_pages

        folder = Path(directory)
        with self._one_version() as (info, documents, site, facts):
            report = export_pages(info, documents, folder, site, on_progress, facts=facts)
        return self._indexed(report, folder, on_progress)

    def _indexed(
        self, report: ExportReport, folder: Path, on_progress: OnProgress | None
    ) -> ExportReport:
        """Write the search index of pages that were exported; without chunks there is none."""
        from kbkit.export.index import is_written, write_index
        from kbkit.export.index.writer import remove_index
        from kbkit.export.manifest import Manifest
        from kbkit.knowledge_base.indexed import index_content, index_state
        from kbkit.retrieval.encoder_fitting import is_outdated

        seconds = dict(report.seconds)
        if on_progress:
            on_progress(Progress("index", 0, 1, "search index"))
        with self._resources.database.read() as connection:
            outdated = is_outdated(connection, registry.get_by_id(connection, self.id))
        start = time.perf_counter()
        if outdated:
            with suppress(EmbedderError):  # no chunk has a word: it is searched by nothing then
                self.fit_query_encoder()
            seconds["fit"] = time.perf_counter() - start
            start = time.perf_counter()
        manifest = Manifest.read(folder)
        of = (self._resources, self.id, manifest.documents, manifest.title)
        state = index_state(*of)
        if not is_written(folder, state):
            content = index_content(*of)
            if content is None:
                remove_index(folder)
            else:
                write_index(content, folder, state)
        if on_progress:
            on_progress(Progress("index", 1, 1, "search index"))
        seconds["index"] = time.perf_counter() - start
        return replace(report, seconds=seconds)

    @contextmanager
    def _one_version(
        self,
    ) -> Iterator[tuple[KnowledgeBaseInfo, Iterable[Document], SiteSpec, Facts]]:
        """What an export is made of, as one transaction sees it."""
        from kbkit.knowledge_base.facts import Listed, gather

        with self._resources.database.read() as connection:
            row = registry.get_by_id(connection, self.id)
            snapshot = self._resources.snapshots.made(connection, row)
            yield (
                registry.describe(connection, row),
                Listed(connection, self.id),
                KnowledgeBaseSpec.model_validate(row.config).site,
                gather(connection, self.id, snapshot),
            )

    def site_directory(self) -> Path:
        """Folder that `export` writes to when none is named."""
        directory = self.spec.site.directory
        return Path(directory) if directory else self._resources.folder / "export" / self.name

    def __repr__(self) -> str:
        return f"<KnowledgeBase {self.name!r} in {str(self._resources.folder)!r}>"

    def _repr_html_(self) -> str:
        return info_html(self.info())
