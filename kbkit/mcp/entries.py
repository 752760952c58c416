"""Tools for entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from mcp_types import CallToolResult
from pydantic import Field
from typing_extensions import TypedDict

from kbkit.errors import KbkitError
from kbkit.mcp import replies
from kbkit.mcp.tools import Cursor, Limit, MaxTokens, Score, Tools, result

if TYPE_CHECKING:
    from kbkit.models import Entry

Slug = Annotated[str, Field(description="Name of the entry.")]


class EntryRow(TypedDict):
    """An entry."""

    slug: str
    about: str
    status: str
    rating: float
    votes: int


class EntryRows(TypedDict):
    """Entries."""

    note: str
    entries: list[EntryRow]
    next_cursor: str


class EntryText(TypedDict):
    """An entry with its prompt, or a part of it."""

    note: str
    slug: str
    title: str
    status: str
    updated_at: str
    files: str
    first_line: int
    last_line: int
    text: str
    next_cursor: str


class RatedEntry(TypedDict):
    """An entry and its rating."""

    slug: str
    rating: float
    votes: int


def add(tools: Tools) -> None:
    @tools.read
    def find_entries(
        *,
        query: Annotated[str, Field(description="A task; empty lists the best rated.")] = "",
        limit: Limit = 10,
        max_tokens: MaxTokens = 0,
        cursor: Cursor = "",
    ) -> Annotated[CallToolResult, EntryRows]:
        """Find solutions that worked before, ranked by fit and rating."""
        budget = tools.budget(max_tokens, cursor)
        entries = tools.workspace.entries
        if query.strip():
            matches = entries.find(query, limit=budget.start + limit + 1)
        else:
            matches = list(entries.list(status="active", limit=budget.start + limit + 1).entries)
        return result(replies.entries_reply(matches, limit=limit, budget=budget))

    @tools.read
    def get_entry(
        *, slug: Slug, max_tokens: MaxTokens = 0, cursor: Cursor = ""
    ) -> Annotated[CallToolResult, EntryText]:
        """Read a solution: instructions and names of its files."""
        budget = tools.budget(max_tokens, cursor)
        entry = tools.workspace.entries.read(slug)
        return result(replies.entry_reply(entry, budget=budget))

    @tools.write(destructive=False, idempotent=False)
    def create_entry(
        *,
        title: str,
        prompt: Annotated[str, Field(description="Instructions in Markdown.")],
        description: Annotated[str, Field(description="Its purpose.")] = "",
        tags: tuple[str, ...] = (),
        category: str = "",
    ) -> Annotated[CallToolResult, RatedEntry]:
        """Record a solution that worked, for the next such task."""
        entry = tools.workspace.entries.create(
            title, description=description, prompt=prompt, tags=tags, category=category
        )
        return _rated(entry, "is stored")

    @tools.write(destructive=False, idempotent=False)
    def rate_entry(*, slug: Slug, score: Score) -> Annotated[CallToolResult, RatedEntry]:
        """Rate how well a solution worked, 1 (not at all) to 5 (perfectly)."""
        return _rated(tools.workspace.entries.rate(slug, score), "is rated")

    @tools.write(destructive=True, idempotent=True)
    def learn_entry(
        *,
        folder: Annotated[str, Field(description="Of the task; has .knowledge/skill.yaml.")],
        task_id: str = "",
    ) -> Annotated[CallToolResult, RatedEntry]:
        """Create or update an entry from the folder of a finished task."""
        place, _ = tools.rooted_path(folder)
        try:
            entry = tools.workspace.entries.learn(place, task_id=task_id)
        except KbkitError as error:  # hide the path on the server
            error.args = (str(error).replace(str(place), folder), *error.args[1:])
            raise
        return _rated(entry, "is learned")


def _rated(entry: Entry, done: str) -> CallToolResult:
    rating = round(entry.rating.average, 1)
    values = {"slug": entry.slug, "rating": rating, "votes": entry.rating.count}
    return result(replies.Reply(f"{entry.slug} {done}.", values))
