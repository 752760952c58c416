"""Convert HTML tables, definition lists and admonitions to Markdown; label the panels of tabs."""

import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import islice

from lxml import etree

from kbkit.sources.html import HEADINGS, NAMES, Element, classes, drop_tree, plain_text
from kbkit.sources.html.inline import code_text
from kbkit.text.markdown.writing import KINDS, anchor_mark, bold, indent

_MAX_COLUMNS = 200
_MAX_CELLS = 50_000


def grid(table: Element) -> list[list[Element | None]] | None:
    """Lay out cells in rows of equal length, repeating spanning ones; spans end with the table."""
    sources = _rows(table)
    covered: list[dict[int, Element]] = [{} for _ in sources]
    cells = 0
    for index, source in enumerate(sources):
        column = 0
        for cell in source:
            if cell.tag not in ("td", "th"):
                continue
            while column in covered[index]:
                column += 1
            width = _span(cell.get("colspan"), _MAX_COLUMNS)
            below = len(sources) - index
            height = below if cell.get("rowspan") == "0" else _span(cell.get("rowspan"), below)
            cells += width * height
            if cells > _MAX_CELLS or column + width > _MAX_COLUMNS:
                return None
            for i in range(height):
                for j in range(width):
                    covered[index + i].setdefault(column + j, cell)
            column += width
    width = max((max(row) + 1 for row in covered if row), default=0)
    rows = [[row.get(column) for column in range(width)] for row in covered if row]
    return rows or None


def has_head(rows: list[list[Element | None]]) -> bool:
    """Whether the first row names the columns: it is marked as head, or all bold."""
    cells = [cell for cell in dict.fromkeys(rows[0]) if cell is not None]
    if cells[0].getparent().getparent().tag == "thead":
        return True
    filled = [cell for cell in cells if plain_text(cell)]
    return bool(filled) and all(
        cell.tag == "th" or plain_text(cell) == " ".join(map(plain_text, cell.iter("b", "strong")))
        for cell in filled
    )


def _rows(table: Element) -> list[Element]:
    rows = table.xpath("tr | thead/tr | tbody/tr | tfoot/tr")
    return sorted(rows, key=lambda row: {"thead": 0, "tfoot": 2}.get(row.getparent().tag, 1))


def _span(value: str | None, limit: int) -> int:
    text = (value or "").strip()
    return max(1, min(int(text[:6]), limit)) if text.isdigit() else 1


def table_cells(table: Element) -> list[Element]:
    """Return the cells of this table, not of tables inside it, in reading order."""
    cells = table.iter("td", "th")
    return [cell for cell in cells if next(cell.iterancestors("table"), None) is table]


def is_layout(table: Element, rows: list[list[Element | None]]) -> bool:
    """Whether a table arranges blocks that Markdown cells cannot hold."""
    if len(rows) == 1 and len(rows[0]) == 1:
        return True
    if table.get("role") in ("presentation", "none"):
        return True
    if next(table.iter("th"), None) is None and all(len(_visible_cells(row)) < 2 for row in rows):
        return True  # a list drawn as a table, or text indented by an empty cell
    lists = (next(cell.iter("ul", "ol"), None) for cell in _visible_cells(rows[0]))
    if len(rows) == 1 and all(part is not None for part in lists):
        return True  # a list in columns
    filled = [row for row in rows if not is_section_title(row)]
    arranging = sum(any(cell is not None and _arranges(cell) for cell in row) for row in filled)
    return 2 * arranging > len(filled)


def is_section_title(row: list[Element | None]) -> bool:
    cell = row[0]
    return (
        cell is not None
        and all(other is cell for other in row)
        and next(cell.iterdescendants(*HEADINGS), None) is not None
    )


def _visible_cells(row: list[Element | None]) -> list[Element]:
    cells = (cell for cell in dict.fromkeys(row) if cell is not None)
    return [cell for cell in cells if plain_text(cell) or next(cell.iter("img"), None) is not None]


def _arranges(cell: Element) -> bool:
    inner = cell.iterdescendants("table", "h1", "h2", "h3", "dl", "blockquote")
    codes = (code_text(pre).strip() for pre in cell.iterdescendants("pre"))
    return next(inner, None) is not None or any("\n" in code for code in codes)


def needs_lines(block: str, code: list[str] | None) -> bool:
    if code is not None:
        return len(code) > 1
    has_block = re.search(r"^#{1,6} |^ *`{3,}[^`\n]*$", block, re.MULTILINE)
    return has_block is not None or ("\n" in block and block[0] in "|>")


_BLOCK = re.compile(r"(?:[-#>|]|\d+\. |`{3,}[^`\n]*\n)")  # cannot follow a term in its line
_COLON = re.compile(r":(?=\]\([^()\s]*\)$)")  # at the end of a link


def definition_groups(element: Element) -> list[tuple[list[Element], list[Element]]]:
    groups: list[tuple[list[Element], list[Element]]] = []
    for part in (part for child in element for part in (child if child.tag == "div" else (child,))):
        if not groups or (part.tag == "dt" and groups[-1][1]):
            groups.append(([], []))
        groups[-1][part.tag != "dt"].append(part)
    if groups and not groups[-1][1]:  # terms without a definition are items, such as of contents
        groups[-1:] = [([term], []) for term in groups[-1][0]]
    return groups


def flatten_names(region: Element) -> None:
    """Write terms without definitions that are alone in table cells as code, in place."""
    for terms in list(region.iter("dl")):
        names = [part for part in terms if part.tag == "dt"]
        is_alone = len(names) == 1 and next(terms.iterancestors("td", "th"), None) is not None
        if is_alone and plain_text(terms) == plain_text(names[0]):
            terms.tag, names[0].tag = "span", "code"


def wrap_terms(region: Element) -> None:
    """Put loose terms and their definitions into lists, in place."""
    for term in list(region.iter("dt")):
        parent = term.getparent()
        outer = parent.getparent() if parent is not None and parent.tag == "div" else None
        if parent is None or "dl" in (parent.tag, getattr(outer, "tag", "")):
            continue
        terms = etree.Element("dl")
        term.addprevious(terms)
        part = term
        while part is not None and part.tag in ("dt", "dd"):
            following = part.getnext() if not (part.tail or "").strip() else None
            terms.append(part)
            part = following
        terms.tail, terms[-1].tail = terms[-1].tail, None


def write_terms(terms: Sequence[tuple[str, str]], blocks: list[str], out: list[str]) -> None:
    """Write terms with their fragments, and their definitions, as list items.

    A list item has one anchor, so each further term with an anchor starts an item.
    """
    names: list[str] = []
    fragment = ""
    for text, term_fragment in terms:
        if fragment and term_fragment:
            out.append(_item(names, fragment, []))
            names, fragment = [], ""
        names.append(text)
        fragment = fragment or term_fragment
    if names:
        out.append(_item(names, fragment, blocks))
    else:
        out.extend(blocks)


def _item(names: list[str], fragment: str, blocks: list[str]) -> str:
    head = ", ".join(_COLON.sub("", name.rstrip(": ")) for name in names)
    head = head if head.startswith("`") and head.endswith("`") else bold(head)
    mark = anchor_mark(fragment)
    if blocks and not _BLOCK.match(blocks[0]) and not (mark and blocks[0].endswith("}")):
        first, rest = f"-   {head}: {indent(blocks[0], '    ')[4:]}{mark}", blocks[1:]
    else:
        first, rest = f"-   {head}{mark}", blocks
    return "\n\n".join([first, *(indent(block, "    ") for block in rest)])


ADMONITIONS = NAMES["admonitions"]

_TITLES = frozenset(
    f"{name}title" for name in ("admonition-", "admonition", "alert-", "callout-", "custom-block-")
)
_GENERAL = frozenset({"admonition", "callout", "aside"})
_MAX_TITLE_LENGTH = 80
_FRAMES = frozenset({"table", "tbody", "thead", "tr", "td", "div", "p", "dl"})


def admonition_title(element: Element) -> Element | None:
    """Return the title of an admonition: a part with a title class, or its first bold text.

    Bold text is a heading, a ``th`` beside an icon, a ``dt``, or a bold word that starts the first
    paragraph and ends with a colon or the line.
    """
    for child in element:
        names = {name.lower() for name in classes(child)}
        if names & _TITLES or any("admonitionheading" in name for name in names):
            return child
    first = _first(element)
    return first if first is not None and len(plain_text(first)) <= _MAX_TITLE_LENGTH else None


def is_body(element: Element) -> bool:
    parent = element.getparent()
    is_inside = parent is not None and not ADMONITIONS.isdisjoint(classes(parent))
    return is_inside and plain_text(parent) == plain_text(element)


def admonition_kind(element: Element) -> str:
    words = " ".join(classes(element)).lower().replace("-", " ").split()
    return next((word for word in words if word in KINDS and word not in _GENERAL), "")


def only_child(element: Element, tag: str) -> Element | None:
    """Return the only child of an element, if it has that tag and no text beside it."""
    if [child.tag for child in element] != [tag]:
        return None
    is_alone = not ((element.text or "") + (element[0].tail or "")).strip()
    return element[0] if is_alone else None


def _first(element: Element) -> Element | None:
    for part in element.iterdescendants():
        tag = part.tag
        if tag in (*HEADINGS, "th", "dt"):
            return part
        if tag in ("b", "strong"):
            text, tail = plain_text(part), (part.tail or "").strip()
            ends = text.endswith(":") or tail.startswith(":") or not tail
            return part if ends and text else None
        if (part.text or "").strip() or (tag not in _FRAMES and plain_text(part)):
            return None
    return None


def drop_icons(element: Element, title: str) -> None:
    """Remove pictures that repeat an admonition's title, in place."""
    text = title.strip(": ").lower()
    for icon in list(element.iter("img")):
        if (icon.get("alt") or "").strip("[] ").lower() == text:
            drop_tree(icon)


_TAB_LISTS = etree.XPath("descendant-or-self::*/@role[.='tablist']/..")
_LEVELS = 3  # ancestors of the labels that are searched for panels


def label_tabs(body: Element) -> list[Element]:
    """Move the labels of tabs, found by roles or radio buttons, in place; return the new labels."""
    moved: list[Element] = []
    tab_lists = _TAB_LISTS(body)
    by_id = {part.get("id"): part for part in (body.iter() if tab_lists else ()) if part.get("id")}
    for tabs in tab_lists:
        labels = tabs.xpath("descendant-or-self::*[@role='tab']")
        panels = _controlled_panels(labels, by_id) or _beside(tabs, len(labels), by_role=True)
        moved += _move(labels, panels)
    groups: defaultdict[Element, list[Element]] = defaultdict(list)
    buttons = {part.get("id") for part in body.iter("input") if part.get("type") == "radio"}
    for label in body.iter("label") if buttons else ():
        if label.get("for", "") in buttons:
            groups[label.getparent()].append(label)
    for parent, labels in groups.items():
        panels = [_next(label) for label in labels]
        if any(panel is None or panel.tag == "label" for panel in panels):
            panels = _beside(parent, len(labels), by_role=False)
        moved += _move(labels, panels)
    return moved


def _move(labels: Sequence[Element], panels: Sequence[Element | None]) -> list[Element]:
    texts = [plain_text(label) for label in labels]
    placed = [panel for panel in panels if panel is not None and panel.getparent() is not None]
    if not labels or not all(texts) or len(set(placed)) != len(labels):
        return []
    if any(panel in label.iterancestors() for label in labels for panel in placed):
        return []
    moved = []
    for label, text, panel in zip(labels, texts, placed, strict=True):
        drop_tree(label)  # but not its parent, which may hold the panels
        paragraph = etree.Element("p")
        etree.SubElement(paragraph, "strong").text = text
        panel.addprevious(paragraph)
        moved.append(paragraph)
    return moved


def _controlled_panels(
    labels: Sequence[Element], by_id: dict[str, Element]
) -> list[Element | None]:
    """Return the panels that labels name, or that name their labels."""
    by_label = {name: part for part in by_id.values() if (name := part.get("aria-labelledby"))}
    panels = []
    for label in labels:
        names = ("aria-controls", "href", "data-bs-target", "data-target")
        target = next(filter(None, map(label.get, names)), "").rpartition("#")[2]
        panels.append(by_id.get(target, by_label.get(label.get("id"))))
    return panels if all(panel is not None for panel in panels) else []


def _beside(labels: Element, count: int, *, by_role: bool) -> list[Element | None]:
    """Return as many panels as there are labels, inside or after their ancestors."""
    for ancestor in islice((labels, *labels.iterancestors()), _LEVELS):
        panels = (
            ancestor.xpath("descendant-or-self::*[@role='tabpanel']")
            if by_role
            else _next(ancestor)
        )
        if panels is not None and len(panels) == count:
            return list(panels)
    return []


def _next(element: Element) -> Element | None:
    following = element.getnext()
    while following is not None and following.tag == "input":
        following = following.getnext()
    return following
