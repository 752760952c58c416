"""MDX: the code of its modules goes, components leave what they hold and what names it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from textwrap import dedent

from kbkit.markdown.admonitions import KINDS

_MODULE = re.compile(
    r"(?:import[ \t{*'\"].*|export[ \t]+(?:const|default|let|var|function|async|\{).*)$"
)
_BRACKETS = re.compile(r"[({\[]|[)}\]]")
_LONGEST_MODULE = 500  # lines
_OPENING = re.compile(r"[ \t]*<(?P<name>[A-Z][\w.]*)(?P<rest>(?:[ \t][^<>]*)?)(?<!/)>[ \t]*$")
_ATTRIBUTE = r"""\b(?:%s)=(?:"([^"\n]*)"|'([^'\n]*)'|\{[ ]*["'`]([^"'`\n{}]*)["'`][ ]*\})"""
_TITLE = re.compile(_ATTRIBUTE % "title|label|header|summary")
_TYPE = re.compile(_ATTRIBUTE % "type|kind|variant")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")


def module_end(lines: list[str], at: int) -> int:
    """The line behind an ``import`` or ``export``, 0 where none begins.

    It ends at the first blank line where no bracket is open.
    """
    if not _MODULE.match(lines[at]):
        return 0
    opened = 0
    for number, line in enumerate(lines[at : at + _LONGEST_MODULE], at):
        if not line.strip() and opened <= 0:
            return number
        opened += sum(1 if bracket in "({[" else -1 for bracket in _BRACKETS.findall(line))
    return len(lines) if opened <= 0 and len(lines) - at <= _LONGEST_MODULE else at + 1


@dataclass(frozen=True, slots=True)
class Component:
    """A component whose tags stand on lines of their own.

    Attributes:
        kind: What kind of admonition it is, or ``""``.
        title: What it says it is called, or ``""``.
        body: What it holds, without the indentation that all lines have.
        after: The line behind it.
    """

    kind: str
    title: str
    body: list[str]
    after: int

    @classmethod
    def at(cls, lines: list[str], at: int) -> Component | None:
        """The component that begins at a line, ``None`` if there is none, or it is not closed."""
        opening = _OPENING.match(lines[at])
        if opening is None:
            return None
        end = _closing_line(lines, at, opening["name"])
        if end is None:
            return None
        kind = opening["name"].lower()
        kind = _value(_TYPE, opening["rest"]).lower() or kind if kind in _FRAMES else kind
        return cls(
            kind if kind in KINDS else "",
            _value(_TITLE, opening["rest"]),
            dedent("\n".join(lines[at + 1 : end])).split("\n"),
            end + 1,
        )


_FRAMES = frozenset({"admonition", "callout", "aside", "alert"})
"""Components whose type tells what they are."""


def _closing_line(lines: list[str], at: int, name: str) -> int | None:
    """The line that closes a component, whatever of its kind is nested in it; code is passed by."""
    opens = re.compile(rf"[ \t]*<{re.escape(name)}(?:[ \t][^<>]*)?(?<!/)>[ \t]*$")
    closes = re.compile(rf"[ \t]*</{re.escape(name)}[ \t]*>[ \t]*$")
    depth = 0
    fence = ""
    for number in range(at, len(lines)):
        line = lines[number]
        if found := _FENCE.match(line):
            if not fence:
                fence = found[1]
            elif found[1].startswith(fence):
                fence = ""
        elif fence:
            continue
        elif opens.match(line):
            depth += 1
        elif closes.match(line):
            depth -= 1
            if not depth:
                return number
    return None


def _value(pattern: re.Pattern[str], attributes: str) -> str:
    found = pattern.search(attributes)
    return next(filter(None, found.groups()), "") if found else ""
