"""Build the graph of a knowledge base, and update it after a refresh.

A chunk is read again if its names, or the names that its document defines, changed. So a refresh
reads only changes, with the same result as reading everything. Co-occurrence is counted each time.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from kbkit.errors import ConflictError, NotFoundError
from kbkit.graph import extraction
from kbkit.ingest.cutting import document_id
from kbkit.models import EntityType, StatedRelation
from kbkit.recipes import GraphSpec
from kbkit.stores.catalog import (
    chunk_annotations,
    corpus,
    graph,
    graph_writing,
    indexed_files,
    knowledge_bases,
    subjects,
)
from kbkit.stores.catalog.database import Database, Transaction
from kbkit.stores.catalog.graph import ChunkPlace, ChunkRelation, DefinedName
from kbkit.stores.catalog.subjects import SubjectName, entity_id
from kbkit.stores.stores import Stores
from kbkit.text.markdown.structure import plain_text

SMALL = 5_000
"""Maximum chunks of a graph that `build_small` builds."""

_BATCH = 250
"""Chunks written in one transaction, within some hundredths of a second."""
_SENTENCE_END = re.compile(r"[.!?](?= )")
_MIN_SENTENCE = 20
_IDENTIFIER = re.compile(r"[A-Za-z]\w*_\w+")
_MAX_LENGTH = 300  # of a description
_BOILERPLATE = 4  # a heading of this many documents is not a definition
_DEFINITION_WEIGHT = 1_000  # the type in a definition outweighs the types in mentions


@dataclass(slots=True)
class _State:
    places: list[ChunkPlace]
    mentions: dict[int, list[str]]
    names: dict[str, str]
    gazetteer: list[tuple[str, DefinedName]]
    documents: Mapping[str, extraction.DocumentNames]
    digests: Mapping[int, str]
    version: int
    curated: Mapping[str, str]
    aliases: Mapping[SubjectName, str]
    stated: Mapping[int, Sequence[StatedRelation]]
    spec: GraphSpec
    current_digests: dict[int, str] = field(default_factory=dict)

    @property
    def defined_names(self) -> dict[str, str]:
        return {id_: each.name for names in self.documents.values() for id_, each in names.named}


def build(database: Database, kb_id: str, *, stop: Callable[[], bool] = lambda: False) -> int:
    """Derive relations and entities from the annotated documents; continue an interrupted run."""
    state = _load(database, kb_id)
    stale = [
        place
        for place in state.places
        if state.digests.get(place.seq) != state.current_digests[place.seq]
    ]
    uris = {document.facts.uri: id_ for id_, document in state.documents.items()}
    for start in range(0, len(stale), _BATCH):
        if stop():
            return start
        batch = stale[start : start + _BATCH]
        texts = database.look_up(graph.texts, [place.seq for place in batch])
        facts: list[ChunkRelation] = []
        for place in batch if state.spec.build else ():
            if place.seq in texts:
                entities = {id_: state.names[id_] for id_ in state.mentions.get(place.seq, ())}
                stated = state.stated.get(place.seq, ())
                section = extraction.Section(place, texts[place.seq], entities, stated)
                document = state.documents[place.document_id]
                facts += extraction.facts_of(section, document, uris, partial(document_id, kb_id))
        with database.write() as transaction:
            knowledge_bases.get_by_id(transaction, kb_id)
            digests = {place.seq: state.current_digests[place.seq] for place in batch}
            graph_writing.put(transaction, kb_id, digests, facts)
    _store_derived(database, kb_id, state)
    return len(stale)


def _store_derived(database: Database, kb_id: str, state: _State) -> None:
    """Store derived data that changed; compare before each write, so that writes are short."""
    write = partial(knowledge_bases.write_in_batches, database, kb_id)
    sections: defaultdict[tuple[str, tuple[str, ...]], list[int]] = defaultdict(list)
    for place in state.places if state.spec.build else ():
        sections[place.document_id, place.heading_path].append(place.seq)
    together = extraction.co_occurrence(
        list(sections.values()), state.mentions, state.names, state.spec
    )
    removed, added = database.look_up(graph_writing.co_occurrence_changes, kb_id, together)
    write(removed, graph_writing.drop_evidence)
    write(added, graph_writing.add_evidence)
    entities = _descriptions(database, state)
    with database.read() as transaction:
        unsettled = graph_writing.unsettled_ids(transaction)
        changed = graph_writing.differing_entities(transaction, kb_id, entities)
    write(unsettled, graph_writing.settle)
    defined = state.defined_names

    def put_entities(transaction: Transaction, ids: Sequence[str]) -> None:
        names = [extraction.entity_name(defined[id_]) for id_ in ids if id_ in defined]
        graph_writing.put_entities(transaction, kb_id, entities, ids, names)

    write(changed, put_entities)
    with database.read() as transaction:
        alias_changes = graph_writing.alias_changes(transaction, state.aliases)
        is_noted = graph.built_version(transaction, kb_id) == state.version
    write(list(alias_changes.items()), graph_writing.put_aliases)
    write([] if is_noted else [(kb_id, state.version)], graph.note_built)


def build_waiting(
    stores: Stores, kb_ids: Iterable[str] = (), *, stop: Callable[[], bool] = lambda: False
) -> int:
    """Build outdated graphs, by default of all, except those that another process is building."""
    with stores.database.read() as transaction:
        ids = kb_ids or sorted(knowledge_bases.ids(transaction))
        waiting = [kb_id for kb_id in ids if graph.waits(transaction, kb_id)]
    count = 0
    for kb_id in waiting:
        with suppress(ConflictError, NotFoundError), stores.locks.hold(f"graph-{kb_id}", wait=0):
            count += build(stores.database, kb_id, stop=stop)
    return count


def build_small(stores: Stores, kb_id: str) -> None:
    is_small = stores.database.look_up(corpus.count_chunks, kb_id) <= SMALL
    if is_small:
        build_waiting(stores, [kb_id])


def _load(database: Database, kb_id: str) -> _State:
    exists = database.look_up(graph.built_version, kb_id) is not None
    knowledge_bases.write_in_batches(database, kb_id, [] if exists else [kb_id], graph.begin)
    with database.read() as transaction:
        config = knowledge_bases.get_by_id(transaction, kb_id).config
        facts = graph.document_facts(transaction, kb_id)
        links = indexed_files.linked_documents(transaction, kb_id)
        recipe_names = config.get("annotation", {}).get("names", ())
        state = _State(
            graph.places(transaction, kb_id),
            graph.mentions(transaction, kb_id),
            graph.entity_names(transaction),
            [(entity_id(name.name), name) for name in graph.given_names(transaction, kb_id)],
            {},
            graph.digests(transaction, kb_id),
            graph.version(transaction, kb_id),
            {entry["name"]: entry["type"] for entry in recipe_names},
            {
                extraction.entity_name(alias): entity_id(entry["name"])
                for entry in recipe_names
                for alias in entry["aliases"]
            },
            chunk_annotations.stated_relations(transaction, kb_id),
            GraphSpec.model_validate(config.get("graph", {})),
        )
    defined = _definitions(state, facts.values())
    state.documents = {
        id_: extraction.DocumentNames(facts[id_], defined.get(id_, ()), links.get(id_, {}))
        for id_ in sorted(facts)
    }
    new_names = {id_: name for id_, name in state.defined_names.items() if id_ not in state.names}
    knowledge_bases.write_in_batches(
        database, kb_id, list(map(extraction.entity_name, new_names.values())), subjects.add
    )
    state.names |= new_names
    of_documents = {id_: _source_names(document) for id_, document in state.documents.items()}
    for place in state.places:
        lines = [*state.mentions.get(place.seq, ())]
        lines += [f"{a.source} {a.name} {a.target}" for a in state.stated.get(place.seq, ())]
        lines += [] if state.spec.build else ["not built"]
        text = "\n".join([str(extraction.REVISION), *lines, "", of_documents[place.document_id]])
        digest = hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
        state.current_digests[place.seq] = digest
    return state


def _source_names(document: extraction.DocumentNames) -> str:
    names = [f"{id_} {name.anchor} {name.type}" for id_, name in document.named]
    links = [f"[[{name}]] {end}" for name, end in sorted(document.links.items())]
    return "\n".join(names + links)


def _definitions(
    state: _State, documents: Iterable[graph.DocumentFacts]
) -> dict[str, list[tuple[str, DefinedName]]]:
    """Return the definitions of each document.

    Headings of several documents (*See also*) and headings that are not names define nothing. A
    title that ends with an identifier (*Apache Module mod_ssl*) defines the identifier.
    """
    mentioned = {id_ for ids in state.mentions.values() for id_ in ids}
    defining = [
        (id_, name)
        for id_, name in state.gazetteer
        if name.defines and (name.confirmed or id_ in mentioned)
    ]
    counts = Counter(id_ for id_, name in defining if name.type is EntityType.TERM)
    of_documents: defaultdict[str, list[tuple[str, DefinedName]]] = defaultdict(list)
    for id_, name in defining:
        if counts[id_] < _BOILERPLATE:
            of_documents[name.document_id].append((id_, name))
    defined = {id_ for id_, _ in defining}
    types = {id_: name.type for id_, name in state.gazetteer}
    for document in documents:
        word = document.title.rpartition(" ")[2]
        id_ = entity_id(word)
        if _IDENTIFIER.fullmatch(word) and id_ in mentioned and id_ not in defined:
            type_ = types.get(id_, EntityType.SYMBOL)
            name = DefinedName(document.id, word, type_, defines=True, anchor="", confirmed=True)
            of_documents[document.id].append((id_, name))
    return of_documents


def _descriptions(database: Database, state: _State) -> dict[str, tuple[str, str]]:
    types: defaultdict[str, Counter[EntityType]] = defaultdict(Counter)
    for id_, name in state.gazetteer:
        types[id_][name.type] += _DEFINITION_WEIGHT if name.defines else 1
    defining: dict[str, int] = {}
    for place in state.places:
        for owner in state.documents[place.document_id].owners(place):
            defining.setdefault(owner, place.seq)
    ids = {id_ for mentioned in state.mentions.values() for id_ in mentioned} | defining.keys()
    texts = database.look_up(graph.texts, sorted(defining.values()))
    described: dict[str, tuple[str, str]] = {}
    for id_ in sorted(ids):
        counts = types.get(id_) or Counter({EntityType.NAME: 1})
        top_type = max(counts, key=lambda kind: (counts[kind], kind.value))
        type_ = state.curated.get(state.names.get(id_, ""), top_type.value)
        described[id_] = (type_, first_sentence(texts.get(defining.get(id_, -1), "")))
    return described


def first_sentence(markdown: str) -> str:
    lines = [line for line in markdown.splitlines() if line.strip()]
    while lines and lines[0].lstrip().startswith("#"):
        lines.pop(0)
    text = plain_text("\n".join(lines[:6]))
    if end := _SENTENCE_END.search(text, _MIN_SENTENCE):
        text = text[: end.end()]
    return text if len(text) <= _MAX_LENGTH else text[: _MAX_LENGTH - 1] + "…"
