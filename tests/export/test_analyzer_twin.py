"""The analyzer in JavaScript equals that in Python."""

import random
import re
import sys
import unicodedata
from collections.abc import Iterator
from functools import cache
from html import unescape
from pathlib import Path

import pytest
import Stemmer

from kbkit.export.index_terms import stemmer_source
from kbkit.text import stop_words
from kbkit.text.analysis import Analyzer
from tests.export.conftest import JS, QUESTIONS, run_node
from tests.manuals import MANUALS, manual
from tests.text.test_text import WAYS

LANGUAGES = Stemmer.algorithms()
analyzer = cache(Analyzer)


@pytest.fixture
def differences(node, tmp_path):
    """A function that returns texts with different terms, and both terms."""

    def compare(texts: list[tuple[str, str]]) -> list[tuple[object, ...]]:
        languages = {
            language: {
                "script": stemmer_source(language, _forms(texts, language)),
                "stopWords": sorted(analyzer(language).stop_words),
            }
            for language in {language for language, _ in texts}
        }
        texts = [(language, _as_in_javascript(text)) for language, text in texts]
        values = {"languages": languages, "texts": texts}
        answers = run_node(node, JS / "twin.js", tmp_path, values)
        theirs = frozenset(answers["unassigned"])
        return [
            (language, text, ours, result)
            for (language, text), result in zip(texts, answers["results"], strict=True)
            if (ours := _ours(language, text)) != result and _known_to_both(text, theirs)
        ]

    return compare


def _forms(texts: list[tuple[str, str]], language: str) -> Iterator[str]:
    """Yield each text, also in the form of a query of code only."""
    for own, text in texts:
        if own == language:
            yield text
            yield re.sub(r"\w+", r"`\g<0>`", text)


def _as_in_javascript(text: str) -> str:
    """Join pairs of surrogates, and keep lone ones."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _ours(language: str, text: str) -> list[list[str]]:
    one = analyzer(language)
    return [one.terms(text), one.query_terms(text)]


def _known_to_both(text: str, unassigned: frozenset[str]) -> bool:
    """Whether both have each character: Python and Node come with different Unicode."""
    return not any((unicodedata.category(c) == "Cn") != (c in unassigned) for c in text)


def _lines(folder: Path, every: int) -> list[str]:
    pages = sorted(page for page in folder.rglob("*.html") if page.is_file())
    texts = (
        unescape(re.sub(r"<[^>]*>", "", page.read_text("utf-8", "replace")))
        for page in pages[::every]
    )
    return [line for text in texts for line in text.split("\n") if line.strip()]


@pytest.mark.parametrize("package", MANUALS)
def test_terms_of_documentation_are_equal(package, differences):
    lines = _lines(manual(package), 25)
    assert differences([("english", line) for line in dict.fromkeys(lines)]) == []


def test_terms_of_questions_are_equal(differences):
    if not QUESTIONS.is_file():
        pytest.skip("needs ../shared/eval")
    questions = [line.split("\t")[0] for line in QUESTIONS.read_text().splitlines()]
    assert differences([("english", question) for question in questions]) == []


def test_terms_of_every_character_are_equal(differences):
    points = [point for point in range(sys.maxunicode + 1) if point % 101 == 0 or point < 0x2000]
    characters = [c for c in map(chr, points) if unicodedata.category(c) not in ("Cn", "Co")]
    texts = [f"a{c}b {c} x_{c}-{c}Y 1{c}. `{c}" for c in characters]
    assert differences([("english", text) for text in texts]) == []


WORDS = (
    ":: -> -- ++ n't 's the The a an for loop loops İf WITH with statement operators is in "
    "clause from same very appendEvent HTTPServer v1.2 C++17 C# _ __ ß ẞ İ ı ς Σ ΟΣ ſ K ﬁ ǅ "
    "ª ² ½ Ⅷ ⅷ ٣ 日本語 データ ภาษา 한국어 हिन्दी עִבְרִית عَرَبِيّ tie\u0302\u0301ng \u0301 \u200d "
    "\u200c \u00ad \ufeff \u202e \u2066 \u2028 \u0085 \x1c \x00 \u00a0 \u3000 👩\u200d💻 "
    "🏳️\u200d🌈 🙂 𝒜 𐐀 𐐨 𠀀 🄰 \ud800 \udc00 “ ” « » internal skis running constructor __proto__ "
    "hasOwnProperty"
)
PARTS = [*"aAbzZ019_-.:/@#$+`'’\" \n\t()[]{},;!?<>", *WORDS.split(" ")]


def _made_up(count: int, seed: int) -> list[str]:
    chance = random.Random(seed)
    return ["".join(chance.choices(PARTS, k=chance.randint(1, 14))) for _ in range(count)]


def test_terms_of_random_text_are_equal(differences):
    ways = [way for ways in WAYS for way in ways]
    assert differences([("english", text) for text in [*ways, *_made_up(10_000, 6)]]) == []


def test_terms_of_long_repetitions_are_equal(differences):
    # the time limit finds what takes more than linear time
    texts = [part * (10_000 // len(part)) for part in PARTS]
    texts += [(part + other) * 500 for part, other in zip(PARTS, PARTS[5:], strict=False)]
    assert differences([("english", text) for text in texts]) == []


def test_terms_of_every_language_are_equal(differences):
    chance = random.Random(7)
    texts = []
    for language in LANGUAGES:
        words = sorted(stop_words(language)) or ["слово", "וואָרט"]
        ends = [word[-k:] for word in words for k in (1, 2, 3, 4, 5)]
        made = [
            chance.choice(words) + chance.choice(ends) + chance.choice(ends) for _ in range(300)
        ]
        made += [chance.choice(ends) + chance.choice(PARTS) for _ in range(60)]
        texts += [(language, text) for text in (*words, *made, *_made_up(60, 8))]
    assert differences(texts) == []


def test_stems_of_a_vocabulary_are_equal(differences):
    # words that versions of Snowball stem differently, and astral characters
    words = "internal internally interval interfering international intern inter skis skies ski"
    others = "python cython succes buzz headers parsers koty żółtego 𐐀ing 𠀀𐐨s"
    texts = [(language, f"{words} {others}") for language in LANGUAGES]
    assert differences(texts) == []
