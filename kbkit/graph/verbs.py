"""What verbs say of two names in one sentence. Pure functions.

A sentence comes with its names as marks (`mark`), so that patterns need to know no name. The
subject is a name before the verb, or where a sentence has none (``Raises ValueError if ...``), what
the section is about. A sentence that denies says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

OWNER = -1
"""Stands for what the section is about."""

_OPEN, _CLOSE = "\ue000", "\ue001"
_NAME = f"{_OPEN}(\\d+){_CLOSE}"


class Said(NamedTuple):
    """What a sentence says: numbers of two names, and the relation between them."""

    source: int
    relation: str
    target: int


UNMARKED = {ord(_OPEN): None, ord(_CLOSE): None}
"""Takes out of a text, for `str.translate`, what would look like a mark."""


def mark(number: int) -> str:
    """What stands for a name in a sentence."""
    return f"{_OPEN}{number}{_CLOSE}"


_VERBS = {
    "depends_on": (r"depends? (?:up)?on|rel(?:y|ies) on|(?:is|are) built on(?: top of)?", ""),
    "handles": (r"handles?|catch(?:es)?", r"handled|caught"),
    "extends": (
        r"extends?|inherits? from|subclass(?:es)? of|(?:is|are) (?:an? |the )?"
        r"(?:subclass(?:es)?|subtype|extension|derived class) of|derives? from|is derived from",
        r"extended|subclassed",
    ),
    "replaces": (
        r"replaces?|supersedes?|(?:is|are) (?:an? )?(?:drop-in |modern )?replacements? for",
        r"replaced|superseded",
    ),
    "raises": (r"raises?|throws?", r"raised|thrown"),
    "returns": (r"returns?", r"returned"),
    "configures": (r"configures?|controls", r"configured|controlled"),
    "requires": (r"requires?|needs?", r"required|needed"),
    "contains": (r"contains?|consists? of|comprises?|includes", r""),
    "alias_of": (
        r"(?:is|are) (?:now )?(?:just )?(?:an? |another )?(?:alias(?:es)?|synonyms?|name|shorthand|"
        r"abbreviation|shortcut) (?:for|of)|(?:is|are) (?:the same as|short for|equivalent to)|"
        r"stands for",
        "",
    ),
    "deprecated_by": (
        r"(?:is|are|was|were|has been|have been) deprecated (?:in favou?r of|and replaced by|by)",
        "",
    ),
    "implements": (r"implements?", r"implemented"),
    "calls": (r"calls?|invokes?", r"called|invoked"),
}
"""Verbs of each relation, as somebody does it and as it is done; ``""`` where that is not said."""

_KIND = (
    r"(?:\s+(?:functions?|methods?|class(?:es)?|modules?|directives?|objects?|commands?|options?|"
    r"statements?|types?|exceptions?|errors?|decorator|attribute|instances?|interface|API|pragma))?"
)
_HELPERS = r"(?:\s+(?:also|can|will|may|must|should|that|which|now|simply|always|only|then|itself|\
automatically|currently|internally|usually|often|optionally|directly|instead|would|might))*"
_ARTICLE = (
    r"(?:\s+(?:an?|the|any|all|its|new|another|standard|built-in|instance|instances|of|object|"
    r"subclass|following|either|same|corresponding|underlying))*"
)
_LIST = re.compile(rf"\s*(?:,|,?\s+(?:or|and))(?:\s+(?:an?|the))?\s+{_NAME}")
_DENIES = re.compile(r"\b(?:not|never|cannot|without|rather|no|nor|neither|unless)\b|n['’]t\b")
_LISTED = frozenset({"raises", "contains", "requires", "returns", "handles"})

_ACTIVE = [
    (relation, re.compile(
        rf"{_NAME}{_KIND}{_HELPERS}\s+(?:{active}){_ARTICLE}\s+{_NAME}"))
    for relation, (active, _) in _VERBS.items()
]  # fmt: skip
_PASSIVE = [
    (relation, re.compile(
        rf"{_NAME}{_KIND}{_HELPERS}\s+(?:is|are|was|were|be|been|gets?)(?:\s+\w+ly)?\s+"
        rf"(?:{passive})\s+by{_ARTICLE}\s+{_NAME}"))
    for relation, (_, passive) in _VERBS.items() if passive
]  # fmt: skip

_BEGIN = r"^\W*(?:It |This (?:function|method|module|class|directive|command) |(?:May|Can|Will) )?"
_OF_OWNER = [
    ("raises", re.compile(rf"{_BEGIN}(?:also )?(?:raises?|throws?){_ARTICLE}\s+{_NAME}", re.I)),
    ("raises", re.compile(rf"(?:an?\s+|the\s+)?{_NAME}{_KIND}\s+(?:is|are|will be|may be|can be)"
                          r"\s+(?:raised|thrown)(?!\s+by)", re.I)),
    ("raises", re.compile(rf"\b(?:it|this) (?:will |may |can )?(?:raises?|throws?){_ARTICLE}"
                          rf"\s+{_NAME}", re.I)),
    ("returns", re.compile(rf"{_BEGIN}returns?{_ARTICLE}\s+{_NAME}(?=\s+(?:object|instance|if|"
                           r"for|with|containing|representing|that|on|when)|[.,;:]|$)", re.I)),
    ("extends", re.compile(rf"{_BEGIN}(?:inherits? from|(?:is )?(?:an? |the )?subclass of|"
                           rf"extends?){_ARTICLE}\s+{_NAME}", re.I)),
    ("alias_of", re.compile(rf"{_BEGIN}(?:is )?(?:an? )?(?:(?:deprecated|old|convenience) )?"
                            rf"(?:alias|synonym) (?:for|of){_ARTICLE}\s+{_NAME}", re.I)),
    ("calls", re.compile(rf"{_BEGIN}(?:simply )?(?:calls|invokes){_ARTICLE}\s+{_NAME}", re.I)),
    ("requires", re.compile(rf"{_BEGIN}requires{_ARTICLE}\s+{_NAME}", re.I)),
    ("implements", re.compile(rf"{_BEGIN}implements{_ARTICLE}\s+{_NAME}", re.I)),
    ("deprecated_by", re.compile(rf"\bdeprecated\b[^.]{{0,80}}?(?:\buse|in favou?r of|replaced by)"
                                 rf"{_ARTICLE}\s+{_NAME}", re.I)),
    ("inherits", re.compile(rf"^\W*Bases:\s*{_NAME}")),
]  # fmt: skip

CUE = re.compile(
    r"\b(?:depend|rel(?:y|ies) on|built on|handle|catch|extend|inherit|subclass|subtype|deriv|"
    r"replace|supersede|raise|throw|return|configure|control|require|need|contain|consist|compris|"
    r"include|alias|synonym|short|same as|equivalent|stands for|deprecated|implement|call|invoke|"
    r"caught|thrown|Bases:)",
    re.IGNORECASE,
)
"""What a sentence has that may say something; a cheap look before `said`."""


def said(sentence: str) -> Iterator[Said]:
    """What a sentence says of its names.

    Args:
        sentence: Plain text in which names are marks.
    """
    about: set[int] = set()
    for patterns, forward in ((_PASSIVE, False), (_ACTIVE, True)):
        for relation, pattern in patterns:
            for found in pattern.finditer(sentence):
                first, second = int(found[1]), int(found[2])
                if first == second or _denied(sentence, found):
                    continue
                about |= {second} if forward else {first}
                yield Said(first, relation, second) if forward else Said(second, relation, first)
                if forward and relation in _LISTED:
                    for more in _listed(sentence, found.end()):
                        about.add(more)
                        yield Said(first, relation, more)
    for relation, pattern in _OF_OWNER:
        for found in pattern.finditer(sentence):
            if int(found[1]) in about or _denied(sentence, found):
                continue
            about.add(int(found[1]))
            yield Said(OWNER, relation, int(found[1]))
            if relation in _LISTED or relation == "inherits":
                for more in _listed(sentence, found.end()):
                    about.add(more)
                    yield Said(OWNER, relation, more)


def _listed(sentence: str, at: int) -> Iterator[int]:
    """Further names of a list that goes on there."""
    while found := _LIST.match(sentence, at):
        yield int(found[1])
        at = found.end()


def _denied(sentence: str, found: re.Match[str]) -> bool:
    """Whether a statement is denied, in itself or right before."""
    return bool(_DENIES.search(sentence, max(0, found.start() - 12), found.end()))
