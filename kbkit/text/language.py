"""Whether texts are English, by how their words and letters are spread."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache

from kbkit.text.stopwords import stop_words

_COMPARED = (
    *("danish", "dutch", "finnish", "french", "german", "hungarian", "italian", "norwegian"),
    *("polish", "portuguese", "romanian", "spanish", "swedish", "turkish"),
)
"""Languages in Latin letters; others are told by their letters."""
_READ = 200_000
"""Characters that are looked at."""
_SHARE = 0.3
"""Share of letters of other scripts above which a text is not English: quotations and names
have less, Japanese manuals with their many Latin names more."""
_FEWEST = 20
"""Stop words of another language that count as evidence."""
_WORD = re.compile(r"[^\W\d_]+")
_OTHER_SCRIPT = re.compile(r"[^\W\d_\u0000-\u024f\u1e00-\u1eff]")


def is_english(texts: Iterable[str]) -> bool:
    """Whether nothing says that texts are in another language than English.

    Another script that has a third of the letters does; so do more stop words of another language
    than of English, shared ones counted for neither.

    Args:
        texts: Some of what a knowledge base holds; the first 200,000 characters are read.
    """
    words: Counter[str] = Counter()
    letters, foreign, read = 0, 0, 0
    for text in texts:
        found = _WORD.findall(text)
        letters += sum(map(len, found))
        foreign += len(_OTHER_SCRIPT.findall(text))
        words.update(word.lower() for word in found)
        read += len(text)
        if read >= _READ:
            break
    if foreign > _SHARE * letters:
        return False
    own, others = _lists()
    english = sum(words[word] for word in own)
    return all(
        (count := sum(words[word] for word in known)) < _FEWEST or count <= english
        for known in others
    )


@cache
def _lists() -> tuple[frozenset[str], tuple[frozenset[str], ...]]:
    english = stop_words("english")
    others = [stop_words(language) for language in _COMPARED]
    shared = english & frozenset().union(*others)
    return english - shared, tuple(words - english for words in others)
