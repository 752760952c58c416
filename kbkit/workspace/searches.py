"""Queries over several knowledge bases, and facts about the entities of a question."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbkit import models
from kbkit.errors import ConfigError, NotFoundError
from kbkit.knowledge_base import KnowledgeBase, Resources, handle_of
from kbkit.recipes import RetrievalSpec
from kbkit.retrieval.context import MIN_TOKENS, SAID, SOUGHT, ContextFact, Finder, Findings, build
from kbkit.retrieval.query import NamedEntity, Query, distance_of, entities_in
from kbkit.retrieval.retriever import Retriever
from kbkit.retrieval.searching import ask, hit_of, search
from kbkit.runtime.validation import check_integer, explain_calls
from kbkit.stores.catalog import knowledge_bases, relations
from kbkit.stores.catalog.database import Database
from kbkit.stores.catalog.graph_reading import definitions, related
from kbkit.stores.stores import Stores
from kbkit.text.markdown.structure import plain_text

if TYPE_CHECKING:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.llms import LLM


RELATIONS = 4
"""Maximum relations and aliases of an entity."""

_CANDIDATES = 2
"""Candidates per result, because some entities have no facts."""
_PLACES = 10
"""Passages read per entity, to find its definition."""
_MAX_DESCRIPTION = 300
"""Maximum characters of a description."""
_MIN_SHARE = 0.3
"""Minimum share of chunks in which a common word is a name."""


@explain_calls
class WorkspaceSearches(ABC):
    """The searches of a workspace."""

    _stores: Stores
    _resources: Resources

    @property
    def path(self) -> Path:
        """Folder of the workspace."""
        return self._stores.folder

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of knowledge bases."""
        return iter(self._stores.database.look_up(knowledge_bases.names))

    @abstractmethod
    def __getitem__(self, name: str) -> KnowledgeBase:
        """Return a knowledge base by name."""

    @abstractmethod
    def _finders(self, query: str, kbs: Container[str], *, all_kbs: bool) -> Mapping[str, Finder]:
        """Return retrievers of a context, in addition to passages and the graph."""

    def search(
        self,
        query: str,
        *,
        kbs: Sequence[str] | None = None,
        limit: int = 10,
        mode: str | models.Mode = models.Mode.HYBRID,
        filters: models.Filters | Mapping[str, Any] | None = None,
        retrieval: RetrievalSpec | None = None,
        graph: float | None = None,
    ) -> models.Hits:
        """Search several knowledge bases at once, or all of them.

        Args:
            query: A question or some words.
            kbs: Names, at least one; by default all.
            limit: Maximum number of hits in total.
            mode: ``hybrid``, ``dense`` or ``lexical``.
            filters: Conditions; see `KnowledgeBase.search`.
            retrieval: Ranking settings; by default those of each knowledge base.
            graph: Weight of the graph, 0 (off) to 5; by default that of each knowledge base.

        Raises:
            ConfigError: The query is empty, or limit, mode, a filter or ``kbs`` is invalid.
            NotFoundError: There is no such knowledge base, or the workspace is empty.
        """
        parsed = Query.of(query, limit, mode, filters, retrieval, graph=graph)
        return search(list(self._retrievers(kbs).values()), parsed)

    def ask(
        self,
        query: str,
        *,
        kbs: Sequence[str] | None = None,
        limit: int = 5,
        llm: LLM | None = None,
        filters: models.Filters | Mapping[str, Any] | None = None,
    ) -> models.Answer:
        """Answer a question from the best passages with a language model.

        See `KnowledgeBase.ask`; ``kbs`` are names, at least one, by default all.

        Raises:
            ConfigError: The query is empty, or the limit, a filter or ``kbs`` is invalid.
            NotFoundError: There is no such knowledge base, or the workspace is empty.
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
        filters: models.Filters | Mapping[str, Any] | None = None,
    ) -> models.Context:
        """Collect passages that answer a question, as one text and as pieces with sources.

        Contains passages without repetitions, facts about entities of the question, matching
        entries, the best rated first, and the root folders of the files. Each is numbered, between
        random marks, with title, headings, address, day of fetching and state. Tokens are counted
        by Llama 2's tokenizer, which usually counts more than newer ones.

        Args:
            query: A question or some words.
            kbs: Names, at least one; by default all.
            max_tokens: Maximum tokens of the text, 100 or more.
            limit: Maximum number of passages; by default ``KBKIT_TOP_K``, else 3.
            filters: Conditions; see `KnowledgeBase.search`. With filters, only passages are
                returned.

        Raises:
            ConfigError: The query is empty, the limit, a filter or ``kbs`` is invalid, or the
                budget is too small for one passage.
            NotFoundError: There is no such knowledge base, or the workspace is empty.
        """
        settings = self._resources.settings
        budget = check_integer("max_tokens", max_tokens, MIN_TOKENS)
        count = check_integer("limit", settings.top_k if limit is None else limit, 1)
        parsed = Query.of(query, SOUGHT * count, filters=filters)

        retrievers = self._retrievers(kbs)

        def find() -> Findings:
            hits = search(list(retrievers.values()), parsed)
            return Findings(hits.hits, notes=hits.notes)

        finders: dict[str, Finder] = {}
        if settings.max_entities and parsed.filters == models.Filters():
            finders["graph"] = lambda: _entity_facts(
                self._stores.database, retrievers, parsed.text, settings.max_entities
            )
        if parsed.filters == models.Filters():
            finders |= self._finders(parsed.text, retrievers, all_kbs=kbs is None)
        return build(query, find, finders, count, budget)

    def subjects(
        self,
        *,
        kind: str | models.SubjectKind | None = None,
        like: str = "",
        kbs: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> list[models.Subject]:
        """List subjects that chunks mention, the most mentioned first.

        Args:
            kind: Only ``domain``, ``entity``, ``problem``, ``resolution`` or ``context``.
            like: Only names that contain this text.
            kbs: Only of these knowledge bases, at least one; by default of all.
            limit: Maximum number of subjects; by default all.

        Raises:
            ConfigError: The kind, the limit or ``kbs`` is invalid.
            NotFoundError: There is no such knowledge base.
        """
        handles = [handle_of(self[name]) for name in self._names(kbs)]
        from kbkit.knowledge_base.annotations import list_subjects

        return list_subjects(self._stores, handles, kind=kind, like=like, limit=limit)

    def about(
        self, query: str, *, kbs: Sequence[str] | None = None, limit: int = 20
    ) -> models.About:
        """Find chunks, documents and entities about a subject.

        Args:
            query: A name of a subject, in any of its forms (``connection pool``).
            kbs: Only in these knowledge bases, at least one; by default in all.
            limit: Maximum number of each.

        Raises:
            ConfigError: The query is empty, or the limit or ``kbs`` is invalid.
            NotFoundError: There is no such subject; the message suggests similar names.
        """
        handles = [handle_of(self[name]) for name in self._names(kbs)]
        from kbkit.knowledge_base.annotations import about

        return about(self._stores, handles, query, limit=limit)

    def as_retriever(
        self,
        *,
        kbs: Sequence[str] | None = None,
        limit: int = 10,
        mode: str | models.Mode = models.Mode.HYBRID,
        filters: models.Filters | Mapping[str, Any] | None = None,
    ) -> BaseRetriever:
        """Return `search` as a llama-index retriever; see `KnowledgeBase.as_retriever`."""
        from kbkit.retrieval.llamaindex import KbkitRetriever, asking

        for name in self._names(kbs):
            self[name]
        return KbkitRetriever(asking(self.search, kbs=kbs, limit=limit, mode=mode, filters=filters))

    def _retrievers(self, kbs: Sequence[str] | None) -> dict[str, Retriever]:
        names = self._names(kbs)
        if not names:
            raise NotFoundError(
                f"{self.path}: has no knowledge base yet; create one with `kbkit new`"
            )
        return {name: handle_of(self[name]).retriever for name in names}

    def _names(self, kbs: Sequence[str] | None) -> Sequence[str]:
        if kbs is None:
            return tuple(self)
        if not kbs:
            raise ConfigError("kbs is empty: name a knowledge base, or leave kbs out for all")
        return tuple(dict.fromkeys([kbs] if isinstance(kbs, str) else kbs))


def _entity_facts(
    database: Database, retrievers: Mapping[str, Retriever], query: str, limit: int
) -> Findings:
    """Find facts about the entities that a question names, of long and rare names first.

    Leave out entities without definition, aliases, description and relations.
    """
    by_entity: dict[str, list[NamedEntity]] = {}
    for retriever in retrievers.values():
        for named in entities_in(query, retriever.graph(), retriever.frequency):
            if named.share >= _MIN_SHARE and named.entity.chunks:
                by_entity.setdefault(named.entity.id, []).append(named)
    if not by_entity:
        return Findings()

    def rank(group: Sequence[NamedEntity]) -> tuple[int, int, str]:
        return -group[0].words, sum(named.entity.chunks for named in group), group[0].entity.id

    groups = sorted(by_entity.values(), key=rank)[: _CANDIDATES * limit]
    ids = [group[0].entity.id for group in groups]
    kb_of = {retriever.kb_id: kb for kb, retriever in retrievers.items()}
    with database.read() as transaction:
        edges = [each[:RELATIONS] for each in related(transaction, ids, list(kb_of)).values()]
        ends = {end for each in edges for edge in each for end in (edge.source, edge.target)}
        labels = relations.labels(transaction, ends)
        found = definitions(transaction, ids)
    places = [[(seq, kb_of[kb]) for seq, kb in found[id_] if kb in kb_of][:_PLACES] for id_ in ids]
    chunks = database.chunks(sorted({seq for pairs in places for seq, _ in pairs}))
    facts = []
    for group, of_entity, pairs in zip(groups, edges, places, strict=True):
        entities = [named.entity for named in group]
        rows = [(kb, *chunks[seq]) for seq, kb in pairs if seq in chunks]
        lines = [f"{labels[e.source][0]} {e.name} {labels[e.target][0]}" for e in of_entity]
        facts.append(_fact(entities, "; ".join(lines), _definition(entities, rows)))
    informative = [fact for fact in facts if fact.hit is not None or len(fact.lines) > 1]
    return Findings(facts=informative[:limit])


def _definition(
    entities: Sequence[models.Entity], rows: Sequence[tuple[str, models.Chunk, models.Document]]
) -> models.Hit | None:
    rows = [row for row in rows if row[2].state is not models.DocumentState.GONE]
    spellings = {name for entity in entities for name in (entity.name, *entity.aliases)}
    best = min(rows, key=lambda row: distance_of(row[1], spellings), default=None)
    return None if best is None else hit_of(*best)


def _fact(entities: Sequence[models.Entity], relations: str, hit: models.Hit | None) -> ContextFact:
    entity = entities[0]
    beginning = "" if hit is None else _beginning(hit.chunk.text)
    description = next((each.description for each in entities if each.description), beginning)
    aliases = dict.fromkeys(name for each in entities for name in each.aliases)
    lines = {
        "entity: ": f"{entity.name} ({entity.type})" if entity.type else entity.name,
        "also: ": ", ".join(list(aliases)[:RELATIONS]),
        SAID: description,
        "relations: ": relations,
    }
    texts = tuple(f"{name}{value}" for name, value in lines.items() if value)
    return ContextFact(entity.name, texts, hit)


def _beginning(text: str) -> str:
    line = " ".join(plain_text(text).split())
    if len(line) <= _MAX_DESCRIPTION:
        return line
    ends = [match.end() for match in re.finditer(r"[.!?](?= )", line[:_MAX_DESCRIPTION])]
    return line[: ends[-1]] if ends else f"{line[:_MAX_DESCRIPTION].rsplit(' ', 1)[0]} ..."
