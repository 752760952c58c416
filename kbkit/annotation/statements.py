"""Split a chunk into sentences, and classify its statement."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from math import exp

from ahocorasick_rs import AhoCorasick, MatchKind

from kbkit.annotation.terms import WORDS, fold_text, mark_words, matches_in
from kbkit.models import StatementType
from kbkit.text import OTHER_SCRIPT, stop_words
from kbkit.text.markdown import Block, Kind, blocks


@cache
def _automaton() -> tuple[AhoCorasick, list[tuple[StatementType, float]]]:
    patterns: list[str] = []
    meaning: list[tuple[StatementType, float]] = []
    for type_, weights in WORDS["cues"].items():
        for weight, phrases in weights.items():
            for phrase in phrases.split("|"):
                patterns.append(mark_words(phrase))
                meaning.append((StatementType(type_), float(weight)))
    return AhoCorasick(patterns, matchkind=MatchKind.LeftmostLongest), meaning


BEGINNING = re.compile(
    r"(?:(?:for example|in this case|for instance|however|so|thus|but|note that),? )?"
    r"(?:(?P<then>if\b.{4,}(?:\bthen\b|, ).)"
    r"|(?P<condition>when|whenever|since|while|once)\b.{4,}, "
    r"|to (?!avoid|prevent|be\b)[a-z]+ .{2,100}?, "
    r"(?:(?:you|we) (?:can|must|need to|will|should) |simply |just |first )?"
    rf"(?:{'|'.join(WORDS['imperative'].split())}|follow|attach|do)\b)"
)


_SENTENCE_END = re.compile(r"(?<=[.!?])[\"'”’)*_]*\s+(?=[A-Z\"'“‘(`\[*_])")
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|cf|vs|no|fig|sec|ch|mr|dr|approx)|\b[A-Z])\.$", re.I
)
_ITEM = re.compile(r"[\s>]*(?:[-*+]|(\d{1,9})[.)])\s+")
_OPTION = re.compile(r"(?:`[^`\n]{1,80}`(?:, )?)+(?::| - | – )")
_CODE_LIKE = re.compile(r"[{}()=;<>\"'|\\\[\]+_/]")
_LETTER = re.compile(r"[^\W\d_]")
_LINK_TARGET = re.compile(r"(?<=\])\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*\)")
_RELEASES = re.compile(r"\brelease|\bchange|\bhistory|what[’']s new|\bversion \d|\bnews\b", re.I)
_TITLES = {StatementType(name): titles for name, titles in WORDS["titles"].items()}
"""Headings of sections that often make a type of statement."""
_TELLING_TITLES = {StatementType.CAUSAL, StatementType.PATTERN}
_SIGNATURE = re.compile(r"\s*#{1,6} [^\n]*\w\([^\n]*\)")
# sentences that count for a statement type, each weighted `_FADING` times the one before
_TELLING = 4
_FADING = 0.4
_DILUTION = 0.03  # reduction by each further sentence
_OF_OPTIONS = 0.6  # factor for lists of options, which are descriptions
_OF_CHANGES = 0.4  # factor for lists of changes
_MIN = 1.6  # minimum score of a statement type
_SECOND = 2.0  # minimum weight of a sentence for a separate annotation


@dataclass(slots=True)
class Sentence:
    """A sentence, ``text[start:end]``, with its score of each statement type."""

    start: int
    end: int
    item: int = 0
    weights: defaultdict[StatementType, float] = field(default_factory=partial(defaultdict, float))


@dataclass(slots=True)
class Reading:
    """Sentences and blocks of a chunk."""

    sentences: list[Sentence]
    scores: dict[StatementType, float]
    is_prose: bool

    @property
    def types(self) -> list[StatementType]:
        """Statement types, the most likely first."""
        ranked = sorted(self.scores, key=self.scores.__getitem__, reverse=True)
        ranked = [type_ for type_ in ranked if self.scores[type_] >= _MIN]
        if not ranked:
            return []
        peak = {type_: max(s.weights[type_] for s in self.sentences) for type_ in StatementType}
        strong = [type_ for type_ in StatementType if type_ != ranked[0] and peak[type_] >= _SECOND]
        return [ranked[0], *sorted(strong, key=peak.__getitem__, reverse=True)[:2]]

    @property
    def confidence(self) -> float:
        """Probability that the first statement type, or none, is right."""
        if not self.is_prose:
            return 0.9
        best, second = (*sorted(self.scores.values(), reverse=True), 0.0, 0.0)[:2]
        if best < _MIN:
            return round(0.45 + 0.4 * (_MIN - best) / _MIN, 2)
        return round(0.35 + 0.55 / (1 + exp(-1.2 * (best - second - 0.8))), 2)


def read(text: str, path: Sequence[str] = ()) -> Reading:
    parsed = list(blocks(text))
    prose = [block for block in parsed if block.kind is Kind.TEXT]
    low = _LINK_TARGET.sub(lambda target: " " * len(target[0]), fold_text(text))
    sentences = [sentence for block in prose for sentence in _sentences(text, block)]
    if not sentences or not _is_english(" ".join(low[block.start : block.end] for block in prose)):
        return Reading([], {}, False)
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
    automaton, meaning = _automaton()
    for cue, at in matches_in(automaton, mark_words(low)):
        number = bisect_right(starts, at) - 1
        if number >= 0 and at < sentences[number].end:
            type_, weight = meaning[cue]
            weights = sentences[number].weights
            weights[type_] = max(weights[type_], weight) + 0.3 * (weights[type_] > 0)
    for sentence in sentences:
        begin = BEGINNING.match(low, sentence.start, sentence.end)
        if begin is None:
            continue
        if begin["then"]:
            # an obligation under a condition is a constraint
            is_constraint = sentence.weights[StatementType.CONSTRAINT] >= 1
            sentence.weights[StatementType.CAUSAL] += 0.4 if is_constraint else 1.3
        elif begin["condition"]:
            sentence.weights[StatementType.CAUSAL] += 0.7
        else:
            # "to use it, you must ..." is a constraint rather than a step
            is_constraint = sentence.weights[StatementType.CONSTRAINT] >= 2
            sentence.weights[StatementType.PROCEDURE] += 0.8 if is_constraint else 2.0


def _scores(
    text: str, sentences: list[Sentence], path: Sequence[str]
) -> dict[StatementType, float]:
    scores: dict[StatementType, float] = {}
    length = 1 + _DILUTION * (len(sentences) - 1)
    for type_ in StatementType:
        weights = sorted((s.weights[type_] for s in sentences), reverse=True)[:_TELLING]
        total = sum(weight * _FADING**rank for rank, weight in enumerate(weights))
        scores[type_] = (total + 0.3 * sentences[0].weights[type_]) / length
    leaf = path[-1] if path else ""
    changes = any(_RELEASES.search(title) for title in path)
    steps = sum(sentence.item == 2 for sentence in sentences)
    if steps >= 2 and not changes:
        scores[StatementType.PROCEDURE] += 2.0
    items = [sentence for sentence in sentences if sentence.item]
    options = sum(_OPTION.match(text, sentence.start) is not None for sentence in items)
    if options and 2 * options >= len(items):  # only describes options
        for type_ in StatementType:
            scores[type_] *= _OF_OPTIONS
    if changes:
        scores[StatementType.PROCEDURE] *= 0.3
        if 2 * len(items) >= len(sentences):
            for type_ in StatementType:
                scores[type_] *= _OF_CHANGES
    if _SIGNATURE.match(text):  # describes a function; conditions are details
        scores[StatementType.CAUSAL] *= 0.6
    for type_, pattern in _TITLES.items():
        if not changes and re.search(pattern, leaf, re.IGNORECASE):
            scores[type_] += 1.5 if type_ in _TELLING_TITLES else 1.0
    return scores


def _is_english(low: str) -> bool:
    if not low.isascii():
        letters = len(_LETTER.findall(low))
        if not letters or len(OTHER_SCRIPT.findall(low)) > 0.3 * letters:
            return False
    words = low.split()
    if len(words) < 4:
        return True
    english_words = sum(word in _ENGLISH for word in words)
    foreign_words = sum(word in _FOREIGN and word not in _ENGLISH for word in words)
    if english_words >= 0.15 * len(words):
        return english_words >= foreign_words
    if len(_CODE_LIKE.findall(low)) > 0.12 * len(low):
        return False  # code whose fence is in another chunk
    return english_words > 0.05 * len(words) or english_words >= foreign_words


_ENGLISH = stop_words("english")
_FOREIGN = frozenset[str]().union(
    *map(stop_words, str.split("french german spanish portuguese italian turkish dutch"))
)
