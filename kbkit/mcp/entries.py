"""Tools for entries."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from kbkit.errors import KbkitError
from kbkit.mcp.replies import Budget, PartValues, Reply, listing, part_reply, short
from kbkit.mcp.tools import Limit, Score, Tools, page_type
from kbkit.models import Entry, EntryInfo
from kbkit.models.values import pluralize
from kbkit.retrieval.delimiting import LINE_TOKENS, cut

Slug = Annotated[str, Field(description="Name of the entry.")]


class EntryRow(TypedDict):
    """An entry."""

    slug: str
    about: str
    status: str
    rating: float
    votes: int


class EntryText(PartValues):
    """An entry with its prompt, or a part of it."""

    slug: str
    title: str
    status: str
    updated_at: str
    files: str


class RatedEntry(TypedDict):
    """An entry and its rating."""

    slug: str
    rating: float
    votes: int


def add(tools: Tools) -> None:
    @tools.read(page_type("entries", EntryRow))
    def find_entries(
        *,
        query: Annotated[str, Field(description="A task; empty lists the best rated.")] = "",
        limit: Limit = 10,
        budget: Budget,
    ) -> Reply:
        """Find solutions that worked before, ranked by fit and rating."""
        entries = tools.workspace.entries
        if query.strip():
            matches = entries.find(query, limit=budget.start + limit + 1)
        else:
            matches = list(entries.list(status="active", limit=budget.start + limit + 1).entries)
        rows, nothing = map(_row, matches), "No entry fits."
        return listing(rows, name="entries", nothing=nothing, limit=limit, budget=budget)

    @tools.read(EntryText)
    def get_entry(*, slug: Slug, budget: Budget) -> Reply:
        """Read a solution: instructions and names of its files."""
        return _text(tools.workspace.entries.read(slug), budget=budget)

    @tools.write(RatedEntry, destructive=False, idempotent=False)
    def create_entry(
        *,
        title: str,
        prompt: Annotated[str, Field(description="Instructions in Markdown.")],
        description: Annotated[str, Field(description="Its purpose.")] = "",
        tags: tuple[str, ...] = (),
        category: str = "",
    ) -> Reply:
        """Record a solution that worked, for the next such task."""
        entry = tools.workspace.entries.create(
            title, description=description, prompt=prompt, tags=tags, category=category
        )
        return _rating_reply(entry, "is stored")

    @tools.write(RatedEntry, destructive=False, idempotent=False)
    def rate_entry(*, slug: Slug, score: Score) -> Reply:
        """Rate how well a solution worked, 1 (not at all) to 5 (perfectly)."""
        return _rating_reply(tools.workspace.entries.rate(slug, score), "is rated")

    @tools.write(RatedEntry, destructive=True, idempotent=True)
    def learn_entry(
        *,
        folder: Annotated[str, Field(description="Of the task; has .knowledge/skill.yaml.")],
        task_id: str = "",
    ) -> Reply:
        """Create or update an entry from the folder of a finished task."""
        path, _ = tools.rooted_path(folder)
        try:
            entry = tools.workspace.entries.learn(path, task_id=task_id)
        except KbkitError as error:  # hide the path on the server
            error.args = (str(error).replace(str(path), folder), *error.args[1:])
            raise
        return _rating_reply(entry, "is learned")


def _rating_reply(entry: Entry, outcome: str) -> Reply:
    rating = round(entry.rating.average, 1)
    values = RatedEntry(slug=entry.slug, rating=rating, votes=entry.rating.count)
    return Reply(f"{entry.slug} {outcome}.", values)


_MAX_FILES = 12


def _text(entry: Entry, *, budget: Budget) -> Reply:
    """Return an entry with a page of its prompt."""
    paths = [short(file.path) for file in entry.files]
    files = cut(", ".join(paths[:_MAX_FILES]), 2 * LINE_TOKENS)
    ending = f" and {len(paths) - _MAX_FILES} more" if len(paths) > _MAX_FILES else ""
    day = f"{entry.updated_at:%Y-%m-%d}"
    lines = [_line(entry), f"updated: {day}"]
    lines += [f"files: {files}{ending}"] if files else []
    values = {"slug": entry.slug, "title": short(entry.title), "status": entry.status.value}
    values |= {"updated_at": day, "files": files + ending}
    return part_reply(
        entry.prompt, name=entry.slug, heading="\n".join(lines), budget=budget, values=values
    )


def _row(info: EntryInfo) -> tuple[str, EntryRow]:
    about, status = _about(info), info.status.value
    rating, votes = round(info.rating.average, 1), info.rating.count
    values = EntryRow(slug=info.slug, about=about, status=status, rating=rating, votes=votes)
    return _line(info), values


def _line(info: EntryInfo) -> str:
    rated = info.rating
    votes = f", {rated.average:.1f} of 5 by {pluralize(rated.count, 'vote')}" if rated.count else ""
    status = "" if info.status.value == "active" else f", {info.status.value}"
    return f"- {info.slug}{votes}{status}: {_about(info)}"


def _about(info: EntryInfo) -> str:
    title = short(info.title)
    description = short(info.description)
    return f"{title}: {description}" if description else title
