"""A draft of a recipe: findings, exclusions and reasons."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from kbkit.errors import ConflictError, SourceError
from kbkit.models import License
from kbkit.models.values import plain, pluralize
from kbkit.recipes import parse_recipe
from kbkit.recipes.schema import SLUG
from kbkit.sources.openapi import ApiDescription, version_problem

_WIDTH = 96


@dataclass(frozen=True, slots=True)
class Exclusion:
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
        seen: Findings, written as comments.
        language: Snowball name of the language, or ``""`` for English.
        license: License that the source states, or ``""``.
        attribution: Credit that the source states, or ``""``.
        questions: Golden questions with their pages.
    """

    name: str
    description: str
    source: dict[str, Any]
    seen: tuple[str, ...] = ()
    excluded: tuple[Exclusion, ...] = ()
    language: str = ""
    license: str = ""
    attribution: str = ""
    title: str = ""
    questions: tuple[tuple[str, str], ...] = field(default=())

    def to_yaml(self) -> str:
        lines = [f"# {line}" for line in self.seen]
        missing = {
            "description": "# description: its topic, in a sentence",
            "license": "# license: CC-BY-4.0   # none was found; look for one, or leave it out",
        }
        for key in ("name", "description", "language", "license", "attribution"):
            if value := getattr(self, key):
                lines.append(_pair(key, value))
            elif key in missing:
                lines.append(missing[key])
        lines += ["sources:", *self._source()]
        lines += ["site:", f"  {_pair('title', self.title or self.name)}"]
        return "\n".join([*lines, *self._questions(), ""])

    def _source(self) -> list[str]:
        lines = [
            f"  {'-' if number == 0 else ' '} {_pair(key, value)}"
            for number, (key, value) in enumerate(self.source.items())
        ]
        if self.excluded:
            lines.append("    exclude:")
            for each in self.excluded:
                pages = f": {pluralize(each.pages, 'page')} seen" if each.pages else ""
                lines.append(f"      - {_scalar(each.pattern)}  # {_line(each.reason)}{pages}")
        return lines

    def _questions(self) -> list[str]:
        if self.questions:
            lines = ["questions:"]
            for question, page in self.questions:
                lines += [f"  - {_pair('question', question)}", f"    relevant: [{_scalar(page)}]"]
            return lines
        return [
            "# Golden questions measure how well search answers. Write some in the words of people",
            "# who do not know yours, with the end of the address of the page that answers each.",
            "# questions:",
            "#   - question: how do I install it without the network",
            "#     relevant: [guide/install/]",
        ]


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


def _pair(key: str, value: Any) -> str:
    return f"{key}: {_scalar(value)}"


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        value = _line(value)
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10_000)
    return text.removesuffix("\n").removesuffix("\n...").strip()


def _line(text: str) -> str:
    return re.sub(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+", " ", text).strip()[:300]


def draft_of_description(values: Any, place: dict[str, Any], name: str) -> Draft:
    if problem := version_problem(values):
        raise SourceError(f"{name}: {problem}")
    documents = list(ApiDescription(values, name).documents())
    info = _mapping(values.get("info"))
    title = plain(str(info.get("title") or "API"))
    stated = _mapping(info.get("license"))
    license = License.stated(plain(str(stated.get("identifier") or stated.get("name") or "")))
    return Draft(
        name=slug(title, "api"),
        description=plain(str(info.get("description") or "")).split("\n")[0][:200]
        or f"{title}, its API",
        source={"type": "openapi", **place},
        seen=(
            f"An OpenAPI description: {title} {plain(str(info.get('version') or ''))}".rstrip()
            + ".",
            f"{pluralize(len(documents))}: an overview, operations and schemas.",
        ),
        license=license.name,
        title=title,
    )


def slug(text: str, fallback: str = "docs", *, most: int = 63) -> str:
    name = re.sub(r"[^a-z0-9]+", "-", text.casefold()).strip("-")[:most].strip("-")
    return name if SLUG.fullmatch(name) else fallback


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
