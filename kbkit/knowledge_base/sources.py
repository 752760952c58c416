"""The sources of a knowledge base: what `KnowledgeBase.refresh` reads again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from kbkit.arguments import explained
from kbkit.errors import NotFoundError
from kbkit.frames import rows_html, sources_frame
from kbkit.knowledge_base.handle import Handle
from kbkit.knowledge_base.ingestion import Ingestion
from kbkit.models import SourceInfo

if TYPE_CHECKING:
    import pandas as pd


@explained
class Sources:
    """The sources of a knowledge base, oldest first. `KnowledgeBase.ingest` adds to them.

    Iterating gives them, ``len`` counts them, ``kb.sources[id or location]`` looks one up.
    """

    def __init__(self, handle: Handle, ingestion: Ingestion) -> None:
        self._handle = handle
        self._ingestion = ingestion

    def __iter__(self) -> Iterator[SourceInfo]:
        for row in self._ingestion.sources():
            yield SourceInfo(
                id=row.id,
                type=row.type,
                location=_location(row.spec),
                base=row.base,
                from_recipe=row.from_recipe,
                created_at=row.created_at,
                options=row.spec,
            )

    def __len__(self) -> int:
        return len(self._ingestion.sources())

    def __getitem__(self, source: str) -> SourceInfo:
        """The source of that id, or that reads that location.

        Raises:
            NotFoundError: There is none; the message names those there are.
        """
        there = list(self)
        found = next((one for one in there if source in (one.id, one.location)), None)
        if found is None:
            names = ", ".join(one.location for one in there) or "none"
            raise NotFoundError(f"{self._handle.name}: no source {source!r}; there are: {names}")
        return found

    def __contains__(self, source: object) -> bool:
        return any(source in (one.id, one.location) for one in self)

    def remove(self, source: str) -> None:
        """Forget a source and delete its documents.

        Args:
            source: Its id, or its location.

        Raises:
            NotFoundError: There is none.
        """
        self._ingestion.drop_source(self[source].id)

    def paths(self) -> list[tuple[Path, tuple[str, ...]]]:
        """Where sources read on this machine's disk: globs, files or folders.

        Returns:
            The path of each, absolute, and the globs that it leaves out.
        """
        return [
            (Path(row.base, row.spec["path"]), tuple(row.spec.get("exclude", ())))
            for row in self._ingestion.sources()
            if row.spec.get("path")
        ]

    def to_frame(self) -> pd.DataFrame:
        """All sources as a DataFrame, indexed by id."""
        return sources_frame(self)

    def __repr__(self) -> str:
        return f"<{len(self):,} sources of {self._handle.name!r}>"

    def _repr_html_(self) -> str:
        return rows_html(
            repr(self)[1:-1], ("type", "location"), ((one.type, one.location) for one in self)
        )


def _location(spec: object) -> str:
    """Where a source reads, as its recipe says it."""
    values = spec if isinstance(spec, dict) else {}
    return next((str(values[key]) for key in ("url", "path", "name") if values.get(key)), "")
