"""Cells of a workbook as their formats show them: dates, times and percentages."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from typing import Any

_QUOTED = re.compile(r'"([^"]*)"|\\(.)|\[(?!h|m|s)[^\]]*\]|_.|\*.', re.IGNORECASE)
_PARTS = re.compile(
    r"am/pm|a/p|yyyy|yy|mmmmm|mmmm|mmm|mm|m|dddd|ddd|dd|d|\[h+\]|\[m+\]|\[s+\]|hh|h|ss|s|0+|.",
    re.IGNORECASE,
)
_PERCENT = re.compile(r"0(?:\.(0+))?\s*%")
# what Excel writes for "the date of this country"
_LOCAL = frozenset({"mm-dd-yy", "m/d/yy h:mm", "general", ""})


def shown(value: Any, number_format: str | None) -> str:
    """A cell's value as its format shows it, on one line.

    A date whose format is that of the reader's country is written as ISO 8601 has it.

    Args:
        value: The value, as openpyxl gives it.
        number_format: The format, such as ``dd/mm/yyyy`` or ``0.0%``.
    """
    form = (number_format or "").partition(";")[0]
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, timedelta):
        return _duration(value)
    if isinstance(value, (datetime, date, time)):
        return _date(value, form)
    if isinstance(value, (int, float)) and (percent := _PERCENT.search(form)):
        return f"{value:.{len(percent[1] or '')}%}"
    if isinstance(value, float) and not value.is_integer():
        return f"{value:.15g}"  # what Excel keeps
    return "" if value is None else str(int(value) if isinstance(value, float) else value)


def _duration(value: timedelta) -> str:
    seconds = round(value.total_seconds())
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _date(value: datetime | date | time, form: str) -> str:
    if form.lower() in _LOCAL or not re.search("[ymdhs]", form, re.IGNORECASE):
        return _iso(value, form)
    plain = _QUOTED.sub(lambda found: found[1] or found[2] or "", form)
    parts = _PARTS.findall(plain)
    half = any(part.lower() in {"am/pm", "a/p"} for part in parts)
    return " ".join("".join(_written(value, parts, half)).split())


def _iso(value: datetime | date | time, form: str) -> str:
    if isinstance(value, datetime):
        day = value.time() == time() and "h" not in form.lower()
        return value.date().isoformat() if day else value.isoformat(" ", "auto")
    return value.isoformat()


def _written(value: datetime | date | time, parts: list[str], half: bool) -> list[str]:
    """The parts of a format, each as it is of a date or a time."""
    out: list[str] = []
    names = [part.lower() for part in parts]
    for number, part in enumerate(names):
        before = next((one for one in reversed(names[:number]) if one[0] in "ymdhs["), "")
        after = next((one for one in names[number + 1 :] if one[0] in "ymdhs["), "")
        if part in {"m", "mm"} and (before.strip("[")[:1] == "h" or after.strip("[")[:1] == "s"):
            part = part.replace("m", "n")  # noqa: PLW2901 - minutes
        directive = _DIRECTIVES.get(part)
        if directive is None:
            out.append(parts[number])
            continue
        if "%I" in directive and not half:
            directive = directive.replace("%I", "%H")
        dated = isinstance(value, time) and directive[-1] in "YymBbdAa"
        text = "" if dated else value.strftime(directive.lstrip("-"))
        out.append(text.lstrip("0") or "0" if directive.startswith("-") else text)
    return out


_DIRECTIVES = {
    "yyyy": "%Y", "yy": "%y", "mmmm": "%B", "mmm": "%b", "mm": "%m", "m": "-%m", "dddd": "%A",
    "ddd": "%a", "dd": "%d", "d": "-%d", "hh": "%I", "h": "-%I", "[h]": "-%H", "[hh]": "%H",
    "nn": "%M", "n": "-%M", "ss": "%S", "s": "-%S", "am/pm": "%p", "a/p": "%p",
}  # fmt: skip
