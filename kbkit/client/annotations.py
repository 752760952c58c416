"""Annotations of a knowledge base on a server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kbkit.client.calls import AnyTransport, Blocking, Request, Steps, call, reads_many, steps, url
from kbkit.client.collections import (
    KNOWLEDGE,
    AsyncList,
    CollectionCalls,
    Named,
    RemoteList,
    ResultPage,
    first_page,
    list_all,
)
from kbkit.client.graph import RemoteGraph
from kbkit.client.work import OnProgress, Stop, job_request, run_job
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
from kbkit.runtime.validation import check_text

if TYPE_CHECKING:
    import httpx
    import pandas as pd


class AnnotationsCalls(CollectionCalls[Annotation]):
    """Requests for annotations; see `kbkit.knowledge_base.annotations.Annotations`."""

    _noun = "annotations"
    _kind = Annotation

    @steps
    def chunks(
        self, *, after: tuple[str, int] = ("", -1), limit: int | None = None
    ) -> Steps[list[AnnotatedChunk]]:
        """Return annotated chunks."""
        query = {"behind": after[0], "behind_position": after[1]} if after[0] else {}
        path = _at(self._base, "annotated-chunks")
        return (yield from list_all(AnnotatedChunk, path, query, limit))

    @call
    def of(self, target: str) -> Request[list[Annotation]]:
        """List annotations of a chunk, or of all chunks of a document, in its order."""
        params = {"target": check_text("target", target)}
        return Request("GET", _at(self._base, "annotations"), reads_many(Annotation), params)

    @call
    def subjects(
        self, *, kind: str | SubjectKind | None = None, like: str = "", limit: int | None = None
    ) -> Request[list[Subject]]:
        """List subjects that chunks mention, the most mentioned first."""
        params = {
            "kind": kind,
            "like": check_text("like", like),
            "limit": limit,
            "kbs": self._base.name,
        }
        return Request("GET", f"{KNOWLEDGE}/subjects", reads_many(Subject), params)

    @steps
    def make(
        self,
        *,
        estimate: bool = False,
        on_progress: OnProgress | None = None,
        stop: Stop = lambda: False,
    ) -> Steps[AnnotationReport]:
        """Annotate the remaining chunks on the server."""
        request = job_request(self._base.name, "annotate", {"estimate": estimate}, on_progress)
        report = yield from run_job(AnnotationReport, request, on_progress=on_progress, stop=stop)
        return AnnotationReport(0, "") if report is None else report

    @call
    def _statement_types(self) -> Request[Mapping[StatementType, int]]:
        def read(response: httpx.Response) -> Mapping[StatementType, int]:
            return {StatementType(each["frame"]): each["count"] for each in response.json()["data"]}

        return Request("GET", _at(self._base, "frames"), read)

    @call
    def _waiting(self) -> Request[int]:
        def read(response: httpx.Response) -> int:
            return int(response.json()["waiting"])

        return Request("GET", _at(self._base, "annotations/waiting"), read)

    @call
    def _count(self) -> Request[int]:
        def read(response: httpx.Response) -> int:
            return int(response.json()["annotations"])

        return Request("GET", _at(self._base, "stats"), read)

    def _all(self) -> Request[ResultPage[Annotation]]:
        whole = first_page(AnnotatedChunk, _at(self._base, "annotated-chunks"), {})

        def read(response: httpx.Response) -> ResultPage[Annotation]:
            part = whole.read(response)
            return ResultPage(
                [one for chunk in part.values for one in chunk.annotations], part.cursor
            )

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

    @call
    def _revision(self) -> Request[tuple[tuple[int, ...], str]]:
        def read(response: httpx.Response) -> tuple[tuple[int, ...], str]:
            answer = response.json()
            return tuple(answer["revision"]), answer["site"]

        return Request("GET", _at(self._base, "revision"), read)

    @call
    def ratings_of(self, targets: Sequence[str]) -> Request[list[Rating]]:
        """List ratings of chunks and documents, json_body by id, oldest first."""
        place = _at(self._base, "chunk-ratings")
        return Request("POST", place, reads_many(Rating), json={"ids": list(targets)})

    @call
    def summaries_of(self, chunk_ids: Sequence[str]) -> Request[dict[str, ChunkSummary]]:
        """Summarize chunks, by id; chunks without annotations are left out."""

        def read(response: httpx.Response) -> dict[str, ChunkSummary]:
            data = response.json()["data"]
            return {each["chunk"]: from_dict(ChunkSummary, each["summary"]) for each in data}

        place = _at(self._base, "summaries")
        return Request("POST", place, read, json={"ids": list(chunk_ids)})


def _at(base: Named, what: str) -> str:
    return url(f"{KNOWLEDGE}/bases/{{}}/{what}", base.name)
