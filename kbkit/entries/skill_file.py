"""Read, check and edit ``skill.yaml``, keeping comments and unknown keys, and read ``votes.jsonl``.

A vote is a line, so that git's merge driver ``union`` keeps both people's votes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any, TypeVar

from kbkit.entries.strict_yaml import Path, YamlMapping, leaf_end, read_yaml
from kbkit.errors import ConfigError, EntryFormatError
from kbkit.models import EntrySource, EntryStatus, Vote
from kbkit.runtime.validation import check_text

NAME = "skill.yaml"
VOTES = "votes.jsonl"
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
    "rating",
    "source",
    "origin_task_id",
    "created_at",
    "updated_at",
)
_MARK = re.compile(rb"<{7}|\|{7}|={7}|>{7}")
_EXAMPLE = '{"timestamp": "2026-01-31T12:00:00Z", "rater": "anna", "score": 5}'
_Choice = TypeVar("_Choice", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class SkillFile:
    """Content of a ``skill.yaml`` with defaults.

    Attributes:
        votes: Votes that a person wrote into it below ``rating``; others are in ``votes.jsonl``.
    """

    text: str
    id: str
    title: str
    description: str
    tags: tuple[str, ...]
    category: str
    status: EntryStatus
    votes: tuple[Vote, ...]
    source: EntrySource
    origin_task_id: str
    created_at: datetime | None
    updated_at: datetime | None
    extra: Mapping[str, Any]


def read_skill(data: bytes) -> SkillFile:
    try:
        return _read(_decoded(data))
    except EntryFormatError as error:
        raise EntryFormatError(f"{NAME}: {error}", error.line, error.column) from None


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        raise EntryFormatError(
            f"line {line}, column {column}: not UTF-8 text", line, column
        ) from None


def _read(text: str) -> SkillFile:
    mapping = read_yaml(text)
    return SkillFile(
        text=text,
        id=_text(mapping, "id", 200),
        title=_text(mapping, "title", MAX_TITLE_LENGTH),
        description=_text(mapping, "description", MAX_DESCRIPTION_LENGTH, lines=True),
        tags=_tags(mapping),
        category=_text(mapping, "category", MAX_TITLE_LENGTH),
        status=_choice(mapping, "status", EntryStatus.ACTIVE),
        votes=_votes(mapping),
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


def _votes(mapping: YamlMapping) -> tuple[Vote, ...]:
    rating = mapping.values.get("rating") or {}
    if not isinstance(rating, dict):
        raise mapping.fault(("rating",), "must have average, count and votes")
    votes = rating.get("votes") or []
    if not isinstance(votes, list):
        raise mapping.fault(("rating", "votes"), "must be a list")
    return tuple(_vote(mapping, vote, number) for number, vote in enumerate(votes))


def _vote(mapping: YamlMapping, value: Any, number: int) -> Vote:
    path: Path = ("rating", "votes", number)
    if not isinstance(value, dict):
        raise mapping.fault(path, "must have score, timestamp and rater")
    try:
        return vote_of(value)
    except ValueError as error:
        raise mapping.fault((*path, error.args[0]), error.args[1]) from None


def vote_of(values: Mapping[str, Any]) -> Vote:
    score, rater, time = (values.get(name) for name in ("score", "rater", "timestamp"))
    if isinstance(score, bool) or not isinstance(score, int) or not 1 <= score <= 5:
        raise ValueError("score", "must be an integer from 1 to 5")
    try:
        at = read_time(time)
    except ValueError:
        raise ValueError("timestamp", "must be a time such as 2026-01-31T12:00:00Z") from None
    name = "" if rater is None else str(rater)
    return Vote(at, name.encode(errors="replace").decode(), score)  # JSON may have lone surrogates


@lru_cache(maxsize=4)  # a vote reads the same lines three times
def read_votes(data: bytes) -> tuple[Vote, ...]:
    """Read lines of JSON; a merge in git may leave repeated lines and conflict marks."""
    votes = list[Vote]()
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip() or _MARK.match(line):
            continue
        try:
            votes.append(vote_of(dict(json.loads(line))))
        except (ValueError, TypeError, RecursionError) as error:
            reason = " ".join(error.args) if len(error.args) == 2 else "is not a vote"
            raise EntryFormatError(
                f"{VOTES}: line {number}, column 1: {reason}; write a line such as "
                f"{_EXAMPLE}, or delete it",
                number,
                1,
            ) from None
    return tuple(votes)


def vote_lines(votes: Iterable[Vote]) -> bytes:
    return "".join(f"{json.dumps(vote.to_dict())}\n" for vote in votes).encode()


def read_time(value: Any) -> datetime:
    """Parse a time in ISO 8601; without a zone it is in UTC."""
    if not isinstance(value, str):
        raise ValueError("no time")
    at = datetime.fromisoformat(value.strip())
    try:
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except OverflowError:
        raise ValueError("no time that has a zone") from None


def time_text(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def new_skill(values: Mapping[str, Any], extra: Mapping[str, Any] | None = None) -> str:
    lines = []
    for key in _FIELDS:
        if key != "rating":
            lines.append(f"{key}: {_value(values.get(key, ''))}")
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
    values = {key: _plain(value) for key, value in changes.items()}
    changes = {key: changes[key] for key in values if mapping.values.get(key) != values[key]}
    if not changes:
        return text
    result, end = text, "\r\n" if "\r\n" in text else "\n"
    spans = ((*_span(text, mapping, key), key) for key in changes if key in mapping.values)
    for start, stop, key in sorted(spans, reverse=True):
        indent = " " * (mapping.places[key,].column - 1)
        is_block = isinstance(mapping.values[key], list) and (key,) not in mapping.flow
        if is_block and isinstance(changes[key], list | tuple) and changes[key]:
            part = f"{end}{indent}".join(f"- {scalar(each)}" for each in changes[key])
        else:
            part = " " * (result[start - 1] == ":") + _value(changes[key])
        result = result[:start] + part + result[stop:]
    for key, value in changes.items():
        if key not in mapping.values:
            gap = "" if result.endswith("\n") else end
            result += f"{gap}{key}: {_value(value)}{end}"
    try:
        same = read_yaml(result).values == {**mapping.values, **values}
    except EntryFormatError:
        same = False
    if not same:
        raise EntryFormatError(
            f"{NAME}: cannot be changed so that all else in it stays; edit it yourself"
        )
    return result


def without_votes(skill: SkillFile) -> str:
    mapping = read_yaml(skill.text)
    if "rating" not in mapping.values:
        return skill.text
    start, end = mapping.keys["rating",].start, leaf_end(mapping, ("rating",))
    result = skill.text[:start] + skill.text[end:].partition("\n")[2]
    try:
        same = {"rating": mapping.values["rating"], **read_yaml(result).values} == mapping.values
    except EntryFormatError:
        same = False
    if not same:
        raise EntryFormatError(f"{NAME}: delete 'rating:' and the lines below it")
    return result


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return time_text(value)
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value


def _span(text: str, mapping: YamlMapping, key: str) -> tuple[int, int]:
    start = mapping.places[key,].start
    return start, start + len(text[start : leaf_end(mapping, (key,))].rstrip())


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(scalar, value))}]"
    return scalar(value)


def checked(**arguments: Any) -> dict[str, Any]:
    values = {
        key: value if key in ("tags", "status") else check_text(key, value)
        for key, value in arguments.items()
    }
    for key in ("title", "category"):
        if key in values:
            values[key] = " ".join(values[key].split())
            if len(values[key]) > MAX_TITLE_LENGTH:
                raise ConfigError(
                    f"{key}: has more than {MAX_TITLE_LENGTH} characters; say it shorter"
                )
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
        values["tags"] = _checked_tags(values["tags"])
    if "status" in values:
        values["status"] = checked_status(values["status"]).value
    return values


def _checked_tags(tags: Any) -> tuple[str, ...]:
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
