"""An HTML tree -> Markdown that loses nothing documentation is made of.

The writer knows what general converters do not: anchors of headings, signatures of API
documentation (``dl``/``dt``), line numbers, spanned cells, admonitions. Nothing in its output is
HTML: text that would read as markup is escaped, and links lead to http, https or mailto only.
"""

from __future__ import annotations

import re

from kbkit.markdown.writing import (
    code_span,
    escape,
    fence,
    folded,
    formula,
    guard,
    indent,
    quote,
)
from kbkit.sources.html.dom import (
    BLOCKS,
    HEADINGS,
    PREFORMATTED,
    Element,
    anchor,
    classes,
    code_text,
    drop_tree,
    language,
    normalized_text,
)
from kbkit.sources.html.inline import InlineWriter
from kbkit.sources.html.tables import grid, pipe_table

_ADMONITIONS = frozenset(
    str.split("""
        admonition admonitionblock theme-admonition alert callout note warning tip hint
        caution important danger error attention seealso
        """)
)
_TITLES = frozenset({"admonition-title", "admonitiontitle", "alert-title", "callout-title"})
_NOTE_LISTS = frozenset({"footnote", "citation"})
_API_LISTS = frozenset(
    str.split("""
        class function method attribute data exception describe module property
        staticmethod classmethod c cpp py js rst std option envvar macro type struct
        member enum
        """)
)


class MarkdownWriter:
    """Writes one page.

    Args:
        base: Address that relative links start from.
        own_anchors: Anchors that headings name through their own links.
        links_last: Keep the running text free of addresses; its links stand in a list at the
            end, each address once.
    """

    def __init__(
        self,
        base: str,
        own_anchors: dict[Element, str] | None = None,
        *,
        links_last: bool = False,
    ) -> None:
        self._spans = InlineWriter(base, links_last=links_last)
        self._own = own_anchors or {}
        self._level = 0
        self._holders: set[Element] = set()

    def write(self, region: Element) -> str:
        """The region as Markdown, without a newline at its end."""
        for block in region.iter(*BLOCKS):
            parent = block.getparent()
            while parent is not None and parent.tag not in BLOCKS and parent not in self._holders:
                self._holders.add(parent)
                parent = parent.getparent()
        blocks = self._block(region) if region.tag in BLOCKS else self._blocks(region)
        if self._spans.links:
            links = (f"-   [{text}]({url})" for url, text in self._spans.links.items())
            blocks.append("\n".join(links))
        return "\n\n".join(blocks)

    def _blocks(self, element: Element) -> list[str]:
        out: list[str] = []
        run: list[str] = [escape(element.text)] if element.text else []
        for child in element:
            tag = child.tag
            if isinstance(tag, str):
                if tag in BLOCKS or child in self._holders:
                    self._paragraph(run, out)
                    out.extend(self._block(child))
                else:
                    run.append(self._spans.write(child))
            if child.tail:
                run.append(escape(child.tail))
        self._paragraph(run, out)
        return out

    @staticmethod
    def _paragraph(run: list[str], out: list[str]) -> None:
        text = folded("".join(run))
        run.clear()
        if text:
            out.append(guard(text))

    def _block(self, element: Element) -> list[str]:
        tag = element.tag
        if tag in HEADINGS:
            return self._heading(element, HEADINGS[tag])
        if tag in PREFORMATTED:
            return self._code(element)
        if tag in ("ul", "ol", "menu", "dir"):
            return self._list(element)
        if tag == "dl":
            return self._definitions(element)
        if tag == "table":
            return self._table(element)
        if tag == "hr":
            return ["---"]
        if tag == "blockquote":
            inner = self._blocks(element)
            return [quote("\n\n".join(inner))] if inner else []
        if tag in ("summary", "legend", "caption", "dt"):
            text = self._spans.line(element)
            return [f"**{text}**"] if text else []
        names = element.get("class")
        if names and tag in ("div", "aside", "section", "p"):
            if "math" in names.split():
                return self._math(element)
            if not _ADMONITIONS.isdisjoint(names.split()):
                return self._admonition(element)
        return self._blocks(element)

    def _heading(self, element: Element, level: int) -> list[str]:
        text = self._spans.line(element)
        if not text:
            return self._images(element)
        if element.getparent() is not None and self._in_cell(element):
            return [f"**{text}**"]
        self._level = level
        return [self._titled(text, level, anchor(element, self._own))]

    def _images(self, element: Element) -> list[str]:
        return [text for image in element.iter("img") if (text := self._spans.image(image))]

    @staticmethod
    def _in_cell(element: Element) -> bool:
        parent = element.getparent()
        while parent is not None and parent.tag in ("div", "p", "span", "a", "li"):
            parent = parent.getparent()
        return parent is not None and parent.tag in ("td", "th")

    @staticmethod
    def _titled(text: str, level: int, place: str) -> str:
        text = re.sub(r"(?<!\\)(#+)$", r"\\\1", text)
        return "#" * level + f" {text}" + (f" {{#{place}}}" if place else "")

    def _code(self, element: Element) -> list[str]:
        code = code_text(element)
        return [fence(code, language(element))] if code.strip() else []

    def _list(self, element: Element) -> list[str]:
        number = 1
        start = element.get("start") or ""
        if start.isdigit():
            number = int(start[:9])
        items: list[str] = []
        loose = False
        for child in element:
            if not isinstance(child.tag, str):
                continue
            if child.tag in ("ul", "ol", "menu", "dir") and items:
                # a list put straight into a list belongs to the item before
                nested = "\n".join(self._list(child))
                items[-1] += "\n" + indent(nested, "    ")
                continue
            blocks = self._blocks(child) if child.tag == "li" else self._block(child)
            if not blocks:
                continue
            if re.match(r"`{3}|[|>#]", blocks[0]):
                # behind a list marker, readers that go by lines miss fences and tables; a
                # no-break space is text enough to hold the marker
                blocks.insert(0, "\xa0")
            marker = f"{number}." if element.tag == "ol" else "-"
            width = max(4, len(marker) + 1)
            tight = all(
                index == 0 or (re.match(r"-   |\d+\. ", block) and "\n\n" not in block)
                for index, block in enumerate(blocks)
            )
            loose = loose or not tight or "\n\n" in blocks[0]
            body = ("\n" if tight else "\n\n").join(blocks)
            items.append(marker.ljust(width) + indent(body, " " * width)[width:])
            number += 1
        return [("\n\n" if loose else "\n").join(items)] if items else []

    def _definitions(self, element: Element) -> list[str]:
        out: list[str] = []
        base = self._level
        api = not _API_LISTS.isdisjoint(classes(element))
        notes = not _NOTE_LISTS.isdisjoint(classes(element))
        terms: list[str] = []
        titled = False
        for child in _definition_parts(element):
            if child.tag == "dt":
                place = anchor(child, self._own)
                titled = not notes and (bool(place) or api or "sig" in classes(child))
                if titled:
                    self._plain_terms(terms, [], out)
                    self._level = min(6, max(base, 1) + 1)
                    text = self._term(child, api or "sig" in classes(child))
                    if text:
                        out.append(self._titled(text, self._level, place))
                elif text := self._spans.line(child):
                    terms.append(f"[{text.strip('[]')}]" if notes else text)
            else:
                blocks = self._blocks(child) if child.tag == "dd" else self._block(child)
                if titled:
                    out.extend(blocks)
                    self._level = min(6, max(base, 1) + 1)
                else:
                    self._plain_terms(terms, blocks, out)
        self._plain_terms(terms, [], out)
        self._level = base
        return out

    def _term(self, element: Element, signature: bool) -> str:
        if not signature:
            return self._spans.line(element)
        text = normalized_text(element).replace("( ", "(").rstrip("¶#").strip()
        # brackets of optional parameters are no markup here, but they look like links
        if escape(text) != text or "[" in text:
            return code_span(text)
        return text

    @staticmethod
    def _plain_terms(terms: list[str], blocks: list[str], out: list[str]) -> None:
        """Write terms that nothing links to as an item of a list."""
        if not terms:
            out.extend(blocks)
            return
        head = ", ".join(term.rstrip(": ") for term in terms)
        head = head if head.startswith("`") and head.endswith("`") else f"**{head}**"
        terms.clear()
        if blocks and not re.match(r"(?:[-#>|]|\d+\.|`{3})", blocks[0]):
            first = f"-   {head}: {indent(blocks[0], '    ')[4:]}"
            rest = blocks[1:]
        else:
            first, rest = f"-   {head}", blocks
        out.append("\n\n".join([first, *(indent(block, "    ") for block in rest)]))

    def _table(self, element: Element) -> list[str]:
        caption = next(element.iterchildren("caption"), None)
        out = []
        if caption is not None and (text := self._spans.line(caption)):
            out.append(f"**{text}**")
        rows = grid(element)
        if rows is None or _is_layout(element, rows):
            for cell in _cells(element):
                out.extend(self._blocks(cell))
            return out
        written: dict[Element, str] = {}
        for row in rows:
            for cell in row:
                if cell is not None and cell not in written:
                    written[cell] = self._cell(cell)
        lines = [["" if cell is None else written[cell] for cell in row] for row in rows]
        if not any(any(line) for line in lines):
            return out
        out.append(pipe_table(lines))
        return out

    def _cell(self, cell: Element) -> str:
        """The content of a table cell in one line."""
        pieces = []
        for block in self._blocks(cell):
            if block.startswith("```"):
                code = block.split("\n")[1:-1]
                pieces.append(" ".join(code_span(line) for line in code if line.strip()))
            else:
                text = re.sub(r"(?m)^\s*-   ", "• ", block)
                pieces.append(" ".join(text.split()))
        return " ".join(piece for piece in pieces if piece)

    def _admonition(self, element: Element) -> list[str]:
        title = ""
        for child in element:
            names = {name.lower() for name in classes(child)}
            if names & _TITLES or any("admonitionheading" in name for name in names):
                title = self._spans.line(child)
                drop_tree(child)
                break
        if not title and "admonition" not in " ".join(classes(element)):
            return self._blocks(element)
        inner = ([f"**{title}**"] if title else []) + self._blocks(element)
        return [quote("\n\n".join(inner))] if inner else []

    def _math(self, element: Element) -> list[str]:
        text = formula(normalized_text(element))
        return [f"$$\n{text}\n$$"] if text else []


def _definition_parts(element: Element) -> list[Element]:
    """Terms and definitions, also where ``div`` groups them."""
    parts: list[Element] = []
    for child in element:
        if child.tag == "div":
            parts.extend(inner for inner in child if isinstance(inner.tag, str))
        elif isinstance(child.tag, str):
            parts.append(child)
    return parts


def _cells(table: Element) -> list[Element]:
    """Cells of this table and not of tables inside it, in reading order."""
    found = []
    for cell in table.iter("td", "th"):
        holder = cell.getparent()
        while holder is not None and holder.tag != "table":
            holder = holder.getparent()
        if holder is table:
            found.append(cell)
    return found


def _is_layout(table: Element, rows: list[list[Element | None]]) -> bool:
    """Whether a table arranges blocks that cannot stand in the cells of a Markdown table."""
    if len(rows) == 1 and len(rows[0]) == 1:
        return True
    if next(table.iterdescendants("table", "h1", "h2", "h3", "dl", "blockquote"), None) is not None:
        return True
    return any("\n" in code_text(pre).strip() for pre in table.iterdescendants("pre"))
