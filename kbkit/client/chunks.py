"""Chunks, ratings, sources and annotations of a knowledge base on a server."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from kbkit.client import documents
from kbkit.client.calls import Blocking, Request, Steps, Transport, steps
from kbkit.client.declared import (
    BASE,
    KNOWLEDGE,
    LONG,
    After,
    ResultPage,
    call,
    cursor_after,
    every,
    first_page,
)
from kbkit.client.graph import RemoteGraph
from kbkit.client.work import OnProgress, Stop, job, result_of
from kbkit.errors import ConfigError, NotFoundError
from kbkit.models import (
    AnnotatedChunk,
    Annotation,
    AnnotationReport,
    Chunk,
    ChunkSummary,
    Rating,
    RatingTotal,
    SourceInfo,
    StatementType,
    Subject,
    SubjectKind,
    Target,
    from_dict,
)
from kbkit.recipes import AnySource, only_sources

if TYPE_CHECKING:
    import httpx
    import pandas as pd

_CHUNK = f"{KNOWLEDGE}/chunks/{{chunk_id}}?kb={{self._base.name}}"


def _places_frame(answer: Any) -> pd.DataFrame:
    from kbkit.frames import places_frame

    return places_frame(answer["places"], tuple(answer["variance"]), answer["chunks"])


class ChunksCalls(documents.CollectionCalls[Chunk]):
    """Requests for chunks; see `kbkit.knowledge_base.chunks.Chunks`."""

    _noun = "chunks"
    _kind = Chunk

    @every(f"{BASE}/chunks")
    def list(self, *, after: After = ("", -1), limit: int | None = None) -> builtins.list[Chunk]:
        """List chunks in order of their documents' URIs and of their positions."""

    @every(f"{BASE}/chunks")
    def of(self, document: str) -> builtins.list[Chunk]:
        """List the chunks of a document in their order."""

    @call(f"GET {BASE}/chunks/map", read=_places_frame)
    def embedding_map(self, *, limit: int = 2000, seed: int = 0) -> pd.DataFrame:
        """Project chunk vectors onto the plane of the greatest variance."""

    @call(f"POST {BASE}/chunks/encoder", timeout=LONG)
    def fit_query_encoder(self) -> Mapping[str, Any]:
        """Fit the query encoder to the current chunks, whether due or not."""

    @call(f"GET {BASE}", key="chunks")
    def _count(self) -> int: ...

    @call(f"GET {_CHUNK}", read=lambda answer: from_dict(Chunk, answer["data"][0]))
    def _find(self, chunk_id: str) -> Chunk: ...


class RemoteChunks(ChunksCalls, documents.RemoteCollection[Chunk]):
    """Chunks of a knowledge base on a server."""


class AsyncChunks(ChunksCalls, documents.AsyncCollection[Chunk]):
    """Chunks of a knowledge base on a server, awaited."""


Rated = Annotated[str | Target, str]
"""Id of a chunk or document, URI of a document, or the target."""
_TARGET = f"{BASE}/targets/{{target}}/ratings"


class RatingsCalls(documents.CollectionCalls[Rating]):
    """Requests for ratings; see `kbkit.knowledge_base.feedback.Ratings`."""

    _noun = "ratings"
    _kind = Rating

    @every(f"{BASE}/ratings")
    def list(
        self, *, after: Annotated[int, cursor_after] = 0, limit: int | None = None
    ) -> builtins.list[Rating]:
        """List ratings, oldest first."""

    @call(f"POST {_TARGET}")
    def add(
        self, target: Rated, score: int, *, query: str = "", note: str = "", rater: str = ""
    ) -> Rating:
        """Rate a chunk or a document. Ratings are appended; the last of a rater counts."""

    @call(f"DELETE {BASE}/ratings/{{rating_id}}")
    def delete(self, rating_id: int) -> None:
        """Delete a mistaken rating; the one before it counts again."""

    @call(f"GET {_TARGET}")
    def of(self, target: Rated) -> builtins.list[Rating]:
        """List the ratings of a chunk or document, oldest first, even if it is gone."""

    @call(f"GET {_TARGET}", key="total")
    def total(self, target: Rated) -> RatingTotal | None:
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


class RemoteRatings(RatingsCalls, documents.RemoteCollection[Rating]):
    """Ratings of a knowledge base on a server."""


class AsyncRatings(RatingsCalls, documents.AsyncCollection[Rating]):
    """Ratings of a knowledge base on a server, awaited."""


_SOURCE = f"{BASE}/sources/{{source}}"


class SourcesCalls(documents.CollectionCalls[SourceInfo]):
    """Requests for sources; see `kbkit.knowledge_base.sources.Sources`."""

    _noun = "sources"
    _kind = SourceInfo

    @call(f"POST {BASE}/sources", names={"source": "sources"})
    def add(
        self,
        source: Annotated[
            AnySource | Mapping[str, Any] | Iterable[AnySource | Mapping[str, Any]],
            partial(only_sources, "sources.add"),
        ],
        *,
        base: str | Path = ".",
    ) -> builtins.list[SourceInfo]:
        """Store sources without reading them; the next refresh reads them."""

    @call(f"PATCH {_SOURCE}")  # type: ignore[arg-type]  # an option may not be called self
    def update(
        self,
        source: str,
        *,
        enabled: bool | None = None,
        if_match: str | None = None,
        **options: Any,
    ) -> SourceInfo:
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

    @call(f"GET {BASE}/stats", key="sources")
    def _count(self) -> int: ...


class RemoteSources(SourcesCalls, documents.RemoteCollection[SourceInfo]):
    """Sources of a knowledge base on a server."""

    def __contains__(self, key: object) -> bool:
        return any(key in (source.id, source.location, source.name) for source in self)


class AsyncSources(SourcesCalls, documents.AsyncCollection[SourceInfo]):
    """Sources of a knowledge base on a server, awaited."""


def _counts(answer: Any) -> dict[StatementType, int]:
    return {StatementType(frame): count for frame, count in answer.items()}


def _summaries(answer: Any) -> dict[str, ChunkSummary]:
    return {each["chunk"]: from_dict(ChunkSummary, each["summary"]) for each in answer["data"]}


class AnnotationsCalls(documents.CollectionCalls[Annotation]):
    """Requests for annotations; see `kbkit.knowledge_base.annotations.Annotations`."""

    _noun = "annotations"
    _kind = Annotation
    _path = f"{BASE}/annotated-chunks"

    @every(f"{BASE}/annotated-chunks")
    def chunks(self, *, after: After = ("", -1), limit: int | None = None) -> list[AnnotatedChunk]:
        """Return annotated chunks."""

    @call(f"GET {BASE}/annotations")
    def of(self, target: str) -> list[Annotation]:
        """List annotations of a chunk, or of all chunks of a document, in its order."""

    @call(f"GET {KNOWLEDGE}/subjects?kbs={{self._base.name}}")
    def subjects(
        self, *, kind: str | SubjectKind | None = None, like: str = "", limit: int | None = None
    ) -> list[Subject]:
        """List subjects that chunks mention, the most mentioned first."""

    @job(f"POST {BASE}/annotate", result_of(AnnotationReport, AnnotationReport(0, "")))
    def make(
        self,
        *,
        estimate: bool = False,
        on_progress: OnProgress | None = None,
        stop: Stop = lambda: False,
    ) -> AnnotationReport:
        """Annotate the remaining chunks on the server."""

    @call(f"GET {BASE}/stats", key="frames", read=_counts)
    def _statement_types(self) -> Mapping[StatementType, int]: ...

    @call(f"GET {BASE}/stats", key="annotations")
    def _count(self) -> int: ...

    def _rows(self) -> Steps[Sequence[Any]]:
        return AnnotationsCalls.chunks(self)

    def _all(self) -> Request[ResultPage[Annotation]]:
        chunks = first_page(AnnotatedChunk, self._path, self)

        def read(response: httpx.Response) -> ResultPage[Annotation]:
            part = chunks.read(response)
            annotations = [annotation for chunk in part.values for annotation in chunk.annotations]
            return ResultPage(annotations, part.cursor)

        return Request("GET", chunks.path, read, chunks.query)


class RemoteAnnotations(AnnotationsCalls, documents.RemoteList[Annotation]):
    """Annotations of a knowledge base on a server."""

    @property
    def statement_types(self) -> Mapping[StatementType, int]:
        """Annotations by statement type, the most frequent first."""
        return self._statement_types()


class AsyncAnnotations(AnnotationsCalls, documents.AsyncList[Annotation]):
    """Annotations of a knowledge base on a server, awaited."""

    async def statement_types(self) -> Mapping[StatementType, int]:
        return await self._statement_types()


class RemoteHandle(Blocking):
    """Requests that only kbkit's panels send."""

    def __init__(self, transport: Transport, base: documents.Named) -> None:
        super().__init__(transport, base)
        self.workspace_graph = RemoteGraph(transport)

    @call(f"GET {BASE}/revision", key="revision", read=tuple)
    def revision(self) -> tuple[int, ...]: ...

    @call(f"GET {BASE}/revision", read=lambda answer: (tuple(answer["revision"]), answer["site"]))
    def site_revision(self) -> tuple[object, ...]:
        """Return values that change with anything that the site shows."""

    @call(f"POST {BASE}/chunk-ratings")
    def ratings_of(self, ids: Sequence[str]) -> list[Rating]:
        """List ratings of chunks and documents, given by id, oldest first."""

    @call(f"POST {BASE}/summaries", read=_summaries)
    def summaries_of(self, ids: Sequence[str]) -> dict[str, ChunkSummary]:
        """Summarize chunks, by id; chunks without annotations are left out."""
