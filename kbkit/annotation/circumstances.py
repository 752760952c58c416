"""Where a statement holds and what field it is of: versions, platforms, headings, tags."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache

from ahocorasick_rs import AhoCorasick, MatchKind

from kbkit.annotation.base import Passage
from kbkit.annotation.folding import folded
from kbkit.annotation.terms import is_term

_MOST_CONTEXTS = 8
_MOST_DOMAINS = 5
_LONGEST = 80

_NUMBER = re.compile(r"\d\.\d")
_VERSION = re.compile(
    r"(?:\b(?P<product>[A-Z][A-Za-z+#]*(?:\s[A-Z][A-Za-z+#]*)?)\s(?:[Vv]ersions?\s)?"
    r"|\b(?:versions?|since|release|prior to|as of)\s(?:version\s)?)"
    r"v?(?P<number>\d+\.\d+(?:\.\d+)*)"
)
_BEFORE = 45
_NO_PRODUCT = frozenset(
    str.split("""
        Version Versions Since Release In The See Section Figure Table Chapter Changed New Added
        Deprecated Removed From Before After Until Appendix Step Part As To And Or Of RFC PEP HTTP
        """)
)
_PLATFORMS = {
    "linux": "Linux", "windows": "Windows", "macos": "macOS", "mac os x": "macOS", "os x": "macOS",
    "mac os": "macOS", "unix": "Unix", "posix": "POSIX", "freebsd": "FreeBSD", "openbsd": "OpenBSD",
    "netbsd": "NetBSD", "solaris": "Solaris", "aix": "AIX", "android": "Android", "ios": "iOS",
    "cygwin": "Cygwin", "emscripten": "WebAssembly", "wasi": "WebAssembly", "debian": "Debian",
    "ubuntu": "Ubuntu", "vxworks": "VxWorks", "docker": "Docker", "kubernetes": "Kubernetes",
}  # fmt: skip
_INSIDE = frozenset("./_-`")
_PLACES = frozenset(("Section", "Figure", "Table", "Chapter", "Appendix", "RFC", "PEP", "HTTP"))
_PREFIX = re.compile(r"\A(?:\d+(?:\.\d+)*\.?|[A-Z]\.|Chapter \d+:?)\s+")


@cache
def _platforms() -> tuple[AhoCorasick, list[str]]:
    names = list(_PLATFORMS)
    return AhoCorasick(names, matchkind=MatchKind.LeftmostLongest), names


def contexts_of(text: str, path: Sequence[str]) -> tuple[str, ...]:
    """Versions and platforms that a chunk names, and the heading that it stands under."""
    said = "\n".join((*path, text))
    found = dict.fromkeys((*_versions(said), *_platforms_in(said)))
    kept = list(found)[: _MOST_CONTEXTS - 1]
    if len(path) > 1:
        leaf = _PREFIX.sub("", path[-1])
        if 0 < len(leaf) <= _LONGEST:
            kept.append(leaf)
    return tuple(dict.fromkeys(kept))


def _versions(text: str) -> Iterator[str]:
    end = 0
    for number in _NUMBER.finditer(text):
        if number.start() < end:
            continue
        for match in _VERSION.finditer(text, max(end, number.start() - _BEFORE)):
            if match.start("number") <= number.start() < match.end():
                end = match.end()
                product = (match["product"] or "").split()
                if product and product[0] in _PLACES:
                    break
                named = (
                    " ".join(product) if product and product[0] not in _NO_PRODUCT else "version"
                )
                yield f"{named} {match['number']}"
            break


def _platforms_in(text: str) -> Iterator[str]:
    automaton, names = _platforms()
    low = folded(text)
    for number, start, end in automaton.find_matches_as_indexes(low):
        before, after = low[start - 1 : start], low[end : end + 1]
        # whole words, of no address and no path
        if not (
            before.isalnum() or after.isalnum() or before in _INSIDE or (after in "/_`" and after)
        ):
            yield _PLATFORMS[names[number]]


def domains_of(passage: Passage) -> tuple[str, ...]:
    """Tags of the document, and what its title and the headings above the chunk name."""
    found = dict.fromkeys(tag for tag in passage.document.tags if len(tag) <= _LONGEST)
    for title in (passage.document.title, *passage.chunk.heading_path[:-1])[:4]:
        found.update(dict.fromkeys(_terms_of(title)))
    return tuple(found)[:_MOST_DOMAINS]


@lru_cache(maxsize=10_000)
def _terms_of(title: str) -> tuple[str, ...]:
    parts = re.split(r"\s+[—–|-]\s+|:\s+", _PREFIX.sub("", title))
    return tuple(part for part in parts if is_term(part))
