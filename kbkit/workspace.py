"""Workspace: a folder that holds knowledge bases. The one place that chooses concrete classes."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from kbkit.arguments import explained
from kbkit.config import Settings
from kbkit.embedding.embedders import Embedders
from kbkit.errors import (
    ConfigError,
    ConflictError,
    InvalidNameError,
    NotFoundError,
)
from kbkit.frames import rows_html, workspace_frame
from kbkit.graph.facts import EntityFacts
from kbkit.knowledge_base import KnowledgeBase, Resources, handle_of
from kbkit.knowledge_base.subjects import about, list_subjects
from kbkit.models import (
    About,
    Answer,
    Compaction,
    Context,
    DeletedKnowledgeBase,
    Filters,
    Hits,
    KnowledgeBaseInfo,
    Mode,
    Subject,
    SubjectKind,
)
from kbkit.recipes import (
    AnyEmbedding,
    KnowledgeBaseSpec,
    OnnxEmbedding,
    RetrievalSpec,
    StaticEmbedding,
    check_name,
    parse_embedding,
)
from kbkit.retrieval.answering import ask
from kbkit.retrieval.context import LEAST_TOKENS, SOUGHT, Findings, build
from kbkit.retrieval.query import Query
from kbkit.retrieval.searching import search
from kbkit.stores.catalog import knowledge_bases, trash
from kbkit.stores.stores import Stores
from kbkit.text import analyzer
from kbkit.validation import check_integer, check_text

if TYPE_CHECKING:
    import pandas as pd
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.llms import LLM

    from kbkit.graph.graph import Graph


@explained
class Workspace:
    """A folder of knowledge bases, opened for this process.

    Several processes may open one folder at once. A workspace may be used from several threads,
    and closes at the end of a ``with`` block.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        settings: Settings | None = None,
        stores: Stores | None = None,
    ) -> None:
        """Open a workspace, made when missing.

        Args:
            path: Its folder; by default ``KBKIT_WORKSPACE``, else ``./kb``.
            settings: Used instead of the environment's.
            stores: Used instead of those in the folder, and closed with the workspace; see
                `kbkit.stores.stores.Stores.on`.

        Raises:
            WorkspaceVersionError: A newer kbkit made it.
            WorkspaceError: The folder cannot be made, read or written.
        """
        settings = settings or Settings.load()
        self._stores = stores or Stores.open(Path(path or settings.workspace).absolute())
        self._resources = Resources(self._stores, settings, Embedders())
        self._knowledge_bases: dict[str, KnowledgeBase] = {}
        self._stores.vectors.sweep()  # what a deletion that was killed has left

    @property
    def path(self) -> Path:
        """Its folder."""
        return self._stores.folder

    @cached_property
    def graph(self) -> Graph:
        """Entities of its knowledge bases and the relations between them; see `Graph`."""
        from kbkit.graph.graph import Graph

        return Graph(self._stores, self._resources.settings.rater)

    def create(
        self,
        name: str,
        *,
        description: str = "",
        spec: KnowledgeBaseSpec | None = None,
        embedding: AnyEmbedding | str | None = None,
    ) -> KnowledgeBase:
        """Make an empty knowledge base.

        Args:
            name: A slug: lower-case letters, digits and hyphens.
            description: What it is about.
            spec: How it works; the defaults are good for documentation in English.
            embedding: What embeds its chunks, as a recipe has it, or the name of a preset
                (``"minilm"``); by default as the spec says.

        Raises:
            InvalidNameError: The name is not a slug.
            ConflictError: The name is taken.
            ConfigError: The language is unknown.
            EmbedderError: The embedder cannot be loaded.
        """
        _check(name)
        spec = spec or KnowledgeBaseSpec()
        if embedding is not None:
            chosen = parse_embedding(embedding) if isinstance(embedding, str) else embedding
            spec = spec.model_copy(update={"embedding": chosen})
        analyzer(spec.language)
        with self._stores.database.read() as transaction:
            if name in knowledge_bases.names(transaction):
                raise ConflictError(
                    f"a knowledge base named {name!r} exists; choose another name, or delete it"
                )
        embedder = self._resources.embedders.open(spec.embedding)
        mode = self._resources.settings.improve
        if isinstance(spec.embedding, OnnxEmbedding) and mode != "wait":
            # until the model has embedded all
            embedder = self._resources.embedders.open(StaticEmbedding())
        with self._stores.database.write() as transaction:
            row = knowledge_bases.create(
                transaction,
                name,
                description=description,
                config=spec.model_dump(mode="json"),
                embedder=embedder.fingerprint,
                dimensions=embedder.dimensions,
            )
        return self._knowledge_base(row)

    def __getitem__(self, name: str) -> KnowledgeBase:
        """The knowledge base of that name.

        Raises:
            NotFoundError: There is none; the message names those there are.
        """
        with self._stores.database.read() as transaction:
            row = knowledge_bases.get(transaction, name)
        return self._knowledge_base(row)

    def __contains__(self, name: object) -> bool:
        with self._stores.database.read() as transaction:
            return name in knowledge_bases.names(transaction)

    def __iter__(self) -> Iterator[str]:
        with self._stores.database.read() as transaction:
            return iter(knowledge_bases.names(transaction))

    def __len__(self) -> int:
        with self._stores.database.read() as transaction:
            return len(knowledge_bases.names(transaction))

    def list(self) -> list[KnowledgeBaseInfo]:
        """Figures of all knowledge bases, in order of name."""
        with self._stores.database.read() as transaction:
            return knowledge_bases.describe_all(transaction)

    def to_frame(self) -> pd.DataFrame:
        """Figures of all knowledge bases as a DataFrame, indexed by name."""
        return workspace_frame(self.list())

    def delete(self, name: str, *, forever: bool = False) -> None:
        """Put a knowledge base into the trash, from which `restore` brings it back.

        Args:
            name: Its name, which is free for another one then.
            forever: Leave nothing: documents, chunks, vectors, ratings and collection go at once.

        Raises:
            NotFoundError: There is none of that name.
        """
        with self._stores.database.write() as transaction:
            row = knowledge_bases.get(transaction, name)
            if forever:
                knowledge_bases.delete(transaction, row.id)
            else:
                trash.put_knowledge_base(transaction, row)
        self._knowledge_bases.pop(row.id, None)
        self._stores.snapshots.drop(row.id)
        self._stores.vectors.sweep()

    def restore(self, name: str, *, to: str = "") -> KnowledgeBase:
        """Bring a deleted knowledge base back with all that it held.

        Args:
            name: What it was called; of several the last that was deleted. Or its id.
            to: What it is to be called, where the name is taken by now.

        Raises:
            NotFoundError: The trash holds none of that name; the message names those it holds.
            ConflictError: The name is taken.
            InvalidNameError: The new name is not a slug.
        """
        if to:
            _check(to)
        with self._stores.database.write() as transaction:
            row = trash.restore_knowledge_base(transaction, name, to)
        self._stores.vectors.apply(row.id)
        return self._knowledge_base(row)

    def trash(self) -> builtins.list[DeletedKnowledgeBase]:
        """The deleted knowledge bases that `restore` can bring back, the last first."""
        with self._stores.database.read() as transaction:
            return trash.knowledge_bases_in_trash(transaction)

    def compact(self) -> Compaction:
        """Empty the trash, of knowledge bases and of documents, and make the workspace smaller.

        Nothing that was deleted can be brought back after that. A document whose source still has
        it stays away, all the same. Pictures that no document shows any more go too, unless a
        source is being read meanwhile.

        Raises:
            WorkspaceError: Another process uses the catalog all the time.
        """
        with self._stores.database.write() as transaction:
            documents, gone = trash.empty(transaction)
        self._stores.vectors.sweep()
        images, size = self._stores.sweep_images()
        return Compaction(documents, len(gone), images, size + self._stores.database.compact())

    def rename(self, name: str, *, to: str) -> KnowledgeBase:
        """Give a knowledge base another name; all else stays.

        Raises:
            NotFoundError: There is none of that name.
            ConflictError: The new name is taken.
            InvalidNameError: The new name is not a slug.
        """
        _check(to)
        with self._stores.database.write() as transaction:
            row = knowledge_bases.get(transaction, name)
            knowledge_bases.rename(transaction, row.id, to)
        renamed = self[to]
        handle_of(renamed).name = to
        return renamed

    def describe(self, name: str, *, description: str) -> KnowledgeBase:
        """Say anew what a knowledge base is about.

        The next build of its recipe says what the recipe says.

        Raises:
            NotFoundError: There is none of that name.
        """
        said = " ".join(check_text("description", description).split())
        with self._stores.database.write() as transaction:
            row = knowledge_bases.get(transaction, name)
            knowledge_bases.update(transaction, row.id, description=said, config=row.config)
            knowledge_bases.touch(transaction, row.id)
        return self[name]

    def __getattr__(self, name: str) -> Any:
        """Answer what other libraries call the same by how it is written here."""
        if name in ("open", "get", "load", "kb", "knowledge_base"):
            raise AttributeError(
                f"a workspace has no {name!r}: write workspace['name'] for a knowledge base, "
                "and workspace.create('name') for a new one"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def search(
        self,
        query: str,
        *,
        kbs: Sequence[str] | None = None,
        limit: int = 10,
        mode: str | Mode = Mode.HYBRID,
        filters: Filters | Mapping[str, Any] | None = None,
        retrieval: RetrievalSpec | None = None,
    ) -> Hits:
        """Search several knowledge bases at once, or all of them.

        Args:
            query: A question or some words.
            kbs: Names, at least one; by default all.
            limit: Most hits in all.
            mode: ``hybrid``, ``dense`` or ``lexical``.
            filters: What a document must be; see `KnowledgeBase.search`.
            retrieval: How to rank; by default as the first knowledge base wants it.

        Raises:
            ConfigError: The query is empty, or limit, mode or a filter is wrong, or ``kbs`` names
                none.
            NotFoundError: A name is not there, or the workspace is empty.
        """
        names = self._named(kbs)
        if not names:
            raise NotFoundError(
                f"{self.path}: has no knowledge base yet; make one with `kbkit new`"
            )
        asked = Query.of(query, limit, mode, filters, retrieval)
        return search([handle_of(self[name]).retriever for name in names], asked)

    def ask(
        self,
        query: str,
        *,
        kbs: Sequence[str] | None = None,
        limit: int = 5,
        llm: LLM | None = None,
        filters: Filters | Mapping[str, Any] | None = None,
    ) -> Answer:
        """What a language model makes of the passages that answer a query best.

        See `KnowledgeBase.ask`; ``kbs`` are names, at least one, by default all.

        Raises:
            ConfigError: The query is empty, or the limit or a filter is wrong, or ``kbs`` names
                none.
            NotFoundError: A name is not there, or the workspace is empty.
            LanguageModelError: The model failed.
        """
        return ask(self.search(query, kbs=kbs, limit=limit, filters=filters), llm)

    def context(
        self,
        query: str,
        *,
        kbs: Sequence[str] | None = None,
        max_tokens: int = 2000,
        limit: int | None = None,
        filters: Filters | Mapping[str, Any] | None = None,
    ) -> Context:
        """What an agent needs to answer a question, as one text and as pieces with their sources.

        Passages of the search without what they repeat, and what is known of the entities that the
        question names (their relations, and where they are told of), each between marks that no
        document can have foreseen, numbered, with title, headings, address, day of fetching and
        state. Tokens are counted by the tokenizer of the static embedder (that of Llama 2), which
        on most texts counts more than those of newer models.

        Args:
            query: A question or some words.
            kbs: Names, at least one; by default all.
            max_tokens: Most tokens of the text, 100 or more.
            limit: Most passages; by default as ``KBKIT_TOP_K`` says, else 3.
            filters: What a document must be; see `KnowledgeBase.search`. With some, only passages
                are given.

        Raises:
            ConfigError: The query is empty, the limit or a filter is wrong, the budget holds no
                passage with its source, or ``kbs`` names none.
            NotFoundError: A name is not there, or the workspace is empty.
        """
        settings = self._resources.settings
        most = check_integer("max_tokens", max_tokens, LEAST_TOKENS)
        wanted = check_integer("limit", settings.top_k if limit is None else limit, 1)
        asked = Query.of(query, SOUGHT * wanted, filters=filters)

        def find() -> Findings:
            hits = self.search(query, kbs=kbs, limit=asked.limit, filters=asked.filters)
            return Findings(hits.hits, notes=hits.notes)

        names = {handle_of(self[name]).id: name for name in self._named(kbs)}
        facts = EntityFacts(self._stores.database, names, settings.max_entities)
        known = settings.max_entities and asked.filters == Filters()
        legs = {"graph": lambda: facts.find(asked.text)} if known else {}
        return build(query, find, legs, wanted, most)

    def subjects(
        self,
        *,
        kind: str | SubjectKind | None = None,
        like: str = "",
        kbs: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> builtins.list[Subject]:
        """Subjects that chunks speak of, those that most speak of first.

        Args:
            kind: Only ``domain``, ``entity``, ``problem``, ``resolution`` or ``context``.
            like: Only those with this text in a name.
            kbs: Only of these knowledge bases, at least one; by default of all.
            limit: Most subjects; by default all.

        Raises:
            ConfigError: The kind is unknown, the limit is wrong, or ``kbs`` names none.
            NotFoundError: A name of a knowledge base is not there.
        """
        handles = [handle_of(self[name]) for name in self._named(kbs)]
        return list_subjects(self._stores, handles, kind=kind, like=like, limit=limit)

    def about(self, query: str, *, kbs: Sequence[str] | None = None, limit: int = 20) -> About:
        """What speaks of a subject: chunks, documents, and entities beside it.

        Args:
            query: A name of a subject (``connection pool``), in any of its forms.
            kbs: Only in these knowledge bases, at least one; by default in all.
            limit: Most of each.

        Raises:
            ConfigError: The query is empty, the limit is wrong, or ``kbs`` names none.
            NotFoundError: Nothing is called so; the message says what is called nearly so.
        """
        handles = [handle_of(self[name]) for name in self._named(kbs)]
        return about(self._stores, handles, query, limit=limit)

    def as_retriever(
        self,
        *,
        kbs: Sequence[str] | None = None,
        limit: int = 10,
        mode: str | Mode = Mode.HYBRID,
        filters: Filters | Mapping[str, Any] | None = None,
    ) -> BaseRetriever:
        """The search over several knowledge bases as a llama-index retriever.

        Takes what `search` takes; see `KnowledgeBase.as_retriever`.

        Raises:
            ConfigError: Limit, mode or a filter is wrong, or ``kbs`` names none.
            NotFoundError: A name is not there.
        """
        from kbkit.retrieval.llamaindex import KbkitRetriever

        asked = Query.of("anything", limit, mode, filters)
        for name in self._named(kbs):
            self[name]
        return KbkitRetriever(
            lambda text: self.search(
                text, kbs=kbs, limit=asked.limit, mode=asked.mode, filters=asked.filters
            )
        )

    def _named(self, kbs: Sequence[str] | None) -> Sequence[str]:
        """Those that are meant, each once; all where nothing is said.

        Raises:
            ConfigError: An empty list names none. It is more likely what a filter has left than a
                wish for all.
        """
        if kbs is None:
            return tuple(self)
        if not kbs:
            raise ConfigError("kbs is empty: name a knowledge base, or leave kbs out for all")
        return tuple(dict.fromkeys([kbs] if isinstance(kbs, str) else kbs))

    def close(self) -> None:
        """Let go of the folder; the workspace cannot be used any more."""
        self._stores.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Workspace {str(self.path)!r}>"

    def _repr_html_(self) -> str:
        rows = (
            (info.name, info.description, f"{info.documents:,}", f"{info.chunks:,}",
             f"{info.updated_at:%Y-%m-%d %H:%M}") for info in self.list()
        )  # fmt: skip
        header = ("name", "description", "documents", "chunks", "updated (UTC)")
        return rows_html(f"Workspace {str(self.path)!r}", header, rows, most=None)

    def _knowledge_base(self, row: knowledge_bases.KnowledgeBaseRow) -> KnowledgeBase:
        """One object a knowledge base, so that what it has loaded is loaded once."""
        if row.id not in self._knowledge_bases:
            self._knowledge_bases[row.id] = KnowledgeBase(self._resources, row)
        return self._knowledge_bases[row.id]


def _check(name: str) -> None:
    """Whether a knowledge base may have a name.

    Raises:
        InvalidNameError: It is not a slug.
    """
    try:
        check_name(name)
    except ValueError as error:
        raise InvalidNameError(str(error)) from None
