"""RemoteWorkspace: a workspace on a server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from kbkit.client.calls import Awaited, Blocking
from kbkit.client.declared import names
from kbkit.client.entries import AsyncEntries, RemoteEntries
from kbkit.client.files import AsyncFiles, RemoteFiles
from kbkit.client.graph import AsyncGraph, RemoteGraph
from kbkit.client.knowledge_base import AsyncKnowledgeBase, RemoteKnowledgeBase
from kbkit.client.transport import AsyncTransport, Transport
from kbkit.client.workspace_calls import WorkspaceCalls
from kbkit.extras import whole
from kbkit.models import Filters, KnowledgeBaseInfo, Mode
from kbkit.runtime.validation import explained

if TYPE_CHECKING:
    import pandas as pd
    from llama_index.core.base.base_retriever import BaseRetriever


@explained
class RemoteWorkspace(WorkspaceCalls[RemoteKnowledgeBase], Blocking):
    """A remote workspace with the calls of a local one; safe to use from several threads."""

    _transport: Transport

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self.files = RemoteFiles(transport)
        self.entries = RemoteEntries(transport)
        self.graph = RemoteGraph(transport)
        self._knowledge_bases: dict[str, RemoteKnowledgeBase] = {}

    def __getitem__(self, name: str) -> RemoteKnowledgeBase:
        return self._knowledge_base(self._find(name).name)

    def __contains__(self, name: object) -> bool:
        return name in list(self)

    def __iter__(self) -> Iterator[str]:
        return iter([info.name for info in self.list()])

    def __len__(self) -> int:
        return len(self.list())

    def to_frame(self) -> pd.DataFrame:
        """Return figures of all knowledge bases as a DataFrame, indexed by name."""
        from kbkit.frames import workspace_frame

        return workspace_frame(self.list())

    def as_retriever(
        self,
        *,
        kbs: Sequence[str] | None = None,
        limit: int = 10,
        mode: str | Mode = Mode.HYBRID,
        filters: Filters | Mapping[str, Any] | None = None,
    ) -> BaseRetriever:
        """Return the search over several knowledge bases as a llama-index retriever."""
        with whole("A retriever"):
            from kbkit.retrieval.llamaindex import KbkitRetriever, asking

        for name in () if kbs is None else names(kbs):
            self[name]
        return KbkitRetriever(asking(self.search, kbs=kbs, limit=limit, mode=mode, filters=filters))

    def _repr_html_(self) -> str:
        from kbkit.frames import collection_html

        return collection_html(repr(self)[1:-1], KnowledgeBaseInfo, self.list(), None)

    def close(self) -> None:
        """Close the connections and the workspace."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<RemoteWorkspace {self.url!r}>"

    def _knowledge_base(self, name: str, *, was: str = "") -> RemoteKnowledgeBase:
        if kb := self._knowledge_bases.pop(was, None):
            kb.name = name
            self._knowledge_bases[name] = kb
        if name not in self._knowledge_bases:
            self._knowledge_bases[name] = RemoteKnowledgeBase(self._transport, name)
        return self._knowledge_bases[name]


@explained
class AsyncWorkspace(WorkspaceCalls[AsyncKnowledgeBase], Awaited):
    """A remote workspace whose calls are awaited.

    ``workspace["name"]`` sends no request; the first call of the knowledge base does.

    ::

        async with AsyncWorkspace("http://127.0.0.1:8765", token=token) as workspace:
            hits = await workspace.search("connection pool")
    """

    _transport: AsyncTransport

    def __init__(self, url: str, *, token: str | None = None, timeout: float = 30.0) -> None:
        """Prepare a client; sends no request yet."""
        transport = AsyncTransport(url, token=token, timeout=timeout)
        super().__init__(transport)
        self.files = AsyncFiles(transport)
        self.entries = AsyncEntries(transport)
        self.graph = AsyncGraph(transport)

    def __getitem__(self, name: str) -> AsyncKnowledgeBase:
        """Return the knowledge base of a name, without checking that it exists."""
        return self._knowledge_base(name)

    async def __aiter__(self) -> AsyncIterator[str]:
        for info in await self.list():
            yield info.name

    async def to_frame(self) -> pd.DataFrame:
        from kbkit.frames import workspace_frame

        return workspace_frame(await self.list())

    def as_retriever(
        self,
        *,
        kbs: Sequence[str] | None = None,
        limit: int = 10,
        mode: str | Mode = Mode.HYBRID,
        filters: Filters | Mapping[str, Any] | None = None,
    ) -> BaseRetriever:
        """Return the search over several knowledge bases as an awaited retriever."""
        with whole("A retriever"):
            from kbkit.retrieval.llamaindex import AwaitedRetriever, asking

        named = None if kbs is None else names(kbs)
        return AwaitedRetriever(
            asking(self.search, kbs=named, limit=limit, mode=mode, filters=filters)
        )

    async def close(self) -> None:
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<AsyncWorkspace {self.url!r}>"

    def _knowledge_base(self, name: str, *, was: str = "") -> AsyncKnowledgeBase:
        return AsyncKnowledgeBase(self._transport, name)


def connect(url: str, *, token: str | None = None, timeout: float = 30.0) -> RemoteWorkspace:
    """Open the workspace of a server (`kbkit serve`); sends no request yet.

    Args:
        url: Address of the server.
        token: A token from `kbkit token create`, if the server needs one.
        timeout: Seconds until a response.

    Raises:
        ConfigError: The address or the token is malformed.
    """
    return RemoteWorkspace(Transport(url, token=token, timeout=timeout))
