"""Rewrite the links of documents to pages."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import quote, unquote, urljoin, urlsplit

from kbkit.markdown.links import SAFE_SCHEMES

_DEFAULT_PORTS = {"http": 80, "https": 443}


@lru_cache(maxsize=65_536)
def canonical(uri: str) -> str:
    """The form of a URI under which equal places are equal.

    Its fragment is dropped, unless it is a route of scripts (``#/guide``), which is a page.
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
