"""Draft a recipe for a web site.

A site is asked for robots.txt, its start page and its sitemaps, no more, by the guarded fetcher.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from urllib.parse import unquote, urljoin, urlsplit

from kbkit.config import Settings
from kbkit.errors import FetchError, SourceError
from kbkit.globs import matches
from kbkit.models import Progress
from kbkit.models.plain import plain
from kbkit.progress import OnProgress
from kbkit.recipe_drafts.descriptions import draft_of_description
from kbkit.recipe_drafts.draft import Draft, Exclusion
from kbkit.recipe_drafts.generators import generator_of, known_exclusions
from kbkit.recipes.schema import SLUG
from kbkit.sources.base import Outcome
from kbkit.sources.decode import decode
from kbkit.sources.html.applications import NEEDS_BROWSER, is_shell
from kbkit.sources.html.dom import Element, links, normalized_text, parse
from kbkit.sources.html.licenses import page_license
from kbkit.sources.json_yaml import load_values
from kbkit.sources.web.downloads import RateLimiter
from kbkit.sources.web.fetch import Fetcher, Response
from kbkit.sources.web.robots import Robots, read_sitemaps
from kbkit.sources.web.urls import Scope, canonical, origin

POLITE = 0.2
"""Seconds between two requests that a draft asks for, where the site does not ask for more."""
_LIMIT = 1000
_SHOWN = 8  # sections that are named
_SECTIONS = {
    "search": "search page",
    "genindex": "index",
    "tags": "lists by tag",
    "tag": "lists by tag",
    "categories": "lists",
    "authors": "lists",
    "author": "lists",
    "blog": "blog",
    "news": "news",
    "changelog": "change log",
    "release-notes": "release notes",
    "releases": "release notes",
    "print": "pages for printing",
    "_print": "pages for printing",
    "archive": "old versions",
    "archives": "old versions",
    "404": "error page",
    "_sources": "sources of the pages",
    "_modules": "source code",
    "login": "no documentation",
    "signup": "no documentation",
}
_GENERIC = re.compile(
    r"introduction|overview|home(?: ?page)?|index|welcome|contents", re.IGNORECASE
)
_ABOUT_DOCUMENTS = re.compile(
    r"\b(?:documentation|docs|welcome to|the|manual|home)\b", re.IGNORECASE
)
_WORD = re.compile(r"[^\W\d_]{2}")
_IN_BRACKETS = re.compile(r"(?:overview|introduction|index) \((.+)\)", re.IGNORECASE)
_LANGUAGES = {
    "ar": "arabic",
    "ca": "catalan",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "es": "spanish",
    "et": "estonian",
    "eu": "basque",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "hi": "hindi",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    "lt": "lithuanian",
    "ne": "nepali",
    "nl": "dutch",
    "no": "norwegian",
    "nb": "norwegian",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sr": "serbian",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
}
_OTHER_LANGUAGES = frozenset(str.split("en ja ko zh pl cs uk vi th fa he bg sk sl hr bn"))
_LOCALE = re.compile(r"([a-z]{2})(?:[-_](?:[a-z]{2}|hans|hant|latn|cyrl))?", re.IGNORECASE)
_VERSION = re.compile(r"v?\d+(?:\.(?:\d+|x))*(?:\.x)?|v\d+")
_COMING = frozenset({"next", "dev", "nightly", "unstable", "main", "master", "develop", "devel"})
_PRESENT = frozenset({"latest", "stable", "current"})


def draft_of_site(
    url: str, *, allow_private: bool = False, on_progress: OnProgress | None = None
) -> Draft:
    """Look at a site and draft the recipe that crawls it."""
    start = canonical(url)
    if not start:
        raise SourceError(f"{url}: not a web address that can be fetched")
    settings = Settings.load()
    with Fetcher(
        user_agent=settings.user_agent, timeout=settings.timeout, allow_private=allow_private
    ) as fetcher:
        robots = Robots(fetcher, settings.user_agent)
        _tell(on_progress, 0, start)
        if verdict := robots.verdict(start):
            raise FetchError(f"{start}: {verdict.reason}")
        response = fetcher.get(start)
        if response.outcome is not Outcome.FETCHED:
            raise FetchError(f"{start}: {response.reason}")
        text = decode(response.body, response.charset)
        values = _description(text, response.media_type)
        if values is not None:
            return draft_of_description(values, _source("openapi", start, allow_private), start)
        root = parse(text) if text.strip() else None
        if root is None or root.find("body") is None:
            raise SourceError(f"{start}: no page of HTML")
        scope = Scope(start)
        scope.follow_start(canonical(response.url))
        _tell(on_progress, 1, "sitemaps")
        pace = RateLimiter(robots, POLITE, lambda: False)
        named = robots.sitemaps(scope.prefix)
        usual = [origin(scope.prefix) + "/sitemap.xml", scope.prefix + "sitemap.xml"]
        mapped = read_sitemaps(
            fetcher,
            [*named, *usual],
            wants=lambda one: scope.link(one, ""),
            check=lambda one: _refused(robots, one),
            wait=pace.wait,
            stop=lambda: False,
        )
        linked = [page for href in links(root) if (page := scope.link(href, response.url))]
        pages = list(dict.fromkeys([*mapped, *linked]))
        return _draft(
            start,
            root,
            text,
            pages,
            scope,
            mapped=len(mapped),
            delay=robots.delay(start),
            allow_private=allow_private,
        )


def title_of(root: Element) -> str:
    named = next((text for part in root.iter("title") if (text := normalized_text(part))), "")
    parts = re.split(r"\s+[|—–·]\s+|\s+-\s+", named)
    own = parts[-1] if _GENERIC.fullmatch(parts[0]) else parts[0]
    if inner := _IN_BRACKETS.fullmatch(own):
        own = inner[1]
    if not _WORD.search(_ABOUT_DOCUMENTS.sub(" ", own)):  # "3.11 documentation" is not its name
        own = next((text for head in root.iter("h1") if (text := normalized_text(head))), own)
    return plain(own)[:80]


def _draft(
    start: str,
    root: Element,
    html: str,
    pages: Sequence[str],
    scope: Scope,
    *,
    mapped: int,
    delay: float,
    allow_private: bool,
) -> Draft:
    generator, title = generator_of(root, html), title_of(root)
    language = (root.get("lang") or "").strip().lower()[:2]
    prefix = urlsplit(scope.prefix).path
    paths = [urlsplit(page).path for page in pages]
    excluded = exclusions(prefix, paths, generator, language, _translations(root, start))
    left = _left(paths, excluded)
    stated = page_license(root, start)
    seen = [f"{'A site' if not generator else f'A site made by {generator}'}: {start}"]
    if mapped:
        seen.append(f"Its sitemaps name {mapped:,} pages here; {len(left):,} are left to read.")
    else:
        seen.append(f"No sitemap: the crawl follows links ({len(paths):,} on the start page).")
    if sections := _sections(prefix, left):
        seen.append(f"Sections: {sections}.")
    if language and language != "en":
        name = _LANGUAGES.get(language)
        seen.append(
            f"Its language is {name or language}"
            + ("." if name else ", for which words are not stemmed.")
        )
    if is_shell(root):
        seen.append(NEEDS_BROWSER[0].upper() + NEEDS_BROWSER[1:] + ".")
    described = next(
        (
            plain(meta.get("content") or "")
            for meta in root.iter("meta")
            if (meta.get("name") or "").lower() == "description"
        ),
        "",
    )
    source = _source("crawl", start, allow_private)
    source |= {"limit": max(100, -(-len(left) * 5 // 4 // 50) * 50) if mapped else _LIMIT}
    source |= {"delay": max(POLITE, round(delay, 1))}
    return Draft(
        name=_name(title, start),
        description=described[:200],
        source=source,
        seen=tuple(seen),
        excluded=tuple(excluded),
        language=_LANGUAGES.get(language, ""),
        license=stated.name or stated.url,
        attribution=stated.attribution,
        title=title,
    )


def exclusions(
    prefix: str,
    paths: Sequence[str],
    generator: str,
    language: str,
    translations: Iterable[str] = (),
) -> list[Exclusion]:
    """List parts of a site to exclude, the largest first."""
    inside = [path.removeprefix(prefix) for path in paths if path.startswith(prefix)]
    first = Counter(part.split("/")[0] for part in inside if "/" in part)
    found: dict[str, str] = {}
    for folder in (
        path.removeprefix(prefix).split("/")[0] for path in translations if path.startswith(prefix)
    ):
        if folder in first:
            found[f"{prefix}{folder}/**"] = "a translation"
    locales = [name for name in first if _is_locale(name) and name.lower()[:2] != language]
    if len(locales) >= 2 or any(_is_locale(name) and name not in locales for name in first):
        found |= dict.fromkeys((f"{prefix}{name}/**" for name in sorted(locales)), "a translation")
    found |= dict.fromkeys((f"{prefix}{name}/**" for name in _versions(first)), "another version")
    for known in known_exclusions(generator):
        found[known.pattern.replace("/{scope}/", prefix)] = known.reason
    for name, reason in _SECTIONS.items():
        if first[name]:
            found.setdefault(f"{prefix}{name}/**", reason)
        if not {f"{prefix}{name}*", f"{prefix}{name}.html"} & found.keys() and any(
            re.fullmatch(rf"{re.escape(name)}(?:\.html?|/)?", part) for part in inside
        ):
            found |= {f"{prefix}{name}*": reason, f"{prefix}{name}/**": reason}
    counted = [
        Exclusion(pattern, reason, sum(matches(path, (pattern,)) for path in paths))
        for pattern, reason in found.items()
    ]
    return sorted(counted, key=lambda each: -each.pages)


def _versions(first: Counter[str]) -> list[str]:
    numbered = [name for name in first if _VERSION.fullmatch(name)]
    present = [name for name in first if name in _PRESENT]
    coming = [name for name in first if name in _COMING]
    if not numbered and len(present) + len(coming) < 2:
        return coming if present or sum(first.values()) > sum(first[one] for one in coming) else []
    rest = sum(
        number for name, number in first.items() if name not in (*numbered, *present, *coming)
    )
    if present:
        keep = next(one for one in ("stable", "latest", "current") if one in present)
        return [name for name in (*sorted(numbered), *present, *coming) if name != keep]
    if rest:  # the present version has no folder of its own
        return [*sorted(numbered), *coming] if len(numbered) > 1 or coming else []
    newest = max(numbered, key=_order)
    return [name for name in (*sorted(numbered), *coming) if name != newest]


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:4])


def _is_locale(name: str) -> bool:
    match = _LOCALE.fullmatch(name)
    return match is not None and match[1].lower() in (_LANGUAGES.keys() | _OTHER_LANGUAGES)


def _translations(root: Element, start: str) -> list[str]:
    found = []
    for link in root.iter("link"):
        if "alternate" in (link.get("rel") or "").split() and link.get("hreflang"):
            try:
                other = urljoin(start, link.get("href") or "")
            except ValueError:
                continue
            same = (link.get("hreflang") or "").lower()[:2] == (root.get("lang") or "").lower()[:2]
            if origin(other) == origin(start) and other != start and not same:
                found.append(urlsplit(other).path)
    return [path for path in found if path]


def _left(paths: Sequence[str], excluded: Sequence[Exclusion]) -> list[str]:
    patterns = [each.pattern for each in excluded]
    return [path for path in paths if not matches(path, patterns)]


def _sections(prefix: str, paths: Sequence[str]) -> str:
    counted = Counter(
        unquote(inside.split("/")[0])
        for path in paths
        if path.startswith(prefix) and "/" in (inside := path.removeprefix(prefix))
    )
    return ", ".join(f"{plain(name)} ({number:,})" for name, number in counted.most_common(_SHOWN))


def _source(kind: str, url: str, allow_private: bool) -> dict[str, object]:
    source: dict[str, object] = {"url": url} if kind == "openapi" else {"type": kind, "url": url}
    return source | ({"allow_private": True} if allow_private else {})


def _name(title: str, start: str) -> str:
    words = _ABOUT_DOCUMENTS.sub(" ", title.casefold())
    host = urlsplit(start).hostname or ""
    for text in (words, title.casefold(), "" if re.fullmatch(r"[\d.:]+", host) else host):
        found = re.sub(r"[^a-z0-9]+", "-", text.removeprefix("www.")).strip("-")[:40].strip("-")
        if SLUG.fullmatch(found):
            return found
    return "docs"


def _description(text: str, media_type: str) -> object | None:
    head = text.lstrip()[:200]
    if head.startswith("<") or not re.search(r"openapi|swagger", text[:2_000], re.IGNORECASE):
        return None
    if "html" in media_type:
        return None
    try:
        values = load_values(text)
    except ValueError:
        return None
    return values if isinstance(values, dict) else None


def _refused(robots: Robots, url: str) -> Response | None:
    verdict = robots.verdict(url)
    return Response(url, verdict.outcome, verdict.reason) if verdict else None


def _tell(on_progress: OnProgress | None, done: int, message: str) -> None:
    if on_progress is not None:
        on_progress(Progress("look", done, 2, message))
