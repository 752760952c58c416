"""A source that yields what a test has written down."""

from collections.abc import Iterator
from typing import ClassVar

from kbkit.models import PageRecord
from kbkit.sources.base import SourceContext, SourceEvent


class ScriptedSource:
    """Yields the events of the class, and asks to be stopped after each."""

    type = "scripted"
    exhaustive = True
    script: ClassVar[list[SourceEvent]] = []
    known: ClassVar[list[PageRecord]] = []
    """What earlier visits had left when a run began."""

    def events(self, context: SourceContext) -> Iterator[SourceEvent]:
        self.known[:] = context.memory.known()
        for event in self.script:
            if context.stop():
                return
            yield event
