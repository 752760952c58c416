"""Chunks and ratings of a knowledge base on a server."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from kbkit.client.calls import Steps, steps
from kbkit.client.collections import AsyncCollection, CollectionCalls, RemoteCollection
from kbkit.client.declared import BASE, KNOWLEDGE, LONG, Behind, call, every, list_all
from kbkit.client.ingestion import specs_of
from kbkit.errors import ConfigError, NotFoundError
from kbkit.models import Chunk, Rating, RatingTotal, SourceInfo, Target
from kbkit.models.values import from_dict
from kbkit.recipes import AnySource

if TYPE_CHECKING:
    import pandas as pd


_CHUNK = f"{KNOWLEDGE}/chunks/{{chunk_id}}?kb={{self._base.name}}"


def _placed(answer: Any) -> pd.DataFrame:
    from kbkit.frames import places_frame

    return places_frame(answer["places"], tuple(answer["variance"]), answer["chunks"])


class ChunksCalls(CollectionCalls[Chunk]):
    """Requests for chunks; see `kbkit.knowledge_base.chunks.Chunks`."""

    _noun = "chunks"
    _kind = Chunk
    _path = f"{BASE}/chunks"

    @every(f"{BASE}/chunks")
    def list(self, *, after: Behind = ("", -1), limit: int | None = None) -> builtins.list[Chunk]:
        """List chunks in order of their documents' URIs and of their positions."""

    @every(f"{BASE}/chunks")
    def of(self, document: str) -> builtins.list[Chunk]:
        """List the chunks of a document in their order."""

    @call(f"GET {BASE}/chunks/map", read=_placed)
    def embedding_map(self, *, limit: int = 2000, seed: int = 0) -> pd.DataFrame:
        """Project chunk vectors onto the plane of the greatest variance."""

    @call(f"POST {BASE}/chunks/encoder", timeout=LONG)
    def fit_query_encoder(self) -> Mapping[str, Any]:
        """Fit the query encoder to the current chunks, whether due or not."""

    @call(f"GET {BASE}", key="chunks")
    def _count(self) -> int: ...

    @call(f"GET {_CHUNK}", read=lambda answer: from_dict(Chunk, answer["data"][0]))
    def _find(self, chunk_id: str) -> Chunk: ...

    @staticmethod
    def _frame_of(values: Iterable[Chunk]) -> pd.DataFrame:
        from kbkit.frames import chunks_frame

        return chunks_frame(values)


class RemoteChunks(ChunksCalls, RemoteCollection[Chunk]):
    """Chunks of a knowledge base on a server."""


class AsyncChunks(ChunksCalls, AsyncCollection[Chunk]):
    """Chunks of a knowledge base on a server, awaited."""


_TARGET = f"{BASE}/targets/{{target}}/ratings"


class RatingsCalls(CollectionCalls[Rating]):
    """Requests for ratings; see `kbkit.knowledge_base.feedback.Ratings`."""

    _noun = "ratings"
    _kind = Rating
    _path = f"{BASE}/ratings"

    @every(f"{BASE}/ratings", names={"after": "behind"})
    def list(self, *, after: int = 0, limit: int | None = None) -> builtins.list[Rating]:
        """List ratings, oldest first."""

    @call(f"POST {_TARGET}")
    def add(
        self, target: str | Target, score: int, *, query: str = "", note: str = "", rater: str = ""
    ) -> Rating:
        """Rate a chunk or a document. Ratings are appended; the last of a rater counts."""

    @call(f"DELETE {BASE}/ratings/{{rating_id}}")
    def delete(self, rating_id: int) -> None:
        """Delete a mistaken rating; the one before it counts again."""

    @call(f"GET {_TARGET}")
    def of(self, target: str | Target) -> builtins.list[Rating]:
        """List the ratings of a chunk or document, oldest first, even if it is gone."""

    @call(f"GET {_TARGET}", key="total")
    def total(self, target: str | Target) -> RatingTotal | None:
        """Return average and number of ratings of a chunk or document; ``None`` without any."""

    @call(f"GET {BASE}/stats", key="ratings")
    def _count(self) -> int: ...

    @steps
    def _find(self, key: int) -> Steps[Rating]:
        ratings = yield from RatingsCalls.list(self)
        for rating in ratings:
            if rating.id == key:
                return rating
        raise NotFoundError(f"{self._base.name}: has no rating with id {key!r}")

    @staticmethod
    def _frame_of(values: Iterable[Rating]) -> pd.DataFrame:
        from kbkit.frames import ratings_frame

        return ratings_frame(values)


class RemoteRatings(RatingsCalls, RemoteCollection[Rating]):
    """Ratings of a knowledge base on a server."""


class AsyncRatings(RatingsCalls, AsyncCollection[Rating]):
    """Ratings of a knowledge base on a server, awaited."""


_SOURCE = f"{BASE}/sources/{{source}}"


class SourcesCalls(CollectionCalls[SourceInfo]):
    """Requests for sources; see `kbkit.knowledge_base.sources.Sources`."""

    _noun = "sources"
    _kind = SourceInfo
    _path = f"{BASE}/sources"

    @call(f"POST {BASE}/sources", names={"source": "sources"})
    def add(
        self,
        source: Annotated[
            AnySource | Mapping[str, Any] | Iterable[AnySource | Mapping[str, Any]],
            partial(specs_of, "sources.add"),
        ],
        *,
        base: str | Path = ".",
    ) -> builtins.list[SourceInfo]:
        """Store sources without reading them; the next refresh reads them."""

    @call(f"PATCH {_SOURCE}")  # type: ignore[arg-type]  # an option may not be called self
    def update(self, source: str, *, if_match: str | None = None, **options: Any) -> SourceInfo:
        """Change a source; its documents follow with the next refresh."""

    @call(f"PATCH {_SOURCE}", body={"enabled": True})
    def enable(self, source: str, *, if_match: str | None = None) -> SourceInfo:
        """Let refreshes read a source again."""

    @call(f"PATCH {_SOURCE}", body={"enabled": False})
    def disable(self, source: str, *, if_match: str | None = None) -> SourceInfo:
        """Let refreshes and builds skip a source; its documents stay."""

    @call(f"DELETE {_SOURCE}")
    def remove(
        self, source: str, *, keep_documents: bool = False, if_match: str | None = None
    ) -> None:
        """Delete a source and its documents."""

    def paths(self) -> builtins.list[tuple[Path, tuple[str, ...]]]:
        """Raise `ConfigError`: a server does not reveal the paths on its disk."""
        raise ConfigError(
            "sources.paths: a server does not reveal the paths on its disk; list `kb.sources`, "
            "and read them again with `kb.refresh(local=True)`"
        )

    @call(f"GET {_SOURCE}")
    def _find(self, source: str) -> SourceInfo: ...

    @steps
    def _count(self) -> Steps[int]:
        return len((yield from list_all(self._all())))

    @staticmethod
    def _frame_of(values: Iterable[SourceInfo]) -> pd.DataFrame:
        from kbkit.frames import sources_frame

        return sources_frame(values)


class RemoteSources(SourcesCalls, RemoteCollection[SourceInfo]):
    """Sources of a knowledge base on a server."""

    def __contains__(self, key: object) -> bool:
        return any(key in (one.id, one.location, one.name) for one in self)


class AsyncSources(SourcesCalls, AsyncCollection[SourceInfo]):
    """Sources of a knowledge base on a server, awaited."""
