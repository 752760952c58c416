"""The text of the pages of an export: documents, sections, and the home page."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from kbkit.export.links import LinkMap, relative
from kbkit.export.markdown import escape, plain, prepare
from kbkit.export.sections import Section
from kbkit.models import Document, DocumentState, KnowledgeBaseInfo

PAGE_SIZE = 500
"""Most documents that one page lists."""
HOME_SIZE = 50
"""Most documents that the home page lists."""

HOME = "index.md"

_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


@dataclass(frozen=True, slots=True)
class Outline:
    """How the pages of an export hang together.

    Attributes:
        title: Title of the knowledge base's part of the site.
        paths: Path of the page of each document's URI.
        titles: Title of each document's URI.
        root: All sections.
        section_paths: Path of the first page of each section, by its folders.
        above: Sections above each document's page, outermost first, by its URI.
    """

    title: str
    paths: Mapping[str, str]
    titles: Mapping[str, str]
    root: Section
    section_paths: Mapping[tuple[str, ...], str]
    above: Mapping[str, tuple[Section, ...]]


def document_page(document: Document, outline: Outline, links: LinkMap) -> str:
    """The page of one document."""
    path = outline.paths[document.uri]
    title = plain(document.title) or plain(document.uri)
    body = prepare(
        document.content,
        title=title,
        rewrite=lambda href: links.resolve(href, base=document.uri, path=path),
    )
    day = document.fetched_at.date().isoformat()
    meta: dict[str, Any] = {
        # MkDocs puts titles into its pages as they are: they are HTML
        "title": html.escape(title, quote=False),
        "source": document.uri,
        "document_type": document.document_type.value,
        "fetched": day,
    }
    if document.tags:
        meta["tags"] = [html.escape(plain(tag), quote=False) for tag in document.tags]
    facts = [_source(document.uri), document.document_type.value, f"fetched {day}"]
    if document.state is not DocumentState.CURRENT:
        meta["state"] = document.state.value
        facts.append("could not be fetched since")
    facts += [f"#{tag}" for tag in map(plain, document.tags)]
    way = _way(outline, outline.above[document.uri], path)
    line = " · ".join([facts[0], *map(escape, facts[1:])])
    anchor = f" {{#{body.anchor}}}" if body.anchor else ""
    return f"{_front_matter(meta)}\n# {escape(title)}{anchor}\n\n{way}  \n{line}\n\n{body.text}\n"


def listing_pages(
    outline: Outline, section: Section, above: Sequence[Section], path: str
) -> dict[str, str]:
    """The pages of one section: what it is divided into, and its documents.

    Returns:
        The Markdown of each page by its path; the first is ``path``.
    """
    pages: dict[str, str] = {}
    documents = section.documents
    count = max(1, -(-len(documents) // PAGE_SIZE))
    label = section_title(outline, section)
    for number in range(count):
        here = numbered(path, number)
        lines = [f"# {escape(label)}", "", f"{_way(outline, above, here)}", ""]
        if number == 0:
            lines += [f"{_count(section.size)}", "", *_section_list(outline, section, here)]
        if count > 1:
            lines += [_pager(path, number, count, here), ""]
        batch = documents[number * PAGE_SIZE : (number + 1) * PAGE_SIZE]
        lines += _document_list(outline, batch, here)
        meta = {"title": html.escape(label, quote=False), "search": {"exclude": True}}
        pages[here] = "\n".join([_front_matter(meta), *lines, ""])
    return pages


def home_page(info: KnowledgeBaseInfo, outline: Outline) -> dict[str, str]:
    """The home page, and more pages where the knowledge base lists many documents at its top.

    Returns:
        The Markdown of each page by its path; the first is `HOME`.
    """
    root = outline.root
    more: dict[str, str] = {}
    lines = [f"# {escape(outline.title)}", ""]
    if info.description:
        lines += [escape(info.description), ""]
    lines += _figures(info, outline)
    if root.sections:
        lines += ["## Sections", "", *_section_list(outline, root, HOME)]
    if len(root.documents) > HOME_SIZE:
        path = outline.section_paths[root.folders]
        more = listing_pages(outline, Section(root.folders, "", root.documents), (), path)
        link = relative(path, HOME)
        lines += ["## Documents", "", f"[{_count(len(root.documents))}]({link})", ""]
    elif root.documents:
        lines += ["## Documents", "", *_document_list(outline, root.documents, HOME)]
    meta = {"title": html.escape(outline.title, quote=False)}
    return {HOME: "\n".join([_front_matter(meta), *lines, ""]), **more}


def numbered(path: str, number: int) -> str:
    """Path of a further page of a list; the first (0) is the path itself."""
    return path if number == 0 else f"{path.removesuffix('.md')}-page-{number + 1}.md"


def section_title(outline: Outline, section: Section) -> str:
    """What a section is called on its page."""
    return plain(section.label) or f"{outline.title}: documents"


def _figures(info: KnowledgeBaseInfo, outline: Outline) -> list[str]:
    shown = len(outline.paths)
    sections = len(outline.section_paths) - 1
    rows = [
        ("Documents", f"{shown:,}"),
        ("Chunks", f"{info.chunks:,}"),
        ("Sections", f"{sections:,}"),
        ("Types", _counts(info.document_types)),
        ("Sources", ", ".join(info.source_types)),
        ("States", _counts(info.states)),
        ("Updated", info.updated_at.date().isoformat()),
    ]
    table = [f"| {name} | {escape(value) or '-'} |" for name, value in rows]
    return [table[0], "| --- | --- |", *table[1:], ""]


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items()) if count)


def _count(number: int) -> str:
    return "1 document" if number == 1 else f"{number:,} documents"


def _section_list(outline: Outline, section: Section, here: str) -> list[str]:
    lines = [
        f"- [{escape(inner.label)}]({relative(outline.section_paths[inner.folders], here)}) "
        f"({_count(inner.size)})"
        for inner in section.sections
    ]
    return [*lines, ""] if lines else []


def _document_list(outline: Outline, uris: Sequence[str], here: str) -> list[str]:
    lines = [
        f"- [{escape(outline.titles[uri])}]({relative(outline.paths[uri], here)})" for uri in uris
    ]
    return [*lines, ""] if lines else []


def _pager(path: str, number: int, count: int, here: str) -> str:
    links = [
        str(page + 1) if page == number else f"[{page + 1}]({relative(numbered(path, page), here)})"
        for page in range(count)
    ]
    return "Page " + " ".join(links)


def _way(outline: Outline, above: Sequence[Section], here: str) -> str:
    """Links to what lies above a page, outermost first."""
    steps = [f"[{escape(outline.title)}]({relative(HOME, here)})"]
    steps += [
        f"[{escape(section.label)}]({relative(outline.section_paths[section.folders], here)})"
        for section in above
        if section.label
    ]
    return " › ".join(steps)


def _source(uri: str) -> str:
    """The source as a link where it has an address."""
    if not uri.startswith(("http://", "https://")):
        return escape(uri)
    target = LinkMap({}).resolve(uri, base=uri, path="")
    return f"[{escape(uri)}]({target})" if target else escape(uri)


def _front_matter(values: Mapping[str, Any]) -> str:
    # allow_unicode=False escapes what might end the block or upset another YAML reader
    text = yaml.dump(dict(values), Dumper=_DUMPER, sort_keys=False, width=10_000)
    return f"---\n{text}---\n"
