"""Read, check and edit ``skill.yaml``, keeping comments and unknown keys, and read ``votes.jsonl``.

A vote is a line, so that git's merge driver ``union`` keeps both people's votes.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, Any

import pydantic
from pydantic import BeforeValidator, Field, ValidationError

from kbkit.entries.folders import NAME
from kbkit.errors import ConfigError, EntryFormatError
from kbkit.models import EntrySource, EntryStatus, Vote
from kbkit.models.values import fault_reason
from kbkit.placed_yaml import YamlFormatError, YamlMapping, read_yaml
from kbkit.runtime.validation import check_member, check_text

VOTES = "votes.jsonl"
_MAX_CACHED = 1_000  # bytes of a line: a stranger's folder must not fill the memory
MAX_BYTES = 4_000_000
MAX_TITLE_LENGTH = 300
MAX_DESCRIPTION_LENGTH = 5_000
MAX_TAGS = 100

_PLAIN = re.compile(r"[A-Za-z_][\w ./()-]*(?<! )")
# words that YAML parsers may not read as text
_WORDS = frozenset(["true", "false", "yes", "no", "on", "off", "null", "y", "n", "nan", "inf"])
_MARK = re.compile(rb"<{7}|\|{7}|={7}|>{7}")
_EXAMPLE = '{"timestamp": "2026-01-31T12:00:00Z", "rater": "anna", "score": 5}'


def read_time(value: Any) -> datetime:
    """Parse a time in ISO 8601; without a zone it is in UTC."""
    try:
        time = datetime.fromisoformat(value.strip())
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, AttributeError, OverflowError):
        raise ValueError("must be a time such as 2026-01-31T12:00:00Z") from None


def _scalar(value: Any) -> Any:
    """Convert a scalar to text without lone surrogates, which cannot be stored."""
    if isinstance(value, str | int | float):
        return str(value).encode(errors="replace").decode()
    return value


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _tags(value: Any) -> tuple[str, ...]:
    items = value.split(",") if isinstance(value, str) else value
    if not _is_list(items) or any(isinstance(each, dict | list) for each in items):
        raise ValueError("must be a list of words")
    texts = (_scalar(each) for each in items if each is not None)
    words = (_one_line(each).removeprefix("#")[:MAX_TITLE_LENGTH] for each in texts)
    tags = tuple(dict.fromkeys(filter(None, words)))
    if len(tags) > MAX_TAGS:
        raise ValueError(f"has more than {MAX_TAGS}")
    return tags


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


_Text = Annotated[str, BeforeValidator(_scalar), pydantic.StringConstraints(strip_whitespace=True)]
_Line = Annotated[_Text, pydantic.AfterValidator(_one_line)]
_Time = Annotated[datetime, BeforeValidator(read_time)]


class _Fields(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True)

    @pydantic.model_validator(mode="before")
    @classmethod
    def _without_empty(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        return {key: value for key, value in values.items() if value not in (None, "")}


class _Vote(_Fields):
    timestamp: _Time
    rater: Annotated[str, BeforeValidator(_scalar)] = ""
    score: int = Field(strict=True, ge=1, le=5)

    @property
    def vote(self) -> Vote:
        return Vote(self.timestamp, self.rater, self.score)


class _Rating(_Fields):
    votes: list[_Vote] = []


class SkillFile(_Fields):
    """Content of a ``skill.yaml`` with defaults."""

    id: _Line = Field("", max_length=200)
    title: _Line = Field("", max_length=MAX_TITLE_LENGTH)
    description: _Text = Field("", max_length=MAX_DESCRIPTION_LENGTH)
    tags: Annotated[tuple[str, ...], BeforeValidator(_tags)] = ()
    category: _Line = Field("", max_length=MAX_TITLE_LENGTH)
    status: EntryStatus = EntryStatus.ACTIVE
    rating: _Rating = _Rating()
    source: EntrySource = EntrySource.MANUAL
    origin_task_id: _Line = Field("", max_length=500)
    created_at: _Time | None = None
    updated_at: _Time | None = None
    extra: dict[str, Any] = {}
    text: str = ""

    @property
    def votes(self) -> tuple[Vote, ...]:
        """Votes that a person wrote into it; others are in ``votes.jsonl``."""
        return tuple(each.vote for each in self.rating.votes)


_FIELDS = [name for name in SkillFile.model_fields if name not in ("extra", "text")]


@contextmanager
def located(place: str) -> Iterator[None]:
    """Begin messages of wrong content with its place."""
    try:
        yield
    except (EntryFormatError, YamlFormatError) as error:
        raise EntryFormatError(f"{place}{error}", error.line, error.column) from None


def read_skill(data: bytes) -> SkillFile:
    with located(f"{NAME}: "):
        text = _decode(data)
        mapping = read_yaml(text)
        fields = {key: mapping.values[key] for key in _FIELDS if key in mapping.values}
        extra = {key: value for key, value in mapping.values.items() if key not in fields}
        try:
            return SkillFile(**fields, extra=extra, text=text)
        except ValidationError as error:
            path, reason = _first(error)
            raise mapping.fault(path, reason) from None


def _decode(data: bytes) -> str:
    if len(data) > MAX_BYTES:
        raise EntryFormatError(f"has more than {MAX_BYTES / 1e6:g} MB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        raise EntryFormatError(
            f"line {line}, column {column}: not UTF-8 text", line, column
        ) from None


def _first(error: ValidationError) -> tuple[tuple[str | int, ...], str]:
    """Return the path and the reason of the first wrong value."""
    first = error.errors(include_url=False)[0]
    return first["loc"], fault_reason(first)


@lru_cache(maxsize=10_000)  # each vote reads all earlier lines again
def _read_vote(line: bytes) -> Vote:
    return _Vote.model_validate(json.loads(line)).vote


def read_votes(data: bytes) -> tuple[Vote, ...]:
    """Read lines of JSON; a merge in git may leave repeated lines and conflict marks."""
    votes = list[Vote]()
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip() or _MARK.match(line):
            continue
        try:
            read = _read_vote if len(line) <= _MAX_CACHED else _read_vote.__wrapped__
            votes.append(read(line))
        except (ValueError, RecursionError) as error:
            path, why = _first(error) if isinstance(error, ValidationError) else ((), "")
            reason = f"{path[0]}: {why}" if path else "is not a vote"
            raise EntryFormatError(
                f"{VOTES}: line {number}, column 1: {reason}; write a line such as "
                f"{_EXAMPLE}, or delete it",
                number,
                1,
            ) from None
    return tuple(votes)


def vote_lines(votes: Iterable[Vote]) -> bytes:
    return "".join(f"{json.dumps(vote.to_dict())}\n" for vote in votes).encode()


def time_text(time: datetime) -> str:
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def new_skill(values: Mapping[str, Any], extra: Mapping[str, Any] | None = None) -> str:
    lines = [f"{key}: {_value(values.get(key, ''))}" for key in _FIELDS if key != "rating"]
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


def edit_yaml(text: str, changes: Mapping[str, Any]) -> str:
    """Change keys in a YAML text; comments, order and other keys stay."""
    mapping = read_yaml(text)
    values = {key: _plain(value) for key, value in changes.items()}
    changes = {key: changes[key] for key in values if mapping.values.get(key) != values[key]}
    if not changes:
        return text
    result, newline = text, "\r\n" if "\r\n" in text else "\n"
    spans = ((*_span(text, mapping, key), key) for key in changes if key in mapping.values)
    for start, stop, key in sorted(spans, reverse=True):
        indent = " " * (mapping.places[key,].column - 1)
        is_block = isinstance(mapping.values[key], list) and (key,) not in mapping.flow
        if is_block and isinstance(changes[key], list | tuple) and changes[key]:
            part = f"{newline}{indent}".join(f"- {scalar(each)}" for each in changes[key])
        else:
            part = " " * (result[start - 1] == ":") + _value(changes[key])
        result = result[:start] + part + result[stop:]
    for key, value in changes.items():
        if key not in mapping.values:
            gap = "" if result.endswith("\n") else newline
            result += f"{gap}{key}: {_value(value)}{newline}"
    fault = "cannot be changed so that all else in it stays; edit it yourself"
    return _checked(result, {**mapping.values, **values}, fault)


def without_votes(skill: SkillFile) -> str:
    mapping = read_yaml(skill.text)
    if "rating" not in mapping.values:
        return skill.text
    start, end = mapping.keys["rating",].start, mapping.leaf_end(("rating",))
    result = skill.text[:start] + skill.text[end:].partition("\n")[2]
    values = {key: value for key, value in mapping.values.items() if key != "rating"}
    return _checked(result, values, "delete 'rating:' and the lines below it")


def _checked(text: str, values: Mapping[str, Any], fault: str) -> str:
    """Return an edited text if it has these values."""
    with suppress(YamlFormatError):
        if read_yaml(text).values == values:
            return text
    raise EntryFormatError(f"{NAME}: {fault}")


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return time_text(value)
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value


def _span(text: str, mapping: YamlMapping, key: str) -> tuple[int, int]:
    start = mapping.places[key,].start
    return start, start + len(text[start : mapping.leaf_end((key,))].rstrip())


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(scalar, value))}]"
    return scalar(value)


def check_values(**values: Any) -> dict[str, Any]:
    """Check and clean values of an entry.

    Raises:
        ConfigError: A value is wrong; the message begins with its name.
    """
    for key in values.keys() - {"tags", "status"}:
        values[key] = check_text(key, values[key])
    if "status" in values:
        values["status"] = check_member("status", values["status"], EntryStatus)
    if "tags" in values:
        if not _is_list(values["tags"]):
            raise ConfigError(
                f"tags={values['tags']!r}: give a list of words, such as ['logs', 'python']"
            )
        values["tags"] = [check_text("tags", each) for each in values["tags"]]
    if not values.get("title", "x").strip():
        raise ConfigError("title: is empty; describe the entry in one line")
    fields = {key: value for key, value in values.items() if key in _FIELDS}
    try:
        skill = SkillFile(**fields)
    except ValidationError as error:
        path, reason = _first(error)
        raise ConfigError(f"{path[0]}: {reason}") from None
    return values | {key: getattr(skill, key) for key in fields}
