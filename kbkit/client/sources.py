"""Sources of a knowledge base on a server."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbkit.client.calls import Request, Steps, call, reads, reads_many, reads_nothing, steps, url
from kbkit.client.collections import (
    KNOWLEDGE,
    AsyncCollection,
    CollectionCalls,
    Part,
    RemoteCollection,
    listed,
    part_of,
)
from kbkit.client.documents import matching
from kbkit.client.uploads import split
from kbkit.errors import ConfigError
from kbkit.models import SourceInfo
from kbkit.models.values import to_json
from kbkit.recipes import AnySource
from kbkit.validation import check_text

if TYPE_CHECKING:
    import pandas as pd


class SourcesCalls(CollectionCalls[SourceInfo]):
    """Requests for sources; see `kbkit.knowledge_base.sources.Sources`."""

    _noun = "sources"
    _kind = SourceInfo

    @call
    def add(
        self,
        source: AnySource | Mapping[str, Any] | Iterable[AnySource | Mapping[str, Any]],
        *,
        base: str | Path = ".",
    ) -> Request[builtins.list[SourceInfo]]:
        """Remember sources without reading them: the next refresh does."""
        specs, documents = split([source])
        if documents:
            raise ConfigError("sources.add: takes sources; documents go into `ingest`")
        body = {"sources": [each.model_dump(mode="json") for each in specs]}
        return Request("POST", self._at, reads_many(SourceInfo), json=body)

    @call  # type: ignore[arg-type]  # an option may not be called self
    def update(
        self, source: str, *, if_match: str | None = None, **options: Any
    ) -> Request[SourceInfo]:
        """Change a source; its documents follow with the next refresh."""
        return self._changing(source, {"options": to_json(options)}, if_match)

    @call
    def enable(self, source: str, *, if_match: str | None = None) -> Request[SourceInfo]:
        """Have refreshes read a source again."""
        return self._changing(source, {"enabled": True}, if_match)

    @call
    def disable(self, source: str, *, if_match: str | None = None) -> Request[SourceInfo]:
        """Have refreshes and builds skip a source; its documents stay."""
        return self._changing(source, {"enabled": False}, if_match)

    @call
    def remove(
        self, source: str, *, keep_documents: bool = False, if_match: str | None = None
    ) -> Request[None]:
        """Forget a source and delete its documents."""
        query = {"keep_documents": keep_documents}
        at, headers = self._of(source), matching(if_match)
        return Request("DELETE", at, reads_nothing, query, headers=headers)

    @property
    def _at(self) -> str:
        return url(f"{KNOWLEDGE}/bases/{{}}/sources", self._base.name)

    def _of(self, source: str) -> str:
        return f"{self._at}/{url('{}', check_text('source', source))}"

    def _changing(
        self, source: str, body: Mapping[str, Any], if_match: str | None
    ) -> Request[SourceInfo]:
        headers = matching(if_match)
        return Request("PATCH", self._of(source), reads(SourceInfo), json=body, headers=headers)

    def paths(self) -> builtins.list[tuple[Path, tuple[str, ...]]]:
        """Return local paths that sources read: none, on a server."""
        raise ConfigError(
            "sources.paths: a server reads its own disk, and tells nobody where; list `kb.sources`,"
            " and have it read them again with `kb.refresh(local=True)`"
        )

    @call
    def _find(self, source: str) -> Request[SourceInfo]:
        """Find a source by its id, a prefix of that, or its place."""
        return Request("GET", self._of(source), reads(SourceInfo))

    def _all(self) -> Request[Part[SourceInfo]]:
        return part_of(SourceInfo, self._at, {})

    @steps
    def _count(self) -> Steps[int]:
        return len((yield from listed(SourceInfo, self._at, {})))

    @staticmethod
    def _framed(values: Iterable[SourceInfo]) -> pd.DataFrame:
        from kbkit.frames import sources_frame

        return sources_frame(values)


class RemoteSources(SourcesCalls, RemoteCollection[SourceInfo]):
    """Sources of a knowledge base on a server."""

    def __contains__(self, key: object) -> bool:
        return any(key in (one.id, one.location, one.name) for one in self)


class AsyncSources(SourcesCalls, AsyncCollection[SourceInfo]):
    """Sources of a knowledge base on a server, awaited."""
