"""Escape and render text and HTML for panels.

Untrusted values reach the page only through `plain` or `lines` (as text) and `web_address` (as a
link). ipywidgets inserts the HTML of a widget unchanged, so HTML has to be escaped here.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import cache
from html import escape
from importlib import resources
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kbkit.errors import KbkitError
from kbkit.models import Chunk, Hit, values

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


def heading(hit: Hit) -> dict[str, Any]:
    title = plain(hit.title, TITLE_LENGTH) or place(hit.uri) or "Untitled"
    return {
        "id": hit.chunk.id,
        "title": title,
        "path": path(hit.chunk, title),
        "link": web_address(hit.url),
        "place": place(hit.uri),
    }


def path(chunk: Chunk, title: str) -> str:
    headings = [plain(heading, PATH_LENGTH) for heading in chunk.heading_path]
    return plain(" › ".join(headings[headings[:1] == [title] :]), PATH_LENGTH)


def html(chunk: Chunk) -> str:
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
