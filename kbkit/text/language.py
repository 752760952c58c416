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
    """The stop words of a language, as its lists write them; empty if no list is known."""
    language = _SAME_LANGUAGE.get(language, language)
    if language == "english":
        return frozenset(_ENGLISH.split())
    if code := _ISO_CODES.get(language):
        from stopwordsiso import stopwords

        words = stopwords(code)
    else:
        words = set(_bundled(language))
    # an article that loses its vowel is a word of its own here: l', d'
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
_READ = 200_000
"""Characters read."""
_SHARE = 0.3
"""Share of letters of other scripts above which a text is not English: quotations and names have
less, Japanese manuals with their many Latin names more."""
_MIN = 20
"""Stop words of another language that count as evidence."""
_WORD = re.compile(r"[^\W\d_]+")
_OTHER_SCRIPT = re.compile(r"[^\W\d_\u0000-\u024f\u1e00-\u1eff]")


def is_english(texts: Iterable[str]) -> bool:
    """Whether nothing suggests another language than English.

    A third of letters in another script does, and more stop words of another language than of
    English, without shared ones.
    """
    words: Counter[str] = Counter()
    letters, foreign, read = 0, 0, 0
    for text in texts:
        words_of_text = _WORD.findall(text)
        letters += sum(map(len, words_of_text))
        foreign += len(_OTHER_SCRIPT.findall(text))
        words.update(word.lower() for word in words_of_text)
        read += len(text)
        if read >= _READ:
            break
    if foreign > _SHARE * letters:
        return False
    own, others = _lists()
    english = sum(words[word] for word in own)
    return all(
        (count := sum(words[word] for word in common_words)) < _MIN or count <= english
        for common_words in others
    )


@cache
def _lists() -> tuple[frozenset[str], tuple[frozenset[str], ...]]:
    english = stop_words("english")
    others = [stop_words(language) for language in _COMPARED]
    shared = english & frozenset().union(*others)
    return english - shared, tuple(words - english for words in others)
