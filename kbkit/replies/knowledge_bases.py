"""Knowledge bases for an agent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kbkit.models import KnowledgeBaseInfo
from kbkit.models.plain import pluralize
from kbkit.replies.listings import listing
from kbkit.replies.quotes import Quotes
from kbkit.replies.reply import Budget, Reply
from kbkit.retrieval.citations import LINE_TOKENS, cut
from kbkit.retrieval.quoting import one_line


def knowledge_bases_reply(
    found: Iterable[KnowledgeBaseInfo], *, start: int, budget: Budget
) -> Reply:
    """Knowledge bases with what they hold, a line each.

    Args:
        found: Them.
        start: How many were told before.
        budget: What the reply may take.
    """
    quotes = Quotes()
    return listing(
        (row_of(info, quotes) for info in found), name="knowledge_bases",
        head=f"{quotes.note}\n<{quotes.mark}>", foot=f"</{quotes.mark}>",
        nothing="There is no knowledge base yet.", start=start, budget=budget,
        more={"note": quotes.note},
    )  # fmt: skip


def row_of(info: KnowledgeBaseInfo, quotes: Quotes) -> tuple[str, dict[str, Any]]:
    """A line, which has to stand in a quote, and values of a knowledge base."""
    about = cut(one_line(info.description), LINE_TOKENS)
    updated = f"{info.updated_at:%Y-%m-%d}"
    documents = pluralize(info.documents, "document")
    line = f"- {info.name}{f': {about}' if about else ''} ({documents}, updated {updated})"
    return line, {
        "name": info.name, "description": about and quotes.value(about),
        "documents": info.documents,
        "chunks": info.chunks, "updated_at": updated,
    }  # fmt: skip
