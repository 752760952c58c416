"""Documents get the license that a recipe states for their source, where they state none."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import replace

from kbkit.models import License, SourceDocument
from kbkit.sources.base import SourceContext, SourceEvent, SourceReader


class LicensedReader:
    """A source whose documents have a license where they state none themselves.

    Args:
        source: The source.
        stated: What whoever named it says of its documents.
    """

    def __init__(self, source: SourceReader, stated: License) -> None:
        self._source = source
        self._stated = stated
        self.type = source.type
        self.exhaustive = source.exhaustive

    def events(self, context: SourceContext) -> Iterator[SourceEvent]:
        """What happens while the source is read; raises what it raises."""
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
    """The events of a source as a generator, which can be closed whatever the source gave."""
    yield from events
