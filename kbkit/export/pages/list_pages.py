"""Pages that list documents: the home page, sections, types and tags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from itertools import pairwise

from kbkit.export.pages.bar_chart import Bars
from kbkit.export.pages.document_page import as_title, count, front_matter, way_to
from kbkit.export.pages.links import relative
from kbkit.export.pages.outline import ABOUT, BROWSE, HOME, Outline
from kbkit.export.pages.revisions import latest
from kbkit.export.pages.sections import Section
from kbkit.markdown.disarming import escape
from kbkit.models import KnowledgeBaseInfo
from kbkit.models.plain import plain

PAGE_SIZE = 500
"""Most documents that one page lists."""
HOME_SIZE = 50
"""Most documents that the home page lists."""
INNER_SECTIONS = 40
"""Most sections within sections that the home page names."""
CHANGES = 10
"""Most changes that the home page names."""
PLOTS = "plots"
"""Folder of the plots."""

_AGES = (("up to a week", 7), ("a month", 30), ("a quarter", 90), ("a year", 365))
_OLDER = "longer"
_LENGTHS = (250, 500, 1000, 2000, 4000)


def list_pages(info: KnowledgeBaseInfo, outline: Outline) -> dict[str, str]:
    """The home page, its plots, and the pages of all sections, types and tags.

    Returns:
        The text of each file by its path.
    """
    files = plots(outline)
    files |= home_page(info, outline, sorted(files))
    for above, section in outline.root.walk():
        files |= section_pages(outline, section, above, outline.section_paths[section.folders])
    files[BROWSE] = _browse_page(outline)
    for kind, path in outline.type_paths.items():
        label = f"Type: {kind.replace('_', ' ')}"
        uris = [uri for uri, entry in outline.entries.items() if entry.document_type == kind]
        files |= _listing(outline, label, uris, path)
    tagged: dict[str, list[str]] = {tag: [] for tag in outline.tag_paths}
    for uri, entry in outline.entries.items():
        for tag in entry.tags:
            if tag in tagged:
                tagged[tag].append(uri)
    for tag, uris in tagged.items():
        files |= _listing(outline, f"Tag: {tag}", uris, outline.tag_paths[tag])
    return files


def section_pages(
    outline: Outline, section: Section, above: Sequence[Section], path: str
) -> dict[str, str]:
    """The pages of one section: what it is divided into, and its documents.

    Returns:
        The Markdown of each page by its path; the first is ``path``.
    """
    label = section_title(outline, section)
    head = [count(section.size), "", *_section_list(outline, section, path)]
    return _listing(outline, label, section.documents, path, above=above, head=head)


def _listing(
    outline: Outline,
    label: str,
    uris: Sequence[str],
    path: str,
    *,
    above: Sequence[Section] = (),
    head: Sequence[str] = (),
) -> dict[str, str]:
    """Pages of one list of documents, `PAGE_SIZE` on each."""
    pages: dict[str, str] = {}
    number_of_pages = max(1, -(-len(uris) // PAGE_SIZE))
    meta = {"title": as_title(label), "search": {"exclude": True}}
    for number in range(number_of_pages):
        here = numbered(path, number)
        lines = [f"# {escape(label)}", "", way_to(outline, above, here), ""]
        if number == 0:
            lines += head or [count(len(uris)), ""]
        if number_of_pages > 1:
            lines += [_pager(path, number, number_of_pages, here), ""]
        lines += _document_list(outline, uris[number * PAGE_SIZE : (number + 1) * PAGE_SIZE], here)
        pages[here] = "\n".join([front_matter(meta), *lines, ""])
    return pages


def home_page(
    info: KnowledgeBaseInfo, outline: Outline, pictures: Sequence[str] = ()
) -> dict[str, str]:
    """The home page, and more pages where the knowledge base lists many documents at its top.

    Returns:
        The Markdown of each page by its path; the first is `HOME`.
    """
    root = outline.root
    more: dict[str, str] = {}
    lines = [f"# {escape(outline.title)}", ""]
    if info.description:
        lines += [escape(info.description), ""]
    lines += [*_figures(info, outline), *_changes(outline)]
    if root.sections:
        inner = sum(len(section.sections) for section in root.sections) <= INNER_SECTIONS
        lines += ["## Sections", "", *_section_list(outline, root, HOME, inner=inner)]
    if len(root.documents) > HOME_SIZE:
        path = outline.section_paths[root.folders]
        more = section_pages(outline, Section(root.folders, "", root.documents), (), path)
        link = relative(path, HOME)
        lines += ["## Documents", "", f"[{count(len(root.documents))}]({link})", ""]
    elif root.documents:
        lines += ["## Documents", "", *_document_list(outline, root.documents, HOME)]
    if pictures:
        lines += ["## In pictures", ""]
        for path in pictures:
            label = path.removeprefix(f"{PLOTS}/").removesuffix(".svg").replace("-", " ")
            lines += [f"![{escape(label.capitalize())}]({path})", ""]
    meta = {"title": as_title(outline.title)}
    return {HOME: "\n".join([front_matter(meta), *lines, ""]), **more}


def numbered(path: str, number: int) -> str:
    """Path of a further page of a list; the first (0) is the path itself."""
    return path if number == 0 else f"{path.removesuffix('.md')}-page-{number + 1}.md"


def section_title(outline: Outline, section: Section) -> str:
    """What a section is called on its page."""
    return plain(section.label) or f"{outline.title}: documents"


def _figures(info: KnowledgeBaseInfo, outline: Outline) -> list[str]:
    found = outline.entries.values()
    days = sorted(entry.day for entry in found)
    types = Counter(entry.document_type for entry in found)
    stale = sum(entry.stale for entry in found)
    rows = [
        ("Documents", f"[{len(found):,}]({BROWSE})"),
        ("Chunks", f"{info.chunks:,}"),
        ("Sections", f"{len(outline.section_paths) - 1:,}"),
        ("Types", _types(outline, types, HOME)),
        ("Sources", f"[{escape(', '.join(info.source_types)) or 'none'}]({ABOUT})"),
    ]
    if stale:
        rows.append(("Not reached lately", count(stale)))
    if outline.facts.ratings:
        averages = [average for average, _ in outline.facts.ratings.values()]
        rated = f"{count(len(averages))}, {sum(averages) / len(averages):.1f} of 5 on average"
        rows.append(("Rated", rated))
    if days:
        rows.append(("Fetched", days[-1] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"))
    table = [f"| {name} | {value or '-'} |" for name, value in rows]
    return [table[0], "| --- | --- |", *table[1:], ""]


def _types(outline: Outline, types: Mapping[str, int], here: str) -> str:
    return ", ".join(
        f"{number:,} [{escape(kind.replace('_', ' '))}]({relative(outline.type_paths[kind], here)})"
        for kind, number in sorted(types.items())
    )


def _changes(outline: Outline) -> list[str]:
    """What came and changed since the first export."""
    lines = [
        f"- [{escape(outline.entries[uri].title)}]({relative(outline.paths[uri], HOME)}): "
        f"{since.how} {since.day}"
        for uri, since in latest(outline.history(), CHANGES)
    ]
    return ["## Newest changes", "", *lines, ""] if lines else []


def _browse_page(outline: Outline) -> str:
    """All types and tags."""
    found = outline.entries.values()
    types = Counter(entry.document_type for entry in found)
    tags = Counter(tag for entry in found for tag in entry.tags)
    lines = ["# By type and tag", "", way_to(outline, (), BROWSE), "", "## Types", ""]
    lines += [
        f"- [{escape(kind.replace('_', ' '))}]({path}) ({count(types[kind])})"
        for kind, path in outline.type_paths.items()
    ]
    if outline.tag_paths:
        lines += ["", "## Tags", ""]
        lines += [
            f"- [{escape(tag)}]({relative(path, BROWSE)}) ({count(tags[tag])})"
            for tag, path in outline.tag_paths.items()
        ]
    if len(tags) > len(outline.tag_paths):
        lines += ["", f"{len(tags) - len(outline.tag_paths):,} rarer tags have no page."]
    meta = {"title": "By type and tag", "search": {"exclude": True}}
    return "\n".join([front_matter(meta), *lines, ""])


def plots(outline: Outline) -> dict[str, str]:
    """What the knowledge base holds, as pictures: the SVG of each by its path."""
    files: dict[str, str] = {}
    found = outline.entries.values()
    if found:
        newest = date.fromisoformat(max(entry.day for entry in found))
        rows: dict[str, Counter[str]] = {}
        for entry in found:
            age = (newest - date.fromisoformat(entry.day)).days
            part = next((name for name, most in _AGES if age < most), _OLDER)
            rows.setdefault(entry.document_type, Counter())[part] += 1
        ranked = sorted(rows.items(), key=lambda row: (-row[1].total(), row[0]))
        bars = [(kind.replace("_", " "), parts) for kind, parts in ranked]
        title = f"Documents by type, and how long before {newest} they were fetched"
        names = [*(name for name, _ in _AGES), _OLDER]
        files[f"{PLOTS}/documents-by-type.svg"] = Bars(title, "documents", bars, names).svg()
    if outline.facts.lengths:
        files[f"{PLOTS}/lengths-of-chunks.svg"] = _length_bars(outline.facts.lengths).svg()
    if outline.facts.scores:
        stars = [
            (f"{score} of 5", {"ratings": outline.facts.scores.get(score, 0)})
            for score in range(5, 0, -1)
        ]
        files[f"{PLOTS}/ratings.svg"] = Bars("Ratings", "ratings", stars, ["ratings"]).svg()
    return files


def _length_bars(lengths: Sequence[int]) -> Bars:
    names = [
        f"below {_LENGTHS[0]:,}",
        *(f"{least:,} to {most - 1:,}" for least, most in pairwise(_LENGTHS)),
        f"{_LENGTHS[-1]:,} and more",
    ]
    counts = Counter(sum(length >= least for least in _LENGTHS) for length in lengths)
    rows = [(name, {"chunks": counts[number]}) for number, name in enumerate(names)]
    return Bars("Lengths of chunks in characters", "chunks", rows, ["chunks"])


def _section_list(
    outline: Outline, section: Section, here: str, *, inner: bool = False
) -> list[str]:
    """What a section is divided into, with ``inner`` also what that is divided into."""
    lines: list[str] = []
    for part in section.sections:
        lines.append(_section_line(outline, part, here))
        if inner:
            lines += [f"    {_section_line(outline, each, here)}" for each in part.sections]
    return [*lines, ""] if lines else []


def _section_line(outline: Outline, section: Section, here: str) -> str:
    link = relative(outline.section_paths[section.folders], here)
    return f"- [{escape(section.label)}]({link}) ({count(section.size)})"


def _document_list(outline: Outline, uris: Sequence[str], here: str) -> list[str]:
    lines = [
        f"- [{escape(outline.entries[uri].title)}]({relative(outline.paths[uri], here)})"
        for uri in uris
    ]
    return [*lines, ""] if lines else []


def _pager(path: str, number: int, pages: int, here: str) -> str:
    links = [
        str(page + 1) if page == number else f"[{page + 1}]({relative(numbered(path, page), here)})"
        for page in range(pages)
    ]
    return "Page " + " ".join(links)
