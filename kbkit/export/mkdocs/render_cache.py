"""A cache of rendered pages beside ``mkdocs.yml``.

Rendering takes most of the time that MkDocs needs for an export, and few pages change from build
to build. A page is as it was when its Markdown is, and its links still lead where they led.

What is kept is trusted as ``mkdocs.yml`` is: whoever can write the folder can write the site.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kbkit.markdown import definition_lists, disarming, highlighting, page_parts, rendering
from kbkit.markdown.rendering import Picture, Rendered, ResolvePage, render

_DATABASE = "pages.sqlite"
_LIBRARIES = ("kbkit", "markdown-it-py", "nh3", "pygments")
_TABLE = """
    create table if not exists pages
    (path text primary key, key blob not null, page blob not null) without rowid
"""
_WAIT = 0.1
"""Seconds to wait for another build of the same site, which keeps pages instead of this one."""


class RenderCache:
    """Rendered pages of a site; those that cannot be cached are rendered again."""

    def __init__(self, folder: Path | None) -> None:
        self.hits = 0
        self._used: set[str] = set()
        self._renderer_version = _renderer_version()
        self._database = None if folder is None else _open(folder)

    def render(
        self,
        path: str,
        text: str,
        resolve: ResolvePage,
        picture: Picture,
        image: ResolvePage,
        *,
        document: bool,
    ) -> Rendered:
        """Render a page, or return it from the cache."""
        self._used.add(path)
        source = f"{self._renderer_version} {document} {text}".encode("utf-8", "replace")
        key = hashlib.blake2b(source, digest_size=16).digest()
        cached = self._load(path, key)
        if (
            cached
            and _unchanged(cached["links"], resolve)
            and _unchanged(cached["pictures"], picture)
            and _unchanged(cached["images"], image)
        ):
            self.hits += 1
            return Rendered(
                cached["plain"], cached["html"], cached["toc"], anchors=frozenset(cached["anchors"])
            )
        links: dict[str, str | None] = {}
        pictures: dict[str, str | None] = {}
        images: dict[str, str | None] = {}
        page = render(
            text,
            _recording(resolve, links),
            document=document,
            picture=_recording(picture, pictures),
            image=_recording(image, images),
        )
        found = {"links": links, "pictures": pictures, "images": images}
        values = {**found, "plain": page.plain, "html": page.html}
        self._store(path, key, {**values, "toc": page.toc, "anchors": sorted(page.anchors)})
        return page

    def close(self) -> None:
        if self._database is None:
            return
        try:
            with self._database:
                known = [path for (path,) in self._database.execute("select path from pages")]
                gone = [(path,) for path in known if path not in self._used]
                self._database.executemany("delete from pages where path = ?", gone)
        except sqlite3.Error:
            pass  # a full disk costs speed, no more
        self._database.close()
        self._database = None

    def _load(self, path: str, key: bytes) -> dict[str, Any] | None:
        if self._database is None:
            return None
        query = "select page from pages where path = ? and key = ?"
        try:
            row = self._database.execute(query, (path, key)).fetchone()
            found: dict[str, Any] | None = row and json.loads(zlib.decompress(row[0]))
        except (sqlite3.Error, zlib.error, ValueError):
            return None
        return found

    def _store(self, path: str, key: bytes, values: Mapping[str, Any]) -> None:
        if self._database is None:
            return
        page = zlib.compress(json.dumps(values).encode(), 1)
        try:
            self._database.execute("replace into pages values (?, ?, ?)", (path, key, page))
        except sqlite3.Error:
            self._database.close()
            self._database = None


def _renderer_version() -> str:
    modules = (rendering, highlighting, page_parts, disarming, definition_lists)
    code = b"".join(Path(str(module.__file__)).read_bytes() for module in modules)
    versions = " ".join(map(version, _LIBRARIES))
    return f"{versions} {hashlib.blake2b(code, digest_size=16).hexdigest()}"


def _open(folder: Path) -> sqlite3.Connection | None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".gitignore").write_text("*\n", encoding="utf-8")
        return _database(folder / _DATABASE)
    except (OSError, sqlite3.OperationalError):
        return None


def _database(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_WAIT)
    try:
        connection.execute(_TABLE)
    except sqlite3.OperationalError:
        connection.close()
        raise
    except sqlite3.DatabaseError:  # damaged
        connection.close()
        path.unlink()
        connection = sqlite3.connect(path, timeout=_WAIT)
        connection.execute(_TABLE)
    return connection


def _unchanged(before: Mapping[str, str | None], find: Callable[[str], str | None]) -> bool:
    return all(find(href) == target for href, target in before.items())


def _recording(
    find: Callable[[str], str | None], found: dict[str, str | None]
) -> Callable[[str], str | None]:

    def record(href: str) -> str | None:
        found[href] = find(href)
        return found[href]

    return record
