"""Check a recipe before a build: offline, and with a few requests."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urljoin, urlsplit

from kbkit.errors import KbkitError, RecipeError
from kbkit.feedback.evaluation_set import is_page
from kbkit.models import Progress
from kbkit.models.values import Value
from kbkit.paths import admits, matches, split_glob
from kbkit.recipes import (
    AnySource,
    CrawlSource,
    FetchSpec,
    FilesSource,
    JsonlSource,
    MirrorSource,
    OpenApiSource,
    PackageSource,
    PageSource,
    ParquetSource,
    Question,
    Recipe,
    golden_questions,
    load_recipe,
)
from kbkit.runtime.config import Settings
from kbkit.runtime.progress import OnProgress
from kbkit.sources import DiskPlace, Outcome, SourceContext, open_reader
from kbkit.sources.files import files_of
from kbkit.sources.web import Fetcher, refused_url
from kbkit.sources.web.urls import Robots, folder, origin
from kbkit.workflows.draft import is_package

QUESTIONS = 8
"""Minimum number of golden questions for a reliable evaluation."""
PROBES = 30
"""Maximum pages requested for one recipe."""
_DELAY = 0.1
_SPACE = re.compile(r"[\s\\]")
_NUMBER = re.compile(r"[\d.]+|.*:.*")  # address of a host


@dataclass(frozen=True, slots=True)
class RecipeFinding(Value):
    """A defect of a recipe.

    Attributes:
        severity: An ``error`` prevents a build; a ``warning`` may be intended.
    """

    severity: Literal["error", "warning"]
    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.field}: {self.message}" if self.field else self.message


def check_recipe(
    path: str | Path, *, online: bool = False, on_progress: OnProgress | None = None
) -> list[RecipeFinding]:
    """List the defects of a recipe, errors first.

    Checks the schema, addresses, patterns, the existence of files and packages, and the pages of
    golden questions. Online, it also requests start pages and pages of golden questions, one at a
    time and with the recipe's delay; it stores nothing.
    """
    try:
        recipe = load_recipe(path)
        questions = golden_questions(recipe)
    except RecipeError as error:
        return [RecipeFinding("error", "", f"error: {problem}") for problem in error.problems]
    findings = [
        finding
        for number, source in enumerate(recipe.sources)
        for finding in _source(source, f"sources[{number}]", recipe.path.parent)
    ]
    findings += _questions(recipe, questions)
    if online and not any(finding.severity == "error" for finding in findings):
        findings += _probed(recipe, questions, on_progress)
    return sorted(findings, key=lambda finding: finding.severity != "error")


def _source(source: AnySource, where: str, base: Path) -> Iterator[RecipeFinding]:
    if url := getattr(source, "url", None):
        yield from _address(url, f"{where}.url")
    if isinstance(source, CrawlSource):
        yield from _crawl(source, where)
    path = getattr(source, "path", None)
    if isinstance(source, MirrorSource | JsonlSource | ParquetSource | OpenApiSource) and path:
        if not (base / Path(path).expanduser()).exists():
            yield RecipeFinding("error", f"{where}.path", f"{path}: no such file or folder")
    elif isinstance(source, FilesSource):
        try:
            files_of(source, base)
        except KbkitError as error:
            yield RecipeFinding("error", f"{where}.path", str(error))
    elif isinstance(source, PackageSource) and not is_package(source.name.partition(".")[0]):
        message = f"{source.name} is not installed; `pip install` it first"
        yield RecipeFinding("error", f"{where}.name", message)


def _address(url: str, where: str) -> Iterator[RecipeFinding]:
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname or ""
    except ValueError:
        yield RecipeFinding("error", where, f"{url}: not a web address")
        return
    if refused := refused_url(url):
        yield RecipeFinding("error", where, f"{url}: {refused}")
    elif port is not None and {"http": 80, "https": 443}[parts.scheme] == port:
        yield RecipeFinding(
            "warning", where, f"port {port} is that of {parts.scheme} anyway; leave it out"
        )
    elif parts.scheme == "http" and "." in host and not _NUMBER.fullmatch(host):
        yield RecipeFinding("warning", where, "http; most sites answer at https://")


def _crawl(source: CrawlSource, where: str) -> Iterator[RecipeFinding]:
    scope = urlsplit(folder(source.url)).path or "/"
    for name in ("include", "exclude"):
        for pattern in getattr(source, name):
            start, _ = split_glob(pattern)
            literal = "/" + start.strip("/") if start.strip("/") else ""
            if pattern.startswith("/") and literal and not _meets(literal, scope):
                message = f"{pattern!r} is outside {scope}, to which the crawl is limited"
                yield RecipeFinding("warning", f"{where}.{name}", message)
            if "://" in pattern:
                message = f"{pattern!r} has a host; patterns are of paths, such as /guide/**"
                yield RecipeFinding("error", f"{where}.{name}", message)
    if matches(urlsplit(source.url).path or "/", source.exclude):
        yield RecipeFinding("warning", f"{where}.exclude", "excludes the start page")
    if source.delay < _DELAY and not source.allow_private:
        message = f"{source.delay:g} s between requests; 0.2 or more is polite to a public site"
        yield RecipeFinding("warning", f"{where}.delay", message)


def _meets(one: str, other: str) -> bool:
    one, other = one.rstrip("/") + "/", other.rstrip("/") + "/"
    return one.startswith(other) or other.startswith(one)


def _questions(recipe: Recipe, questions: tuple[Question, ...]) -> Iterator[RecipeFinding]:
    if len(questions) < QUESTIONS:
        message = f"{len(questions)} golden questions; {QUESTIONS} or more measure search reliably"
        yield RecipeFinding("warning", "questions", message)
    seen: set[str] = set()
    uris, complete = _local_uris(recipe)
    for number, question in enumerate(questions):
        where = f"questions[{number}]"
        key = " ".join(question.question.casefold().split())
        if key in seen:
            yield RecipeFinding("error", where, f"{question.question!r} is asked twice")
        seen.add(key)
        for page in question.relevant:
            if message := _page_problem(page, recipe, uris, complete=complete):
                yield RecipeFinding("error", f"{where}.relevant", message)


def _page_problem(page: str, recipe: Recipe, uris: set[str], *, complete: bool) -> str:
    if not page.strip() or (_SPACE.search(page) and not any(map(page.__eq__, uris))):
        return f"{page!r}: the end of a page's address has no spaces and no backslashes"
    sites = [source for source in recipe.sources if isinstance(source, FetchSpec)]
    if "://" in page:
        places = {origin(url) for source in sites if (url := getattr(source, "url", None))}
        return (
            "" if origin(page) in places or not complete else f"{page}: on no site of the sources"
        )
    if any(is_page(uri, page) for uri in uris):
        return ""
    bare = page.lstrip("/")
    crawls = [source for source in recipe.sources if isinstance(source, CrawlSource)]
    excluding = [source for source in crawls if not _may_contain(source, bare)]
    if complete:
        close = difflib.get_close_matches(bare, uris, n=1, cutoff=0.4)
        hint = f"; the nearest is {close[0]}" if close else ""
        return f"{page}: no source has such a page{hint}"
    if crawls and len(excluding) == len(recipe.sources):
        return f"{page}: the patterns of the crawl exclude it"
    return ""


def _may_contain(source: CrawlSource, page: str) -> bool:
    # the page is a suffix, which may start anywhere in the path
    paths = (urlsplit(url).path for url in _addresses(source, page))
    return any(admits(path, source.include, source.exclude) for path in paths)


def _addresses(source: CrawlSource, page: str) -> list[str]:
    below = urljoin(folder(source.url), page)
    scope = urlsplit(folder(source.url)).path.strip("/")
    last = scope.rpartition("/")[2]
    if last and page.startswith(last + "/"):
        return [urljoin(folder(source.url).rstrip("/"), page), below]
    return [below]


def _local_uris(recipe: Recipe) -> tuple[set[str], bool]:
    uris: set[str] = set()
    complete = True
    base = recipe.path.parent
    for source in recipe.sources:
        if isinstance(source, FilesSource):
            try:
                place = DiskPlace.of(source.path, base)
                uris.update(place.uri(path) for path in files_of(source, base)[0])
            except KbkitError:
                complete = False
            complete = complete and not source.path.endswith((".zip", ".json", ".yaml", ".yml"))
        elif (isinstance(source, OpenApiSource) and source.path) or isinstance(
            source, PackageSource
        ):
            try:
                events = open_reader(source).events(SourceContext(base=base))
                uris.update(event.uri for event in events if event.document is not None)
            except KbkitError:
                complete = False
        else:
            complete = False
    return uris, complete


def _probed(
    recipe: Recipe, questions: tuple[Question, ...], on_progress: OnProgress | None
) -> Iterator[RecipeFinding]:
    settings = Settings.load()
    left = PROBES
    for number, source in enumerate(recipe.sources):
        if not isinstance(source, CrawlSource | PageSource | OpenApiSource) or not source.url:
            continue
        where = f"sources[{number}]"
        with Fetcher(
            user_agent=settings.user_agent,
            timeout=settings.timeout,
            allow_private=source.allow_private,
        ) as fetcher:
            robots = Robots(fetcher, settings.user_agent, source.delay)
            if problem := _problem(robots, source.url):
                yield RecipeFinding("error", f"{where}.url", f"{source.url}: {problem}")
                continue
            if not isinstance(source, CrawlSource):
                continue
            pages = dict.fromkeys(
                _addresses(source, page.split("#")[0].lstrip("/"))[0]
                for question in questions
                for page in question.relevant[:1]
            )
            for done, url in enumerate(list(pages)[:left]):
                if on_progress is not None:
                    on_progress(Progress("probe", done, min(len(pages), left), url))
                if problem := _problem(robots, url):
                    message = f"{url}: {problem}; it may have moved, or be in a deeper folder"
                    yield RecipeFinding("warning", "questions", message)
            left -= min(len(pages), left)


def _problem(robots: Robots, url: str) -> str:
    """Return why a page cannot be read, or ``""``."""
    if verdict := robots.verdict(url):
        return verdict.reason
    robots.wait(url)
    response = robots.fetcher.get(url, max_bytes=200_000, truncate=True)
    return "" if response.outcome is Outcome.FETCHED else response.reason
