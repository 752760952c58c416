"""Since when the pages of an export say what they say.

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

How = Literal["first", "new", "changed"]
"""``first``: it was there when the knowledge base was first exported."""
_HOW: dict[str, How] = {"first": "first", "new": "new", "changed": "changed"}


@dataclass(frozen=True, slots=True)
class Since:
    """From when a document's text is what it is.

    Attributes:
        day: Day on which it was first fetched like this (ISO), as far as exports know.
        how: What happened then.
        digest: Stands for its text.
    """

    day: str
    how: How
    digest: str

    @classmethod
    def of(cls, document: Document, before: str | None, *, first: bool) -> Since:
        """Go on from what the export before noted.

        Args:
            document: As it is now.
            before: What `note` gave then; ``None`` where it was not there.
            first: This is the first export of the knowledge base.
        """
        digest = _digest(document)
        if before is None:
            how: How = "first" if first else "new"
        else:
            day, how_before, known = (*before.split(), "", "", "")[:3]
            if known == digest and day and how_before in _HOW:
                return cls(day, _HOW[how_before], digest)
            how = "changed"
        return cls(document.fetched_at.date().isoformat(), how, digest)

    def note(self) -> str:
        """What the manifest keeps."""
        return f"{self.day} {self.how} {self.digest}"


def _digest(document: Document) -> str:
    text = f"{document.title}\0{document.content}"
    data = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def latest(history: Mapping[str, Since], number: int) -> list[tuple[str, Since]]:
    """The newest changes since the first export, the newest first."""
    changes = [(uri, since) for uri, since in history.items() if since.how != "first"]
    return sorted(changes, key=lambda change: (change[1].day, change[0]), reverse=True)[:number]
