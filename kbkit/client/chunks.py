"""Chunks and ratings of a knowledge base on a server."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbkit.client.calls import (
    LONG,
    Request,
    Steps,
    call,
    json_body,
    reads,
    reads_json,
    reads_many,
    reads_nothing,
    steps,
    url,
)
from kbkit.client.collections import (
    KNOWLEDGE,
    AsyncCollection,
    CollectionCalls,
    RemoteCollection,
    ResultPage,
    first_page,
    list_all,
)
from kbkit.client.documents import matching
from kbkit.client.ingestion import split
from kbkit.errors import ConfigError, NotFoundError
from kbkit.models import Chunk, Rating, RatingTotal, SourceInfo, Target
from kbkit.models.values import from_dict, to_json
from kbkit.recipes import AnySource
from kbkit.runtime.validation import check_text

if TYPE_CHECKING:
    import httpx
    import pandas as pd


class ChunksCalls(CollectionCalls[Chunk]):
    """Requests for chunks; see `kbkit.knowledge_base.chunks.Chunks`."""

    _noun = "chunks"
    _kind = Chunk

    @steps
    def list(
        self, *, after: tuple[str, int] = ("", -1), limit: int | None = None
    ) -> Steps[builtins.list[Chunk]]:
        """List chunks in order of their documents' URIs and of their positions."""
        query = {"behind": after[0], "behind_position": after[1]} if after[0] else {}
        return (yield from list_all(Chunk, self._at, query, limit))

    @steps
    def of(self, document: str) -> Steps[builtins.list[Chunk]]:
        """List the chunks of a document in their order."""
        return (yield from list_all(Chunk, self._at, {"document": document}))

    @call
    def embedding_map(self, *, limit: int = 2000, seed: int = 0) -> Request[pd.DataFrame]:
        """Project chunk vectors onto the plane of the greatest variance."""

        def read(response: httpx.Response) -> pd.DataFrame:
            from kbkit.frames import places_frame

            answer = response.json()
            return places_frame(answer["places"], tuple(answer["variance"]), answer["chunks"])

        return Request("GET", f"{self._at}/map", read, {"limit": limit, "seed": seed})

    @call
    def fit_query_encoder(self) -> Request[Mapping[str, Any]]:
        """Fit the query encoder to the current chunks, whether due or not."""
        return Request("POST", f"{self._at}/encoder", reads_json, timeout=LONG)

    @call
    def _count(self) -> Request[int]:

        def read(response: httpx.Response) -> int:
            return int(response.json()["chunks"])

        return Request("GET", url(f"{KNOWLEDGE}/bases/{{}}", self._base.name), read)

    @steps
    def _find(self, key: str) -> Steps[Chunk]:
        (chunk,) = yield around(self._base.name, check_text("id", key), 0, 0)
        result: Chunk = chunk
        return result

    @property
    def _at(self) -> str:
        return url(f"{KNOWLEDGE}/bases/{{}}/chunks", self._base.name)

    def _all(self) -> Request[ResultPage[Chunk]]:
        return first_page(Chunk, self._at, {})

    @staticmethod
    def _frame_of(values: Iterable[Chunk]) -> pd.DataFrame:
        from kbkit.frames import chunks_frame

        return chunks_frame(values)


class RemoteChunks(ChunksCalls, RemoteCollection[Chunk]):
    """Chunks of a knowledge base on a server."""


class AsyncChunks(ChunksCalls, AsyncCollection[Chunk]):
    """Chunks of a knowledge base on a server, awaited."""


class RatingsCalls(CollectionCalls[Rating]):
    """Requests for ratings; see `kbkit.knowledge_base.feedback.Ratings`."""

    _noun = "ratings"
    _kind = Rating

    @steps
    def list(self, *, after: int = 0, limit: int | None = None) -> Steps[builtins.list[Rating]]:
        """List ratings, oldest first."""
        return (yield from list_all(Rating, self._at, {"behind": after}, limit))

    @call
    def add(
        self, target: str | Target, score: int, *, query: str = "", note: str = "", rater: str = ""
    ) -> Request[Rating]:
        """Rate a chunk or a document. Ratings are appended; the last of a rater counts."""
        return rating_request(self._base.name, target, score, query=query, note=note, rater=rater)

    @call
    def delete(self, rating_id: int) -> Request[None]:
        """Delete a mistaken rating; the one before it counts again."""
        return Request("DELETE", f"{self._at}/{url('{}', str(rating_id))}", reads_nothing)

    @call
    def of(self, target: str | Target) -> Request[builtins.list[Rating]]:
        """List the ratings of a chunk or document, oldest first, even if it is gone."""
        return Request("GET", _target(self._base.name, target), reads_many(Rating))

    @call
    def total(self, target: str | Target) -> Request[RatingTotal | None]:
        """Return average and number of ratings of a chunk or document; ``None`` without any."""

        def read(response: httpx.Response) -> RatingTotal | None:
            total: Any = response.json()["total"]
            return None if total is None else from_dict(RatingTotal, total)

        return Request("GET", _target(self._base.name, target), read)

    @call
    def _count(self) -> Request[int]:

        def read(response: httpx.Response) -> int:
            return int(response.json()["ratings"])

        return Request("GET", url(f"{KNOWLEDGE}/bases/{{}}/stats", self._base.name), read)

    @property
    def _at(self) -> str:
        return url(f"{KNOWLEDGE}/bases/{{}}/ratings", self._base.name)

    def _all(self) -> Request[ResultPage[Rating]]:
        return first_page(Rating, self._at, {})

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


def around(kb: str, chunk_id: str, before: int, after: int) -> Request[list[Chunk]]:
    query = {"kb": kb, "before": before, "after": after}
    path = url(f"{KNOWLEDGE}/chunks/{{}}", str(chunk_id))
    return Request("GET", path, reads_many(Chunk), query)


def rating_request(
    kb: str, target: str | Target, score: int, *, query: str, note: str, rater: str
) -> Request[Rating]:
    body = json_body(score=score, query=query, note=note, rater=rater)
    return Request("POST", _target(kb, target), reads(Rating), json=body)


def _target(kb: str, target: str | Target) -> str:
    return url(f"{KNOWLEDGE}/bases/{{}}/targets/{{}}/ratings", kb, str(target))


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
        """Store sources without reading them; the next refresh reads them."""
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
        """Let refreshes read a source again."""
        return self._changing(source, {"enabled": True}, if_match)

    @call
    def disable(self, source: str, *, if_match: str | None = None) -> Request[SourceInfo]:
        """Let refreshes and builds skip a source; its documents stay."""
        return self._changing(source, {"enabled": False}, if_match)

    @call
    def remove(
        self, source: str, *, keep_documents: bool = False, if_match: str | None = None
    ) -> Request[None]:
        """Delete a source and its documents."""
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
        """Raise `ConfigError`: a server does not reveal the paths on its disk."""
        raise ConfigError(
            "sources.paths: a server does not reveal the paths on its disk; list `kb.sources`, "
            "and read them again with `kb.refresh(local=True)`"
        )

    @call
    def _find(self, source: str) -> Request[SourceInfo]:
        return Request("GET", self._of(source), reads(SourceInfo))

    def _all(self) -> Request[ResultPage[SourceInfo]]:
        return first_page(SourceInfo, self._at, {})

    @steps
    def _count(self) -> Steps[int]:
        return len((yield from list_all(SourceInfo, self._at, {})))

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
