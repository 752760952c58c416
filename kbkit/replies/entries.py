"""Entries for an agent."""

from __future__ import annotations

from collections.abc import Iterable

from kbkit.models import Entry, EntryInfo
from kbkit.models.plain import pluralize
from kbkit.replies.listings import listing
from kbkit.replies.quotes import Quotes, part_reply
from kbkit.replies.reply import Budget, Reply
from kbkit.retrieval.citations import LINE_TOKENS, cut
from kbkit.retrieval.quoting import one_line

_MOST_FILES = 12


def entries_reply(found: Iterable[EntryInfo], *, start: int, limit: int, budget: Budget) -> Reply:
    """Entries, a line each.

    Args:
        found: The best first.
        start: How many were told before.
        limit: Most entries.
        budget: What the reply may take.
    """
    quotes = Quotes()
    rows = (
        (
            _line(info),
            {
                "slug": info.slug, "about": quotes.value(_about(info)),
                "status": info.status.value, "rating": round(info.rating.average, 1),
                "votes": info.rating.count,
            },
        )
        for info in found
    )  # fmt: skip
    return listing(
        rows, name="entries", head=f"{quotes.note}\n<{quotes.mark}>", foot=f"</{quotes.mark}>",
        nothing="No entry fits.", start=start, budget=budget, more={"note": quotes.note},
        limit=limit,
    )  # fmt: skip


def entry_reply(entry: Entry, *, start: int, budget: Budget) -> Reply:
    """An entry with its prompt, from a character on.

    Args:
        entry: It.
        start: How many characters were told before.
        budget: What the reply may take.
    """
    paths = [cut(one_line(file.path), LINE_TOKENS) for file in entry.files]
    files = cut(", ".join(paths[:_MOST_FILES]), 2 * LINE_TOKENS)
    left = f" and {len(paths) - _MOST_FILES} more" if len(paths) > _MOST_FILES else ""
    said = [_line(entry), f"updated: {entry.updated_at:%Y-%m-%d}"]
    said += [f"files: {files}{left}"] if files else []
    return part_reply(
        entry.prompt, name=entry.slug, said="\n".join(said), start=start, budget=budget,
        quoted=("title",),
        values={
            "slug": entry.slug, "title": cut(one_line(entry.title), LINE_TOKENS),
            "status": entry.status.value, "updated_at": f"{entry.updated_at:%Y-%m-%d}",
            "files": files + left,
        },
    )  # fmt: skip


def _line(info: EntryInfo) -> str:
    rated = info.rating
    votes = f", {rated.average:.1f} of 5 by {pluralize(rated.count, 'vote')}" if rated.count else ""
    status = "" if info.status.value == "active" else f", {info.status.value}"
    return f"- {info.slug}{votes}{status}: {_about(info)}"


def _about(info: EntryInfo) -> str:
    title = cut(one_line(info.title), LINE_TOKENS)
    description = cut(one_line(info.description), LINE_TOKENS)
    return f"{title}: {description}" if description else title
