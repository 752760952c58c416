"""Pages of documents, of figures and of origins, and elements that all pages share."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from functools import cache, lru_cache, partial
from itertools import cycle, pairwise
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import yaml

from kbkit.export.facts import ASSET_FILES, RelatedPassage
from kbkit.export.pages.outline import ABOUT, FIGURES, HOME, OutlineEntry, SiteOutline
from kbkit.export.pages.paths import LinkMap, in_page, relative
from kbkit.export.pages.sections import TreeSection
from kbkit.models import Document, KnowledgeBaseInfo, License, telling_types
from kbkit.models.values import plain, pluralize
from kbkit.text.markdown.rendering import NEXT, PREVIOUS
from kbkit.text.markdown.sanitizing import escape, prepare
from kbkit.text.markdown.structure import RELATIVE

if TYPE_CHECKING:
    from jinja2 import Environment

IMAGES = "images"


def document_page(
    document: Document, entry: OutlineEntry, outline: SiteOutline, links: LinkMap, dead: list[str]
) -> str:
    """Write a document's page; relative links without a target stay, and are added to ``dead``."""
    images, path = document.images, outline.paths[entry.uri]

    def rewrite(href: str) -> str | None:
        if name := images.get(href):
            return relative(f"{IMAGES}/{name}", path)
        target = links.resolve(href, base=document.uri, path=path)
        if target is None and RELATIVE.fullmatch(href):
            dead.append(href)
            return href
        return target

    body = prepare(document.content, title=entry.title, rewrite=rewrite)
    passages = outline.facts.related.get(entry.id, ())
    related = (_related_item(passage, outline, path) for passage in passages)
    text = fill_template(
        "document.md.j2",
        front_matter=front_matter(_meta(entry, outline)),
        breadcrumbs=breadcrumbs(outline, outline.ancestors[entry.uri], path),
        entry=entry,
        outline=outline,
        body=body,
        rating=outline.facts.ratings.get(entry.id),
        download=outline.facts.downloads.get(entry.id),
        related=[line for line in related if line],
        steps=zip((PREVIOUS, NEXT), outline.neighbours[entry.uri], strict=True),
        link=partial(relative, path=path),
        stars=stars,
        address_link=address_link,
        license_link=license_link,
    )
    return f"{text}\n"


def _meta(entry: OutlineEntry, outline: SiteOutline) -> dict[str, Any]:
    rating = outline.facts.ratings.get(entry.id)
    meta = {
        "title": html_title(entry.title),
        "source": entry.uri,
        "document_type": entry.document_type,
        "since": entry.revision.day,
        "tags": [html_title(tag) for tag in entry.tags],
        "about": [html_title(name) for name in outline.facts.subjects.get(entry.id, ())],
        "state": "stale" if entry.stale else "",
        "rating": rating and round(rating[0], 2),
    }
    return {name: value for name, value in meta.items() if value}


def _related_item(related: RelatedPassage, outline: SiteOutline, path: str) -> str:
    if related.uri not in outline.paths:
        return ""
    href = relative(outline.paths[related.uri], path)
    href += f"?passage={quote(related.passage, safe='')}" if related.passage else ""
    href += in_page(related.anchor) if related.anchor else ""
    label = outline.entries[related.uri].label
    if plain(related.heading):
        label += f" › {plain(related.heading)}"
    return f"- [{escape(label)}]({href})"


_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_WIDTH = 1_000_000
"""Prevents line breaks in YAML."""


def html_title(text: str) -> str:
    # plugins that render the front matter would read braces as templates
    return html.escape(plain(text), quote=False).replace("{", "&#123;").replace("}", "&#125;")


def front_matter(values: Mapping[str, Any]) -> str:
    text = yaml.dump(dict(values), Dumper=_DUMPER, sort_keys=False, width=_WIDTH)
    return f"---\n{text}---\n"


def stars(average: float) -> str:
    full = int(average + 0.5)
    return "★" * full + "☆" * (5 - full)


def breadcrumbs(outline: SiteOutline, above: Sequence[TreeSection], here: str) -> str:
    steps = [f"[{escape(outline.title)}]({relative(HOME, here)})"]
    steps += [
        f"[{escape(section.label)}]({relative(outline.page_of(section), here)})"
        for section in above
        if section.label
    ]
    return " › ".join(steps)


@cache
def templates() -> Environment:
    from jinja2 import Environment, FileSystemLoader, select_autoescape  # slow to import

    environment = Environment(
        loader=FileSystemLoader(ASSET_FILES),
        # `md` escapes in Markdown
        autoescape=select_autoescape(["svg.j2", "html.j2"], default=False),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"md": escape, "number": "{:,}".format, "pluralize": pluralize}
    environment.filters["label"] = label_of
    return environment


def label_of(text: str) -> str:
    """Return plain text for a link in ``llms.txt``."""
    return plain(text).replace("[", "(").replace("]", ")")


def fill_template(template: str, **values: Any) -> str:
    """Return a template of ``assets`` with values, without its last line end."""
    return templates().get_template(template).render(values).removesuffix("\n")


def unsearched_page(
    outline: SiteOutline,
    here: str,
    title: str,
    lines: Sequence[str],
    *,
    above: Sequence[TreeSection] = (),
    meta: Mapping[str, Any] | None = None,
) -> str:
    """Return a page that searches exclude, since it lists others."""
    head = {"title": html_title(title), "search": {"exclude": True}, **(meta or {})}
    top = [front_matter(head), breadcrumbs(outline, above, here), "", f"# {escape(title)}", ""]
    return "\n".join([*top, *lines, ""])


def license_link(license: License) -> str:
    return address_link(license.link, license.label) if license.link else escape(license.label)


@lru_cache(maxsize=64)
def address_link(address: str, label: str = "") -> str:
    """Return a link to a web address, or plain text for other addresses."""
    text = escape(label or address)
    if not address.startswith(("http://", "https://")):
        return text
    target = LinkMap({}).resolve(address, base=address, path="")
    return f"[{text}]({target})" if target else text


COLOURS = ("#1b9e77", "#66a61e", "#c8b400", "#e69100", "#d95f02", "#a0522d")
"""From green to brown, visible on white and on black."""

_LONGEST_BAR = 44  # per cent of the width; labels and numbers need the rest, on a phone too
_ROW = 24
_TOP = 50
_LEGEND = 44


def bar_chart(
    title: str, unit: str, rows: Sequence[tuple[str, Mapping[str, int]]], names: Sequence[str]
) -> str:
    """Return horizontal bars as SVG, each with a label and parts in the order of `names`."""
    sums = [sum(parts.values()) for _, parts in rows]
    scale = _LONGEST_BAR / (max(sums, default=0) or 1)
    colours = dict(zip(names, cycle(COLOURS), strict=False))
    bars = []
    for (label, parts), total in zip(rows, sums, strict=True):
        bar, x = [], 0.0
        for part, colour in colours.items():
            if count := parts.get(part, 0):
                bar.append((part, count, x, count * scale, colour))
                x += count * scale
        bars.append((label, bar, total, x))
    top = _TOP + (_LEGEND if len(names) > 1 else 0)
    chart = fill_template(
        "chart.svg.j2",
        title=title,
        unit=unit,
        total=sum(sums),
        legend=list(colours.items()) if len(names) > 1 else [],
        rows=bars,
        top=top,
        height=top + _ROW * len(rows) + 6,
        row=_ROW,
    )
    return f"{chart}\n"


PLOTS = "plots"

_AGES = (("up to a week", 7), ("a month", 30), ("a quarter", 90), ("a year", 365))
_OLDER = "longer"
_LENGTHS = (250, 500, 1000, 2000, 4000)


def charts(outline: SiteOutline) -> dict[str, str]:
    files: dict[str, str] = {}
    entries = outline.entries.values()
    if entries:
        newest = date.fromisoformat(max(entry.day for entry in entries))
        rows: dict[str, Counter[str]] = {}
        for entry in entries:
            age = (newest - date.fromisoformat(entry.day)).days
            part = next((name for name, limit in _AGES if age < limit), _OLDER)
            rows.setdefault(entry.document_type, Counter())[part] += 1
        ranked = sorted(rows.items(), key=lambda row: (-row[1].total(), row[0]))
        bars = [(kind.replace("_", " "), parts) for kind, parts in ranked]
        unit = f"documents, fetched this long before {newest}"
        names = [*(name for name, _ in _AGES), _OLDER]
        chart = bar_chart("Documents by type", unit, bars, names)
        files[f"{PLOTS}/documents-by-type.svg"] = chart
    if outline.facts.lengths:
        files[f"{PLOTS}/lengths-of-chunks.svg"] = _length_chart(outline.facts.lengths)
    if outline.facts.scores:
        stars = [
            (f"{score} of 5", {"ratings": outline.facts.scores.get(score, 0)})
            for score in range(5, 0, -1)
        ]
        files[f"{PLOTS}/ratings.svg"] = bar_chart("Ratings", "ratings", stars, ["ratings"])
    return files


def _length_chart(lengths: Sequence[int]) -> str:
    names = [
        f"below {_LENGTHS[0]:,}",
        *(f"{least:,} to {most - 1:,}" for least, most in pairwise(_LENGTHS)),
        f"{_LENGTHS[-1]:,} and more",
    ]
    counts = Counter(sum(length >= least for least in _LENGTHS) for length in lengths)
    rows = [(name, {"chunks": counts[number]}) for number, name in enumerate(names)]
    return bar_chart("Lengths of chunks in characters", "chunks", rows, ["chunks"])


def figures_page(info: KnowledgeBaseInfo, outline: SiteOutline, pictures: Sequence[str]) -> str:
    counts = Counter(entry.document_type for entry in outline.entries.values())
    text = fill_template(
        "figures.md.j2",
        info=info,
        outline=outline,
        **_totals(outline),
        types=[
            (counts[kind], kind.replace("_", " "), relative(outline.type_paths[kind], FIGURES))
            for kind in telling_types(counts)
        ],
        pictures=[
            (PurePosixPath(path).stem.replace("-", " ").capitalize(), path) for path in pictures
        ],
    )
    return unsearched_page(outline, FIGURES, "Figures", [text])


def _totals(outline: SiteOutline) -> dict[str, Any]:
    entries = outline.entries.values()
    days, stale = sorted(entry.day for entry in entries), sum(entry.stale for entry in entries)
    return {"count": len(entries), "days": days, "stale": stale}


DOCUMENTS = "documents.json"
FULL_TEXT = "llms-full.txt"
LICENSES = 100
"""Maximum number of listed licenses."""

_KINDS = {
    "words": "words",
    "code": "code blocks",
    "headings": "headings",
    "anchors": "anchors of headings",
    "terms": "terms that are explained",
    "rows": "table rows",
    "links": "links",
}


def about_page(info: KnowledgeBaseInfo, outline: SiteOutline) -> str:
    licenses = Counter(entry.license for entry in outline.entries.values()).most_common()
    retained: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for source in outline.facts.sources:
        for kind, (retained_count, total_count) in source.fidelity.items():
            retained[kind] += retained_count
            total[kind] += total_count
    text = fill_template(
        "about.md.j2",
        address_link=address_link,
        license_link=license_link,
        sources=outline.facts.sources,
        licenses=licenses[:LICENSES],
        others=sum(number for _, number in licenses[LICENSES:]),
        unstated=not all(license for license, _ in licenses),
        **_totals(outline),
        fidelity=[
            (label, retained[kind], total[kind]) for kind, label in _KINDS.items() if total[kind]
        ],
        pages=total["pages"],
        info=info,
        documents_json=DOCUMENTS,
        full_text=FULL_TEXT,
    )
    return unsearched_page(outline, ABOUT, "Where this comes from", [text])
