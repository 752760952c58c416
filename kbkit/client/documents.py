"""Documents of a knowledge base on a server."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kbkit.client.calls import Request, Steps, call, json_body, reads, reads_nothing, steps, url
from kbkit.client.collections import (
    KNOWLEDGE,
    AsyncCollection,
    CollectionCalls,
    RemoteCollection,
    ResultPage,
    first_page,
    list_all,
)
from kbkit.client.work import OnProgress, Stop, job_request, run_job
from kbkit.errors import ConfigError, NotFoundError
from kbkit.models import (
    DeletedDocument,
    Document,
    DocumentInfo,
    DocumentPart,
    DocumentType,
    Expansion,
    Filters,
)
from kbkit.models.values import from_dict, to_json
from kbkit.runtime.validation import check_json

if TYPE_CHECKING:
    import httpx
    import pandas as pd
    from llama_index.core.llms import LLM

_WITH_TEXT = 50
"""Page size of documents with their text."""


class DocumentsCalls(CollectionCalls[Document]):
    """Requests for documents; see `kbkit.knowledge_base.documents.Documents`."""

    _noun = "documents"
    _kind = Document

    @steps
    def list(
        self,
        *,
        filters: Filters | Mapping[str, Any] | None = None,
        after: str = "",
        limit: int | None = None,
        content: bool = False,
    ) -> Steps[builtins.list[Document]]:
        """List documents in order of URI, by default without their text."""
        params = Filters.of(filters)
        params.check_of_documents()
        query = {**conditions(params), "kb": self._base.name, "behind": after, "content": content}
        return (yield from list_all(Document, f"{KNOWLEDGE}/documents", query, limit))

    @call
    def part(
        self,
        document: str,
        *,
        section: str = "",
        start: int = 0,
        end: int | None = None,
        chunks: tuple[int, int] | None = None,
    ) -> Request[DocumentPart]:
        """Return a document or a part of its text."""
        first, last = (None, None) if chunks is None else chunks
        query = {
            "kb": self._base.name,
            "section": section,
            "start": start,
            "end": end,
            "first_chunk": first,
            "last_chunk": last,
        }
        return Request("GET", _at(document), reads(DocumentPart), query)

    @call
    def add(
        self,
        title: str,
        content: str,
        *,
        source: str = "",
        document_type: DocumentType | str | None = None,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Request[DocumentInfo]:
        """Add one document of Markdown text, or replace the one with the same source."""
        body = json_body(
            kb=self._base.name,
            title=title,
            content=content,
            source=source,
            document_type=document_type,
            tags=tags,
            metadata=_checked(metadata),
        )
        return Request("POST", f"{KNOWLEDGE}/documents", reads(DocumentInfo), json=body)

    @call
    def update(
        self,
        document: str,
        *,
        title: str | None = None,
        content: str | None = None,
        document_type: DocumentType | str | None = None,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        if_match: str | None = None,
    ) -> Request[DocumentInfo]:
        """Change a document, json_body by id or URI; omitted values stay."""
        return Request(
            "PUT",
            _at(document),
            reads(DocumentInfo),
            {"kb": self._base.name},
            json_body(
                title=title,
                content=content,
                document_type=document_type,
                tags=tags,
                metadata=_checked(metadata),
            ),
            headers=matching(if_match),
        )

    @call
    def delete(self, document: str, *, if_match: str | None = None) -> Request[None]:
        """Move a document to the trash; `undelete` restores it."""
        query = {"kb": self._base.name}
        return Request("DELETE", _at(document), reads_nothing, query, headers=matching(if_match))

    @call
    def undelete(self, document: str) -> Request[DocumentInfo | None]:
        """Restore a deleted document with its ratings and labels."""

        def read(response: httpx.Response) -> DocumentInfo | None:
            return from_dict(DocumentInfo, response.json()) if response.content else None

        path = url(f"{KNOWLEDGE}/bases/{{}}/trash/undelete", self._base.name)
        return Request("POST", path, read, json={"document": document})

    @steps
    def trash(self) -> Steps[builtins.list[DeletedDocument]]:
        """List documents that `undelete` can restore, the last deleted first."""
        path = url(f"{KNOWLEDGE}/bases/{{}}/trash", self._base.name)
        return (yield from list_all(DeletedDocument, path, {}))

    @steps
    def expand(
        self,
        llm: LLM | str | None = None,
        *,
        questions: int | None = None,
        estimate: bool = False,
        on_progress: OnProgress | None = None,
        stop: Stop = lambda: False,
    ) -> Steps[Expansion]:
        """Write document summaries and questions with a language model of the server."""
        if llm is not None and not isinstance(llm, str):
            raise ConfigError(
                "llm: a server uses its own language model; give a name such as "
                "'openai:gpt-4o-mini', or leave llm out for the recipe's model"
            )
        body = {"llm": llm, "questions": questions, "estimate": estimate}
        request = job_request(self._base.name, "expansions", body, on_progress)
        expansion = yield from run_job(Expansion, request, on_progress=on_progress, stop=stop)
        return Expansion("") if expansion is None else expansion

    @call
    def unexpand(self) -> Request[int]:
        """Delete text that language models wrote; return the number of documents."""

        def read(response: httpx.Response) -> int:
            return int(response.json()["documents"])

        path = url(f"{KNOWLEDGE}/bases/{{}}/expansions", self._base.name)
        return Request("DELETE", path, read)

    @call
    def tags(self) -> Request[dict[str, int]]:
        """Count documents by tag, the most frequent first."""
        return _stats(self._base.name, "tags")

    @call
    def folders(self, *, depth: int = 2) -> Request[dict[str, int]]:
        """Count documents by folder of their URI, sorted by folder."""
        return _stats(self._base.name, "folders", depth=depth)

    @call
    def _count(self) -> Request[int]:

        def read(response: httpx.Response) -> int:
            return sum(response.json()["states"].values())

        return Request("GET", url(f"{KNOWLEDGE}/bases/{{}}", self._base.name), read)

    def _all(self) -> Request[ResultPage[Document]]:
        query = {"kb": self._base.name, "content": True}
        return first_page(Document, f"{KNOWLEDGE}/documents", query, _WITH_TEXT)

    @steps
    def _find(self, key: str) -> Steps[Document]:
        part = yield from DocumentsCalls.part(self, key)
        return part.document

    @staticmethod
    def _frame_of(values: Iterable[Document]) -> pd.DataFrame:
        from kbkit.frames import documents_frame

        return documents_frame(values)


class RemoteDocuments(DocumentsCalls, RemoteCollection[Document]):
    """Documents of a knowledge base on a server."""

    def __contains__(self, key: object) -> bool:
        try:
            return isinstance(key, str) and bool(self.part(key, end=0))
        except NotFoundError:
            return False


class AsyncDocuments(DocumentsCalls, AsyncCollection[Document]):
    """Documents of a knowledge base on a server, awaited."""


def conditions(filters: Filters | Mapping[str, Any] | None) -> dict[str, Any]:
    values: dict[str, Any] = to_json(Filters.of(filters))
    return {name: value for name, value in values.items() if value not in ("", [], None)}


def _checked(metadata: Mapping[str, Any] | None) -> Any:
    return None if metadata is None else check_json("metadata", dict(metadata))


def _at(document: str) -> str:
    return url(f"{KNOWLEDGE}/documents/{{}}", str(document))


def matching(version: str | None) -> dict[str, str]:
    """Return headers that limit a change to a version; ``None`` for any version."""
    return {} if version is None else {"If-Match": f'"{version}"'}


def _stats(kb: str, key: str, **query: Any) -> Request[dict[str, int]]:
    def read(response: httpx.Response) -> dict[str, int]:
        return dict(response.json()[key])

    return Request("GET", url(f"{KNOWLEDGE}/bases/{{}}/stats", kb), read, query)
