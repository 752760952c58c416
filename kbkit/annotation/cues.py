"""Words that tell what kind of statement a sentence makes, found in one pass.

Each cue has a weight, about how much more often it stands in statements of that kind than in
others. They were chosen and weighed by reading manuals.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from ahocorasick_rs import AhoCorasick, MatchKind

from kbkit.annotation.folding import MARK, marked
from kbkit.models import Frame

_CUES: dict[Frame, dict[float, str]] = {
    Frame.CAUSAL: {
        1.5: "because|therefore|as a result|for this reason|the reason|consequently|this is why"
        "|caused by|in consequence|the consequence|for historical reasons|is why|that's why"
        "|the cause"
        "|the effect of|as a consequence",
        1.0: "due to|leads to|lead to|results in|resulting in|causes|cause|this means|which means"
        "|thus|hence|this is because|depends on|depending on|so that|has the effect|thereby"
        "|will result in|triggers|implies|in turn|in case|means that|so if|due to the|since the"
        "|will be thrown|is thrown|is raised|was called",
        0.6: "otherwise|in that case|in this case|affects|if not|raised when|then",
    },
    Frame.CONSTRAINT: {
        2.0: "must not|must never|must be|must have|must|should not be used|may only be"
        "|must already|are required to|should not use|is required to|strictly",
        1.5: "never|mandatory|not allowed|not permitted|forbidden"
        "|prohibited|illegal|it is an error|is required|are required|at most|may not"
        "|is undefined|undefined behavior|shall|shall not|is not supported|are not supported"
        "|not valid|no more than|restricted to|limited to|only be used|is invalid|has no effect"
        "|can only|may only|cannot be|not possible",
        1.3: "should not|subject to change|only available|is only available|not safe"
        "|not permitted to|is limited|are limited|is not safe|may not be|does not work"
        "|no support|cannot be used",
        1.0: "required|requires|require|at least|shouldn't|cannot|can't|has to|have to"
        "|need to|needs to|only if|only when|unless|maximum|minimum|limit|restriction"
        "|not available"
        "|available only|do not|don't|ensure that|be sure|make sure|restrictions"
        "|constraint|constraints|no longer|not be|is ignored|are ignored|only valid|only works"
        "|is disabled|supported only|not supported|does not support|do not support|availability",
        0.3: "can not|only|valid|invalid|exactly|always|guaranteed|ignored|not",
    },
    Frame.PATTERN: {
        2.0: "best practice|best practices|rule of thumb|good practice|good idea|bad idea|idiom"
        "|idiomatic|common pattern|recommended|it is best|is best to|advisable|we recommend"
        "|recommend|discouraged|common practice|common idiom|convention|by convention",
        1.2: "usually|typically|in most cases|commonly|common|generally|normally|prefer|preferred"
        "|preferable|often|most often|it's common|useful|handy|consider|avoid|typical|tip"
        "|in general|most of the time|a good|frequently|traditionally|in practice|should be used",
        0.7: "should|sometimes|want to|for example|instead of|suitable|rather than|easiest",
    },
    Frame.EQUIVALENCE: {
        2.2: "alias for|alias of|an alias|in favour of|in favor of|also known as|synonym"
        "|synonymous"
        "|equivalent to|is equivalent|are equivalent|roughly equivalent|same as|shorthand for"
        "|identical to|another name|superseded by|interchangeable|interchangeably|replaced by"
        "|renamed to|renamed from|is short for|stands for|deprecated alias|synonyms|aliases for"
        "|equivalent of|same meaning|is the same|are the same|functionally identical"
        "|referred to as|equates to|same thing|exactly equivalent|logically equivalent"
        "|alternative spelling|equivalent line"
        "|alternative spellings|is the equivalent",
        1.2: "alias|aliases|equivalent|equivalently|identical|renamed|abbreviation"
        "|also called|known as|analogous|corresponds to|works like|behaves like|same way"
        "|replacement for|deprecated|similar to|just like|acts like|same effect|counterpart",
        0.3: "like|called|instead|same|replaces|compatible",
    },
    Frame.TAXONOMY: {
        1.8: "kinds of|types of|consists of|composed of|comprises|made up of|is a kind of"
        "|is a type of|categories|classified|divided into|falls into|fall into|following types"
        "|subclassed by|two kinds"
        "|two types|one of the following|the following classes|are listed below|following values"
        "|can be one of|subclass of|is a subclass|base class|the following table"
        "|available options|categorized|broken down|following options|grouped into|subclasses",
        1.0: "provides the following|following table|table below|defines the following|subclass"
        "|consist of|listed below|variants|supports the following|possible values|superset of"
        "|is either|composed|foundation for|are described",
        0.5: "types|kinds|both|each of|contains|includes|include|lists the|list of|either"
        "|the following|are available",
    },
    Frame.PROCEDURE: {
        2.0: "follow these steps|following steps|step by step|step process"
        "|perform the following|steps to|first step|next step|the steps|here is how|here's how"
        "|then run",
        0.9: "run the following|following command|use the following|as shown|you can then"
        "|you need to|you will need|you'll need|to install|to create|to enable|to build|to run"
        "|to start|to set|to add|to use|to configure|to get|to make|to change|to do this"
        "|let's|we'll|start by|begin by|once you"
        "|add the following|it can be used to|proceed as follows",
        0.3: "you can|you may|simply|now|after|first|next|finally|by calling",
    },
}  # fmt: skip


class Cue(NamedTuple):
    """A cue that stands in a text."""

    at: int
    frame: Frame
    weight: float


@cache
def _automaton() -> tuple[AhoCorasick, list[tuple[Frame, float]]]:
    patterns: list[str] = []
    meaning: list[tuple[Frame, float]] = []
    for frame, weights in _CUES.items():
        for weight, phrases in weights.items():
            for phrase in phrases.split("|"):
                patterns.append(marked(phrase))
                meaning.append((frame, weight))
    return AhoCorasick(patterns, matchkind=MatchKind.LeftmostLongest), meaning


def cues(text: str) -> list[Cue]:
    """The cues in a folded text, the longest where several begin alike.

    Args:
        text: As `folded` makes it.
    """
    automaton, meaning = _automaton()
    spaced = marked(text)
    found = []
    at = place = 0
    for number, start, _ in automaton.find_matches_as_indexes(spaced):
        place += start - at - spaced.count(MARK, at, start)
        at = start
        found.append(Cue(place, *meaning[number]))
    return found


_IMPERATIVE = (
    r"add|append|apply|build|call|change|check|choose|click|clone|close|compile|configure|connect"
    r"|copy|create|define|delete|disable|download|edit|enable|ensure|enter|execute|export|extract"
    r"|find|generate|get|go|import|include|insert|install|invoke|launch|load|log|make|move|navigate"
    r"|open|paste|place|press|put|read|register|remove|rename|repeat|replace|restart|run|save|select"
    r"|send|set|specify|start|stop|switch|test|try|type|unpack|update|upgrade|upload|use|verify"
    r"|visit|wait|write"
)
BEGINNING = re.compile(
    r"(?:(?:for example|in this case|for instance|however|so|thus|but|note that),? )?"
    r"(?:(?P<then>if\b.{4,}(?:\bthen\b|, ).)"
    r"|(?P<condition>when|whenever|since|while|once)\b.{4,}, "
    rf"|(?P<step>(?:first|next|then|now|finally|second|third|lastly)?,?\s*(?:{_IMPERATIVE}))\b"
    rf"|(?P<directions>to (?!avoid|prevent|be\b)[a-z]+ .{{3,100}}?, "
    r"(?:(?:you|we) (?:can|must|need to|will|should) |simply |just |first )?"
    rf"(?:{_IMPERATIVE}|follow|attach|do)\b)"
    r"|(?P<purpose>to (?!avoid|prevent|be|allow|minimi|reduce)[a-z]+ .{3,80}?"
    r"(?:, |\b(?:use|run|call|set|add|type)\b))"
    r"|(?P<existence>there (?:is|are) [^.]*"
    r"\b(?:two|three|four|five|six|types|kinds|categories)\b))",
)
"""What a sentence, in lower case, may begin with: a condition, a step, a purpose."""
