"""RemoteWorkspace and AsyncWorkspace: a workspace on a server."""

from __future__ import annotations

import builtins
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Self, TypeVar

from kbkit import models
from kbkit.client import calls, knowledge_base
from kbkit.client.declared import KNOWLEDGE, Names, call, every, names
from kbkit.client.documents import Conditions
from kbkit.client.files import AsyncEntries, AsyncFiles, RemoteEntries, RemoteFiles
from kbkit.client.graph import AsyncGraph, RemoteGraph
from kbkit.client.work import job, result_of
from kbkit.recipes import AnyEmbedding, KnowledgeBaseSpec
from kbkit.runtime.validation import explain_calls, explain_method

if TYPE_CHECKING:
    import pandas as pd
    from llama_index.core.base.base_retriever import BaseRetriever


def _no_repair(repair: bool) -> None:
    if repair:
        raise calls.only_local("doctor(repair=True)", "kbkit doctor --repair")


def _info(answer: Any) -> models.KnowledgeBaseInfo:
    return models.from_dict(models.KnowledgeBaseInfo, answer)


def _open(self: Any, request: calls.Request[Any], _: object) -> calls.Steps[Any]:
    info = yield request
    return self._knowledge_base(info.name)


K = TypeVar("K")
_BASE = f"{KNOWLEDGE}/bases/{{name}}"


class WorkspaceCalls(calls.RemoteObject, ABC, Generic[K]):
    """Requests for a workspace, with knowledge bases of class `K`; see `kbkit.Workspace`.

    Attributes:
        files: Notes that agents and people write, in folders.
        entries: Rated solutions that worked.
        graph: Entities of its knowledge bases and the relations between them.
    """

    _transport: Any
    _only_local: ClassVar[Mapping[str, str]] = {
        name: f"kbkit {name}" for name in ("bundle", "rebuild", "restore")
    }

    @property
    def url(self) -> str:
        """Address of the server."""
        return self._transport.url

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url!r}>"

    @abstractmethod
    def __getitem__(self, name: str) -> K: ...

    @abstractmethod
    def _knowledge_base(self, name: str, *, was: str = "") -> K:
        """Return a knowledge base; ``was`` is its name before a renaming."""

    @call("GET /health")
    def health(self) -> dict[str, Any]:
        """Return ``status`` and ``version`` of the server."""

    @every(f"{KNOWLEDGE}/bases")
    def list(self) -> builtins.list[models.KnowledgeBaseInfo]:
        """List all knowledge bases with their figures, in order of name."""

    @call(f"POST {KNOWLEDGE}/bases", _open, read=_info)
    def create(
        self,
        name: str,
        *,
        description: str = "",
        spec: KnowledgeBaseSpec | None = None,
        embedding: AnyEmbedding | str | None = None,
    ) -> K:
        """Create an empty knowledge base."""

    @call(f"DELETE {_BASE}")
    def delete(self, name: str, *, forever: bool = False, if_match: str | None = None) -> None:
        """Move a knowledge base to the trash; `undelete` restores it."""

    @call(f"POST {KNOWLEDGE}/trash/{{name}}/undelete", _open, read=_info)
    def undelete(self, name: str, *, to: str = "") -> K:
        """Restore a deleted knowledge base with its content."""

    @every(f"{KNOWLEDGE}/trash")
    def trash(self) -> builtins.list[models.DeletedKnowledgeBase]:
        """List knowledge bases that `undelete` can restore, the last deleted first."""

    @call(f"POST {KNOWLEDGE}/compact")
    def compact(self) -> models.Compaction:
        """Empty the trash of all kinds, and shrink the workspace."""

    @job(f"POST {KNOWLEDGE}/doctor", result_of(models.Health, "check"))
    def doctor(self, *, repair: Annotated[bool, _no_repair] = False) -> models.Health:
        """Check the workspace on the server, by content, and list defects."""

    @calls.steps
    def runs(self, names: Iterable[str] | None = None) -> calls.Steps[builtins.list[models.Run]]:
        """List reads of sources with time, duration and outcome, the last first."""
        kb = None if names is None else builtins.list(names)
        if kb == []:
            return []
        return (yield from WorkspaceCalls._runs(self, kb))

    @every(f"{KNOWLEDGE}/runs")
    def _runs(self, kb: Sequence[str] | None) -> builtins.list[models.Run]: ...

    @calls.steps
    def rename(self, name: str, *, to: str, if_match: str | None = None) -> calls.Steps[K]:
        """Rename a knowledge base; everything else stays."""
        info = yield from WorkspaceCalls._rename(self, name, to=to, if_match=if_match)
        return self._knowledge_base(info.name, was=name)

    @call(f"PATCH {_BASE}", names={"to": "name"})
    def _rename(self, name: str, *, to: str, if_match: str | None) -> models.KnowledgeBaseInfo: ...

    @call(f"PATCH {_BASE}", _open, read=_info)
    def describe(self, name: str, *, description: str, if_match: str | None = None) -> K:
        """Change the description of a knowledge base."""

    @call(f"GET {KNOWLEDGE}/subjects")
    def subjects(
        self,
        *,
        kind: str | models.SubjectKind | None = None,
        like: str = "",
        kbs: Names | None = None,
        limit: int | None = None,
    ) -> builtins.list[models.Subject]:
        """List subjects that chunks mention, the most mentioned first."""

    @call(f"GET {KNOWLEDGE}/about")
    def about(self, query: str, *, kbs: Names | None = None, limit: int = 20) -> models.About:
        """Find chunks, documents and entities about a subject."""

    @call(f"POST {KNOWLEDGE}/search")
    def search(
        self,
        query: str,
        *,
        kbs: Names | None = None,
        limit: int = 10,
        mode: str | models.Mode = models.Mode.HYBRID,
        filters: Conditions | None = None,
        retrieval: knowledge_base.Retrieval | None = None,
        graph: float | None = None,
    ) -> models.Hits:
        """Search several knowledge bases at once, or all of them."""

    @call(f"POST {KNOWLEDGE}/ask")
    def ask(
        self,
        query: str,
        *,
        kbs: Names | None = None,
        limit: int = 5,
        llm: knowledge_base.Model | None = None,
        filters: Conditions | None = None,
    ) -> models.Answer:
        """Answer a question from the best passages with the server's language model."""

    @call(f"POST {KNOWLEDGE}/context")
    def context(
        self,
        query: str,
        *,
        kbs: Names | None = None,
        max_tokens: int = 2000,
        limit: int | None = None,
        filters: Conditions | None = None,
    ) -> models.Context:
        """Collect passages that answer a question, as one text and as pieces with sources."""

    @explain_method
    def as_retriever(
        self,
        *,
        kbs: Sequence[str] | None = None,
        limit: int = 10,
        mode: str | models.Mode = models.Mode.HYBRID,
        filters: models.Filters | Mapping[str, Any] | None = None,
    ) -> BaseRetriever:
        """Return the search over several knowledge bases as a llama-index retriever."""
        kb_names = None if kbs is None else names(kbs)
        for name in kb_names or ():
            self[name]
        return knowledge_base.make_retriever(
            self, kbs=kb_names, limit=limit, mode=mode, filters=filters
        )

    @calls.steps
    def to_frame(self) -> calls.Steps[pd.DataFrame]:
        """Return figures of all knowledge bases as a DataFrame, indexed by name."""
        from kbkit.frames import workspace_frame

        return workspace_frame((yield from WorkspaceCalls.list(self)))

    @call(f"GET {_BASE}")
    def _find(self, name: str) -> models.KnowledgeBaseInfo: ...


@explain_calls
class RemoteWorkspace(WorkspaceCalls[knowledge_base.RemoteKnowledgeBase], calls.Blocking):
    """A remote workspace with the calls of a local one; safe to use from several threads."""

    _transport: calls.Transport

    def __init__(self, transport: calls.Transport) -> None:
        super().__init__(transport)
        self.files = RemoteFiles(transport)
        self.entries = RemoteEntries(transport)
        self.graph = RemoteGraph(transport)
        self._knowledge_bases: dict[str, knowledge_base.RemoteKnowledgeBase] = {}

    def __getitem__(self, name: str) -> knowledge_base.RemoteKnowledgeBase:
        return self._knowledge_base(self._find(name).name)

    def __iter__(self) -> Iterator[str]:
        return iter([info.name for info in self.list()])

    def __len__(self) -> int:
        return len(self.list())

    def _repr_html_(self) -> str:
        from kbkit.frames import collection_html

        return collection_html(repr(self)[1:-1], models.KnowledgeBaseInfo, self.list(), None)

    def close(self) -> None:
        """Close the connections and the workspace."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _knowledge_base(self, name: str, *, was: str = "") -> knowledge_base.RemoteKnowledgeBase:
        if kb := self._knowledge_bases.pop(was, None):
            kb.name = name
            self._knowledge_bases[name] = kb
        if name not in self._knowledge_bases:
            self._knowledge_bases[name] = knowledge_base.RemoteKnowledgeBase(self._transport, name)
        return self._knowledge_bases[name]


@explain_calls
class AsyncWorkspace(WorkspaceCalls[knowledge_base.AsyncKnowledgeBase], calls.Awaited):
    """A remote workspace whose calls are awaited.

    ``workspace["name"]`` sends no request; the first call of the knowledge base does.

    ::

        async with AsyncWorkspace("http://127.0.0.1:8765", token=token) as workspace:
            hits = await workspace.search("connection pool")
    """

    _transport: calls.AsyncTransport

    def __init__(self, url: str, *, token: str | None = None, timeout: float = 30.0) -> None:
        """Prepare a client; sends no request yet."""
        transport = calls.AsyncTransport(url, token=token, timeout=timeout)
        super().__init__(transport)
        self.files = AsyncFiles(transport)
        self.entries = AsyncEntries(transport)
        self.graph = AsyncGraph(transport)

    def __getitem__(self, name: str) -> knowledge_base.AsyncKnowledgeBase:
        """Return the knowledge base of a name, without checking that it exists."""
        return self._knowledge_base(name)

    async def __aiter__(self) -> AsyncIterator[str]:
        for info in await self.list():
            yield info.name

    async def close(self) -> None:
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _knowledge_base(self, name: str, *, was: str = "") -> knowledge_base.AsyncKnowledgeBase:
        return knowledge_base.AsyncKnowledgeBase(self._transport, name)


def connect(url: str, *, token: str | None = None, timeout: float = 30.0) -> RemoteWorkspace:
    """Open the workspace of a server (`kbkit serve`); sends no request yet.

    Args:
        url: Address of the server.
        token: A token from `kbkit token create`, if the server needs one.
        timeout: Seconds until a response.

    Raises:
        ConfigError: The address or the token is malformed.
    """
    return RemoteWorkspace(calls.Transport(url, token=token, timeout=timeout))
