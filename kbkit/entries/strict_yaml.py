"""A YAML mapping with the place of each value; without tags, anchors and repeated keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import yaml

from kbkit.errors import EntryFormatError
from kbkit.sources.untrusted import scalar_value

MAX_BYTES = 4_000_000
UPDATED = "updated_at"
_MAX_CACHED_LENGTH = 200_000
_DEEPEST = 30
_MAX = 500_000

Path = tuple[str | int, ...]


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

    def fault(self, path: Path, reason: str) -> EntryFormatError:
        place = self.places.get(path) or self.keys.get(path) or self.places.get(path[:-1])
        name = ".".join(map(str, path))
        if place is None:
            return EntryFormatError(f"{name}: {reason}")
        where = f"line {place.line}, column {place.column}"
        return EntryFormatError(f"{where}: {name}: {reason}", place.line, place.column)


def read_yaml(text: str, *, as_texts: bool = False) -> YamlMapping:
    """Parse a mapping, cached; callers must not change it."""
    if len(text) > MAX_BYTES:
        raise EntryFormatError(f"has more than {MAX_BYTES / 1e6:g} MB")
    return (_read_once if len(text) <= _MAX_CACHED_LENGTH else _read)(text, as_texts)


def _read(text: str, as_texts: bool) -> YamlMapping:
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _Reader(iter(yaml.parse(text, Loader=loader)), as_texts).read()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        reason = error.problem or error.context or "not YAML"
        raise EntryFormatError(f"line {line}, column {column}: {reason}", line, column) from None
    except yaml.reader.ReaderError as error:
        before = text[: max(0, int(error.position))]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        raise EntryFormatError(
            f"line {line}, column {column}: a character that YAML does not allow", line, column
        ) from None


_read_once = lru_cache(maxsize=16)(_read)  # one vote reads the same texts a dozen times


class _Reader:
    def __init__(self, events: Iterator[Any], as_texts: bool) -> None:
        self._events = events
        self._as_texts = as_texts
        self._count = 0
        self.found = YamlMapping({})

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
                    raise _fault(event, "is not a mapping; write lines such as 'title: Parse logs'")
                root = self._value(event, ())
        if root is None:
            raise EntryFormatError("line 1, column 1: is empty; write 'title: ...'", 1, 1)
        self.found.values = root
        return self.found

    def _value(self, event: Any, path: Path) -> Any:
        self._count += 1
        if self._count > _MAX:
            raise _fault(event, f"more than {_MAX:,} values")
        if len(path) > _DEEPEST:
            raise _fault(event, f"nested more than {_DEEPEST} deep")
        if isinstance(event, yaml.AliasEvent) or event.anchor:
            raise _fault(event, "anchors and aliases ('&', '*') are not supported; write it out")
        if event.tag is not None and not event.tag.startswith("tag:yaml.org,2002:str"):
            raise _fault(event, f"tags ({event.tag[:60]}) are not supported; leave it out")
        if isinstance(event, yaml.ScalarEvent):
            value, end = event.value if self._as_texts else scalar_value(event), event
        elif isinstance(event, yaml.SequenceStartEvent):
            value, end = self._list(path)
        else:
            value, end = self._mapping(path)
        if getattr(event, "flow_style", False):
            self.found.flow.add(path)
        self.found.places[path] = _place(event, end)
        return value

    def _list(self, path: Path) -> tuple[list[Any], Any]:
        items: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._value(event, (*path, len(items))))
        return items, event

    def _mapping(self, path: Path) -> tuple[dict[str, Any], Any]:
        items: dict[str, Any] = {}
        twice: EntryFormatError | None = None
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent) or event.anchor:
                raise _fault(event, "a key that is not text")
            key, at = event.value, (*path, event.value)
            if key in items and at != (UPDATED,):
                twice = twice or _fault(event, f"{key!r} is repeated here")
            self.found.keys[at] = _place(event, event)
            value, earlier = self._value(next(self._events), at), items.get(key)
            # after a merge by union both changes have their time
            items[key] = max(value, earlier, key=str) if earlier else value
        if twice is not None:
            raise twice
        return items, event


def _place(start: Any, end: Any) -> Place:
    mark = start.start_mark
    return Place(mark.line + 1, mark.column + 1, mark.index, end.end_mark.index)


def _fault(event: Any, reason: str) -> EntryFormatError:
    line, column = event.start_mark.line + 1, event.start_mark.column + 1
    return EntryFormatError(f"line {line}, column {column}: {reason}", line, column)


def leaf_end(mapping: YamlMapping, path: Path) -> int:
    """Return the end of the last value below a path; a block's own end is after comments."""
    inside = [
        place.end
        for at, place in mapping.places.items()
        if at[: len(path)] == path
        and (not isinstance(_at(mapping.values, at), dict | list) or at in mapping.flow)
    ]
    return max(inside, default=mapping.keys[path].end if path in mapping.keys else 0)


def _at(value: Any, path: Path) -> Any:
    for part in path:
        value = value[part]
    return value
