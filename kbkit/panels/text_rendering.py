"""Render a file or a document as safe HTML: Markdown, or highlighted text.

Raw HTML becomes text and images become links, so nothing is fetched from elsewhere.
"""

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote, urljoin, urlsplit

from kbkit.export.pages.paths import LinkMap
from kbkit.models import Document, FileLink
from kbkit.text.markdown.extensions import resolve_wiki_links
from kbkit.text.markdown.rendering import render
from kbkit.text.markdown.sanitizing import prepare
from kbkit.text.markdown.structure import slug

MAX_LENGTH = 200_000
"""Maximum characters rendered."""

_FILE = "#file-"
_MISSING = "#missing-"
_DOCUMENT = "#document-"
_WEB = ("http", "https", "mailto")
_FRONT = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_MARKDOWN = (".md", ".markdown", ".txt")


Links = dict[str, tuple[str, str]]
"""Links to other files or documents by address: the path of a file, which may not exist, or the id
of a document; and the anchor there."""


@dataclass(frozen=True, slots=True)
class PanelText:
    """A rendered file or document."""

    html: str
    links: Links
    cut: int
    """Number of characters left out at the end."""


def is_rendered(path: str) -> bool:
    return posixpath.splitext(path)[1].lower() in _MARKDOWN


def render_file(path: str, text: str, links: Sequence[FileLink]) -> PanelText:
    path_of = {link.target: link.path for link in links}
    targets: Links = {}

    def resolve_name(name: str, heading: str) -> str:
        file = path_of.get(name.lstrip("/"), "")
        anchor = slug(heading) if heading else ""
        return _address(_FILE if file else _MISSING, file or name, anchor, targets)

    def resolve(href: str) -> str | None:
        if href.startswith("#"):
            return href
        try:
            scheme = urlsplit(href).scheme
        except ValueError:
            return None
        if scheme:
            return href if scheme in _WEB else None
        bare, _, anchor = href.partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(bare)))
        if target not in path_of:
            return None
        file = path_of[target]
        return _address(_FILE if file else _MISSING, file or target, unquote(anchor), targets)

    visible = _FRONT.sub(lambda match: f"```yaml\n{match[1]}\n```\n\n", text[:MAX_LENGTH], count=1)
    prepared = prepare(resolve_wiki_links(visible, resolve_name), title="", rewrite=resolve)
    html = render(prepared.text, resolve).html
    return PanelText(html, targets, max(0, len(text) - MAX_LENGTH))


def _address(mark: str, name: str, anchor: str, targets: Links) -> str:
    href = f"{mark}{quote(name)}" + (f"#{quote(anchor)}" if anchor else "")
    targets[href] = (name, anchor)
    return href


def render_text(path: str, text: str) -> PanelText:
    cut = text[:MAX_LENGTH]
    marks = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", cut)), default=0))
    language = posixpath.splitext(path)[1].lstrip(".").lower()
    language = {"markdown": "md", "txt": "", "log": ""}.get(language, language)
    html = render(f"{marks}{language}\n{cut}\n{marks}", lambda _href: None).html
    return PanelText(html, {}, max(0, len(text) - MAX_LENGTH))


def render_document(document: Document, pages: LinkMap) -> PanelText:
    """Render a document; links to the documents of ``pages`` open them."""
    targets: Links = {}

    def resolve(href: str) -> str | None:
        if href.startswith("#"):
            return href
        try:
            address = urljoin(document.uri, href)
            scheme = urlsplit(address).scheme
        except ValueError:
            return None
        document_id = pages.page(address) or pages.page(href)
        if document_id is not None:
            anchor = unquote(address.partition("#")[2])
            return _address(_DOCUMENT, document_id, anchor, targets)
        return address if scheme in _WEB else None

    prepared = prepare(document.content[:MAX_LENGTH], title=document.title, rewrite=resolve)
    html = render(prepared.text, resolve).html
    return PanelText(html, targets, max(0, len(document.content) - MAX_LENGTH))
