"""Value objects: JSON and back, schemas, text for people, and problems.

All interfaces (command line, REST, MCP) show these objects.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import date, datetime
from enum import Enum, StrEnum
from functools import cache
from itertools import takewhile
from math import isfinite
from os import PathLike, urandom
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast, get_type_hints, overload

from kbkit.errors import VersionConflictError

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")

FILES = "files"
"""Name and id of the knowledge base of files, and their folder."""
ENTRIES = "entries"
"""Name and id of the knowledge base of entries, and their folder."""
BUILT_IN: Mapping[str, str] = {
    FILES: "Files that agents and people wrote",
    ENTRIES: "Solutions that worked, of agents and people",
}
"""Descriptions of the knowledge bases that every workspace has, by name."""
_Item = TypeVar("_Item")

_MAX_LENGTH = 300  # characters of a field shown to a person


class Value:
    """Base of dataclasses that convert to JSON and are shown as tables in notebooks.

    A class with other JSON values overrides `to_dict`, whose return type is a ``TypedDict``.
    """

    __slots__ = ()

    def to_dict(self) -> Mapping[str, Any]:
        """Return JSON values: times in ISO 8601, paths as text, tuples as lists."""
        return {
            field.name: to_json(getattr(self, field.name))
            for field in fields(self)  # type: ignore[arg-type]  # every subclass is a dataclass
        }

    def lines(self) -> list[tuple[str, str]]:
        """Return labels and values for a person; empty ones are left out."""
        lines = []
        for field in fields(self):  # type: ignore[arg-type]
            if text := format_value(getattr(self, field.name)):
                cut = text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 1]}…"
                lines.append((field.name.replace("_", " "), cut))
        return lines

    def _repr_html_(self) -> str:
        rows = (
            f"<tr><th style='text-align:left'>{html.escape(label)}</th>"
            f"<td style='text-align:left'>{html.escape(value)}</td></tr>"
            for label, value in self.lines()
        )
        return f"<table>{''.join(rows)}</table>"


class Several(Sequence[_Item]):
    """Base of dataclasses that are sequences of one field; a slice is of the same class."""

    __slots__ = ()
    _items: ClassVar[str]

    def __len__(self) -> int:
        return len(getattr(self, self._items))

    def __iter__(self) -> Iterator[_Item]:
        return iter(getattr(self, self._items))

    @overload
    def __getitem__(self, index: int) -> _Item: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> Any:
        items = getattr(self, self._items)[index]
        if isinstance(index, slice):
            return replace(self, **{self._items: items})  # type: ignore[type-var]
        return items


def format_value(value: Any) -> str:
    """Return a value as text for a person."""
    if value is None or (isinstance(value, Sized) and not value):
        return ""
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.4g}"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M} {value:%Z}".rstrip()
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {format_value(item)}" for name, item in value.items())
    if isinstance(value, tuple | list | set | frozenset):
        return ", ".join(map(format_value, value))
    return str(value)


def brief(value: Any) -> str:
    """Return the beginning of a value's ``repr``, for messages."""
    try:
        return repr(value)[:200]
    except ValueError:
        return "a number with too many digits"


_SHOULD = re.compile(r"^(?:Input|String|List|Dictionary|Mapping|Value|Number) should ")


def fault_reason(fault: Mapping[str, Any]) -> str:
    """Return the reason of an item of pydantic's `ValidationError.errors`."""
    if fault["type"] == "missing":
        return "is missing"
    if fault["type"] == "extra_forbidden":
        return "is unknown"
    if fault["type"] == "json_invalid":
        return f"is not JSON ({fault['ctx']['error']})"
    if fault["type"] in ("model_type", "model_attributes_type"):
        return "is not a mapping; give keys and their values"
    if fault["type"] == "string_pattern_mismatch" and "https?" in fault["ctx"]["pattern"]:
        if "@" in str(fault["input"]).partition("://")[2].partition("/")[0]:
            return "contains a user name or password; leave it out"
        return "not a web address; begin it with http:// or https://"
    return reword(fault["msg"])


def reword(message: str) -> str:
    """Return a message of pydantic in kbkit's wording."""
    return _SHOULD.sub("must ", message.removeprefix("Value error, "))


def to_json(value: Any) -> Any:
    """Convert a value and its fields to JSON values."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, PathLike):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, tuple | list | set | frozenset):
        return [to_json(item) for item in value]
    return value


def from_dict(kind: type[T], data: Any) -> T:
    """Make a value object of a class from the output of its ``to_dict``, also after JSON.

    Unknown keys are ignored. A class may have its own ``from_dict``.

    Raises:
        pydantic.ValidationError: The values are invalid.
    """
    parse = getattr(kind, "from_dict", None) or adapter(cast("Hashable", kind)).validate_python
    return parse(data)


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def shape_of(kind: type) -> Any:
    shape = get_type_hints(kind.to_dict).get("return", kind)  # type: ignore[attr-defined]
    is_typed_dict = isinstance(shape, type) and hasattr(shape, "__required_keys__")
    return shape if is_typed_dict else kind


def schema(kind: type) -> dict[str, Any]:
    """Return the JSON schema of the ``to_dict`` of a class of `kbkit.models`, or of a report."""
    return adapter(shape_of(kind)).json_schema(mode="serialization")


_MAX_NAME_LENGTH = 200  # characters of an unknown name to compare
_MAX_NAMES = 20  # in an error
_INVISIBLE_SET = r"\u061c\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f"
_INVISIBLE = re.compile(f"[{_INVISIBLE_SET}]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_UNSAFE = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f-\x9f{_INVISIBLE_SET}]")
_COLOURED = re.compile(rf"(\x1b\[[0-9;]*m)|{_UNSAFE.pattern}")


def plain(text: str) -> str:
    """Return one line without control, bidirectional or invisible characters."""
    return " ".join(_CONTROL.sub(" ", _INVISIBLE.sub("", text)).split())


def without_controls(text: str, *, colours: bool = False) -> str:
    if colours:
        return _COLOURED.sub(lambda match: match[1] or "", text)
    return _UNSAFE.sub("", text.replace("\r\n", "\n"))


def escape_controls(text: str) -> str:
    """Escape control and bidirectional characters in JSON."""
    return _UNSAFE.sub(lambda match: json.dumps(match[0])[1:-1], text)


def did_you_mean(name: object, choices: Iterable[str], otherwise: str = "") -> str:
    from difflib import get_close_matches

    names = list(map(str, choices))
    if matches := get_close_matches(str(name)[:_MAX_NAME_LENGTH], names, 1):
        return f"did you mean {matches[0]!r}?"
    if otherwise or not names:
        return otherwise or "leave it out"
    remainder = f" and {len(names) - _MAX_NAMES:,} more" if len(names) > _MAX_NAMES else ""
    return f"choose from {', '.join(names[:_MAX_NAMES])}{remainder}"


def check_match(what: str, expected: str | None, version: str) -> None:
    """Raise `VersionConflictError` if something has another version than expected."""
    if expected is not None and expected != version:
        raise VersionConflictError(
            f"{what}: was changed since you read it; read it again and repeat your change "
            f"(expected version {expected[:80]!r}, current version {version!r})"
        )


def shared_length(paths: Iterable[Sequence[str]]) -> int:
    """Return the length of the common prefix of all paths."""
    return sum(1 for _ in takewhile(lambda parts: len(set(parts)) == 1, zip(*paths, strict=False)))


def pluralize(number: int, noun: str = "document") -> str:
    """Count a noun, such as ``1 page``, ``1,200 pages`` or ``2 entries``."""
    if number != 1:
        noun = f"{noun[:-1]}ies" if noun.endswith(("ry", "ty")) else f"{noun}s"
    return f"{number:,} {noun}"


def valid(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def without_nul(text: str) -> str:
    return valid(text).replace("\0", "")


def valid_values(value: Any) -> Any:
    """Return JSON values that can be stored and sent: without lone surrogates, NaN and infinity."""
    if isinstance(value, str):
        return valid(value)
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, list):
        return [valid_values(item) for item in value]
    if isinstance(value, Mapping):
        return {valid_values(name): valid_values(item) for name, item in value.items()}
    return value


def plain_line(line: str) -> str:
    """Return a line as `plain` text with its indentation."""
    return " " * (len(line) - len(line.lstrip(" "))) + plain(line)


def plain_lines(text: str, limit: int = 8) -> list[str]:
    """Return the first lines of a text as `plain` lines, with their indentation."""
    lines = [line.rstrip() for line in text.split("\n")]
    visible = [plain_line(line) for line in lines if line]
    return visible if len(visible) <= limit else [*visible[: limit - 1], f"{visible[limit - 1]} …"]


def quotation_mark() -> str:
    """Return a random mark for the tags around quoted text, which the text cannot predict.

    This is the delimiting of Hines et al., "Defending Against Indirect Prompt Injection Attacks
    With Spotlighting" (2024); it lowers the risk, but does not remove it. The mark consists of
    digits, so that all marks have the same number of tokens. With ten digits, a text full of
    guesses succeeds with a chance of 1 in 10 million each time it is quoted.
    """
    return f"quote-{int.from_bytes(urandom(8)) % 10**10:010}"


class TargetKind(StrEnum):
    """Kind of target."""

    CHUNK = "chunk"
    DOCUMENT = "document"
    FILE = "file"
    ENTRY = "entry"
    ENTITY = "entity"


@dataclass(frozen=True, slots=True)
class Target(Value):
    """A target of ratings, relations or annotations; ``id`` is unique within its kind."""

    kind: TargetKind
    id: str

    @property
    def key(self) -> str:
        """Kind and id, such as ``file:notes/pools.md``."""
        return f"{self.kind.value}:{self.id}"

    @classmethod
    def of_key(cls, key: str) -> Target:
        """Read the target from its `key`."""
        kind, _, id_ = key.partition(":")
        return cls(TargetKind(kind), id_)

    def __str__(self) -> str:
        return self.id


@dataclass(frozen=True, slots=True)
class Problem(Value):
    """A skipped or failed item, and the reason."""

    uri: str
    reason: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", self.reason.removeprefix(f"{self.uri}: "))

    def __str__(self) -> str:
        return f"{self.uri}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Finding(Value):
    """A defect.

    Attributes:
        part: ``catalog``, ``configuration``, ``vectors``, ``embedder``, ``index``, ``snapshot``,
            ``files`` or ``entries``.
        kb: Name of the knowledge base; empty for the whole workspace.
        mended: Whether it was repaired.
    """

    part: str
    kb: str
    problem: str
    remedy: str
    mended: bool = False

    def __str__(self) -> str:
        where = f"{self.kb}: " if self.kb else ""
        return f"{where}{self.problem}; {'repaired' if self.mended else self.remedy}"


@dataclass(frozen=True, slots=True)
class Health(Value):
    """Result of `Workspace.doctor`.

    Attributes:
        findings: Causes before consequences.
    """

    findings: tuple[Finding, ...] = ()
    knowledge_bases: int = 0

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong, or all was repaired."""
        return all(finding.mended for finding in self.findings)

    def __str__(self) -> str:
        return "\n".join(map(str, self.findings)) or "sound"
