"""The names that are known in a section, found again in its sentences. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache, partial
from urllib.parse import unquote

from kbkit.graph import verbs
from kbkit.graph.links import SPOTS
from kbkit.stores.catalog.subjects import entity_id

_SEPARATOR = re.compile(r"\.|::|->|#|/")
_LITERALS = frozenset({"true", "false", "none", "null", "nil", "self", "this", "undefined"})
_MOST_NAMES = 60


class SectionNames:
    """The names of a chunk, to be found again in its sentences.

    Args:
        entities: Names by the id of their entity.
    """

    def __init__(self, entities: Mapping[str, str]) -> None:
        self._entities = entities
        self._suffixes: dict[str, str | None] = {}
        for known, name in entities.items():
            parts = _SEPARATOR.split(name.partition("(")[0])
            for start in range(1, len(parts)):
                suffix = ".".join(parts[start:])
                self._suffixes[suffix] = None if suffix in self._suffixes else known
        self._plain = sorted(
            (
                (name, known)
                for known, name in entities.items()
                if len(name) > 3 and _stands_alone(name)
            ),
            key=lambda pair: (-len(pair[0]), pair),
        )[:_MOST_NAMES]

    def may(self, source: str, relation: str, target: str) -> bool:
        """Whether a relation between the two tells anything: that it returns None does not."""
        if relation != "returns":
            return True
        of = self._entities.get(source, "")
        return self._entities[target].lower() not in _LITERALS and not of.endswith(
            ("Error", "Exception", "Warning")
        )

    def of(self, written: str) -> str | None:
        """The id of what is written like this in the chunk."""
        known = entity_id(written)
        if known in self._entities:
            return known
        return self._suffixes.get(written.partition("(")[0].strip().lstrip(".~"))

    def of_link(self, text: str, anchor: str) -> str | None:
        """The id of what a link names: by its anchor, which is a qualified name, or its text."""
        if anchor and (known := entity_id(anchor)) in self._entities:
            return known
        return self.of(text.translate(_MARKS_OF_SPANS))

    def marked(self, sentence: str) -> tuple[str, list[str]]:
        """A sentence with marks for names, and the ids of those."""
        found: list[str] = []

        def put(known: str) -> str:
            found.append(known)
            return verbs.mark(len(found) - 1)

        def replaced(known: str, _: re.Match[str]) -> str:
            return put(known)

        def spot(match: re.Match[str]) -> str:
            if match[2] is not None:
                words = match[1].translate(_MARKS_OF_SPANS)
                known = self.of_link(match[1], unquote(match[2].partition("#")[2]))
            else:
                words = match[4]
                known = self.of(words)
            return put(known) if known is not None else words

        text = " ".join(
            SPOTS.sub(spot, sentence.translate(verbs.UNMARKED)).replace("*", "").split()
        )
        low = text.lower()
        for name, known in self._plain:
            if name.lower() in low:
                text = _whole(name).sub(partial(replaced, known), text)
                low = text.lower()
        return text, found


_MARKS_OF_SPANS = str.maketrans("", "", "`*\\")


def _stands_alone(name: str) -> bool:
    """Whether a word in a sentence is surely this name, without any mark."""
    return (
        " " in name
        or "-" in name[1:]
        or not name.islower()
        or any(c in name for c in "._:/0123456789")
    )


@lru_cache(maxsize=20_000)
def _whole(name: str) -> re.Pattern[str]:
    """A name as a whole word; of phrases capitals do not matter, and a plural will do."""
    phrase = " " in name and name.islower()
    return re.compile(
        rf"(?<![\w.\-/]){re.escape(name)}{'s?' if phrase else ''}(?:\(\))?(?![\w\-/]|\.\w)",
        re.IGNORECASE if phrase else 0,
    )
