"""Terms of texts and queries."""

import re
import sys
import unicodedata
from functools import cache

import pytest
import Stemmer
from hypothesis import given, settings
from hypothesis import strategies as st

from kbkit.errors import ConfigError
from kbkit.text import stop_words
from kbkit.text.analysis import Analyzer, _tokens, analyzer
from kbkit.text.markdown.structure import without_link_targets

ENGLISH = analyzer()
LANGUAGES = Stemmer.algorithms()
CODE = st.from_regex(r"([-@#$.`]{0,3}\w{1,4}([.:'’#+/_@>`-]{0,3}|::|->)){1,12}", fullmatch=True)
TEXT = st.text(max_size=80) | CODE

fresh = cache(Analyzer)

# a name, and other spellings that share its first term
WAYS = [
    ["append_event", "appendEvent", "AppendEvent", "append-event", "APPEND_EVENT", "appendevent"],
    ["DataFrame", "dataframe", "data_frame", "DataFrames", "data-frames"],
    ["os.path.join", "`os.path.join`", "os.path.join()", "os/path/join", "OS.PATH.JOIN."],
    ["--dry-run", "--dry_run", "`--dry-run`", "[--dry-run]", "--dryRun"],
    ["-v", "(-v)"],
    ["C++", "c++", "(C++)", "C++,", "C++17", "C++/CLI"],
    ["C#", "c#.", "C#/.NET"],
    [".NET", "`.net`", "(.NET)"],
    ["0x1F", "0X1f"],
    ["1.2.3", "v1.2.3", "V1.2.3."],
    ["std::vector", "std.vector", "std::vector<int>", "std->vector"],
    ["@decorator", "`@Decorator`", "@decorator(x)"],
    ["#include", "#include <x>"],
    ["foo()", "foo", "`foo()`", "foo(bar)"],
    ["a->b", "a.b", "A->B"],
    ["$HOME", "`$HOME`", "$HOME/bin"],
    ["node:fs", "'node:fs'", "node.fs"],
    ["utf-8", "UTF8", "utf_8", "UTF-8"],
    ["sha256", "SHA-256", "SHA_256"],
    ["I/O", "IO", "i/o"],
    ["TCP/IP", "tcp/ip", "tcp.ip"],
    ["e.g.", "eg", "E.g."],
    ["U.S.A.", "USA", "U.S.A"],
    ["/etc/passwd", "etc/passwd", "`/etc/passwd`"],
    ["ann@example.com", "<ann@example.com>", "Ann@Example.com"],
    ["O'Reilly", "O’Reilly", "oreilly"],
    ["__init__", "`__init__`", "__init__()"],
    ["naïve", "nai\u0308ve", "NAÏVE", "na\u00adïve"],
    ["straße", "STRASSE", "STRAẞE"],
    ["ΣΟΦΟΣ", "σοφος", "σοφοσ"],
    ["İstanbul", "istanbul"],
    ["می‌خواهم", "میخواهم"],
]


@pytest.mark.parametrize("ways", WAYS, ids=lambda ways: ways[0])
def test_name_is_found_in_any_spelling(ways):
    whole = ENGLISH.terms(ways[0])[0]
    for way in ways:
        assert whole in ENGLISH.terms(f"About {way} here"), way


@pytest.mark.parametrize(
    ("written", "parts"),
    [
        ("append_event", "append event"),
        ("appendEvent", "append event"),
        ("os.path.join", "os path join"),
        ("--dry-run", "dry run"),
        ("HTTPServer", "http server"),
        ("std::vector", "std vector"),
        ("v1.2.3", "v1 2 3"),
        ("collections.OrderedDict", "collections ordereddict ordered dict"),
        ("node:fs", "node fs"),
        ("TCP/IP", "tcp ip"),
        ("utf-8", "utf 8"),
        ("@decorator", "decorator"),
        ("#include", "include"),
        ("$HOME", "home"),
        ("__init__", "init"),
        ("/etc/passwd", "etc passwd"),
        ("ann@example.com", "ann example"),
        ("https://docs.example.org/library/os.html#os.path", "docs library os html path"),
        ("don't", ""),
        ("Python's", "python"),
        ("os.path's", "os path os.path"),
    ],
)
def test_name_is_found_by_its_parts(written, parts):
    assert set(ENGLISH.terms(parts)) <= set(ENGLISH.terms(f"Call {written}, then stop."))


@pytest.mark.parametrize("written", ["C++", "C#"])
def test_names_with_signs_are_not_their_letter(written):
    assert "c" not in ENGLISH.terms(f"{written} here")


def test_words_are_folded_and_stemmed_without_stop_words():
    assert ENGLISH.terms("The RUNNING of runs, and don't") == ["run", "run", "dont"]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("日本語", ["日本", "本語"]),
        ("木", ["木"]),
        ("Python入門files", ["python", "入門", "file"]),
        ("데이터베이스", ["데이", "이터", "터베", "베이", "이스"]),
        ("ภาษา", ["ภา", "าษ", "ษา"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("tiếng Việt", ["tieng", "viet"]),
        ("tie\u0302\u0301ng", ["tieng"]),
        ("عَرَبِيّ", ["عَرَبِيّ"]),
        ("நிரல்", ["நிரல்"]),
    ],
)
def test_words_of_all_scripts_are_kept_whole(text, terms):
    assert ENGLISH.terms(text) == terms


def test_all_combining_marks_of_unicode_are_known():
    marks = [c for c in map(chr, range(sys.maxunicode)) if unicodedata.category(c)[0] == "M"]
    assert [c for c in marks if _tokens(f"a{c}b") != [f"a{c}b"]] == []


def test_word_characters_are_letters_and_numbers_as_in_javascript():
    kinds = {unicodedata.category(c)[0] for c in map(chr, range(0x20000)) if re.match(r"\w", c)}
    assert kinds == {"L", "N", "P"}
    others = [c for c in map(chr, range(0x20000)) if unicodedata.category(c)[0] in "LN"]
    assert [c for c in others if not re.match(r"\w", c)] == []


def test_language_decides_the_stems():
    assert Analyzer("german").terms("Häuser") == ["haus"]
    assert ENGLISH.terms("Häuser") != ["haus"]


def test_error_of_an_unknown_language_names_the_known_ones():
    with pytest.raises(ConfigError, match="german"):
        Analyzer("klingon")


@pytest.mark.parametrize("text", ["", " \n…\x00— ", "___", "_._", "_-_", "`", "--", "::", "🙂"])
def test_text_without_words_has_no_terms(text):
    assert ENGLISH.terms(text) == []
    assert ENGLISH.query_terms(text) == []


@pytest.mark.parametrize(
    "language", [name for name in LANGUAGES if name not in {"serbian", "yiddish"}]
)
def test_languages_have_stop_words(language):
    words = Analyzer(language).stop_words
    assert len(words) > 25
    assert Analyzer(language).terms(" ".join(sorted(stop_words(language))[:25]))[12:] == []


@pytest.mark.parametrize(
    ("language", "text", "terms"),
    [
        ("german", "Wie ändere ich die Suche?", ["and", "such"]),
        ("french", "Quelle est la valeur de l’option", ["quel", "valeur", "loption", "option"]),
        ("russian", "где найти эту книгу", ["найт", "книг"]),
        ("polish", "jak zmienić hasło", ["zmien", "zmienic", "hasl"]),
        ("hindi", "फ़ाइल को कैसे खोलें", ["फ़ाइल", "कैस", "खोल"]),
    ],
)
def test_only_stop_words_of_the_language_are_left_out(language, text, terms):
    assert Analyzer(language).terms(text) == terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("the `with` statement", ["with", "statement"]),
        ("`not in` is an operator", ["not", "in", "oper"]),
        ("a GET request WHERE", ["get", "request", "where"]),
        ("`the.with`", ["the.with"]),
    ],
)
def test_stop_words_in_code_or_capitals_are_kept(text, terms):
    assert ENGLISH.terms(text) == terms


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("what does the with statement do", ["with", "statement"]),
        ("the same thing, a used car", ["thing", "car"]),
        ("nested for loops", ["nest", "for", "loop"]),
        ("is the not operator slow", ["not", "oper", "slow"]),
        ('what does "is" mean', ["is", "mean"]),
        ("what is a 'with'?", ["with"]),
        ("the in-place sort", ["inplac", "place", "sort"]),
        ("the C++ library, a C# class", ["c++", "librari", "c#", "class"]),
        ("what about the with?", ["with"]),
        ("share a numpy-like buffer", ["share", "numpylik", "numpi", "like", "buffer"]),
        ("HOW DO I USE THE WITH STATEMENT", ["with", "statement"]),
        ("to be or not to be", ["to", "be", "or", "not"]),
        ("is not", ["is", "not"]),
        ("with", ["with"]),
        ("how to", ["how", "to"]),
        ("files and files", ["file"]),
    ],
)
def test_stop_words_are_kept_where_a_query_is_about_them(query, terms):
    assert ENGLISH.query_terms(query) == terms


def test_query_about_a_keyword_matches_text_with_its_name():
    named = ENGLISH.terms("The `with` statement closes files.")
    used = ENGLISH.terms("Opens files with care.")
    assert "with" in set(ENGLISH.query_terms("with")).intersection(named)
    assert not set(ENGLISH.query_terms("with")).intersection(used)


@settings(max_examples=300, deadline=None)
@given(text=TEXT, other=TEXT, language=st.sampled_from(LANGUAGES))
def test_terms_of_any_text_are_clean_and_reproducible(text, other, language):
    one = analyzer(language)
    terms = one.terms(text)
    assert terms == fresh(language).terms(text)
    decomposed, composed = (unicodedata.normalize(form, text) for form in ("NFD", "NFC"))
    assert one.terms(decomposed) == one.terms(composed)
    assert one.terms(f"{text}\n{other}") == terms + one.terms(other)
    query = one.query_terms(text)
    assert len(set(query)) == len(query)
    for term in terms + query:
        assert 0 < len(term) <= 64
        for character in term:
            kind = unicodedata.category(character)[0]
            assert kind in "LNM" or character in "_.-+#@$", (term, character)


QUERY = st.lists(TEXT | st.sampled_from(["the", "a", "for", "loop", '"', "is", "operator"]))


@settings(max_examples=200, deadline=None)
@given(text=QUERY.map(" ".join) | TEXT)
def test_query_that_repeats_a_text_has_all_its_terms(text):
    terms = set(Analyzer(one_form=True).terms(text))
    assert terms <= set(ENGLISH.terms(text))
    assert terms <= set(ENGLISH.query_terms(text)) or text.isupper()


WORD = st.from_regex(r"[a-z]{2,9}", fullmatch=True)


@settings(max_examples=200, deadline=None)
@given(word=WORD, other=WORD)
def test_joined_words_have_one_term_in_all_spellings(word, other):
    capitals = f"{word}{other}".upper()
    ways = [f"{word}_{other}", f"{word}-{other}", word + other.capitalize(), capitals]
    wholes = {ENGLISH.query_terms(f"x {way}")[1] for way in ways if way not in ENGLISH.stop_words}
    assert len(wholes) == 1


@pytest.mark.parametrize(
    "part",
    [
        *("a", "A", "_", "-", ".", "`", "a-", "a.", "a'", "a's", "'s", "a:", "a::", "a->", "a/"),
        *("@a", "#", "a++", "a#", "aB", "A1", "$", "--a", "the ", "the the", '"', '"a', "n't"),
        *("\u0301", "a\u0301", "ß", "İ", "\ud800", "日", "日a", "日-", "1", "1-"),
        *("\u200d", "👩\u200d", "\ufdfa"),
    ],
)
def test_repetitive_text_of_100_kilobytes_is_read(part):
    # more than linear time would exceed the timeout of tests
    text = part * (100_000 // len(part))
    for terms in (ENGLISH.terms(text), ENGLISH.query_terms(text)):
        assert all(0 < len(term) <= 64 for term in terms)


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("[a](x) and ![b](y 'z') and [c](<d e> \"f\")", "a and b and c"),
        ("[os.path[0]](a.html#f(x))", "os.path[0]"),
        ("[not a link] (x) [nor] [this]: y", "[not a link] (x) [nor] [this]: y"),
    ],
)
def test_link_targets_are_removed(markdown, text):
    assert without_link_targets(markdown) == text


@pytest.mark.timeout(20)
@pytest.mark.parametrize("part", ["[", "[]", "[[]", "[a](", '[a](b "', "[a](<", "!["])
def test_text_of_brackets_is_read(part):
    assert without_link_targets(part * (50_000 // len(part)) + "](x)")


@pytest.mark.parametrize(
    ("language", "text", "query"),
    [
        ("english", "It doesn't work", "doesn't"),
        ("english", "It doesn't work", "doesnt"),
        ("english", "A café", "cafe"),
        ("english", "A cafe", "café"),
        ("english", "A résumé", "resume"),
        ("english", "IPv6-like names", "ipv6"),
        ("english", "zero\u200bwidth", "zerowidth"),
        ("english", "The `??` operator", "what does ?? do"),
        ("english", "Write x => y.", "=>"),
        ("english", "Either a || b", "what is `||`"),
        ("english", "RFC 9110", "RFC9110"),
        ("english", "RFC9110", "rfc 9110"),
        ("english", "Müller, Søren, Łódź", "mueller soren lodz"),
        ("german", "Die Größe", "Groesse"),
        ("german", "Die Größe", "grosse"),
        ("spanish", "La información", "informacion"),
        ("spanish", "Las informaciones", "información"),
        ("french", "La dépréciation", "depreciation"),
        ("greek", "η πληροφορία", "ΠΛΗΡΟΦΟΡΙΑ"),
    ],
)
def test_words_are_found_without_accents_apostrophes_and_signs(language, text, query):
    one = Analyzer(language)
    assert set(one.query_terms(query)) & set(one.terms(text))


def test_contractions_are_left_out_of_questions():
    assert ENGLISH.query_terms("Why doesn't it start") == ["start"]
