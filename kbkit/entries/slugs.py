"""Slugs of entries, which are also valid skill and folder names."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container

from kbkit.errors import InvalidPathError
from kbkit.files.paths import fault
from kbkit.runtime.validation import check_text

MAX_LENGTH = 64
_SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def slug_fault(slug: str) -> str:
    """Return why a name cannot be a slug; ``""`` if it can."""
    if len(slug) > MAX_LENGTH:
        return f"is longer than {MAX_LENGTH} characters"
    if not _SLUG.fullmatch(slug):
        return "is not a valid slug; use lower-case letters, digits and single hyphens between them"
    return fault(slug)


def check_slug(slug: str) -> str:
    if why := slug_fault(check_text("slug", slug)):
        raise InvalidPathError(f"{ascii(slug)[:80]}: {why}, such as 'parse-logs'")
    return slug


def slug_of(title: str, taken: Container[str] = ()) -> str:
    plain = unicodedata.normalize("NFKD", title.casefold())
    letters = "".join(each for each in plain if not unicodedata.combining(each))
    words = re.sub(r"[^a-z0-9]+", "-", letters).strip("-")[:MAX_LENGTH].strip("-")
    slug = words if words and not slug_fault(words) else f"entry-{words}".strip("-")[:MAX_LENGTH]
    return unique(slug.strip("-"), taken)


def unique(slug: str, taken: Container[str]) -> str:
    """Return a slug, with the first free number if it is taken."""
    name, number = slug, 2
    while name in taken:
        end = f"-{number}"
        name, number = slug[: MAX_LENGTH - len(end)].strip("-") + end, number + 1
    return name
