"""The page that tells where a knowledge base comes from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kbkit.export.facts import SourceFacts
from kbkit.export.pages.elements import (
    address_link,
    breadcrumbs,
    front_matter,
    license_link,
)
from kbkit.export.pages.outline import ABOUT, Outline
from kbkit.markdown.disarming import escape
from kbkit.models import KnowledgeBaseInfo, License
from kbkit.models.plain import pluralize

DOCUMENTS = "documents.json"
FULL_TEXT = "llms-full.txt"
LICENSES = 100
"""Most licenses, with whom to credit, that the page tells one by one."""

_KINDS = {
    "words": "words",
    "code": "code blocks",
    "headings": "headings",
    "anchors": "anchors of headings",
    "terms": "terms that are explained",
    "rows": "table rows",
    "links": "links",
}


def about_page(info: KnowledgeBaseInfo, outline: Outline) -> str:
    """Sources, licenses as documents state them, days, fidelity, embedder."""
    found = outline.entries.values()
    days = sorted(entry.day for entry in found)
    lines = [breadcrumbs(outline, (), ABOUT), "", "# Where this comes from", ""]
    lines += [
        "The pages of this part of the site were made by kbkit from the sources below, and belong "
        "to their authors. Each page tells at its foot the place it was read from and the license "
        "that is stated there, which holds here too.",
        "",
        "## Sources",
        "",
    ]
    if outline.facts.sources:
        lines += ["| Source | Place | Last read |", "| --- | --- | --- |"]
        lines += [_source_row(source) for source in outline.facts.sources]
    else:
        lines += ["Documents were added one by one."]
    lines += ["", "## Licenses", "", *_licenses([entry.license for entry in found])]
    lines += ["", "## Days", ""]
    if days:
        stale = sum(entry.stale for entry in found)
        lines += [
            f"Fetched on {days[0]}."
            if days[0] == days[-1]
            else f"Fetched from {days[0]} to {days[-1]}.",
            f"{pluralize(stale)} could not be fetched again since; their pages say so."
            if stale
            else "All could be fetched when they were last asked for.",
            "A page tells the day from which on its text is what it is; "
            f"[{DOCUMENTS}]({DOCUMENTS}) has the day of each one's last fetch.",
            "",
        ]
    lines += ["## How faithful the text is", "", *_fidelity(outline.facts.sources), ""]
    lines += [
        "## How it is searched",
        "",
        f"{pluralize(info.chunks, 'chunk')} of {pluralize(len(found))}, embedded by "
        f"{escape(info.embedder)} ({info.dimensions:,} dimensions).",
        "",
        "## For programs",
        "",
        f"[{DOCUMENTS}]({DOCUMENTS}) lists all documents; [{FULL_TEXT}]({FULL_TEXT}) has their "
        "text for language models.",
    ]
    meta = {"title": "Where this comes from", "search": {"exclude": True}}
    return "\n".join([front_matter(meta), *lines, ""])


def _source_row(source: SourceFacts) -> str:
    return f"| {escape(source.type)} | {address_link(source.place)} | {source.day or '-'} |"


def _licenses(stated: Sequence[License]) -> list[str]:
    """Which licenses are stated, whom to credit, and by how many documents."""
    counts = Counter(stated).most_common()
    rows = [
        f"| {license_link(license) if license else 'none stated'} "
        f"| {escape(license.attribution) or '-'} | {number:,} |"
        for license, number in counts[:LICENSES]
    ]
    lines = ["| License | Credit | Documents |", "| --- | --- | --- |", *rows]
    if left := sum(number for _, number in counts[LICENSES:]):
        lines += ["", f"{pluralize(left)} state others; [{DOCUMENTS}]({DOCUMENTS}) has them."]
    if not all(stated):
        lines += ["", "Where none is stated, assume that all rights are reserved."]
    return lines if rows else ["There are no documents."]


def _fidelity(sources: Sequence[SourceFacts]) -> list[str]:
    """What the measured pages kept, all sources together."""
    kept: dict[str, int] = {}
    wanted: dict[str, int] = {}
    for source in sources:
        for kind, (one, other) in source.fidelity.items():
            kept[kind] = kept.get(kind, 0) + one
            wanted[kind] = wanted.get(kind, 0) + other
    rows = [
        f"| {label} | {kept[kind]:,} of {wanted[kind]:,} | {kept[kind] / wanted[kind]:.1%} |"
        for kind, label in _KINDS.items()
        if wanted.get(kind)
    ]
    if not rows:
        return ["It was not measured: these sources are no web pages."]
    pages = pluralize(wanted.get("pages", 0), "page")
    head = f"What the text here keeps of what was read, measured on {pages}."
    return [head, "", "| What | Kept | Share |", "| --- | --- | --- |", *rows]
