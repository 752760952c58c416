"""Pieces of Markdown: lines and written blocks of dialects, and descriptions in other formats."""

import re
from functools import lru_cache
from itertools import takewhile
from typing import Any

from kbkit.text.markdown import Block, Kind, blocks, change_blocks, is_closed
from kbkit.text.markdown.extensions import outside_code
from kbkit.text.markdown.sanitizing import html_as_text
from kbkit.text.markdown.writing import indent, pipe_table, quoted

_OPTION = re.compile(r"[ \t]*:(?P<name>[\w-]+):[ \t]*(?P<value>.*)$")
_YAML_OPTION = re.compile(r"[ \t]{4,}(?P<name>[\w-]+):(?P<value>(?:[ \t].*)?)$")
_BEGINS_BLOCK = re.compile(r"(?:[-#>|]|\d+\.|`{3})")
TERM = re.compile(r"(?![ \t>|#:=]|[-*+][ \t]|\d+[.)][ \t]|```|~~~|\[\^|!\[|<)\S")


def list_item(mark: str, head: str, inner: list[str]) -> list[str]:
    while inner and not inner[-1].strip():
        inner.pop()
    if inner and _BEGINS_BLOCK.match(inner[0].lstrip()):
        inner = ["", *inner]
        head = head.removesuffix(": ")
    first, *rest = inner or [""]
    indented = (f"    {line}" if line.strip() else "" for line in rest)
    return [f"{mark}   {head}{first}".rstrip(), *indented]


def quote_block(title: str, inner: list[str]) -> list[str]:
    parts = [f"**{title}**" if title else "", "\n".join(inner).strip("\n")]
    return [line for block in quoted([*filter(None, parts)]) for line in block.split("\n")]


def caption(text: str) -> list[str]:
    return [f"**{text}**", ""] if text else []


def indent_block(block: list[str], lead: str) -> list[str]:
    """Put the same white space before each line of a block."""
    return indent("\n".join(block), lead).split("\n") if block else []


def width_of(lead: str) -> int:
    return len(lead.expandtabs(4))


def body_below(
    lines: list[str], at: int, width: int, *, lazy: bool = False
) -> tuple[list[str], int]:
    end = at
    while end < len(lines):
        line = lines[end]
        if line.strip():
            lead = width_of(line[: len(line) - len(line.lstrip(" \t"))])
            continues = lazy and lines[end - 1].strip() and TERM.match(line)
            if lead < width and not continues:
                break
        end += 1
    while end > at and not lines[end - 1].strip():
        end -= 1
    return dedent_lines(lines[at:end], width), end


def dedent_lines(lines: list[str], width: int) -> list[str]:
    if not width:
        return lines
    texts = ((line, line.lstrip(" \t")) for line in lines)
    return [line.removesuffix(text).expandtabs(4)[width:] + text for line, text in texts]


def options_of(body: list[str]) -> tuple[dict[str, str], list[str]]:
    if body and body[0].strip() == "---":  # YAML
        end = next((n for n, line in enumerate(body[1:], 1) if line.strip() == "---"), 0)
        return {}, body[end + 1 :] if end else body
    for pattern in (_OPTION, _YAML_OPTION):
        if matches := list(takewhile(bool, map(pattern.match, body))):
            options = {match["name"]: match["value"].strip() for match in matches if match}
            return options, body[len(matches) :]
    return {}, body


_MAX_COLUMNS = 200


def toctree(body: list[str]) -> list[str]:
    out = []
    for entry in filter(None, map(str.strip, body)):
        match = re.fullmatch(r"(.*\S)[ \t]*<([^<>\s]+)>", entry)
        name, target = match.groups() if match else (entry.rpartition("/")[2], entry)
        if entry != "self" and not re.search(r"[\s()*]", target):
            suffix = "" if "://" in target or re.search(r"\.\w{2,4}$", target) else ".md"
            out.append(f"-   [{name}]({target}{suffix})")
    return out


def glossary(body: list[str]) -> list[str]:
    out: list[str] = []
    defined = True
    for line in body:
        if line[:1] in " \t" and line.strip():
            text = line.strip()
            out.append(f"    {text}" if defined else f":   {text}")
            defined = True
        else:
            if line.strip() and defined and out and out[-1].strip():
                out.append("")
            defined = defined and not line.strip()
            out.append(line)
    return out


def list_table(body: list[str]) -> list[str]:
    """Write a list of lists as a table; its first row is the head."""
    rows: list[list[str]] = []
    for line in body:
        if row := re.match(r"[*-][ ]+[*-]((?:[ ]+.*)?)$", line):
            rows.append([row[1].strip()])
        elif rows and (cell := re.match(r"[ ]{2,}[*-]((?:[ ]+.*)?)$", line)):
            rows[-1].append(cell[1].strip())
        elif rows and line.strip():
            rows[-1][-1] += f" {line.strip()}"
    return pipe_table([row[:_MAX_COLUMNS] for row in rows]).split("\n") if rows else body


_MAX_LENGTH = 100_000
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_TAG = re.compile(r"<(?=[A-Za-z/!?])(?!(?:https?://|mailto:)[^\s<>]*>)")
_IS_HTML = re.compile(
    r"\s*<(?:p|div|ul|ol|dl|h[1-6]|table|section|span|b|strong|em|i|a|code|pre)\b[^>]*>.*</\w+>",
    re.DOTALL | re.IGNORECASE,
)
_UNSAFE_LINK = re.compile(r"\]\(\s*<?\s*(?:javascript|vbscript|data)\s*:", re.IGNORECASE)


def block_markdown(text: Any, level: int) -> str:
    """Convert a description to Markdown blocks.

    Headings are lowered to the level, HTML becomes Markdown or text, and open fences are closed.
    """
    if not isinstance(text, str) or not text.strip():
        return ""
    return _convert(text[:_MAX_LENGTH], level)


@lru_cache(maxsize=2048)  # fields of a schema are written wherever it is used
def _convert(text: str, level: int) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "")
    if _IS_HTML.match(text):
        from kbkit.sources.html.extract import markdown_of  # few descriptions need it

        text = markdown_of(text) or text
    markdown = _UNSAFE_LINK.sub("](", _shift_headings(text.expandtabs(4).strip("\n"), level))
    return markdown.strip("\n")


def inline_markdown(text: Any) -> str:
    markdown = block_markdown(text, 6)
    return " ".join(" ".join(_in_line(block, markdown) for block in blocks(markdown)).split())


def _in_line(block: Block, markdown: str) -> str:
    piece = markdown[block.start : block.end]
    if block.kind is Kind.HEADING:
        return f"**{block.title}**" if block.title else ""
    if block.kind is Kind.FENCE:  # a line can hold its code only
        lines = piece.split("\n")
        return " ".join(lines[1 : -1 if is_closed(block, markdown) else None])
    return piece


def with_label(head: str, text: str) -> str:
    return f"{head}: {text}" if text else head


def _shift_headings(text: str, level: int) -> str:
    parsed = list(blocks(text))
    levels = [block.level for block in parsed if block.kind is Kind.HEADING and block.outermost]
    shift = level - min(levels, default=1)

    def shifted(block: Block, piece: str) -> str:
        if block.kind is Kind.HEADING and block.outermost:
            hashes = "#" * max(1, min(6, block.level + shift))
            return f"{hashes} {_prose(' '.join(block.title.split()))}".rstrip()
        if block.kind in {Kind.HTML, Kind.FRONT_MATTER}:
            return html_as_text(block, piece, _without_html)
        is_open = block.kind is Kind.FENCE and block.outermost and not is_closed(block, text)
        return _prose(piece) if not block.is_verbatim else piece + f"\n{block.markup}" * is_open

    return change_blocks(text, parsed, shifted)


def _prose(text: str) -> str:
    return outside_code(text, _without_html)


def _without_html(text: str) -> str:
    return _TAG.sub("&lt;", _BREAK.sub("  \n", text))
