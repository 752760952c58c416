"""File names of documents: portable, derived from URIs, stable between exports."""

from __future__ import annotations

import hashlib
import posixpath
import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache
from urllib.parse import quote, unquote, urljoin, urlsplit

from kbkit.text.markdown.plain_text import SAFE_SCHEMES

PART_BYTES = 80
"""Longest file or folder name, in bytes without suffix."""
PATH_BYTES = 160
"""Longest path in bytes, so that it fits under a project folder on Windows (260)."""

_UNSAFE = re.compile(r"[^\w.+-]+")
_SUFFIX = re.compile(r"\.(?:x?html?|md|markdown|rst|txt|ipynb|php|aspx?|jsp)$", re.IGNORECASE)
_OUTPUT_SUFFIX = re.compile(r"\.(md|x?html?)$", re.IGNORECASE)
_RESERVED = re.compile(
    r"(?:con|prn|aux|nul|conin|conout|com[\d¹²³]|lpt[\d¹²³])(?:\..*)?", re.IGNORECASE
)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def uri_parts(uri: str) -> tuple[tuple[str, ...], str]:
    try:
        split = urlsplit(uri)
        host = split.hostname or ""
        port = split.port
    except ValueError:
        return ("other",), uri
    if split.scheme == "python":
        *folders, name = [part for part in split.path.split(".") if part] or ["index"]
        return tuple(folders), name
    if split.scheme in {"http", "https"}:
        place = f"{host}:{port}" if port else host
        path = split.path
    else:
        place, path = split.scheme or "files", f"{split.netloc}/{split.path}"
    *folders, name = [unquote(part) for part in path.split("/")]
    name = _SUFFIX.sub("", name) or "index"
    for extra in (split.query, split.fragment):
        if extra:
            name = f"{name}-{unquote(extra)}"
    return tuple(part for part in (place, *folders) if part and part != "."), name


def safe_name(text: str) -> str:
    """Turn any text into a name that every file system takes and MkDocs does not hide.

    Letters and digits of any script, ``_``, ``.``, ``+`` and ``-`` stay; the rest becomes ``-``.
    Neither ``..`` nor a leading dot survives, nor do the device names of Windows.
    """
    name = _UNSAFE.sub("-", unicodedata.normalize("NFC", text)).strip("-. ")
    if not name:
        # "C++", "..", "" and "?" must not all become one empty name
        name = "_" + digest(text) if text.strip(". ") else "_"
    if _RESERVED.fullmatch(name):
        name = f"_{name}"
    if name == "README":
        # MkDocs takes README.md for the index of its folder
        name = "readme"
    if len(name.encode()) > PART_BYTES:
        short = name.encode()[: PART_BYTES - 9].decode("utf-8", "ignore")
        name = f"{short.rstrip('-.')}-{digest(text)}"
    return name


def natural_path(folders: Iterable[str], name: str) -> str:
    """The path, without suffix, that a name in folders has when nothing else claims it."""
    # A folder "a.html" would stand in the way of the page "a" once the site is built
    safe_folders = [_OUTPUT_SUFFIX.sub(r"-\1", safe_name(part)) for part in folders]
    path = "/".join([*safe_folders, safe_name(name)])
    if len(path.encode()) > PATH_BYTES:
        whole = "/".join([*folders, name])
        head = path.encode()[: PATH_BYTES - 60].decode("utf-8", "ignore").rsplit("/", 1)[0]
        tail = safe_name(name).encode()[:40].decode("utf-8", "ignore").rstrip("-.")
        path = f"{head}/{tail}-{digest(whole)}"
    return path


def collision_key(path: str) -> str:
    """Return a key that is equal for paths that cannot coexist.

    File systems may ignore case, and a site with directory URLs writes ``a.md`` and ``a/index.md``
    to one place.
    """
    return unicodedata.normalize("NFKC", path).casefold().removesuffix("/index")


def assign_paths(
    uris: Iterable[str],
    folder: str,
    *,
    kept: Mapping[str, str] | None = None,
    taken: Iterable[str] = (),
) -> dict[str, str]:
    kept = kept or {}
    keys = {collision_key(path.removesuffix(".md")) for path in taken}
    paths: dict[str, str] = {}
    fresh: list[str] = []
    for uri in sorted(set(uris)):
        path = kept.get(uri, "")
        key = collision_key(path.removesuffix(".md"))
        if path and key not in keys:
            keys.add(key)
            paths[uri] = path
        else:
            fresh.append(uri)
    for uri in fresh:
        folders, name = uri_parts(uri)
        path = f"{folder}/{natural_path(folders, name)}"
        if collision_key(path) in keys:
            path = f"{path}-{digest(uri)}"
        keys.add(collision_key(path))
        paths[uri] = f"{path}.md"
    return paths


_DEFAULT_PORTS = {"http": 80, "https": 443}


@lru_cache(maxsize=65_536)
def canonical(uri: str) -> str:
    """Return the canonical form of a URI.

    Its fragment is dropped unless it is a route of scripts (``#/guide``), which is a page.
    """
    try:
        split = urlsplit(uri)
        port = split.port
    except ValueError:
        return uri
    if split.scheme not in _DEFAULT_PORTS:
        bare = uri.partition("#")[0]
        return unquote(bare) if split.scheme in {"", "file"} else bare
    host = (split.hostname or "").casefold()
    if port and port != _DEFAULT_PORTS[split.scheme]:
        host = f"{host}:{port}"
    path = unquote(split.path) or "/"
    query = f"?{split.query}" if split.query else ""
    route = split.fragment.partition("?")[0]
    mark = f"#{unquote(route)}" if route.removeprefix("!").startswith("/") else ""
    return f"{split.scheme}://{host}{path}{query}" + (mark if len(mark) > 2 else "")


class LinkMap:
    """Knows which addresses are pages of the export."""

    def __init__(self, paths: Mapping[str, str]) -> None:
        self._paths = {canonical(uri): path for uri, path in paths.items()}
        # "/guide/", "/guide" and "/guide/index.html" are one place on nearly every site
        for uri, path in list(self._paths.items()):
            if uri.startswith(("http://", "https://")) and "?" not in uri:
                bare = uri.removesuffix("index.html").rstrip("/")
                for alias in (bare, f"{bare}/", f"{bare}/index.html"):
                    self._paths.setdefault(alias, path)
        self._files = {_name(uri): path for uri, path in paths.items() if not _scheme(uri)}
        for name, path in list(self._files.items()):
            self._files.setdefault(name.casefold(), path)

    def page(self, uri: str) -> str | None:
        return self._paths.get(canonical(uri))

    def resolve(self, href: str, *, base: str, path: str) -> str | None:
        href = href.strip()
        if not href.isprintable():
            href = "".join(char for char in href if char.isprintable())
        try:
            bare, _, fragment = href.partition("#")
            target = (
                href if not bare else _joined(base, bare) + (f"#{fragment}" if fragment else "")
            )
            scheme = urlsplit(target).scheme
        except ValueError:
            return None
        if href.startswith("#"):
            return in_page(href[1:]) if href[1:] else None
        if not scheme and not _scheme(base):
            page = self._file(href, base)
            return page and relative(page, path) + (in_page(fragment) if fragment else "")
        page = self._paths.get(canonical(target)) or self._paths.get(canonical(href))
        if page is not None:
            _, hash_, fragment = target.partition("#")
            if fragment.removeprefix("!").startswith("/"):
                # a route; the place in its page follows
                _, hash_, fragment = fragment.partition("?id=")
            return relative(page, path) + (in_page(fragment) if hash_ else "")
        if scheme in SAFE_SCHEMES:
            return quote(target, safe="!#$%&'*+,/:;=?@[]~")
        return None

    def _file(self, href: str, base: str) -> str | None:
        """The page of a file that another links to, as it is written or as file systems read it."""
        name = unquote(href.partition("#")[0].partition("?")[0])
        folder = posixpath.dirname(base)
        if name.startswith("/"):  # from the folder that was read
            folder, name = base.partition("/")[0], name.lstrip("/")
        target = _name(posixpath.normpath(posixpath.join(folder, name)))
        for way in (target, *(f"{target}{end}" for end in _ENDS)):
            if page := self._files.get(way) or self._files.get(way.casefold()):
                return page
        return None


_ENDS = (".md", "/index.md", "/README.md", "/index.html", "/index.rst")
"""What a link to a folder, or to a file without its suffix, leaves out."""


def _name(uri: str) -> str:
    return unicodedata.normalize("NFC", uri)


def _scheme(uri: str) -> str:
    match = _SCHEME.match(uri)
    return match[0] if match else ""


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")

# a page's links to the parts of another are many
_joined = lru_cache(maxsize=4_096)(urljoin)


def in_page(anchor: str) -> str:
    return "#" + quote(unquote(anchor), safe="!$&'*+,;=:@/?._~-", errors="replace")


def relative(target: str, path: str) -> str:
    there, folder = _quoted(target), _quoted(path[: path.rfind("/") + 1])
    above = 0
    while not there.startswith(folder):
        folder = folder[: folder.rfind("/", 0, -1) + 1]
        above += 1
    return "../" * above + there[len(folder) :]


# many links lead to one page
_quoted = lru_cache(maxsize=65_536)(quote)
