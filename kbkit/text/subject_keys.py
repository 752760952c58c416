"""The normal form of subjects' names."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from kbkit.models import SubjectKind
from kbkit.text.language import stop_words

MAX_KEY_LENGTH = 200

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
    """Return the normal form of a name; equal forms of one kind are one subject.

    All names: NFKC, without invisible characters and surrounding quotes or backticks, with single
    spaces. Then, by kind:

    * Problems, resolutions and contexts: lower case, no punctuation at the end.
    * Domains: as phrases.
    * Entities: without the ``()`` of a call. *Identifiers* keep their case: names with a joint
      (``os.path``), flags with their dashes (``-v``), constants (``SQLITE_BUSY``), names that begin
      with a sign (``__init__``), and capitalized words that have one or two letters or are stop
      words (``Go``, ``C``, ``WHERE``). Other entities are phrases.
    * Phrases: lower case; camelCase, snake_case and kebab-case are split into words; the last of
      several separate words, or a single word, is made singular: ``ConnectionPool``,
      ``connection_pool`` and ``connection pools`` are equal.
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
