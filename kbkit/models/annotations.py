"""Annotations and subjects."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kbkit.models.values import Value


class StatementType(StrEnum):
    """Type of statement."""

    CAUSAL = "causal"
    """One thing follows from another: because, therefore, if ... then."""
    CONSTRAINT = "constraint"
    """Obligation or prohibition: required, never, at most."""
    PATTERN = "pattern"
    """Usual practice: best practice, typically."""
    EQUIVALENCE = "equivalence"
    """Two names for one thing: alias of, same as, deprecated in favour of."""
    TAXONOMY = "taxonomy"
    """Kinds or parts of something."""
    PROCEDURE = "procedure"
    """Steps in order."""


class SubjectKind(StrEnum):
    """Role of a subject."""

    DOMAIN = "domain"
    """A field of knowledge, from a heading or tag."""
    ENTITY = "entity"
    """Something that has a name: a function, an option, a product, a term."""
    PROBLEM = "problem"
    """A failure."""
    RESOLUTION = "resolution"
    """A remedy."""
    CONTEXT = "context"
    """A condition: a version, a platform."""


@dataclass(frozen=True, slots=True)
class StatedRelation(Value):
    """A relation between two entities, as a chunk states it.

    Attributes:
        source: Name of the entity that it begins at, one of the annotation's.
        name: Name of the relation: a verb in lower case, ``depends_on``.
        target: Name of the entity that it leads to, likewise.
    """

    source: str
    name: str
    target: str


@dataclass(frozen=True, slots=True)
class Annotation(Value):
    """One statement of a chunk, in a normal form.

    Attributes:
        text: The words of the chunk that it was read from, ``chunk.text[start:end]``.
        normalized_text: The statement on its own: plain text, without marks of Markdown.
        frame: Statement type, if known.
        domains: Fields of knowledge that it belongs to.
        entities: Names in it, as their definitions spell them.
        problems: Problems that it states.
        resolutions: Resolutions that it states.
        contexts: Versions, platforms and headings for which it holds.
        confidence: Probability of the statement type, 0 to 1.
        start: Start in the chunk, in characters.
        end: End in the chunk.
        annotator: Annotator with version.
        relations: Relations between its entities, as far as the annotator states them; the graph
            adds its own.
    """

    text: str
    normalized_text: str
    frame: StatementType | None = None
    domains: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    resolutions: tuple[str, ...] = ()
    contexts: tuple[str, ...] = ()
    confidence: float = 0.0
    start: int = 0
    end: int = 0
    annotator: str = ""
    relations: tuple[StatedRelation, ...] = ()


@dataclass(frozen=True, slots=True)
class AnnotatedChunk(Value):
    """A chunk with its annotations.

    Attributes:
        chunk_id: Id of the chunk.
        title: Title of its document.
        uri: URI of its document.
        position: Place of the chunk in the document, from 0.
        heading_path: Headings above it.
        annotations: Its annotations.
    """

    chunk_id: str
    title: str
    uri: str
    position: int
    heading_path: tuple[str, ...]
    annotations: tuple[Annotation, ...]


@dataclass(frozen=True, slots=True)
class Subject(Value):
    """A name that chunks, documents, files and entries share.

    Attributes:
        id: Permanent id on any machine, made of kind and key.
        kind: Role of the subject.
        name: Most frequent spelling.
        chunks: Number of chunks that mention it.
        documents: Number of their documents.
        aliases: Other names for it.
        type: Type of an entity (``symbol``, ``flag``, ``term`` ...).
    """

    id: str
    kind: SubjectKind
    name: str
    chunks: int = 0
    documents: int = 0
    aliases: tuple[str, ...] = ()
    type: str = ""


@dataclass(frozen=True, slots=True)
class ChunkSummary(Value):
    """Summary of a chunk in a few words.

    Attributes:
        frame: Type of its first statement, if known.
        entities: Its rarest entities.
    """

    frame: StatementType | None
    entities: tuple[str, ...]


class EntityType(StrEnum):
    """Type of an entity, as far as the text shows it."""

    SYMBOL = "symbol"
    """A function, class, method, module or attribute of an API."""
    FLAG = "flag"
    """An option of a command line."""
    COMMAND = "command"
    """A program that is called by its name."""
    VARIABLE = "variable"
    """An environment variable."""
    SETTING = "setting"
    """A key of a configuration, or a directive."""
    ERROR = "error"
    """An error, an exception, or the code of one."""
    ENDPOINT = "endpoint"
    """A path of an HTTP API with its method."""
    SCHEMA = "schema"
    """A type of the values of an HTTP API."""
    FILE = "file"
    """A file or a folder that has a name of its own."""
    TERM = "term"
    """A word of the subject matter: of a glossary, a definition, an index or a heading."""
    NAME = "name"
    """Anything else that a recipe or a person names."""


@dataclass(frozen=True, slots=True)
class Name(Value):
    """A name in a document; an entry of the gazetteer.

    Attributes:
        name: Name as written.
        type: Type of the named thing.
        defines: Whether the document defines it there (a heading, glossary or signature), rather
            than mentions it (a code span, say).
        anchor: Anchor in the document, if any.
        confirmed: Whether it is certainly a name; else two documents must define it.
    """

    name: str
    type: EntityType
    defines: bool = False
    anchor: str = ""
    confirmed: bool = True


@dataclass(frozen=True, slots=True)
class SpeakingChunk(Value):
    """A chunk about a subject.

    Attributes:
        kb: Name of its knowledge base.
        chunk_id: Its id.
        title: Title of its document.
        section: The headings above it, on one line.
        uri: URI of its document.
        anchor: Anchor in its document, if any.
        statement: Its statement, normalised.
        frame: Type of the statement, if known.
        weight: Relevance to the subject, 0 to 1: 1 if a heading mentions it.
    """

    kb: str
    chunk_id: str
    title: str
    section: str
    uri: str
    anchor: str
    statement: str
    frame: StatementType | None
    weight: float


@dataclass(frozen=True, slots=True)
class RelatedChunk(Value):
    """A chunk that shares rare subjects with another one.

    Attributes:
        chunk_id: Its id.
        title: Title of its document.
        section: The headings above it, on one line.
        uri: URI of its document.
        anchor: Anchor in its document, if any.
        score: Strength of the relation; comparable for one chunk.
        shared: Shared subjects, the rarest first.
    """

    chunk_id: str
    title: str
    section: str
    uri: str
    anchor: str
    score: float
    shared: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SpeakingDocument(Value):
    """A document about a subject.

    Attributes:
        kb: Name of its knowledge base.
        id: Its id.
        title: Its title.
        uri: Its URI.
        description: Description in a line.
        chunks: Number of its chunks that mention the subject.
        defines: Whether it defines the subject.
    """

    kb: str
    id: str
    title: str
    uri: str
    description: str
    chunks: int
    defines: bool


@dataclass(frozen=True, slots=True)
class About(Value):
    """Chunks, documents and entities about a subject.

    Attributes:
        query: The query.
        subjects: The subjects that are called so.
        chunks: Chunks about the subjects, the most relevant first.
        documents: Their documents, defining ones first.
        entities: Entities that the same chunks name oftener than others do.
    """

    query: str
    subjects: tuple[Subject, ...]
    chunks: tuple[SpeakingChunk, ...]
    documents: tuple[SpeakingDocument, ...]
    entities: tuple[Subject, ...]
