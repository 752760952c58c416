"""Where a document stands among those of its source, as the source's own navigation tells.

Pages say so in their breadcrumbs, in the sidebar that marks the current page, and in links to what
follows; folders of Markdown in the ``nav`` of their ``mkdocs.yml``. A document keeps it in its
metadata, under `KEYS`. It was written by strangers, so all of it is bounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kbkit.models.plain import plain

KEYS = ("breadcrumbs", "next")
"""Keys of a document's metadata that tell its place."""
DEPTH = 12
"""Most breadcrumbs."""
TITLE_LENGTH = 200
"""Most characters of a breadcrumb's title."""
URI_LENGTH = 2_000
"""Longer addresses are left out."""


@dataclass(frozen=True, slots=True)
class Crumb:
    """One step of the way from a source's front page to a document.

    Attributes:
        title: Plain text, never empty.
        uri: Of the page that it leads to, or ``""`` where it is a name only.
    """

    title: str
    uri: str = ""


@dataclass(frozen=True, slots=True)
class Navigation:
    """A document's place. It is true where something is known.

    Attributes:
        breadcrumbs: What stands above it, outermost first, without the document itself; ``None``
            where its source does not say.
        next: URI of the document that follows it, or ``""``.
    """

    breadcrumbs: tuple[Crumb, ...] | None = None
    next: str = ""

    def __bool__(self) -> bool:
        return self.breadcrumbs is not None or bool(self.next)

    @classmethod
    def stated(
        cls, breadcrumbs: Iterable[tuple[str, str]] | None = None, following: str = ""
    ) -> Navigation:
        """One out of texts that anybody wrote: bounded, and plain.

        Args:
            breadcrumbs: Title and URI of each; those without a title are left out.
            following: URI of what follows.
        """
        crumbs = None
        if breadcrumbs is not None:
            found = [
                (plain(title[: 4 * TITLE_LENGTH])[:TITLE_LENGTH].strip(), _bounded(uri))
                for title, uri in breadcrumbs
            ]
            crumbs = tuple(Crumb(title, uri) for title, uri in found if title)[-DEPTH:]
        return cls(crumbs, _bounded(following))

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> Navigation:
        """What a document's metadata tell, whoever wrote them."""
        crumbs, following = (metadata.get(key) for key in KEYS)
        known = isinstance(crumbs, list) and all(
            isinstance(crumb, list) and len(crumb) == 2 and all(isinstance(p, str) for p in crumb)
            for crumb in crumbs
        )
        return cls.stated(
            [(title, uri) for title, uri in crumbs] if known and crumbs is not None else None,
            following if isinstance(following, str) else "",
        )

    def to_metadata(self) -> dict[str, Any]:
        """Its parts by the `KEYS` of a document's metadata; what is not known is left out."""
        values: dict[str, Any] = {}
        if self.breadcrumbs is not None:
            values["breadcrumbs"] = [[crumb.title, crumb.uri] for crumb in self.breadcrumbs]
        if self.next:
            values["next"] = self.next
        return values


def _bounded(uri: str) -> str:
    return uri if len(uri) <= URI_LENGTH and uri.isprintable() else ""
