"""What requests about entries hold, and lists of entries."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from kbkit.entries.skill_file import LONGEST_DESCRIPTION, LONGEST_TITLE, MOST_TAGS
from kbkit.entries.slugs import LONGEST
from kbkit.models import Entry, EntryInfo, EntryStatus
from kbkit.rest.uploads import Content
from kbkit.retrieval.context import LEAST_TOKENS

MOST = 1_000_000
"""Most entries, or tokens, that are asked for."""
_SLUG = "^(?:[a-z0-9]+(?:-[a-z0-9]+)*)?$"


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class EntryList(BaseModel):
    """Some of the entries that were asked for, in order."""

    data: list[EntryInfo] = Field(description="These.")
    total: int = Field(description="How many there are in all.")
    page: int = Field(description="Which page this is, from 1.")


# Python itself says what is wrong with one of these; the schema tells what is right.
FilePath = Annotated[str, Field(min_length=1)]
Title = Annotated[
    Any, WithJsonSchema({"type": "string", "maxLength": LONGEST_TITLE, "pattern": r"\S"})
]
Line = Annotated[Any, WithJsonSchema({"type": "string", "maxLength": LONGEST_TITLE})]
Description = Annotated[Any, WithJsonSchema({"type": "string", "maxLength": LONGEST_DESCRIPTION})]
Text = Annotated[Any, WithJsonSchema({"type": "string"})]
Tags = Annotated[
    Any,
    WithJsonSchema(
        {
            "type": "array",
            "items": {"type": "string"},
            "maxItems": MOST_TAGS,
        }
    ),
]
Prompt = Annotated[Any, WithJsonSchema({"type": "string", "pattern": r"[^\s]"})]
Limit = Annotated[Any, WithJsonSchema({"type": "integer", "minimum": 1, "maximum": MOST})]
Tokens = Annotated[
    Any, WithJsonSchema({"type": "integer", "minimum": LEAST_TOKENS, "maximum": MOST})
]
Status = Annotated[Any, WithJsonSchema({"type": "string", "enum": list(EntryStatus)})]
Slug = Annotated[Any, WithJsonSchema({"type": "string", "maxLength": LONGEST, "pattern": _SLUG})]


class NewEntry(_Body):
    """An entry that is to be written."""

    title: Title = Field(description="One line.")
    slug: Slug = Field("", description="Name of its folder; by default made of the title.")
    description: Description = Field("", description="What it is good for: by this it is found.")
    prompt: Text = Field("", description="What tells an agent how to do it.")
    readme: Text = Field("", description="What tells people about it.")
    tags: Tags = Field((), description="Free labels.")
    category: Line = Field("", description="What it belongs to.")
    status: Status = Field("active", description="Whether it is to be used.")
    files: dict[FilePath, Content] = Field(
        default_factory=dict, description="Other files, by path within it: text, or `base64`."
    )


class EntryChange(_Body):
    """What is to be changed of an entry; what is left out, or null, stays."""

    title: Title | None = Field(None, description="One line.")
    description: Description | None = Field(None, description="What it is good for.")
    prompt: Text | None = Field(None, description="What tells an agent how to do it.")
    readme: Text | None = Field(None, description="What tells people about it.")
    tags: Tags | None = Field(None, description="Free labels.")
    category: Line | None = Field(None, description="What it belongs to.")
    status: Status | None = Field(None, description="Whether it is to be used.")
    files: dict[FilePath, Content | None] = Field(
        default_factory=dict,
        description="Files to write, by path within it: text, or `base64`; null deletes one.",
    )


class NewVote(_Body):
    """What somebody thinks of an entry."""

    score: int = Field(ge=1, le=5, description="1 (useless) to 5 (exactly right).")
    rater: str = Field("", max_length=200, description="Who votes; by default who asks.")


class Rated(BaseModel):
    """What all votes for an entry come to, with the last one."""

    average: float = Field(description="Of the scores, to two places.")
    count: int = Field(description="How many votes there are.")
    entry: Entry


class NewSlug(_Body):
    """What an entry is to be called."""

    to: Slug = Field(description="The new name of its folder.")


class Need(_Body):
    """What is to be done, for which entries are looked up."""

    prompt: Prompt = Field(description="What is to be done.")
    limit: Limit = Field(10, description="Most entries.")


class Task(_Body):
    """What is to be done, of which an agent is told with what is known."""

    prompt: Prompt = Field(description="What is to be done.")
    limit: Limit | None = Field(None, description="Most entries.")
    max_tokens: Tokens = Field(1_000, description="Most tokens of the text.")
