"""The HTML that panels show. Everything that comes from a document is made harmless here.

ipywidgets puts the HTML of a widget into the page as it is, so escaping is the whole defence:
a value from outside reaches the page through `plain` (as text) or `web_address` (as the address
of a link), and in no other way.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from html import escape
from importlib import resources
from urllib.parse import urlsplit

from kbkit.errors import KbkitError
from kbkit.models import Hit, IngestReport, Problem
from kbkit.panels.own import OwnRating
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
    visible = "".join(
        character
        if unicodedata.category(character) not in _NOT_SHOWN or character in _JOINERS
        else " "
        for character in text[: length * 10]
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


def highlighted(text: str, terms: AbstractSet[str], analyzer: Analyzer) -> str:
    """Escaped text in which words that share a term with the query are marked.

    Words are compared as the search compares them: after stemming, and by the parts of
    identifiers.

    Args:
        text: Plain text.
        terms: Terms of the query.
        analyzer: The analyzer that made them.
    """
    pieces = []
    end = 0
    for match in _WORD.finditer(text):
        pieces.append(escape(text[end : match.start()]))
        pieces.append(_marked(match[0], terms, analyzer))
        end = match.end()
    pieces.append(escape(text[end:]))
    return "".join(pieces)


def _marked(word: str, terms: AbstractSet[str], analyzer: Analyzer) -> str:
    """A word, marked as a whole if it is what was asked for, else in the parts that are."""
    found = analyzer.terms(word)
    if terms.isdisjoint(found):
        return escape(word)
    parts = _JOINT.split(word)
    hits = [not terms.isdisjoint(analyzer.terms(part)) for part in parts]
    if found[0] in terms or not any(hits):
        return f"<mark>{escape(word)}</mark>"
    return "".join(
        f"<mark>{escape(part)}</mark>" if hit else escape(part)
        for part, hit in zip(parts, hits, strict=True)
    )


def card(
    hit: Hit,
    rank: int,
    query: str,
    analyzer: Analyzer,
    *,
    kb: bool = False,
    mine: OwnRating = OwnRating(),  # noqa: B008 - frozen
) -> str:
    """The HTML of one result.

    Args:
        hit: The result.
        rank: Its place, from 1.
        query: What was asked; its words are marked.
        analyzer: The analyzer of the knowledge base.
        kb: Say which knowledge base it comes from.
        mine: What the reader has said about it; a rating for another query is mentioned.
    """
    terms = frozenset(analyzer.query_terms(query))
    title = plain(hit.title, TITLE_LENGTH) or place(hit.uri) or "Untitled"
    heading = f"<bdi>{highlighted(title, terms, analyzer)}</bdi>"
    if address := web_address(hit.url):
        heading = (
            f'<a href="{escape(address)}" target="_blank" '
            f'rel="noopener noreferrer nofollow">{heading}</a>'
        )
    headings = [plain(heading, PATH_LENGTH) for heading in hit.chunk.heading_path]
    if headings and headings[0] == title:
        del headings[0]  # a page's first heading is its title, which the card begins with
    path = plain(" › ".join(headings), PATH_LENGTH)
    where = [
        f'<span class="kbkit-badge">{escape(hit.document_type.value.replace("_", " "))}</span>'
    ]
    if kb:
        where.append(f'<span class="kbkit-badge kbkit-kb">{escape(plain(hit.kb, 63))}</span>')
    if path:
        where.append(f'<bdi class="kbkit-path" title="{escape(path)}">{escape(path)}</bdi>')
    where.append(f'<bdi class="kbkit-place">{escape(place(hit.uri))}</bdi>')
    if mine.other_score is not None:
        rated = f"rated {mine.other_score} of 5"
        if other := plain(mine.other_query, 80):
            rated += f" for “{other}”"
        rated = escape(rated)
        where.append(f'<bdi class="kbkit-rated" title="{rated}">{rated}</bdi>')
    snippet = highlighted(plain(hit.snippet, SNIPPET_LENGTH), terms, analyzer)
    return (
        f'<article class="kbkit-hit" aria-label="Result {rank}: {escape(title)}">'
        f'<header><span class="kbkit-rank" aria-hidden="true">{rank}</span>'
        f'<h4 title="{escape(title)}">{heading}</h4>{score(hit)}</header>'
        f'<div class="kbkit-where">{"".join(where)}</div>'
        f'<p class="kbkit-snippet" dir="auto">{snippet}</p></article>'
    )


def score(hit: Hit) -> str:
    """The score of a hit as a number and a bar of its shares, with the same said in words."""
    parts = hit.parts
    shares = {
        "dense": max(0.0, parts.dense),
        "lexical": max(0.0, parts.lexical),
        "document": max(0.0, parts.document),
        "title": max(0.0, parts.title),
    }
    scale = 100 / max(1.0, sum(shares.values()))
    said = [
        f"{parts.dense:.2f} from meaning (cosine {parts.cosine:.2f})",
        f"{parts.lexical:.2f} from words (BM25 {parts.bm25:.1f})",
    ]
    if parts.document:
        said.append(f"{parts.document:.2f} from other passages of the document")
    if parts.title:
        said.append(f"{parts.title:.2f} from words in its title")
    words = f"Score {hit.score:.2f}: {', '.join(said)}"
    bar = "".join(
        f'<span class="kbkit-{name}" style="width:{share * scale:.1f}%"></span>'
        for name, share in shares.items()
    )
    return (
        f'<span class="kbkit-score" role="img" aria-label="{words}" title="{words}">'
        f'<span class="kbkit-bar">{bar}</span>'
        f"<span>{hit.score:.2f}</span></span>"
    )


def status(text: str) -> str:
    """A line that says how things are; screen readers read it when it changes."""
    return f'<div class="kbkit-status" role="status">{escape(plain(text, 480))}</div>'


def problem(error: BaseException) -> str:
    """An error as one line: its message if kbkit raised it, else its kind and its first line."""
    lines = str(error).strip().splitlines()
    message = lines[0] if lines else "no message"
    if not isinstance(error, KbkitError):
        message = f"{type(error).__name__}: {message}"
    return (
        f'<div class="kbkit-status kbkit-problem" role="alert">{escape(plain(message, 300))}</div>'
    )


def notice(title: str, text: str) -> str:
    """What stands where results would be."""
    return (
        f'<div class="kbkit-notice"><b>{escape(plain(title, 200))}</b>'
        f"<span>{escape(plain(text, 300))}</span></div>"
    )


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
