"""Build the graph of a knowledge base, and update it after a refresh.

A chunk is read again if its names, or the names that its document defines, changed. So a refresh
reads only changes, with the same result as reading everything. Co-occurrence is counted each time.
"""

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import dropwhile, islice
from urllib.parse import unquote

from kbkit.errors import ConflictError, NotFoundError
from kbkit.graph import extraction
from kbkit.graph.prose import same_host
from kbkit.ingest.cutting import document_id
from kbkit.models import EntityType
from kbkit.recipes import GraphSpec
from kbkit.stores.catalog import (
    chunk_annotations,
    corpus,
    graph,
    graph_writing,
    indexed_files,
    knowledge_bases,
    reading,
    subjects,
)
from kbkit.stores.catalog.database import Database, Transaction
from kbkit.stores.catalog.graph import ChunkPlace, ChunkRelation, DefinedName
from kbkit.stores.catalog.subjects import entity_id
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


def build(database: Database, kb_id: str, *, stop: Callable[[], bool] = lambda: False) -> int:
    """Derive relations and entities from the annotated documents; continue an interrupted run."""
    current = _Build(database, kb_id)
    for start in range(0, len(current.stale), _BATCH):
        if stop():
            return start
        current.read(current.stale[start : start + _BATCH])
    current.store_derived()
    return len(current.stale)


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
    if stores.database.look_up(corpus.some_chunks, kb_id, SMALL + 1) <= SMALL:
        build_waiting(stores, [kb_id])


class _Build:
    """A build of one graph.

    Attributes:
        stale: Places of the chunks to read.
    """

    def __init__(self, database: Database, kb_id: str) -> None:
        self._database = database
        self._kb_id = kb_id
        self._write = partial(knowledge_bases.write_in_batches, database, kb_id)
        exists = database.look_up(graph.built_version, kb_id) is not None
        self._write([] if exists else [kb_id], graph.begin)
        with database.read() as transaction:
            row = knowledge_bases.get_by_id(transaction, kb_id)
            self._recipe_names = row.config.get("annotation", {}).get("names", ())
            self._spec = GraphSpec.model_validate(row.config.get("graph", {}))
            self._version = row.version
            self._places = graph.places(transaction, kb_id)
            seqs_of = reading.mentions(transaction, kb_id)
            self._names = graph.entity_names(transaction)
            given_names = graph.given_names(transaction, kb_id)
            facts = graph.document_facts(transaction, kb_id)
            links = indexed_files.linked_documents(transaction, kb_id)
            old_digests = graph.digests(transaction, kb_id)
            self._stated = chunk_annotations.stated_relations(transaction, kb_id)
        self._mentions: defaultdict[int, list[str]] = defaultdict(list)
        for id_ in sorted(seqs_of.keys() & self._names.keys()):
            for seq in seqs_of[id_]:
                self._mentions[seq].append(id_)
        self._gazetteer = [(entity_id(name.name), name) for name in given_names]
        defined = self._definitions(facts.values())
        self._documents = {
            id_: extraction.DocumentNames(facts[id_], defined.get(id_, ()), links.get(id_, {}))
            for id_ in sorted(facts)
        }
        named = [pair for document in self._documents.values() for pair in document.named]
        self._defined_names = {id_: extraction.entity_name(name.name) for id_, name in named}
        added = {id_: each for id_, each in self._defined_names.items() if id_ not in self._names}
        self._write(list(added.values()), subjects.add)
        self._names |= {id_: each.name for id_, each in added.items()}
        source_names = {id_: _source_names(each) for id_, each in self._documents.items()}
        self._digests = {
            place.seq: self._digest(place.seq, source_names[place.document_id])
            for place in self._places
        }
        changed = dict(self._digests.items() - old_digests.items())
        self.stale = [place for place in self._places if place.seq in changed]

    def _digest(self, seq: int, source_names: str) -> str:
        lines = [str(extraction.REVISION), *self._mentions.get(seq, ())]
        lines += [f"{a.source} {a.name} {a.target}" for a in self._stated.get(seq, ())]
        lines += [] if self._spec.build else ["not built"]
        text = "\n".join([*lines, "", source_names])
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()

    def read(self, batch: Sequence[ChunkPlace]) -> None:
        uris = {document.facts.uri: id_ for id_, document in self._documents.items()}
        texts = self._database.look_up(graph.texts, [place.seq for place in batch])
        facts = list[ChunkRelation]()

        def find_id(uri: str, address: str) -> str:
            existing = uris.get(address) or uris.get(unquote(address), "")
            is_new = not existing and address and same_host(uri, address)
            return document_id(self._kb_id, address) if is_new else existing

        for place in batch if self._spec.build else ():
            if place.seq in texts:
                entities = {id_: self._names[id_] for id_ in self._mentions.get(place.seq, ())}
                stated = self._stated.get(place.seq, ())
                document = self._documents[place.document_id]
                section = extraction.Section(document, place, texts[place.seq], entities, stated)
                facts += extraction.facts_of(section, find_id)
        with self._database.write() as transaction:
            knowledge_bases.get_by_id(transaction, self._kb_id)
            digests = {place.seq: self._digests[place.seq] for place in batch}
            graph_writing.put(transaction, self._kb_id, digests, facts)

    def store_derived(self) -> None:
        """Store derived data that changed; compare before each write, so that writes are short."""
        by_section: defaultdict[tuple[str, tuple[str, ...]], list[int]] = defaultdict(list)
        for place in self._places if self._spec.build else ():
            by_section[place.document_id, place.heading_path].append(place.seq)
        sections = list(by_section.values())
        facts = extraction.co_occurrence(sections, self._mentions, self._names, self._spec)
        with self._database.read() as transaction:
            removed, added = graph_writing.co_occurrence_changes(transaction, self._kb_id, facts)
        self._write(removed, graph_writing.drop_evidence)
        self._write(added, graph_writing.add_evidence)
        entities = self._descriptions()
        with self._database.read() as transaction:
            unsettled = graph_writing.unsettled_ids(transaction)
            changed = graph_writing.differing_entities(transaction, self._kb_id, entities)
        self._write(unsettled, graph_writing.settle)

        def put_entities(transaction: Transaction, ids: Sequence[str]) -> None:
            names = [self._defined_names[id_] for id_ in ids if id_ in self._defined_names]
            graph_writing.put_entities(transaction, self._kb_id, entities, ids, names)

        self._write(changed, put_entities)
        aliases = {
            extraction.entity_name(alias): entity_id(entry["name"])
            for entry in self._recipe_names
            for alias in entry["aliases"]
        }
        with self._database.read() as transaction:
            alias_changes = graph_writing.alias_changes(transaction, aliases)
            is_noted = graph.built_version(transaction, self._kb_id) == self._version
        self._write(list(alias_changes.items()), graph_writing.put_aliases)
        self._write([] if is_noted else [(self._kb_id, self._version)], graph.note_built)

    def _definitions(
        self, documents: Iterable[graph.DocumentFacts]
    ) -> dict[str, list[tuple[str, DefinedName]]]:
        """Return the definitions of each document.

        Headings of several documents (*See also*) and headings that are not names define nothing. A
        title that ends with an identifier (*Apache Module mod_ssl*) defines the identifier.
        """
        mentioned = {id_ for ids in self._mentions.values() for id_ in ids}
        defining = [
            (id_, name)
            for id_, name in self._gazetteer
            if name.defines and (name.confirmed or id_ in mentioned)
        ]
        counts = Counter(id_ for id_, name in defining if name.type is EntityType.TERM)
        of_documents: defaultdict[str, list[tuple[str, DefinedName]]] = defaultdict(list)
        for id_, name in defining:
            if counts[id_] < _BOILERPLATE:
                of_documents[name.document_id].append((id_, name))
        defined = {id_ for id_, _ in defining}
        types = {id_: name.type for id_, name in self._gazetteer}
        for document in documents:
            word = document.title.rpartition(" ")[2]
            id_ = entity_id(word)
            if _IDENTIFIER.fullmatch(word) and id_ in mentioned and id_ not in defined:
                type_ = types.get(id_, EntityType.SYMBOL)
                name = DefinedName(document.id, word, type_, defines=True)
                of_documents[document.id].append((id_, name))
        return of_documents

    def _descriptions(self) -> dict[str, tuple[str, str]]:
        curated = {entry["name"]: entry["type"] for entry in self._recipe_names}
        types: defaultdict[str, Counter[EntityType]] = defaultdict(Counter)
        for id_, name in self._gazetteer:
            types[id_][name.type] += _DEFINITION_WEIGHT if name.defines else 1
        defining: dict[str, int] = {}
        for place in self._places:
            for owner in self._documents[place.document_id].owners(place):
                defining.setdefault(owner, place.seq)
        ids = {id_ for ids in self._mentions.values() for id_ in ids} | defining.keys()
        texts = self._database.look_up(graph.texts, sorted(set(defining.values())))
        sentences = {seq: first_sentence(text) for seq, text in texts.items()}
        described: dict[str, tuple[str, str]] = {}
        for id_ in sorted(ids):
            counts = types.get(id_) or Counter({EntityType.NAME: 1})
            top_type = max((count, kind.value) for kind, count in counts.items())[1]
            type_ = curated.get(self._names.get(id_, ""), top_type)
            described[id_] = (type_, sentences.get(defining.get(id_, -1), ""))
        return described


def _source_names(document: extraction.DocumentNames) -> str:
    names = [f"{id_} {name.anchor} {name.type}" for id_, name in document.named]
    links = [f"[[{name}]] {end}" for name, end in sorted(document.links.items())]
    return "\n".join(names + links)


def first_sentence(markdown: str) -> str:
    lines = filter(str.strip, markdown.splitlines())
    below_headings = dropwhile(lambda line: line.lstrip().startswith("#"), lines)
    text = plain_text("\n".join(islice(below_headings, 6)))
    if end := _SENTENCE_END.search(text, _MIN_SENTENCE):
        text = text[: end.end()]
    return text if len(text) <= _MAX_LENGTH else text[: _MAX_LENGTH - 1] + "…"
