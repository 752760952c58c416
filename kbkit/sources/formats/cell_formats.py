"""Write cell values as their number formats show them."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

_QUOTED = re.compile(r'"([^"]*)"|\\(.)|\[(?!h|m|s)[^\]]*\]|_.|\*.', re.IGNORECASE)
_PARTS = re.compile(
    r"am/pm|a/p|yyyy|yy|mmmmm|mmmm|mmm|mm|m|dddd|ddd|dd|d|\[h+\]|\[m+\]|\[s+\]|hh|h|ss|s|0+|.",
    re.IGNORECASE,
)
_SECTION = re.compile(r';(?=(?:[^"]*"[^"]*")*[^"]*$)')
_TOKEN = re.compile(
    r'"([^"]*)"|\\(.)|\[\$([^\]-]*)[^\]]*\]|\[[^\]]*\]|_.|\*.|(General)|([0#?.,]+)|(.)',
    re.IGNORECASE,
)
_CONDITION = re.compile(r"\[[<>=]")  # condition on the value that selects a section
_LONGEST_FORMAT = 255  # characters, as in Excel
_EXACT = Context(prec=1_200, rounding=ROUND_HALF_UP)
_LONGEST = 1e15  # larger numbers are written without a format
# Excel's "date in the local format"
_LOCAL = frozenset({"mm-dd-yy", "m/d/yy h:mm", "general", ""})


def shown(value: Any, number_format: str | None) -> str:
    """Return a cell's value as its format shows it, on one line; local dates as ISO 8601."""
    form = (number_format or "").partition(";")[0]
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, timedelta):
        return _duration(value)
    if isinstance(value, (datetime, date, time)):
        return _date(value, form)
    if isinstance(value, (int, float)) and abs(value) < _LONGEST:
        return _number(value, number_format or "")
    if isinstance(value, float) and not value.is_integer():
        return f"{value:.15g}"  # Excel's precision
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
    return " ".join("".join(_formatted(value, parts, half)).split())


def _iso(value: datetime | date | time, form: str) -> str:
    if isinstance(value, datetime):
        day = value.time() == time() and "h" not in form.lower()
        return value.date().isoformat() if day else value.isoformat(" ", "auto")
    return value.isoformat()


def _formatted(value: datetime | date | time, parts: list[str], half: bool) -> list[str]:
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
    "yyyy": "%Y",
    "yy": "%y",
    "mmmm": "%B",
    "mmm": "%b",
    "mm": "%m",
    "m": "-%m",
    "dddd": "%A",
    "ddd": "%a",
    "dd": "%d",
    "d": "-%d",
    "hh": "%I",
    "h": "-%I",
    "[h]": "-%H",
    "[hh]": "%H",
    "nn": "%M",
    "n": "-%M",
    "ss": "%S",
    "s": "-%S",
    "am/pm": "%p",
    "a/p": "%p",
}


def _number(value: float, number_format: str) -> str:
    """Format a number (ECMA-376, part 1, section 18.8.31), but for fractions and exponents."""
    if len(number_format) > _LONGEST_FORMAT or _CONDITION.search(number_format):
        return f"{value:.15g}"
    sections = _SECTION.split(number_format)
    which = 1 if value < 0 and len(sections) > 1 else 2 if value == 0 and len(sections) > 2 else 0
    form = sections[which]
    tokens = [
        (next((text for text in (quoted, escaped, money, sign) if text), ""), digits or general)
        for quoted, escaped, money, general, digits, sign in _TOKEN.findall(form)
    ]
    masks = "".join(mask for _, mask in tokens)
    if not form or "eneral" in masks.lower() or "E+" in form or "?/" in form or "@" in form:
        return f"{value:.15g}"
    if not re.search("[0#?]", masks):
        return "".join(text for text, _ in tokens).strip()
    whole, point, part = masks.partition(".")
    power = 2 * form.count("%") - 3 * _scale(masks)
    places = len(re.sub("[^0#?]", "", part))
    shifted = _EXACT.scaleb(Decimal(repr(abs(value))), power)
    written = f"{_EXACT.quantize(shifted, Decimal((0, (1,), -places))):f}"
    units, _, rest = written.partition(".")
    while rest and part.rstrip(",").endswith("#") and rest.endswith("0"):
        rest, part = rest[:-1], part.rstrip(",")[:-1]
    units = units.lstrip("0").zfill(whole.count("0"))
    if re.search(r"[0#?],[0#?]", whole):
        units = re.sub(r"(?<=\d)(?=(?:\d{3})+$)", ",", units)
    negative = "-" if value < 0 and which == 0 and written.strip("0.") else ""
    return negative + _filled(tokens, units, f".{rest}" if rest or (point and not places) else "")


def _scale(masks: str) -> int:
    """Return how often a format divides by a thousand: by commas after its last digit."""
    before, _, after = masks.partition(".")
    return sum(len(part) - len(part.rstrip(",")) for part in (before, after))


def _filled(tokens: list[tuple[str, str]], units: str, rest: str) -> str:
    out: list[str] = []
    masks = [mask for _, mask in tokens]
    last = max(number for number, mask in enumerate(masks) if mask)
    first = next(number for number, mask in enumerate(masks) if mask)
    pointed = next((number for number, mask in enumerate(masks) if "." in mask), last)
    for number in range(len(tokens) - 1, -1, -1):
        text, mask = tokens[number]
        if not mask:
            out.append(text)
            continue
        out.append(rest if number == pointed else "")
        if number <= pointed:
            size = (
                len(units) if number == first else len(re.sub("[^0#?]", "", mask.partition(".")[0]))
            )
            units, taken = units[: max(0, len(units) - size)], units[max(0, len(units) - size) :]
            out.append(taken)
    return " ".join("".join(reversed(out)).split())
