"""Interface of sources, which yield one document at a time, and the source ``plugin``."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any, Protocol
from urllib.parse import urlsplit

from kbkit.errors import ConfigError, KbkitError, SourceError
from kbkit.models import License, PageRecord, SourceDocument
from kbkit.paths import absolute, place_name, split_glob
from kbkit.recipes import AnySource, PluginSource, SourceSpec
from kbkit.runtime.engine import Engine
from kbkit.runtime.plugins import SOURCES, make

_READERS = {
    "crawl": ("kbkit.sources.web.readers", "read_site"),
    "page": ("kbkit.sources.web.readers", "read_page"),
    "mirror": ("kbkit.sources.archives", "read_mirror"),
    "files": ("kbkit.sources.files", "read_files"),
    "jsonl": ("kbkit.sources.tables", "read_jsonl"),
    "parquet": ("kbkit.sources.tables", "read_parquet"),
    "openapi": ("kbkit.sources.openapi", "read_description"),
    "package": ("kbkit.sources.package", "read_package"),
}
"""Module and function by source type, imported on first use."""


def open_reader(spec: AnySource) -> SourceReader:
    """Return the reader of a recipe's source; reads nothing yet."""
    unchecked: object = spec
    if isinstance(spec, PluginSource):
        plugin = make(SOURCES, spec.name, spec.options, ("exhaustive", "events"))
        return _Reader(spec, partial(_read_plugin, plugin), bool(plugin.exhaustive))
    if not isinstance(unchecked, SourceSpec) or spec.type not in _READERS:
        raise ConfigError(f"{type(spec).__name__}: not a source that kbkit knows")
    module, name = _READERS[spec.type]
    return _Reader(spec, getattr(import_module(module), name), spec.type not in ("crawl", "page"))


def _read_plugin(
    plugin: SourceReader, spec: PluginSource, context: SourceContext
) -> Iterator[SourceEvent]:
    """Yield the events of another package's source; raise `SourceError` if its code fails."""
    try:
        for event in plugin.events(context):
            document = event.document
            if document is not None:
                document = replace(document, uri=public_uri(document.uri, context.base))
            yield replace(event, uri=public_uri(event.uri, context.base), document=document)
    except KbkitError:
        raise
    except Exception as error:  # foreign code must not stop the other sources
        detail = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise SourceError(f"the source {spec.name!r} failed ({detail})") from error


@dataclass(slots=True)
class _Reader:
    """Adds a recipe's type, tags and license to documents; a license only to those without one."""

    spec: SourceSpec
    read: Callable[[Any, SourceContext], Iterator[SourceEvent]]
    exhaustive: bool

    def events(self, context: SourceContext) -> Iterator[SourceEvent]:
        for event in self.read(self.spec, context):
            document = event.document
            yield event if document is None else replace(event, document=self._label(document))

    def _label(self, document: SourceDocument) -> SourceDocument:
        metadata = document.metadata
        stated = License.stated(self.spec.license, attribution=self.spec.attribution)
        if stated or stated.attribution:
            metadata = {**metadata, **License.of(metadata).or_else(stated).to_metadata()}
        return replace(
            document,
            document_type=self.spec.document_type or document.document_type,
            tags=tuple(dict.fromkeys((*self.spec.tags, *document.tags))),
            metadata=metadata,
        )


# Drive letters and backslashes are paths only on Windows; elsewhere `C:/docs` is a name.
_LOCAL = re.compile(r"file:|[A-Z]:[\\/]|[\\/]" if os.name == "nt" else "file:|/", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class DiskPlace:
    """A folder or file that a source names.

    Attributes:
        root: Absolute path; never leaves this machine.
        name: Name in URIs, with forward slashes; ``""`` for the base folder.
    """

    root: Path
    name: str

    @classmethod
    def of(cls, path: str, base: Path) -> DiskPlace:
        """Return the place of a path or glob; see `place_name`."""
        full = Path(path).expanduser()
        if not (base / full).exists():
            full = Path(split_glob(path.replace(os.sep, "/"))[0]).expanduser()
        return cls(absolute(base / full), place_name(base / full, base))

    def uri(self, path: Path) -> str:
        """Return the URI of the place or of a file in it."""
        inside = absolute(path).relative_to(self.root).as_posix()
        return "/".join(part for part in (self.name, inside) if part not in ("", "."))

    def apart(self, others: Iterable[DiskPlace]) -> DiskPlace:
        """Return this place with a number in its name, if its URIs would clash with others."""
        other_places = list(others)
        place, number = self, 1
        while any(place._clashes(other) for other in other_places):
            number += 1
            name = PurePosixPath(self.name or self.root.name or "files")
            place = replace(self, name=str(name.with_stem(f"{name.stem}-{number}")))
        return place

    def _clashes(self, other: DiskPlace) -> bool:
        if self.name == other.name:
            return self.root != other.root
        for outer, inner in ((self, other), (other, self)):
            name = PurePosixPath(inner.name)
            if name.is_relative_to(outer.name):
                overlapping = outer.root / name.relative_to(outer.name)
                return overlapping != inner.root and overlapping.exists()
        return False


def public_uri(uri: str, base: Path | None = None) -> str:
    """Replace a local path by a URI that does not reveal its folder.

    Paths below ``base`` become relative to it, others their last two parts with a digest of the
    folder. Other URIs stay, as do paths without a file (``/guide/a.html``), which may be pages
    of a site.
    """
    if not _LOCAL.match(uri):
        return uri
    from urllib.request import url2pathname

    is_file = uri.lower().startswith("file:")
    try:
        bare, hash_, fragment = uri.partition("#") if is_file else (uri, "", "")
        path = Path(url2pathname(urlsplit(bare).path) if is_file else bare)
        if not path.is_absolute():
            return uri
        full = absolute(path)
        if base is not None and absolute(base) in full.parents:
            return full.relative_to(absolute(base)).as_posix() + hash_ + fragment
        if not is_file and not full.exists():
            return uri
    except ValueError:
        return uri
    digest = hashlib.blake2b(os.fsencode(full.parent), digest_size=4).hexdigest()
    return f"{full.parent.name or 'files'}-{digest}/{full.name}{hash_}{fragment}"


def without_machine(text: str) -> str:
    """Replace local paths in a program's output by ``~`` (the user's folder) or ``...``."""
    if "/" not in text and "\\" not in text:
        return text
    for folder, sign in ((sys.prefix, "..."), (Path.cwd(), "..."), (Path.home(), "~")):
        if len(Path(folder).parts) > 2:  # "/usr" and the like reveal nothing
            text = re.sub(rf"{re.escape(str(folder))}(?![\w-])", sign, text)
    return text


class Outcome(StrEnum):
    """Outcome of reading an address or file."""

    FETCHED = "fetched"
    """Read; the event has the document."""
    UNCHANGED = "unchanged"
    """The server reports no change (304); stored content stays."""
    SKIPPED = "skipped"
    """Reachable but not a document: binary, empty, too large, forbidden by robots.txt."""
    FAILED = "failed"
    """Not readable now; stored content stays and becomes stale."""
    GONE = "gone"
    """The server reports that it is gone (404, 410)."""


@dataclass(frozen=True, slots=True)
class SourceEvent:
    """An event while a source is read.

    uri: Its address or file.
    document: Set exactly if the outcome is ``FETCHED``.
    reason: Why it was skipped, failed or is gone, in one line. Empty if another event sums it up.
    record: Record for the next visit; only from sources that fetch.
    """

    uri: str
    outcome: Outcome
    document: SourceDocument | None = None
    reason: str = ""
    record: PageRecord | None = None


class CrawlMemory(Protocol):
    """Records of earlier visits, which the pipeline stores from events."""

    def visited(self) -> Iterable[PageRecord]:
        """Return pages already handled by an interrupted run; empty for a new run."""
        return ()

    def page(self, url: str) -> PageRecord | None:
        """Return a page's last visit in any run, finished or not."""
        return None

    def known(self) -> Iterable[PageRecord]:
        """Return every page that any run visited."""
        return ()


class NoMemory(CrawlMemory):
    """Empty memory, for a first visit."""


@dataclass(frozen=True, slots=True)
class SourceContext:
    """Services that a source may use while it is read.

    Attributes:
        memory: Records of earlier visits.
        stop: Polled often; true ends the source soon and cleanly.
        base: Folder that relative paths of a recipe start from.
        place: Path and URI name of a source on disk; by default from `DiskPlace.of`.
        timeout: Seconds per request.
        provider: Default provider of pages.
        browser: Path of the browser for the provider ``browser``; by default searched for.
        engine: Engine that fetches and parses.
    """

    memory: CrawlMemory = field(default_factory=NoMemory)
    stop: Callable[[], bool] = lambda: False
    base: Path = field(default_factory=Path)
    place: DiskPlace | None = None
    user_agent: str = "kbkit"
    timeout: float = 30.0
    provider: str = "trafilatura"
    browser: str = ""
    browser_sandbox: bool = True
    engine: Engine = field(default_factory=Engine)


class SourceReader(Protocol):
    """Reads the documents of a recipe's source.

    Attributes:
        exhaustive: A full read yields every document, so missing ones are gone. False for a crawl,
            where only 404 and 410 mean that.
    """

    exhaustive: bool

    def events(self, context: SourceContext) -> Iterator[SourceEvent]:
        """Read the source, one event at a time."""
        ...
