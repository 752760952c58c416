"""Sources of documents, and the source ``plugin`` of another installed package."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import replace
from importlib import import_module

from kbkit.errors import ConfigError, KbkitError, SourceError
from kbkit.models import License, SourceDocument
from kbkit.recipes import AnySource, PluginSource, SourceSpec
from kbkit.runtime.plugins import SOURCES, make
from kbkit.sources.base import Outcome, SourceContext, SourceEvent, SourceReader, published_uri

__all__ = ["open_reader"]

_READERS = {
    "crawl": ("kbkit.sources.web.readers", "CrawlReader"),
    "page": ("kbkit.sources.web.readers", "PageReader"),
    "mirror": ("kbkit.sources.archives", "MirrorReader"),
    "files": ("kbkit.sources.files", "FilesReader"),
    "jsonl": ("kbkit.sources.tables", "JsonlReader"),
    "parquet": ("kbkit.sources.tables", "ParquetReader"),
    "openapi": ("kbkit.sources.openapi", "OpenApiReader"),
    "package": ("kbkit.sources.package", "PackageReader"),
    "plugin": ("kbkit.sources", "PluginReader"),
}
"""Module and class by source type, imported on first use."""


def open_reader(spec: AnySource) -> SourceReader:
    """Return the reader of a recipe's source; reads nothing yet."""
    unchecked: object = spec
    if not isinstance(unchecked, SourceSpec) or spec.type not in _READERS:
        raise ConfigError(f"{type(spec).__name__}: not a source that kbkit knows")
    module, name = _READERS[spec.type]
    reader: SourceReader = getattr(import_module(module), name)(spec)
    stated = License.stated(spec.license, attribution=spec.attribution)
    if not stated and not stated.attribution:
        return reader
    return LicensedReader(reader, stated)


class PluginReader:
    """Reads a source of another package; adds tags and type from the recipe."""

    type = "plugin"

    def __init__(self, spec: PluginSource) -> None:
        self._spec = spec
        parts = ("type", "exhaustive", "events")
        self._inner: SourceReader = make(SOURCES, spec.name, spec.options, parts)
        self.exhaustive = bool(self._inner.exhaustive)

    def events(self, context: SourceContext) -> Iterator[SourceEvent]:
        """Yield the events of the package's source; raise `SourceError` if its code fails."""
        for inner_event in self._guarded(context):
            event = replace(inner_event, uri=published_uri(inner_event.uri, context.base))
            if event.outcome is not Outcome.FETCHED or event.document is None:
                yield event
                continue
            document = replace(
                event.document,
                uri=published_uri(event.document.uri, context.base),
                document_type=self._spec.document_type or event.document.document_type,
                tags=tuple(dict.fromkeys((*event.document.tags, *self._spec.tags))),
            )
            yield replace(event, document=document)

    def _guarded(self, context: SourceContext) -> Iterator[SourceEvent]:
        try:
            yield from self._inner.events(context)
        except KbkitError:
            raise
        except Exception as error:  # foreign code must not stop the other sources
            detail = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            raise SourceError(f"the source {self._spec.name!r} failed ({detail})") from error


class LicensedReader:
    """Adds a license to documents that state none."""

    def __init__(self, source: SourceReader, stated: License) -> None:
        self._source = source
        self._stated = stated
        self.type = source.type
        self.exhaustive = source.exhaustive

    def events(self, context: SourceContext) -> Iterator[SourceEvent]:
        with closing(_each(self._source.events(context))) as events:
            for event in events:
                if event.document is None:
                    yield event
                else:
                    yield replace(event, document=self._licensed(event.document))

    def _licensed(self, document: SourceDocument) -> SourceDocument:
        license = License.of(document.metadata).or_else(self._stated)
        return replace(document, metadata={**document.metadata, **license.to_metadata()})


def _each(events: Iterator[SourceEvent]) -> Generator[SourceEvent]:
    """Make a generator of events, which can be closed."""
    yield from events
