"""Collections for an agent: what one holds, and what was added to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kbkit.models import Document, IngestReport, KnowledgeBaseInfo, Problem
from kbkit.models.plain import pluralize
from kbkit.replies.listings import listing
from kbkit.replies.quotes import Quotes
from kbkit.replies.reply import Budget, Reply
from kbkit.retrieval.citations import LINE_TOKENS, cut
from kbkit.retrieval.quoting import one_line

_ID_TOKENS = 120
_MOST_SKIPPED = 5


def collection_reply(
    info: KnowledgeBaseInfo, documents: Iterable[Document], *, start: int, budget: Budget
) -> Reply:
    """A collection with its documents, a line each.

    Args:
        info: Its figures.
        documents: What it holds.
        start: How many documents were told before.
        budget: What the reply may take.
    """
    quotes = Quotes()
    about = cut(one_line(info.description), LINE_TOKENS)
    figures = f"{pluralize(info.documents, 'document')}, {pluralize(info.chunks, 'chunk')}"
    updated = f"{info.updated_at:%Y-%m-%d}"
    head = f"{info.name}: {figures}, updated {updated}.\n{quotes.note}\n<{quotes.mark}>"
    if about:
        head += f"\n{about}"
    return listing(
        (_document(each, quotes) for each in documents), name="documents", head=head,
        foot=f"</{quotes.mark}>",
        nothing=f"{info.name} holds no document yet.",
        start=start, budget=budget,
        more={
            "note": quotes.note, "collection_name": info.name,
            "description": quotes.value(about), "documents_in_all": info.documents,
            "chunks": info.chunks, "updated_at": updated,
        },
    )  # fmt: skip


def added_reply(name: str, report: IngestReport, skipped: list[Problem]) -> Reply:
    """What was added to a collection.

    Args:
        name: Of the collection.
        report: What was stored.
        skipped: What could not be read, and why.
    """
    left = [*skipped, *report.failed, *report.skipped]
    told = [
        cut(one_line(f"{each.uri}: {each.reason}"), LINE_TOKENS) for each in left[:_MOST_SKIPPED]
    ]
    if len(left) > _MOST_SKIPPED:
        told.append(f"and {len(left) - _MOST_SKIPPED:,} more")
    added = pluralize(report.new, "new document")
    text = f"{name}: {added}, {report.changed:,} changed, {report.same:,} as they were"
    text += f"; {pluralize(report.chunks_added, 'chunk')} to search now."
    if told:
        text += "\nLeft out:\n" + "\n".join(f"- {line}" for line in told)
    return Reply(
        text,
        {
            "collection_name": name, "new": report.new, "changed": report.changed,
            "same": report.same, "chunks": report.chunks_added, "left_out": told,
        },
    )  # fmt: skip


def _document(info: Document, quotes: Quotes) -> tuple[str, dict[str, Any]]:
    known_as = one_line(info.uri)
    if cut(known_as, _ID_TOKENS) != known_as:
        known_as = info.id
    title = cut(one_line(info.title), LINE_TOKENS)
    return f"- {known_as}: {title}", {"id": known_as, "title": quotes.value(title)}
