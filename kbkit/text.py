"""The analyzer: the one function that turns text into index terms.

Documents, queries and reranking all go through `Analyzer.terms`. Code-like tokens
(``append_event``, ``appendEvent``, ``os.path.join``, ``--dry-run``, ``C++``, ``v1.2.3``) give a
term for the whole and one for each part, so that both find them. Scripts written without spaces
give overlapping pairs of characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache
from itertools import chain

from kbkit.errors import ConfigError

# A token: word characters, joined by single marks that occur inside identifiers, versions,
# options and qualified names; also the names that end in marks (C++, C#).
_TOKEN = re.compile(
    r"[^\W\d_](?:\+\+|#)(?!\w)"  # C++, C#
    r"|\w+(?:(?:[.\-'’]|::)\w+)*"
    r"|(?<![\w-])--?[A-Za-z][\w-]*"  # --dry-run, -v
)
_PART = re.compile(r"[^\W_]+")
_CAMEL = re.compile(
    r"(?<=[a-z])(?=[A-Z])"  # appendEvent
    r"|(?<=[A-Z\d])(?=[A-Z][a-z])"  # HTTPServer, utf8Decode
)
_SPACELESS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0002fa1f]+"
)
_CONTRACTION = re.compile(r"([^\W\d_]+?)(?:n't|'(?:s|t|re|ve|ll|d|m))")
_LONGEST_TERM = 64
_MOST_REMEMBERED = 300_000

_ENGLISH_STOP_WORDS = frozenset(
    [
        "a",
        "about",
        "above",
        "after",
        "again",
        "against",
        "all",
        "am",
        "an",
        "and",
        "any",
        "are",
        "as",
        "at",
        "be",
        "because",
        "been",
        "before",
        "being",
        "below",
        "between",
        "both",
        "but",
        "by",
        "ca",
        "can",
        "cannot",
        "could",
        "did",
        "do",
        "does",
        "doing",
        "down",
        "during",
        "each",
        "few",
        "for",
        "from",
        "further",
        "get",
        "gets",
        "had",
        "has",
        "have",
        "having",
        "he",
        "her",
        "here",
        "hers",
        "him",
        "his",
        "how",
        "i",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "itself",
        "just",
        "me",
        "more",
        "most",
        "my",
        "no",
        "nor",
        "not",
        "of",
        "off",
        "on",
        "once",
        "only",
        "or",
        "other",
        "our",
        "out",
        "over",
        "own",
        "same",
        "she",
        "should",
        "so",
        "some",
        "such",
        "than",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "through",
        "to",
        "too",
        "under",
        "until",
        "up",
        "use",
        "used",
        "using",
        "very",
        "was",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "while",
        "who",
        "whom",
        "why",
        "will",
        "with",
        "wo",
        "would",
        "you",
        "your",
    ]
)


_LINK = re.compile(
    r"!?\[((?:[^\[\]\n]|\[[^\[\]\n]{0,400}\]){0,400})\]"  # text, with one level of brackets in it
    r"\((?:<[^<>\n]*>|[^\s()<>]*(?:\([^\s()]*\)[^\s()<>]*)*)(?:\s+(?:\"[^\"\n]*\"|'[^'\n]*'))?\s*\)"
)


def without_link_targets(markdown: str) -> str:
    """Markdown whose links and images are only their text, unless that is beyond 400 characters.

    The bound keeps text that is made of brackets from taking long.
    """
    return _LINK.sub(r"\1", markdown) if "](" in markdown else markdown


class _Memory(dict[str, tuple[str, ...]]):
    """Remembers the terms of tokens, as many as a large site has different ones."""

    def __init__(self, terms_of: Callable[[str], tuple[str, ...]]) -> None:
        super().__init__()
        self._terms_of = terms_of

    def __missing__(self, token: str) -> tuple[str, ...]:
        terms = self._terms_of(token)
        if len(self) < _MOST_REMEMBERED:
            self[token] = terms
        return terms


class Analyzer:
    """Turns text into terms for one language."""

    def __init__(self, language: str = "english") -> None:
        """Make an analyzer.

        Args:
            language: A Snowball language name, such as ``english`` or ``german``.

        Raises:
            ConfigError: Snowball has no such language.
        """
        import Stemmer

        if language not in Stemmer.algorithms():
            known = ", ".join(sorted(Stemmer.algorithms()))
            raise ConfigError(f"language {language!r} is not known; choose one of {known}")
        self.language = language
        self._stop_words = _ENGLISH_STOP_WORDS if language == "english" else frozenset[str]()
        stem = Stemmer.Stemmer(language, 0).stemWord
        self._stem = stem
        self._token_terms = _Memory(self._terms_of_token)

    def terms(self, text: str) -> list[str]:
        """The terms of a text, in order, with repetitions; stop words are left out."""
        tokens = _TOKEN.findall(unicodedata.normalize("NFKC", text))
        return list(chain.from_iterable(map(self._token_terms.__getitem__, tokens)))

    def _terms_of_token(self, token: str) -> tuple[str, ...]:
        folded = token.casefold().replace("’", "'")
        if folded.isalpha() and folded.isascii() and token[1:] == folded[1:]:
            return self._word(folded)  # a plain word, by far the commonest case
        if _SPACELESS.search(token):
            return _pairs(folded)
        if contraction := _CONTRACTION.fullmatch(folded):
            return self._word(contraction[1])
        parts = [piece for part in _PART.findall(token) for piece in _CAMEL.split(part)]
        if len(parts) <= 1 and (not parts or parts[0].casefold() == folded):
            return self._word(folded)
        terms = [folded[:_LONGEST_TERM]]
        if folded.startswith("-"):
            terms.append(folded.lstrip("-")[:_LONGEST_TERM])
        for part in parts:
            terms.extend(self._word(part.casefold()))
        return tuple(dict.fromkeys(terms))

    def _word(self, word: str) -> tuple[str, ...]:
        if not word or word in self._stop_words:
            return ()
        return (self._stem(word)[:_LONGEST_TERM],)


def _pairs(text: str) -> tuple[str, ...]:
    """Overlapping pairs of the characters of each run without spaces; other runs stay whole."""
    terms: list[str] = []
    end = 0
    for match in _SPACELESS.finditer(text):
        if other := text[end : match.start()].strip("_.-'"):
            terms.append(other)
        run = match[0]
        terms.extend(run[i : i + 2] for i in range(max(1, len(run) - 1)))
        end = match.end()
    if other := text[end:].strip("_.-'"):
        terms.append(other)
    return tuple(terms)


@cache
def analyzer(language: str = "english") -> Analyzer:
    """The process's analyzer for a language.

    Raises:
        ConfigError: Snowball has no such language.
    """
    return Analyzer(language)
