"""The rule-based annotator: cues, block types and known names."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kbkit.annotation.base import Gazetteer, Mention, Passage
from kbkit.annotation.problems import contexts_of, domains_of, problems_and_resolutions
from kbkit.annotation.statements import Reading, Sentence, read
from kbkit.markdown.blocks import without_text_anchor
from kbkit.markdown.plain_text import inline_text, plain_text
from kbkit.models import Annotation, Frame

REVISION = 5
"""Version of the rules; raise it to annotate again."""

_MAX_LENGTH = 600
"""Characters of a normalised statement."""
_MAX_SENTENCES = 3
_MAX_ENTITIES = 40
_LAST = re.compile(r"[.#]|::")
_MARKS = re.compile(r"^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])\s+)?", re.MULTILINE)


class RulesAnnotator:
    """Annotates chunks by linguistic cues and block types."""

    fingerprint = f"rules:{REVISION}"

    def annotate(
        self, passages: Sequence[Passage], gazetteer: Gazetteer
    ) -> list[tuple[Annotation, ...]]:
        """Annotate passages.

        The first annotation of a chunk is of all of it: the kind of statement that it mostly makes,
        and all names in it. Others are of single sentences that make a statement of another kind.
        Code, tables and what is not in English have one without frame.
        """
        return [self._annotate(passage, gazetteer) for passage in passages]

    def _annotate(self, passage: Passage, gazetteer: Gazetteer) -> tuple[Annotation, ...]:
        chunk = passage.chunk
        text = chunk.text
        reading = read(text, chunk.heading_path)
        mentions = gazetteer.find(text)
        entities = _distinct(mentions, _anchored(text, mentions))
        problems, resolutions = problems_and_resolutions(
            text, chunk.heading_path, reading, entities
        )
        domains = domains_of(passage)
        contexts = contexts_of(text, chunk.heading_path)
        frames = reading.frames
        made = [
            Annotation(
                text=text,
                normalized_text=_whole(text, reading, frames[0] if frames else None),
                frame=frames[0] if frames else None,
                domains=domains,
                entities=entities,
                problems=problems,
                resolutions=resolutions,
                contexts=contexts,
                confidence=reading.confidence,
                start=0,
                end=len(text),
                annotator=self.fingerprint,
            )
        ]
        for frame in frames[1:]:
            key = max(reading.sentences, key=lambda sentence: sentence.weights[frame])
            inside = [one for one in mentions if key.start <= one.start and one.end <= key.end]
            made.append(
                Annotation(
                    text=text[key.start : key.end],
                    normalized_text=_said(text, [key]),
                    frame=frame,
                    domains=domains,
                    entities=_distinct(inside),
                    contexts=contexts,
                    confidence=round(reading.confidence * 0.7, 2),
                    start=key.start,
                    end=key.end,
                    annotator=self.fingerprint,
                )
            )
        return tuple(made)


def _anchored(text: str, mentions: Sequence[Mention]) -> str:
    return next(
        (
            one.name
            for one in mentions
            if text.endswith("{#", 0, one.start) and text.startswith("}", one.end)
        ),
        "",
    )


def _distinct(mentions: Sequence[Mention], first: str = "") -> tuple[str, ...]:
    """Return the names in a text, each once; an anchor's name stands for its end."""
    names = dict.fromkeys(mention.name for mention in mentions)
    if first:
        last = _LAST.split(first)[-1]
        names = {first: None} | {
            name: None for name in names if name.removesuffix("()") not in {last, first}
        }
    return tuple(names)[:_MAX_ENTITIES]


def _whole(text: str, reading: Reading, frame: Frame | None) -> str:
    if not reading.sentences:
        return _cut(plain_text(text))
    if len(reading.sentences) <= _MAX_SENTENCES:
        return _said(text, reading.sentences)
    if frame is None:
        return _said(text, reading.sentences[:_MAX_SENTENCES])
    ranked = sorted(reading.sentences, key=lambda one: -one.weights[frame])
    chosen = {id(one) for one in (*ranked[: _MAX_SENTENCES - 1], reading.sentences[0])}
    return _said(text, [one for one in reading.sentences if id(one) in chosen])


def _said(text: str, sentences: Sequence[Sentence]) -> str:
    parts = []
    for sentence in sentences:
        bare = without_text_anchor(text[sentence.start : sentence.end])[0]
        parts.append(
            " ".join(inline_text(" ".join(_MARKS.sub("", bare.replace("\0", "")).split())).split())
        )
    return _cut(" ".join(filter(None, parts)))


def _cut(text: str) -> str:
    if len(text) <= _MAX_LENGTH:
        return text
    return text[:_MAX_LENGTH].rpartition(" ")[0].rstrip(" ,;:") + " …"
