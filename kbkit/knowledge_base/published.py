"""KnowledgeBase: one named collection of documents, and all that can be done with it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kbkit.frames import info_html
from kbkit.knowledge_base.plotted import Plotted
from kbkit.progress import OnProgress

if TYPE_CHECKING:
    from kbkit.export import ExportReport
    from kbkit.publishing.publisher import Publisher


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
        project = Path(directory) if directory is not None else self.site_directory()
        return self._publisher().export(
            project, build=build, standalone=standalone, on_progress=on_progress
        )

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
        return self._publisher().export_pages(Path(directory), on_progress=on_progress)

    def _publisher(self) -> Publisher:
        from kbkit.publishing.publisher import Publisher

        return Publisher(self._stores, self.id, self.fit_query_encoder)

    def site_directory(self) -> Path:
        """Folder that `export` writes to when none is named."""
        directory = self.spec.site.directory
        return Path(directory) if directory else self._stores.folder / "export" / self.name

    def __repr__(self) -> str:
        return f"<KnowledgeBase {self.name!r} in {str(self._stores.folder)!r}>"

    def _repr_html_(self) -> str:
        return info_html(self.info())
