from datetime import UTC, datetime, timedelta

import pytest

from kbkit.errors import ConfigError, RecipeError
from kbkit.panels import render
from kbkit.text import analyzer

ENGLISH = analyzer()


@pytest.mark.parametrize(
    "url",
    [
        "javascript:boom()",
        "JaVaScRiPt:boom()",
        "data:text/html,<script>boom()</script>",
        "file:///etc/passwd",
        "https:boom",
        "http:///path",
        "https://example.org/\n/x",
        "https://exa\u202emple.org/",
        "https://[broken/",
        "https://example.org/" + "x" * 3000,
        "python:pandas.read_csv",
        "",
    ],
)
def test_addresses_that_get_no_link(url):
    assert render.web_address(url) == ""


def test_invisible_and_reversing_characters_do_not_pass():
    assert render.plain("a\u202eb\x00c\n\td", 20) == "a b c d"
    assert render.plain("👩\u200d🔬", 20) == "👩\u200d🔬"
    assert render.lines("a\u202eb\r\n  c\x00", 20) == "a b\n  c "


def test_cut_text_says_so():
    assert render.plain("one two three", 8) == "one two…"
    assert render.plain("one two", 7) == "one two"
    assert render.lines("one\ntwo", 5) == "one\nt…"


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        ("He reads files.", "reading file", "He [reads] [files]."),
        ("csv.reader(x)", "csv", "[csv].reader(x)"),
        ("call append_event now", "append_event", "call [append_event] now"),
        ("call appendEvent now", "event", "call [appendEvent] now"),
        ("use C++ here", "c++", "use [C++] here"),
        ("try --dry-run", "--dry-run", "try [--dry-run]"),
        ("a < b & c", "b", "a < [b] & c"),
        ("nothing here", "", "nothing here"),
        ("the of and", "the", "the of and"),
        ("", "word", ""),
    ],
)
def test_words_of_the_query_are_marked(text, query, expected):
    pieces = render.segments(text, frozenset(ENGLISH.terms(query)), ENGLISH)
    assert "".join(f"[{piece}]" if hit else piece for piece, hit in pieces) == expected


@pytest.mark.parametrize(
    ("age", "said"),
    [
        (timedelta(seconds=-5), "just now"),
        (timedelta(seconds=59), "just now"),
        (timedelta(seconds=61), "1 minute ago"),
        (timedelta(hours=5), "5 hours ago"),
        (timedelta(days=6), "6 days ago"),
        (timedelta(days=20), "2 weeks ago"),
        (timedelta(days=70), "2 months ago"),
        (timedelta(days=800), "2 years ago"),
    ],
)
def test_ages_are_said_in_words(age, said):
    now = datetime(2026, 5, 1, tzinfo=UTC)
    assert render.ago(now - age, now) == said


def test_problems_are_one_line():
    assert "no such name" in render.problem(ConfigError("no such name"))
    assert "second" not in render.problem(RecipeError(["first", "second"]))
    assert "ValueError: odd &lt;b&gt;" in render.problem(ValueError("odd <b>\nTraceback"))
    assert "ZeroDivisionError: no message" in render.problem(ZeroDivisionError())
