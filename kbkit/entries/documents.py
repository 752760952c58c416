"""Convert an entry to a searchable document."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from kbkit.entries.skill_file import MAX_DESCRIPTION_LENGTH, MAX_TAGS, MAX_TITLE_LENGTH, NAME
from kbkit.entries.store import PROMPT, README, StoredEntry
from kbkit.errors import ConfigError, InvalidPathError
from kbkit.files.paths import joined, parts_of
from kbkit.models import (
    Entry,
    EntryFile,
    EntryInfo,
    EntryRating,
    EntrySource,
    EntryStatus,
    SourceDocument,
)
from kbkit.runtime.validation import check_text
from kbkit.stores.catalog.indexed_files import EntryRecord

_MAX_TEXT_LENGTH = 500_000  # characters of a prompt or a readme
_MAX_CODE_LENGTH = 50_000  # characters of all code
_FACTS = frozenset(each.name for each in fields(EntryInfo))


def document_of(stored: StoredEntry) -> SourceDocument:
    skill = stored.skill
    title = title_of(stored)
    texts = [text_of(stored, name)[:_MAX_TEXT_LENGTH].strip() for name in (PROMPT, README)]
    parts = [f"# {title}", skill.description, *texts, *_code(stored)]
    metadata = {
        "description": skill.description[:300],
        "category": skill.category,
        "status": skill.status.value,
        "source": skill.source.value,
        "entry": stored.slug,
    }
    return SourceDocument(
        stored.slug,
        title,
        "\n\n".join(filter(None, parts)),
        tags=skill.tags,
        metadata={key: value for key, value in metadata.items() if value},
    )


def title_of(stored: StoredEntry) -> str:
    """Return an entry's title, else its folder's name."""
    return stored.skill.title or stored.slug.replace("-", " ").capitalize()


def text_of(stored: StoredEntry, path: str) -> str:
    """Return the text of a file, ``""`` if missing; replace invalid UTF-8."""
    return stored.files.get(path, b"").decode("utf-8-sig", "replace").replace("\r\n", "\n")


def _code(stored: StoredEntry) -> list[str]:
    parts, room = list[str](), _MAX_CODE_LENGTH
    for path in sorted(stored.files):
        if not path.startswith("code/") or room <= 0 or b"\0" in stored.files[path][:8_000]:
            continue
        text = text_of(stored, path)[:room]
        room -= len(text)
        fence = "````"
        while fence in text:
            fence += "`"
        language = posixpath.splitext(path)[1][1:]
        parts.append(f"## {path}\n\n{fence}{language}\n{text.rstrip()}\n{fence}")
    return parts


def info_of(record: EntryRecord) -> EntryInfo:
    return EntryInfo(**_facts(record))


def _facts(record: EntryRecord) -> dict[str, Any]:
    facts = {name: value for name, value in record._asdict().items() if name in _FACTS}
    return {
        **facts,
        "tags": tuple(record.tags),
        "status": EntryStatus(record.status),
        "rating": EntryRating(record.average, record.votes),
        "source": EntrySource(record.source),
    }


def entry_of(stored: StoredEntry, record: EntryRecord | None) -> Entry:
    """Convert an entry; its id comes from the catalog, since copies have the same id on disk."""
    known_as = record.id if record and record.version else stored.skill.id or stored.slug
    own = (NAME, PROMPT, README)
    return Entry(
        **{**_facts(record_of(stored, known_as)), "rating": stored.skill.rating},
        prompt=text_of(stored, PROMPT),
        readme=text_of(stored, README),
        files=tuple(
            EntryFile(path, len(data))
            for path, data in sorted(stored.files.items())
            if path not in own
        ),
    )


def record_of(
    stored: StoredEntry, known_as: str, document_id: str = "", seen: int = 0
) -> EntryRecord:
    skill = stored.skill
    return EntryRecord(
        slug=stored.slug,
        id=known_as,
        document_id=document_id,
        title=title_of(stored),
        description=skill.description,
        tags=skill.tags,
        category=skill.category,
        status=skill.status.value,
        average=skill.rating.average,
        votes=skill.rating.count,
        source=skill.source.value,
        origin_task_id=skill.origin_task_id,
        created_at=skill.created_at or time_of(stored.made),
        updated_at=skill.updated_at or time_of(stored.changed),
        version=stored.version,
        stamp=stored.look.stamp,
        changed=stored.look.changed,
        seen=seen,
    )


def time_of(nanoseconds: int) -> datetime:
    return datetime.fromtimestamp(nanoseconds / 1e9, UTC)


# files with a separate argument
_ARGUMENT_FILES = frozenset({NAME, PROMPT.casefold(), README.casefold()})


def checked(**arguments: Any) -> dict[str, Any]:
    values = {
        key: value if key in ("tags", "status") else check_text(key, value)
        for key, value in arguments.items()
    }
    for key, most in (("title", MAX_TITLE_LENGTH), ("category", MAX_TITLE_LENGTH)):
        if key in values:
            values[key] = " ".join(values[key].split())
            if len(values[key]) > most:
                raise ConfigError(f"{key}: has more than {most} characters; say it shorter")
    if values.get("title") == "":
        raise ConfigError("title: is empty; describe the entry in one line")
    if len(values.get("description", "")) > MAX_DESCRIPTION_LENGTH:
        raise ConfigError(
            f"description: has more than {MAX_DESCRIPTION_LENGTH:,} characters; say "
            "more in the prompt or the readme"
        )
    if "description" in values:
        values["description"] = values["description"].strip()
    if "tags" in values:
        values["tags"] = _tags(values["tags"])
    if "status" in values:
        values["status"] = checked_status(values["status"]).value
    return values


def _tags(tags: Any) -> tuple[str, ...]:
    if isinstance(tags, str) or not isinstance(tags, Sequence):
        raise ConfigError(f"tags={tags!r}: give a list of words, such as ['logs', 'python']")
    cleaned = (" ".join(check_text("tags", each).split()).removeprefix("#") for each in tags)
    cleaned_tags = tuple(dict.fromkeys(each[:MAX_TITLE_LENGTH] for each in cleaned if each))
    if len(cleaned_tags) > MAX_TAGS:
        raise ConfigError(f"tags: more than {MAX_TAGS}")
    return cleaned_tags


def checked_status(status: str | EntryStatus) -> EntryStatus:
    try:
        return EntryStatus(status)
    except ValueError:
        raise ConfigError(f"status={status!r}: choose from {', '.join(EntryStatus)}") from None


def checked_files(files: Mapping[str, str | bytes | None]) -> dict[str, bytes | None]:
    contents: dict[str, bytes | None] = {}
    for path, content in files.items():
        parts = parts_of(path)
        if len(parts) == 0 or (len(parts) == 1 and parts[0].casefold() in _ARGUMENT_FILES):
            raise InvalidPathError(
                f"{path}: name a file such as 'code/run.py'; the prompt, the "
                "readme and what skill.yaml says have their own arguments"
            )
        if content is not None and not isinstance(content, str | bytes):
            raise ConfigError(f"files: {path}: give text or bytes")
        contents[joined(parts)] = (
            check_text(path, content).encode() if isinstance(content, str) else content
        )
    return contents
