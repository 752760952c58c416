"""The source interface: yields one document at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from kbkit.engine import Engine, LocalEngine
from kbkit.models import PageRecord, SourceDocument
from kbkit.sources.places import DiskPlace


class Outcome(StrEnum):
    """Outcome of reading an address or file."""

    FETCHED = "fetched"
    """Read; the event carries the document."""
    UNCHANGED = "unchanged"
    """The server reports no change (304); stored content stays."""
    SKIPPED = "skipped"
    """Reachable but not a document: binary, empty, too large, forbidden by robots.txt."""
    FAILED = "failed"
    """Unreadable this time; stored content stays and becomes stale."""
    GONE = "gone"
    """The server reports that it is gone (404, 410)."""


@dataclass(frozen=True, slots=True)
class SourceEvent:
    """An event while a source is read.

    Attributes:
        uri: Address or file that it happened to.
        outcome: Outcome.
        document: The document, exactly when the outcome is ``FETCHED``.
        reason: One line on why it was skipped, failed or is gone. Empty if another event sums up.
        record: Record for the next visit; only from sources that fetch.
    """

    uri: str
    outcome: Outcome
    document: SourceDocument | None = None
    reason: str = ""
    record: PageRecord | None = None


class CrawlMemory(Protocol):
    """Records of earlier visits.

    The pipeline stores the record of each event; sources look them up.
    """

    def visited(self) -> Iterable[PageRecord]:
        """Pages that the interrupted run has dealt with; empty when a run begins afresh."""
        ...

    def page(self, url: str) -> PageRecord | None:
        """The last visit of a page in any finished or unfinished run."""
        ...

    def known(self) -> Iterable[PageRecord]:
        """Every page that any run visited."""
        ...


class NoMemory:
    """A memory that knows nothing, for a first look at a source."""

    def visited(self) -> Iterable[PageRecord]:
        return ()

    def page(self, url: str) -> PageRecord | None:
        return None

    def known(self) -> Iterable[PageRecord]:
        return ()


@dataclass(frozen=True, slots=True)
class SourceContext:
    """Services that a source may use while it is read.

    Attributes:
        memory: Records of earlier visits.
        stop: Called often; true ends the source soon and cleanly.
        base: Folder that relative paths of a recipe start from.
        place: Path and URI name of a source on disk; by default of `DiskPlace.of`.
        user_agent: User agent.
        timeout: Seconds that one request may take.
        provider: Default provider of pages.
        browser: Path of the browser of the provider ``browser``; by default one that is found.
        browser_sandbox: Whether the browser uses its sandbox.
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
    engine: Engine = field(default_factory=LocalEngine)


class SourceReader(Protocol):
    """Reads a place that documents come from; a recipe describes the place.

    Attributes:
        type: The source type of recipes (``crawl``, ``page``, ``package``, ...).
        exhaustive: A full read yields every document, so that missing ones are gone. Not for a
            crawl, where only 404 and 410 mean that.
    """

    type: str
    exhaustive: bool

    def events(self, context: SourceContext) -> Iterator[SourceEvent]:
        """Read the source, one event at a time; nothing waits for the whole."""
        ...
