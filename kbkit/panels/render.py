"""Text and HTML that panels show. Everything that comes from a document is made harmless here.

A value from outside reaches the page through `plain` or `lines` (as text) or `web_address` (as the
address of a link), and in no other way. ipywidgets puts the HTML of a widget into the page as it
is, so escaping is the whole defence of what this module gives as HTML; views take text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from functools import cache, lru_cache
from html import escape
from importlib import resources
from itertools import groupby
from operator import itemgetter
from urllib.parse import urlsplit

from kbkit.errors import KbkitError
from kbkit.models import IngestReport, Problem
from kbkit.text import Analyzer

TITLE_LENGTH = 160
PATH_LENGTH = 240
SNIPPET_LENGTH = 480
PROBLEMS = 100
_LONGEST_ADDRESS = 2000
# A word as the analyzer sees it, and the marks that join its parts.
_WORD = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*|\w(?:\+\+|#)(?!\w)|\w+(?:(?:[.\-'’]|::)\w+)*")
_JOINT = re.compile(r"([._\-'’:]+)")

# Categories of characters that have no place in one line of text: controls, and formats, which
# include those that reverse the direction of what follows.
_NOT_SHOWN = {"Cc", "Cf", "Cs", "Co"}
# Formats that spelling needs: soft hyphen aside, the joiners of Indic and Persian and of emoji.
_JOINERS = {"\u200c", "\u200d"}


@cache
def stylesheet() -> str:
    """The panels' stylesheet as a ``<style>`` element."""
    css = resources.files("kbkit.panels").joinpath("style.css").read_text(encoding="utf-8")
    return f"<style>{css}</style>"


def plain(text: str, length: int) -> str:
    """One line of visible text, cut to a length, not yet escaped.

    Args:
        text: Any text.
        length: Most characters to keep.
    """
    # Ten times the length leaves room for white space to fold and bounds the work all the same.
    visible = text[: length * 10]
    if not visible.isprintable():  # mostly it is, and looking at each character takes long
        visible = "".join(
            character
            if unicodedata.category(character) not in _NOT_SHOWN or character in _JOINERS
            else " "
            for character in visible
        )
    line = " ".join(visible.split())
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def web_address(url: str) -> str:
    """The address if a link may lead there (http or https, of sane length), or ``""``."""
    if len(url) > _LONGEST_ADDRESS or any(c.isspace() or not c.isprintable() for c in url):
        return ""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return url if parts.scheme in {"http", "https"} and parts.netloc else ""


def place(uri: str) -> str:
    """Where a document comes from, short enough to read: an address without its scheme."""
    return plain(re.sub(r"^https?://", "", uri, flags=re.IGNORECASE), PATH_LENGTH // 3)


def lines(text: str, length: int) -> str:
    """Visible text with its lines and indentation, cut to a length, not yet escaped.

    Args:
        text: Any text.
        length: Most characters to keep.
    """
    visible = "".join(
        character
        if character == "\n" or unicodedata.category(character) not in _NOT_SHOWN
        or character in _JOINERS
        else " "
        for character in text[:length].replace("\r\n", "\n")
    )  # fmt: skip
    return visible if len(text) <= length else visible.rstrip() + "…"


def segments(text: str, terms: AbstractSet[str], analyzer: Analyzer) -> list[tuple[str, bool]]:
    """Text in pieces, each with whether it shares a term with the query, for a view to mark.

    Words are compared as the search compares them: after stemming, and by the parts of
    identifiers.

    Args:
        text: Plain text.
        terms: Terms of the query.
        analyzer: The analyzer that made them.
    """
    if not terms:
        return [(text, False)]
    found: list[tuple[str, bool]] = []
    end = 0
    for match in _WORD.finditer(text):
        found.append((text[end : match.start()], False))
        found += _marked(match[0], terms, analyzer)
        end = match.end()
    found.append((text[end:], False))
    return [
        ("".join(piece for piece, _ in group), hit)
        for hit, group in groupby(filter(itemgetter(0), found), itemgetter(1))
    ]


def _marked(word: str, terms: AbstractSet[str], analyzer: Analyzer) -> list[tuple[str, bool]]:
    """A word, marked as a whole if it is what was asked for, else in the parts that are."""
    found = _terms_of(word, analyzer)
    if terms.isdisjoint(found):
        return [(word, False)]
    parts = _JOINT.split(word)
    hits = [not terms.isdisjoint(_terms_of(part, analyzer)) for part in parts]
    if found[0] in terms or not any(hits):
        return [(word, True)]
    return list(zip(parts, hits, strict=True))


@lru_cache(maxsize=20_000)
def _terms_of(word: str, analyzer: Analyzer) -> tuple[str, ...]:
    return tuple(analyzer.terms(word))


def ago(then: datetime, now: datetime) -> str:
    """How long ago something was, in words: ``3 days ago``."""
    seconds = (now - then).total_seconds()
    for name, length in _SPANS:
        number = int(seconds // length)
        if number > 0:
            return f"{number} {name}{'' if number == 1 else 's'} ago"
    return "just now"


_SPANS = (
    ("year", 365.25 * 86_400),
    ("month", 30.44 * 86_400),
    ("week", 7 * 86_400),
    ("day", 86_400),
    ("hour", 3_600),
    ("minute", 60),
)


def status(text: str) -> str:
    """A line that says how things are; screen readers read it when it changes."""
    return f'<div class="kbkit-status" role="status">{escape(plain(text, 480))}</div>'


def problem_line(error: BaseException) -> str:
    """An error as one line: its message if kbkit raised it, else its kind and its first line."""
    said = str(error).strip().splitlines()
    message = said[0] if said else "no message"
    if not isinstance(error, KbkitError):
        message = f"{type(error).__name__}: {message}"
    return plain(message, 300)


def problem(error: BaseException) -> str:
    """`problem_line` as HTML; screen readers read it at once."""
    said = escape(problem_line(error))
    return f'<div class="kbkit-status kbkit-problem" role="alert">{said}</div>'


def counts(report: IngestReport, place: str, seconds: float) -> str:
    """What an ingest has done so far, as numbers; screen readers find it, but are not told each.

    Args:
        report: The numbers.
        place: What was read last, or ``""``.
        seconds: Time since the start.
    """
    numbers = {
        "new": report.new,
        "changed": report.changed,
        "same": report.same,
        "gone": report.gone,
        "failed": len(report.failed),
        "skipped": len(report.skipped),
    }
    done = sum(numbers.values())
    cells = "".join(
        f'<span class="kbkit-count kbkit-{name}{" kbkit-some" if number else ""}">'
        f"<b>{number:,}</b> {name}</span>"
        for name, number in numbers.items()
    )
    pace = f"{done / seconds:.1f} pages/s" if done and seconds > 0.05 else ""
    return (
        f'<div class="kbkit-counts" role="group" aria-label="Counts">{cells}'
        f'<span class="kbkit-pace">{pace}</span></div>'
        f'<div class="kbkit-now"><bdi>{escape(plain(place, PATH_LENGTH))}</bdi></div>'
    )


def problems(failed: Sequence[Problem], skipped: Sequence[Problem]) -> str:
    """What failed or was skipped, the last first, each with its reason; ``""`` for nothing."""
    found = [("failed", problem) for problem in reversed(failed)]
    found += [("skipped", problem) for problem in reversed(skipped)]
    if not found:
        return ""
    items = "".join(
        f'<li><span class="kbkit-badge kbkit-{kind}">{kind}</span> '
        f"<bdi>{escape(plain(problem.uri, TITLE_LENGTH))}</bdi> "
        f'<span class="kbkit-reason">{escape(plain(problem.reason, PATH_LENGTH))}</span></li>'
        for kind, problem in found[:PROBLEMS]
    )
    more = len(found) - PROBLEMS
    rest = f"<li>and {more:,} more: see the report</li>" if more > 0 else ""
    return (
        f'<div class="kbkit-problems" role="region" aria-label="Problems" tabindex="0">'
        f"<b>{len(found):,} {'problem' if len(found) == 1 else 'problems'}</b>"
        f"<ul>{items}{rest}</ul></div>"
    )
