"""Snippets of hits, in few characters and without markup."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbkit.retrieval.context import snippet
from kbkit.text.analysis import analyzer
from kbkit.text.markdown.structure import plain_text
from tests.growth import grows_with

pytestmark = pytest.mark.local

ENGLISH = analyzer("english")
FILLER = "nothing of interest stands in these words at all "


def cut(markdown, query, length=240):
    return snippet(markdown, tuple(ENGLISH.terms(query)), "english", length)


def bare(shown):
    return shown.removeprefix("… ").removesuffix(" …")


def test_short_text_is_shown_whole():
    assert cut("Steep the **tea** for *two* minutes.", "tea") == "Steep the tea for two minutes."


@pytest.mark.parametrize("before", [0, 3, 40])
@pytest.mark.parametrize("after", [0, 3, 40])
def test_snippet_has_the_terms_from_any_place(before, after):
    text = FILLER * before + "Steep black tea for four minutes. " + FILLER * after
    shown = cut(text, "how long does black tea steep")
    assert "black tea" in shown
    assert len(bare(shown)) <= 240
    assert shown.startswith("… ") == (not text.startswith(bare(shown)))
    assert shown.endswith(" …") == (not text.strip().endswith(bare(shown)))


def test_snippet_is_the_part_with_most_different_terms():
    text = "tea tea tea tea. " + FILLER * 10 + "Green tea in water. " + FILLER * 10
    assert "Green tea in water" in cut(text, "green tea water")


def test_snippet_finds_inflected_words():
    assert "steeping" in cut(FILLER * 20 + "steeping leaves " + FILLER * 20, "steeps")


@pytest.mark.parametrize("length", [40, 120, 240])
@pytest.mark.parametrize("long", ["x" * 5_000, "/".join(["usr"] * 500)])
def test_terms_beside_a_long_word_are_shown(length, long):
    for text in (f"{long} tea {long}", f"a {long} tea", f"tea {long}", FILLER * 9 + f"{long} tea"):
        shown = cut(text, "tea", length)
        assert "tea" in shown, text[:40]
        assert len(bare(shown)) <= length


def test_end_of_a_long_word_that_is_a_term_is_shown():
    word = "/usr/share/" + "deep/" * 30 + "kettle"
    assert "deep/kettle" in cut(FILLER * 10 + word + " " + FILLER * 10, "kettle", 100)


def test_text_without_spaces_is_cut_at_its_terms():
    text = "これは長い文章です" * 60 + "緑茶を二分間蒸らす" + "これは長い文章です" * 60
    shown = cut(text, "緑茶", 60)
    assert "緑茶を" in shown
    assert len(bare(shown)) <= 60


def test_snippet_begins_at_the_start_with_terms_near_it_or_without_terms():
    assert cut("Steep black tea for long. " + FILLER * 20, "tea").startswith("Steep black tea")
    shown = cut("Begin here. " + FILLER * 20, "zebra")
    assert shown.startswith("Begin here.")
    assert shown.endswith(" …")


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("## Tea {#tea}\n\nSteep it.", "Steep it."),
        ("See [the manual](https://x.org/a 'Title') now.", "See the manual now."),
        ('See [it](x.html "A title").', "See it."),
        ("An ![image](a.png) here.", "An image here."),
        ("A [![badge](a.svg)](b.html) here.", "A badge here."),
        ("A [call](x.html#f(a)) here.", "A call here."),
        ("Call `f(x)` or ``g`h``.", "Call f(x) or g`h."),
        ("The `__init__` takes `**kwargs`.", "The __init__ takes **kwargs."),
        ("It is **bold**, __bold__, *soft* and _soft_.", "It is bold, bold, soft and soft."),
        ("```python\n# say it\nx = a * b ** c\n```\n", "# say it x = a * b ** c"),
        ("~~~\nx = `1`\n~~~", "x = `1`"),
        ("- one\n- two\n  * three\n1. four", "one two three four"),
        ("> quoted\n> twice", "quoted twice"),
        ("| a | b |\n| --- | :-: |\n| 1 | 2 |", "a b 1 2"),
        (r"A \*star\* and \_line\_.", "A *star* and _line_."),
        ("snake_case and 2 * 3 * 4 stay", "snake_case and 2 * 3 * 4 stay"),
        ("Write &lt;it&gt; as `&lt;` &#38; not &lt or", "Write <it> as &lt; & not &lt or"),
        ("Write ?a=1&copy=2", "Write ?a=1&copy=2"),
        ("## Only a heading {#x}", "Only a heading"),
        ("", ""),
        ("| | --all | *all* |\n| | --x N | a \\| b |\nand text", "--all all --x N a | b and text"),
        ("the norm |x| of x|\nis one", "the norm |x| of x| is one"),
    ],
)
def test_markdown_becomes_plain_text(markdown, shown):
    assert plain_text(markdown) == shown


def test_html_in_the_text_is_kept():
    assert cut("<script>alert(1)</script> tea", "tea") == "<script>alert(1)</script> tea"


@pytest.mark.parametrize(
    "repeated",
    [
        *("[", "![", "[a](", "[[]", "[]", '[a](b "', "`", "` `` ", "*", "_", "#"),
        *("> ", "\\", "|", "| - ", "```\n", "- ", " ", "\0\x1b\u202e"),
    ],
    ids=ascii,
)
def test_snippets_of_hostile_text_take_linear_time(repeated):
    hostile = repeated * (20_000 // len(repeated))
    grows_with(lambda size: cut(hostile[:size] + " tea", "tea"), len(hostile) // 8)
    assert len(bare(cut(hostile + " tea", "tea"))) <= 240


@given(st.text(alphabet="ab tea\n`*_[]()!#|>-\\", max_size=400), st.integers(10, 60))
def test_snippet_is_bounded_and_has_no_empty_lines(markdown, length):
    shown = cut(markdown, "tea", length)
    assert len(bare(shown)) <= length
    lines = shown.split("\n") if shown else []
    assert all(line.strip() and line == line.rstrip() for line in lines)


def test_code_and_lists_keep_their_lines():
    text = (
        "To give up:\n\n```sh\ngit merge --abort\nif x; then\n    git reset\n```\n\n"
        "Or, if you've\nbegun:\n\n- **Stop** it\n- Wait\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    )
    lines = (
        "To give up:\ngit merge --abort\nif x; then\n    git reset\n"
        "Or, if you've begun:\nStop it\nWait\na b\n1 2"
    )
    assert cut(text, "merge abort") == lines
    assert plain_text(text) == " ".join(lines.split())
    shown = cut(FILLER * 9 + "\n\n" + text, "git reset merge abort", 90)
    assert "\ngit merge --abort\nif x; then\n    git reset" in shown
