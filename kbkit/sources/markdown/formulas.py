"""LaTeX formulas on their own lines."""

from __future__ import annotations

import re

_ENVIRONMENT = re.compile(
    r"\\begin\{((?:equation|align|alignat|gather|multline|eqnarray|math|displaymath)\*?)\}"
)
_FORMULA_END = re.compile(r"(?P<text>[^$]*\$\$)[ \t]*(?:\([\w:.-]+\))?[ \t]*$")
_MAX_LENGTH = 200  # lines


def formula_block(lines: list[str], at: int) -> tuple[list[str], int] | None:
    """The formula that begins at a line, and the line behind it; ``None`` where none does.

    It stands between lines of dollars, behind which a label may be, or it is an environment.
    """
    if environment := _ENVIRONMENT.match(lines[at]):
        ending = f"\\end{{{environment[1]}}}"
        for end in range(at, min(at + _MAX_LENGTH, len(lines))):
            if lines[end].rstrip().endswith(ending):
                return formula_lines(lines[at : end + 1]), end + 1
    elif lines[at].strip() == "$$":
        for end in range(at + 1, min(at + _MAX_LENGTH, len(lines))):
            if found := _FORMULA_END.match(lines[end]):
                return [*lines[at:end], found["text"]], end + 1
    return None


def formula_lines(lines: list[str]) -> list[str]:
    """A formula between dollars, as it is kept; it has no blank lines, which would end it."""
    return ["$$", *(line for line in lines if line.strip()), "$$"]
