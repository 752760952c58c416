"""What an export did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kbkit.models import Value


@dataclass(frozen=True, slots=True)
class ExportReport(Value):
    """What an export did. Pages count documents, sections and the home page alike.

    Attributes:
        folder: Of the Markdown pages or, of a whole export, the MkDocs project.
        site: Folder of the built site, or ``None`` when none was built.
        documents: Documents that have a page.
        written: Pages that are new or differ from what was there.
        unchanged: Pages that were already as they should be and were left alone.
        removed: Pages of an earlier export that are no longer wanted.
        seconds: Time by stage: ``pages``, ``fit`` (of the query encoder, where that was due),
            ``index`` (of the search) and, where a site was built, ``site``.
    """

    folder: Path
    site: Path | None = None
    documents: int = 0
    written: int = 0
    unchanged: int = 0
    removed: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
