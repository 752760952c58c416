"""Drafts of recipes with findings and exclusions, for an API description, a package or a file."""

import os
import re
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from kbkit.errors import ConflictError, SourceError
from kbkit.models.values import plain, pluralize
from kbkit.recipes import parse_recipe
from kbkit.recipes.base import SLUG
from kbkit.sources.formats import FORMATS
from kbkit.sources.openapi import ApiDescription, is_openapi
from kbkit.sources.package import origin_of
from kbkit.sources.untrusted import load_values


class Exclusion(NamedTuple):
    """An excluded part.

    Attributes:
        pattern: Pattern for a source's ``exclude``.
        pages: Number of known pages that it excludes.
    """

    pattern: str
    reason: str
    pages: int = 0


@dataclass(frozen=True, slots=True)
class Draft:
    """A recipe before it is written.

    Attributes:
        source: The source as in a recipe, without exclusions.
        findings: Findings, written as comments.
        language: Snowball name of the language, or ``""`` for English.
        license: License that the source states, or ``""``.
        attribution: Credit that the source states, or ``""``.
        questions: Golden questions with their pages.
    """

    name: str
    description: str
    source: dict[str, Any]
    findings: tuple[str, ...] = ()
    excluded: tuple[Exclusion, ...] = ()
    language: str = ""
    license: str = ""
    attribution: str = ""
    title: str = ""
    questions: tuple[tuple[str, str], ...] = field(default=())

    def to_yaml(self) -> str:
        from jinja2 import Environment, PackageLoader  # slow to import

        environment = Environment(
            loader=PackageLoader("kbkit.workflows", ""),
            autoescape=False,  # noqa: S701  # `scalar` and `line` escape for YAML
            trim_blocks=True,
            keep_trailing_newline=True,
        )
        environment.filters |= {"scalar": _scalar, "line": _line, "pluralize": pluralize}
        return environment.get_template("recipe.yaml.j2").render(draft=self)


def check_free(path: Path) -> None:
    if path.exists():
        raise ConflictError(f"{path}: exists; name another file with --output, or add --force")


def write_draft(draft: Draft, path: str | Path | None = None, *, force: bool = False) -> Path:
    target = Path(path) if path is not None else Path(f"{draft.name}.yaml")
    if not force:
        check_free(target)
    text = draft.to_yaml()
    parse_recipe(text, target)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8", newline="\n")
    return target


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        value = _line(value)
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10_000)
    return text.removesuffix("\n").removesuffix("\n...").strip()


def _line(text: str) -> str:
    return re.sub(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+", " ", text).strip()[:300]


def draft_of_description(values: Any, place: dict[str, Any], name: str) -> Draft:
    documents = list(ApiDescription(values, name).documents())
    overview = documents[0].metadata
    title = plain(overview["api"])
    label = f"{title} {plain(overview.get('version', ''))}".rstrip()
    return Draft(
        name=slug(title, "api"),
        description=overview.get("description", "")[:200] or f"{title}, its API",
        source={"type": "openapi", **place},
        findings=(
            f"An OpenAPI description: {label}.",
            f"{pluralize(len(documents))}: an overview, operations and schemas.",
        ),
        license=overview.get("license", ""),
        title=title,
    )


def slug(text: str, fallback: str = "docs", *, max_length: int = 63) -> str:
    name = re.sub(r"[^a-z0-9]+", "-", text.casefold()).strip("-")[:max_length].strip("-")
    return name if SLUG.fullmatch(name) else fallback


_DESCRIPTIONS = (".yaml", ".yml", ".json")
_MAX_BYTES = 20_000_000


def is_package(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError, AttributeError):
        return False


def draft_of_package(name: str) -> Draft:
    origin = origin_of(name)
    return Draft(
        name=slug(name),
        description=plain(origin.summary or f"The Python API of {name}"),
        source={"type": "package", "name": name},
        findings=(
            f"The API of the Python package {name} {origin.version}".rstrip()
            + ", read from its docstrings.",
            "Add `introspect: true` for what exists only after an import (which runs its code).",
        ),
        license=origin.license.name,
        title=name,
    )


def draft_of_file(path: Path, base: Path) -> Draft:
    if path.suffix.lower() in _DESCRIPTIONS and path.stat().st_size <= _MAX_BYTES:
        values = load_values(path.read_text(encoding="utf-8", errors="replace"))
        if is_openapi(values) or (isinstance(values, dict) and "swagger" in values):
            return draft_of_description(values, {"path": inside(path, base)}, str(path))
    if path.suffix.lower() in (".warc", ".zip", ".gz", ".docset"):
        raise SourceError(f"{path}: an archive; write a source of type mirror, with its base_url")
    if path.suffix.lower() not in FORMATS:
        raise SourceError(
            f"{path}: not a format that kbkit reads; it reads {', '.join(sorted(FORMATS))}"
        )
    return Draft(
        name=slug(path.stem),
        description="",
        source={"type": "files", "path": inside(path, base)},
        findings=(f"One file, {path.stat().st_size / 1e6:.1f} MB.",),
        title=path.stem,
    )


def inside(path: Path, base: Path) -> str:
    try:
        return Path(os.path.relpath(path.resolve(), base.resolve())).as_posix()
    except ValueError:  # another drive
        return path.resolve().as_posix()
