"""The normal form of the name of an entity."""

from __future__ import annotations

from kbkit.models import SubjectKind
from kbkit.stores.catalog.subjects import SubjectName
from kbkit.text.subject_keys import subject_key
from kbkit.validation import check_text


def named(name: str) -> SubjectName:
    """A name of an entity with its normal form, ``""`` where it names nothing."""
    text = " ".join(check_text("name", name).split())
    return SubjectName(SubjectKind.ENTITY, subject_key(SubjectKind.ENTITY, text), text)
