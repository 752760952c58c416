"""Votes in a ``skill.yaml``: read, add, merge. Pure functions.

A vote is one line, so that git's merge driver ``union`` keeps both people's votes. Only average,
number and new lines of votes are written; other text stays.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import yaml

from kbkit.errors import EntryFormatError
from kbkit.models import EntryRating, Vote
from kbkit.sources.untrusted import scalar_value

MAX_BYTES = 4_000_000  # about 40,000 votes
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
        place = self.places.get(path) or self.keys.get(path)
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
                    raise _fault(event, "directives ('%') are not taken")
            elif isinstance(event, yaml.NodeEvent):
                if not isinstance(event, yaml.MappingStartEvent):
                    raise _fault(event, "is no mapping; write lines such as 'title: Parse logs'")
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
            raise _fault(event, "anchors and aliases ('&', '*') are not taken; write it out")
        if event.tag is not None and not event.tag.startswith("tag:yaml.org,2002:str"):
            raise _fault(event, f"tags ({event.tag[:60]}) are not taken; leave it out")
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
                raise _fault(event, "a key that is no text")
            key, at = event.value, (*path, event.value)
            if key in items:
                reason = f"{key!r} is repeated here"
                twice = twice or _fault(event, reason)
            self.found.keys[at] = _place(event, event)
            items[key] = self._value(next(self._events), at)
        if twice is not None:
            raise twice
        return items, event


def _place(start: Any, end: Any) -> Place:
    mark = start.start_mark
    return Place(mark.line + 1, mark.column + 1, mark.index, end.end_mark.index)


def _fault(event: Any, reason: str) -> EntryFormatError:
    line, column = event.start_mark.line + 1, event.start_mark.column + 1
    return EntryFormatError(f"line {line}, column {column}: {reason}", line, column)


KEY = "rating"
UPDATED = "updated_at"
_RATING: Path = (KEY,)
_AVERAGE, _COUNT, _VOTES = ((KEY, name) for name in ("average", "count", "votes"))
_MARKER = re.compile(r"(<{7}|\|{7}|={7}|>{7})(?: [^\n]*)?\r?\n?")
_HEAD = re.compile(r"rating\s*:\s*(#.*)?")
_UPDATED = re.compile(rf"^{UPDATED}[ \t]*:[ \t]*(\S*).*\n?", re.MULTILINE)
_VOTE = re.compile(r"\s+- \{score: .*\}")
_SHORT = re.compile(r"[\w-]+:\s+[^\s|>&*!].*")
_FIGURE = re.compile(r"\s+(average|count|votes)\s*:.*")


@lru_cache(maxsize=16)
def rating_of(mapping: YamlMapping) -> EntryRating:
    """Compute average and number of the votes in a text."""
    rating = mapping.values.get(KEY)
    if rating is None:
        return EntryRating()
    if not isinstance(rating, dict):
        raise mapping.fault(_RATING, "must have average, count and votes")
    votes = rating.get("votes")
    if votes is None:
        return EntryRating()
    if not isinstance(votes, list):
        raise mapping.fault(_VOTES, "must be a list")
    read = [_vote(mapping, vote, (*_VOTES, number)) for number, vote in enumerate(votes)]
    return EntryRating.of(tuple(sorted(set(read))))


def _vote(mapping: YamlMapping, value: Any, path: Path) -> Vote:
    if not isinstance(value, dict):
        raise mapping.fault(path, "must have score, timestamp and rater")
    score, rater, time = (value.get(name) for name in ("score", "rater", "timestamp"))
    if isinstance(score, bool) or not isinstance(score, int) or not 1 <= score <= 5:
        raise mapping.fault((*path, "score"), "must be an integer from 1 to 5")
    try:
        return Vote(read_time(time), "" if rater is None else str(rater), score)
    except ValueError:
        raise mapping.fault(
            (*path, "timestamp"), "must be a time such as 2026-01-31T12:00:00Z"
        ) from None


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


def with_votes(text: str, votes: Iterable[Vote]) -> str:
    mapping = read_yaml(text)
    before = rating_of(mapping)
    after = EntryRating.of(tuple(sorted({*before.votes, *votes})))
    if _agrees(mapping, after):
        return text
    if () in mapping.flow:
        raise EntryFormatError(
            "is one line in braces; write a line for each key, so that votes "
            "can be written below 'rating:'"
        )
    result = _written(text, mapping, before, after)
    _check(mapping, result, after)
    return result


def with_rating(text: str, rating: EntryRating) -> str:
    mapping = read_yaml(text)
    result = _with_block(text, mapping, rating, "\r\n" if "\r\n" in text else "\n")
    _check(mapping, result, rating)
    return result


def _agrees(mapping: YamlMapping, rating: EntryRating) -> bool:
    votes = mapping.values.get(KEY)
    if votes is None:
        return not rating.count
    return (
        isinstance(votes, dict)
        and votes.get("average") == rating.average
        and votes.get("count") == rating.count
        and len(votes.get("votes") or ()) == rating.count
    )


def _written(text: str, mapping: YamlMapping, before: EntryRating, after: EntryRating) -> str:
    end = "\r\n" if "\r\n" in text else "\n"
    votes = (mapping.values.get(KEY) or {}).get("votes") or []
    places = mapping.places
    lines = (
        all(path in places for path in (_AVERAGE, _COUNT, _VOTES))
        and _RATING not in mapping.flow
        and not (_VOTES in mapping.flow and votes)
        and len(votes) == before.count
    )
    if not lines:
        return _with_block(text, mapping, after, end)
    new = [vote for vote in after.votes if vote not in before.votes]
    edits = [
        (places[_AVERAGE].start, places[_AVERAGE].end, f"{after.average:g}"),
        (places[_COUNT].start, places[_COUNT].end, str(after.count)),
    ]
    if new:
        if votes:
            column = places[_VOTES].column - 1
            at = stop = _line_end(text, leaf_end(mapping, (*_VOTES, len(votes) - 1)))
        else:
            column = mapping.keys[_VOTES].column + 1
            at, stop = len(text[: places[_VOTES].start].rstrip(" ")), places[_VOTES].end
        edits.append((at, stop, "".join(f"{end}{' ' * column}- {_line(vote)}" for vote in new)))
    for start, stop, part in sorted(edits, reverse=True):
        space = " " if part and start == stop and text[start - 1 : start] == ":" else ""
        text = text[:start] + (space if not part.startswith(end) else "") + part + text[stop:]
    return text


def _with_block(text: str, mapping: YamlMapping, rating: EntryRating, end: str) -> str:
    block = block_of(rating).replace("\n", end)
    if (span := span_of(text, mapping)) is None:
        gap = "" if not text or text.endswith("\n") else end
        return f"{text}{gap}{block}"
    start, stop = span
    return text[:start] + block.removesuffix(end) + text[stop:]


def span_of(text: str, mapping: YamlMapping) -> tuple[int, int] | None:
    """Return the span of the votes in a text; ``None`` without votes."""
    if _RATING not in mapping.keys:
        return None
    return mapping.keys[_RATING].start, _line_end(text, leaf_end(mapping, _RATING))


def block_of(rating: EntryRating) -> str:
    lines = [f"{KEY}:", f"  average: {rating.average:g}", f"  count: {rating.count}"]
    lines.append("  votes:" if rating.votes else "  votes: []")
    lines += [f"    - {_line(vote)}" for vote in rating.votes]
    return "\n".join(lines) + "\n"


def _line(vote: Vote) -> str:
    rater = json.dumps(vote.rater, ensure_ascii=False)
    rater = re.sub("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]", "?", rater)
    return f"{{score: {vote.score}, timestamp: {time_text(vote.timestamp)}, rater: {rater}}}"


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


def _line_end(text: str, at: int) -> int:
    stop = text.find("\n", at)
    stop = len(text) if stop < 0 else stop
    return stop - 1 if text[at:stop].endswith("\r") else stop


def _check(mapping: YamlMapping, made: str, rating: EntryRating) -> None:
    now = read_yaml(made)
    if _rest(now.values) != _rest(mapping.values) or rating_of(now) != rating:
        raise mapping.fault(
            _RATING,
            "votes cannot be written there; write it as kbkit does: rating:,"
            " and below it average:, count: and votes:",
        )


def _rest(values: Mapping[str, Any], *without: str) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key != KEY and key not in without}


def united(text: str) -> str:
    """Resolve a merge conflict in a text's votes, if there is one.

    Handles git's conflict marks and the result of its driver ``union``: keep each vote once,
    compute average and number again, and keep the later time of change.
    """
    if any(_MARKER.fullmatch(line) and line.startswith("<") for line in _lines(text)):
        return _of_sides(text)
    try:
        read_yaml(text)
    except EntryFormatError as error:
        result = _with_last_update(_of_union(text) or text)
        try:
            read_yaml(result)
        except EntryFormatError:
            raise error from None
        return result
    return text


def _with_last_update(text: str) -> str:
    times = list(_UPDATED.finditer(text))
    if len(times) < 2:
        return text
    last = max(times, key=lambda each: each[1].strip("'\""))
    for each in reversed(times):
        if each is not last:
            text = text[: each.start()] + text[each.end() :]
    return text


def _of_sides(text: str) -> str:
    sides: tuple[list[str], list[str]] = ([], [])
    state, first = "", 0
    for number, line in enumerate(_lines(text), 1):
        if marker := _MARKER.fullmatch(line):
            state = {"<": "ours", "|": "base", "=": "theirs", ">": ""}[marker[1][0]]
            first = first or number
            continue
        if state in ("", "ours"):
            sides[0].append(line)
        if state in ("", "theirs"):
            sides[1].append(line)
    conflict = EntryFormatError(
        f"line {first}, column 1: a merge left a conflict; choose between the sides, and delete "
        "its marks",
        first,
        1,
    )
    try:
        ours, theirs = (united("".join(side)) for side in sides)
        read = read_yaml(ours), read_yaml(theirs)
        if _rest(read[0].values, UPDATED) != _rest(read[1].values, UPDATED):
            raise conflict
        at = [str(each.values.get(UPDATED, "")) for each in read]
        kept, other = (ours, read[1]) if at[0] >= at[1] else (theirs, read[0])
        return with_votes(kept, rating_of(other).votes)
    except EntryFormatError:
        raise conflict from None


def _of_union(text: str) -> str | None:
    """Merge the votes of both sides, each once; ``None`` if other lines are among them."""
    kept, votes = list[str](), list[str]()
    at, inside = -1, False
    lines, seen = _lines(text), set[str]()
    for line, following in zip(lines, [*lines[1:], ""], strict=False):
        bare = line.rstrip("\r\n")
        if _HEAD.fullmatch(bare):
            inside, at = True, len(kept) if at < 0 else at
        elif _VOTE.fullmatch(bare):
            votes.append(f" {bare}\n")
        elif inside and bare[:1] == " ":
            if not _FIGURE.fullmatch(bare):
                votes.append(f" {bare}\n")
        else:
            inside = inside and (not bare or bare.startswith("#"))
            alone = not following[:1].isspace() or _VOTE.fullmatch(following.rstrip("\r\n"))
            if not (_SHORT.fullmatch(bare) and alone and bare in seen):
                kept.append(line)
            seen.add(bare)
    if at < 0:
        return None
    try:
        rating = rating_of(read_yaml(f"rating:\n votes:\n{''.join(votes)}"))
    except EntryFormatError:
        return None
    end = "\r\n" if "\r\n" in text else "\n"
    return "".join([*kept[:at], block_of(rating).replace("\n", end), *kept[at:]])


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)
