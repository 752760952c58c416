"""Annotations and subjects."""

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
    """A named thing: a function, an option, a product, a term."""
    PROBLEM = "problem"
    RESOLUTION = "resolution"
    CONTEXT = "context"
    """A condition: a version, a platform."""


@dataclass(frozen=True, slots=True)
class StatedRelation(Value):
    """A relation between two entities of an annotation, as a chunk states it.

    Attributes:
        name: A verb in lower case, such as ``depends_on``.
    """

    source: str
    name: str
    target: str


@dataclass(frozen=True, slots=True)
class Annotation(Value):
    """One normalised statement of a chunk.

    Attributes:
        text: Words of the chunk, ``chunk.text[start:end]``.
        normalized_text: The statement as plain text, without Markdown.
        entities: Names, as their definitions spell them.
        contexts: Versions, platforms and headings for which it holds.
        confidence: Probability of the statement type, 0 to 1.
        start: Start in the chunk, in characters.
        annotator: Name and version of the annotator.
        relations: Relations that the annotator states; the graph adds more.
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
        position: Place of the chunk in the document, from 0.
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
        id: Derived from kind and key; the same on every machine.
        name: Most frequent spelling.
        chunks: Number of chunks that mention it.
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
        frame: Type of its first statement.
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
    """A program."""
    VARIABLE = "variable"
    """An environment variable."""
    SETTING = "setting"
    """A key of a configuration, or a directive."""
    ERROR = "error"
    """An error, an exception, or an error code."""
    ENDPOINT = "endpoint"
    """A path of an HTTP API with its method."""
    SCHEMA = "schema"
    """A data type of an HTTP API."""
    FILE = "file"
    """A named file or folder."""
    TERM = "term"
    """A term of the subject matter, from a glossary, definition, index or heading."""
    NAME = "name"
    """Anything else that a recipe or a person names."""


@dataclass(frozen=True, slots=True)
class Name(Value):
    """A name in a document; an entry of the gazetteer.

    Attributes:
        defines: Whether the document defines it (in a heading, glossary or signature) rather than
            mentions it (in a code span, for example).
        confirmed: Whether it is certainly a name; otherwise two documents must define it.
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
        section: The headings above it, on one line.
        statement: Its statement, normalised.
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
        section: The headings above it, on one line.
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
        chunks: Number of its chunks that mention the subject.
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
        subjects: Subjects with the name in the query.
        chunks: Chunks about the subjects, the most relevant first.
        documents: Their documents, defining ones first.
        entities: Entities that these chunks name more often than other chunks do.
    """

    query: str
    subjects: tuple[Subject, ...]
    chunks: tuple[SpeakingChunk, ...]
    documents: tuple[SpeakingDocument, ...]
    entities: tuple[Subject, ...]
