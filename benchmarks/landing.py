"""Where links of results land: in the passage, or elsewhere on its page.

    python benchmarks/landing.py FOLDER [NAME ...] [--pages N]

Reads sets that `generated.py` made (or any folder of folders of HTML), cuts them as `add` does, and
follows each chunk's link in the page as a browser does: to its text fragment in one block, from the
top, else to the element that its anchor names, else to the top. Columns: chunks whose text is on
the page, and the share whose link lands between the chunk's heading and its end, by the anchor
alone and by the full link. Prints a table and writes it to ``build/bench/landing.md``.
"""

from __future__ import annotations

import argparse
import logging
import re
from bisect import bisect_left
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import lxml.html
from _corpora import report, table
from extraction import read

from kbkit.ingest.cutting import chunk
from kbkit.models import ChunkSpan, DocumentType
from kbkit.models.hits import text_fragment
from kbkit.recipes import ChunkingSpec
from kbkit.sources.decode import decode
from kbkit.sources.html import BLOCKS
from kbkit.text.markdown.structure import opening_words, plain_text

_PARSER = lxml.html.HTMLParser(encoding="utf-8")
_SPACE = re.compile(r"\s+")
_SIGN = re.compile(r"[\W_]+")
_PIECE = 40  # signs by which a chunk's beginning and end are found
_UNSEEN = frozenset({"script", "style", "template", "noscript", "head"})
_OWN_LINE = frozenset(BLOCKS) | {"td", "th", "tr", "dt", "dd", "li", "p", "div", "section", "pre"}


@dataclass(slots=True)
class Text:
    """The text of a page, in order.

    Attributes:
        letters: Letters and digits, folded, without anything between.
        blocks: Offset of each block in them, and its text with single spaces, folded.
        places: Offset in them of each id and name.
    """

    letters: str = ""
    blocks: list[tuple[int, str]] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, html: str) -> Text:
        text = cls()
        pieces: list[str] = []
        size = 0
        block: list[str] = []
        began = 0

        def end_block() -> None:
            nonlocal began
            line = _SPACE.sub(" ", "".join(block)).strip().casefold()
            if line:
                text.blocks.append((began, line))
            block.clear()
            began = size

        def add(words: str | None) -> None:
            nonlocal size
            if words:
                block.append(words)
                pieces.append(letters(words))
                size += len(pieces[-1])

        def walk(element: Any) -> None:
            if not isinstance(element.tag, str) or element.tag in _UNSEEN:
                return
            own = element.tag in _OWN_LINE
            if own or element.tag == "br":
                end_block()
            for name in (element.get("id"), element.get("name") if element.tag == "a" else None):
                if name:
                    text.places.setdefault(name, size)
            add(element.text)
            for child in element:
                walk(child)
                add(child.tail)
            if own:
                end_block()

        walk(lxml.html.document_fromstring(html.encode("utf-8", "replace"), parser=_PARSER))
        end_block()
        text.letters = "".join(pieces)
        return text

    def find(self, words: str) -> int | None:
        """Return the offset that a text fragment leads to."""
        wanted = _SPACE.sub(" ", words).strip().casefold()
        pattern = re.compile(rf"(?<!\w){re.escape(wanted)}(?!\w)")
        for start, line in self.blocks:
            if found := pattern.search(line):
                return start + len(letters(line[: found.start()]))
        return None

    def landing(self, place: str) -> int:
        """Return the offset that a fragment leads to, in letters from the top."""
        anchor, _, words = place.partition(":~:text=")
        found = self.find(unquote(words)) if words else None
        if found is None:
            found = self.places.get(anchor, self.places.get(unquote(anchor)))
        return 0 if found is None else found


@dataclass(slots=True)
class Landings:
    """Counts of a set."""

    chunks: int = 0
    unseen: int = 0
    by_anchor: int = 0
    by_link: int = 0
    fragments: int = 0

    def include(self, page: Text, content: str, span: ChunkSpan) -> None:
        markdown = content[span.start : span.end]
        own = letters(plain_text(markdown))
        words = opening_words(markdown, from_top=span.start == 0)
        link = span.anchor + text_fragment(words)
        target = page.landing(link)
        before = page.landing(span.anchor)
        near = _occurrences(page.letters, own[:_PIECE])
        if not own or not near:
            self.unseen += 1
            return
        heading = len(letters("".join(span.heading_path[-2:]))) + 40
        self.chunks += 1
        self.fragments += bool(words)
        lands = partial(_within, starts=near, before=heading, length=len(own) + 40)
        first = span.start == 0
        self.by_anchor += lands(before) or (first and before == 0)
        self.by_link += lands(target) or (first and target == 0)


def letters(text: str) -> str:
    """Fold a text to letters and digits."""
    return _SIGN.sub("", text.casefold())


def _occurrences(text: str, piece: str) -> list[int]:
    found: list[int] = []
    at = text.find(piece)
    while piece and at >= 0 and len(found) < 50:
        found.append(at)
        at = text.find(piece, at + 1)
    return found


def _within(place: int, *, starts: list[int], before: int, length: int) -> bool:
    number = bisect_left(starts, place + before + 1)
    return any(
        start - before <= place <= start + length for start in starts[max(0, number - 3) : number]
    )


def measure(files: list[Path], folder: Path) -> Landings:
    """Read and cut a set's pages and follow the links."""
    counts = Landings()
    for path, read_page in read(folder, files):
        page = Text.of(decode(path.read_bytes(), ""))
        for span in chunk(read_page.content, DocumentType.MANUAL, ChunkingSpec()):
            counts.include(page, read_page.content, span)
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--pages", type=int, default=60, help="pages of each set")
    options = parser.parse_args()
    if options.folder is None:
        print("a folder with the sets that generated.py made is needed")
        return
    logging.disable(logging.CRITICAL)
    rows = []
    for folder in sorted(path for path in options.folder.iterdir() if path.is_dir()):
        if options.names and folder.name not in options.names:
            continue
        files = [path for path in sorted(folder.rglob("*.html")) if path.is_file()]
        files = files[:: -(-len(files) // options.pages)] if files else []
        if not files or (not options.names and folder.name in {"tools", "k", "tree-before"}):
            continue
        found = measure(files, folder)
        many = max(found.chunks, 1)
        rows.append(
            [
                folder.name,
                str(len(files)),
                str(found.chunks),
                str(found.unseen),
                f"{100 * found.fragments / many:.1f}",
                f"{100 * found.by_anchor / many:.1f}",
                f"{100 * found.by_link / many:.1f}",
            ]
        )
        print(*rows[-1], flush=True)
    heads = [
        "set",
        "pages",
        "chunks",
        "not found",
        "with text fragment %",
        "anchor alone %",
        "link %",
    ]
    report("landing", table(heads, rows))


if __name__ == "__main__":
    main()
