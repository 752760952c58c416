"""Which relations a chunk supports, by its own text and the names that are known in it. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from kbkit.graph import verbs
from kbkit.graph.keys import entity_id
from kbkit.markdown.links import WIKI_LINK
from kbkit.models import EntityType
from kbkit.stores.catalog.graph import DefinedName, Fact

REVISION = 2
"""Raised when the same text gives other relations."""

ENTITY, DOCUMENT = "entity", "document"

WEIGHTS = {
    "defined_in": 4.0, "contains_path": 4.0, "contains_heading": 1.0, "sentence": 1.0, "owner": 0.8,
    "links_to": 0.5, "refers_to": 0.5, "schema": 4.0, "bases": 4.0,
}  # fmt: skip
"""What one piece of evidence of each kind adds; s becomes the weight ``s / (1 + s)``."""

_FENCE = re.compile(r"^[>\s]*(```+|~~~+).*?(?:^[>\s]*\1\s*$|\Z)", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"[{};] *[\n}]|[;{] *$")
_SENTENCES = re.compile(
    r"(?<=[.!?])\s+(?=[\"'“(\[`*]*[A-Z\[`])|\n\s*\n|\n(?=[>\s]*(?:[-*+]|\d+\.) )"
)
_SPOTS = re.compile(
    r"(?<!!)\[((?:[^\[\]\n]|\[[^\[\]\n]{0,200}\]){1,200})\]\(\s*<?([^\s()<>]*(?:\([^\s()]*\)[^\s()<>]*)*)>?"
    r"(?:\s+(?:\"[^\"\n]*\"|'[^'\n]*'))?\s*\)"
    r"|(`+)(?!`)(.{1,200}?)(?<!`)\3(?!`)"
)
_MARKS = str.maketrans("", "", "`*_\\")
_SEPARATOR = re.compile(r"\.|::|->|#|/")
_LITERALS = frozenset({"true", "false", "none", "null", "nil", "self", "this", "undefined"})
API_PARTS = ("endpoint", "webhook", "schema")
_MOST_OWNERS = 2
_MOST_REFERRED = 15  # a section with more links is a list of them
_MOST_NAMES = 60


@dataclass(slots=True)
class DocumentNames:
    """A document and the names that it defines.

    Attributes:
        id: Of the document.
        uri: Its URI.
        metadata: What its source says of it.
        named: Names that it defines, with the id of their entity.
        links: Documents that its links by name mean, by what is written there.
    """

    id: str
    uri: str
    metadata: Mapping[str, Any]
    named: Sequence[tuple[str, DefinedName]]
    links: Mapping[str, str] = field(default_factory=dict)
    _by_anchor: dict[str, list[str]] = field(default_factory=dict)
    _by_heading: dict[str, str | None] = field(default_factory=dict)
    _ids: dict[str, DefinedName] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for known, name in self.named:
            self._ids.setdefault(known, name)
            if name.anchor:
                self._by_anchor.setdefault(name.anchor, []).append(known)

    def owners(self, anchor: str, heading_path: Sequence[str]) -> list[str]:
        """What a section defines: the names at its anchor, or the one in its heading."""
        if (part := self._part()) is not None:
            return part
        if anchor and anchor in self._by_anchor:
            return self._by_anchor[anchor][:_MOST_OWNERS]
        found = self.of_heading(heading_path[-1]) if heading_path else None
        return [found] if found else []

    def topics(self, anchor: str, heading_path: Sequence[str]) -> list[str]:
        """What sentences without a subject speak of: what is defined there or above, but no term.

        Under *Prerequisites*, *This module requires* is said of the module.
        """
        owners = [known for known in self.owners(anchor, heading_path) if not self._is_term(known)]
        if owners:
            return owners
        for heading in reversed(heading_path):
            known = self.of_heading(heading)
            if known is not None and not self._is_term(known):
                return [known]
        return []

    def of_heading(self, heading: str) -> str | None:
        """The name in a heading that the document defines: a term only if it is all of it."""
        if heading not in self._by_heading:
            self._by_heading[heading] = self._find(heading)
        return self._by_heading[heading]

    def _part(self) -> list[str] | None:
        """What a part of an API description is about."""
        if self.metadata.get("part") not in API_PARTS:
            return None
        wanted = {EntityType.ENDPOINT, EntityType.SCHEMA}
        return [known for known, name in self.named if name.type in wanted][:1]

    def _is_term(self, known: str) -> bool:
        return self._ids[known].type is EntityType.TERM

    def _find(self, heading: str) -> str | None:
        text = heading.translate(_MARKS)
        bare = text.partition("(")[0].strip()
        whole = next((each for each in map(entity_id, (text, bare)) if each in self._ids), None)
        if whole is not None and not self._is_term(whole):
            return whole
        words = bare.split()[:8]
        for length in range(min(4, len(words)), 0, -1):
            for start in range(len(words) - length + 1):
                known = entity_id(" ".join(words[start : start + length]).strip(",:;"))
                if known in self._ids and not self._is_term(known):
                    return known
        return whole


@dataclass(frozen=True, slots=True)
class Section:
    """A chunk with what is known of it.

    Attributes:
        seq: Of the chunk.
        text: Its Markdown.
        anchor: Of its heading.
        heading_path: The headings above.
        entities: What stands in it: names by the id of their entity.
    """

    seq: int
    text: str
    anchor: str
    heading_path: tuple[str, ...]
    entities: Mapping[str, str]


def facts_of(
    section: Section,
    document: DocumentNames,
    uris: Mapping[str, str],
    new_id: Callable[[str], str],
) -> Iterator[Fact]:
    """The relations that a chunk supports.

    Args:
        section: The chunk.
        document: Its document.
        uris: Ids of the documents of its knowledge base by URI.
        new_id: Gives the id that a document of a URI has when it comes.
    """
    owners = document.owners(section.anchor, section.heading_path)
    topics = document.topics(section.anchor, section.heading_path)
    begins = section.text.lstrip().startswith("#") or not section.heading_path
    if begins:
        for owner in owners:
            yield Fact(section.seq, ENTITY, owner, "defined_in", DOCUMENT, document.id,
                       WEIGHTS["defined_in"])  # fmt: skip
            yield from _containing(section, owner, document)
    text = _FENCE.sub(" ", section.text)
    names = _Names(section.entities)
    links = [found for found in _SPOTS.finditer(text) if found[2] is not None]
    yield from _links(section, links, document, uris, new_id)
    referred = {names.of_link(found[1], _resolved(document.uri, found[2])[1]) for found in links}
    if len(referred) <= _MOST_REFERRED:
        for known in sorted(each for each in referred if each is not None):
            for topic in topics:
                if topic != known:
                    yield _fact(section, topic, "refers_to", known, "refers_to")
    if document.metadata.get("part") in API_PARTS:
        yield from _of_api(section, text, owners)
    for sentence in _SENTENCES.split(text):
        if (
            verbs.CUE.search(sentence)
            and not sentence.lstrip("> ").startswith(("#", "|"))
            and not _CODE.search(sentence)
        ):
            yield from _of_sentence(section, sentence, topics, names)


def _fact(section: Section, source: str, name: str, target: str, kind: str) -> Fact:
    """A relation between two entities, with the weight of its kind of evidence."""
    return Fact(section.seq, ENTITY, source, name, ENTITY, target, WEIGHTS[kind])


def _containing(section: Section, owner: str, document: DocumentNames) -> Iterator[Fact]:
    """What contains something: what its name begins with, and the heading above."""
    name = next(name.name for known, name in document.named if known == owner)
    above = _above(name)
    if above:
        yield _fact(section, entity_id(above), "contains", owner, "contains_path")
        return
    for heading in reversed(section.heading_path[:-1]):
        known = document.of_heading(heading)
        if known is not None and known != owner:
            yield _fact(section, known, "contains", owner, "contains_heading")
            return


def _above(name: str) -> str:
    """What a qualified name is in: ``pathlib.Path`` of ``pathlib.Path.glob``; else ``""``."""
    bare = name.partition("(")[0]
    if " " in bare or bare[:1] in "-./$%":
        return ""
    for separator in ("::", "->", "#", "."):
        before, found, last = bare.rpartition(separator)
        if (
            found
            and before
            and last
            and not last.isdigit()
            and before.replace(".", "").isidentifier()
        ):
            return before
    return ""


def _links(
    section: Section,
    links: Sequence[re.Match[str]],
    document: DocumentNames,
    uris: Mapping[str, str],
    new_id: Callable[[str], str],
) -> Iterator[Fact]:
    """Documents that the document links there."""
    linked: dict[str, None] = {}
    if document.links:
        names = (match[1].strip() for match in WIKI_LINK.finditer(section.text))
        linked |= {document.links[name]: None for name in names if name in document.links}
    for found in links:
        address = _resolved(document.uri, found[2])[0]
        target = uris.get(address) or uris.get(unquote(address))
        if target is None and address and _beside(document.uri, address):
            target = new_id(address)
        if target is not None and target != document.id:
            linked[target] = None
    for target in linked:
        yield Fact(section.seq, DOCUMENT, document.id, "links_to", DOCUMENT, target,
                   WEIGHTS["links_to"])  # fmt: skip


@lru_cache(maxsize=50_000)
def _resolved(base: str, href: str) -> tuple[str, str]:
    """The address that a link leads to, and the anchor there."""
    try:
        address, anchor = urldefrag(urljoin(base, href))
    except ValueError:
        return "", ""
    return address, unquote(anchor)


@lru_cache(maxsize=50_000)
def _beside(uri: str, address: str) -> bool:
    """Whether an address is of the same site or folder as a document."""
    try:
        own, other = urlsplit(uri), urlsplit(address)
    except ValueError:
        return False
    return (own.scheme, own.netloc) == (other.scheme, other.netloc) and bool(own.netloc)


def _of_api(section: Section, text: str, owners: Sequence[str]) -> Iterator[Fact]:
    """What an endpoint or a schema uses, and what authentication it needs."""
    relation = "requires" if section.heading_path[-1:] == ("Authentication",) else "uses"
    if len(section.heading_path) < 2:
        return
    for found in _SPOTS.finditer(text):
        code = found[4]
        if code is None:
            continue
        line = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
        # names of fields begin items; their schemas stand behind them, in parentheses
        if relation == "requires" and not line.startswith("-"):
            continue
        if relation == "uses" and line.rstrip().endswith("-"):
            continue
        known = entity_id(code)
        if known not in section.entities:
            continue
        for owner in owners:
            if owner != known:
                yield _fact(section, owner, relation, known, "schema")


def _of_sentence(
    section: Section, sentence: str, topics: Sequence[str], names: _Names
) -> Iterator[Fact]:
    marked, found = names.marked(sentence)
    if not found:
        return
    for source, relation, target in verbs.said(marked):
        sources = topics if source == verbs.OWNER else [found[source]]
        kind = "owner" if source == verbs.OWNER else "sentence"
        kind = "bases" if relation == "inherits" else kind
        for known in sources:
            if known != found[target] and names.may(known, relation, found[target]):
                yield _fact(section, known, relation, found[target], kind)


class _Names:
    """The names of a chunk, to be found again in its sentences.

    Args:
        entities: Names by the id of their entity.
    """

    def __init__(self, entities: Mapping[str, str]) -> None:
        self._entities = entities
        self._suffixes: dict[str, str | None] = {}
        for known, name in entities.items():
            parts = _SEPARATOR.split(name.partition("(")[0])
            for start in range(1, len(parts)):
                suffix = ".".join(parts[start:])
                self._suffixes[suffix] = None if suffix in self._suffixes else known
        self._plain = sorted(
            (
                (name, known)
                for known, name in entities.items()
                if len(name) > 3 and _stands_alone(name)
            ),
            key=lambda pair: (-len(pair[0]), pair),
        )[:_MOST_NAMES]

    def may(self, source: str, relation: str, target: str) -> bool:
        """Whether a relation between the two tells anything: that it returns None does not."""
        if relation != "returns":
            return True
        of = self._entities.get(source, "")
        return self._entities[target].lower() not in _LITERALS and not of.endswith(
            ("Error", "Exception", "Warning")
        )

    def of(self, written: str) -> str | None:
        """The id of what is written like this in the chunk."""
        known = entity_id(written)
        if known in self._entities:
            return known
        return self._suffixes.get(written.partition("(")[0].strip().lstrip(".~"))

    def of_link(self, text: str, anchor: str) -> str | None:
        """The id of what a link names: by its anchor, which is a qualified name, or its text."""
        if anchor and (known := entity_id(anchor)) in self._entities:
            return known
        return self.of(text.translate(_MARKS_OF_SPANS))

    def marked(self, sentence: str) -> tuple[str, list[str]]:
        """A sentence with marks for names, and the ids of those."""
        found: list[str] = []

        def put(known: str) -> str:
            found.append(known)
            return verbs.mark(len(found) - 1)

        def replaced(known: str, _: re.Match[str]) -> str:
            return put(known)

        def spot(match: re.Match[str]) -> str:
            if match[2] is not None:
                words = match[1].translate(_MARKS_OF_SPANS)
                known = self.of_link(match[1], unquote(match[2].partition("#")[2]))
            else:
                words = match[4]
                known = self.of(words)
            return put(known) if known is not None else words

        text = " ".join(
            _SPOTS.sub(spot, sentence.translate(verbs.UNMARKED)).replace("*", "").split()
        )
        low = text.lower()
        for name, known in self._plain:
            if name.lower() in low:
                text = _whole(name).sub(partial(replaced, known), text)
                low = text.lower()
        return text, found


_MARKS_OF_SPANS = str.maketrans("", "", "`*\\")


def _stands_alone(name: str) -> bool:
    """Whether a word in a sentence is surely this name, without any mark."""
    return (
        " " in name
        or "-" in name[1:]
        or not name.islower()
        or any(c in name for c in "._:/0123456789")
    )


@lru_cache(maxsize=20_000)
def _whole(name: str) -> re.Pattern[str]:
    """A name as a whole word; of phrases capitals do not matter, and a plural will do."""
    phrase = " " in name and name.islower()
    return re.compile(
        rf"(?<![\w.\-/]){re.escape(name)}{'s?' if phrase else ''}(?:\(\))?(?![\w\-/]|\.\w)",
        re.IGNORECASE if phrase else 0,
    )
