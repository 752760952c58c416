"""The sources of a knowledge base, which `KnowledgeBase.refresh` reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbkit.errors import ConfigError, NotFoundError
from kbkit.frames import sources_frame
from kbkit.knowledge_base.handle import Handle, Items
from kbkit.knowledge_base.ingestion import Ingestion
from kbkit.models import SourceInfo
from kbkit.recipes import AnySource, only_sources
from kbkit.runtime.validation import check_text, explain_calls
from kbkit.stores.catalog import runs
from kbkit.stores.catalog.runs import SourceRow

if TYPE_CHECKING:
    import pandas as pd


@explain_calls
class Sources(Items):
    """The sources of a knowledge base, oldest first; `KnowledgeBase.ingest` adds them.

    Iterate over them, count them with ``len``, or look one up: ``kb.sources[id or location]``.
    """

    _noun = "sources"
    _kind = SourceInfo

    def __init__(self, handle: Handle, ingestion: Ingestion) -> None:
        super().__init__(handle)
        self._ingestion = ingestion

    def __iter__(self) -> Iterator[SourceInfo]:
        counts = self._ingestion.document_counts()
        return (_info(row, counts) for row in self._ingestion.sources())

    def __len__(self) -> int:
        return len(self._ingestion.sources())

    def __getitem__(self, source: str) -> SourceInfo:
        """Return a source by id, by the beginning of its id, or by location."""
        return _info(self._find(source), self._ingestion.document_counts())

    def __contains__(self, source: object) -> bool:
        return any(source in (info.id, info.location, info.name) for info in self)

    def add(
        self,
        source: AnySource | Mapping[str, Any] | Iterable[AnySource | Mapping[str, Any]],
        *,
        base: str | Path = ".",
    ) -> list[SourceInfo]:
        """Store sources without reading them; the next refresh reads them.

        Args:
            source: One or several sources; see `KnowledgeBase.ingest`.
            base: Folder of relative paths.

        Raises:
            ConfigError: Something is not a source.
        """
        specs = only_sources("sources.add", source)
        rows = [self._ingestion.save_source(spec, base, from_recipe=False) for spec in specs]
        return [self[row.id] for row in rows]

    def update(
        self,
        source: str,
        *,
        enabled: bool | None = None,
        if_match: str | None = None,
        **options: Any,
    ) -> SourceInfo:
        """Change a source; the next refresh updates its documents.

        Args:
            source: Its id, or its location.
            enabled: Whether refreshes and builds read it; by default as before.
            if_match: Expected version (`SourceInfo.version`); by default any.
            options: Options as in a recipe: ``limit=500``, ``exclude=["drafts/**"]``; ``None``
                restores the default.

        Raises:
            ConfigError: There is no such option, or its value is invalid.
            ConflictError: Another source already reads that location.
            NotFoundError: There is no such source.
            VersionConflictError: It has changed.
        """
        row, updated = self._find(source), None
        if options or enabled is None:
            merged = {**row.spec, **options, "type": row.type}
            values = {key: value for key, value in merged.items() if value is not None}
            (updated,) = only_sources("sources.update", values)
        with self._database.write() as transaction:
            runs.check_version(transaction, row.id, if_match)
            if updated is None:
                runs.change_source(transaction, row, enabled=enabled)
            else:
                runs.check_version(transaction, row.id, row.version)
                spec, name = updated.model_dump(mode="json"), None
                key = runs.source_key(spec)
                if spec.get("path") != row.spec.get("path"):
                    folder = Path(row.base)
                    name = self._ingestion.place_name(transaction, spec, folder, row.key)
                runs.change_source(transaction, row, key=key, spec=spec, name=name, enabled=enabled)
        return self[row.id]

    def enable(self, source: str, *, if_match: str | None = None) -> SourceInfo:
        """Let refreshes read a source again; see `disable`."""
        return self.update(source, enabled=True, if_match=if_match)

    def disable(self, source: str, *, if_match: str | None = None) -> SourceInfo:
        """Let refreshes and builds skip a source; its documents stay.

        Args:
            source: Its id, or its location.
            if_match: Expected version; by default any.

        Raises:
            NotFoundError: There is no such source.
            VersionConflictError: It has changed.
        """
        return self.update(source, enabled=False, if_match=if_match)

    def remove(
        self, source: str, *, keep_documents: bool = False, if_match: str | None = None
    ) -> None:
        """Delete a source and its documents.

        Args:
            source: Its id, or its location.
            keep_documents: Keep them as documents added by hand.
            if_match: Expected version; by default any.

        Raises:
            NotFoundError: There is no such source.
            VersionConflictError: It has changed.
        """
        self._ingestion.drop_source(
            self._find(source).id, keep_documents=keep_documents, if_match=if_match
        )
        self._handle.stores.vectors.apply(self._handle.id)

    def paths(self) -> list[tuple[Path, tuple[str, ...]]]:
        """Return globs, files and folders that sources read, with the globs they exclude."""
        return [
            (Path(row.base, row.spec["path"]), tuple(row.spec.get("exclude", ())))
            for row in self._ingestion.sources()
            if row.spec.get("path")
        ]

    def to_frame(self) -> pd.DataFrame:
        """Return all sources as a DataFrame, indexed by id."""
        return sources_frame(self)

    def _find(self, source: str) -> SourceRow:
        key = check_text("source", source)
        rows = self._ingestion.sources()
        matches = [row for row in rows if key in (row.id, row.location, row.place)]
        if not matches and len(key) >= 4:
            matches = [row for row in rows if row.id.startswith(key)]
        if not matches:
            names = ", ".join(row.location for row in rows) or "none"
            raise NotFoundError(f"{self._handle.name}: no source {source!r}; there are: {names}")
        if len(matches) > 1:
            ids = ", ".join(f"{row.id[:8]} ({row.type} {row.location})" for row in matches)
            raise ConfigError(f"{source!r}: means several sources; give the id of one: {ids}")
        return matches[0]


_SAME = str.split("id type location base from_recipe created_at enabled version")


def _info(row: SourceRow, counts: Mapping[str, int]) -> SourceInfo:
    values = {name: getattr(row, name) for name in _SAME}
    documents = counts.get(row.id, 0)
    return SourceInfo(**values, options=row.spec, name=row.place, documents=documents)
