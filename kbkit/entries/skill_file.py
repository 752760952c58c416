"""Read and edit ``skill.yaml``, keeping comments and unknown keys."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar

from kbkit.entries.votes import (
    KEY,
    YamlMapping,
    block_of,
    rating_of,
    read_time,
    read_yaml,
    span_of,
    time_text,
    united,
    with_votes,
)
from kbkit.errors import EntryFormatError
from kbkit.models import EntryRating, EntrySource, EntryStatus

NAME = "skill.yaml"
MAX_TITLE_LENGTH = 300
MAX_DESCRIPTION_LENGTH = 5_000
MAX_TAGS = 100

_PLAIN = re.compile(r"[A-Za-z_][\w ./()-]*(?<! )")
# words that YAML parsers may not read as text
_WORDS = frozenset(["true", "false", "yes", "no", "on", "off", "null", "y", "n", "nan", "inf"])
_FIELDS = (
    "id",
    "title",
    "description",
    "tags",
    "category",
    "status",
    KEY,
    "source",
    "origin_task_id",
    "created_at",
    "updated_at",
)
_KEPT = "kept"
_Choice = TypeVar("_Choice", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class SkillFile:
    """Content of a ``skill.yaml`` with defaults.

    Attributes:
        text: Text to store, with votes of both sides after a merge.
    """

    text: str
    id: str
    title: str
    description: str
    tags: tuple[str, ...]
    category: str
    status: EntryStatus
    rating: EntryRating
    source: EntrySource
    origin_task_id: str
    created_at: datetime | None
    updated_at: datetime | None
    extra: Mapping[str, Any]


def read_skill(data: bytes) -> SkillFile:
    try:
        return _read(united(_decoded(data)))
    except EntryFormatError as error:
        raise EntryFormatError(f"{NAME}: {error}", error.line, error.column) from None


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        raise EntryFormatError(
            f"line {line}, column {column}: no text in UTF-8", line, column
        ) from None


def _read(text: str) -> SkillFile:
    mapping = read_yaml(text)
    rating = rating_of(mapping)
    return SkillFile(
        text=with_votes(text, rating.votes),
        id=_text(mapping, "id", 200),
        title=_text(mapping, "title", MAX_TITLE_LENGTH),
        description=_text(mapping, "description", MAX_DESCRIPTION_LENGTH, lines=True),
        tags=_tags(mapping),
        category=_text(mapping, "category", MAX_TITLE_LENGTH),
        status=_choice(mapping, "status", EntryStatus.ACTIVE),
        rating=rating,
        source=_choice(mapping, "source", EntrySource.MANUAL),
        origin_task_id=_text(mapping, "origin_task_id", 500),
        created_at=_time(mapping, "created_at"),
        updated_at=_time(mapping, "updated_at"),
        extra={key: value for key, value in mapping.values.items() if key not in _FIELDS},
    )


def _text(mapping: YamlMapping, key: str, limit: int, *, lines: bool = False) -> str:
    value = mapping.values.get(key)
    if value is None:
        return ""
    if isinstance(value, dict | list):
        raise mapping.fault((key,), "must be a string")
    text = str(value).strip()
    if len(text) > limit:
        raise mapping.fault((key,), f"has more than {limit:,} characters")
    return text if lines else " ".join(text.split())


def _tags(mapping: YamlMapping) -> tuple[str, ...]:
    value = mapping.values.get("tags")
    if isinstance(value, str):
        value = value.split(",")
    if value is None:
        return ()
    if not isinstance(value, list) or any(isinstance(each, dict | list) for each in value):
        raise mapping.fault(("tags",), "must be a list of words")
    if len(value) > MAX_TAGS:
        raise mapping.fault(("tags",), f"has more than {MAX_TAGS}")
    texts = (str(each).strip() for each in value if each is not None)
    return tuple(dict.fromkeys(each[:MAX_TITLE_LENGTH] for each in texts if each))


def _choice(mapping: YamlMapping, key: str, default: _Choice) -> _Choice:
    value = mapping.values.get(key)
    if value in (None, ""):
        return default
    try:
        return type(default)(value)
    except ValueError:
        raise mapping.fault((key,), f"must be {', '.join(type(default))}") from None


def _time(mapping: YamlMapping, key: str) -> datetime | None:
    value = mapping.values.get(key)
    if value in (None, ""):
        return None
    try:
        return read_time(value)
    except ValueError:
        raise mapping.fault((key,), "must be a time such as 2026-01-31T12:00:00Z") from None


def new_skill(values: Mapping[str, Any], extra: Mapping[str, Any] | None = None) -> str:
    lines = []
    for key in _FIELDS:
        if key == KEY:
            lines.append(block_of(values.get(KEY) or EntryRating()).rstrip("\n"))
        elif isinstance(value := values.get(key, ""), tuple | list):
            lines.append(f"{key}: [{', '.join(map(scalar, value))}]")
        else:
            lines.append(f"{key}: {scalar(value)}")
    for key, value in (extra or {}).items():
        if isinstance(value, Mapping):
            lines.append(f"{scalar(key)}:")
            lines += [f"  {scalar(name)}: {scalar(each)}" for name, each in value.items()]
        else:
            lines.append(f"{scalar(key)}: {scalar(value)}")
    return "\n".join(lines) + "\n"


def scalar(value: Any) -> str:
    if isinstance(value, datetime):
        return time_text(value)
    text = str(value)
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return re.sub(
        "[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]",
        lambda match: f"\\u{ord(match[0]):04x}",
        json.dumps(text, ensure_ascii=False),
    )


def edited(text: str, changes: Mapping[str, Any]) -> str:
    """Change keys in a YAML text; comments, order and other keys stay."""
    mapping = read_yaml(text)
    changes = {
        key: time_text(value) if isinstance(value, datetime) else value
        for key, value in changes.items()
    }
    expected = {**mapping.values, **{key: _plain(value) for key, value in changes.items()}}
    if expected == mapping.values:
        return text
    block, rest = _cut(text, mapping)
    result = _edited(rest, mapping, changes)
    if block:
        result = re.sub(rf"^{KEY}: {_KEPT}$", lambda _: block, result, count=1, flags=re.MULTILINE)
    if "\r\n" in text:
        result = result.replace("\r\n", "\n").replace("\n", "\r\n")
    try:
        same = read_yaml(result).values == expected
    except EntryFormatError:
        same = False
    if not same:
        raise EntryFormatError(
            f"{NAME}: cannot be changed so that all else in it stays; edit it by hand"
        )
    return result


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value


def _cut(text: str, mapping: YamlMapping) -> tuple[str, str]:
    """Split a text into the block of votes and the rest, which a slow YAML parser reads.

    One line stays in place of the block.
    """
    span = span_of(text, mapping)
    if span is None:
        return "", text
    start, stop = span
    return text[start:stop].replace("\r\n", "\n"), f"{text[:start]}{KEY}: {_KEPT}{text[stop:]}"


def _edited(text: str, front_matter: YamlMapping, changes: Mapping[str, Any]) -> str:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError
    from ruamel.yaml.resolver import VersionedResolver
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString

    class SkillTexts(VersionedResolver):
        """Reads every scalar as text, so that numbers and times do not change."""

        @property
        def versioned_resolver(self) -> Any:
            return {}

    def quoted(value: str) -> str:
        plain = _PLAIN.fullmatch(value) and value.lower() not in _WORDS
        return value if plain or _is_time(value) else DoubleQuotedScalarString(value)

    editor = YAML(typ="rt", pure=True)
    editor.Resolver = SkillTexts
    editor.preserve_quotes = True
    editor.width = 1 << 20
    mapping, offset = _indents(front_matter)
    editor.indent(mapping=mapping, sequence=offset + 2, offset=offset)
    try:
        values = editor.load(text)
        for key, value in changes.items():
            if isinstance(value, str):
                values[key] = quoted(value)
                continue
            items = [quoted(each) for each in value]
            if isinstance(values.get(key), list) and values[key]:
                values[key][:] = items
            else:
                values[key] = _flow(items)
        written = io.StringIO()
        editor.dump(values, written)
    except (YAMLError, ValueError, AttributeError, TypeError, NotImplementedError) as error:
        raise EntryFormatError(
            f"{NAME}: cannot be changed ({' '.join(str(error).split())[:200]}); edit it by hand"
        ) from None
    return written.getvalue()


def _flow(items: list[str]) -> Any:
    from ruamel.yaml.comments import CommentedSeq

    sequence = CommentedSeq(items)
    sequence.fa.set_flow_style()
    return sequence


def _is_time(value: str) -> bool:
    try:
        read_time(value)
    except ValueError:
        return False
    return ":" in value


def _indents(front_matter: YamlMapping) -> tuple[int, int]:
    mapping, offset = 2, 0
    for path, place in front_matter.places.items():
        if (
            len(path) < 1
            or path in front_matter.flow
            or isinstance(path[-1], int)
            or path[0] == KEY
        ):
            continue
        value: Any = front_matter.values
        for part in path:
            value = value[part]
        if isinstance(value, list) and value:
            offset = max(0, place.column - front_matter.keys[path].column)
        elif isinstance(value, dict) and value:
            mapping = max(1, place.column - front_matter.keys[path].column)
    return mapping, offset
