import re
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbkit.errors import ConfigError, RecipeError
from kbkit.models import Chunk, DocumentType, Hit, ScoreParts
from kbkit.panels import render
from kbkit.panels.own import OwnRating
from kbkit.text import analyzer

ENGLISH = analyzer()


def make_hit(**changes):
    chunk = Chunk(
        "c1", "d1", 0, 0, 4, "text", changes.pop("heading_path", ("Guide", "Files")), "here", None
    )
    values = {
        "kb": "manual",
        "score": 0.75,
        "parts": ScoreParts(cosine=0.6, bm25=8.25, dense=0.2, lexical=0.55),
        "chunk": chunk,
        "uri": "https://example.org/page",
        "title": "A page",
        "document_type": DocumentType.API_SPEC,
        "tags": (),
        "snippet": "How to read files",
        "fetched_at": datetime(2026, 1, 2, tzinfo=UTC),
    }
    given = {**values, **changes}
    text = given.pop("snippet")
    return Hit(**given, cut=lambda: text)


class Seen(HTMLParser):
    """The tags and attributes that a browser would see."""

    def __init__(self, markup):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], ""
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text += data


ALLOWED = {"article", "header", "span", "h4", "bdi", "a", "div", "p", "mark"}


@given(st.text(max_size=200), st.text(max_size=200), st.text(max_size=200), st.text(max_size=50))
def test_no_document_can_add_markup(title, text, uri, query):
    hit = make_hit(title=title, snippet=text, uri=uri, heading_path=(text, title), kb=title)
    mine = OwnRating(None, text, 3)
    seen = Seen(render.card(hit, 1, query, ENGLISH, kb=True, mine=mine))
    assert set(seen.tags) <= ALLOWED
    assert not [name for name, _ in seen.attributes if name.startswith("on")]
    assert seen.tags.count("a") == (1 if render.web_address(hit.url) else 0)


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>boom()</script>",
        "<img src=x onerror=boom()>",
        '"><svg onload=boom()>',
        "' onmouseover='boom()",
        "</style><script>boom()</script>",
    ],
)
def test_hostile_text_is_shown_as_it_is_written(hostile):
    hit = make_hit(title=hostile, snippet=hostile, heading_path=(hostile + "!",), uri=hostile)
    seen = Seen(render.card(hit, 1, "boom script", ENGLISH))
    assert set(seen.tags) <= ALLOWED
    assert seen.text.count(hostile) == 4


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


def test_links_leave_the_page_safely():
    markup = render.card(make_hit(), 1, "", ENGLISH)
    attributes = dict(Seen(markup).attributes)
    assert attributes["href"] == "https://example.org/page#here"
    assert attributes["target"] == "_blank"
    assert set(attributes["rel"].split()) == {"noopener", "noreferrer", "nofollow"}


def test_huge_text_is_cut():
    hit = make_hit(title="t" * 10**6, snippet="s" * 10**6, uri="u" * 10**6, kb="k" * 10**6)
    assert len(render.card(hit, 1, "q" * 1000, ENGLISH, kb=True)) < 4000


def test_invisible_and_reversing_characters_do_not_pass():
    assert render.plain("a\u202eb\x00c\n\td", 20) == "a b c d"
    assert render.plain("👩\u200d🔬", 20) == "👩\u200d🔬"


def test_cut_text_says_so():
    assert render.plain("one two three", 8) == "one two…"
    assert render.plain("one two", 7) == "one two"


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        ("He reads files.", "reading file", "He <mark>reads</mark> <mark>files</mark>."),
        ("csv.reader(x)", "csv", "<mark>csv</mark>.reader(x)"),
        ("call append_event now", "append_event", "call <mark>append_event</mark> now"),
        ("call appendEvent now", "event", "call <mark>appendEvent</mark> now"),
        ("use C++ here", "c++", "use <mark>C++</mark> here"),
        ("try --dry-run", "--dry-run", "try <mark>--dry-run</mark>"),
        ("a < b & c", "b", "a &lt; <mark>b</mark> &amp; c"),
        ("nothing here", "", "nothing here"),
        ("the of and", "the", "the of and"),
    ],
)
def test_words_of_the_query_are_marked(text, query, expected):
    assert render.highlighted(text, frozenset(ENGLISH.terms(query)), ENGLISH) == expected


def test_the_score_is_drawn_and_said():
    markup = render.score(make_hit())
    said = dict(Seen(markup).attributes)["aria-label"]
    assert said == ("Score 0.75: 0.20 from meaning (cosine 0.60), 0.55 from words (BM25 8.2)")
    assert "width:20.0%" in markup
    assert "width:55.0%" in markup


def test_the_bar_never_overflows():
    parts = ScoreParts(cosine=-0.2, bm25=90, dense=-0.1, lexical=4.0)
    markup = render.score(make_hit(parts=parts))
    assert "width:0.0%" in markup
    assert "width:100.0%" in markup


def test_a_first_heading_that_repeats_the_title_is_left_out():
    text = Seen(render.card(make_hit(heading_path=("A page", "Part")), 1, "", ENGLISH)).text
    assert text.count("A page") == 1
    assert "Part" in text


def test_a_rating_for_another_query_is_mentioned():
    mine = OwnRating(None, "how to <b>", 4)
    text = Seen(render.card(make_hit(), 1, "", ENGLISH, mine=mine)).text
    assert "rated 4 of 5 for “how to <b>”" in text


def test_problems_are_one_line():
    assert "no such name" in render.problem(ConfigError("no such name"))
    assert "second" not in render.problem(RecipeError(["first", "second"]))
    assert "ValueError: odd &lt;b&gt;" in render.problem(ValueError("odd <b>\nTraceback"))
    assert "ZeroDivisionError: no message" in render.problem(ZeroDivisionError())


def test_the_score_shows_all_four_parts():
    parts = ScoreParts(cosine=0.6, bm25=8.25, dense=0.2, lexical=0.3, document=0.4, title=0.1)
    markup = render.score(make_hit(parts=parts, score=parts.total))
    (said,) = {value for name, value in Seen(markup).attributes if name == "aria-label"}
    assert said == (
        "Score 1.00: 0.20 from meaning (cosine 0.60), 0.30 from words (BM25 8.2), "
        "0.40 from other passages of the document, 0.10 from words in its title"
    )
    widths = [float(width) for width in re.findall(r"width:([\d.]+)%", markup)]
    assert widths == [20, 30, 40, 10]
