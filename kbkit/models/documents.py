"""Documents and chunks, and distinct titles."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Any
from urllib.parse import unquote

from kbkit.errors import ConfigError
from kbkit.models.values import Value, plain, shared_length, valid, valid_values

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
"""Any JSON value."""


class DocumentType(StrEnum):
    """Type of document."""

    MANUAL = "manual"
    TUTORIAL = "tutorial"
    API_SPEC = "api_spec"
    FAQ = "faq"
    POLICY = "policy"
    REFERENCE = "reference"
    OTHER = "other"


def telling_types(counts: Mapping[str, int]) -> tuple[str, ...]:
    """Return known types, the most frequent first; none if most documents are ``other``."""
    other = counts.get(DocumentType.OTHER, 0)
    specific = {kind: number for kind, number in counts.items() if kind != DocumentType.OTHER}
    if other * 2 > sum(counts.values()):
        return ()
    return tuple(sorted(specific, key=lambda kind: (-specific[kind], kind)))


class DocumentState(StrEnum):
    """State of a stored document relative to its source."""

    CURRENT = "current"
    """Unchanged at the last check."""
    STALE = "stale"
    """The last check failed; this is the previous version."""
    GONE = "gone"
    """No longer at its source, and no longer searched."""


_NUMBER = r"v?\d{1,4}(?:\.\d{1,4}){1,3}(?:(?:a|b|rc|dev|post)\d*)?"
_VERSION = re.compile(rf"https?://[^/?#]*(?:/[^/?#]*)*?/({_NUMBER}|v\d{{1,3}})/", re.ASCII)


def version_of(uri: str, metadata: Mapping[str, Any]) -> str:
    """Return the version that a document is about, such as ``3.12``; ``""`` if unknown."""
    if version := metadata.get("version"):
        return str(version)
    match = _VERSION.match(uri)
    return match[1].removeprefix("v") if match else ""


@dataclass(frozen=True, slots=True)
class Image:
    """A picture of a document.

    Attributes:
        name: File name: a digest of the content, with its type.
        data: PNG, JPEG, GIF, WebP, or an SVG that runs and fetches nothing.
    """

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """A document from a source, before it is stored; its texts are valid Unicode.

    Attributes:
        uri: Origin; identifies the document in its knowledge base.
        title: One line of plain text.
        content: Markdown. A heading may carry its anchor as ``## Title {#anchor}``.
        document_type: ``None`` for detection.
        metadata: JSON values; ``description`` is the document's own, in plain text.
        fidelity: Kept and total code blocks, headings, table rows and so on, by kind; empty if not
            measured.
        note: How it was read (a guessed charset), or ``""``; only reports show it.
        images: Pictures by address in the content; once stored, the metadata ``images`` has their
            names.
    """

    uri: str
    title: str
    content: str
    document_type: DocumentType | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    fidelity: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    note: str = ""
    images: Mapping[str, Image] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("uri", "title", "content", "note"):
            value = getattr(self, name)
            if not isinstance(value, str):
                raise ConfigError(f"SourceDocument: {name}={value!r}: give a text")
            object.__setattr__(self, name, valid(value))
        object.__setattr__(self, "tags", tuple(valid(str(tag)) for tag in self.tags))
        with suppress(RecursionError):  # too deeply nested; storing it reports this
            object.__setattr__(self, "metadata", valid_values(self.metadata))


@dataclass(frozen=True, slots=True)
class PageRecord:
    """Record of a page for its next visit.

    Attributes:
        url: Requested address, canonical.
        depth: Links away from the start.
        etag: Validator from the server, or ``""``; so is ``last_modified``.
        links: Addresses on the page that are in the source's scope.
        document_uri: URI of the document made from it, or ``""``.
        location: Address after redirects, or ``""``.
        canonical: Canonical address that the page states, if it is in scope and differs, or ``""``.
    """

    url: str
    depth: int = 0
    etag: str = ""
    last_modified: str = ""
    links: tuple[str, ...] = ()
    document_uri: str = ""
    location: str = ""
    canonical: str = ""

    @property
    def address(self) -> str:
        """Address of the response."""
        return self.location or self.document_uri or self.url


def image_names_of(metadata: Mapping[str, Any]) -> dict[str, str]:
    images = metadata.get("images")
    return {str(key): str(name) for key, name in images.items()} if isinstance(images, dict) else {}


@dataclass(frozen=True, slots=True)
class Document(Value):
    """A stored document.

    Attributes:
        id: Derived from the knowledge base and the URI.
        metadata: Metadata of its source; ``description`` is the document's own.
        fetched_at: When the source last had this text (UTC).
        content_hash: Changes with any change of the document; for ``if_match``. ``""`` if the
            document is gone.
        description: One line of plain text: its own, or from its beginning; ``""`` if unknown.
    """

    id: str
    uri: str
    title: str
    content: str
    document_type: DocumentType
    tags: tuple[str, ...]
    metadata: Mapping[str, Any]
    state: DocumentState
    fetched_at: datetime
    content_hash: str
    description: str = ""

    @property
    def version(self) -> str:
        """Version that the document is about; see `version_of`."""
        return version_of(self.uri, self.metadata)

    @property
    def images(self) -> dict[str, str]:
        """Names of pictures by their addresses in the content."""
        return image_names_of(self.metadata)


@dataclass(frozen=True, slots=True)
class DocumentInfo(Value):
    """A document without its text; see `Document`."""

    id: str
    uri: str
    title: str
    document_type: DocumentType
    tags: tuple[str, ...]
    state: DocumentState
    fetched_at: datetime
    chunks: int
    description: str = ""
    content_hash: str = ""

    @classmethod
    def of(cls, document: Document, chunks: int) -> DocumentInfo:
        """Return the facts of a stored document."""
        names = [field.name for field in fields(cls) if field.name != "chunks"]
        return cls(chunks=chunks, **{name: getattr(document, name) for name in names})


@dataclass(frozen=True, slots=True)
class DocumentPart(Value):
    """A document, or a part of its text.

    Attributes:
        document: The document, with the part as its content.
        section: Requested heading; ``""`` for none.
        start: Start of the part in the whole text, in characters.
        end: End of the part.
        length: Length of the whole text.
    """

    kb: str
    document: Document
    section: str
    start: int
    end: int
    length: int


@dataclass(frozen=True, slots=True)
class Labels:
    """Labels that a person gave a document; ``None`` leaves those of the source."""

    document_type: DocumentType | None = None
    tags: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ChunkSpan:
    """A span of a document's Markdown, as a chunker cuts it.

    Attributes:
        start: Offset of the first character in the document's content.
        end: End offset: ``content[start:end]`` is the chunk.
        heading_path: Headings above the span, outermost first, without markup or anchors.
        anchor: Anchor of the nearest heading above, or ``""``.
        page: Page number in the source (PDF), counted from 1.
    """

    start: int
    end: int
    heading_path: tuple[str, ...] = ()
    anchor: str = ""
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Chunk(Value):
    """The unit of retrieval: a span of a document.

    ``document.content[chunk.start:chunk.end] == chunk.text`` always holds.

    Attributes:
        id: Derived from document, heading path and text.
        position: Place among the chunks of its document, from 0.
    """

    id: str
    document_id: str
    position: int
    start: int
    end: int
    text: str
    heading_path: tuple[str, ...]
    anchor: str
    page: int | None


KEYS = ("breadcrumbs", "next")
"""Metadata keys of a document's place."""
DEPTH = 12
"""Maximum breadcrumbs."""
TITLE_LENGTH = 200
"""Maximum characters of a breadcrumb."""
URI_LENGTH = 2_000
"""Longer addresses are left out."""


@dataclass(frozen=True, slots=True)
class Crumb:
    """A breadcrumb between a source's front page and a document; ``uri`` may be ``""``."""

    title: str
    uri: str = ""


@dataclass(frozen=True, slots=True)
class Navigation:
    """A document's place in its site. True if any part is known.

    Attributes:
        breadcrumbs: Outermost first, without the document; ``None`` if unknown.
        next: URI of the next document, or ``""``.
    """

    breadcrumbs: tuple[Crumb, ...] | None = None
    next: str = ""

    def __bool__(self) -> bool:
        return self.breadcrumbs is not None or bool(self.next)

    @classmethod
    def of_values(
        cls, breadcrumbs: Iterable[tuple[str, str]] | None = None, following: str = ""
    ) -> Navigation:
        crumbs = None
        if breadcrumbs is not None:
            places = [
                (plain(title[: 4 * TITLE_LENGTH])[:TITLE_LENGTH].strip(), _check_uri(uri))
                for title, uri in breadcrumbs
            ]
            crumbs = tuple(Crumb(title, uri) for title, uri in places if title)[-DEPTH:]
        return cls(crumbs, _check_uri(following))

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> Navigation:
        crumbs, following = (metadata.get(key) for key in KEYS)
        is_valid = isinstance(crumbs, list) and all(
            isinstance(crumb, list) and len(crumb) == 2 and all(isinstance(p, str) for p in crumb)
            for crumb in crumbs
        )
        pairs = [(title, uri) for title, uri in crumbs] if is_valid and crumbs is not None else None
        return cls.of_values(pairs, following if isinstance(following, str) else "")

    def to_metadata(self) -> dict[str, Any]:
        """Return known parts by the `KEYS` of a document's metadata."""
        values: dict[str, Any] = {}
        if self.breadcrumbs is not None:
            values["breadcrumbs"] = [[crumb.title, crumb.uri] for crumb in self.breadcrumbs]
        if self.next:
            values["next"] = self.next
        return values


def _check_uri(uri: str) -> str:
    return uri if len(uri) <= URI_LENGTH and uri.isprintable() else ""


_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def variable(value: object) -> str:
    """Return the variable of a reference (``${NAME}``); ``""`` for a plain value."""
    match = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
    return match[1] if match else ""


def variables(arguments: Mapping[str, Any]) -> list[str]:
    return sorted({name for value in arguments.values() if (name := variable(value))})


_SEPARATORS = re.compile(r"[/?#]")
_SUFFIX = re.compile(r"(?:/?(?:index|README))?\.[A-Za-z]{1,5}$|/$")
_PLACE_LENGTH = 40  # maximum characters of a path added to a title


def disambiguate(titles: Mapping[str, str]) -> dict[str, str]:
    """Return titles by URI, equal ones with the part of the path that differs.

    ``Overview`` of ``/install/`` and of ``/api/`` become ``Overview (install)`` and ``Overview
    (api)``.
    """
    uris_of_title: dict[str, list[str]] = {}
    for uri, title in titles.items():
        uris_of_title.setdefault(title.casefold(), []).append(uri)
    labels = dict(titles)
    for uris in uris_of_title.values():
        paths = [_SEPARATORS.split(unquote(_SUFFIX.sub("", uri))) for uri in uris]
        prefix = shared_length(paths)
        suffix = shared_length([path[prefix:][::-1] for path in paths])
        for uri, path in zip(uris, paths, strict=True):
            place = plain("/".join(filter(None, path[prefix : len(path) - suffix])))
            if place and len(uris) > 1:
                labels[uri] += f" ({place[:_PLACE_LENGTH]})"
    return labels
