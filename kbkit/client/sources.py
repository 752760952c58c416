"""The sources of a knowledge base that a server holds."""

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
    RemoteCollection,
)
from kbkit.client.pages import Part, listed, part_of
from kbkit.client.uploads import split
from kbkit.errors import ConfigError
from kbkit.models import SourceInfo
from kbkit.models.values import to_json
from kbkit.recipes import AnySource
from kbkit.validation import check_text

if TYPE_CHECKING:
    import pandas as pd


class SourcesCalls(CollectionCalls[SourceInfo]):
    """What is asked of sources; see `kbkit.knowledge_base.sources.Sources`."""

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

    @steps  # type: ignore[arg-type]  # an option may not be called self
    def update(self, source: str, **options: Any) -> Steps[SourceInfo]:
        """Change what a source reads, and how; its documents follow with the next refresh."""
        return (yield from self._changed(source, {"options": to_json(options)}))

    @steps
    def enable(self, source: str) -> Steps[SourceInfo]:
        """Have a refresh read a source again."""
        return (yield from self._changed(source, {"enabled": True}))

    @steps
    def disable(self, source: str) -> Steps[SourceInfo]:
        """Have no refresh or build read a source; its documents stay."""
        return (yield from self._changed(source, {"enabled": False}))

    @steps
    def remove(self, source: str, *, keep_documents: bool = False) -> Steps[None]:
        """Forget a source and delete its documents."""
        found = yield from SourcesCalls._find(self, source)
        path = f"{self._at}/{url('{}', found.id)}"
        yield Request("DELETE", path, reads_nothing, {"keep_documents": keep_documents})

    @property
    def _at(self) -> str:
        return url(f"{KNOWLEDGE}/bases/{{}}/sources", self._base.name)

    def _changed(self, source: str, body: Mapping[str, Any]) -> Steps[SourceInfo]:
        found = yield from SourcesCalls._find(self, source)
        path = f"{self._at}/{url('{}', found.id)}"
        changed: SourceInfo = yield Request("PATCH", path, reads(SourceInfo), json=body)
        return changed

    def paths(self) -> builtins.list[tuple[Path, tuple[str, ...]]]:
        """Where sources read on the disk of this machine: none of a server's does.

        Raises:
            ConfigError: Always; the message says what to do instead.
        """
        raise ConfigError(
            "sources.paths: a server reads its own disk, and tells nobody where; list `kb.sources`,"
            " and have it read them again with `kb.refresh(local=True)`"
        )

    @steps
    def _find(self, source: str) -> Steps[SourceInfo]:
        """A source by its id, the beginning of that, or what it reads."""
        found: list[SourceInfo] = yield Request(
            "GET", self._at, reads_many(SourceInfo), {"source": check_text("source", source)}
        )
        return found[0]

    def _all(self) -> Request[Part[SourceInfo]]:
        return part_of(SourceInfo, self._at, {})

    @steps
    def _count(self) -> Steps[int]:
        """How many there are."""
        return len((yield from listed(SourceInfo, self._at, {})))

    @staticmethod
    def _framed(values: Iterable[SourceInfo]) -> pd.DataFrame:
        from kbkit.frames import sources_frame

        return sources_frame(values)


class RemoteSources(SourcesCalls, RemoteCollection[SourceInfo]):
    """The sources of a knowledge base that a server holds, used like those of a folder."""

    def __contains__(self, key: object) -> bool:
        return any(key in (one.id, one.location, one.name) for one in self)


class AsyncSources(SourcesCalls, AsyncCollection[SourceInfo]):
    """The sources of a knowledge base that a server holds; what is asked is awaited."""
