"""Draft a recipe from a site, a folder, a package or an API description.

For a site, it requests only robots.txt, the start page and sitemaps.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from urllib.parse import unquote, urlsplit

from kbkit.errors import FetchError, SourceError
from kbkit.models import Progress
from kbkit.models.values import plain
from kbkit.paths import matches, walk
from kbkit.recipes import FetchSpec
from kbkit.runtime.config import Settings
from kbkit.runtime.progress import OnProgress, ignore
from kbkit.sources import Outcome, SourceContext
from kbkit.sources.decode import decode
from kbkit.sources.formats import FORMATS
from kbkit.sources.html import Element, links, parse, plain_text
from kbkit.sources.html.extract import NEEDS_BROWSER, extract, is_shell
from kbkit.sources.untrusted import load_values
from kbkit.sources.web.pages import open_robots
from kbkit.sources.web.urls import CrawlScope, canonical, read_sitemaps
from kbkit.workflows import draft
from kbkit.workflows.draft import Draft, Exclusion, inside, slug

_SITES = tomllib.loads(Path(__file__).with_name("known_sites.toml").read_text("utf-8"))
_MARKS: dict[str, str] = _SITES["marks"]
_GENERATORS: dict[str, str] = {name.lower(): name for name in _SITES["generators"].split()} | {
    "docutils": "Sphinx"
}


def known_exclusions(generator: str, prefix: str) -> list[Exclusion]:
    return [
        Exclusion(pattern if pattern.startswith("**/") else prefix + pattern, f"of {generator}")
        for pattern in _SITES["generated"].get(generator, "").split()
    ]


def generator_of(root: Element, html: str) -> str:
    for meta in root.iter("meta"):
        if (meta.get("name") or "").lower() == "generator":
            word = re.match(r"[a-z]+", (meta.get("content") or "").strip().lower())
            if word and word[0] in _GENERATORS:
                return _GENERATORS[word[0]]
    return next((name for name, mark in _MARKS.items() if re.search(mark, html)), "")


POLITE = 0.2
"""Minimum seconds between two requests in a draft."""
_LIMIT = 1000
_SHOWN = 8  # sections listed
_GENERIC = re.compile(r"introduction|overview|home(?: ?page)?|index|welcome|contents", re.I)
_ABOUT_DOCUMENTS = re.compile(r"\b(?:documentation|docs|welcome to|the|manual|home)\b", re.I)
_WORD = re.compile(r"[^\W\d_]{2}")
_IN_BRACKETS = re.compile(r"(?:overview|introduction|index) \((.+)\)", re.IGNORECASE)
_LANGUAGES: dict[str, str] = _SITES["languages"]
_LOCALES = frozenset((*_LANGUAGES, *_SITES["other_languages"].split()))
_LOCALE = re.compile(r"([a-z]{2})(?:[-_](?:[a-z]{2}|hans|hant|latn|cyrl))?", re.IGNORECASE)
_VERSION = re.compile(r"v?\d+(?:\.(?:\d+|x))*(?:\.x)?|v\d+")


def draft_of_site(
    url: str, *, allow_private: bool = False, on_progress: OnProgress | None = None
) -> Draft:
    """Look at a site and draft the recipe that crawls it."""
    start = canonical(url)
    if not start:
        raise SourceError(f"{url}: not a web address that can be fetched")
    settings = Settings.load()
    spec = FetchSpec(allow_private=allow_private, delay=POLITE)
    context = SourceContext(user_agent=settings.user_agent, timeout=settings.timeout)
    notify = on_progress or ignore
    with closing(open_robots(spec, context)) as robots:
        notify(Progress("look", 0, 2, start))
        response = robots.get(start)
        if response.outcome is not Outcome.FETCHED:
            raise FetchError(f"{start}: {response.reason}")
        text = decode(response.body, response.charset)
        values = _description(text, response.media_type)
        if values is not None:
            source = _source("openapi", start, allow_private)
            return draft.draft_of_description(values, source, start)
        root = parse(text)
        if root is None or root.find("body") is None:
            raise SourceError(f"{start}: not an HTML page")
        scope = CrawlScope(start)
        scope.follow_start(canonical(response.url))
        notify(Progress("look", 1, 2, "sitemaps"))
        sitemap_pages = read_sitemaps(robots, scope, guess=True)
        linked_pages = [page for href in links(root) if (page := scope.link(href, response.url))]
        source = _source("crawl", start, allow_private)
        source |= {"limit": _LIMIT, "delay": round(robots.delay(start), 1)}
    start = scope.start
    generator, title = generator_of(root, text), title_of(root)
    language = (root.get("lang") or "").strip().lower()[:2]
    prefix = urlsplit(scope.prefix).path
    paths = [urlsplit(page).path for page in dict.fromkeys([*sitemap_pages, *linked_pages])]
    excluded = exclusions(prefix, paths, generator, language)
    patterns = [each.pattern for each in excluded]
    remaining = [path for path in paths if not matches(path, patterns)]
    first = extract(text, start)
    findings = [f"{'A site' if not generator else f'A site made by {generator}'}: {start}"]
    if sitemap_pages:
        source["limit"] = max(100, -(-len(remaining) * 5 // 4 // 50) * 50)
        findings.append(
            f"Its sitemaps name {len(sitemap_pages):,} pages here; "
            f"{len(remaining):,} are left to read."
        )
    else:
        findings.append(f"No sitemap: the crawl follows links ({len(paths):,} on the start page).")
    if sections := _sections(prefix, remaining):
        findings.append(f"Sections: {sections}.")
    if language and language != "en":
        name = _LANGUAGES.get(language)
        findings.append(
            f"Its language is {name or language}"
            + ("." if name else ", for which words are not stemmed.")
        )
    if is_shell(root):
        findings.append(NEEDS_BROWSER[0].upper() + NEEDS_BROWSER[1:] + ".")
    return Draft(
        name=_name(title, start),
        description=first.description[:200],
        source=source,
        findings=tuple(findings),
        excluded=tuple(excluded),
        language=_LANGUAGES.get(language, ""),
        license=first.license.name or first.license.url,
        attribution=first.license.attribution,
        title=title,
    )


def title_of(root: Element) -> str:
    page_title = next((text for part in root.iter("title") if (text := plain_text(part))), "")
    parts = re.split(r"\s+[|—–·]\s+|\s+-\s+", page_title)
    title = parts[-1] if _GENERIC.fullmatch(parts[0]) else parts[0]
    if inner := _IN_BRACKETS.fullmatch(title):
        title = inner[1]
    if not _WORD.search(_ABOUT_DOCUMENTS.sub(" ", title)):  # "3.11 documentation" is no name
        title = next((text for head in root.iter("h1") if (text := plain_text(head))), title)
    return plain(title)[:80]


def exclusions(prefix: str, paths: Sequence[str], generator: str, language: str) -> list[Exclusion]:
    """List parts of a site to exclude, the largest first."""
    relative = [path.removeprefix(prefix) for path in paths if path.startswith(prefix)]
    folders = Counter(part.split("/")[0] for part in relative if "/" in part)
    reasons: dict[str, str] = {}
    locales = [name for name in folders if _is_locale(name) and name.lower()[:2] != language]
    if len(locales) >= 2 or any(_is_locale(name) and name not in locales for name in folders):
        reasons |= {f"{prefix}{name}/**": "a translation" for name in sorted(locales)}
    reasons |= {f"{prefix}{name}/**": "another version" for name in _versions(folders)}
    reasons |= {each.pattern: each.reason for each in known_exclusions(generator, prefix)}
    for name in _SITES["sections"].split():
        if folders[name]:
            reasons.setdefault(f"{prefix}{name}/**", name)
        if not {f"{prefix}{name}*", f"{prefix}{name}.html"} & reasons.keys() and any(
            re.fullmatch(rf"{re.escape(name)}(?:\.html?|/)?", part) for part in relative
        ):
            reasons |= {f"{prefix}{name}*": name, f"{prefix}{name}/**": name}
    excluded = [
        Exclusion(pattern, reason, sum(matches(path, (pattern,)) for path in paths))
        for pattern, reason in reasons.items()
    ]
    return sorted(excluded, key=lambda each: -each.pages)


def _versions(folders: Counter[str]) -> list[str]:
    """List version folders but the current one: by name, else pages outside, else the newest."""
    numbered = sorted(name for name in folders if _VERSION.fullmatch(name))
    current = [name for name in ("stable", "latest", "current") if name in folders]
    unreleased = [name for name in folders if name in _SITES["unreleased"].split()]
    names = [*numbered, *current, *unreleased]
    outside = folders.total() > sum(folders[name] for name in names)
    if outside and names == numbered[:1]:
        return []
    keep = current[:1] if current or outside else sorted(numbered, key=_order)[-1:] or names[:1]
    return [name for name in names if name not in keep]


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:4])


def _is_locale(name: str) -> bool:
    match = _LOCALE.fullmatch(name)
    return match is not None and match[1].lower() in _LOCALES


def _sections(prefix: str, paths: Sequence[str]) -> str:
    counts = Counter(
        unquote(relative.split("/")[0])
        for path in paths
        if path.startswith(prefix) and "/" in (relative := path.removeprefix(prefix))
    )
    return ", ".join(f"{plain(name)} ({number:,})" for name, number in counts.most_common(_SHOWN))


def _source(kind: str, url: str, allow_private: bool) -> dict[str, object]:
    source: dict[str, object] = {"type": kind, "url": url}
    return source | ({"allow_private": True} if allow_private else {})


def _name(title: str, start: str) -> str:
    words = _ABOUT_DOCUMENTS.sub(" ", title.casefold())
    host = urlsplit(start).hostname or ""
    for text in (words, title.casefold(), "" if re.fullmatch(r"[\d.:]+", host) else host):
        if name := slug(text.removeprefix("www."), "", max_length=40):
            return name
    return "docs"


def _description(text: str, media_type: str) -> object | None:
    is_markup = "html" in media_type or text.lstrip().startswith("<")
    if is_markup or not re.search(r"openapi|swagger", text[:2_000], re.IGNORECASE):
        return None
    try:
        values = load_values(text)
    except ValueError:
        return None
    return values if isinstance(values, dict) else None


_PACKAGE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_MAX_FILES = 50_000


def draft_recipe(
    place: str,
    *,
    base: str | Path = ".",
    allow_private: bool = False,
    on_progress: OnProgress | None = None,
) -> Draft:
    if "://" in place:
        return draft_of_site(place, allow_private=allow_private, on_progress=on_progress)
    path = Path(place).expanduser()
    if path.is_dir():
        return _folder(path, Path(base))
    if path.is_file():
        return draft.draft_of_file(path, Path(base))
    if _PACKAGE.fullmatch(place) and draft.is_package(place):
        return draft.draft_of_package(place)
    hint = f"; for a site write https://{place}" if "." in place and "/" not in place[:1] else ""
    raise SourceError(f"{place}: not a web address, file, folder or installed Python package{hint}")


def _folder(path: Path, base: Path) -> Draft:
    kinds, folders, pages = Counter[str](), Counter[str](), 0
    for number, (file, within) in enumerate(walk(path)):
        if number >= _MAX_FILES:
            break
        suffix = file.suffix.lower()
        if suffix in (".html", ".htm"):
            pages += 1
        if suffix in FORMATS and not file.name.startswith("."):
            kinds[suffix] += 1
            for part in Path(within).parts[:-1]:
                folders[part] += 1
    if not kinds:
        raise SourceError(f"{path}: nothing in it that kbkit reads")
    counts = ", ".join(f"{number:,} {suffix}" for suffix, number in kinds.most_common(6))
    name = path.resolve().name
    place = inside(path, base)
    if (path / "index.html").is_file() and pages * 2 > sum(kinds.values()):
        return _mirror(path, place, counts)
    excluded = [
        Exclusion(f"**/{folder}/**", folder, folders[folder])
        for folder in _SITES["folders"].split()
        if folders[folder]
    ]
    return Draft(
        name=slug(name),
        description="",
        source={"type": "files", "path": place},
        findings=(f"Files: {counts}.", "Name a glob such as docs/**/*.md to read some only."),
        excluded=tuple(excluded),
        title=name,
    )


def _mirror(path: Path, place: str, counts: str) -> Draft:
    html = (path / "index.html").read_text(encoding="utf-8", errors="replace")
    address = generator = title = ""
    if (root := parse(html)) is not None:
        generator, title = generator_of(root, html), title_of(root)
        published = (link.get("href") or "" for link in root.iterfind(".//link[@rel='canonical']"))
        address = next((url for url in published if url.startswith("http")), "")
    seen = [f"A built site{f', made by {generator}' if generator else ''}: {counts}."]
    if not address:
        seen.append(
            "Its pages do not say where they are published: change base_url to that address."
        )
    base_url = address or "https://example.org/docs/"
    return Draft(
        name=slug(title or path.resolve().name),
        description="",
        source={"type": "mirror", "path": place, "base_url": base_url},
        findings=tuple(seen),
        excluded=tuple(known_exclusions(generator, "/")),
        title=title,
    )
