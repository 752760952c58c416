"""The page of a document, and what all pages are made with."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import yaml

from kbkit.export.facts import Related
from kbkit.export.pages.links import LinkMap, in_page, relative
from kbkit.export.pages.outline import HOME, Entry, Outline
from kbkit.export.pages.sections import Section
from kbkit.markdown.disarming import escape, prepare
from kbkit.models import Document, License
from kbkit.models.plain import plain

_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


_WIDTH = 1_000_000
"""Characters after which YAML may break a line: never."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What stands around a document on its page.

    Attributes:
        front_matter: The block that MkDocs reads.
        small_print: Where the document comes from.
        onwards: What is near, and what stands before and after.
    """

    front_matter: str
    small_print: str
    onwards: str

    @classmethod
    def of(cls, entry: Entry, outline: Outline, links: LinkMap) -> Frame:
        """Make it."""
        path = outline.paths[entry.uri]
        way = way_to(outline, outline.above[entry.uri], path)
        return cls(
            front_matter(_meta(entry, outline)),
            f"{way}  \n{' · '.join(_facts(entry, outline, path))}",
            _onwards(entry, outline, links, path),
        )


def document_page(document: Document, title: str, frame: Frame, links: LinkMap, path: str) -> str:
    """The page of one document."""
    body = prepare(
        document.content,
        title=title,
        rewrite=lambda href: links.resolve(href, base=document.uri, path=path),
    )
    anchor = f" {{#{body.anchor}}}" if body.anchor else ""
    # The renderer knows the paragraph after the title, and what follows the last rule
    return (
        f"{frame.front_matter}\n# {escape(title)}{anchor}\n\n{frame.small_print}\n\n"
        f"{body.text}\n\n---\n\n{frame.onwards}\n"
    )


def _meta(entry: Entry, outline: Outline) -> dict[str, Any]:
    meta: dict[str, Any] = {
        "title": as_title(entry.title),
        "source": entry.uri,
        "document_type": entry.document_type,
        "since": entry.since.day,
    }
    if entry.tags:
        meta["tags"] = [as_title(tag) for tag in entry.tags]
    if entry.stale:
        meta["state"] = "stale"
    if entry.id in outline.facts.ratings:
        meta["rating"] = round(outline.facts.ratings[entry.id][0], 2)
    return meta


def _facts(entry: Entry, outline: Outline, path: str) -> Iterator[str]:
    """What the small print says, as Markdown."""
    yield _source(entry.uri)
    kind = escape(entry.document_type.replace("_", " "))
    yield f"[{kind}]({relative(outline.type_paths[entry.document_type], path)})"
    yield f"text of {entry.since.day}"
    if entry.stale:
        yield f"**could not be fetched since {entry.day}**"
    if entry.id in outline.facts.ratings:
        average, people = outline.facts.ratings[entry.id]
        yield f"rated {average:.1f} of 5 by {people:,} {'person' if people == 1 else 'people'}"
    for tag in entry.tags:
        label = escape(f"#{tag}")
        page = outline.tag_paths.get(tag)
        yield f"[{label}]({relative(page, path)})" if page else label


def _onwards(entry: Entry, outline: Outline, links: LinkMap, path: str) -> str:
    """What is near in meaning, and what stands before and after in the section."""
    near = [
        line
        for related in outline.facts.related.get(entry.id, ())
        if (line := _related(related, outline, links, path))
    ]
    lines = ["**Related passages**", "", *near, ""] if near else []
    before, after = outline.beside[entry.uri]
    steps = [f"← {_page_link(before, outline, path)}"] if before else []
    steps.append(way_to(outline, outline.above[entry.uri][-1:], path))
    steps += [f"{_page_link(after, outline, path)} →"] if after else []
    return "\n".join([*lines, " · ".join(steps), "", _provenance(entry)])


def _provenance(entry: Entry) -> str:
    """The foot of a page: where it is from, and under what license."""
    license = license_link(entry.license) if entry.license else "not stated"
    credit = f" {escape(entry.license.attribution)}" if entry.license.attribution else ""
    return f"Source: {_source(entry.uri)}. License: {license}.{credit}"


def license_link(license: License) -> str:
    """A license by its name, which leads to its terms where they are known."""
    label = escape(license.label)
    target = LinkMap({}).resolve(license.link, base=license.link, path="") if license.link else ""
    return f"[{label}]({target})" if target else label


def _related(related: Related, outline: Outline, links: LinkMap, path: str) -> str:
    if related.uri not in outline.paths:
        return ""
    place = relative(outline.paths[related.uri], path)
    place += in_page(related.anchor) if related.anchor else ""
    label = outline.entries[related.uri].title
    if plain(related.heading):
        label += f" › {plain(related.heading)}"
    return f"- [{escape(label)}]({place})"


def _page_link(uri: str, outline: Outline, path: str) -> str:
    return f"[{escape(outline.entries[uri].title)}]({relative(outline.paths[uri], path)})"


def way_to(outline: Outline, above: Sequence[Section], here: str) -> str:
    """Links to what lies above a page, outermost first."""
    steps = [f"[{escape(outline.title)}]({relative(HOME, here)})"]
    steps += [
        f"[{escape(section.label)}]({relative(outline.section_paths[section.folders], here)})"
        for section in above
        if section.label
    ]
    return " › ".join(steps)


@lru_cache(maxsize=16)
def _source(uri: str) -> str:
    """The source as a link where it has an address; a page says it twice."""
    if not uri.startswith(("http://", "https://")):
        return escape(uri)
    target = LinkMap({}).resolve(uri, base=uri, path="")
    return f"[{escape(uri)}]({target})" if target else escape(uri)


def as_title(text: str) -> str:
    """Plain text as MkDocs wants titles: it puts them into its pages as they are, as HTML."""
    # Braces would be templates to plugins that render the front matter
    return html.escape(text, quote=False).replace("{", "&#123;").replace("}", "&#125;")


def front_matter(values: Mapping[str, Any]) -> str:
    """The block at the beginning of a page that MkDocs reads."""
    lines = (f"{name}: {_yaml(value)}" for name, value in values.items())
    return "\n".join(["---", *lines, "---", ""])


def _yaml(value: Any) -> str:
    """A value as YAML on one line."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name}: {_yaml(one)}' for name, one in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_yaml, value))}]"
    # JSON is YAML where it is plain, and made in no time; of other text it escapes halves
    if not isinstance(value, str) or (value.isprintable() and value.isascii()):
        return json.dumps(value)
    text = yaml.dump(value, Dumper=_DUMPER, default_style='"', width=_WIDTH)
    return text.strip()


def count(number: int, noun: str = "document") -> str:
    """``1 document`` or ``2 documents``."""
    return f"1 {noun}" if number == 1 else f"{number:,} {noun}s"
