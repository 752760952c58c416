"""The links of a section's prose, without those of the page around it. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

SPOTS = re.compile(
    r"(?<!!)\[((?:[^\[\]\n]|\[[^\[\]\n]{0,200}\]){1,200})\]\(\s*<?([^\s()<>]*(?:\([^\s()]*\)[^\s()<>]*)*)>?"
    r"(?:\s+(?:\"[^\"\n]*\"|'[^'\n]*'))?\s*\)"
    r"|(`+)(?!`)(.{1,200}?)(?<!`)\3(?!`)"
)
"""A link (its text and address), or a code span (its text)."""

_LIST = 6
"""Links with nothing between them but marks of lists, from which on they are a list of links."""
_BETWEEN = re.compile(r"(?:\{#[^{}\s]*\}|[\s|•·*+>\-\d.:()\[\]\\])*")
_APART = re.compile(r"[\n|•·]")
_HEADER = re.compile(r"^[> \t]*\|.*\n(?=[> \t]*\|(?:[ \t:]*-{2,}[ \t:]*\|)+[ \t]*$)", re.MULTILINE)
_FOOTER = re.compile(
    r"^(?:[^\w\n]*(?:copyright|all rights reserved|last (?:updated|modified)|available languages"
    r"|page source)\b.*|.*©.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_FIRST = re.compile(r"(?:^|[|\n])[\s>*_+-]*$")


def links_of(text: str) -> Iterator[re.Match[str]]:
    """The links that a text makes, as matches of `SPOTS`.

    Left out is what belongs to the page and not to what it says: headers of tables, labels before a
    colon (``[Status:](...)``), footers, and lists of links as tables of contents and indexes are.
    """
    aside = [found.span() for pattern in (_HEADER, _FOOTER) for found in pattern.finditer(text)]
    run: list[re.Match[str]] = []
    for found in SPOTS.finditer(text):
        if found[2] is None:
            continue
        between = text[run[-1].end() : found.start()] if run else ""
        if run and not (_BETWEEN.fullmatch(between) and _APART.search(between)):
            yield from _prose(text, run, aside)
            run = []
        run.append(found)
    yield from _prose(text, run, aside)


def _prose(
    text: str, run: list[re.Match[str]], aside: list[tuple[int, int]]
) -> Iterator[re.Match[str]]:
    """Those of links in a row that are no list of links and no labels."""
    if len(run) >= _LIST:
        return
    for found in run:
        label = found[1].rstrip("*_ ").endswith(":") or (
            text.startswith(":", found.end())
            and _FIRST.search(text, max(0, found.start() - 20), found.start())
        )
        if not label and not any(start <= found.start() < end for start, end in aside):
            yield found


@lru_cache(maxsize=50_000)
def resolved(base: str, href: str) -> tuple[str, str]:
    """The address that a link leads to, and the anchor there."""
    try:
        address, anchor = urldefrag(urljoin(base, href))
    except ValueError:
        return "", ""
    return address, unquote(anchor)


@lru_cache(maxsize=50_000)
def beside(uri: str, address: str) -> bool:
    """Whether an address is of the same site or folder as a document."""
    try:
        own, other = urlsplit(uri), urlsplit(address)
    except ValueError:
        return False
    return (own.scheme, own.netloc) == (other.scheme, other.netloc) and bool(own.netloc)
