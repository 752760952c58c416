"""A chunk's sentences, and what kind of statement they make."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import exp

from kbkit.annotation.cues import BEGINNING, cues
from kbkit.annotation.folding import folded
from kbkit.markdown.blocks import Block, Kind, blocks
from kbkit.models import Frame
from kbkit.text.stopwords import stop_words

_SENTENCE_END = re.compile(r"(?<=[.!?])[\"'”’)*_]*\s+(?=[A-Z\"'“‘(`\[*_])")
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|cf|vs|no|fig|sec|ch|mr|dr|approx)|\b[A-Z])\.$", re.I
)
_ITEM = re.compile(r"[\s>]*(?:[-*+]|(\d{1,9})[.)])\s+")
_TERM = re.compile(r"\*\*[^*\n]{1,80}\*\*(?::| - | – )")
_OPTION = re.compile(r"(?:`[^`\n]{1,80}`(?:, )?)+(?::| - | – )")
_CODE_LIKE = re.compile(r"[{}()=;<>\"'|\\\[\]+_/]")
_LETTER = re.compile(r"[^\W\d_]")
_OTHER_SCRIPT = re.compile(r"[^\W\d_\u0000-\u024f\u1e00-\u1eff]")
_LINK_TARGET = re.compile(r"(?<=\])\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*\)")
_RELEASES = re.compile(r"\brelease|\bchange|\bhistory|what[’']s new|\bversion \d|\bnews\b", re.I)
_HOW = re.compile(
    r"\bhow (?:to|do|can)\b|\bstep \d|\binstall|\bgetting started\b|\bquick ?start\b"
    r"|\bsetting up\b",
    re.I,
)
_WHY = re.compile(r"\bwhy\b|\breason|\brationale\b", re.I)
_KINDS = re.compile(r"\btypes\b|\bkinds\b|\bcategories\b|\boverview of\b|\bhierarchy\b", re.I)
_LIMITS = re.compile(
    r"\blimit|\brestriction|\brequirement|\bconstraint|\bcaveat|\bcompatibilit", re.I
)
_PRACTICE = re.compile(
    r"\bbest practice|\btips?\b|\bguideline|\bconvention|\brecommend|\bidiom|\bpatterns?\b", re.I
)
_SAME = re.compile(r"\balias|\bdeprecat|\bequivalen|\bsynonym|\brenam", re.I)
_SIGNATURE = re.compile(r"\s*#{1,6} [^\n]*\w\([^\n]*\)")
_TITLES = (
    (_HOW, Frame.PROCEDURE, 1.0), (_WHY, Frame.CAUSAL, 1.5), (_KINDS, Frame.TAXONOMY, 1.0),
    (_LIMITS, Frame.CONSTRAINT, 1.0), (_PRACTICE, Frame.PATTERN, 1.5),
    (_SAME, Frame.EQUIVALENCE, 1.0),
)  # fmt: skip

_TELLING = 4
"""Sentences that count for a frame, each `_FADING` times as much as the one that says more."""
_FADING = 0.4
_DILUTION = 0.03
"""How much each further sentence takes from what single ones say."""
_OF_OPTIONS = 0.6
"""What is left of each score in a list of options: they are described."""
_OF_CHANGES = 0.4
"""Likewise in a list of changes."""
_LEAST = 1.6
"""Score below which a chunk makes no statement of a kind that can be told."""
_SECOND = 2.0
"""Weight of a sentence from which its kind of statement has an annotation of its own."""


def _no_weights() -> dict[Frame, float]:
    return dict.fromkeys(Frame, 0.0)


@dataclass(slots=True)
class Sentence:
    """A sentence: ``text[start:end]``, with how much it says of each frame."""

    start: int
    end: int
    item: int = 0
    weights: dict[Frame, float] = field(default_factory=_no_weights)


@dataclass(slots=True)
class Reading:
    """What a chunk consists of.

    Attributes:
        sentences: Those of its prose, in order.
        scores: How much speaks for each frame.
        is_prose: There is prose, and it is English.
    """

    sentences: list[Sentence]
    scores: dict[Frame, float]
    is_prose: bool

    @property
    def frames(self) -> list[Frame]:
        """The kinds of statement that it makes, the likeliest first."""
        ranked = sorted(self.scores, key=self.scores.__getitem__, reverse=True)
        ranked = [frame for frame in ranked if self.scores[frame] >= _LEAST]
        if not ranked:
            return []
        most = {frame: max(one.weights[frame] for one in self.sentences) for frame in Frame}
        strong = [frame for frame in Frame if frame != ranked[0] and most[frame] >= _SECOND]
        return [ranked[0], *sorted(strong, key=most.__getitem__, reverse=True)[:2]]

    @property
    def confidence(self) -> float:
        """How likely the first frame, or that there is none, is right."""
        if not self.is_prose:
            return 0.9
        best, second = (*sorted(self.scores.values(), reverse=True), 0.0, 0.0)[:2]
        if best < _LEAST:
            return round(0.45 + 0.4 * (_LEAST - best) / _LEAST, 2)
        return round(0.35 + 0.55 / (1 + exp(-1.2 * (best - second - 0.8))), 2)


def read(text: str, path: Sequence[str] = ()) -> Reading:
    """Read a chunk.

    Args:
        text: Its Markdown.
        path: The headings above it.
    """
    found = list(blocks(text))
    prose = [block for block in found if block.kind is Kind.TEXT]
    low = folded(text)
    if "](" in low:
        low = _LINK_TARGET.sub(lambda target: " " * len(target[0]), low)
    if not prose or not _is_english(" ".join(low[block.start : block.end] for block in prose)):
        return Reading([], _no_weights(), False)
    sentences = [sentence for block in prose for sentence in _sentences(text, block)]
    _weigh(low, sentences)
    return Reading(sentences, _scores(text, sentences, path), True)


def _sentences(text: str, block: Block) -> Iterator[Sentence]:
    start, item = block.start, 0
    if block.item and (mark := _ITEM.match(text, start, block.end)):
        start = mark.end()
        item = 2 if mark[1] else 1
    at = start
    for end in _SENTENCE_END.finditer(text, start, block.end):
        if not _ABBREVIATION.search(text, max(at, end.start() - 8), end.start()):
            yield Sentence(at, end.start(), item)
            at, item = end.end(), 0
    if at < block.end:
        yield Sentence(at, block.end, item)


def _weigh(low: str, sentences: list[Sentence]) -> None:
    starts = [sentence.start for sentence in sentences]
    for cue in cues(low):
        number = bisect_right(starts, cue.at) - 1
        if number >= 0 and cue.at < sentences[number].end:
            weights = sentences[number].weights
            weights[cue.frame] = max(weights[cue.frame], cue.weight) + 0.3 * (
                weights[cue.frame] > 0
            )
    for sentence in sentences:
        begin = BEGINNING.match(low, sentence.start, sentence.end)
        if begin is None:
            continue
        if begin["then"]:
            # what has to be under a condition is a constraint
            bound = sentence.weights[Frame.CONSTRAINT] >= 1
            sentence.weights[Frame.CAUSAL] += 0.4 if bound else 1.3
        elif begin["condition"]:
            sentence.weights[Frame.CAUSAL] += 0.7
        elif begin["directions"]:
            # to use it, you must ...: that is what has to be, rather than a step
            bound = sentence.weights[Frame.CONSTRAINT] >= 2
            sentence.weights[Frame.PROCEDURE] += 0.8 if bound else 2.0
        elif begin["step"]:
            sentence.weights[Frame.PROCEDURE] += 1.8 if sentence.item == 2 else 0.6
        elif begin["purpose"]:
            sentence.weights[Frame.PROCEDURE] += 1.2
        else:
            sentence.weights[Frame.TAXONOMY] += 1.6


def _scores(text: str, sentences: list[Sentence], path: Sequence[str]) -> dict[Frame, float]:
    scores = _no_weights()
    length = 1 + _DILUTION * (len(sentences) - 1)
    for frame in Frame:
        weights = sorted((one.weights[frame] for one in sentences), reverse=True)[:_TELLING]
        said = sum(weight * _FADING**rank for rank, weight in enumerate(weights))
        scores[frame] = (said + 0.3 * sentences[0].weights[frame]) / length
    leaf = path[-1] if path else ""
    changes = any(_RELEASES.search(title) for title in path)
    steps = sum(sentence.item == 2 for sentence in sentences)
    if steps >= 2 and not changes:
        scores[Frame.PROCEDURE] += 2.0
    items = [sentence for sentence in sentences if sentence.item]
    options = sum(_OPTION.match(text, sentence.start) is not None for sentence in items)
    if sum(_TERM.match(text, sentence.start) is not None for sentence in items) >= 3:
        scores[Frame.TAXONOMY] += 1.5
    if options and 2 * options >= len(items):  # what each of them does is said, and no more
        for frame in Frame:
            scores[frame] *= _OF_OPTIONS
    if changes:
        scores[Frame.PROCEDURE] *= 0.3
        if 2 * len(items) >= len(sentences):
            for frame in Frame:
                scores[frame] *= _OF_CHANGES
    if _SIGNATURE.match(text):  # says what something does; conditions are details of that
        scores[Frame.CAUSAL] *= 0.6
    for pattern, frame, weight in _TITLES:
        if pattern.search(leaf) and not changes:
            scores[frame] += weight
    return scores


def _is_english(low: str) -> bool:
    """Whether what seems to be prose is some, and in English."""
    if not low.isascii():
        letters = len(_LETTER.findall(low))
        if not letters or len(_OTHER_SCRIPT.findall(low)) > 0.3 * letters:
            return False
    words = low.split()
    if len(words) < 4:
        return True
    own = sum(word in _ENGLISH for word in words)
    if own >= 0.15 * len(words):
        return own >= sum(word in _FOREIGN for word in words)
    if len(_CODE_LIKE.findall(low)) > 0.12 * len(low):
        return False  # code whose fence stands in another chunk
    return own > 0.05 * len(words) or own >= sum(word in _FOREIGN for word in words)


_ENGLISH = stop_words("english")
_FOREIGN = frozenset().union(
    *map(stop_words, ("french", "german", "spanish", "portuguese", "italian", "turkish", "dutch"))
) - _ENGLISH  # fmt: skip
