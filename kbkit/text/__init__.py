"""Analysis of text and Markdown; here stop words, English, and keys of subjects' names."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

from kbkit.models import SubjectKind

SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0002fa1f\U00030000-\U000323af"
)
"""Letters of scripts without spaces between words, and Hangul, for a character class."""

_ENGLISH = """
a about above after again against all am an and any are as at be because been before being below
between both but by ca can cannot could did do does doing down during each few for from further
get gets had has have having he her here hers him his how i if in into is it its itself just me
more most my no nor not of off on once only or other our out over own same she should so some
such than that the their them then there these they this those through to too under until up use
used using very was we were what when where which while who whom why will with wo would you your
"""

_ISO_CODES = {
    "armenian": "hy",
    "czech": "cs",
    "esperanto": "eo",
    "estonian": "et",
    "hindi": "hi",
    "irish": "ga",
    "lithuanian": "lt",
    "persian": "fa",
    "polish": "pl",
    "sesotho": "st",
}
_SAME_LANGUAGE = {"porter": "english", "dutch_porter": "dutch"}


@cache
def stop_words(language: str) -> frozenset[str]:
    """Return the stop words of a language; none if there is no list."""
    language = _SAME_LANGUAGE.get(language, language)
    if language == "english":
        return frozenset(_ENGLISH.split())
    words: Iterable[str] = ()
    if code := _ISO_CODES.get(language):
        from stopwordsiso import stopwords

        words = stopwords(code)
    elif spec := find_spec("llama_index"):
        for folder in spec.submodule_search_locations or ():
            file = Path(folder, "core/_static/nltk_cache/corpora/stopwords", language)
            words = file.read_text(encoding="utf-8").split() if file.is_file() else words
    # the lists write elided articles with an apostrophe: l', d'
    return frozenset(re.sub(r"['’]$", "", word) for word in words)


_COMPARED = (
    *("danish", "dutch", "finnish", "french", "german", "hungarian", "italian", "norwegian"),
    *("polish", "portuguese", "romanian", "spanish", "swedish", "turkish"),
)
"""Languages with Latin letters; others are recognized by script."""
_MAX_CHARACTERS = 200_000
# of letters in other scripts: quotations and names have less, Japanese manuals more
_MAX_FOREIGN_SHARE = 0.3
_MIN_STOP_WORDS = 20  # of another language, to count as evidence
_WORD = re.compile(r"[^\W\d_]+")
OTHER_SCRIPT = re.compile(r"[^\W\d_\u0000-\u024f\u1e00-\u1eff]")


def is_english(texts: Iterable[str]) -> bool:
    """Whether texts seem to be English.

    They are not if more than 30 % of the letters are of another script, or if another language has
    more stop words in them than English, without shared ones.
    """
    words: Counter[str] = Counter()
    letters, foreign, length = 0, 0, 0
    for text in texts:
        words_of_text = _WORD.findall(text)
        letters += sum(map(len, words_of_text))
        foreign += len(OTHER_SCRIPT.findall(text))
        words.update(word.lower() for word in words_of_text)
        length += len(text)
        if length >= _MAX_CHARACTERS:
            break
    if foreign > _MAX_FOREIGN_SHARE * letters:
        return False
    english_words, other_words = _distinct_stop_words()
    english = sum(words[word] for word in english_words)
    return all(
        (count := sum(words[word] for word in common_words)) < _MIN_STOP_WORDS or count <= english
        for common_words in other_words
    )


@cache
def _distinct_stop_words() -> tuple[frozenset[str], tuple[frozenset[str], ...]]:
    english = stop_words("english")
    foreign_words = [stop_words(language) for language in _COMPARED]
    shared = english & frozenset().union(*foreign_words)
    return english - shared, tuple(words - english for words in foreign_words)


MAX_KEY_LENGTH = 200

_UNSEEN = re.compile("[\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_CALL = re.compile(r"\(\s*(?:\.\.\.|…)?\s*\)$")
_FLAG = re.compile(r"--?(?=\w)")
_QUOTES = "`*\"'“”‘’«»"
_ENDING = " \t.,:;!?"
_JOINT = re.compile(r"(?<=\S)(?:::|->|[./\\:@=#$%&?*\[\]<>|])(?=\S)")
_SIGN = re.compile(r"[$@%/~#_.]\S")
CONSTANT = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
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
    while (without_call := _CALL.sub("", text).rstrip()) != text:
        text = without_call
    text = text.rstrip(" ,;!?") or text
    if len(text) > 1 and text[-1] in ".:" and not text.endswith(".."):
        text = text.rstrip(".:") or text
    return text if " " not in text and is_identifier(text) else _phrase(text)


def is_identifier(text: str) -> bool:
    return bool(
        _FLAG.match(text)
        or _SIGN.match(text)
        or _JOINT.search(text)
        or CONSTANT.fullmatch(text)
        or (text[:1].isupper() and (len(text) <= _SHORT_WORD or text.lower() in _STOP_WORDS))
    )


def _phrase(text: str) -> str:
    is_spaced = " " in text or "-" in text
    words = text.replace("_", " ").replace("-", " ").split()
    if not is_spaced and len(words) == 1:
        words = _HUMPS.sub(" ", text).split() if text.isidentifier() else words
        if len(words) == 1:
            return singular(words[0])
    elif not is_spaced:
        words = [part for word in words for part in _HUMPS.sub(" ", word).split()]
    if is_spaced and words:
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
    return low if low.endswith(("ss", "us", "is")) else low[:-1]
