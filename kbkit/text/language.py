"""Detect English by words and letters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

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
_ELISION = re.compile(r"['’]$")


@cache
def stop_words(language: str) -> frozenset[str]:
    """Return the stop words of a language; none if there is no list."""
    language = _SAME_LANGUAGE.get(language, language)
    if language == "english":
        return frozenset(_ENGLISH.split())
    if code := _ISO_CODES.get(language):
        from stopwordsiso import stopwords

        words = stopwords(code)
    else:
        words = set(_bundled(language))
    # the lists write elided articles with an apostrophe: l', d'
    return frozenset(_ELISION.sub("", word) for word in words)


def _bundled(language: str) -> list[str]:
    spec = find_spec("llama_index")
    for folder in (spec and spec.submodule_search_locations) or ():
        file = Path(folder, "core/_static/nltk_cache/corpora/stopwords", language)
        if file.is_file():
            return file.read_text(encoding="utf-8").split()
    return []


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
_OTHER_SCRIPT = re.compile(r"[^\W\d_\u0000-\u024f\u1e00-\u1eff]")


def is_english(texts: Iterable[str]) -> bool:
    """Whether texts seem to be English.

    They are not if more than 30 % of the letters are of another script, or if another language has
    more stop words in them than English, without shared ones.
    """
    words: Counter[str] = Counter()
    letters, foreign, read = 0, 0, 0
    for text in texts:
        words_of_text = _WORD.findall(text)
        letters += sum(map(len, words_of_text))
        foreign += len(_OTHER_SCRIPT.findall(text))
        words.update(word.lower() for word in words_of_text)
        read += len(text)
        if read >= _MAX_CHARACTERS:
            break
    if foreign > _MAX_FOREIGN_SHARE * letters:
        return False
    english_words, others = _distinct_stop_words()
    english = sum(words[word] for word in english_words)
    return all(
        (count := sum(words[word] for word in common_words)) < _MIN_STOP_WORDS or count <= english
        for common_words in others
    )


@cache
def _distinct_stop_words() -> tuple[frozenset[str], tuple[frozenset[str], ...]]:
    english = stop_words("english")
    others = [stop_words(language) for language in _COMPARED]
    shared = english & frozenset().union(*others)
    return english - shared, tuple(words - english for words in others)
