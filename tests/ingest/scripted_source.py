"""A source with events of a test."""

from collections.abc import Iterator
from typing import ClassVar

from kbkit.models import PageRecord
from kbkit.sources import SourceContext, SourceEvent


class ScriptedSource:
    """Yields the events of the class, and asks to be stopped after each."""

    exhaustive = True
    script: ClassVar[list[SourceEvent | Exception]] = []
    known: ClassVar[list[PageRecord]] = []
    """Records of earlier visits at the start of a run."""

    def events(self, context: SourceContext) -> Iterator[SourceEvent]:
        self.known[:] = context.memory.known()
        for event in self.script:
            if context.stop():
                return
            if isinstance(event, Exception):
                raise event
            yield event
