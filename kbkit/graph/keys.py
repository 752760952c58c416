"""The normal form of the name of an entity."""

from __future__ import annotations

from kbkit.models import SubjectKind
from kbkit.stores.catalog.subjects import SubjectName
from kbkit.validation import check_text


def named(name: str) -> SubjectName:
    """A name with its normal form."""
    text = " ".join(check_text("name", name).split())
    return SubjectName(SubjectKind.ENTITY, text.removesuffix("()").casefold(), text)
