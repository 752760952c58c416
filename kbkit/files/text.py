"""What is done with the text of a file: its lines numbered, replaced, inserted. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kbkit.errors import ConfigError


def lines_of(text: str) -> list[str]:
    """The lines of a text, without what ends them; none of an empty one."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def numbered(text: str, lines: Sequence[int] | None = None) -> str:
    """The lines of a text, each behind its number of six places and a tab.

    Args:
        text: The text.
        lines: The first and the last to show, from 1; -1 is the last there is.

    Raises:
        ConfigError: There are no such lines.
    """
    all_lines = lines_of(text)
    first, last = 1, len(all_lines)
    if lines is not None:
        first, last = _range(lines, len(all_lines))
    shown = all_lines[first - 1 : last]
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(shown, first))


def _range(lines: Sequence[int], count: int) -> tuple[int, int]:
    if not isinstance(lines, list | tuple) or [type(each) for each in lines] != [int, int]:
        raise ConfigError(f"lines={lines!r}: give the first and the last, such as (1, 20)")
    first, last = lines
    if last == -1:
        last = max(count, first)
    if not 1 <= first <= last:
        raise ConfigError(f"lines={lines!r}: the first is 1 or more, and not behind the last")
    if first > max(count, 1):
        raise ConfigError(f"lines={lines!r}: there are {count:,} lines")
    return first, min(last, count)


def replaced(text: str, old: str, new: str) -> tuple[str, int]:
    """A text in which another stands for a part of it, and how often that part stands there.

    Where lines end as on Windows, those of both texts are taken to do so.
    """
    if "\r\n" in text and "\r" not in old:
        old, new = old.replace("\n", "\r\n"), new.replace("\r\n", "\n").replace("\n", "\r\n")
    places = list(occurrences(text, old))
    if len(places) != 1:
        return text, len(places)
    return text[: places[0]] + new + text[places[0] + len(old) :], 1


def occurrences(text: str, part: str) -> Iterator[int]:
    """Where a part stands in a text, overlapping ones included."""
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def inserted(text: str, line: int, part: str) -> str:
    """A text with another behind a line of it (0: at its beginning).

    Raises:
        ConfigError: There is no such line.
    """
    lines = _kept(text)
    if type(line) is not int or not 0 <= line <= len(lines):
        raise ConfigError(f"line={line!r}: give a whole number, 0 to {len(lines):,}")
    end = "\r\n" if "\r\n" in text else "\n"
    if part and not part.endswith("\n"):
        part += end
    if line and not lines[line - 1].endswith("\n"):
        lines[line - 1] += end
    return "".join([*lines[:line], part, *lines[line:]])


def _kept(text: str) -> list[str]:
    """The lines of a text with what ends them."""
    *ended, last = text.split("\n")
    return [*(f"{each}\n" for each in ended), *([last] if last else [])]


def with_newline(data: bytes) -> bytes:
    """What a file holds, its last line ended."""
    if not data or data.endswith(b"\n"):
        return data
    return data + (b"\r\n" if b"\r\n" in data else b"\n")
