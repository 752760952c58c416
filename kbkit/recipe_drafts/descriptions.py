"""Draft a recipe for an OpenAPI description."""

from __future__ import annotations

import re
from typing import Any

from kbkit.errors import SourceError
from kbkit.models import License
from kbkit.models.plain import plain, pluralize
from kbkit.recipe_drafts.draft import Draft
from kbkit.recipes.schema import SLUG
from kbkit.sources.openapi.source import Description, version_problem


def draft_of_description(values: Any, place: dict[str, Any], name: str) -> Draft:
    if problem := version_problem(values):
        raise SourceError(f"{name}: {problem}")
    documents = list(Description(values, name).documents())
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


def slug(text: str, fallback: str = "docs") -> str:
    found = re.sub(r"[^a-z0-9]+", "-", text.casefold()).strip("-")[:63].strip("-")
    return found if SLUG.fullmatch(found) else fallback


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
