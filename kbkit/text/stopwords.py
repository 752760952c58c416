"""Stop words: the words of a language that say how others belong together.

English has a list of its own, made for questions about documentation: it holds ``get``, ``use``
and the remains of ``can't`` and ``won't``. Other languages have the lists of PostgreSQL and NLTK,
which llama-index carries for its own use; they hold little but pronouns, articles, prepositions
and auxiliary verbs. Those that are not among them have the lists of stopwords-iso, which are
larger. No list is known here for Serbian and Yiddish, where rarity alone weighs the words.
"""

from __future__ import annotations

import re
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
    "armenian": "hy", "czech": "cs", "esperanto": "eo", "estonian": "et", "hindi": "hi",
    "irish": "ga", "lithuanian": "lt", "persian": "fa", "polish": "pl", "sesotho": "st",
}  # fmt: skip
_SAME_LANGUAGE = {"porter": "english", "dutch_porter": "dutch"}
_ELISION = re.compile(r"['’]$")


@cache
def stop_words(language: str) -> frozenset[str]:
    """The stop words of a language, as its lists write them; empty if no list is known.

    Args:
        language: A Snowball language name.
    """
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
    """The list that llama-index carries, found without importing it, which takes a second."""
    spec = find_spec("llama_index")
    for folder in (spec and spec.submodule_search_locations) or ():
        file = Path(folder, "core/_static/nltk_cache/corpora/stopwords", language)
        if file.is_file():
            return file.read_text(encoding="utf-8").split()
    return []
