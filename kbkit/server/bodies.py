"""Request bodies for entries and the graph."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from kbkit.entries.skill_file import MAX_DESCRIPTION_LENGTH, MAX_TAGS, MAX_TITLE_LENGTH
from kbkit.entries.slugs import MAX_LENGTH
from kbkit.errors import VersionConflictError
from kbkit.models import EntryInfo, EntryStatus
from kbkit.retrieval.context import MIN_TOKENS
from kbkit.server.parameters import Body, Options, number
from kbkit.server.uploads import Content

MAX = 1_000_000
_SLUG = "^(?:[a-z0-9]+(?:-[a-z0-9]+)*)?$"


class EntryList(BaseModel):
    """A page of entries."""

    data: list[EntryInfo] = Field(description="Entries of this page.")
    total: int = Field(description="Number of all entries.")
    page: int = Field(description="Number of this page, from 1.")


# Python validates these with better messages; the schema only documents valid values.
FilePath = Annotated[str, Field(min_length=1)]
Title = Annotated[
    Any, WithJsonSchema({"type": "string", "maxLength": MAX_TITLE_LENGTH, "pattern": r"\S"})
]
Line = Annotated[Any, WithJsonSchema({"type": "string", "maxLength": MAX_TITLE_LENGTH})]
Description = Annotated[
    Any, WithJsonSchema({"type": "string", "maxLength": MAX_DESCRIPTION_LENGTH})
]
Text = Annotated[Any, WithJsonSchema({"type": "string"})]
Tags = Annotated[
    Any, WithJsonSchema({"type": "array", "items": {"type": "string"}, "maxItems": MAX_TAGS})
]
Prompt = Annotated[Any, WithJsonSchema({"type": "string", "pattern": r"[^\s]"})]
Limit = Annotated[Any, number("limit", 1, MAX)]
Tokens = Annotated[Any, number("max_tokens", MIN_TOKENS, MAX)]
Status = Annotated[Any, WithJsonSchema({"type": "string", "enum": list(EntryStatus)})]
Slug = Annotated[Any, WithJsonSchema({"type": "string", "maxLength": MAX_LENGTH, "pattern": _SLUG})]


class NewEntry(Body):
    """A new entry."""

    title: Title = Field(description="One line.")
    slug: Slug = Field("", description="Name of its folder; by default made from the title.")
    description: Description = Field("", description="Its purpose, which search uses.")
    prompt: Text = Field("", description="Instructions for an agent.")
    readme: Text = Field("", description="Readme for people.")
    tags: Tags = Field((), description="Free labels.")
    category: Line = Field("", description="Its domain.")
    status: Status = Field("active", description="Whether it is in use.")
    files: dict[FilePath, Content] = Field(
        default_factory=dict, description="Other files, by path within it: text, or `base64`."
    )


class EntryChange(Body):
    """Changes of an entry; omitted or null fields stay."""

    title: Title | None = Field(None, description="One line.")
    description: Description | None = Field(None, description="Its purpose.")
    prompt: Text | None = Field(None, description="Instructions for an agent.")
    readme: Text | None = Field(None, description="Readme for people.")
    tags: Tags | None = Field(None, description="Free labels.")
    category: Line | None = Field(None, description="Its domain.")
    status: Status | None = Field(None, description="Whether it is in use.")
    files: dict[FilePath, Content | None] = Field(
        default_factory=dict,
        description="Files to write, by path within it: text, or `base64`; null deletes one.",
    )


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
_NAME = {"type": "string", "minLength": 1, "maxLength": MAX_NAME, "pattern": r"[^\s]"}
_WORD = {"type": "string", "pattern": "^[a-z0-9_]{1,80}$"}
_MAX_NAMES = 1_000
_OF = "Id or name of an entity."
_BY = "Author; by default the caller."


def _limited(names: Any) -> Any:
    if isinstance(names, list) and len(names) > _MAX_NAMES:
        raise PydanticCustomError("too_long", f"more than {_MAX_NAMES:,} names")
    return names


# Python validates these with better messages; the schema only documents valid values.
Named = Annotated[Any, WithJsonSchema({"type": "string", "maxLength": 8_000})]
Name = Annotated[Any, WithJsonSchema(_NAME)]
Names = Annotated[
    Any,
    BeforeValidator(_limited),
    WithJsonSchema({"type": "array", "items": _NAME, "maxItems": _MAX_NAMES}),
]
Word = Annotated[Any, WithJsonSchema(_WORD)]

Properties = Annotated[Any, WithJsonSchema({"type": "object", "additionalProperties": True})]
Weight = Annotated[Any, WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "maximum": 1})]
Number = Annotated[Any, number("edit", 1, 2**53)]
By = Annotated[str, Field(max_length=200, description=_BY)]


class NewEntity(Body):
    """A new entity."""

    name: Name = Field(description="Its name.")
    type: Word = Field("name", description="Its type.")
    description: Text = Field("", description="Description in a sentence.")
    properties: Properties | None = Field(None, description="Further properties.")
    aliases: Names = Field((), description="Other names.")
    by: By = ""


class EntityChange(Body):
    """Changes of an entity; omitted or null fields stay."""

    name: Name | None = Field(None, description="New name.")
    type: Word | None = Field(None, description="Its type.")
    description: Text | None = Field(None, description="Description in a sentence.")
    properties: Properties | None = Field(None, description="Replace the existing ones.")
    aliases: Names | None = Field(None, description="Replace the existing ones.")
    by: By = ""


class NewRelation(Body):
    """A relation to create or change."""

    source: Named = Field(description="Its start.")
    name: Word = Field(description="Name of the relation, such as `depends_on`.")
    target: Named = Field(description="Its end.")
    weight: Weight = Field(1.0, description="How strong it is.")
    note: Text = Field("", description="Free text.")
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
    depth: Annotated[Any, number("depth", 1, 5)] = 2
    type: list[str] = Field(default_factory=list, description="Only nodes of these types.")
    relation: list[str] = Field(default_factory=list, description="Only relations of these names.")
    kbs: list[str] | None = Field(None, description="Only of these knowledge bases.")
    limit: Annotated[Any, number("limit", 1, 2_000)] = 500


def changed_at(version: str) -> datetime | None:
    if version == "unchanged":
        return None
    try:
        return datetime.fromisoformat(version).astimezone(UTC)
    except (ValueError, OverflowError):
        raise VersionConflictError(
            f"If-Match: {version!r} is not a version; send the `ETag` of a response"
        ) from None
