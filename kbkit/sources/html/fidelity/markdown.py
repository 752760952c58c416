"""What stands in the Markdown of a page, read in another way than the rest of kbkit reads it."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import unquote

from kbkit.sources.html.fidelity.runs import squashed, words

_FENCE = re.compile(r"^((?:> ?| )*)(`{3,})[\w+#.-]*$")
_HEADING = re.compile(r"^(?:> ?| |-   |\d+\. )*(#{1,6}) (.*)$")
_ANCHOR = re.compile(r" \{#([^}\s]+)\}$")
_RULE = re.compile(r"^[> ]*\|( --- \|)+$")
# possessive, since backticks can be taken in two ways and a long line would be tried in all
_LINK = re.compile(r"(!?)\[((?:`[^`]*`|[^\[\]\\`]|\\.|`|\[[^\[\]]*\])*+)\]\(([^()\s]*)\)")
_SPAN = re.compile(r"(`+) ?(.+?) ?\1(?!`)")
_NUMBER = re.compile(r"^([> ]*)\d+\.(?= )")
_LISTED = re.compile(r"-   \[.*\]\([^()\s]*\)")
_TERM = re.compile(r"^[> ]*(?:-   |\d+\. +)*(?:\*\*|`|\[)")


@dataclass(slots=True)
class Written:
    """What Markdown says.

    Attributes:
        words: How often each word stands in it.
        codes: Fences, byte for byte.
        spans: Code in lines.
        headings: Level and text (squashed), with the anchors of the headings that read so.
        rows: Cells of each row of its tables, squashed.
        lines: Every line, squashed.
        links: Text, squashed, and address.
        terms: Lines and cells that may name what they explain, squashed.
        anchors: Of headings, paragraphs and items.
    """

    words: Counter[str] = field(default_factory=Counter)
    codes: list[str] = field(default_factory=list)
    spans: set[str] = field(default_factory=set)
    headings: list[tuple[int, str, str]] = field(default_factory=list)
    rows: list[tuple[str, ...]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    links: set[tuple[str, str]] = field(default_factory=set)
    terms: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)


def written(markdown: str, *, links_last: bool = False) -> Written:
    """Read what the extractor wrote.

    Args:
        markdown: The page's Markdown.
        links_last: Its links stand in a list at its end, which says nothing again.
    """
    found = Written()
    whole = markdown.rstrip().split("\n")
    while links_last and whole and _LISTED.fullmatch(whole[-1]):
        found.links.update(_links(whole.pop()))
    lines = iter(whole)
    for line in lines:
        if fence := _FENCE.match(line):
            prefix, ticks = fence.groups()
            code = []
            for text in lines:
                if text.strip("> ") == ticks:
                    break
                code.append(text[len(prefix) :] if text.startswith(prefix) else text.lstrip("> "))
            found.codes.append("\n".join(code))
            found.words.update(words(found.codes[-1]))
            found.lines.extend(map(squashed, code))
        elif not _RULE.match(line):
            _read_line(line, found)
    return found


def _read_line(line: str, found: Written) -> None:
    if anchor := _ANCHOR.search(line):
        found.anchors.add(unquote(anchor[1]))
        line = line[: anchor.start()]
    if heading := _HEADING.match(line):
        line = heading[2]
    found.links.update(_links(line))
    found.spans.update(span for _, span in _SPAN.findall(line))
    plain = _plain(line if heading else _NUMBER.sub(r"\1", line))
    text = squashed(plain)
    if not text:
        return
    found.words.update(words(plain))
    found.lines.append(text)
    if heading:
        found.headings.append((len(heading[1]), text, unquote(anchor[1]) if anchor else ""))
        found.terms.append(text)
    elif _TERM.match(line):
        found.terms.append(text)
    elif line.lstrip("> ").startswith("|"):
        cells = re.split(r"(?<!\\)\|", line.strip("> "))[1:-1]
        found.rows.append(tuple(squashed(_plain(cell)) for cell in cells))
        found.terms += found.rows[-1]


def _links(line: str) -> Iterator[tuple[str, str]]:
    for _, text, address in _LINK.findall(line):
        yield squashed(_plain(text)), unquote(address)


def _plain(text: str) -> str:
    """A line without the addresses of its links, and with its entities as characters."""
    for _ in range(3):
        bare = _LINK.sub(lambda link: link[2], text)
        if bare == text:
            break
        text = bare
    return html.unescape(text)
