"""Extract relations from a chunk. Pure functions."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import log

from kbkit.annotation.terms import is_single
from kbkit.graph import prose
from kbkit.graph.prose import SPOTS, SectionNames, links_of, resolve_href
from kbkit.models import EntityType, StatedRelation, SubjectKind
from kbkit.recipes import GraphSpec
from kbkit.runtime.validation import check_text
from kbkit.stores.catalog.graph import (
    CO_OCCURS,
    ChunkPlace,
    ChunkRelation,
    DefinedName,
    DocumentFacts,
)
from kbkit.stores.catalog.subjects import SubjectName, entity_id
from kbkit.text import subject_key
from kbkit.text.markdown.structure import WIKI_LINK

REVISION = 4
"""Incremented when the same text gives other relations."""

ENTITY, DOCUMENT = "entity", "document"

WEIGHTS = {
    "defined_in": 4.0,
    "contains_path": 4.0,
    "contains_heading": 1.0,
    "sentence": 1.0,
    "owner": 0.8,
    "links_to": 0.5,
    "refers_to": 0.5,
    "schema": 4.0,
    "bases": 4.0,
    "stated": 1.0,
}
"""Weight of one piece of evidence by kind; the sum s becomes ``s / (1 + s)``."""

_FENCE = re.compile(r"^[>\s]*(```+|~~~+).*?(?:^[>\s]*\1\s*$|\Z)", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"[{};] *[\n}]|[;{] *$")
_SENTENCES = re.compile(
    r"(?<=[.!?])\s+(?=[\"'“(\[`*]*[A-Z\[`])|\n\s*\n|\n(?=[>\s]*(?:[-*+]|\d+\.) )"
)
_CHANGES = re.compile(
    r"\bwhat[’']s new\b|\brelease notes?\b|\bchange ?log\b|\bchanges\b", re.IGNORECASE
)
"""Headings of change logs, whose sections define nothing."""
_KIND_WORD = re.compile(
    r"(?:module|package|class|function|method|directive|command|statement|builtin|decorator|option"
    r"|variable|attribute|type|filter|tool|program|utility|library)s?\b",
    re.IGNORECASE,
)
_MARKS = str.maketrans("", "", "`*_\\")
API_PARTS = ("endpoint", "webhook", "schema")
_MAX_OWNERS = 2
_MAX_REFERRED = 15  # a section with more linked names is a list of links


class DocumentNames:
    """A document with its defined names by entity id, and ids of linked documents by name."""

    def __init__(
        self,
        facts: DocumentFacts,
        named: Sequence[tuple[str, DefinedName]],
        links: Mapping[str, str],
    ) -> None:
        self.facts, self.named, self.links = facts, named, links
        self._ids = dict(reversed(named))
        self._by_anchor: defaultdict[str, list[str]] = defaultdict(list)
        for id_, name in named:
            self._by_anchor[name.anchor].append(id_)
        self.of_heading = cache(self._id_in_heading)

    @property
    def is_of_api(self) -> bool:
        return self.facts.metadata.get("part") in API_PARTS

    def owners(self, place: ChunkPlace) -> list[str]:
        if self.is_of_api:
            types = {EntityType.ENDPOINT, EntityType.SCHEMA}
            return [id_ for id_, name in self.named if name.type in types][:1]
        if place.anchor and place.anchor in self._by_anchor:
            return self._by_anchor[place.anchor][:_MAX_OWNERS]
        id_ = self.of_heading(place.heading_path[-1]) if place.heading_path else None
        return [id_] if id_ else []

    def topics(self, place: ChunkPlace) -> list[str]:
        """Return the implicit subjects of sentences: names defined here or above, except terms.

        Below *Prerequisites*, *This module requires* is about the module.
        """
        owners = [id_ for id_ in self.owners(place) if not self._is_term(id_)]
        parents = map(self.of_heading, reversed(place.heading_path))
        return owners or [id_ for id_ in parents if id_ is not None and not self._is_term(id_)][:1]

    def _is_term(self, id_: str) -> bool:
        return self._ids[id_].type is EntityType.TERM

    def _id_in_heading(self, heading: str) -> str | None:
        """Return the id of the defined name in a heading; a term must be the whole heading."""
        text = heading.translate(_MARKS)
        name = text.partition("(")[0].strip()
        whole = next((each for each in map(entity_id, (text, name)) if each in self._ids), None)
        if whole is not None and not self._is_term(whole):
            return whole
        words = name.split()[:8]
        for length in range(min(4, len(words)), 0, -1):
            for start in range(len(words) - length + 1):
                part = " ".join(words[start : start + length]).strip(",:;")
                # "Printing help" is not about the function; "The `help` command" is
                after = words[start + length] if start + length < len(words) else ""
                if is_single(part) and f"`{part}" not in heading and not _KIND_WORD.match(after):
                    continue
                id_ = entity_id(part)
                if id_ in self._ids and not self._is_term(id_):
                    return id_
        return whole


@dataclass(frozen=True, slots=True)
class Section:
    """A chunk with its names by entity id, and the relations that an annotator stated."""

    document: DocumentNames
    place: ChunkPlace
    text: str
    entities: Mapping[str, str]
    stated: Sequence[StatedRelation]


def facts_of(section: Section, find_id: Callable[[str, str], str]) -> Iterator[ChunkRelation]:
    """Iterate over the relations of a chunk; `find_id` returns the id of a linked document."""
    document, place = section.document, section.place
    facts, owners = document.facts, document.owners(place)
    topics = document.topics(place)
    begins = section.text.lstrip().startswith("#") or not place.heading_path
    if begins and not any(map(_CHANGES.search, (facts.title, *place.heading_path))):
        for owner in owners:
            weight = WEIGHTS["defined_in"]
            yield ChunkRelation(place.seq, ENTITY, owner, "defined_in", DOCUMENT, facts.id, weight)
            yield from _container(section, owner)
    for statement in section.stated:
        ends = entity_id(statement.source), entity_id(statement.target)
        if ends[0] != ends[1] and all(id_ in section.entities for id_ in ends):
            yield _fact(section, ends[0], statement.name, ends[1], "stated")
    text = _FENCE.sub(" ", section.text)
    names = SectionNames(section.entities)
    links = list(links_of(text))
    names_linked = (match[1].strip() for match in WIKI_LINK.finditer(section.text))
    linked = [document.links[name] for name in names_linked if name in document.links]
    targets = [find_id(facts.uri, resolve_href(facts.uri, link[2])[0]) for link in links]
    linked += [id_ for id_ in targets if id_ and id_ != facts.id]
    weight = WEIGHTS["links_to"]
    for target in dict.fromkeys(linked):
        yield ChunkRelation(place.seq, DOCUMENT, facts.id, "links_to", DOCUMENT, target, weight)
    referred = {names.of_link(link[1], resolve_href(facts.uri, link[2])[1]) for link in links}
    if len(referred) <= _MAX_REFERRED:
        for id_ in sorted(filter(None, referred)):
            for topic in topics:
                if topic != id_:
                    yield _fact(section, topic, "refers_to", id_, "refers_to")
    if document.is_of_api:
        yield from _api_relations(section, text, owners)
    for sentence in _SENTENCES.split(text):
        if (
            prose.CUE.search(sentence)
            and not sentence.lstrip("> ").startswith(("#", "|"))
            and not _CODE.search(sentence)
        ):
            yield from _sentence_relations(section, sentence, topics, names)


def _fact(section: Section, source: str, name: str, target: str, kind: str) -> ChunkRelation:
    return ChunkRelation(section.place.seq, ENTITY, source, name, ENTITY, target, WEIGHTS[kind])


def _container(section: Section, owner: str) -> Iterator[ChunkRelation]:
    name = next(name.name for id_, name in section.document.named if id_ == owner)
    parent = _parent_name(name)
    if parent:
        yield _fact(section, entity_id(parent), "contains", owner, "contains_path")
        return
    for heading in reversed(section.place.heading_path[:-1]):
        id_ = section.document.of_heading(heading)
        if id_ is not None and id_ != owner:
            yield _fact(section, id_, "contains", owner, "contains_heading")
            return


def _parent_name(name: str) -> str:
    path = name.partition("(")[0]
    if " " in path or path[:1] in "-./$%":
        return ""
    for separator in ("::", "->", "#", "."):
        before, _, last = path.rpartition(separator)
        if last and not last.isdigit() and before.replace(".", "").isidentifier():
            return before
    return ""


def _api_relations(section: Section, text: str, owners: Sequence[str]) -> Iterator[ChunkRelation]:
    path = section.place.heading_path
    relation = "requires" if path[-1:] == ("Authentication",) else "uses"
    if len(path) < 2:
        return
    for spot in SPOTS.finditer(text):
        line = text[text.rfind("\n", 0, spot.start()) + 1 : spot.start()]
        # an item starts with the name of a field; its schema follows in parentheses
        is_item = line.startswith("-")
        is_field = line.rstrip().endswith("-")
        is_relevant = is_item if relation == "requires" else not is_field
        id_ = entity_id(spot[4]) if spot[4] and is_relevant else ""
        for owner in owners if id_ in section.entities else ():
            if owner != id_:
                yield _fact(section, owner, relation, id_, "schema")


def _sentence_relations(
    section: Section, sentence: str, topics: Sequence[str], names: SectionNames
) -> Iterator[ChunkRelation]:
    marked, ids = names.mark_names(sentence)
    if not ids:
        return
    for source, relation, target in prose.find_statements(marked):
        sources = topics if source == prose.OWNER else [ids[source]]
        kind = "owner" if source == prose.OWNER else "sentence"
        kind = "bases" if relation == "inherits" else kind
        for id_ in sources:
            if id_ != ids[target] and names.may(id_, relation, ids[target]):
                yield _fact(section, id_, relation, ids[target], kind)


MAX_IN_SECTION = 40
"""Maximum names of a section; one with more is a list."""
_EXAMPLE_NAME = re.compile(r"-\w$|/|[A-Za-z]:[\\/]")
"""Single-letter flags and paths, which examples combine freely."""
_EVIDENCE = 3
_SHRINKAGE = 2
_DECIMALS = 3


def co_occurrence(
    sections: Sequence[Sequence[int]],
    mentions: Mapping[int, Sequence[str]],
    names: Mapping[str, str],
    spec: GraphSpec,
) -> list[ChunkRelation]:
    """Return the first sections with each pair; their weights add up to that of the pair."""
    threshold = spec.least_sections
    id_sets = ({id_ for seq in seqs for id_ in mentions.get(seq, ())} for seqs in sections)
    pairs = zip(sections, id_sets, strict=True)
    counted = [(seqs, sorted(ids)) for seqs, ids in pairs if 0 < len(ids) <= MAX_IN_SECTION]
    counts = Counter(id_ for _, ids in counted for id_ in ids)
    common = {
        id_
        for id_, count in counts.items()
        if count >= threshold and not _EXAMPLE_NAME.match(names[id_])
    }
    pair_counts: Counter[tuple[str, str]] = Counter()
    for _, ids in counted:
        pair_counts.update(combinations([id_ for id_ in ids if id_ in common], 2))
    degree: Counter[str] = Counter()
    seqs_of: dict[tuple[str, str], list[int]] = {}
    strengths = {
        pair: _weight(counts[pair[0]], counts[pair[1]], count, len(counted))
        for pair, count in pair_counts.items()
        if count >= threshold
    }
    for pair in sorted(strengths, key=lambda pair: (-strengths[pair], pair)):
        if (
            strengths[pair] >= spec.co_occurrence
            and not _is_affix(names[pair[0]], names[pair[1]])
            and max(degree[pair[0]], degree[pair[1]]) < spec.co_occurrences
        ):
            degree.update(pair)
            seqs_of[pair] = []
    for seqs, ids in counted:
        for pair in seqs_of.keys() & combinations(ids, 2):
            if len(seqs_of[pair]) < _EVIDENCE:
                seqs_of[pair].append(_best_chunk(seqs, mentions, pair))
    evidence: list[ChunkRelation] = []
    for (first, second), seqs in seqs_of.items():
        weight = round(strengths[first, second], _DECIMALS)
        share = weight / (1 - weight) / len(seqs)
        evidence += [
            ChunkRelation(seq, ENTITY, first, CO_OCCURS, ENTITY, second, share) for seq in seqs
        ]
    return evidence


def _is_affix(first: str, second: str) -> bool:
    short, long = sorted((_bare(first), _bare(second)), key=len)
    return long.startswith(short) or long.endswith(short)


def _bare(name: str) -> str:
    return "".join(char for char in name.partition("(")[0].lower() if char.isalnum())


def _weight(first: int, second: int, together: int, sections: int) -> float:
    """Return NPMI, shrunk if few sections have the pair; 0 to 1."""
    if together == sections:
        return 0.0
    npmi = log(together * sections / (first * second)) / log(sections / together)
    return min(npmi * together / (together + _SHRINKAGE), 0.99)


def _best_chunk(
    seqs: Sequence[int], mentions: Mapping[int, Sequence[str]], pair: tuple[str, str]
) -> int:
    """Return the first chunk of a section with both names, else with the first name."""
    return max(seqs, key=lambda seq: [name in mentions.get(seq, ()) for name in pair])


def entity_name(name: str) -> SubjectName:
    text = " ".join(check_text("name", name).split())
    return SubjectName(SubjectKind.ENTITY, subject_key(SubjectKind.ENTITY, text), text)
