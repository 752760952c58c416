"""Annotations and subjects."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kbkit.models.values import Value


class Frame(StrEnum):
    """Type of statement."""

    CAUSAL = "causal"
    """One thing follows from another: because, therefore, if ... then."""
    CONSTRAINT = "constraint"
    """What must or must not be: required, never, at most."""
    PATTERN = "pattern"
    """What is usually done: best practice, typically."""
    EQUIVALENCE = "equivalence"
    """Two names for one thing: alias of, same as, deprecated in favour of."""
    TAXONOMY = "taxonomy"
    """What kinds there are of something, or what it consists of."""
    PROCEDURE = "procedure"
    """Steps that somebody takes in order."""


class SubjectKind(StrEnum):
    """Role of a subject."""

    DOMAIN = "domain"
    """A field of knowledge: what a heading or tag names."""
    ENTITY = "entity"
    """Something that has a name: a function, an option, a product, a term."""
    PROBLEM = "problem"
    """What goes wrong."""
    RESOLUTION = "resolution"
    """What mends it."""
    CONTEXT = "context"
    """Where something holds: a version, a platform."""


@dataclass(frozen=True, slots=True)
class StatedRelation(Value):
    """A relation between two entities, as a chunk states it.

    Attributes:
        source: Name of the entity that it begins at, one of the annotation's.
        name: Of the relation: a verb in lower case, ``depends_on``.
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
        frame: What kind of statement it is, if that can be told.
        domains: Fields of knowledge that it belongs to.
        entities: Names that stand in it, written as those who define them write them.
        problems: What it says goes wrong.
        resolutions: What it says mends that.
        contexts: Versions, platforms and headings that it holds under.
        confidence: How likely its frame is right, 0 to 1.
        start: Where it begins in the chunk, in characters.
        end: Where it ends.
        annotator: What made it, with its version.
        relations: What it says that its entities are to each other, as far as the annotator tells;
            the graph has them beside what it reads itself.
    """

    text: str
    normalized_text: str
    frame: Frame | None = None
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
        heading_path: Headings that it stands below.
        annotations: What it says.
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
        id: Identifies it for ever, on any machine: made of its kind and key.
        kind: What it is to those that speak of it.
        name: As it is mostly written.
        chunks: How many chunks speak of it.
        documents: How many documents those are of.
        aliases: Other names for it.
        type: Of an entity, what it is (``symbol``, ``flag``, ``term`` ...).
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
        frame: The kind of its first statement, if that can be told.
        entities: Those of its entities that the fewest other chunks name.
    """

    frame: Frame | None
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
    """A name that a document gives, and so an entry of the gazetteer.

    Attributes:
        name: As it is written.
        type: What it names.
        defines: Whether the document says there what it is: under a heading, in a glossary, as a
            signature; else it only mentions it as a name (a code span, say).
        anchor: Where in the document, if that has an anchor.
        confirmed: Whether it is a name beyond doubt; else two documents have to give it before it
            is one.
    """

    name: str
    type: EntityType
    defines: bool = False
    anchor: str = ""
    confirmed: bool = True


@dataclass(frozen=True, slots=True)
class SpeakingChunk(Value):
    """A chunk that speaks of a subject.

    Attributes:
        kb: Name of its knowledge base.
        chunk_id: Its id.
        title: Of its document.
        section: The headings above it, on one line.
        uri: Of its document.
        anchor: Where it begins there, if that has an anchor.
        statement: What it says, normalised.
        frame: What kind of statement that is, if that can be told.
        weight: How much it is about the subject, 0 to 1: 1 where a heading names it.
    """

    kb: str
    chunk_id: str
    title: str
    section: str
    uri: str
    anchor: str
    statement: str
    frame: Frame | None
    weight: float


@dataclass(frozen=True, slots=True)
class RelatedChunk(Value):
    """A chunk that shares rare subjects with another one.

    Attributes:
        chunk_id: Its id.
        title: Of its document.
        section: The headings above it, on one line.
        uri: Of its document.
        anchor: Where it begins there, if that has an anchor.
        score: How much the two share; compares those of one chunk.
        shared: What both speak of, the rarest first.
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
    """A document that speaks of a subject.

    Attributes:
        kb: Name of its knowledge base.
        id: Its id.
        title: Its title.
        uri: Its URI.
        description: What it is, in a line.
        chunks: How many of its chunks speak of the subject.
        defines: Whether it says what the subject is.
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
        query: What was asked for.
        subjects: The subjects that are called so.
        chunks: Chunks that speak of one of them, those that are most about it first.
        documents: Their documents, those that define it first.
        entities: Entities that the same chunks name oftener than others do.
    """

    query: str
    subjects: tuple[Subject, ...]
    chunks: tuple[SpeakingChunk, ...]
    documents: tuple[SpeakingDocument, ...]
    entities: tuple[Subject, ...]
