"""The date since which a page has its text.

A refresh moves the day on which every document was fetched last. If pages told it, each refresh
would rewrite all of them. So a page tells the day from which on its text is what it is, which the
manifest remembers, and the day of the last fetch stands in `documents.json`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from kbkit.models import Document

Change = Literal["first", "new", "changed"]
"""``first``: it was there when the knowledge base was first exported."""
_CHANGES: dict[str, Change] = {"first": "first", "new": "new", "changed": "changed"}


@dataclass(frozen=True, slots=True)
class Revision:
    """Since when a document has its current text.

    Attributes:
        day: Day on which it was first fetched like this (ISO), as far as exports know.
    """

    day: str
    change: Change
    digest: str

    @classmethod
    def of(cls, document: Document, before: str | None, *, first: bool) -> Revision:
        """Return a revision, based on the one of the export before."""
        digest = _digest(document)
        if before is None:
            change: Change = "first" if first else "new"
        else:
            day, change_before, known = (*before.split(), "", "", "")[:3]
            if known == digest and day and change_before in _CHANGES:
                return cls(day, _CHANGES[change_before], digest)
            change = "changed"
        return cls(document.fetched_at.date().isoformat(), change, digest)

    def encode(self) -> str:
        return f"{self.day} {self.change} {self.digest}"


def _digest(document: Document) -> str:
    text = f"{document.title}\0{document.content}"
    data = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def latest_changes(history: Mapping[str, Revision], number: int) -> list[tuple[str, Revision]]:
    """The newest changes since the first export, the newest first."""
    changes = [(uri, revision) for uri, revision in history.items() if revision.change != "first"]
    return sorted(changes, key=lambda change: (change[1].day, change[0]), reverse=True)[:number]
