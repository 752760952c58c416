"""Escape and render text and HTML for panels, and the values of the graph for its panel.

Untrusted values reach the page only through `plain` or `lines` (as text) and `web_address` (as a
link). ipywidgets inserts the HTML of a widget unchanged, so HTML has to be escaped here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from html import escape
from importlib import resources
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kbkit import models
from kbkit.errors import KbkitError
from kbkit.models import values
from kbkit.text.markdown.structure import plain_text

if TYPE_CHECKING:
    from jinja2 import Environment

TITLE_LENGTH = 160
PATH_LENGTH = 240
ABOUT_LENGTH = 240
SNIPPET_LENGTH = 480
_MAX_ADDRESS_LENGTH = 2000


@cache
def stylesheet() -> str:
    package = resources.files("kbkit")
    sheets = [package / "panels/style.css", package / "export/assets/graph.css"]
    return f"<style>{''.join(sheet.read_text(encoding='utf-8') for sheet in sheets)}</style>"


@cache
def _templates() -> Environment:
    from jinja2 import Environment, PackageLoader  # slow to import

    loader = PackageLoader("kbkit.panels", "static")
    environment = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(plain=plain, minute=minute, size=size)
    return environment


def fill_template(template: str, macro: str, **values: Any) -> str:
    """Return HTML of a macro of a template in ``static``, with values escaped."""
    return str(getattr(_templates().get_template(template).module, macro)(**values))


def plain(text: str, length: int) -> str:
    """Return one line of visible text, shortened, not escaped."""
    line = values.plain(text[: length * 10])  # bounds the work; white space shrinks
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def web_address(url: str) -> str:
    """Return an address that is safe to link (http or https), or ``""``."""
    if len(url) > _MAX_ADDRESS_LENGTH or any(c.isspace() or not c.isprintable() for c in url):
        return ""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return url if parts.scheme in {"http", "https"} and parts.netloc else ""


def place(uri: str) -> str:
    return plain(re.sub(r"^https?://", "", uri, flags=re.IGNORECASE), PATH_LENGTH // 3)


def lines(text: str, length: int) -> str:
    """Return visible text with lines and indentation, cut to a length, not escaped."""
    visible = values.without_controls(text[:length])
    return visible if len(text) <= length else visible.rstrip() + "…"


def status(text: str) -> str:
    """Return a status line, which screen readers announce."""
    return f'<div class="kbkit-status" role="status">{escape(plain(text, 480))}</div>'


def problem_line(error: BaseException) -> str:
    """Return the first line of an error, with its class unless it is kbkit's."""
    text = str(error).strip().splitlines()
    message = text[0] if text else "no message"
    if not isinstance(error, KbkitError):
        message = f"{type(error).__name__}: {message}"
    return plain(message, 300)


def problem(error: BaseException) -> str:
    """Return `problem_line` as HTML; screen readers announce it at once."""
    line = escape(problem_line(error))
    return f'<div class="kbkit-status kbkit-problem" role="alert">{line}</div>'


MAX_LENGTH = 20_000
"""Maximum characters of a passage."""


def heading(hit: models.Hit) -> dict[str, Any]:
    title = plain(hit.title, TITLE_LENGTH) or place(hit.uri) or "Untitled"
    return {
        "id": hit.chunk.id,
        "title": title,
        "path": path(hit.chunk, title),
        "link": web_address(hit.url),
        "place": place(hit.uri),
    }


def path(chunk: models.Chunk, title: str) -> str:
    headings = [plain(heading, PATH_LENGTH) for heading in chunk.heading_path]
    return plain(" › ".join(headings[headings[:1] == [title] :]), PATH_LENGTH)


def html(chunk: models.Chunk) -> str:
    """Render a chunk as sanitised HTML without images, with links to the web only."""
    from kbkit.text.markdown.rendering import render as render_markdown  # slow to import

    cut = len(chunk.text) - MAX_LENGTH
    note = f"\n\n… and {cut:,} characters more" if cut > 0 else ""
    text = lines(chunk.text[:MAX_LENGTH], MAX_LENGTH) + note
    return render_markdown(text, lambda _link: None).html


def size(count: int) -> str:
    if count < 1_000:
        return f"{count} bytes"
    return f"{count / 1_000:,.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:,.1f} MB"


def minute(time: datetime) -> str:
    """Format a time in this machine's zone, to the minute."""
    return f"{time.astimezone():%Y-%m-%d %H:%M}"


_DESCRIPTION = 2_000  # characters, as the next two
_PASSAGE = 400
_PROPERTY = 240
_MAX_ALIASES = 40
_MAX_PROPERTIES = 40
_UNNAMED = "(no visible name)"
ENTITY_TEXTS = ("name", "type", "description")


def node(target: models.Target, name: str, type_: str) -> dict[str, Any]:
    return {
        "id": target.key,
        "name": plain(name, TITLE_LENGTH) or _UNNAMED,
        "type": plain(type_, 80) or "entity",
    }


def entity_node(entity: models.Entity) -> dict[str, Any]:
    return node(models.Target(models.TargetKind.ENTITY, entity.id), entity.name, entity.type)


def graph_picture(layout: models.GraphLayout) -> dict[str, Any]:
    return {
        "nodes": [
            node(drawn.target, drawn.name, drawn.type)
            | {"x": drawn.x, "y": drawn.y, "radius": drawn.radius}
            for drawn in layout.nodes
        ],
        "edges": [dict(edge.to_dict()) for edge in layout.edges],
        "total": layout.total,
    }


def gap(value: models.Gap) -> dict[str, str]:
    return {
        "id": value.target.key,
        "kind": value.kind.value,
        "name": plain(value.name, TITLE_LENGTH) or _UNNAMED,
        "reason": plain(value.reason, _DESCRIPTION),
    }


def merge_suggestion(pair: models.MergeSuggestion) -> dict[str, Any]:
    kept_name, merged_name = pair.names
    return {
        "keep": node(models.Target(models.TargetKind.ENTITY, pair.keep), kept_name, ""),
        "merge": node(models.Target(models.TargetKind.ENTITY, pair.merge), merged_name, ""),
        "reason": pair.reason,
        "evidence": plain(pair.evidence, _DESCRIPTION),
        "score": round(pair.score, 2),
    }


def entity_fields(entity: models.Entity) -> dict[str, Any]:
    texts = {name: getattr(entity, name) for name in ENTITY_TEXTS}
    return {**texts, "aliases": list(entity.aliases)}


def node_details(
    entity: models.Entity | None,
    title: dict[str, Any],
    steps: Sequence[models.Step],
    hits: Sequence[models.Hit],
) -> dict[str, Any]:
    return {
        "item": title,
        "description": "" if entity is None else lines(entity.description, _DESCRIPTION),
        "aliases": [] if entity is None else _aliases(entity),
        "facts": [] if entity is None else _facts(entity),
        "neighbors": [_neighbor(step) for step in steps],
        "documents": [
            {"name": plain(step.name, TITLE_LENGTH) or "Untitled", "document": step.target.id}
            for step in steps
            if step.target.kind is models.TargetKind.DOCUMENT
        ],
        "passages": [_passage(hit) for hit in hits],
        "fields": None if entity is None else entity_fields(entity),
    }


def _aliases(entity: models.Entity) -> list[str]:
    shown = [plain(alias, TITLE_LENGTH) for alias in entity.aliases[:_MAX_ALIASES]]
    hidden = len(entity.aliases) - len(shown)
    return [*shown, f"{hidden:,} more"] if hidden else shown


def _facts(entity: models.Entity) -> list[tuple[str, str]]:
    passages = values.pluralize(entity.chunks, "passage")
    facts = [("Mentioned in", f"{passages} of {values.pluralize(entity.documents)}")]
    if entity.made_by and entity.updated_at:
        author = plain(entity.made_by, TITLE_LENGTH)
        facts.append(("Changed", f"{entity.updated_at:%Y-%m-%d %H:%M} by {author}"))
    for name, value in list(entity.properties.items())[:_MAX_PROPERTIES]:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        facts.append((plain(name, 80), plain(text, _PROPERTY)))
    return facts


def _neighbor(step: models.Step) -> dict[str, Any]:
    relation = step.relation
    assert relation is not None  # only the start of a path has none
    return node(step.target, step.name, step.type) | {
        "relation": relation.name,
        "forward": step.forward,
        "weight": round(relation.weight, 2),
        "number": relation.id,
        "note": plain(relation.note, _PROPERTY),
    }


def _passage(hit: models.Hit) -> dict[str, Any]:
    above = heading(hit)
    return {
        "name": above["path"] or above["title"],
        "title": above["title"],
        "link": above["link"],
        "chunk": hit.chunk.id,
        "text": lines(plain_text(hit.chunk.text[: 4 * _PASSAGE]).strip(), _PASSAGE),
    }
