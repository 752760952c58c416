"""The schema of a recipe's sources."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self, cast

from pydantic import Field, StrictBool, TypeAdapter, ValidationError, model_validator

from kbkit.errors import ConfigError, ImpossibleError
from kbkit.models import DocumentType, SourceDocument
from kbkit.models.licenses import TEXT_LENGTH
from kbkit.recipes.base import Glob, HttpUrl, IpAddress, LicenseName, Spec, find_problems


class SourceSpec(Spec):
    """Options of all sources for their documents."""

    document_type: DocumentType | None = None
    """Type of all its documents; by default each document's type is detected."""
    tags: tuple[str, ...] = ()
    """Tags of all its documents."""
    license: LicenseName = ""
    """License of documents that state none: an SPDX name (`CC-BY-4.0`), a name, or an address."""
    attribution: str = Field(default="", max_length=TEXT_LENGTH)
    """Attribution of documents that state none (`© 2026 The authors`)."""


class FetchSpec(SourceSpec):
    """Options of sources that fetch from the web."""

    allow_private: StrictBool | tuple[IpAddress, ...] = False
    """Permit loopback and private addresses, or only those of a list (`[10.0.0.7]`). Link-local
    addresses and cloud metadata services are refused unless listed."""
    max_bytes: int = Field(default=10_000_000, gt=0)
    """Largest page to read, in bytes after decompression; larger ones are skipped."""
    delay: float = Field(default=0.0, ge=0)
    """Minimum seconds between two requests to one host; a larger Crawl-delay in robots.txt wins."""


class WebSpec(FetchSpec):
    """Options of sources of web pages."""

    provider: Literal["trafilatura", "browser", "firecrawl"] | None = None
    """`trafilatura` is kbkit's own crawler; `browser` renders pages with a local Chromium (`pip
    install "kbkit[browser]"`); `firecrawl` is a service (`pip install "kbkit[firecrawl]"`). By
    default the setting `KBKIT_CRAWL_PROVIDER`."""
    images: StrictBool = False
    """Save pictures for the site: PNG, JPEG, GIF, WebP and SVG (without scripts, also inline), up
    to 5 MB each and 200 a page."""


class CrawlSource(WebSpec):
    """A web site, followed from a start page along its links and sitemaps."""

    type: Literal["crawl"] = "crawl"
    url: HttpUrl
    """Start page. The crawl stays on its origin, at or below its folder."""
    limit: int = Field(default=1000, gt=0)
    """Maximum number of pages."""
    include: tuple[Glob, ...] = ()
    """Globs of paths to read (`/guide/**`); by default all in scope."""
    exclude: tuple[Glob, ...] = ()
    """Globs of paths to leave out; wins over `include`."""
    sitemap: StrictBool = True
    """Also start from the sitemaps that robots.txt names, and from `sitemap.xml`."""
    depth: int | None = Field(default=None, ge=0)
    """Maximum number of links from the start page (`0`: only that page); pages of a sitemap count
    as one link. Unlimited by default."""
    concurrency: int = Field(default=4, ge=1, le=32)
    """Requests to the host at once."""
    queries: int = Field(default=200, ge=0)
    """Maximum number of query strings (`?page=2`) of one page, against endless sites."""


class PageSource(WebSpec):
    """One web page."""

    type: Literal["page"] = "page"
    url: HttpUrl
    """Its address."""


class MirrorSource(SourceSpec):
    """HTML pages on disk: a folder (`wget` mirror, built documentation), archive or WARC."""

    type: Literal["mirror"] = "mirror"
    path: str
    """The folder, the archive (`.zip`, `.docset`) or the WARC (`.warc`, `.warc.gz`)."""
    base_url: HttpUrl | None = None
    """Address of the folder or archive; URIs begin with it. Optional for a WARC."""
    include: tuple[Glob, ...] = ()
    """Globs of paths inside the folder to read (`/library/**`); by default all."""
    exclude: tuple[Glob, ...] = ()
    """Globs of paths inside the folder to leave out; wins over `include`."""
    limit: int = Field(default=100_000, gt=0)
    """Maximum number of pages."""

    @model_validator(mode="after")
    def _check_base_url(self) -> Self:
        if self.base_url is None and not self.path.lower().endswith((".warc", ".warc.gz")):
            raise ValueError("base_url is needed: only a WARC knows the addresses of its pages")
        return self


class FilesSource(SourceSpec):
    """Files on disk: documents, tables, notebooks, data and source code."""

    type: Literal["files"] = "files"
    path: Glob
    """A glob (`docs/**/*.md`), a file or a folder."""
    exclude: tuple[Glob, ...] = ()
    """Globs of paths inside the folder to leave out (`drafts/**`, `*.min.js`)."""
    limit: int = Field(default=100_000, gt=0)
    """Maximum number of files."""


class JsonlSource(SourceSpec):
    """A file of JSON lines.

    Each line is an object with `uri`, `title`, `content` (or `text`) and optionally
    `document_type`, `tags`, `metadata`, `license`, `license_url`, `attribution`.
    """

    type: Literal["jsonl"] = "jsonl"
    path: str
    """The file."""


class ParquetSource(SourceSpec):
    """A Parquet file with a document in each row.

    Its columns are `uri`, `content` (or `text`) and optionally `title`, `document_type`, `tags` (a
    list), `metadata` (JSON, a structure or a map), `license`, `license_url`, `attribution`.
    """

    type: Literal["parquet"] = "parquet"
    path: str
    """The file."""


class OpenApiSource(FetchSpec):
    """An OpenAPI 3 description (JSON or YAML): documents of endpoints, schemas and an overview."""

    type: Literal["openapi"] = "openapi"
    url: HttpUrl | None = None
    """Its address; give either this or `path`."""
    path: str | None = None
    """Its file."""
    limit: int = Field(default=100_000, gt=0)
    """Maximum number of documents."""

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.url is None) == (self.path is None):
            raise ValueError("give either url or path")
        return self


class PackageSource(SourceSpec):
    """The public API of an installed Python package, read from the docstrings in its files."""

    type: Literal["package"] = "package"
    name: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.]*$")
    """Import name (`pandas`, `pandas.io`)."""
    introspect: StrictBool = False
    """Import the package in a process, which runs its code, for accessors (`pandas.Series.str`),
    generated members and compiled objects."""
    exclude: tuple[Glob, ...] = ()
    """Globs of names to leave out (`pandas.arrays*`)."""
    limit: int = Field(default=100_000, gt=0)
    """Maximum number of documents."""


class PluginSource(SourceSpec):
    """A source of another installed package (entry point group `kbkit.sources`)."""

    type: Literal["plugin"] = "plugin"
    name: str = Field(min_length=1)
    """Name of the entry point."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments of the source."""


AnySource = Annotated[
    CrawlSource
    | PageSource
    | MirrorSource
    | FilesSource
    | JsonlSource
    | ParquetSource
    | OpenApiSource
    | PackageSource
    | PluginSource,
    Field(discriminator="type"),
]
"""A source by ``type``."""


def parse_source(values: Mapping[str, Any]) -> AnySource:
    """Parse a source part of a recipe from JSON values.

    Raises:
        ConfigError: The values describe no source; the message begins with the wrong key.
    """
    try:
        source: AnySource = TypeAdapter(AnySource).validate_python(values)
    except ValidationError as error:
        lines = "\n".join(map(str, find_problems(error, AnySource)))
        if any(fault["type"] == "value_error" for fault in error.errors()):
            # a validator refused a value, which no JSON schema expresses
            raise ImpossibleError(lines) from None
        raise ConfigError(lines) from None
    return source


_DOCUMENT_KEYS = frozenset({"text", "text_resource", "metadata", "extra_info", "id_", "doc_id"})
"""Keys of document dictionaries; dictionaries without them are sources."""


def split_sources(items: Iterable[Any]) -> tuple[list[AnySource], list[Any]]:
    """Separate sources from documents in nested lists of both.

    Dictionaries may be sources of a recipe or results of llama-index's ``to_dict``.

    Raises:
        ConfigError: Something is neither.
    """
    sources: list[AnySource] = []
    documents: list[Any] = []
    for item in items:
        if isinstance(item, SourceSpec):
            sources.append(cast(AnySource, item))
        elif isinstance(item, Mapping) and not _DOCUMENT_KEYS.intersection(item):
            sources.append(parse_source(item))
        elif isinstance(item, Mapping | SourceDocument) or hasattr(item, "get_content"):
            documents.append(item)
        elif hasattr(item, "events"):
            raise ConfigError(
                f"{type(item).__name__} is a reader, not a source: give a description, such as "
                "FilesSource(path='docs'), or PluginSource(name=...) for a reader of your own"
            )
        elif isinstance(item, Iterable) and not isinstance(item, (str, bytes)):
            inner_sources, inner_documents = split_sources(item)
            sources += inner_sources
            documents += inner_documents
        else:
            raise ConfigError(
                f"{item!r:.80} cannot be ingested: give sources, such as FilesSource(path='docs') "
                "or {'type': 'files', 'path': 'docs'}, or documents of a llama-index reader"
            )
    return sources, documents


def only_sources(name: str, items: Any) -> list[AnySource]:
    """Return the sources among the arguments of a method that takes no documents."""
    sources, documents = split_sources([items])
    if documents:
        raise ConfigError(f"{name}: takes sources; documents go into `ingest`")
    return sources
