"""Request bodies for entries and the graph."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BaseModel, Field, StrictFloat, StrictInt

from kbkit.entries.folders import MAX_FILES, MAX_LENGTH
from kbkit.entries.skill_file import MAX_DESCRIPTION_LENGTH, MAX_TAGS, MAX_TITLE_LENGTH
from kbkit.errors import VersionConflictError
from kbkit.models import EntryInfo, EntryStatus
from kbkit.retrieval.context import MIN_TOKENS
from kbkit.server.parameters import NOT_BLANK, WHOLE, Body, Options
from kbkit.server.uploads import Content

MAX = 1_000_000
_SLUG = "^(?:[a-z0-9]+(?:-[a-z0-9]+)*)?$"


class EntryList(BaseModel):
    """A page of entries."""

    data: list[EntryInfo] = Field(description="Entries of this page.")
    total: int = Field(description="Number of all entries.")
    page: int = Field(description="Number of this page, from 1.")


FilePath = Annotated[str, Field(min_length=1)]
Title = Annotated[str, Field(max_length=MAX_TITLE_LENGTH, json_schema_extra={"pattern": NOT_BLANK})]
Line = Annotated[str, Field(max_length=MAX_TITLE_LENGTH)]
Description = Annotated[str, Field(max_length=MAX_DESCRIPTION_LENGTH)]
Tags = Annotated[list[str], Field(max_length=MAX_TAGS)]
Prompt = Annotated[str, Field(json_schema_extra={"pattern": NOT_BLANK})]
Limit = Annotated[StrictInt, Field(ge=1, le=MAX), WHOLE]
Tokens = Annotated[StrictInt, Field(ge=MIN_TOKENS, le=MAX), WHOLE]
Slug = Annotated[str, Field(max_length=MAX_LENGTH, json_schema_extra={"pattern": _SLUG})]


class NewEntry(Body):
    """A new entry."""

    title: Title = Field(description="One line.")
    slug: Slug = Field("", description="Name of its folder; by default made from the title.")
    description: Description = Field("", description="Its purpose, which search uses.")
    prompt: str = Field("", description="Instructions for an agent.")
    readme: str = Field("", description="Readme for people.")
    tags: Tags = Field([], description="Free labels.")
    category: Line = Field("", description="Its domain.")
    status: EntryStatus = Field(EntryStatus.ACTIVE, description="Whether it is in use.")
    files: dict[FilePath, Content] = Field(
        default_factory=dict, description="Other files, by path within it: text, or `base64`."
    )


class EntryChange(Body):
    """Changes of an entry; omitted or null fields stay."""

    title: Title | None = Field(None, description="One line.")
    description: Description | None = Field(None, description="Its purpose.")
    prompt: str | None = Field(None, description="Instructions for an agent.")
    readme: str | None = Field(None, description="Readme for people.")
    tags: Tags | None = Field(None, description="Free labels.")
    category: Line | None = Field(None, description="Its domain.")
    status: EntryStatus | None = Field(None, description="Whether it is in use.")
    files: dict[FilePath, Content | None] = Field(
        default_factory=dict,
        description="Files to write, by path within it: text, or `base64`; null deletes one.",
    )


class TaskFolder(Body):
    """The folder `.knowledge` of a task."""

    files: dict[FilePath, Content] = Field(
        min_length=1,
        max_length=MAX_FILES,
        description="Its files by path within it: text, or `base64`.",
    )
    task_id: str = Field("", max_length=500, description="Name of the task.")


class NewVote(Body):
    """A rating of an entry."""

    score: int = Field(ge=1, le=5, description="1 (useless) to 5 (exactly right).")
    rater: str = Field("", max_length=200, description="Rater; by default the caller.")


class NewSlug(Body):
    """New slug of an entry."""

    to: Slug = Field(description="The new name of its folder.")


class TaskQuery(Body):
    """A task to look up entries for."""

    prompt: Prompt = Field(description="The task.")
    limit: Limit = Field(10, description="Maximum entries.")


class Task(Body):
    """A task to collect entries for."""

    prompt: Prompt = Field(description="The task.")
    limit: Limit | None = Field(None, description="Maximum entries.")
    max_tokens: Tokens = Field(1_000, description="Maximum tokens of the text.")


MAX_NAME = 500
MAX_IN_GRAPH = 100_000
_OF = "Id or name of an entity."
_BY = "Author; by default the caller."


Named = Annotated[str, Field(max_length=8_000)]
Name = Annotated[
    str, Field(min_length=1, max_length=MAX_NAME, json_schema_extra={"pattern": NOT_BLANK})
]
Names = Annotated[list[Name], Field(max_length=1_000)]
Word = Annotated[str, Field(json_schema_extra={"pattern": "^[a-z0-9_]{1,80}$"})]
Properties = dict[str, Any]
Weight = Annotated[StrictFloat, Field(gt=0, le=1)]
Number = Annotated[StrictInt, Field(ge=1, le=2**53), WHOLE]
By = Annotated[str, Field(max_length=200, description=_BY)]


class NewEntity(Body):
    """A new entity."""

    name: Name = Field(description="Its name.")
    type: Word = Field("name", description="Its type.")
    description: str = Field("", description="Description in a sentence.")
    properties: Properties | None = Field(None, description="Further properties.")
    aliases: Names = Field([], description="Other names.")
    by: By = ""


class EntityChange(Body):
    """Changes of an entity; omitted or null fields stay."""

    name: Name | None = Field(None, description="New name.")
    type: Word | None = Field(None, description="Its type.")
    description: str | None = Field(None, description="Description in a sentence.")
    properties: Properties | None = Field(None, description="Replace the existing ones.")
    aliases: Names | None = Field(None, description="Replace the existing ones.")
    by: By = ""


class NewRelation(Body):
    """A relation to create or change."""

    source: Named = Field(description="Its start.")
    name: Word = Field(description="Name of the relation, such as `depends_on`.")
    target: Named = Field(description="Its end.")
    weight: Weight = Field(1.0, description="How strong it is.")
    note: str = Field("", description="Free text.")
    by: By = ""


class Pair(Body):
    """Two entities to merge, or to keep apart."""

    keep: Name = Field(description=_OF)
    other: Name = Field(description=_OF)
    by: By = ""


class UndoRequest(Options):
    """A change to revert."""

    edit: Number | None = Field(None, description="Number of the edit; by default the last one.")
    by: By = ""


class Picture(Options):
    """The part of the graph to lay out."""

    around: list[Named] = Field(
        default_factory=list,
        description="Start nodes; by default hubs.",
        json_schema_extra={"maxItems": 1_000},
    )
    depth: Annotated[StrictInt, Field(ge=1, le=5), WHOLE] = 2
    type: list[str] = Field(default_factory=list, description="Only nodes of these types.")
    relation: list[str] = Field(default_factory=list, description="Only relations of these names.")
    kbs: list[str] | None = Field(None, description="Only of these knowledge bases.")
    limit: Annotated[StrictInt, Field(ge=1, le=2_000), WHOLE] = 500


def changed_at(version: str) -> datetime | None:
    if version == "unchanged":
        return None
    try:
        return datetime.fromisoformat(version).astimezone(UTC)
    except (ValueError, OverflowError):
        raise VersionConflictError(
            f"If-Match: {version!r} is not a version; send the `ETag` of a response"
        ) from None
