"""Which words can be the name of something, and which stand on every page."""

from __future__ import annotations

import re

from kbkit.text.stopwords import stop_words
from kbkit.text.subject_keys import singular

_LONGEST = 100
_MOST_WORDS = 5

GENERIC = frozenset(
    str.split("""
        introduction overview summary example examples usage notes note description
        parameters returns return value values arguments options see also background
        abstract contents index changelog changes history references reference links details
        general miscellaneous misc other others features syntax synopsis requirements
        installation install license authors author copyright bugs bugfixes faq questions
        answers tips warnings warning caveats limitations limitation directives topics
        default defaults status module conclusion appendix preface about home download
        support resources help attributes methods functions classes exceptions constants
        fields properties events types errors variables tutorial guide manual documentation
        deprecated new improved modules optimizations removed porting the a an advanced
        basics basic what how why when where more motivation rationale purpose goals scope
        terms conventions availability compatibility security performance testing
        configuration setup context override yes class method function argument statement
        object attribute package file interpreter variable parameter option directive data
        code user process column row page directory path request server client program
        command interface operation expression string number integer list dictionary
        sequence format formatting extension database query table text field record standard
        test tests project project's production handler callback stream item entry element
        key keys word words line lines way thing case version versions section sections part
        parts step steps pages users simple main module's base core common top body content
        block source target input output literal literals keyword keywords operator
        operators procedure routine routines feature behavior behaviour mode modes set sets
        group groups action actions state states no name type required result results todo
        next previous up english french german definition definitions terminology glossary
        """)
)
"""Words that no page is told by."""
_VERB_START = re.compile(
    r"(?:how|why|what|when|where|which|who|using|use|writing|creating|create|adding|add|getting"
    r"|get|setting up|set|making|make|building|build|running|run|installing|install|working"
    r"|handling|changes?|changed|new|the following|more|other|about|see|is|are|can|do|does|don't"
    r"|if|to|for|from|with|in|on|at|by|of|and|or|this|that|these|it|you|we|my|your|our|there|let"
    r"|avoid|understanding|introducing|defining|specifying|configuring|customizing|implementing"
    r"|managing|removing|example|deprecated|added|removed|fixed|improved|minor|major|version"
    r"|release|step|part|section|chapter|table|figure|note|warning|tip|important|caution|bug"
    r"|available|click|choose|select)\b",
    re.IGNORECASE,
)
_PAREN = re.compile(r"(.{3,80}?)\s+\(([A-Z][A-Za-z0-9/-]{1,9})\)")
_NO_TERM = re.compile(
    r"[:;!?…=<>|{}\[\]\"“”]|\s[-–—]\s|\.\s|\d{4}-\d\d|^\W*$|^[\d\W]+$|^R-\d|n[’']t\b|^--?\w"
)
_STOP_WORDS = stop_words("english")
_EVERYWHERE = GENERIC | _STOP_WORDS


def is_phrase(text: str) -> bool:
    """Whether a text is a few words."""
    return 0 < len(text.split()) <= _MOST_WORDS and len(text) <= _LONGEST


def is_term(text: str) -> bool:
    """Whether words can be the name of something: no sentence, nothing that all pages have."""
    words = text.split()
    if not is_phrase(text) or _NO_TERM.search(text) or len(text) < 2:
        return False
    low = [word.lower().strip("(),.") for word in words]
    if (_VERB_START.match(text) and not text.isupper()) or low[-1] in _STOP_WORDS:
        return False
    if low[0] in _STOP_WORDS:
        return False
    return not all(map(is_everywhere, low))


def is_everywhere(word: str) -> bool:
    """Whether a word in lower case stands on pages of every manual."""
    return word in _EVERYWHERE or singular(word) in _EVERYWHERE


def names_in_term(text: str) -> tuple[str, ...]:
    """A term, or both of its names: ``Uniform Resource Identifier (URI)``."""
    found = _PAREN.fullmatch(text)
    return (found[1], found[2]) if found else (text,)


def is_single(text: str) -> bool:
    """Whether a term is one word as any other: in lower case but for its first letter."""
    return text.isalpha() and text in {text.lower(), text.capitalize()}
