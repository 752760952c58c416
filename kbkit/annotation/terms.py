"""Decide which words can be names, and how names are written."""

import re
import tomllib
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ahocorasick_rs import AhoCorasick

from kbkit.models import EntityType, Name
from kbkit.text import CONSTANT, SPACELESS, singular, stop_words

_MAX_LENGTH = 100
_MAX_WORDS = 5

WORDS = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))
GENERIC = frozenset(WORDS["generic"].split())
_GENERIC_PHRASES = frozenset({"quick start", "quick tour"})
_VERB_START = re.compile(rf"(?:{WORDS['no_term']})\b", re.IGNORECASE)
_PAREN = re.compile(r"(.{3,80}?)\s+\(([A-Z][A-Za-z0-9/-]{1,9})\)")
_NO_TERM = re.compile(
    r"[:;!?…=<>|{}\[\]\"“”]|\s[-–—]\s|\.\s|\d{4}-\d\d|^\W*$|^[\d\W]+$|^R-\d|n[’']t\b|^--?\w"
)
STOP_WORDS = stop_words("english")
_EVERYWHERE = GENERIC | STOP_WORDS


def is_phrase(text: str) -> bool:
    return 0 < len(text.split()) <= _MAX_WORDS and len(text) <= _MAX_LENGTH


def is_term(text: str) -> bool:
    words = text.split()
    if not is_phrase(text) or _NO_TERM.search(text) or len(text) < 2:
        return False
    low = [word.lower().strip("(),.") for word in words]
    if (_VERB_START.match(text) and not text.isupper()) or low[-1] in STOP_WORDS:
        return False
    if low[0] in STOP_WORDS or " ".join(low) in _GENERIC_PHRASES:
        return False
    return not all(map(is_everywhere, low))


def is_everywhere(word: str) -> bool:
    return word in _EVERYWHERE or singular(word) in _EVERYWHERE


def names_in_term(text: str) -> tuple[str, ...]:
    """Return a term, or both of its names: ``Uniform Resource Identifier (URI)``."""
    match = _PAREN.fullmatch(text)
    return (match[1], match[2]) if match else (text,)


def is_single(text: str) -> bool:
    """Whether a term is an ordinary word: lower case, except for its first letter."""
    return text.isalpha() and text in {text.lower(), text.capitalize()}


_ERROR_NAME = re.compile(
    r"(?:[A-Za-z_]\w*(?:\.|::))*[A-Z]\w*(?:Error|Exception|Warning|Failure|Fault)"
)
_ERROR_CODE = re.compile(
    r"[A-Z]{1,6}-?\d{3,6}|\w+\.[EWCIF]\d{2,4}|(?:[A-Z]+_)?(?:ERR|ERROR|E)_[A-Z0-9_]+"
)
_ERRNO = re.compile(r"E[A-Z0-9]{3,12}")
_NO_ERROR = re.compile(r"(?:RFC|PEP|ISO|UTF|SHA|MD|CVE|IEEE|ANSI|BUG|LATIN|CP)-?\d+")
_FILE = re.compile(
    rf"(?:~|\.{{1,2}})?/?(?:[\w.@+-]+/)*[\w.@+-]*\.(?:{WORDS['suffixes']})"
    rf"|(?:~|/)(?:[\w.@+-]+/)+[\w.@+-]*|\.(?:{WORDS['dot_files']})"
)
_DOTTED_NAME = re.compile(r"[A-Za-z_$@][\w$]*(?:(?:\.|::|->|#)[A-Za-z_~$][\w$!?]*)*(?:\(\))?")
_DOT_WORD = re.compile(r"\.[a-z0-9][a-z0-9_]+")
_HYPHENATED = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)+")
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w+)\}?|%([A-Za-z_]\w+)%")
_ENVIRONMENT = re.compile(r"\benvironment\b|\benv(?:vars?)?\b", re.IGNORECASE)
_SETTINGS = re.compile(
    r"\bsettings?\b|\bconfiguration\b|\bconfig\b|\bdirectives?\b|\boptions\b|\bpragmas?\b",
    re.IGNORECASE,
)
_ERRORS = re.compile(
    r"\berrors?\b|\bexceptions?\b|\bresult codes?\b|\bstatus codes?\b", re.IGNORECASE
)
_CODE = re.compile(r"[a-z0-9][A-Z]|_|::|\w\.\w|\(|^[A-Z]{3,}\w*$|^-")
KIND_WORDS = {EntityType(kind): words for kind, words in WORDS["kinds"].items()}


def type_of(name: str, path: tuple[str, ...] = ()) -> EntityType | None:
    if not name or name.isspace() or len(name) > 100:
        return None
    if FLAG.fullmatch(name):
        return EntityType.FLAG
    if _VARIABLE.fullmatch(name):
        return EntityType.VARIABLE
    if is_error(name) or (_ERRNO.fullmatch(name) and any(map(_ERRORS.search, path))):
        return EntityType.ERROR
    if _FILE.fullmatch(name):
        return EntityType.FILE
    if CONSTANT.fullmatch(name):
        return _constant_type(path)
    symbol = _DOTTED_NAME.fullmatch(name)
    if _HYPHENATED.fullmatch(name) or (symbol and name.isalpha()):
        return EntityType.SETTING if path and _SETTINGS.search(path[-1]) else EntityType.SYMBOL
    return EntityType.SYMBOL if symbol or _DOT_WORD.fullmatch(name) else None


def looks_like_code(word: str) -> bool:
    return _CODE.search(word) is not None


def type_of_word(name: str, path: tuple[str, ...] = ()) -> EntityType | None:
    """Return the type of a word in code style, else ``None``; see `type_of`."""
    return type_of(name, path) if looks_like_code(name) else None


def is_error(name: str) -> bool:
    return bool(
        _ERROR_NAME.fullmatch(name)
        or (_ERROR_CODE.fullmatch(name) and not _NO_ERROR.fullmatch(name))
    )


def _constant_type(path: tuple[str, ...]) -> EntityType:
    for title in reversed(path):
        if _ERRORS.search(title):
            return EntityType.ERROR
        if _ENVIRONMENT.search(title):
            return EntityType.VARIABLE
        if _SETTINGS.search(title):
            return EntityType.SETTING
    return EntityType.SYMBOL


_WORDS_BEFORE = re.compile(rf"(?:(?:{WORDS['declaring']})\s+)+")
_DOTTED = r"[A-Za-z_$][\w$]*(?:(?:\.|::|->|\#)[A-Za-z_~$][\w$!?]*)*"
_SIGNATURE = re.compile(
    rf"(?P<before>(?:[\w:<>,*&\[\]]+[ *&]+){{0,6}}?)(?P<name>{_DOTTED})(?:<[^<>()]{{0,40}}>)?"
    r"(?P<call>\()(?:[^()]|\([^()]*\)){0,400}\)?.{0,60}"
)
IDENTIFIER = re.compile(_DOTTED)
FLAG = re.compile(r"(?<![\w-])(?:--[A-Za-z][\w-]*|-[A-Za-z]\w{0,30})(?![\w-])")
NUMBER = re.compile(
    r"\A(?:(?:Chapter|Section|Appendix|Part|§)\s+[\dA-Z]+[.:]?\s+|(?:\d+|[A-Z](?=\.))(?:\.\d+)*\.?\s+)(?=\S)"
)
SPAN = re.compile(r"(?<![`\\])(`+)(?!`)(.{1,130}?)(?<!`)\1(?!`)")
LINK = re.compile(r"(?<![!\\])\[([^\[\]\n]{2,80})\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)\)")
ADDRESS = re.compile(r"(?:https?|ftp|file|mailto):\S*")
LITERALS = frozenset(WORDS["literals"].split())


class Mark(NamedTuple):
    """A name with its certainty: 0 for definitions, 1 for marks, 2 for candidates."""

    rank: int
    name: Name
    chapter: str = ""


def definition(name: str, kind: EntityType, anchor: str = "", *, confirmed: bool = True) -> Mark:
    return Mark(0 if confirmed else 2, Name(name, kind, True, anchor, confirmed))


def signature(text: str) -> str:
    text = text.strip("` ")
    stripped = _WORDS_BEFORE.sub("", text, count=1) if not IDENTIFIER.fullmatch(text) else text
    if match := IDENTIFIER.fullmatch(
        stripped.partition("(")[0].partition(" = ")[0].partition(": ")[0].strip()
    ):
        is_call = "(" in stripped or " = " in stripped
        if is_call or " " not in stripped:
            return match[0]
    if match := _SIGNATURE.fullmatch(text):
        preceding = match["before"].split()
        prose = [word for word in preceding if word.lower() in STOP_WORDS]
        glued = text[match.start("call") - 1] != " "
        return match["name"] if glued and not prose else ""
    return ""


def anchor_name(signed: str, anchor: str) -> str:
    last_part = re.split(r"\.|::|->|#", signed)[-1]
    ends = tuple(mark + name for mark in (".", "::", "#") for name in (signed, last_part))
    is_same = anchor == signed or anchor.endswith(ends)
    return anchor if is_same and IDENTIFIER.fullmatch(anchor) else ""


def candidate(name: str, kind: EntityType) -> Mark:
    return Mark(2, Name(name, kind, confirmed=False))


MARK = "\x01"
"""Separator before and after each word."""

_WORD = re.compile(rf"([{SPACELESS}]|[^\W{SPACELESS}]+)")
# full-width letters and digits of Chinese and Japanese texts
_WIDE = re.compile("[\uff01-\uff5e\u3000]")


class _Folding(dict[int, str]):
    """Maps characters to lower case and NFKC if the result is one character."""

    def __missing__(self, point: int) -> str:
        low = unicodedata.normalize("NFKC", chr(point)).lower()
        self[point] = low if len(low) == 1 else chr(point)
        return self[point]


_FOLDING = _Folding()


def fold_text(text: str) -> str:
    low = text.lower()
    if len(low) != len(text) or (not low.isascii() and _WIDE.search(low)):
        low = text.translate(_FOLDING)
    # separate calls are fast: each is a search in C
    for space in ("\n", "\t", "\r", "\f", "\v", "\xa0", MARK):
        if space in low:
            low = low.replace(space, " ")
    return low


def mark_words(text: str) -> str:
    """Mark words of a folded text; each character of a script without spaces is a word."""
    return MARK.join(_WORD.split(text))


def fold_and_mark(text: str) -> str:
    return mark_words(fold_text(text))


def matches_in(
    automaton: AhoCorasick, text: str, *, overlap: bool = False
) -> Iterator[tuple[int, int]]:
    """Iterate over the matches in a marked text: number of the pattern, and place without marks.

    With `overlap`, the longest of those at one place is first.
    """
    matches = automaton.find_matches_as_indexes(text, overlapping=overlap)
    if overlap:
        matches.sort(key=lambda match: (match[1], -match[2]))
    at = position = 0
    for number, start, _ in matches:
        position += start - at - text.count(MARK, at, start)
        at = start
        yield number, position


CODE = frozenset(map(EntityType, str.split("symbol flag command variable setting error file")))
