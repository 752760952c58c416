"""EPUB: one part per chapter, in the order of the spine."""

from __future__ import annotations

import posixpath
import re
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from kbkit.models import License
from kbkit.sources.decode import decode
from kbkit.sources.html.extract import markdown_of
from kbkit.sources.html.metadata import rights_license
from kbkit.sources.parts import MAX_CHARACTERS, Part, one_line, stem
from kbkit.sources.untrusted import Archive, UnreadableError, untrusted_xml
from kbkit.text.markdown.structure import document_title

_MAX_CHAPTERS = 5_000
_PAGES = frozenset({"application/xhtml+xml", "text/html", "application/xml"})
_NAMED = 5  # unreadable chapters that are named
_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{1,500})</title>", re.IGNORECASE)


def read(data: bytes, name: str) -> list[Part]:
    archive = Archive(data)
    container = _xml(archive.read("META-INF/container.xml"))
    path = next((node.get("full-path") for node in _elements(container, "rootfile")), None)
    if not path:
        raise UnreadableError("broken: its container names no book")
    book = _xml(archive.read(path))
    folder = posixpath.dirname(path)
    chapters = _spine(book, folder, archive)
    if len(chapters) > _MAX_CHAPTERS:
        raise UnreadableError(f"more than {_MAX_CHAPTERS:,} chapters")
    _check_rights(archive, chapters)
    titles = [one_line(node.text) for node in _elements(book, "title")]
    authors = [one_line(node.text) for node in _elements(book, "creator")]
    title = next(filter(None, titles), stem(name))
    metadata: dict[str, Any] = {"format": "epub", "book": title}
    if any(authors):
        metadata["author"] = ", ".join(filter(None, authors))
    metadata |= _license(book).to_metadata()
    parts: list[Part] = []
    listed = _listed_titles(archive, book, folder)
    bad: list[str] = []
    size = 0
    for number, chapter in enumerate(chapters, 1):
        try:
            text = decode(archive.read(chapter))
        except UnreadableError as error:
            if "unpacks" in str(error) or "encrypted" in str(error):
                raise
            bad.append(chapter)
            continue
        content = markdown_of(text)
        size += len(content)
        if size > MAX_CHARACTERS:
            raise UnreadableError(f"more than {MAX_CHARACTERS / 1e6:g} million characters")
        if not content:
            continue
        match = _TITLE.search(text[:5_000])
        head = one_line(document_title(content)) or listed.get(chapter, "")
        head = head or (one_line(match.group(1)) if match else "")
        full = title if head in ("", title) else f"{title}: {head}"
        parts.append(
            Part(full, content + "\n", name=chapter, metadata={**metadata, "chapter": number})
        )
    if not parts and bad:
        raise UnreadableError("broken: no chapter can be read")
    if bad:
        note = f"{len(bad):,} chapters cannot be read: {', '.join(bad[:_NAMED])}"
        parts[0] = replace(parts[0], note=note)
    return parts


def _listed_titles(archive: Archive, book: Any, folder: str) -> dict[str, str]:
    titles: dict[str, str] = {}
    for item in _elements(book, "item"):
        is_nav = "nav" in (item.get("properties") or "").split()
        if not is_nav and item.get("media-type") != "application/x-dtbncx+xml":
            continue
        name = _member_of(folder, item.get("href") or "", archive)
        if not archive.find(name):
            continue
        for entry in _elements(_xml(archive.read(name)), "a" if is_nav else "navPoint"):
            place = entry if is_nav else next(iter(_elements(entry, "content")), entry)
            label = entry if is_nav else next(iter(_elements(entry, "navLabel")), entry)
            href = place.get("href" if is_nav else "src") or ""
            chapter = _member_of(posixpath.dirname(name), href, archive)
            titles.setdefault(chapter, one_line("".join(label.itertext())))
    return titles


def _member_of(folder: str, href: str, archive: Archive) -> str:
    """Return the member for an address, decoded or literal; else its decoded name."""
    bare = href.partition("#")[0]
    ways = [posixpath.normpath(posixpath.join(folder, each)) for each in (unquote(bare), bare)]
    return next(filter(None, map(archive.find, ways)), ways[0])


def _xml(data: bytes) -> Any:
    root = untrusted_xml(data, recover=True)
    if root is None:
        raise UnreadableError("broken: its table of contents cannot be read")
    return root


def _elements(root: Any, name: str) -> list[Any]:
    return [
        node
        for node in root.iter()
        if isinstance(node.tag, str) and node.tag.rpartition("}")[2] == name
    ]


def _license(book: Any) -> License:
    license = License()
    for node in _elements(book, "link"):
        if (node.get("rel") or "").lower().rpartition(":")[2] == "license":
            license = license.or_else(License.stated(url=node.get("href")))
    for node in _elements(book, "meta"):
        name = (node.get("property") or "").lower()
        if name in ("dcterms:license", "dcterms:rights", "dcterms:rightsholder"):
            license = license.or_else(rights_license(node.text or ""))
    for node in _elements(book, "rights"):
        license = license.or_else(rights_license(node.text or ""))
    return license


def _spine(book: Any, folder: str, archive: Archive) -> list[str]:
    items = {node.get("id"): node.attrib for node in _elements(book, "item")}
    chapters: dict[str, None] = {}
    for reference in _elements(book, "itemref"):
        item = items.get(reference.get("idref"), {})
        href, kind = item.get("href"), item.get("media-type")
        is_nav = "nav" in item.get("properties", "").split()
        if href and (not kind or kind in _PAGES) and not is_nav:
            chapters.setdefault(_member_of(folder, href, archive))
    return list(chapters)


def _check_rights(archive: Archive, chapters: list[str]) -> None:
    """Refuse encrypted chapters; encrypted fonts are common and harmless."""
    if "META-INF/encryption.xml" not in archive.names:
        return
    locked = {
        unquote(node.get("URI") or "")
        for node in _elements(_xml(archive.read("META-INF/encryption.xml")), "CipherReference")
    }
    if locked & set(chapters):
        raise UnreadableError("encrypted: its chapters are protected (DRM)")
