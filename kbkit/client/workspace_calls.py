"""Calls of a workspace on a server."""

from __future__ import annotations

import builtins
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from kbkit.client.calls import RemoteObject, Steps, only_local, steps
from kbkit.client.declared import KNOWLEDGE, Names, call, every
from kbkit.client.documents import Conditions
from kbkit.client.knowledge_base import Model, Retrieval
from kbkit.client.work import BundleCalls, job, result_of
from kbkit.models import (
    About,
    Answer,
    Compaction,
    Context,
    DeletedKnowledgeBase,
    Health,
    Hits,
    KnowledgeBaseInfo,
    Mode,
    Run,
    Subject,
    SubjectKind,
)
from kbkit.recipes import AnyEmbedding, KnowledgeBaseSpec


def _no_repair(repair: bool) -> None:
    if repair:
        raise only_local("doctor(repair=True)", "kbkit doctor --repair")


K = TypeVar("K")
_BASE = f"{KNOWLEDGE}/bases/{{name}}"


class WorkspaceCalls(BundleCalls, RemoteObject, ABC, Generic[K]):
    """Requests for a workspace, with knowledge bases of class `K`; see `kbkit.Workspace`.

    Attributes:
        files: Notes that agents and people write, in folders.
        entries: Rated solutions that worked.
        graph: Entities of its knowledge bases and the relations between them.
    """

    _transport: Any
    _only_local: ClassVar[Mapping[str, str]] = {"rebuild": "kbkit rebuild"}

    @property
    def url(self) -> str:
        """Address of the server."""
        address: str = self._transport.url
        return address

    @abstractmethod
    def _knowledge_base(self, name: str, *, was: str = "") -> K:
        """Return a knowledge base; ``was`` is its name before a renaming."""

    @call("GET /health")
    def health(self) -> dict[str, Any]:
        """Return ``status`` and ``version`` of the server."""

    @every(f"{KNOWLEDGE}/bases")
    def list(self) -> builtins.list[KnowledgeBaseInfo]:
        """List all knowledge bases with their figures, in order of name."""

    @steps
    def create(
        self,
        name: str,
        *,
        description: str = "",
        spec: KnowledgeBaseSpec | None = None,
        embedding: AnyEmbedding | str | None = None,
    ) -> Steps[K]:
        """Create an empty knowledge base."""
        info = yield from WorkspaceCalls._create(
            self, name=name, description=description, spec=spec, embedding=embedding
        )
        return self._knowledge_base(info.name)

    @call(f"POST {KNOWLEDGE}/bases")
    def _create(
        self,
        *,
        name: str,
        description: str,
        spec: KnowledgeBaseSpec | None,
        embedding: AnyEmbedding | str | None,
    ) -> KnowledgeBaseInfo: ...

    @call(f"DELETE {_BASE}")
    def delete(self, name: str, *, forever: bool = False, if_match: str | None = None) -> None:
        """Move a knowledge base to the trash; `undelete` restores it."""

    @steps
    def undelete(self, name: str, *, to: str = "") -> Steps[K]:
        """Restore a deleted knowledge base with its content."""
        info = yield from WorkspaceCalls._undelete(self, name, to=to or None)
        return self._knowledge_base(info.name)

    @call(f"POST {KNOWLEDGE}/trash/{{name}}/undelete")
    def _undelete(self, name: str, *, to: str | None) -> KnowledgeBaseInfo: ...

    @every(f"{KNOWLEDGE}/trash")
    def trash(self) -> builtins.list[DeletedKnowledgeBase]:
        """List knowledge bases that `undelete` can restore, the last deleted first."""

    @call(f"POST {KNOWLEDGE}/compact")
    def compact(self) -> Compaction:
        """Empty the trash of all kinds, and shrink the workspace."""

    @job(f"POST {KNOWLEDGE}/doctor", result_of(Health, "check"))
    def doctor(self, *, repair: Annotated[bool, _no_repair] = False) -> Health:
        """Check the workspace on the server, by content, and list what is wrong."""

    @steps
    def runs(self, names: Iterable[str] | None = None) -> Steps[builtins.list[Run]]:
        """List reads of sources with time, duration and outcome, the last first."""
        kb = None if names is None else builtins.list(names)
        if kb == []:
            return []
        return (yield from WorkspaceCalls._runs(self, kb))

    @every(f"{KNOWLEDGE}/runs")
    def _runs(self, kb: Sequence[str] | None) -> builtins.list[Run]: ...

    @steps
    def rename(self, name: str, *, to: str, if_match: str | None = None) -> Steps[K]:
        """Rename a knowledge base; everything else stays."""
        info = yield from WorkspaceCalls._rename(self, name, to=to, if_match=if_match)
        return self._knowledge_base(info.name, was=name)

    @call(f"PATCH {_BASE}", names={"to": "name"})
    def _rename(self, name: str, *, to: str, if_match: str | None) -> KnowledgeBaseInfo: ...

    @steps
    def describe(self, name: str, *, description: str, if_match: str | None = None) -> Steps[K]:
        """Change the description of a knowledge base."""
        info = yield from WorkspaceCalls._describe(self, name, description, if_match=if_match)
        return self._knowledge_base(info.name)

    @call(f"PATCH {_BASE}")
    def _describe(
        self, name: str, description: str, *, if_match: str | None
    ) -> KnowledgeBaseInfo: ...

    @call(f"GET {KNOWLEDGE}/subjects")
    def subjects(
        self,
        *,
        kind: str | SubjectKind | None = None,
        like: str = "",
        kbs: Names | None = None,
        limit: int | None = None,
    ) -> builtins.list[Subject]:
        """List subjects that chunks mention, the most mentioned first."""

    @call(f"GET {KNOWLEDGE}/about")
    def about(self, query: str, *, kbs: Names | None = None, limit: int = 20) -> About:
        """Find chunks, documents and entities about a subject."""

    @call(f"POST {KNOWLEDGE}/search")
    def search(
        self,
        query: str,
        *,
        kbs: Sequence[str] | None = None,
        limit: int = 10,
        mode: str | Mode = Mode.HYBRID,
        filters: Conditions | None = None,
        retrieval: Retrieval | None = None,
        graph: float | None = None,
    ) -> Hits:
        """Search several knowledge bases at once, or all of them."""

    @call(f"POST {KNOWLEDGE}/ask")
    def ask(
        self,
        query: str,
        *,
        kbs: Sequence[str] | None = None,
        limit: int = 5,
        llm: Model | None = None,
        filters: Conditions | None = None,
    ) -> Answer:
        """Answer a question from the best passages with the server's language model."""

    @call(f"POST {KNOWLEDGE}/context")
    def context(
        self,
        query: str,
        *,
        kbs: Sequence[str] | None = None,
        max_tokens: int = 2000,
        limit: int | None = None,
        filters: Conditions | None = None,
    ) -> Context:
        """Collect passages that answer a question, as one text and as pieces with sources."""

    @call(f"GET {_BASE}")
    def _find(self, name: str) -> KnowledgeBaseInfo: ...
