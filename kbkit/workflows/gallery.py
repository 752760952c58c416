"""Recipes: the gallery for known sites and all kinds of sources, and the check of a recipe."""

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from kbkit import recipes
from kbkit.errors import ConflictError, KbkitError, NotFoundError, RecipeError
from kbkit.models.values import Value, did_you_mean
from kbkit.paths import matches, split_glob
from kbkit.recipes import CrawlSource, Question, Recipe, golden_questions, load_recipe
from kbkit.sources.files import files_of
from kbkit.sources.web import refusal_of
from kbkit.sources.web.urls import folder
from kbkit.workflows.draft import is_package

_PACKAGED = Path(__file__).with_name("gallery")
_REPOSITORY = Path(__file__).parents[2] / "recipes"
_NOT_LISTED = frozenset({"notebook", "quickstart"})  # they read kbkit's own repository
_FIGURES = "figures.json"


@dataclass(frozen=True, slots=True)
class GalleryRecipe(Value):
    """A recipe of the gallery.

    Attributes:
        about: Scope and exclusions, in a sentence or two.
        license: License of the documents, as far as known.
        figures: Cost and quality of a run; empty without a run.
    """

    name: str
    about: str
    sources: tuple[str, ...]
    address: str
    license: str
    questions: int
    path: Path
    figures: Mapping[str, Any] = field(default_factory=dict)


def list_recipes() -> list[GalleryRecipe]:
    """List the recipes of the gallery, sorted by name."""
    gallery = _PACKAGED if _PACKAGED.is_dir() else _REPOSITORY
    figures: dict[str, Any] = {}
    if (gallery / _FIGURES).is_file():
        figures = json.loads((gallery / _FIGURES).read_text(encoding="utf-8"))["recipes"]
    paths = [path for path in sorted(gallery.glob("*.yaml")) if path.stem not in _NOT_LISTED]
    return [
        GalleryRecipe(
            path.stem,
            notes(path),
            tuple(dict.fromkeys(source.type for source in recipe.sources)),
            _address(recipe),
            recipe.license,
            len(golden_questions(recipe)),
            path,
            figures.get(path.stem, {}),
        )
        for path, recipe in ((path, load_recipe(path)) for path in paths)
    ]


def copy_recipe(name: str, folder: str | Path = ".", *, force: bool = False) -> list[Path]:
    paths = {recipe.name: recipe.path for recipe in list_recipes()}
    if name not in paths:
        hint = did_you_mean(name, paths, "`kbkit recipes list` shows them")
        raise NotFoundError(f"{name}: no such recipe in the gallery; {hint}")
    source, target = paths[name], Path(folder)
    companions = sorted(path for path in source.with_suffix("").rglob("*") if path.is_file())
    pairs = [(path, target / path.relative_to(source.parent)) for path in (source, *companions)]
    existing = [copy for _, copy in pairs if copy.exists()]
    if existing and not force:
        raise ConflictError(f"{existing[0]}: exists; name another folder, or add --force")
    for original, copy in pairs:
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(original, copy)
    return [copy for _, copy in pairs]


def notes(path: Path) -> str:
    lines = path.read_text(encoding="utf-8").splitlines()
    head = takewhile(lambda line: line.startswith("#"), lines)
    return " ".join(line.lstrip("# ").rstrip() for line in head)


def _address(recipe: Recipe) -> str:
    source = recipe.sources[0]
    return next(
        (str(value) for key in ("url", "path", "name") if (value := getattr(source, key, None))), ""
    )


QUESTIONS = 8
"""Minimum number of golden questions for a reliable evaluation."""
_DELAY = 0.1
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


def check_recipe(path: str | Path) -> list[RecipeFinding]:
    """Find defects of a recipe, errors first, without requests.

    Checks the schema, addresses, patterns, and the existence of files and packages. An evaluation
    reports golden questions whose pages do not exist.
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
    findings += _questions(questions)
    return sorted(findings, key=lambda finding: finding.severity != "error")


def _source(source: recipes.AnySource, where: str, base: Path) -> Iterator[RecipeFinding]:
    if url := getattr(source, "url", None):
        yield from _address_findings(url, f"{where}.url")
    if isinstance(source, CrawlSource):
        yield from _crawl(source, where)
    path = getattr(source, "path", None)
    if isinstance(source, recipes.FilesSource):
        try:
            files_of(source, base)
        except KbkitError as error:
            yield RecipeFinding("error", f"{where}.path", str(error))
    elif path and not (base / Path(path).expanduser()).exists():
        yield RecipeFinding("error", f"{where}.path", f"{path}: no such file or folder")
    elif isinstance(source, recipes.PackageSource) and not is_package(source.name.split(".")[0]):
        message = f"{source.name} is not installed; `pip install` it first"
        yield RecipeFinding("error", f"{where}.name", message)


def _address_findings(url: str, where: str) -> Iterator[RecipeFinding]:
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname or ""
    except ValueError:
        yield RecipeFinding("error", where, f"{url}: not a web address")
        return
    if refusal := refusal_of(url):
        yield RecipeFinding("error", where, f"{url}: {refusal}")
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


def _meets(path: str, scope: str) -> bool:
    path, scope = path.rstrip("/") + "/", scope.rstrip("/") + "/"
    return path.startswith(scope) or scope.startswith(path)


def _questions(questions: tuple[Question, ...]) -> Iterator[RecipeFinding]:
    if len(questions) < QUESTIONS:
        message = f"{len(questions)} golden questions; {QUESTIONS} or more measure search reliably"
        yield RecipeFinding("warning", "questions", message)
    seen: set[str] = set()
    for number, question in enumerate(questions):
        key = " ".join(question.question.casefold().split())
        if key in seen:
            message = f"{question.question!r} is asked twice"
            yield RecipeFinding("error", f"questions[{number}]", message)
        seen.add(key)
