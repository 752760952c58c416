"""What a workspace that a server holds speaks of."""

from __future__ import annotations

from collections.abc import Sequence

from kbkit.client.calls import Request, call, reads, reads_many
from kbkit.errors import ConfigError
from kbkit.models import About, Subject, SubjectKind
from kbkit.validation import check_text


class SubjectCalls:
    """What is asked of the subjects of knowledge bases."""

    @call
    def subjects(
        self,
        *,
        kind: str | SubjectKind | None = None,
        like: str = "",
        kbs: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> Request[list[Subject]]:
        """Subjects that chunks speak of, those that most speak of first."""
        asked = {"kind": kind, "like": check_text("like", like), "kbs": names(kbs), "limit": limit}
        return Request("GET", "/api/knowledge/subjects", reads_many(Subject), asked)

    @call
    def about(
        self, query: str, *, kbs: Sequence[str] | None = None, limit: int = 20
    ) -> Request[About]:
        """What speaks of a subject: chunks, documents, and entities beside it."""
        asked = {"query": check_text("query", query), "kbs": names(kbs), "limit": limit}
        return Request("GET", "/api/knowledge/about", reads(About), asked)


def names(kbs: Sequence[str] | None) -> list[str] | None:
    """Names of knowledge bases, or ``None`` for all.

    Raises:
        ConfigError: An empty list names none.
    """
    if kbs is None:
        return None
    if not kbs:
        raise ConfigError("kbs is empty: name a knowledge base, or leave kbs out for all")
    return [kbs] if isinstance(kbs, str) else list(kbs)
