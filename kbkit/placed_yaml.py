"""A YAML mapping with the place of each value; without tags, anchors and repeated keys.

It is built from the parser's events: the usual loaders recurse, so that deep nesting kills the
process, and let aliases blow up a small text.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import yaml

_LATEST = "updated_at"
"""A key that may be repeated, as after a merge by union; the last value in order counts."""
_MAX_CACHED_LENGTH = 200_000
_MAX_DEPTH = 30
_MAX = 500_000

_INT = re.compile(r"[-+]?[0-9]{1,400}")
_HEX = re.compile(r"0x[0-9a-fA-F]{1,400}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_UNREADABLE = re.compile("[\\0\ud800-\udfff]")

Path = tuple[str | int, ...]


class YamlFormatError(ValueError):
    """A text is not such a mapping; the message names line and column, from 1."""

    def __init__(self, line: int, column: int, reason: str) -> None:
        self.line = line
        self.column = column
        self.reason = reason
        super().__init__(f"line {line}, column {column}: {reason}")


@dataclass(frozen=True, slots=True)
class Place:
    """Position of a value: 1-based line and column, and the index of its end."""

    line: int
    column: int
    start: int
    end: int


@dataclass(slots=True, eq=False)
class YamlMapping:
    """Values of a text; ``flow`` has the paths of mappings and lists in brackets."""

    values: dict[str, Any]
    keys: dict[Path, Place] = field(default_factory=dict)
    places: dict[Path, Place] = field(default_factory=dict)
    flow: set[Path] = field(default_factory=set)

    def at(self, path: Path) -> Any:
        """Return the value at a path."""
        value: Any = self.values
        for part in path:
            value = value[part]
        return value

    def leaf_end(self, path: Path) -> int:
        """Return the end of the last value below a path; a block's own end is after comments."""
        inside = [
            place.end
            for place_path, place in self.places.items()
            if place_path[: len(path)] == path
            and (not isinstance(self.at(place_path), dict | list) or place_path in self.flow)
        ]
        return max(inside, default=self.keys[path].end if path in self.keys else 0)

    def fault(self, path: Path, reason: str) -> YamlFormatError:
        place = self.places.get(path) or self.keys.get(path) or self.places.get(path[:-1])
        place = place or self.places[()]
        return YamlFormatError(place.line, place.column, f"{'.'.join(map(str, path))}: {reason}")


def read_yaml(text: str, *, as_texts: bool = False) -> YamlMapping:
    """Parse a mapping, cached; callers must not change it.

    Values are those of YAML 1.2's core schema, or texts if ``as_texts``.

    Raises:
        YamlFormatError: The text is not such a mapping.
    """
    return (_read_once if len(text) <= _MAX_CACHED_LENGTH else _read)(text, as_texts)


def _read(text: str, as_texts: bool) -> YamlMapping:
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _PlacedReader(iter(yaml.parse(text, Loader=loader)), as_texts).read()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise YamlFormatError(line, column, f"not YAML: {error.problem or error.context}") from None
    except yaml.reader.ReaderError as error:
        before = text[: max(0, int(error.position))]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        raise YamlFormatError(
            line, column, "not YAML: a character that it does not allow"
        ) from None


_read_once = lru_cache(maxsize=16)(_read)  # one vote reads the same texts a dozen times


class _PlacedReader:
    def __init__(self, events: Iterator[Any], as_texts: bool) -> None:
        self._events = events
        self._as_texts = as_texts
        self._count = 0
        self._result = YamlMapping({})

    def read(self) -> YamlMapping:
        root: Any = None
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise _fault(event, "a second document ('---'); only one is allowed")
                if event.version or event.tags:
                    raise _fault(event, "directives ('%') are not supported")
            elif isinstance(event, yaml.NodeEvent):
                if not isinstance(event, yaml.MappingStartEvent):
                    raise _fault(event, "is not a mapping; write lines such as 'name: x'")
                root = self._value(event, ())
        if root is None:
            raise YamlFormatError(1, 1, "is empty; write lines such as 'name: x'")
        self._result.values = root
        return self._result

    def _value(self, event: Any, path: Path) -> Any:
        self._count += 1
        if self._count > _MAX:
            raise _fault(event, f"more than {_MAX:,} values")
        if len(path) > _MAX_DEPTH:
            raise _fault(event, f"nested more than {_MAX_DEPTH} deep")
        if isinstance(event, yaml.AliasEvent) or event.anchor:
            raise _fault(event, "anchors and aliases ('&', '*') are not supported; write it out")
        if event.tag is not None and not event.tag.startswith("tag:yaml.org,2002:str"):
            raise _fault(event, f"tags ({event.tag[:60]}) are not supported; leave it out")
        if isinstance(event, yaml.ScalarEvent):
            if _UNREADABLE.search(event.value):
                raise _fault(event, "has a null character or a lone surrogate")
            value, end = event.value if self._as_texts else scalar_value(event), event
        elif isinstance(event, yaml.SequenceStartEvent):
            value, end = self._list(path)
        else:
            value, end = self._mapping(path)
        if getattr(event, "flow_style", False):
            self._result.flow.add(path)
        self._result.places[path] = _place(event, end)
        return value

    def _list(self, path: Path) -> tuple[list[Any], Any]:
        items: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._value(event, (*path, len(items))))
        return items, event

    def _mapping(self, path: Path) -> tuple[dict[str, Any], Any]:
        items: dict[str, Any] = {}
        repeat_fault: YamlFormatError | None = None
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent) or event.anchor:
                raise _fault(event, "a key that is not text")
            key, key_path = event.value, (*path, event.value)
            if key in items and key_path != (_LATEST,):
                repeat_fault = repeat_fault or _fault(event, f"{key!r} is repeated here")
            self._result.keys[key_path] = _place(event, event)
            value, earlier = self._value(next(self._events), key_path), items.get(key)
            # a merge by union keeps both times; the later one counts
            items[key] = max(value, earlier, key=str) if earlier else value
        if repeat_fault is not None:
            raise repeat_fault
        return items, event


def _place(start: Any, end: Any) -> Place:
    mark = start.start_mark
    return Place(mark.line + 1, mark.column + 1, mark.index, end.end_mark.index)


def _fault(event: Any, reason: str) -> YamlFormatError:
    return YamlFormatError(event.start_mark.line + 1, event.start_mark.column + 1, reason)


def scalar_value(event: Any) -> Any:
    """Return the value of a YAML scalar: text, number, boolean or ``None`` (1.2 core schema)."""
    text: str = event.value
    if not event.implicit[0] or event.style in ("'", '"', "|", ">"):
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text)
    if _HEX.fullmatch(text):
        return int(text, 16)
    if len(text) < 400 and _FLOAT.fullmatch(text):
        number = float(text)
        return number if math.isfinite(number) else text
    return text
