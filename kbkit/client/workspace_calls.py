"""Calls of a workspace on a server."""

from __future__ import annotations

import builtins
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Generic, TypeVar
from uuid import uuid4

from kbkit.client.calls import (
    LONG,
    RemoteObject,
    Request,
    Steps,
    call,
    json_body,
    only_local,
    reads,
    reads_json,
    reads_many,
    reads_nothing,
    steps,
    url,
)
from kbkit.client.collections import KNOWLEDGE, list_all
from kbkit.client.documents import matching
from kbkit.client.knowledge_base import answer_request, filters_of, search_request
from kbkit.client.work import OnProgress, run_job
from kbkit.errors import BundleError, ConfigError, ConflictError
from kbkit.models import (
    About,
    Answer,
    BundleArchive,
    BundleInfo,
    Compaction,
    Context,
    DeletedKnowledgeBase,
    Filters,
    Health,
    Hits,
    KnowledgeBaseInfo,
    Mode,
    Restoration,
    Run,
    Subject,
    SubjectKind,
)
from kbkit.recipes import AnyEmbedding, KnowledgeBaseSpec, RetrievalSpec
from kbkit.runtime.validation import check_text

if TYPE_CHECKING:
    from llama_index.core.llms import LLM


class SubjectCalls:
    """Requests for subjects."""

    @call
    def subjects(
        self,
        *,
        kind: str | SubjectKind | None = None,
        like: str = "",
        kbs: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> Request[list[Subject]]:
        """List subjects that chunks mention, the most mentioned first."""
        params = {"kind": kind, "like": check_text("like", like), "kbs": names(kbs), "limit": limit}
        return Request("GET", "/api/knowledge/subjects", reads_many(Subject), params)

    @call
    def about(
        self, query: str, *, kbs: Sequence[str] | None = None, limit: int = 20
    ) -> Request[About]:
        """Find chunks, documents and entities about a subject."""
        params = {"query": check_text("query", query), "kbs": names(kbs), "limit": limit}
        return Request("GET", "/api/knowledge/about", reads(About), params)


def names(kbs: Sequence[str] | None) -> list[str] | None:
    """Return names of knowledge bases; ``None`` for all."""
    if kbs is None:
        return None
    if not kbs:
        raise ConfigError("kbs is empty: name a knowledge base, or leave kbs out for all")
    return [kbs] if isinstance(kbs, str) else list(kbs)


class BundleCalls:
    """Requests for bundles; see `kbkit.Workspace`."""

    @steps
    def bundle(
        self,
        place: str | Path,
        *,
        kbs: Sequence[str] | None = None,
        sign: str | Path | None = None,
        on_progress: OnProgress | None = None,
    ) -> Steps[BundleInfo]:
        """Bundle knowledge bases on the server, fetch the file, and sign it on this machine."""
        from kbkit.bundles import NewFile, bundle_path, reader

        began = time.monotonic()
        if sign is not None:
            reader.private_key(sign)
        path = bundle_path(place)
        body = {"kbs": names(kbs), "wait": on_progress is None}
        bundle = yield from run_job(
            BundleArchive, _post_job("bundles", json=body, timeout=60.0), on_progress=on_progress
        )
        if bundle is None:
            raise ConflictError("the bundle was stopped on the server; make it again")
        with NewFile(path) as file:
            at = url(f"{KNOWLEDGE}/bundles/{{}}", bundle.archive)
            yield Request("GET", at, reads_nothing, timeout=LONG, into=file)
            if sign is not None:
                file.sign(partial(reader.sign, key_file=sign))
            file.finish()
        return BundleInfo(
            str(path),
            bundle.knowledge_bases,
            bundle.documents,
            bundle.chunks,
            path.stat().st_size,
            bundle.sha256,
            sign is not None,
            bundle.skipped,
            round(time.monotonic() - began, 3),
        )

    @steps
    def restore(
        self,
        path: str | Path,
        *,
        name: str = "",
        verify: str | Path | None = None,
        trust: bool = False,
        on_progress: OnProgress | None = None,
    ) -> Steps[Restoration]:
        """Send a bundle on this machine to the server, which stores all of it or nothing.

        Sources that read the server's disk stay disabled, even with ``trust``.
        """
        from kbkit.bundles import reader

        form = {"name": name, "trust": str(bool(trust)).lower()}
        form |= {"wait": str(on_progress is None).lower()}
        if verify is not None:
            form["verify"] = reader.public_pem(verify)
        fields = [(key, (None, value)) for key, value in form.items() if value]
        with _open_bundle(path) as file:
            parts = [*fields, ("bundle", ("bundle.zip", file))]
            request = _post_job("restore", files=parts, timeout=LONG)
            restoration = yield from run_job(Restoration, request, on_progress=on_progress)
        if restoration is None:
            raise ConflictError("restoring was stopped on the server; restore the bundle again")
        return replace(restoration, bundle=str(path))


def _open_bundle(path: str | Path) -> BinaryIO:
    try:
        return Path(path).open("rb")
    except OSError as error:
        raise BundleError(f"{path}: cannot be read ({error.strerror})") from error


def _post_job(work: str, **params: Any) -> Request[None]:
    headers = {"Idempotency-Key": uuid4().hex}
    return Request("POST", f"{KNOWLEDGE}/{work}", reads_nothing, headers=headers, **params)


K = TypeVar("K")


class WorkspaceCalls(SubjectCalls, BundleCalls, RemoteObject, ABC, Generic[K]):
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

    @call
    def health(self) -> Request[dict[str, Any]]:
        """Return ``status`` and ``version`` of the server."""
        return Request("GET", "/health", reads_json)

    @steps
    def list(self) -> Steps[builtins.list[KnowledgeBaseInfo]]:
        """List all knowledge bases with their figures, in order of name."""
        return (yield from list_all(KnowledgeBaseInfo, f"{KNOWLEDGE}/bases", {}))

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
        body = json_body(
            name=name, description=description, spec=_dumped(spec), embedding=_dumped(embedding)
        )
        info = yield Request("POST", f"{KNOWLEDGE}/bases", reads(KnowledgeBaseInfo), json=body)
        return self._knowledge_base(info.name)

    @call
    def delete(
        self, name: str, *, forever: bool = False, if_match: str | None = None
    ) -> Request[None]:
        """Move a knowledge base to the trash; `undelete` restores it."""
        headers = matching(if_match)
        return Request("DELETE", _at(name), reads_nothing, {"forever": forever}, headers=headers)

    @steps
    def undelete(self, name: str, *, to: str = "") -> Steps[K]:
        """Restore a deleted knowledge base with its content."""
        path = url(f"{KNOWLEDGE}/trash/{{}}/undelete", name)
        info = yield Request("POST", path, reads(KnowledgeBaseInfo), json=json_body(to=to or None))
        return self._knowledge_base(info.name)

    @steps
    def trash(self) -> Steps[builtins.list[DeletedKnowledgeBase]]:
        """List knowledge bases that `undelete` can restore, the last deleted first."""
        return (yield from list_all(DeletedKnowledgeBase, f"{KNOWLEDGE}/trash", {}))

    @call
    def compact(self) -> Request[Compaction]:
        """Empty the trash of all kinds, and shrink the workspace."""
        return Request("POST", f"{KNOWLEDGE}/compact", reads(Compaction))

    @steps
    def doctor(self, *, repair: bool = False) -> Steps[Health]:
        """Check the workspace on the server, by content, and list what is wrong."""
        if repair:
            raise only_local("doctor(repair=True)", "kbkit doctor --repair")
        request = Request(
            "POST", f"{KNOWLEDGE}/doctor", reads_nothing, json={"wait": True}, timeout=60.0
        )
        health = yield from run_job(Health, request)
        if health is None:
            raise ConflictError("the check was stopped on the server without a result")
        return health

    @steps
    def runs(self, names: Iterable[str] | None = None) -> Steps[builtins.list[Run]]:
        """List reads of sources with time, duration and outcome, the last first."""
        params = None if names is None else builtins.list(names)
        if params == []:
            return []
        return (yield from list_all(Run, f"{KNOWLEDGE}/runs", {"kb": params}))

    @steps
    def rename(self, name: str, *, to: str, if_match: str | None = None) -> Steps[K]:
        """Rename a knowledge base; everything else stays."""
        info = yield _changing(name, {"name": to}, if_match)
        return self._knowledge_base(info.name, was=name)

    @steps
    def describe(self, name: str, *, description: str, if_match: str | None = None) -> Steps[K]:
        """Change the description of a knowledge base."""
        info = yield _changing(name, {"description": description}, if_match)
        return self._knowledge_base(info.name)

    @call
    def search(
        self,
        query: str,
        *,
        kbs: Sequence[str] | None = None,
        limit: int = 10,
        mode: str | Mode = Mode.HYBRID,
        filters: Filters | Mapping[str, Any] | None = None,
        retrieval: RetrievalSpec | None = None,
        graph: float | None = None,
    ) -> Request[Hits]:
        """Search several knowledge bases at once, or all of them."""
        return search_request(
            query, kbs, limit=limit, mode=mode, filters=filters, retrieval=retrieval, graph=graph
        )

    @call
    def ask(
        self,
        query: str,
        *,
        kbs: Sequence[str] | None = None,
        limit: int = 5,
        llm: LLM | None = None,
        filters: Filters | Mapping[str, Any] | None = None,
    ) -> Request[Answer]:
        """Answer a question from the best passages with the server's language model."""
        return answer_request(query, kbs, limit=limit, llm=llm, filters=filters)

    @call
    def context(
        self,
        query: str,
        *,
        kbs: Sequence[str] | None = None,
        max_tokens: int = 2000,
        limit: int | None = None,
        filters: Filters | Mapping[str, Any] | None = None,
    ) -> Request[Context]:
        """Collect passages that answer a question, as one text and as pieces with sources."""
        body = json_body(
            query=query, kbs=kbs, max_tokens=max_tokens, limit=limit, filters=filters_of(filters)
        )
        return Request("POST", f"{KNOWLEDGE}/context", reads(Context), json=body)

    @call
    def _find(self, name: str) -> Request[KnowledgeBaseInfo]:
        return Request("GET", _at(name), reads(KnowledgeBaseInfo))


def _at(name: str) -> str:
    return url(f"{KNOWLEDGE}/bases/{{}}", str(name))


def _changing(
    name: str, body: Mapping[str, str], if_match: str | None
) -> Request[KnowledgeBaseInfo]:
    headers = matching(if_match)
    return Request("PATCH", _at(name), reads(KnowledgeBaseInfo), json=body, headers=headers)


def _dumped(spec: Any) -> Any:
    return spec.model_dump(mode="json") if hasattr(spec, "model_dump") else spec
