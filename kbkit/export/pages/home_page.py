"""The home page of an export: questions, sections, news.

The plugin puts a field to search in between what the knowledge base is and what can be asked.
"""

from __future__ import annotations

from kbkit.export.pages.contents import introduces
from kbkit.export.pages.elements import front_matter, html_title, stars
from kbkit.export.pages.links import relative
from kbkit.export.pages.list_pages import document_line, document_list, section_line, section_pages
from kbkit.export.pages.outline import ABOUT, BROWSE, FIGURES, GRAPH, HOME, Outline
from kbkit.export.pages.revisions import latest_changes
from kbkit.export.pages.sections import Section
from kbkit.markdown.disarming import escape
from kbkit.models import KnowledgeBaseInfo
from kbkit.models.plain import plain, pluralize

QUESTIONS = 8
"""Maximum questions on the home page."""
SECTIONS = 12
"""Maximum sections with documents on the home page; others are names."""
FIRST = 5
"""Documents of a section that the home page names."""
MAX_DOCUMENTS = 40
"""Maximum documents without a section on the home page."""
CHANGES = 10
"""Maximum changes on the home page."""


def home_page(info: KnowledgeBaseInfo, outline: Outline) -> dict[str, str]:
    root = outline.root
    more: dict[str, str] = {}
    lines = [f"# {escape(outline.title)}", ""]
    if about := plain(info.description) or _front_description(outline):
        lines += [escape(about), ""]
    lines += _questions(outline)
    for section in root.sections[:SECTIONS]:
        lines += _section(outline, section)
    if rest := root.sections[SECTIONS:]:
        lines += ["## More sections", "", *(section_line(outline, each, HOME) for each in rest), ""]
    lines += _best(outline)
    if root.documents and not outline.facts.best:
        label = "More documents" if root.sections else "Documents"
        lines += [f"## {label}", "", *document_list(outline, root.documents[:MAX_DOCUMENTS], HOME)]
    if len(root.documents) > MAX_DOCUMENTS:
        path = outline.section_paths[root.key]
        more = section_pages(outline, Section(root.key, items=list(root.documents)), (), path)
        lines += [f"[All {pluralize(len(root.documents))}]({relative(path, HOME)})", ""]
    lines += [*_changes(outline), *_other_sections(outline), *_end(outline)]
    meta = {"title": html_title(outline.title)}
    return {HOME: "\n".join([front_matter(meta), *lines, ""]), **more}


def _front_description(outline: Outline) -> str:
    """Return the description on the source's own front page."""
    first = outline.root.items[:1]
    if first and isinstance(first[0], str) and introduces(first[0]):
        return outline.entries[first[0]].description
    return ""


def _questions(outline: Outline) -> list[str]:
    """Questions with the pages that answer them; questions that no page answers are left out."""
    lines = []
    for example in outline.facts.questions:
        answers = [uri for uri in example.uris if uri in outline.paths]
        if answers and plain(example.question):
            links = ", ".join(
                f"[{escape(outline.entries[uri].title)}]({relative(outline.paths[uri], HOME)})"
                for uri in answers[:2]
            )
            lines.append(f"- {escape(plain(example.question))} → {links}")
    return ["## Questions that it answers", "", *lines[:QUESTIONS], ""] if lines else []


def _section(outline: Outline, section: Section) -> list[str]:
    link = relative(outline.page_of(section), HOME)
    lines = [f"## [{escape(section.label)}]({link})", ""]
    if section.page and (about := outline.entries[section.page].description):
        lines += [escape(about), ""]
    for item in section.items[:FIRST]:
        if isinstance(item, str):
            lines.append(document_line(outline, item, HOME))
        else:
            lines.append(section_line(outline, item, HOME))
    if len(section.items) > FIRST:
        path = relative(outline.section_paths[section.key], HOME)
        lines += ["", f"[All {pluralize(section.size)}]({path})"]
    return [*lines, ""]


def _changes(outline: Outline) -> list[str]:
    """List changes since the first export."""
    lines = [
        f"- [{escape(outline.entries[uri].title)}]({relative(outline.paths[uri], HOME)}): "
        f"{revision.change} {revision.day}"
        for uri, revision in latest_changes(outline.history(), CHANGES)
    ]
    return ["## Newest changes", "", *lines, ""] if lines else []


def _best(outline: Outline) -> list[str]:
    found = [outline.entries[uri] for uri in outline.facts.best if uri in outline.entries]
    rows = []
    for entry in found[:MAX_DOCUMENTS]:
        line = document_list(outline, [entry.uri], HOME)[0]
        average, people = outline.facts.ratings.get(entry.id, (0.0, 0))
        rated = f" {stars(average)} ({people:,})" if people else ""
        rows.append(f"{line}{rated}")
    return ["## The best first", "", *rows, ""] if rows else []


def _other_sections(outline: Outline) -> list[str]:
    """List the site's other sections."""
    return [
        line
        for each in outline.facts.sections
        for line in (f"## [{escape(each.title)}]({each.path})", "", escape(each.about), "")
    ]


def _end(outline: Outline) -> list[str]:
    """List further links."""
    documents = pluralize(len(outline.entries))
    graph = f"[knowledge graph]({GRAPH}) · " if outline.facts.graph is not None else ""
    return [
        "---",
        "",
        f"{documents}: [by type and tag]({BROWSE}) · {graph}[where they come from]({ABOUT}) · "
        f"[figures]({FIGURES})",
        "",
    ]
