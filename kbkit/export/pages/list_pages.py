"""Lists of documents: sections, types and tags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kbkit.export.pages.elements import unsearched_page
from kbkit.export.pages.outline import BROWSE, SiteOutline
from kbkit.export.pages.paths import relative
from kbkit.export.pages.sections import TreeSection
from kbkit.models.values import plain, pluralize
from kbkit.text.markdown.sanitizing import escape

PAGE_SIZE = 500
"""Maximum documents of a list page."""
DESCRIPTION_LENGTH = 140
"""Maximum characters of a description in a list."""


def list_pages(outline: SiteOutline) -> dict[str, str]:
    files: dict[str, str] = {}
    for above, section in outline.root.walk():
        if path := outline.section_paths.get(section.key):
            files |= section_pages(outline, section, above, path)
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
    outline: SiteOutline, section: TreeSection, above: Sequence[TreeSection], path: str
) -> dict[str, str]:
    label = plain(section.label) or f"{outline.title}: documents"
    uris = [section.page, *section.documents] if section.page else section.documents
    parts = [section_line(outline, part, path) for part in section.sections]
    head = [pluralize(section.size), "", *parts, *([""] if parts else [])]
    return _listing(outline, label, uris, path, above=above, head=head)


def _listing(
    outline: SiteOutline,
    label: str,
    uris: Sequence[str],
    path: str,
    *,
    above: Sequence[TreeSection] = (),
    head: Sequence[str] = (),
) -> dict[str, str]:
    pages: dict[str, str] = {}
    number_of_pages = max(1, -(-len(uris) // PAGE_SIZE))
    for number in range(number_of_pages):
        here = numbered(path, number)
        lines = [] if number else [*(head or (pluralize(len(uris)), ""))]
        if number_of_pages > 1:
            lines += [_pager(path, number, number_of_pages, here), ""]
        lines += document_list(outline, uris[number * PAGE_SIZE : (number + 1) * PAGE_SIZE], here)
        pages[here] = unsearched_page(outline, here, label, lines, above=above)
    return pages


def numbered(path: str, number: int) -> str:
    return path if number == 0 else f"{path.removesuffix('.md')}-page-{number + 1}.md"


def _browse_page(outline: SiteOutline) -> str:
    entries = outline.entries.values()
    types = Counter(entry.document_type for entry in entries)
    tags = Counter(tag for entry in entries for tag in entry.tags)
    lines = ["## Types", ""]
    lines += [
        f"- [{escape(kind.replace('_', ' '))}]({path}) ({pluralize(types[kind])})"
        for kind, path in outline.type_paths.items()
    ]
    if outline.tag_paths:
        lines += ["", "## Tags", ""]
        lines += [
            f"- [{escape(tag)}]({relative(path, BROWSE)}) ({pluralize(tags[tag])})"
            for tag, path in outline.tag_paths.items()
        ]
    if len(tags) > len(outline.tag_paths):
        lines += ["", f"{len(tags) - len(outline.tag_paths):,} rarer tags have no page."]
    return unsearched_page(outline, BROWSE, "By type and tag", lines)


def section_line(outline: SiteOutline, section: TreeSection, here: str) -> str:
    link = relative(outline.page_of(section), here)
    line = f"- [{escape(section.label)}]({link}) ({pluralize(section.size)})"
    about = about_line(outline, section.page) if section.page else ""
    return f"{line}: {about}" if about else line


def document_list(outline: SiteOutline, uris: Sequence[str], here: str) -> list[str]:
    lines = [document_line(outline, uri, here) for uri in uris]
    return [*lines, ""] if lines else []


def document_line(outline: SiteOutline, uri: str, here: str) -> str:
    entry = outline.entries[uri]
    line = f"- [{escape(entry.label)}]({relative(outline.paths[uri], here)})"
    about = about_line(outline, uri)
    return f"{line}: {about}" if about else line


def about_line(outline: SiteOutline, uri: str) -> str:
    about = outline.entries[uri].description
    if len(about) > DESCRIPTION_LENGTH:
        cut = about[:DESCRIPTION_LENGTH]
        about = (cut.rpartition(" ")[0] or cut).rstrip(",;:.") + " …"
    return escape(about)


def _pager(path: str, number: int, pages: int, here: str) -> str:
    links = [
        str(page + 1) if page == number else f"[{page + 1}]({relative(numbered(path, page), here)})"
        for page in range(pages)
    ]
    return "Page " + " ".join(links)
