"""Find gaps in the documentation, and entities that may be merged.

The weight of a gap grows with the number of documents, passages or raters that it affects.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import log1p

from kbkit.annotation.terms import CODE
from kbkit.models import Entity, EntityType, Gap, GapKind, MergeSuggestion, Target, TargetKind
from kbkit.models.values import FILES
from kbkit.retrieval.query import spans
from kbkit.stores.catalog import entities, indexed_files
from kbkit.stores.catalog import graph as rows
from kbkit.stores.catalog import relations as edge_rows
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.graph import BadQuery
from kbkit.stores.catalog.subjects import entity_id
from kbkit.text import singular, stop_words

MIN_DOCUMENTS = 3
"""Minimum documents that mention an undescribed name."""
MIN_CHUNKS = 3
"""Minimum chunks that mention an unrelated or unlinked name."""
MIN_LENGTH = 3
"""Minimum chunks of a document without names."""

_MAX_HEADING_LENGTH = 8
"""Maximum words of a heading that names its section's subject."""
_PLACEHOLDERS = frozenset(
    str.split("""
        foo bar baz spam eggs ham arg true false none null nil self cls this example name value key
        args kwargs obj object item file filename path type string str int list dict data text
    """)
)
# placeholders such as my_app and YourClass
_PLACEHOLDER = re.compile(r"(?:my|your|some)_\w|(?:My|Your|Some)(?:$|[A-Z0-9])|(?:my|your)[A-Z]")
_ACRONYM = re.compile(r"[A-Z]{3,6}")
_API = CODE - {EntityType.FILE} | {EntityType.ENDPOINT, EntityType.SCHEMA}


_CHUNKS = 3
"""Maximum chunks to start from, per gap."""
_BAD_RATING = 2
"""Maximum rating of a question that counts as answered badly."""


def find_gaps(
    transaction: Transaction, kb_ids: Sequence[str], kinds: Sequence[GapKind], limit: int
) -> list[Gap]:
    """Find gaps, the most important first, each kind in turn."""
    finder, gaps = _Finder(transaction, kb_ids), list[Gap]()
    for kind in kinds:
        candidates: Iterator[Gap] = getattr(finder, kind.value)()
        for gap in sorted(candidates, key=lambda gap: (-gap.weight, gap.name))[:limit]:
            target = gap.target
            start = gap.start or rows.first_chunks(transaction, target.kind, target.id, _CHUNKS)
            gaps.append(replace(gap, start=tuple(start)))
    return gaps


class _Finder:
    """Finds gaps; has a method for each `GapKind`."""

    def __init__(self, transaction: Transaction, kb_ids: Sequence[str]) -> None:
        self._transaction = transaction
        self._kb_ids = kb_ids

    @cached_property
    def _counted(self) -> tuple[list[Entity], Mapping[str, set[str]]]:
        return rows.named_entities(self._transaction, self._kb_ids)

    @cached_property
    def _defined(self) -> dict[str, set[str]]:
        documents_of: defaultdict[str, set[str]] = defaultdict(set)
        for edge in edge_rows.edges(self._transaction, names=["defined_in"]):
            documents_of[edge.source.id].add(edge.target.id)
        return documents_of

    def undescribed(self) -> Iterator[Gap]:
        by_id = {entity.id for entity in self._counted[0]}
        headings = rows.headings(self._transaction, self._kb_ids)
        names = {heading.partition("(")[0].strip("` @") for heading in headings}
        short = [each for each in names if len(each.split()) <= _MAX_HEADING_LENGTH]
        headed = {id_ for heading in short for id_ in named_in(heading, by_id)}
        last_parts = {_last(heading) for heading in names}
        for entity in self._counted[0]:
            if (
                entity.id not in self._defined
                and not entity.description
                and entity.id not in headed
                and entity.documents >= MIN_DOCUMENTS
                and _is_distinctive(entity)
                and _last(entity.name) not in last_parts
            ):
                # a name in capitals may be a well-known abbreviation or an emphasised word
                factor = 0.3 if entity.name.isupper() and entity.name.isalpha() else 1.0
                mentions = f"{entity.documents} documents mention it ({entity.chunks} passages)"
                weight = entity.documents * factor + log1p(entity.chunks)
                reason = f"{mentions}, and none describes it"
                yield _gap(GapKind.UNDESCRIBED, entity, reason, weight)

    def unlinked(self) -> Iterator[Gap]:
        all_entities, documents_of = self._counted
        terms = {each.id for each in all_entities if each.type == EntityType.TERM}
        contained = edge_rows.edges(self._transaction, names=["contains"])
        parts = {edge.target.id for edge in contained if edge.source.id not in terms}
        for entity in all_entities:
            defining = self._defined.get(entity.id)
            if (
                defining
                and entity.id not in terms
                and entity.chunks >= MIN_CHUNKS
                and defining.issuperset(documents_of.get(entity.id, ()))
            ):
                passages = f"{entity.chunks} passages of its own document"
                reason = f"described, and named in {passages}, but no other document mentions it"
                weight = log1p(entity.chunks) * (0.5 if entity.id in parts else 1)
                yield _gap(GapKind.UNLINKED, entity, reason, weight)

    def unanswered(self) -> Iterator[Gap]:
        by_id = {entity.id: entity for entity in self._counted[0]}
        aliases = entities.aliases_of(self._transaction)
        by_id |= {alias: by_id[id_] for alias, id_ in aliases.items() if id_ in by_id}
        queries_of: defaultdict[str, list[BadQuery]] = defaultdict(list)
        for query in rows.bad_queries(self._transaction, self._kb_ids, _BAD_RATING):
            for id_ in sorted(named_in(query.query, by_id)):
                queries_of[id_].append(query)
        for id_, bad in queries_of.items():
            subject = f"{len(bad)} questions about it were" if len(bad) > 1 else "a question was"
            example = max(bad, key=lambda query: (query.raters, -query.best, query.query))
            reason = f"{subject} answered badly (rated {example.best} at best): {example.query!r}"
            weight = sum(query.raters * (3 - query.best) for query in bad)
            start = tuple(dict.fromkeys(query.chunk for query in bad if query.chunk))
            yield _gap(GapKind.UNANSWERED, by_id[id_], reason, weight, start)

    def missing(self) -> Iterator[Gap]:
        for note in indexed_files.missing(self._transaction) if FILES in self._kb_ids else ():
            name = note.target.rpartition("/")[2] if note.target[:1] == "/" else note.target
            chunks: list[str] = []
            for text in (f"[[{name}", name, "]("):  # as it may be written
                chunks = chunks or indexed_files.chunks_with(
                    self._transaction, FILES, note.sources, text, _CHUNKS
                )
            count = len(note.sources)
            by = f"{count} notes link" if count > 1 else f"{note.sources[0]} links"
            reason = f"{by} to it, but it does not exist"
            target = Target(TargetKind.FILE, note.target.lstrip("/"))
            yield Gap(GapKind.MISSING, target, target.id, reason, count, tuple(chunks))

    def unreached(self) -> Iterator[Gap]:
        for id_, title, chunks in rows.nameless_documents(self._transaction, self._kb_ids):
            if chunks >= MIN_LENGTH:
                target = Target(TargetKind.DOCUMENT, id_)
                reason = f"{chunks} passages, and none mentions a known name"
                yield Gap(GapKind.UNREACHED, target, title, reason, log1p(chunks))

    def orphan(self) -> Iterator[Gap]:
        edges = edge_rows.edges(self._transaction)
        related_ids = {end.id for edge in edges for end in (edge.source, edge.target)}
        for entity in self._counted[0]:
            is_distinctive = entity.chunks >= MIN_CHUNKS and _is_distinctive(entity)
            if entity.id not in related_ids and (entity.by_hand or is_distinctive):
                named = f"named in {entity.chunks} passages"
                reason = f"{named if entity.chunks else 'made by a person'}, but without relations"
                weight = entity.documents + log1p(entity.chunks) + 10 * entity.by_hand
                yield _gap(GapKind.ORPHAN, entity, reason, weight)


def named_in(query: str, entities: Collection[str]) -> set[str]:
    """Return ids of the entities that a query names; of overlapping names the longest."""
    ids: set[str] = set()
    used_places: set[int] = set()
    for (start, end), text in spans(query.split()):
        id_ = entity_id(text)
        if id_ in entities and used_places.isdisjoint(range(start, end)):
            ids.add(id_)
            used_places.update(range(start, end))
    return ids


def _gap(
    kind: GapKind, entity: Entity, reason: str, weight: float, start: tuple[str, ...] = ()
) -> Gap:
    return Gap(kind, Target(TargetKind.ENTITY, entity.id), entity.name, reason, weight, start)


def _is_distinctive(entity: Entity) -> bool:
    """Whether readers look for a name: an API name or an acronym, not a common word."""
    base = entity.name.partition("(")[0].strip("`").lower()
    if len(base) < 3 or base in _PLACEHOLDERS or base in stop_words("english"):
        return False
    if any(_PLACEHOLDER.match(part) for part in entity.name.split(".")):
        return False
    if "example" in base or _PLACEHOLDERS & set(base.rstrip("0123456789").split(".")):
        return False
    if entity.name.isalpha() and (entity.name.islower() or entity.name.istitle()):
        return False
    return entity.type in _API or bool(_ACRONYM.fullmatch(entity.name))


def _last(name: str) -> str:
    return name.partition("(")[0].lstrip("@").split(" ")[-1].rpartition(".")[2]


_MIN_LENGTH = 6  # of a phrase with another spelling
_SHORT_WORD = 4  # a shorter or equal word has one spelling
_SUGGESTED_ACRONYM = re.compile(r"[A-Z][A-Za-z]*[A-Z]s?|[A-Z]{2,8}")
_LONG_DESCRIPTION = 40
_DIGITS = re.compile(r"\d+")


def suggestions(
    entities: Sequence[Entity], decided: Collection[frozenset[str]]
) -> list[MergeSuggestion]:
    """Return distinct pairs that may be one entity, the surest first."""
    best: dict[frozenset[str], MergeSuggestion] = {}
    for suggestion in (*_acronyms(entities), *_definitions(entities), *_spellings(entities)):
        pair = frozenset((suggestion.keep, suggestion.merge))
        if pair not in decided and (pair not in best or best[pair].score < suggestion.score):
            best[pair] = suggestion
    return sorted(best.values(), key=lambda suggestion: (-suggestion.score, suggestion.names))


def _acronyms(entities: Sequence[Entity]) -> Iterator[MergeSuggestion]:
    """Suggest ``RAM`` and *random-access memory*: initials, with or without stop words."""
    by_initials: defaultdict[str, list[Entity]] = defaultdict(list)
    for entity in entities:
        words = re.split(r"[\s\-/]+", entity.name)
        if 2 <= len(words) <= 8 and all(word[:1].isalpha() for word in words):
            main = [word for word in words if word.lower() not in stop_words("english")]
            for initials in {"".join(word[0] for word in some).upper() for some in (words, main)}:
                by_initials[initials].append(entity)
    for entity in entities:
        acronym = entity.name.removesuffix("s")
        if not _SUGGESTED_ACRONYM.fullmatch(entity.name) or len(acronym) < 2:
            continue
        longer = by_initials.get(acronym.upper(), ())
        for long in longer:
            if len(acronym) == 2 and len(longer) > 1 and not _is_written_out(entity, long):
                continue  # two letters fit too many names
            score = 0.5 + 0.1 * min(len(acronym), 4) + 0.1 * _is_written_out(entity, long)
            evidence = f"{entity.name} are the first letters of {long.name}"
            yield _suggestion(long, entity, "acronym", evidence, score)


def _is_written_out(short: Entity, long: Entity) -> bool:
    text = f"{short.description} {long.description}".lower()
    return short.name.lower() in text and long.name.lower() in text


def _definitions(entities: Sequence[Entity]) -> Iterator[MergeSuggestion]:
    by_text: defaultdict[str, list[Entity]] = defaultdict(list)
    for entity in entities:
        text = " ".join(entity.description.lower().split())
        if len(text) >= _LONG_DESCRIPTION:
            by_text[text].append(entity)
    for group in by_text.values():
        if len(group) == 2:  # if more share a description, it is boilerplate
            keep, other = sorted(group, key=_most_mentioned)
            if _last_part(keep.name) == _last_part(other.name):
                yield _suggestion(keep, other, "definition", f"both are “{keep.description}”", 0.75)


def _spellings(entities: Sequence[Entity]) -> Iterator[MergeSuggestion]:
    """Suggest phrases that differ in hyphens, plurals or British spelling; not identifiers."""
    by_spelling: defaultdict[object, list[Entity]] = defaultdict(list)
    for entity in entities:
        is_phrase = entity.type in (EntityType.TERM, EntityType.NAME, "")
        if is_phrase and len(entity.name) >= _MIN_LENGTH and entity.chunks:
            by_spelling[_spelling(entity.name)].append(entity)
    for group in by_spelling.values():
        keep, *others = sorted(group, key=_most_mentioned)
        for other in others:
            counts = f"{keep.name} in {keep.chunks} passages, {other.name} in {other.chunks}"
            yield _suggestion(keep, other, "spelling", f"spelled alike; {counts}", 0.85)


def _spelling(name: str) -> tuple[str, tuple[str, ...]]:
    words = [singular(word) for word in re.split(r"[\s\-_]+", name.lower())]
    american = [
        word.replace("our", "or").replace("z", "s") if len(word) > _SHORT_WORD else word
        for word in words
    ]
    return "".join(american), tuple(_DIGITS.findall(name))


def _most_mentioned(entity: Entity) -> tuple[int, str]:
    return -entity.chunks, entity.id


def _last_part(name: str) -> str:
    return name.partition("(")[0].rpartition(".")[2].lower()


def _suggestion(
    keep: Entity, other: Entity, reason: str, evidence: str, score: float
) -> MergeSuggestion:
    names = (keep.name, other.name)
    return MergeSuggestion(keep.id, other.id, names, reason, evidence, round(min(score, 1.0), 3))
