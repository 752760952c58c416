"""Markdown, text, HTML, reStructuredText, Jupyter notebooks and EPUB."""

import json
import posixpath
import re
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from kbkit.models import License
from kbkit.sources.decode import decode
from kbkit.sources.markdown import commonmark
from kbkit.sources.parts import Part, check_length, one_line, stem, with_front_matter
from kbkit.sources.untrusted import Archive, UnreadableError, parse_xml
from kbkit.text.markdown.structure import document_title
from kbkit.text.markdown.writing import fence


def read_markdown(data: bytes, name: str) -> list[Part]:
    """Read Markdown of any dialect; front matter becomes title, tags and metadata."""
    return [with_front_matter(decode(data, markup=False), name, markdown=True)]


def read_text(data: bytes, name: str) -> list[Part]:
    return [with_front_matter(decode(data, markup=False), name)]


def read_html(data: bytes, name: str) -> list[Part]:
    """Read the content of a page; relative links stay relative."""
    from kbkit.sources.html.extract import extract

    page = extract(decode(data), "", alone=False)
    if not page.content:
        raise UnreadableError(page.reason or "no text")
    title = page.title or stem(name)
    return [Part(title, page.content, metadata=page.metadata, template=page.template)]


def read_rst(data: bytes, name: str) -> list[Part]:
    from kbkit.sources.restructured_text import markdown_of_rst

    text = decode(data, markup=False).replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff")
    content = markdown_of_rst(text)
    title = one_line(document_title(content)) or stem(name)
    return [Part(title, content + "\n" if content else "", metadata={"format": "rst"})]


_MAX_CELLS = 20_000
_MAX_OUTPUT = 5_000  # characters of each output
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|[\x00-\x08\x0b-\x1f\x7f]")


def read_notebook(data: bytes, name: str) -> list[Part]:
    """Read the cells of a notebook (formats 3 and 4) with their output."""
    try:
        loaded = json.loads(decode(data, markup=False))
    except ValueError:
        raise UnreadableError("broken: not the JSON of a notebook") from None
    notebook = loaded if isinstance(loaded, dict) else {}
    cells = notebook.get("cells")
    if cells is None and isinstance(notebook.get("worksheets"), list):
        sheets = [sheet for sheet in notebook["worksheets"] if isinstance(sheet, dict)]
        cells = [cell for sheet in sheets for cell in _list(sheet.get("cells"))]
    if not isinstance(cells, list):
        raise UnreadableError("broken: not a notebook (it has no cells)")
    if len(cells) > _MAX_CELLS:
        raise UnreadableError(f"more than {_MAX_CELLS:,} cells")
    language = _language(notebook)
    blocks = (block for cell in cells if isinstance(cell, dict) for block in _cell(cell, language))
    content = "\n\n".join(blocks)
    title = one_line(document_title(content)) or stem(name)
    metadata = {"format": "notebook", "language": language}
    return [Part(title, content + "\n" if content else "", metadata=metadata)]


def _cell(cell: dict[str, Any], language: str) -> list[str]:
    kind = cell.get("cell_type")
    source = _join_source(cell.get("source", cell.get("input", ""))).strip("\n")
    if kind == "markdown":
        return [commonmark(source)] if source.strip() else []
    if kind == "heading":
        level = cell.get("level")
        level = level if isinstance(level, int) and 1 <= level <= 6 else 1
        return [f"{'#' * level} {one_line(source)}"] if source.strip() else []
    blocks = [fence(source, language if kind == "code" else "")] if source.strip() else []
    if kind == "code":
        for output in _list(cell.get("outputs")):
            if isinstance(output, dict):
                blocks.extend(_output(output))
    return blocks


def _output(output: dict[str, Any]) -> list[str]:
    kind = output.get("output_type")
    if kind == "stream":
        text = _join_source(output.get("text"))
    elif kind in ("error", "pyerr"):
        text = "\n".join(_join_source(line) for line in _list(output.get("traceback")))
        text = text or f"{_join_source(output.get('ename'))}: {_join_source(output.get('evalue'))}"
    else:
        data = output.get("data", output)
        data = data if isinstance(data, dict) else {}
        if markdown := _join_source(data.get("text/markdown")).strip():
            return [_short(markdown)]
        text = _join_source(data.get("text/plain", data.get("text", "")))
    # progress bars rewrite a line after carriage returns: the last state counts
    lines = (line.rstrip("\r") for line in text.split("\n"))
    text = "\n".join(line.rpartition("\r")[2] for line in lines)
    text = _ANSI.sub("", text).strip("\n")
    return [fence(_short(text), "text")] if text.strip() else []


def _short(text: str) -> str:
    return text if len(text) <= _MAX_OUTPUT else text[:_MAX_OUTPUT].rstrip() + "\n…"


def _language(notebook: dict[str, Any]) -> str:
    metadata = notebook.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    for part, key in (("language_info", "name"), ("kernelspec", "language")):
        inner = metadata.get(part)
        if isinstance(inner, dict) and re.fullmatch(r"[\w+#-]{1,30}", str(inner.get(key, ""))):
            return str(inner[key]).lower()
    return "python"


def _join_source(value: Any) -> str:
    if isinstance(value, list):
        return "".join(piece for piece in value if isinstance(piece, str))
    return value if isinstance(value, str) else ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


_MAX_CHAPTERS = 5_000
_PAGES = frozenset({"application/xhtml+xml", "text/html", "application/xml"})
_NAMED = 5  # unreadable chapters listed
_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{1,500})</title>", re.IGNORECASE)


def read_epub(data: bytes, name: str) -> list[Part]:
    """Read a book: one part per chapter, in the order of the spine."""
    from kbkit.sources.html.extract import markdown_of

    archive = Archive(data)
    container = _xml(archive.read("META-INF/container.xml"))
    path = next((node.get("full-path") for node in container.iter("{*}rootfile")), None)
    if not path:
        raise UnreadableError("broken: its container names no book")
    book = _xml(archive.read(path))
    folder = posixpath.dirname(path)
    chapters = _spine(book, folder, archive)
    if len(chapters) > _MAX_CHAPTERS:
        raise UnreadableError(f"more than {_MAX_CHAPTERS:,} chapters")
    _check_rights(archive, chapters)
    titles, authors = (
        [text for node in book.iter(tag) if (text := one_line(node.text))]
        for tag in ("{*}title", "{*}creator")
    )
    title = titles[0] if titles else stem(name)
    metadata = {"format": "epub", "book": title, **_license(book).to_metadata()}
    if authors:
        metadata["author"] = ", ".join(authors)
    parts: list[Part] = []
    toc_titles = _listed_titles(archive, book, folder)
    unreadable: list[str] = []
    size = 0
    for number, chapter in enumerate(chapters, 1):
        try:
            text = decode(archive.read(chapter))
        except UnreadableError as error:
            if "unpacks" in str(error) or "encrypted" in str(error):
                raise
            unreadable.append(chapter)
            continue
        content = markdown_of(text)
        size += len(content)
        check_length(size)
        if not content:
            continue
        match = _TITLE.search(text[:5_000])
        heads = (document_title(content), toc_titles.get(chapter), match and match[1])
        head = next(filter(None, map(one_line, heads)), title)
        full = title if head == title else f"{title}: {head}"
        about = {**metadata, "chapter": number}
        parts.append(Part(full, content + "\n", name=chapter, metadata=about))
    if not parts and unreadable:
        raise UnreadableError("broken: no chapter can be read")
    if unreadable:
        note = f"{len(unreadable):,} chapters cannot be read: {', '.join(unreadable[:_NAMED])}"
        parts[0] = replace(parts[0], note=note)
    return parts


def _listed_titles(archive: Archive, book: Any, folder: str) -> dict[str, str]:
    titles: dict[str, str] = {}
    for item in book.iter("{*}item"):
        is_nav = "nav" in (item.get("properties") or "").split()
        if not is_nav and item.get("media-type") != "application/x-dtbncx+xml":
            continue
        name = _member_of(folder, item.get("href") or "", archive)
        if not archive.find(name):
            continue
        for entry in _xml(archive.read(name)).iter("{*}a" if is_nav else "{*}navPoint"):
            place = entry if is_nav else next(entry.iter("{*}content"), entry)
            label = entry if is_nav else next(entry.iter("{*}navLabel"), entry)
            href = place.get("href" if is_nav else "src") or ""
            chapter = _member_of(posixpath.dirname(name), href, archive)
            titles.setdefault(chapter, one_line("".join(label.itertext())))
    return titles


def _member_of(folder: str, href: str, archive: Archive) -> str:
    """Return the member for an address, decoded or literal; else its decoded name."""
    bare = href.partition("#")[0]
    names = [posixpath.normpath(posixpath.join(folder, path)) for path in (unquote(bare), bare)]
    return next(filter(None, map(archive.find, names)), names[0])


def _xml(data: bytes) -> Any:
    root = parse_xml(data, recover=True)
    if root is None:
        raise UnreadableError("broken: its table of contents cannot be read")
    return root


def _license(book: Any) -> License:
    from kbkit.sources.html.metadata import rights_license

    license = License()
    for node in book.iter("{*}link"):
        if (node.get("rel") or "").lower().rpartition(":")[2] == "license":
            license = license.or_else(License.stated(url=node.get("href")))
    terms = ("dcterms:license", "dcterms:rights", "dcterms:rightsholder")
    metas = book.iter("{*}meta")
    stated = [node for node in metas if (node.get("property") or "").lower() in terms]
    for node in (*stated, *book.iter("{*}rights")):
        license = license.or_else(rights_license(node.text or ""))
    return license


def _spine(book: Any, folder: str, archive: Archive) -> list[str]:
    items = {node.get("id"): node.attrib for node in book.iter("{*}item")}
    chapters: dict[str, None] = {}
    for reference in book.iter("{*}itemref"):
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
    rights = _xml(archive.read("META-INF/encryption.xml"))
    encrypted = {unquote(node.get("URI") or "") for node in rights.iter("{*}CipherReference")}
    if encrypted & set(chapters):
        raise UnreadableError("encrypted: its chapters are protected (DRM)")
