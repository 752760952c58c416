"""Convert an HTML tree to Markdown, with anchors, signatures and code intact.

It keeps anchors of headings, signatures of API documentation (``dl``/``dt``), line numbers,
spanned cells and admonitions. Its output has no HTML: markup in texts is escaped, and links lead
to http, https or mailto only.
"""

import re
from collections.abc import Callable

from kbkit.sources import html
from kbkit.sources.html import BLOCKS, HEADINGS, Element, classes, inline, plain_text, tables
from kbkit.text.markdown import without_text_anchor, writing
from kbkit.text.markdown.writing import anchor_mark, bold, escape, fence, heading_line

_MARK = re.compile(r"^-(?=   )", re.MULTILINE)
_NO_PARAGRAPH = re.compile(r"`{3}|[|>]|#{1,6} |-   |\d+\. |\$\$|---$|.*\}$", re.DOTALL)
_NOTES = ("doc-footnote", "doc-endnote")


class MarkdownWriter:
    """Writes one page."""

    def __init__(
        self, base: str, own_anchors: dict[Element, str] | None = None, *, relative: bool = False
    ) -> None:
        self._spans = inline.InlineWriter(base, relative=relative)
        self._anchors = own_anchors or {}
        self._level = 0  # of the last heading
        self._levels: dict[Element, int] = {}  # of headings, by the blocks of their sections
        self._holders: set[Element] = set()
        self._no_cells: set[Element] = set()
        self._writers: dict[str, Callable[[Element], list[str]]] = {
            **dict.fromkeys(("ul", "ol", "menu", "dir"), self._list),
            **dict.fromkeys(("summary", "legend", "caption", "dt"), self._caption),
            "dl": self._definitions,
            "table": self._table,
            "blockquote": lambda element: writing.quoted(self._blocks(element)),
            "hr": lambda _element: ["---"],
            "p": self._add_anchors,
        }

    def write(self, region: Element) -> str:
        tables.flatten_names(region)
        tables.wrap_terms(region)
        for block in region.iter(*BLOCKS):
            parent = block.getparent()
            while parent is not None and parent.tag not in BLOCKS and parent not in self._holders:
                self._holders.add(parent)
                parent = parent.getparent()
        for link in [holder for holder in self._holders if holder.get("href")]:
            _link_first_block(link)
        blocks = self._block(region) if region.tag in BLOCKS else self._blocks(region)
        return "\n\n".join(blocks)

    def _blocks(self, element: Element) -> list[str]:
        out: list[str] = []
        inline_texts: list[str] = [escape(element.text)] if element.text else []
        previous_tag, mark = "", "-"
        for child in element:
            tag = child.tag
            if tag in BLOCKS or child in self._holders:
                self._paragraph(inline_texts, out)
                if {previous_tag, tag} == {"dl", "ul"}:  # another marker separates the lists
                    mark = "*" if mark == "-" else "-"
                for block in self._block(child):
                    is_list = mark == "*" and block.startswith("-   ")
                    out.append(_MARK.sub(mark, block) if is_list else block)
                previous_tag, mark = (tag, mark) if tag in {"dl", "ul"} else ("", "-")
            elif (code := inline.broken_code(child)) is not None:
                self._paragraph(inline_texts, out)
                out.append(fence(code, inline.language(child)))
            else:
                if tag == "a":
                    inline.escape_bang(inline_texts)
                inline_texts.append(self._spans.write(child))
            if child.tail:
                inline_texts.append(escape(child.tail))
        self._paragraph(inline_texts, out)
        return out

    @staticmethod
    def _paragraph(inline_texts: list[str], out: list[str]) -> None:
        if text := writing.write_marks(writing.fold_spaces("".join(inline_texts))):
            out.append(writing.guard(text))
        inline_texts.clear()

    def _block(self, element: Element) -> list[str]:
        tag = element.tag
        if tag in HEADINGS and "author" not in classes(element):
            return self._heading(element, HEADINGS[tag])
        if tag in html.PREFORMATTED:
            return self._code(element)
        if tag in ("div", "p") and element in self._anchors:
            return self._signature(element)
        if (code := inline.lines_of_code(element)) is not None:
            return [fence(code, inline.language(element))]
        if element.get("role") in _NOTES:
            return self._note(element)
        names = classes(element) if tag in ("div", "aside", "section", "p", "dl") else []
        if "math" in names:
            return [f"$$\n{text}\n$$"] if (text := writing.formula(plain_text(element))) else []
        if not tables.ADMONITIONS.isdisjoint(names) and len(element.findall("dt")) <= 1:
            return self._admonition(element)
        return self._writers.get(tag, self._blocks)(element)

    def _note(self, element: Element) -> list[str]:
        """Write a footnote with its sign and anchor in the first paragraph."""
        sign_element = next(iter(element), None)
        if sign_element is None or sign_element.tag != "span":
            return self._add_anchors(element)
        sign = writing.write_marks(writing.fold_spaces(self._spans.write(sign_element)))
        sign = f"{sign[:-2]}]" if sign.endswith("\\]") else sign
        html.drop_tree(sign_element)
        blocks = self._add_anchors(element)
        return [f"{sign} {blocks[0]}", *blocks[1:]] if blocks else []

    def _add_anchors(self, element: Element) -> list[str]:
        blocks = self._blocks(element)
        if blocks and not _NO_PARAGRAPH.match(blocks[0]):
            blocks[0] += anchor_mark(html.opening_anchor(element))
        return blocks

    def _caption(self, element: Element) -> list[str]:
        if next(element.iterdescendants(*BLOCKS), None) is not None:
            return self._blocks(element)
        text = self._spans.line(element)
        return [bold(text)] if text else []

    def _heading(self, element: Element, level: int) -> list[str]:
        for part in [part for part in element.iterdescendants() if inline.opens_popup(part)]:
            html.drop_tree(part)
        fragment = html.anchor(element, self._anchors)
        text = self._spans.line(element, place=fragment)
        if not text:
            return [text for image in element.iter("img") if (text := self._spans.image(image))]
        parent = element.getparent()
        if parent is not None and self._in_cell(element):
            return [bold(text)]
        self._level = level
        while parent is not None and parent.getparent() is not None:
            self._levels[parent] = level
            if parent.tag not in ("header", "hgroup") and not _says_only(parent, text):
                break
            parent = parent.getparent()
        return [heading_line(text, level, fragment)]

    def _signature(self, element: Element) -> list[str]:
        fragment = html.valid_anchor(self._anchors[element])
        text = self._spans.signature(element, fragment)
        levels = (self._levels[up] for up in element.iterancestors() if up in self._levels)
        level = min(6, next(levels, max(self._level, 1)) + 1)
        parent = element.getparent()
        if parent is not None and parent[0] is element:
            self._levels[parent] = level
        return [heading_line(text, level, fragment)] if text else []

    def _in_cell(self, element: Element) -> bool:
        inner = ("div", "p", "span", "a", "li")
        holder = next((up for up in element.iterancestors() if up.tag not in inner), None)
        return holder is not None and holder.tag in ("td", "th") and holder not in self._no_cells

    def _code(self, element: Element) -> list[str]:
        code = inline.code_text(element)
        return [fence(code, inline.language(element))] if code.strip() else []

    def _list(self, element: Element) -> list[str]:
        if element.tag != "ol" and next(element.iterdescendants("hr", *HEADINGS), None) is not None:
            # sections laid out as a list, where readers would not find headings
            return [block for child in element for block in self._item(child)]
        start = element.get("start") or ""
        number = int(start[:9]) if start.isdecimal() else 1
        items: list[str] = []
        loose = False
        for child in element:
            if child.tag in ("ul", "ol", "menu", "dir") and items:
                # a list directly inside a list belongs to the previous item
                nested = "\n".join(self._list(child))
                items[-1] += "\n" + writing.indent(nested, "    ")
                continue
            blocks = self._item(child)
            if not blocks:
                continue
            if re.match(r"`{3}|[|>#]", blocks[0]):
                # after a list marker, line-based readers miss fences and tables; a no-break space
                # counts as text
                blocks.insert(0, "\xa0")
            marker = f"{number}." if element.tag == "ol" else "-"
            width = max(4, len(marker) + 1)
            tight = all(
                re.match(r"-   |\d+\. ", block) and "\n\n" not in block for block in blocks[1:]
            )
            loose = loose or not tight or "\n\n" in blocks[0]
            body = ("\n" if tight else "\n\n").join(blocks)
            items.append(marker.ljust(width) + writing.indent(body, " " * width)[width:])
            number += 1
        return [("\n\n" if loose else "\n").join(items)] if items else []

    def _item(self, element: Element) -> list[str]:
        return self._add_anchors(element) if element.tag == "li" else self._block(element)

    def _definitions(self, element: Element) -> list[str]:
        out: list[str] = []
        base, level = self._level, min(6, max(self._level, 1) + 1)
        api = not html.NAMES["api_lists"].isdisjoint(classes(element))
        notes = not {"footnote", "citation"}.isdisjoint(classes(element))
        groups = [
            (terms, [html.anchor(term, self._anchors) for term in terms], definitions)
            for terms, definitions in tables.definition_groups(element)
        ]
        anchored = [any(anchors) for _, anchors, _ in groups if anchors]
        # if most terms have anchors; a few lead to letters of the alphabet
        mostly_anchored = sum(anchored) * 2 > len(anchored)
        for terms, anchors, definitions in groups:
            signed = api or any(
                "sig" in classes(term) or term.find("pre") is not None for term in terms
            )
            titled = not notes and (signed or (mostly_anchored and any(anchors)))
            list_terms: list[tuple[str, str]] = []
            for term, term_anchor in zip(terms, anchors, strict=True):
                if titled:
                    self._level = level
                    write = self._spans.signature if signed else self._spans.line
                    if text := write(term, place=term_anchor):
                        out.append(heading_line(text, level, term_anchor))
                elif text := self._spans.line(term):
                    list_terms.append((f"[{text.strip('[]')}]" if notes else text, term_anchor))
            blocks: list[str] = []
            for part in definitions:
                blocks += self._blocks(part) if part.tag == "dd" else self._block(part)
                self._level = level if titled else self._level
            tables.write_terms(list_terms, blocks, out)
        self._level = base
        return out

    def _table(self, element: Element) -> list[str]:
        caption = next(element.iterchildren("caption"), None)
        out = []
        if caption is not None and (text := self._spans.line(caption)):
            out.append(bold(text))
        rows = tables.grid(element)
        if rows is None or tables.is_layout(element, rows):
            for cell in tables.table_cells(element):
                out += self._laid_out(cell)
            return out
        # Markdown takes the first line for column names
        lines: list[list[str]] = [] if tables.has_head(rows) else [[""] * len(rows[0])]
        seen: set[Element | None] = {None}
        for row in rows:
            is_title = tables.is_section_title(row)
            line: list[str] = []
            blocks_below = self._laid_out(row[0]) if is_title else []
            for cell in row if not is_title else ():
                # write a spanning cell once, at its first position
                cell_text, cell_blocks = ("", []) if cell in seen else self._cell(cell)
                seen.add(cell)
                line.append(cell_text)
                blocks_below += cell_blocks
            if any(line) or not (lines or is_title):
                lines.append(line)
            seen.update(row)
            if blocks_below:  # the table is split, and continues without a head
                out += _filled_table(lines) + blocks_below
                lines = lines and [[""] * len(row)]
        return out + _filled_table(lines)

    def _laid_out(self, cell: Element) -> list[str]:
        self._no_cells.add(cell)
        return self._blocks(cell)

    def _cell(self, cell: Element) -> tuple[str, list[str]]:
        pieces: list[str] = []
        blocks_below: list[str] = []
        for block in self._blocks(cell):
            fenced = block.startswith("```") and "\n" in block
            code = block.split("\n")[1:-1] if fenced else None
            if block == "---":
                continue
            if blocks_below or tables.needs_lines(block, code):
                blocks_below.append(block)
            elif code is not None:
                pieces.append(" ".join(writing.code_span(line) for line in code if line.strip()))
            else:
                lines = without_text_anchor(block)[0]  # not supported in cells
                text = re.sub(r"(?m)^\s*(?:-   )+", "• ", lines)
                pieces.append(" ".join(text.split()))
        return " ".join(piece for piece in pieces if piece), blocks_below

    def _admonition(self, element: Element) -> list[str]:
        heading = tables.admonition_title(element)
        title: list[str] = []
        if heading is not None:
            name = plain_text(heading)
            if level := HEADINGS.get(heading.tag):
                title = self._heading(heading, level)
            else:
                # one word is the name of the kind, in any language
                kind = tables.admonition_kind(element) if " " in name else ""
                title = [bold(writing.title_of(kind, self._spans.line(heading)))]
            tables.drop_icons(element, name)
            html.drop_tree(heading)
        elif tables.is_body(element):
            return self._blocks(element)
        elif "admonition" not in (element.get("class") or ""):
            return self._definitions(element) if element.tag == "dl" else self._blocks(element)
        table = tables.only_child(element, "table")
        if table is not None:  # the table exists only for its border
            inner = [block for cell in tables.table_cells(table) for block in self._laid_out(cell)]
        else:
            inner = self._blocks(element)
        return writing.quoted(title + inner)


def _link_first_block(link: Element) -> None:
    """Move a link around blocks into the first of text, in place."""
    for block in link.iterdescendants(*BLOCKS):
        if next(block.iterdescendants("a", *BLOCKS), None) is None and plain_text(block):
            inner = block.makeelement("a", href=link.attrib.pop("href"))
            inner.text, block.text = block.text, None
            inner.extend(list(block))
            block.append(inner)
            return


def _filled_table(rows: list[list[str]]) -> list[str]:
    return [writing.pipe_table(rows)] if any(map(any, rows)) else []


def _says_only(element: Element, text: str) -> bool:
    """Whether an element has only this text, white space aside; stops at the first difference."""
    rest = "".join(text.split())
    for words in ("".join(part.split()) for part in element.itertext()):
        if not rest.startswith(words):
            return False
        rest = rest[len(words) :]
    return not rest
