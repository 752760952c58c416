"""Votes in a ``skill.yaml``: read, add, merge. Pure functions.

A vote is one line, so that two people's votes are two lines to git, which its driver ``union``
puts below each other. What is not a vote is left as it is, to the character: only the average,
the number of votes, and a line for a new one are written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from kbkit.entries.yaml_reader import Path, YamlMapping, read_yaml
from kbkit.errors import EntryFormatError
from kbkit.models import EntryRating, Vote

KEY = "rating"
UPDATED = "updated_at"
_RATING: Path = (KEY,)
_AVERAGE, _COUNT, _VOTES = ((KEY, name) for name in ("average", "count", "votes"))
_MARKER = re.compile(r"(<{7}|\|{7}|={7}|>{7})(?: [^\n]*)?\r?\n?")
_HEAD = re.compile(r"rating\s*:\s*(#.*)?")
_UPDATED = re.compile(rf"^{UPDATED}[ \t]*:[ \t]*(\S*).*\n?", re.MULTILINE)
_VOTE = re.compile(r"\s+- \{score: .*\}")
_SHORT = re.compile(r"[\w-]+:\s+[^\s|>&*!].*")
"""A key with its value on one line."""
_FIGURE = re.compile(r"\s+(average|count|votes)\s*:.*")


@lru_cache(maxsize=16)
def rating_of(found: YamlMapping) -> EntryRating:
    """Summarize votes in a text; average and number are computed from them."""
    rating = found.values.get(KEY)
    if rating is None:
        return EntryRating()
    if not isinstance(rating, dict):
        raise found.fault(_RATING, "is to hold average, count and votes")
    votes = rating.get("votes")
    if votes is None:
        return EntryRating()
    if not isinstance(votes, list):
        raise found.fault(_VOTES, "is to be a list")
    read = [_vote(found, vote, (*_VOTES, number)) for number, vote in enumerate(votes)]
    return EntryRating.of(tuple(sorted(set(read))))


def _vote(found: YamlMapping, value: Any, path: Path) -> Vote:
    if not isinstance(value, dict):
        raise found.fault(path, "is to hold score, timestamp and rater")
    score, rater, said = (value.get(name) for name in ("score", "rater", "timestamp"))
    if isinstance(score, bool) or not isinstance(score, int) or not 1 <= score <= 5:
        raise found.fault((*path, "score"), "must be an integer from 1 to 5")
    try:
        return Vote(read_time(said), "" if rater is None else str(rater), score)
    except ValueError:
        raise found.fault(
            (*path, "timestamp"), "must be a time such as 2026-01-31T12:00:00Z"
        ) from None


def read_time(said: Any) -> datetime:
    """A time in ISO 8601; one without a zone is in UTC."""
    if not isinstance(said, str):
        raise ValueError("no time")
    at = datetime.fromisoformat(said.strip())
    try:
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except OverflowError:
        raise ValueError("no time that has a zone") from None


def time_text(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def with_votes(text: str, votes: Iterable[Vote]) -> str:
    found = read_yaml(text)
    before = rating_of(found)
    after = EntryRating.of(tuple(sorted({*before.votes, *votes})))
    if _agrees(found, after):
        return text
    if () in found.flow:
        raise EntryFormatError(
            "is one line in braces; write a line for each key, so that votes "
            "can be written below 'rating:'"
        )
    made = _written(text, found, before, after)
    _check(found, made, after)
    return made


def with_rating(text: str, rating: EntryRating) -> str:
    found = read_yaml(text)
    made = _with_block(text, found, rating, "\r\n" if "\r\n" in text else "\n")
    _check(found, made, rating)
    return made


def _agrees(found: YamlMapping, rating: EntryRating) -> bool:
    said = found.values.get(KEY)
    if said is None:
        return not rating.count
    return (
        isinstance(said, dict)
        and said.get("average") == rating.average
        and said.get("count") == rating.count
        and len(said.get("votes") or ()) == rating.count
    )


def _written(text: str, found: YamlMapping, before: EntryRating, after: EntryRating) -> str:
    end = "\r\n" if "\r\n" in text else "\n"
    there = (found.values.get(KEY) or {}).get("votes") or []
    places = found.places
    lines = (
        all(path in places for path in (_AVERAGE, _COUNT, _VOTES))
        and _RATING not in found.flow
        and not (_VOTES in found.flow and there)
        and len(there) == before.count
    )
    if not lines:
        return _with_block(text, found, after, end)
    new = [vote for vote in after.votes if vote not in before.votes]
    edits = [
        (places[_AVERAGE].start, places[_AVERAGE].end, f"{after.average:g}"),
        (places[_COUNT].start, places[_COUNT].end, str(after.count)),
    ]
    if new and there:
        indent = " " * (places[_VOTES].column - 1)
        at = _line_end(text, _leaf_end(found, (*_VOTES, len(there) - 1)))
        edits.append((at, at, "".join(f"{end}{indent}- {_line(vote)}" for vote in new)))
    elif new:
        indent = " " * (found.keys[_VOTES].column + 1)
        at = len(text[: places[_VOTES].start].rstrip(" "))
        edits.append(
            (at, places[_VOTES].end, "".join(f"{end}{indent}- {_line(vote)}" for vote in new))
        )
    for start, stop, part in sorted(edits, reverse=True):
        space = " " if part and start == stop and text[start - 1 : start] == ":" else ""
        text = text[:start] + (space if not part.startswith(end) else "") + part + text[stop:]
    return text


def _with_block(text: str, found: YamlMapping, rating: EntryRating, end: str) -> str:
    block = block_of(rating).replace("\n", end)
    if (span := span_of(text, found)) is None:
        gap = "" if not text or text.endswith("\n") else end
        return f"{text}{gap}{block}"
    start, stop = span
    return text[:start] + block.removesuffix(end) + text[stop:]


def span_of(text: str, found: YamlMapping) -> tuple[int, int] | None:
    """Return the span of the votes in a text; ``None`` without votes."""
    if _RATING not in found.keys:
        return None
    return found.keys[_RATING].start, _line_end(text, _leaf_end(found, _RATING))


def block_of(rating: EntryRating) -> str:
    lines = [f"{KEY}:", f"  average: {rating.average:g}", f"  count: {rating.count}"]
    lines.append("  votes:" if rating.votes else "  votes: []")
    lines += [f"    - {_line(vote)}" for vote in rating.votes]
    return "\n".join(lines) + "\n"


def _line(vote: Vote) -> str:
    rater = json.dumps(vote.rater, ensure_ascii=False)
    rater = re.sub("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]", "?", rater)
    return f"{{score: {vote.score}, timestamp: {time_text(vote.timestamp)}, rater: {rater}}}"


def _leaf_end(found: YamlMapping, path: Path) -> int:
    """Return the end of the last value below a path; a block's own end is after comments."""
    inside = [
        place.end
        for at, place in found.places.items()
        if at[: len(path)] == path
        and (not isinstance(_at(found.values, at), dict | list) or at in found.flow)
    ]
    return max(inside, default=found.keys[path].end if path in found.keys else 0)


def _at(value: Any, path: Path) -> Any:
    for part in path:
        value = value[part]
    return value


def _line_end(text: str, at: int) -> int:
    stop = text.find("\n", at)
    stop = len(text) if stop < 0 else stop
    return stop - 1 if text[at:stop].endswith("\r") else stop


def _check(found: YamlMapping, made: str, rating: EntryRating) -> None:
    now = read_yaml(made)
    if _rest(now.values) != _rest(found.values) or rating_of(now) != rating:
        raise found.fault(
            _RATING,
            "votes cannot be written there; write it as kbkit does: rating:,"
            " and below it average:, count: and votes:",
        )


def _rest(values: Mapping[str, Any], *without: str) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key != KEY and key not in without}


def united(text: str) -> str:
    """Resolve a merge conflict in a text's votes, if there is one.

    What git leaves with its marks and what its driver ``union`` leaves is put together: all votes
    of both sides, each once, average and number counted anew. Of two times of the last change the
    later one is kept, since two edits of other lines leave two.
    """
    if any(_MARKER.fullmatch(line) and line.startswith("<") for line in _lines(text)):
        return _of_sides(text)
    try:
        read_yaml(text)
    except EntryFormatError as error:
        made = _with_last_update(_of_union(text) or text)
        try:
            read_yaml(made)
        except EntryFormatError:
            raise error from None
        return made
    return text


def _with_last_update(text: str) -> str:
    said = list(_UPDATED.finditer(text))
    if len(said) < 2:
        return text
    last = max(said, key=lambda each: each[1].strip("'\""))
    for each in reversed(said):
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
    """Merge the lines of votes from both sides.

    Lines between the votes and what both sides changed besides may stand there twice, word for
    word; they are kept once. ``None`` where there are other lines among the votes.
    """
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
