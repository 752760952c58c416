import pytest

from kbkit.errors import ConfigError, RecipeError
from kbkit.panels import render


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
def test_unsafe_addresses_get_no_link(url):
    assert render.web_address(url) == ""


def test_invisible_and_reversing_characters_are_removed():
    assert render.plain("a\u202eb\x00c\n\td", 20) == "ab c d"
    assert render.plain("👩\u200d🔬", 20) == "👩\u200d🔬"
    assert render.lines("a\u202eb\r\n  c\x00", 20) == "ab\n  c"


def test_cut_text_ends_with_an_ellipsis():
    assert render.plain("one two three", 8) == "one two…"
    assert render.plain("one two", 7) == "one two"
    assert render.lines("one\ntwo", 5) == "one\nt…"


def test_problems_are_one_line():
    assert "no such name" in render.problem(ConfigError("no such name"))
    assert "second" not in render.problem(RecipeError(["first", "second"]))
    assert "ValueError: odd &lt;b&gt;" in render.problem(ValueError("odd <b>\nTraceback"))
    assert "ZeroDivisionError: no message" in render.problem(ZeroDivisionError())
