"""File names of documents: portable, derived from URIs, stable between exports."""

import hashlib
import posixpath
import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache
from urllib.parse import quote, unquote, urljoin, urlsplit

from kbkit.text.markdown.structure import SAFE_SCHEMES

PART_BYTES = 80
"""Maximum bytes of a file or folder name, without suffix."""
PATH_BYTES = 160
"""Maximum bytes of a path; leaves room for a project folder on Windows (260)."""

_UNSAFE = re.compile(r"[^\w.+-]+")
_SUFFIX = re.compile(r"\.(?:x?html?|md|markdown|rst|txt|ipynb|php|aspx?|jsp)$", re.IGNORECASE)
_OUTPUT_SUFFIX = re.compile(r"\.(md|x?html?)$", re.IGNORECASE)
_RESERVED = re.compile(r"(?:con|prn|aux|nul|conin|conout|com[\d¹²³]|lpt[\d¹²³])(?:\..*)?", re.I)


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
    """Turn any text into a file name that is valid everywhere and visible to MkDocs.

    Letters, digits, ``_``, ``.``, ``+`` and ``-`` stay; other characters become ``-``. Device names
    of Windows, ``..`` and leading dots are replaced.
    """
    name = _UNSAFE.sub("-", unicodedata.normalize("NFC", text)).strip("-. ")
    if not name:
        # "..", "" and "?" must not all become one empty name
        name = "_" + digest(text) if text.strip(". ") else "_"
    if _RESERVED.fullmatch(name):
        name = f"_{name}"
    if name == "README":
        # MkDocs treats README.md as the index of its folder
        name = "readme"
    if len(name.encode()) > PART_BYTES:
        short = name.encode()[: PART_BYTES - 9].decode("utf-8", "ignore")
        name = f"{short.rstrip('-.')}-{digest(text)}"
    return name


def natural_path(folders: Iterable[str], name: str) -> str:
    """Return the path, without suffix, of a name in folders, if it does not collide."""
    # a folder "a.html" would collide with the page "a" in the built site
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

    File systems may ignore case; with directory URLs, ``a.md`` and ``a/index.md`` are one page.
    """
    return unicodedata.normalize("NFKC", path).casefold().removesuffix("/index")


def assign_paths(
    uris: Iterable[str], folder: str, *, previous: Mapping[str, str] = {}, used: Iterable[str] = ()
) -> dict[str, str]:
    keys = {collision_key(path.removesuffix(".md")) for path in used}
    paths: dict[str, str] = {}
    fresh: list[str] = []
    for uri in sorted(set(uris)):
        path = previous.get(uri, "")
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
    """Return the canonical form of a URI, without fragments except routes (``#/guide``)."""
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
    """Maps addresses to pages of the export."""

    def __init__(self, paths: Mapping[str, str]) -> None:
        self._paths = {canonical(uri): path for uri, path in paths.items()}
        # "/guide/", "/guide" and "/guide/index.html" are one page on nearly every site
        for uri, path in list(self._paths.items()):
            if uri.startswith(("http://", "https://")) and "?" not in uri:
                bare = uri.removesuffix("index.html").rstrip("/")
                for alias in (bare, f"{bare}/", f"{bare}/index.html"):
                    self._paths.setdefault(alias, path)
        self._files = {_name(uri): path for uri, path in paths.items() if not _SCHEME.match(uri)}
        for name, path in list(self._files.items()):
            self._files.setdefault(name.casefold(), path)

    def page(self, uri: str) -> str | None:
        return self._paths.get(canonical(uri))

    def resolve(self, href: str, *, base: str, path: str) -> str | None:
        href = "".join(filter(str.isprintable, href.strip()))
        try:
            bare, _, fragment = href.partition("#")
            target = _joined(base, bare) + (f"#{fragment}" if fragment else "") if bare else href
            scheme = urlsplit(target).scheme
        except ValueError:
            return None
        if href.startswith("#"):
            return in_page(href[1:]) if href[1:] else None
        if not scheme and not _SCHEME.match(base):
            page = self._file(href, base)
            return page and relative(page, path) + (in_page(fragment) if fragment else "")
        page = self._paths.get(canonical(target)) or self._paths.get(canonical(href))
        if page is not None:
            _, hash_, fragment = target.partition("#")
            if fragment.removeprefix("!").startswith("/"):
                # a route, with the anchor as a parameter
                _, hash_, fragment = fragment.partition("?id=")
            return relative(page, path) + (in_page(fragment) if hash_ else "")
        if scheme in SAFE_SCHEMES:
            return quote(target, safe="!#$%&'*+,/:;=?@[]~")
        return None

    def _file(self, href: str, base: str) -> str | None:
        """Return the page of a linked file, also in another case or normal form."""
        name = unquote(href.partition("#")[0].partition("?")[0])
        folder = posixpath.dirname(base)
        if name.startswith("/"):  # relative to the source's folder
            folder, name = base.partition("/")[0], name.lstrip("/")
        target = _name(posixpath.normpath(posixpath.join(folder, name)))
        for candidate in (target, *(f"{target}{end}" for end in _ENDINGS)):
            if page := self._files.get(candidate) or self._files.get(candidate.casefold()):
                return page
        return None


_ENDINGS = (".md", "/index.md", "/README.md", "/index.html", "/index.rst")
"""Endings that links to folders or pages may omit."""


def _name(uri: str) -> str:
    return unicodedata.normalize("NFC", uri)


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")

# cached because many links of a page have the same target
_joined = lru_cache(maxsize=4_096)(urljoin)


def in_page(anchor: str) -> str:
    return "#" + quote(unquote(anchor), safe="!$&'*+,;=:@/?._~-", errors="replace")


def relative(target: str, path: str) -> str:
    return _relative(target, posixpath.dirname(path))


@lru_cache(maxsize=65_536)  # many links of a folder have the same target
def _relative(target: str, folder: str) -> str:
    return quote(posixpath.relpath(f"/{target}", f"/{folder}"))
