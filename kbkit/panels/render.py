"""Escape and render text and HTML for panels.

Outside values reach the page only through `plain` or `lines` (as text) and `web_address` (as the
address of a link). ipywidgets inserts the HTML of a widget unchanged, so escaping is the only
defence of this module's HTML; views take text.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import datetime
from functools import cache
from html import escape
from importlib import resources
from typing import Any
from urllib.parse import urlsplit

from kbkit.errors import KbkitError
from kbkit.models import Chunk, Hit

TITLE_LENGTH = 160
PATH_LENGTH = 240
ABOUT_LENGTH = 240
SNIPPET_LENGTH = 480
_MAX_ADDRESS_LENGTH = 2000

# Categories of characters that have no place in one line of text: controls, and formats, which
# include those that reverse the direction of what follows.
_NOT_SHOWN = {"Cc", "Cf", "Cs", "Co"}
# Formats that spelling needs: soft hyphen aside, the joiners of Indic and Persian and of emoji.
_JOINERS = {"\u200c", "\u200d"}


@cache
def stylesheet() -> str:
    package = resources.files("kbkit")
    sheets = [package / "panels/style.css", package / "export/assets/graph.css"]
    return f"<style>{''.join(sheet.read_text(encoding='utf-8') for sheet in sheets)}</style>"


def plain(text: str, length: int) -> str:
    """Return one line of visible text, shortened, not yet escaped."""
    # Ten times the length leaves room for white space to fold and bounds the work all the same.
    visible = text[: length * 10]
    if not visible.isprintable():  # mostly it is, and looking at each character takes long
        visible = _visible(visible, _JOINERS)
    line = " ".join(visible.split())
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def _visible(text: str, kept: set[str]) -> str:
    return "".join(
        each if unicodedata.category(each) not in _NOT_SHOWN or each in kept else " "
        for each in text
    )


def web_address(url: str) -> str:
    """The address if a link may lead there (http or https, of sane length), or ``""``."""
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
    """Visible text with its lines and indentation, cut to a length, not yet escaped."""
    visible = _visible(text[:length].replace("\r\n", "\n"), _JOINERS | {"\n"})
    return visible if len(text) <= length else visible.rstrip() + "…"


def status(text: str) -> str:
    """Return a status line, which screen readers announce."""
    return f'<div class="kbkit-status" role="status">{escape(plain(text, 480))}</div>'


def problem_line(error: BaseException) -> str:
    """An error as one line: its message if kbkit raised it, else its kind and its first line."""
    text = str(error).strip().splitlines()
    message = text[0] if text else "no message"
    if not isinstance(error, KbkitError):
        message = f"{type(error).__name__}: {message}"
    return plain(message, 300)


def problem(error: BaseException) -> str:
    """`problem_line` as HTML; screen readers read it at once."""
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
    above = [plain(each, PATH_LENGTH) for each in chunk.heading_path]
    return plain(" › ".join(above[above[:1] == [title] :]), PATH_LENGTH)


def html(chunk: Chunk) -> str:
    """The text of a chunk as sanitised HTML without images, its links to the web only."""
    from kbkit.text.markdown.rendering import render as render_markdown  # not before somebody asks

    cut = len(chunk.text) - MAX_LENGTH
    more = f"\n\n… and {cut:,} characters more" if cut > 0 else ""
    text = lines(chunk.text[:MAX_LENGTH], MAX_LENGTH) + more
    return render_markdown(text, lambda _link: None).html


def size(count: int) -> str:
    """Write a number of bytes for people."""
    if count < 1_000:
        return f"{count} bytes"
    return f"{count / 1_000:,.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:,.1f} MB"


def minute(at: datetime) -> str:
    """Write a time in the zone of this machine, to the minute."""
    return f"{at.astimezone():%Y-%m-%d %H:%M}"
