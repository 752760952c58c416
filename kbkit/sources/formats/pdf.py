"""PDF: text by page, with headings from the outline or from font sizes.

Form feeds separate pages, even empty ones, so that chunks know their page. PDF has no paragraphs:
they start after a gap clearly wider than usual on the page, or where the font size changes.
Repeated running heads and feet are removed.
"""

import ctypes
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import reduce
from itertools import chain, pairwise, product
from operator import itemgetter
from statistics import median, median_low
from typing import Any

from kbkit.extras import extra
from kbkit.models import License
from kbkit.sources.html.metadata import rights_license
from kbkit.sources.parts import PAGE_BREAK, Part, check_length, one_line, stem
from kbkit.sources.untrusted import UnreadableError
from kbkit.text.markdown.writing import escape, guard, heading_line

_LARGER = 1.12  # minimum height of a heading, times that of body text
_SMALLER = 0.95  # the same for bold headings
_MAX_LENGTH = 160  # characters of a heading
_MAX_LINES = 3
_MIN_LETTERS = 3
_MAX_BOLD = 0.3  # share of bold letters, above which bold marks no headings
_MAX_HEADINGS = 0.34  # share of lines, above which no heading is trusted
_MAX_STEP = 1.15  # widest line spacing inside a heading, times the usual one
_ALIKE = 1.04  # heights with a smaller ratio are equal
_SENTENCE = re.compile(r"[.,;:][\"'”’)\]]?$")
_BULLET = re.compile(r"\s*[•‣◦▪●–-]\s")


@dataclass(slots=True)
class Line:
    """A line of a page.

    Attributes:
        starts: Whether a paragraph starts here.
        bottom: Height of its place on the page in points; 0 if unknown.
        height: Height of letters in points; 0 if unknown.
        step: Distance from the line above in points; 0 if there is none.
        spread: Whether words are far apart, as in a table's head.
    """

    text: str
    starts: bool = False
    bottom: float = 0.0
    height: float = 0.0
    bold: bool = False
    spread: bool = False
    step: float = 0.0


def printed_headings(
    pages: Sequence[Sequence[Line]],
) -> tuple[dict[int, list[tuple[int, str]]], str]:
    """Return each page's headings as level and text, and the largest of the first page."""
    lines = list(chain.from_iterable(pages))
    letters: Counter[float] = Counter()
    for line in lines:
        letters[round(line.height, 1)] += len(line.text)
    bold = sum(len(line.text) for line in lines if line.bold)
    body = letters.most_common(1)[0][0] if letters else 0.0
    if not body:
        return {}, ""
    inside = [line for line in lines if line.height and line.step > 0 and not line.starts]
    steps = [line.step / line.height for line in inside]
    spacing = _MAX_STEP * (median(steps) if steps else 1.2)
    bold_counts = bold <= _MAX_BOLD * letters.total()
    heads = [
        (index, round(run[0].height, 1), " ".join(line.text.strip() for line in run))
        for index, page in enumerate(pages)
        for run in _paragraphs(page, body, spacing)
        if _is_heading(run, body, bold_counts)
    ]
    if len(heads) > _MAX_HEADINGS * len(lines):
        return {}, ""
    level = _levels({height for _, height, _ in heads}, body)
    headings: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for index, height, title in heads:
        headings[index].append((level[height], title))
    opening = [(height, title) for index, height, title in heads if index == heads[0][0] < 2]
    largest, title = max(opening, key=itemgetter(0), default=(0.0, ""))
    return dict(headings), title if largest > body * _LARGER else ""


def _paragraphs(lines: Sequence[Line], body: float, spacing: float) -> Iterator[list[Line]]:
    run: list[Line] = []
    for line in lines:
        large = line.height >= body * _LARGER and 0 < line.step <= spacing * line.height
        uniform = run and line.bold == run[-1].bold
        continues = large and uniform and 1 / _ALIKE < line.height / (run[-1].height or 1) < _ALIKE
        if run and not continues and (line.starts or not uniform):
            yield run
            run = []
        run.append(line)
    if run:
        yield run


def _is_heading(run: Sequence[Line], body: float, bold_counts: bool) -> bool:
    text = " ".join(line.text.strip() for line in run)
    height = run[0].height
    larger = height >= body * _LARGER
    bolder = bold_counts and height >= body * _SMALLER and all(line.bold for line in run)
    return (
        (larger or bolder)
        and not any(line.spread for line in run)
        and len(run) <= _MAX_LINES
        and len(text) <= _MAX_LENGTH
        and sum(map(str.isalpha, text)) >= _MIN_LETTERS
        and not _SENTENCE.search(text)
        and not _BULLET.match(text)
    )


def _levels(heights: set[float], body: float) -> dict[float, int]:
    level, top, levels = 0, 0.0, {}
    for height in sorted(heights, reverse=True):
        # close heights share a level, unless only the first is larger than body text
        shares_level = top and (top < height * _ALIKE) and not (top >= body * _LARGER > height)
        if not shares_level:
            level, top = min(level + 1, 6), height
        levels[height] = level
    return levels


_MAX_PAGES = 5_000
_MAX_ENTRIES = 20_000
_REPEATED = 4  # minimum number of pages with the same first or last line to be a running one
_HYPHEN = re.compile("[\x02\xad\ufffe]\r?\n?")
_PRINTED = re.compile("[^\n\x02\ufffe]*(?:[\x02\ufffe]\r?\n?|\n)|[^\n\x02\ufffe]+")
"""A printed line: PDFium joins lines of a hyphenated word."""
_PREFIXES = frozenset({"self", "well"})
_COMPOUND = re.compile(r"\b\w++(?:-\w++)+")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")
_LIST = re.compile(r"^\s*(?:[•‣◦▪●–]|\d{1,3}[.)]|\([a-z0-9]\))\s")
_ITEM = re.compile(r"\s*(?:(?P<number>\d{1,3}[.)])|[•‣◦▪●])\s+(?=\S)")
_WIDE_GAP = 1.0  # times the letter height
_BOLD = 600  # font weight, 100 to 900
_BOLD_NAME = re.compile(r"bold|black|heavy|(?<![a-z])bd(?![a-z])", re.IGNORECASE)
# default titles of programs
_NO_TITLE = re.compile(
    r"^(?:\W*(?:anonymous|untitled|no title|unknown)\W*$|untitled|microsoft word|"
    r".*\.(?:docx?|pdf|tex|dvi|indd|qxd)$)",
    re.I,
)


def read(data: bytes, name: str) -> list[Part]:
    with extra("office", "pypdfium2", "Reading PDF"):
        import pypdfium2

    start = data.find(b"%PDF-", 0, 1024)
    if start < 0:
        raise UnreadableError("broken, or not a PDF")
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        message = str(error).lower()
        if "password" in message or "security" in message:
            raise UnreadableError("encrypted: it opens with a password only") from None
        raise UnreadableError("broken: its structure cannot be read") from None
    with closing(document):
        return [_read(document, name)]


def _read(document: Any, name: str) -> Part:
    count = len(document)
    if count > _MAX_PAGES:
        raise UnreadableError(f"more than {_MAX_PAGES:,} pages")
    outline, first = _outline(document, count)
    pages: list[list[Line]] = []
    size = unreadable = 0
    for index in range(count):
        try:
            with closing(document[index]) as page, closing(page.get_textpage()) as text:
                pages.append(_lines(text))
        except Exception:  # a bad page must not cost the others
            unreadable += 1
            pages.append([])
        size += sum(len(line.text) for line in pages[-1])
        check_length(size)
    if not size:
        if unreadable:
            raise UnreadableError("broken: no page can be read")
        raise UnreadableError("no text (scanned pages need character recognition first)")
    _drop_running(pages)
    if not outline:
        outline, first = printed_headings(pages)
    out = [_page(lines, outline.get(index, [])) for index, lines in enumerate(pages)]
    info = document.get_metadata_dict()
    title = one_line(_CONTROL.sub("", info.get("Title", "")))
    if not title or _NO_TITLE.match(title):
        title = first or stem(name)
    metadata: dict[str, Any] = {"format": "pdf", "pages": count}
    if author := one_line(_CONTROL.sub("", info.get("Author", ""))):
        metadata["author"] = author
    end = "\n" if count > 1 else PAGE_BREAK  # a break marks a single page as page 1
    if unreadable:
        metadata["unreadable_pages"] = unreadable
    metadata |= _license(document).to_metadata()
    return Part(title, PAGE_BREAK.join(out) + end, metadata=metadata)


def _license(document: Any) -> License:
    keys = ("License", "Rights", "Copyright")
    name, *texts = (_CONTROL.sub("", document.get_metadata_value(key) or "") for key in keys)
    return reduce(License.or_else, map(rights_license, texts), License.stated(name))


def _outline(document: Any, count: int) -> tuple[dict[int, list[tuple[int, str]]], str]:
    """Return headings by page as level and text, and the only top-level entry, or ``""``."""
    headings: dict[int, list[tuple[int, str]]] = defaultdict(list)
    tops: list[str] = []
    try:
        for number, mark in enumerate(document.get_toc(max_depth=8)):
            if number >= _MAX_ENTRIES:
                break
            title = one_line(_CONTROL.sub("", mark.get_title() or ""))
            target = mark.get_dest()
            index = target.get_index() if target is not None else None
            if mark.level == 0:
                tops.append(title)
            if title and index is not None and 0 <= index < count:
                headings[index].append((min(mark.level + 1, 6), title))
    except Exception:  # a broken outline does not affect the text
        headings.clear()
    return headings, tops[0] if len(tops) == 1 else ""


def _drop_running(pages: list[list[Line]]) -> None:
    for index in (0, -1):
        counts: Counter[str] = Counter(_running_key(lines[index].text) for lines in pages if lines)
        first_seen: set[str] = set()
        for lines in filter(None, pages):
            key = _running_key(lines[index].text)
            if counts[key] >= _REPEATED and len(lines) > 1:
                if key in first_seen:
                    del lines[index]
                first_seen.add(key)


def _running_key(line: str) -> str:
    return re.sub(r"\d+", "0", _key(line))


def _page(lines: list[Line], headings: list[tuple[int, str]]) -> str:
    blocks: list[str | list[str]] = []  # headings, and the lines of paragraphs
    # a heading replaces its printed lines, up to three; others open the page
    printed: dict[int, str] = {}
    replaced: set[int] = set()
    for level, title in headings:
        heading = heading_line(escape(title), level)
        if span := _find(lines, _key(title), replaced):
            printed[span.start] = heading
            replaced.update(span)
        else:
            blocks.append(heading)
    run: list[str] | None = None
    for number, line in enumerate(lines):
        if number in printed:
            blocks.append(printed[number])
            run = None
        if number in replaced:
            continue
        if run is None or line.starts or _LIST.match(line.text):
            run = []
            blocks.append(run)
        run.append(line.text)
    written = (each if isinstance(each, str) else _paragraph("\n".join(each)) for each in blocks)
    return "\n\n".join(written)


def _paragraph(text: str) -> str:
    item = _ITEM.match(text)
    if item is None:
        return guard(escape(text))
    mark = item["number"] or "-"
    return f"{mark} {guard(escape(text[item.end() :]))}"


def _lines(text: Any) -> list[Line]:
    whole = text.get_text_range()
    exact = text.count_chars() == len(whole)
    printed = [match for match in _PRINTED.finditer(whole) if match[0].strip()]
    lines = [_line(text, match, exact) for match in printed]
    places = pairwise(line.bottom for line in lines)
    gaps = [above - below for above, below in places if above > below > 0]
    usual = median_low(gaps) if gaps else 0.0
    above = Line("")  # the last line whose place is known
    for line in lines:
        if not line.bottom:
            continue
        line.step = above.bottom - line.bottom if above.bottom else 0.0
        # a step up is a new column, a clearly wider step down a new paragraph
        far = bool(usual) and (line.step > usual * 1.35 or line.step < -usual)
        resized = above.height > 0 and not 0.85 < line.height / above.height < 1.18
        line.starts = far or resized or line.bold != above.bold
        above = line
    compounds = set(_COMPOUND.findall(whole))
    result: list[Line] = []
    for line in lines:
        if result and result[-1].text.endswith("\u00ad"):
            before = result[-1].text.rstrip("\u00ad")
            word, _, line.text = line.text.lstrip().partition(" ")
            hyphen = "-" if _is_compound(before, word, compounds) else ""
            result[-1].text = before + hyphen + word
            if not line.text:
                continue
        result.append(line)
    for line in result:
        line.text = line.text.replace("\u00ad", "-" if line.text.endswith("\u00ad") else "")
    return result


def _line(text: Any, match: re.Match[str], exact: bool) -> Line:
    """Read a printed line; soft hyphens stay in its text, and its place needs `exact` offsets."""
    line = Line(_CONTROL.sub("", _HYPHEN.sub("\u00ad", match[0])).rstrip())
    if exact:
        first = match.start() + len(match[0]) - len(match[0].lstrip())
        last = match.start() + len(match[0].rstrip()) - 1
        line.bold = _is_bold(text, first) and _is_bold(text, last)
        line.spread = line.bold and _is_spread(text, first, last)
        with suppress(Exception):  # without a box, no gap is detected
            _, line.bottom, _, top = text.get_charbox(first, loose=True)
            line.height = top - line.bottom if line.bottom else 0.0
    return line


def _is_compound(before: str, word: str, compounds: Collection[str]) -> bool:
    """Whether a hyphen at the end of a line belongs to its word.

    PDF does not mark this. It belongs if the word has another hyphen, after a single letter, "self"
    or "well", before a capital, and if the page has the compound elsewhere.
    """
    first = (before.split() or [""])[-1]
    if not word[:1].islower() or "-" in first or first.lower() in _PREFIXES or len(first) == 1:
        return True
    return any(each in compounds for each in _COMPOUND.findall(f"{first}-{word}"))


def _is_spread(text: Any, first: int, last: int) -> bool:
    try:
        boxes = [text.get_charbox(index, loose=True) for index in range(first, last + 1)]
    except Exception:  # position unknown
        return False
    inked = [box for box in boxes if box[2] > box[0]]
    gap = max((after[0] - before[2] for before, after in pairwise(inked)), default=0.0)
    return bool(inked) and gap > _WIDE_GAP * (inked[0][3] - inked[0][1])


def _is_bold(text: Any, index: int) -> bool:
    import pypdfium2.raw as pdfium

    name = ctypes.create_string_buffer(200)
    try:
        if pdfium.FPDFText_GetFontWeight(text.raw, index) >= _BOLD:
            return True
        pdfium.FPDFText_GetFontInfo(text.raw, index, name, len(name), ctypes.c_int())
    except Exception:  # font unknown
        return False
    return _BOLD_NAME.search(name.value.decode("utf-8", "replace")) is not None


def _key(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).casefold()


def _find(lines: list[Line], key: str, used: set[int]) -> range | None:
    """Find the lines of a printed heading; numbering may differ."""
    keys = [_key(line.text) for line in lines]
    bare = key.lstrip("0123456789")
    for number, width in product(range(len(keys)), (1, 2, 3)):
        joined = "".join(keys[number : number + width])
        is_match = joined == key or (bare and joined.lstrip("0123456789") == bare)
        if key and is_match and number not in used and number + width <= len(keys):
            return range(number, number + width)
    return None
