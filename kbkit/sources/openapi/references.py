"""Resolve ``$ref`` in API descriptions, to the description itself and to files next to it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from kbkit.regular_files import bytes_of
from kbkit.sources.decode import decode
from kbkit.sources.untrusted import load_values
from kbkit.text.markdown.blocks import Block, Kind, blocks, is_closed
from kbkit.text.markdown.sanitizing import html_as_text

_CHAIN = 20  # most references in a row
_FILES = 200
_FILE_BYTES = 20_000_000


@dataclass(frozen=True, slots=True)
class Node:
    """A part of a description and its file.

    Attributes:
        file: Path of its file, or ``None`` for the description itself.
        name: Last part of the reference that led here, or ``""``.
        ref: Absolute reference that led here; ``""`` for an inline part.
    """

    value: Any
    file: Path | None = None
    name: str = ""
    ref: str = ""

    def get(self, key: str) -> Node:
        """Return a member; ``Node(None)`` if it is missing."""
        value = self.value.get(key) if isinstance(self.value, dict) else None
        return Node(value, self.file)

    def items(self) -> list[tuple[str, Node]]:
        """Return the members of a mapping; ``[]`` for other values."""
        if not isinstance(self.value, dict):
            return []
        return [(str(key), Node(value, self.file)) for key, value in self.value.items()]

    def parts(self) -> list[Node]:
        """Return the members of a list; ``[]`` for other values."""
        if not isinstance(self.value, list):
            return []
        return [Node(value, self.file) for value in self.value]

    def text(self, key: str) -> str:
        """Return a text or number as one line; ``""`` for other values."""
        value = self.value.get(key) if isinstance(self.value, dict) else None
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            return ""
        return " ".join(str(value).split())[:1000]


@dataclass(slots=True)
class References:
    """The references of one description."""

    root: Any
    path: Path | None = None
    problems: dict[str, str] = field(default_factory=dict)
    _files: dict[Path, Any] = field(default_factory=dict)

    def resolve(self, node: Node) -> Node:
        """Return a part, or the target of its ``$ref``.

        Members next to a ``$ref`` override those of the target. A broken reference is noted in
        ``problems`` and gives an empty mapping.
        """
        siblings: dict[str, Any] = {}
        first: Node | None = None
        for _ in range(_CHAIN):
            value = node.value
            if not isinstance(value, dict) or not isinstance(value.get("$ref"), str):
                break
            ref = value["$ref"]
            siblings = {**{k: v for k, v in value.items() if k != "$ref"}, **siblings}
            node = self._follow(ref, node.file)
            first = first or node
        else:
            self.problems.setdefault(node.ref, "references that lead in a circle")
            node = Node({}, node.file)
        if first is None:
            return node
        value = node.value
        if siblings and isinstance(value, dict):
            value = {**value, **siblings}
        return Node(value, node.file, first.name, first.ref)

    def _follow(self, ref: str, file: Path | None) -> Node:
        place, _, pointer = ref.partition("#")
        name = unquote(pointer.rpartition("/")[2]).replace("~1", "/").replace("~0", "~")
        target = file
        try:
            if place:
                target = self._file(place, file)
                name = name or Path(place).stem
            value = self.root if target is None else self._load(target)
            for part in pointer.split("/")[1:]:
                key = unquote(part).replace("~1", "/").replace("~0", "~")
                value = value[int(key)] if isinstance(value, list) else value[key]
        except (LookupError, TypeError, ValueError) as error:
            reason = error if isinstance(error, ValueError) else "leads nowhere"
            self.problems.setdefault(ref, f"{ref}: {reason}")
            return Node({}, target, name, ref)
        return Node(value, target, name, f"{target or ''}#{pointer}")

    def _file(self, place: str, file: Path | None) -> Path | None:
        if self.path is None or urlsplit(place).scheme or place.startswith("//"):
            raise ValueError(
                "leads to another file or address, which is not fetched; put the description into "
                "one file"
            )
        folder = self.path.resolve().parent
        start = folder if file is None else file.parent
        target = (start / unquote(place)).resolve()
        if not target.is_relative_to(folder):
            raise ValueError("leads out of the description's folder")
        return None if target == self.path.resolve() else target

    def _load(self, path: Path) -> Any:
        if path not in self._files:
            if len(self._files) >= _FILES:
                raise ValueError(f"more than {_FILES} files belong to the description")
            self._files[path] = None  # read once, even if it fails
            try:
                data = bytes_of(path, _FILE_BYTES + 1)
                if len(data) > _FILE_BYTES:
                    raise ValueError(f"larger than {_FILE_BYTES / 1e6:g} MB")
                self._files[path] = load_values(decode(data, markup=False))
            except OSError as error:
                raise ValueError(f"cannot be read ({error.strerror})") from None
        return self._files[path]


_MAX_LENGTH = 100_000
_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(?:.|\n(?!\s*\n)){1,2000}?(?<!`)\1(?!`)")
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
    return _converted(text[:_MAX_LENGTH], level)


@lru_cache(maxsize=2048)  # fields of a schema are written wherever it is used
def _converted(text: str, level: int) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "")
    if _IS_HTML.match(text) and (converted := _from_html(text)):
        text = converted
    written = _UNSAFE_LINK.sub("](", _shifted(text.expandtabs(4).strip("\n"), level))
    return written.strip("\n")


def inline_markdown(text: Any) -> str:
    if not isinstance(text, str):
        return ""
    written = block_markdown(text, 6)
    return " ".join(" ".join(_lines(block, written) for block in blocks(written)).split())


def _lines(block: Block, written: str) -> str:
    piece = written[block.start : block.end]
    if block.kind is Kind.HEADING:
        return f"**{block.title}**" if block.title else ""
    if block.kind is Kind.FENCE:  # a line can hold its code only
        lines = piece.split("\n")
        return " ".join(lines[1 : -1 if is_closed(block, written) else None])
    return piece


def labelled(head: str, text: str) -> str:
    return f"{head}: {text}" if text else head


def table_cell(text: str) -> str:
    return " ".join(re.sub(r"(?<!\\)\|", r"\\|", text).split())


def _shifted(text: str, level: int) -> str:
    parsed = list(blocks(text))
    levels = [block.level for block in parsed if block.kind is Kind.HEADING and block.outermost]
    shift = level - min(levels, default=1)
    out = []
    at = 0
    for block in parsed:
        piece = text[block.start : block.end]
        if block.kind is Kind.HEADING and block.outermost:
            hashes = "#" * max(1, min(6, block.level + shift))
            piece = f"{hashes} {_prose(' '.join(block.title.split()))}".rstrip()
        elif block.kind in {Kind.HTML, Kind.FRONT_MATTER}:
            piece = html_as_text(block, piece, _without_html)
        elif not block.is_verbatim:
            piece = _prose(piece)
        elif block.kind is Kind.FENCE and block.outermost and not is_closed(block, text):
            piece += f"\n{block.markup}"
        out += [text[at : block.start], piece]
        at = block.end
    return "".join((*out, text[at:]))


def _prose(text: str) -> str:
    out = []
    end = 0
    for match in _CODE_SPAN.finditer(text):
        out.append(_without_html(text[end : match.start()]))
        out.append(match[0])
        end = match.end()
    out.append(_without_html(text[end:]))
    return "".join(out)


def _without_html(text: str) -> str:
    return _TAG.sub("&lt;", _BREAK.sub("  \n", text))


def _from_html(text: str) -> str:
    from kbkit.sources.html import parse
    from kbkit.sources.html.cleaning import clean
    from kbkit.sources.html.writer import MarkdownWriter

    root = parse(f"<html><body>{text}</body></html>")
    body = None if root is None else root.find("body")
    if body is None:
        return ""
    clean(body)
    return MarkdownWriter("").write(body)
