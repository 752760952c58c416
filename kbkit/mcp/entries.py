"""Tools for entries, and entries as Agent Skills: resources, and methods that list them (SEP-2640).

Clients check digests, so files are complete and unchanged.
"""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import anyio.to_thread
from mcp.server.context import ServerRequestContext
from mcp.server.extension import Extension, MethodBinding
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolResult,
    PaginatedRequestParams,
    RequestParams,
    Resource,
    ResourceTemplate,
)
from pydantic import Field
from typing_extensions import TypedDict

from kbkit.errors import KbkitError, NotFoundError
from kbkit.mcp import listings, replies
from kbkit.mcp.tools import Cursor, Limit, MaxTokens, Score, Tools, current_caller, reason, result

if TYPE_CHECKING:
    from kbkit.mcp.tools import Tools
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
        return result(listings.rows_reply("entries", matches, limit=limit, budget=budget))

    @tools.read
    def get_entry(
        *, slug: Slug, max_tokens: MaxTokens = 0, cursor: Cursor = ""
    ) -> Annotated[CallToolResult, EntryText]:
        """Read a solution: instructions and names of its files."""
        budget = tools.budget(max_tokens, cursor)
        entry = tools.workspace.entries.read(slug)
        return result(listings.entry_reply(entry, budget=budget))

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


SCHEME = "skill://"
FILE = "SKILL.md"
PAGE = 20
"""Page size of the list, which reads all files for their digests."""
_CACHED_SINCE = "2026-07-28"
"""First protocol revision with cache hints."""
TEMPLATE = ResourceTemplate(
    name="skill",
    uri_template=SCHEME + "{slug}/{+path}",
    title="A file of a skill",
    description="An entry as an Agent Skill; begin with SKILL.md.",
)


class GetSkillParams(RequestParams):
    """The skill to get."""

    uri: str = ""
    """Checked later, with a better error than the SDK's."""


class Skills(Extension):
    """The entries of a workspace as skills, for callers who may see the whole workspace."""

    identifier = "io.modelcontextprotocol/skills"

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def methods(self) -> Sequence[MethodBinding]:
        return (
            MethodBinding("skills/list", PaginatedRequestParams, self._list),
            MethodBinding("skills/get", GetSkillParams, self._get),
        )

    async def _list(
        self, ctx: ServerRequestContext[Any, Any], params: PaginatedRequestParams
    ) -> dict[str, Any]:
        skills, cursor = await anyio.to_thread.run_sync(self.list_page, params.cursor or "")
        return _result(ctx, {"skills": skills} | ({"nextCursor": cursor} if cursor else {}))

    async def _get(
        self, ctx: ServerRequestContext[Any, Any], params: GetSkillParams
    ) -> dict[str, Any]:
        if not params.uri:
            message = f"uri: is missing; give that of a skill, {SCHEME}SLUG/{FILE}"
            raise MCPError(code=INVALID_PARAMS, message=message)
        try:
            slug, path = _split_uri(params.uri)
            if path != FILE:
                raise ResourceNotFoundError(f"{params.uri[:200]}: is no {SCHEME}SLUG/{FILE}")
            files = await anyio.to_thread.run_sync(self._files, slug)
        except ResourceNotFoundError as error:
            raise MCPError(code=INVALID_PARAMS, message=str(error)) from None
        return _result(ctx, {"skill": _entry(slug, files)})

    def list_page(self, cursor: str) -> tuple[list[dict[str, Any]], str]:
        """Return a page of skills and the cursor of the next."""
        try:
            start = replies.read_cursor(cursor)
        except KbkitError as error:
            raise MCPError(code=INVALID_PARAMS, message=str(error)) from None
        slugs, total = self._slugs(start)
        skills = []
        for slug in slugs:
            try:
                skills.append(_entry(slug, self._files(slug)))
            except ResourceNotFoundError:  # unreadable skills are left out
                continue
        end = start + PAGE
        return skills, replies.write_cursor(end) if end < total else ""

    def resources(self) -> Sequence[Any]:
        """Return no fixed resources; `WorkspaceServer` lists them."""
        return ()

    def first(self) -> list[Resource]:
        """Return the first skills as resources; ``skills/list`` has all."""
        return [
            Resource(
                name=skill["frontmatter"]["name"],
                uri=skill["uri"],
                mime_type="text/markdown",
                description=skill["frontmatter"]["description"],
            )
            for skill in self.list_page("")[0]
        ]

    def read(self, uri: str) -> ReadResourceContents:
        slug, path = _split_uri(uri)
        files = self._files(slug)
        if path not in files:
            names = ", ".join(sorted(files))[:300]
            missing = NotFoundError(f"{uri[:200]}: does not exist; the skill has {names}")
            raise ResourceNotFoundError(reason(missing))
        data = files[path]
        kind = "text/markdown" if path.endswith(".md") else mimetypes.guess_type(path)[0]
        try:
            return ReadResourceContents(data.decode("utf-8"), kind or "text/plain")
        except UnicodeDecodeError:
            return ReadResourceContents(data, kind or "application/octet-stream")

    def _slugs(self, start: int) -> tuple[list[str], int]:
        if current_caller.get().kbs:
            return [], 0
        entries = self._tools.workspace.entries
        page = entries.list(status="active", sort="title", limit=PAGE, offset=start)
        return [info.slug for info in page.entries], page.total

    def _files(self, slug: str) -> dict[str, bytes]:
        from kbkit.entries.entries import skill_of

        if current_caller.get().kbs:
            raise ResourceNotFoundError("this token is for some knowledge bases alone")
        try:
            return skill_of(self._tools.workspace.entries, slug)
        except KbkitError as error:
            raise ResourceNotFoundError(reason(error)) from None


def _result(ctx: ServerRequestContext[Any, Any], values: dict[str, Any]) -> dict[str, Any]:
    if ctx.protocol_version < _CACHED_SINCE:
        return values
    return {"resultType": "complete", **values, "ttlMs": 0, "cacheScope": "private"}


def _split_uri(uri: str) -> tuple[str, str]:
    slug, _, path = uri.removeprefix(SCHEME).partition("/")
    if not uri.startswith(SCHEME) or not slug or not path:
        raise ResourceNotFoundError(f"{uri[:200]}: is no {SCHEME}SLUG/{FILE}")
    return slug, path


def _entry(slug: str, files: dict[str, bytes]) -> dict[str, Any]:
    from kbkit.entries.agent_skills import front_matter_of

    return {
        "uri": f"{SCHEME}{slug}/{FILE}",
        "frontmatter": front_matter_of(files[FILE]),
        "resources": [
            {
                "uri": f"{SCHEME}{slug}/{path}",
                "digest": f"sha256:{hashlib.sha256(data).hexdigest()}",
                "size": len(data),
            }
            for path, data in sorted(files.items())
        ],
    }
