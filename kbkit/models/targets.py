"""Targets: things that can be rated, related or annotated."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kbkit.models.values import Value


class TargetKind(StrEnum):
    """Kind of target."""

    CHUNK = "chunk"
    DOCUMENT = "document"
    FILE = "file"
    ENTRY = "entry"
    ENTITY = "entity"


@dataclass(frozen=True, slots=True)
class Target(Value):
    """A thing that can be rated, related or annotated.

    Attributes:
        kind: Kind of path.
        id: Id among its kind.
    """

    kind: TargetKind
    id: str

    def __str__(self) -> str:
        return self.id
