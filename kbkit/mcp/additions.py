"""Documents that are added to a knowledge base: all, or when that is cancelled, none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mcp.server.mcpserver.exceptions import ToolError

from kbkit.models import IngestReport, Progress, SourceDocument

if TYPE_CHECKING:
    from kbkit.knowledge_base import KnowledgeBase
    from kbkit.mcp.long_work import LongWork
    from kbkit.workspace import Workspace


def store(
    kb: KnowledgeBase, documents: Mapping[str, SourceDocument], work: LongWork
) -> IngestReport:
    """Add documents to a knowledge base, all in one moment.

    Args:
        kb: Where to.
        documents: By URI; one that is there is replaced.
        work: Hears of each, and may be cancelled: then all is as it was.

    Raises:
        ToolError: It was cancelled before they were stored.
        KbkitError: They cannot be stored; all is as it was.
    """
    from kbkit.knowledge_base import ingestion_of

    told = _Told(work, len(documents))
    report = ingestion_of(kb).take_whole(documents.values(), on_progress=told, stop=work.cancelled)
    return told.ended(report)


def create(
    workspace: Workspace,
    name: str,
    documents: Mapping[str, SourceDocument],
    work: LongWork,
    *,
    description: str,
) -> IngestReport:
    """Make a knowledge base that holds documents from its first moment.

    Args:
        workspace: Where.
        name: Its name.
        documents: By URI.
        work: Hears of each, and may be cancelled: then there is no knowledge base.
        description: What it is about.

    Raises:
        ToolError: It was cancelled before it was made.
        KbkitError: It cannot be made.
    """
    from kbkit.workspace import create_whole

    told = _Told(work, len(documents))
    report = create_whole(
        workspace, name, documents.values(), description=description, on_progress=told,
        stop=work.cancelled,
    )  # fmt: skip
    return told.ended(report)


class _Told:
    """Has a client hear of each document, and of the end when they are stored."""

    def __init__(self, work: LongWork, documents: int) -> None:
        self._work = work
        work.total = work.done + documents + 1

    def __call__(self, progress: Progress) -> None:
        if progress.stage == "store":
            self._work.step(progress.message)

    def ended(self, report: IngestReport) -> IngestReport:
        """The report.

        Raises:
            ToolError: It was cancelled, and nothing is stored.
        """
        if report.interrupted:
            raise ToolError("cancelled; nothing was added")
        self._work.step("stored")
        return report
