import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbkit.models import (
    Chunk,
    DocumentState,
    DocumentType,
    Hit,
    Rating,
    ScoreParts,
    Target,
    TargetKind,
)
from kbkit.panels.render import stylesheet
from kbkit.panels.search_results import (
    Highlighter,
    RatingSummary,
    ago,
    card,
    context,
    score,
    summarize,
)
from kbkit.text.analysis import analyzer

ENGLISH = analyzer()
FETCHED = datetime(2026, 1, 2, tzinfo=UTC)


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
        "fetched_at": FETCHED,
    }
    fields = {**values, **changes}
    text = fields.pop("snippet")
    return Hit(**fields, cut=lambda: text)


def drawn(hit, query="", **more):
    highlight = Highlighter(frozenset(ENGLISH.query_terms(query)), ENGLISH)
    return card(hit, 1, highlight, FETCHED + timedelta(days=3), **more)


@given(st.text(max_size=200), st.text(max_size=200), st.text(max_size=200), st.text(max_size=50))
def test_any_text_becomes_json_of_one_line_texts(title, text, uri, query):
    hit = make_hit(title=title, snippet=text, uri=uri, heading_path=(text, title), kb=title)
    state = json.loads(json.dumps(drawn(hit, query, kb=True, ratings=RatingSummary(3))))
    assert not {"\n", "\u202e", "\x00"} & set(state["title"] + state["path"])
    assert state["link"].startswith(("http://", "https://")) or state["link"] == ""


def test_huge_text_is_cut():
    hit = make_hit(title="t" * 10**6, snippet="s" * 10**6, uri="u" * 10**6, kb="k" * 10**6)
    state = drawn(hit, "q" * 1000, kb=True) | {"id": "", "citation": ""}
    assert len(json.dumps(state)) < 3000


def test_card_shows_age_and_state_but_no_type_other_or_repeated_title():
    state = drawn(make_hit(state=DocumentState.STALE))
    assert state["age"]["text"] == "fetched 3 days ago"
    assert state["age"]["exact"] == "Fetched 2026-01-02 00:00 UTC"
    assert [badge["text"] for badge in state["badges"]] == ["api spec", "stale"]
    assert state["link"] == "https://example.org/page#here"
    state = drawn(make_hit(document_type=DocumentType.OTHER, heading_path=("A page", "Part")))
    assert state["badges"] == []
    assert state["path"] == "Part"


def test_score_shows_all_its_parts():
    parts = ScoreParts(
        cosine=0.6,
        bm25=8.25,
        dense=0.2,
        lexical=0.2,
        document=0.15,
        title=0.1,
        heading=0.05,
        summary=0.1,
        page=0.05,
        graph=0.05,
        learned=0.05,
        rating=0.05,
    )
    drawing = score(make_hit(parts=parts, score=parts.total))
    assert drawing["label"] == (
        "Score 1.00: 0.20 from meaning (cosine 0.60), 0.20 from words (BM25 8.2), "
        "0.15 from other passages of the document, 0.10 from words in its title, "
        "0.05 from words in the headings above it, 0.10 from what its document is about, "
        "0.05 from words throughout its document, 0.05 from related entities in the graph, "
        "0.05 from similar questions that people rated it for, 0.05 from ratings"
    )
    assert [share["percent"] for share in drawing["shares"]] == [20, 20, 15, 10, 5, 10, 5, 5, 5, 5]
    assert all(f".kbkit-share-{share['name']} {{" in stylesheet() for share in drawing["shares"])
    words = "Score 0.75: 0.20 from meaning (cosine 0.60), 0.55 from words (BM25 8.2)"
    assert score(make_hit())["label"] == words


def test_score_bar_never_overflows():
    parts = ScoreParts(cosine=-0.2, bm25=90, dense=-0.1, lexical=4.0)
    assert [share["percent"] for share in score(make_hit(parts=parts))["shares"]][:2] == [0, 100]


def test_ratings_of_others_are_averaged():
    ratings = RatingSummary(None, average=3.5, raters=2)
    assert drawn(make_hit(), ratings=ratings)["rated"] == "average 3.5 from 2 readers"
    assert drawn(make_hit(), ratings=RatingSummary(5, average=5, raters=1))["rated"] == ""


def test_passage_in_context_is_rendered_and_sanitised():
    hit = make_hit()
    text = "first <script>boom()</script>[x](javascript:boom())"
    before = Chunk("c0", "d1", 0, 0, 4, text, ("Guide", "Start"), "", None)
    shown = "<p>first &lt;script&gt;boom()&lt;/script&gt;[x](javascript:boom())</p>\n"
    further = Chunk("c", "d1", 0, 0, 4, "further", (), "", None)
    state = context(hit, [further, before, hit.chunk], 1)
    assert state == {
        "radius": 1,
        "passages": [
            {"html": shown, "hit": False, "path": "Guide › Start"},
            {"html": "<p>text</p>\n", "hit": True, "path": "Guide › Files"},
        ],
        "more": True,
    }


@pytest.mark.parametrize(
    ("age", "words"),
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
def test_ages_are_shown_in_words(age, words):
    now = datetime(2026, 5, 1, tzinfo=UTC)
    assert ago(now - age, now) == words


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
    pieces = Highlighter(frozenset(ENGLISH.terms(query)), ENGLISH)(text)
    assert "".join(f"[{piece}]" if hit else piece for piece, hit in pieces) == expected


def rating(score, query="q", rater="me"):
    return Rating(
        1, "kb", Target(TargetKind.CHUNK, "c1"), score, query, rater, "", datetime.now(UTC)
    )


@pytest.mark.parametrize(
    ("ratings", "summary"),
    [
        ([rating(2), rating(5)], RatingSummary(5, average=5, raters=1)),
        (
            [rating(1, rater="you"), rating(2, rater="you"), rating(5)],
            RatingSummary(5, average=3.5, raters=2),
        ),
        ([rating(2, rater="you")], RatingSummary(None, average=2, raters=1)),
        ([rating(1, "old"), rating(3, " Q ")], RatingSummary(3, average=3, raters=1)),
    ],
)
def test_last_rating_counts_and_other_raters_only_for_the_average(ratings, summary):
    assert summarize(ratings, "me", "q") == {"c1": summary}
