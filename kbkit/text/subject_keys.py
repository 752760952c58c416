"""The normal form of subjects' names."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from kbkit.models import SubjectKind
from kbkit.text.language import stop_words

MAX_KEY_LENGTH = 200
"""Maximum characters of a normal form."""

_UNSEEN = re.compile("[\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_CALL = re.compile(r"\(\s*(?:\.\.\.|…)?\s*\)$")
_FLAG = re.compile(r"--?(?=\w)")
_QUOTES = "`*\"'“”‘’«»"
_ENDING = " \t.,:;!?"
_JOINT = re.compile(r"(?<=\S)(?:::|->|[./\\:@=#$%&?*\[\]<>|])(?=\S)")
_SIGN = re.compile(r"[$@%/~#_.]\S")
_CONSTANT = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z](?:[a-rt-z]|s[a-z]))")
_SHORT_WORD = 2
_STOP_WORDS = stop_words("english")


@lru_cache(maxsize=100_000)
def subject_key(kind: SubjectKind, name: str) -> str:
    """The normal form of a name: names of one kind and one normal form are one subject.

    All names: NFKC, no characters that are not seen, one space between words, no quotes or
    backticks around them. Then, by kind:

    * Problems and resolutions, which are sentences, and contexts: lower case, no mark at the end.
    * Domains: as phrases.
    * Entities: without the ``()`` of a call. *Identifiers* keep their case: those with a joint
      (``os.path`` is not ``os.Path``), flags with their dashes (``-v`` is not ``-V``), constants
      (``SQLITE_BUSY``) and what begins with a sign (``__init__``). So do words of one or two
      letters and stop words written with a capital: ``Go``, ``C``, ``R``, ``WHERE``. All else is a
      phrase.
    * Phrases: lower case; camelCase, snake_case and kebab-case are their words; the last word of
      several that stand apart, and a word that stands alone, is a singular: ``ConnectionPool``,
      ``connection_pool`` and ``connection pools`` are one.
    """
    text = unicodedata.normalize("NFKC", _UNSEEN.sub("", name))
    text = " ".join(text.split()).strip(_QUOTES + " ")[:MAX_KEY_LENGTH]
    if kind is SubjectKind.ENTITY:
        return _entity(text)
    text = text.rstrip(_ENDING)
    return _phrase(text) if kind is SubjectKind.DOMAIN else text.lower()


def _entity(text: str) -> str:
    while (bare := _CALL.sub("", text).rstrip()) != text:
        text = bare
    text = text.rstrip(" ,;!?") or text
    if len(text) > 1 and text[-1] in ".:" and not text.endswith(".."):
        text = text.rstrip(".:") or text
    if " " not in text and is_identifier(text):
        return text
    return _phrase(text)


def is_identifier(text: str) -> bool:
    return bool(
        _FLAG.match(text)
        or _SIGN.match(text)
        or _JOINT.search(text)
        or _CONSTANT.fullmatch(text)
        or (text[:1].isupper() and _is_common(text))
    )


def _is_common(word: str) -> bool:
    return len(word) <= _SHORT_WORD or word.lower() in _STOP_WORDS


def _phrase(text: str) -> str:
    apart = " " in text or "-" in text
    words = text.replace("_", " ").replace("-", " ").split()
    if not apart and len(words) == 1:
        words = _HUMPS.sub(" ", text).split() if text.isidentifier() else words
        if len(words) == 1:
            return singular(words[0])
    elif not apart:
        words = [part for word in words for part in _HUMPS.sub(" ", word).split()]
    if apart and words:
        words[-1] = singular(words[-1])
    return " ".join(words).lower() or text.lower()


def singular(word: str) -> str:
    low = word.lower()
    if len(word) > _SHORT_WORD and word[-1] == "s" and word[:-1].isupper():
        return low[:-1]  # URLs, IDs
    if len(low) <= 3 or word.isupper() or not low.isascii() or not low.endswith("s"):
        return low
    if low.endswith("ies") and len(low) > 4:
        return low[:-3] + "y"
    if low.endswith(("sses", "xes", "zzes", "ches", "shes")):
        return low[:-2]
    if low.endswith(("ss", "us", "is")):
        return low
    return low[:-1]
