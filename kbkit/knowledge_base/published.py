"""KnowledgeBase: one named collection of documents, and all that can be done with it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kbkit.frames import info_html
from kbkit.knowledge_base.plotted import Plotted
from kbkit.progress import OnProgress
from kbkit.recipes import KnowledgeBaseConfig
from kbkit.stores import registry

if TYPE_CHECKING:
    from kbkit.export.report import ExportReport


class KnowledgeBase(Plotted):
    """One knowledge base of a workspace; `Workspace` makes these."""

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
        from kbkit.export import build_html, export_site
        from kbkit.knowledge_base.facts import Listed, gather

        with self._resources.database.read() as connection:  # all pages show one version
            row = registry.get_by_id(connection, self.id)
            snapshot = self._resources.snapshots.made(connection, row)
            report = export_site(
                registry.describe(connection, row),
                Listed(connection, self.id),
                Path(directory) if directory is not None else self.site_directory(),
                KnowledgeBaseConfig.model_validate(row.config).site,
                facts=gather(connection, self.id, snapshot),
                build=False,
                on_progress=on_progress,
            )
        return build_html(report, on_progress) if build else report

    def site_directory(self) -> Path:
        """Folder that `export` writes to when none is named."""
        directory = self.config().site.directory
        return Path(directory) if directory else self._resources.folder / "export" / self.name

    def __repr__(self) -> str:
        return f"<KnowledgeBase {self.name!r} in {str(self._resources.folder)!r}>"

    def _repr_html_(self) -> str:
        return info_html(self.describe())
