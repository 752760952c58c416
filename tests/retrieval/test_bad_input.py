"""Searches with any input: a sane answer or one clear error."""

import json
import math
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kbkit
from kbkit.errors import ConfigError, KbkitError
from kbkit.models import Hits, Mode, SourceDocument
from kbkit.models.ratings import MAX_QUERY_LENGTH
from kbkit.recipes import RetrievalSpec

MODES = list(Mode)


def cases(usual):
    """Settings for a number of cases, or for that of `make soak`."""
    soak = "KBKIT_HYPOTHESIS_PROFILE" in os.environ
    return settings(max_examples=settings().max_examples if soak else usual)


TEXTS = {
    "green tea": "Steep green tea for two minutes. Tea & water; `tea = steep(water)`.",
    "C++ and --dry-run": 'Use `append_event` or os.path.join; v1.2.3 is 0x1F, "quoted".',
    "緑茶": "緑茶を二分間蒸らす。",
    "Зелёный чай": "Заваривать две минуты. Ünïcödé 🍵.",
    "nul": "a \0 b \u202e right \ufeff to left",
    "stop words": "the of and to a in is it you that",
}


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    with kbkit.open(tmp_path_factory.mktemp("bad")) as workspace:
        kb = workspace.create("odd")
        kb.ingest(
            SourceDocument(f"doc:{n}", title, f"# {title}\n\n{text}")
            for n, (title, text) in enumerate(TEXTS.items())
        )
        yield kb


def check(hits, limit):
    assert isinstance(hits, Hits)
    assert len(hits) <= min(limit, 10)
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1.1 and math.isfinite(score) for score in scores)
    assert len({hit.chunk.id for hit in hits}) == len(hits)
    json.dumps(hits.to_dicts()).encode()
    hits._repr_html_().encode()


SYNTAX = "\" ' * NEAR( - ^tea AND OR NOT terms: ( ) + ; -- /* % \\ ` <s> </s> <unk> ▁"
WORDS = "tea the C++ append_event 緑茶 чай zzzqqq 🍵 \0 \ud800 \udcff \x1b[31m \u202e ٣ 0x1F \u0301"
words = st.sampled_from(
    [*SYNTAX.split(" "), *WORDS.split(" "), "NEAR(tea, 3)", "{a b}:", "\n", "\t", "a" * 200]
)
queries = (
    st.text(st.characters(), max_size=60)
    | st.lists(words, max_size=8).map(" ".join)
    | st.lists(words, max_size=8).map("".join)
)


@cases(250)
@given(queries, st.sampled_from(MODES), st.sampled_from([1, 3, 10**6]))
def test_any_text_is_answered_or_refused_as_empty(kb, query, mode, limit):
    if not query.strip():
        with pytest.raises(ConfigError, match="query is empty"):
            kb.search(query, limit=limit, mode=mode)
        return
    hits = kb.search(query, limit=limit, mode=mode)
    check(hits, limit)
    assert kb.search(query, limit=limit, mode=mode).hits == hits.hits


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("title", TEXTS)
def test_titles_are_found_in_any_script(kb, title, mode):
    query = title.replace("nul", "nul\0\udcff")
    assert kb.search(query, mode=mode)[0].title == title


@pytest.mark.parametrize("mode", MODES)
def test_query_syntax_of_the_index_is_plain_text(kb, mode):
    plain = [hit.title for hit in kb.search("green tea", mode="lexical")]
    queries = '"green" tea|green* tea*|-green -tea|NEAR(green tea)|^green tea|(green) tea)'
    for query in f"{queries}|{{green tea}}|terms:green tea:".split("|"):
        assert kb.search(query, mode=mode)[0].title == "green tea"
        assert [hit.title for hit in kb.search(query, mode="lexical")] == plain


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "query",
    [
        *(word * (100_000 // len(word)) for word in ("tea ", "x", "the ", "a_", ".", "`", "\0")),
        *("🍵" * 25_000, " ".join(map(str, range(20_000))), " " * 99_997 + "tea"),
    ],
    ids=lambda query: ascii(query[:8]),
)
def test_very_long_query_is_answered(kb, query, mode):
    hits = kb.search(query, mode=mode)
    check(hits, 10)
    assert len(hits.query) <= MAX_QUERY_LENGTH


@pytest.mark.parametrize("query", ["zzzqqq", "?!", "🍵🍵🍵", "\0", "\ud800"])
def test_unknown_words_give_no_lexical_hits(kb, query):
    assert [hit.title for hit in kb.search(query, mode="lexical")] in ([], ["Зелёный чай"])


INVALID = {
    ("query", "query"): ["", " ", "\n\t", "\u2003\u00a0", None, 3, b"tea", ["tea"], 1.5],
    ("limit", "limit="): [0, -1, -(10**30), 1.0, 2.5, math.nan, "3", None, True, False, [1]],
    ("limit", "limit=.*3"): [np.float64(3)],
    ("mode", "hybrid, dense, lexical"): ["fuzzy", "", "HYBRID", None, 3, ["hybrid"], {}],
    ("retrieval", "RetrievalSpec"): [{"dense_weight": 1}, 3, "x", RetrievalSpec],
    ("filters", "^filters: "): [{"color": "red"}, {"after": "soon"}, 3, {"source": "\udcff"}],
}


@pytest.mark.parametrize(
    ("name", "message", "wrong"),
    [(*key, wrong) for key, values in INVALID.items() for wrong in values],
)
def test_invalid_argument_is_an_error(kb, name, message, wrong):
    with pytest.raises(ConfigError, match=message):
        kb.search(**{"query": "tea", name: wrong})


@pytest.mark.parametrize("limit", [1, np.int64(2), np.uint8(3), 10**6, 2**63, 10**30])
@pytest.mark.parametrize("mode", MODES)
def test_limit_may_be_of_any_size(kb, limit, mode):
    check(kb.search("green tea minutes", limit=limit, mode=mode), int(limit))


@settings(max_examples=60)
@given(
    st.builds(
        RetrievalSpec,
        **dict.fromkeys(("dense_weight", "rating_weight"), st.floats(0, 1)),
        **dict.fromkeys(("document_weight", "title_weight", "heading_weight"), st.floats(0, 5)),
        **dict.fromkeys(("summary_weight", "page_weight"), st.floats(0, 5)),
        per_document=st.integers(1, 3),
        duplicates=st.floats(0.01, 1),
        candidates=st.integers(1, 10_000),
    ),
    st.sampled_from(MODES),
    queries,
)
def test_any_settings_give_an_answer(kb, chosen, mode, query):
    check(kb.search(f"tea {query}", limit=10, mode=mode, retrieval=chosen), 10)


@cases(100)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "tags": st.text(max_size=5) | st.lists(st.text(max_size=3), max_size=3),
            "source": st.text(max_size=8) | st.sampled_from(["doc:", "%", "_", "doc:[0-9]"]),
            "path": st.text("*?[]!ab0-\\(.", max_size=12) | st.text(max_size=5),
            "after": st.datetimes() | st.text(max_size=12) | st.dates(),
            "before": st.datetimes(timezones=st.timezones()),
            "min_rating": st.floats() | st.integers(),
            "document_type": st.sampled_from(["faq", "other", "x"]),
            "state": st.sampled_from(["stale", "current", "x"]),
        },
    ),
    st.sampled_from(MODES),
)
def test_any_filters_give_an_answer_or_an_error(kb, filters, mode):
    try:
        hits = kb.search("green tea minutes", limit=10, mode=mode, filters=filters)
    except KbkitError as error:
        assert "filters: " in str(error)  # noqa: PT017
    else:
        check(hits, 10)
