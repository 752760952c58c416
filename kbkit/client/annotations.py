"""Annotations of a knowledge base on a server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kbkit.client.calls import AnyTransport, Blocking, Request
from kbkit.client.collections import AsyncList, CollectionCalls, Named, RemoteList
from kbkit.client.declared import BASE, KNOWLEDGE, Behind, ResultPage, call, every, first_page
from kbkit.client.graph import RemoteGraph
from kbkit.client.work import OnProgress, Stop, job, result_of
from kbkit.models import (
    AnnotatedChunk,
    Annotation,
    AnnotationReport,
    ChunkSummary,
    Rating,
    StatementType,
    Subject,
    SubjectKind,
    from_dict,
)

if TYPE_CHECKING:
    import httpx
    import pandas as pd


def _counts(answer: Any) -> dict[StatementType, int]:
    return {StatementType(each["frame"]): each["count"] for each in answer["data"]}


def _summaries(answer: Any) -> dict[str, ChunkSummary]:
    return {each["chunk"]: from_dict(ChunkSummary, each["summary"]) for each in answer["data"]}


class AnnotationsCalls(CollectionCalls[Annotation]):
    """Requests for annotations; see `kbkit.knowledge_base.annotations.Annotations`."""

    _noun = "annotations"
    _kind = Annotation
    _path = f"{BASE}/annotated-chunks"

    @every(f"{BASE}/annotated-chunks")
    def chunks(self, *, after: Behind = ("", -1), limit: int | None = None) -> list[AnnotatedChunk]:
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

    @call(f"GET {BASE}/frames", read=_counts)
    def _statement_types(self) -> Mapping[StatementType, int]: ...

    @call(f"GET {BASE}/annotations/waiting", key="waiting")
    def _waiting(self) -> int: ...

    @call(f"GET {BASE}/stats", key="annotations")
    def _count(self) -> int: ...

    def _all(self) -> Request[ResultPage[Annotation]]:
        whole = first_page(AnnotatedChunk, self._path, self)

        def read(response: httpx.Response) -> ResultPage[Annotation]:
            part = whole.read(response)
            found = [one for chunk in part.values for one in chunk.annotations]
            return ResultPage(found, part.cursor)

        return Request("GET", whole.path, read, whole.query)

    @staticmethod
    def _frame_of(values: Iterable[AnnotatedChunk]) -> pd.DataFrame:
        from kbkit.frames import annotations_frame

        return annotations_frame(values)


class RemoteAnnotations(AnnotationsCalls, RemoteList[Annotation]):
    """Annotations of a knowledge base on a server."""

    @property
    def statement_types(self) -> Mapping[StatementType, int]:
        """Annotations by statement type, the most frequent first."""
        return self._statement_types()

    @property
    def waiting(self) -> int:
        """Number of chunks that still need annotation."""
        return self._waiting()

    def to_frame(self) -> pd.DataFrame:
        """Return all annotations as a DataFrame, one row each, with their chunks."""
        return self._frame_of(self.chunks())


class AsyncAnnotations(AnnotationsCalls, AsyncList[Annotation]):
    """Annotations of a knowledge base on a server, awaited."""

    async def frames(self) -> Mapping[StatementType, int]:
        return await self._statement_types()

    async def waiting(self) -> int:
        return await self._waiting()

    async def to_frame(self) -> pd.DataFrame:
        return self._frame_of(await self.chunks())


class RemoteHandle(Blocking):
    """Requests that only kbkit's panels send."""

    def __init__(self, transport: AnyTransport, base: Named) -> None:
        super().__init__(transport)
        self._base = base
        self.workspace_graph = RemoteGraph(transport)

    def revision(self) -> tuple[int, ...]:
        return self._revision()[0]

    def site_revision(self) -> tuple[object, ...]:
        """Return values that change with anything that the site shows."""
        return self._revision()

    @call(f"GET {BASE}/revision", read=lambda answer: (tuple(answer["revision"]), answer["site"]))
    def _revision(self) -> tuple[tuple[int, ...], str]: ...

    @call(f"POST {BASE}/chunk-ratings")
    def ratings_of(self, ids: Sequence[str]) -> list[Rating]:
        """List ratings of chunks and documents, given by id, oldest first."""

    @call(f"POST {BASE}/summaries", read=_summaries)
    def summaries_of(self, ids: Sequence[str]) -> dict[str, ChunkSummary]:
        """Summarize chunks, by id; chunks without annotations are left out."""
