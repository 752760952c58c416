"""Upload files into a knowledge base."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kbkit.errors import NotFoundError, SourceError
from kbkit.models import IngestReport, Problem, Progress

if TYPE_CHECKING:
    from kbkit.panels.homes import AnyBase
    from kbkit.progress import OnProgress


def add_files(
    kb: AnyBase,
    files: Sequence[tuple[str, bytes]],
    on_progress: OnProgress,
    stop: Callable[[], bool],
) -> IngestReport:
    """Read files that came as bytes; one of the same name is replaced."""
    from kbkit.sources.disk.files import read_file

    new = changed = same = 0
    skipped: list[Problem] = []
    report = IngestReport()
    for number, (name, data) in enumerate(files, 1):
        if stop():
            return replace(report, interrupted=True)
        try:
            documents = read_file(name, data)
        except SourceError as error:
            skipped.append(Problem(name, str(error).removeprefix(f"{name}: ")))
            documents = []
        for document in documents:
            uri = f"upload:{document.uri}"
            try:
                before = kb.documents[uri].content_hash
            except NotFoundError:
                before = ""
            kb.add(
                document.title,
                document.content,
                source=uri,
                document_type=document.document_type,
                tags=document.tags,
                metadata=document.metadata,
            )
            after = kb.documents[uri].content_hash
            new += not before
            changed += bool(before) and before != after
            same += before == after
        report = IngestReport(
            new=new, changed=changed, same=same, fetched=number, skipped=tuple(skipped)
        )
        on_progress(Progress("store", number, len(files), name, report))
    return report
