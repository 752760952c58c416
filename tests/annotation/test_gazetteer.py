"""Mentions of known names in texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbkit.annotation.gazetteer import NameGazetteer
from kbkit.models import EntityType as T
from kbkit.stores.catalog.subjects import GivenName


def mentions(gazetteer, text):
    return [(text[one.start : one.end], one.name) for one in gazetteer.find(text)]


def names_in(gazetteer, text):
    return [one.name for one in gazetteer.find(text)]


def known(*names, **curated):
    return NameGazetteer([GivenName(name, kind) for name, kind in names], curated=curated)


def test_only_whole_identifiers_are_found():
    names = known(("foo.bar", T.SYMBOL), ("open()", T.SYMBOL), ("--all", T.FLAG))
    text = "use foo.bar, not foo.barista, xfoo.bar or a.foo.bar"
    assert mentions(names, text) == [("foo.bar", "foo.bar")]
    text = "--all, --all-files, x--all and (--all)"
    assert [mention.start for mention in names.find(text)] == [0, text.index("(") + 1]


def test_longest_name_is_found_or_else_a_shorter_one():
    names = known(("connection", T.TERM), ("connection pool", T.TERM), ("pool", T.TERM))
    assert mentions(names, "a connection pool") == [("connection pool", "connection pool")]
    assert mentions(names, "connection pooling") == [("connection", "connection")]
    tricky = known(("a b c", T.SYMBOL), ("a", T.NAME), ("b c", T.TERM), A=[])
    assert ("B C", "b c") in mentions(tricky, "see A B C")


def test_phrases_match_in_any_case_and_number():
    names = known(("connection pool", T.TERM), ("registry", T.TERM))
    text = "Connection Pools have registries, and a\n    CONNECTION\n    pool does"
    assert names_in(names, text) == ["connection pool", "registry", "connection pool"]


def test_places_of_mentions_are_those_in_the_markdown():
    names = known(("connection pool", T.TERM), ("__init__", T.SYMBOL))
    text = "[see](http://x/connection pool) a connection\n   pool and \\_\\_init\\_\\_ {#pool}"
    first, second = names.find(text)
    assert text[first.start : first.end] == "connection\n   pool"
    assert text[second.start : second.end] == "_\\_init\\_\\_"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("open the door", []),
        ("`open` a file", ["open()"]),
        ("call open(path)", ["open()"]),
        ("call `open(path)` now", ["open()"]),
        ("[open](http://x/)", ["open()"]),
        ("make sure", []),
        ("run `make`", ["make"]),
        ("run `make -j2`", ["make"]),
        ("run `sudo make`", ["make"]),
    ],
)
def test_ordinary_words_are_names_if_marked_as_code(text, names):
    assert names_in(known(("open()", T.SYMBOL), ("make", T.COMMAND)), text) == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Go to the page", []),
        ("go there", []),
        ("We write Go and golang", ["Go", "Go"]),
        ("- Go to it\n- Written in Go", ["Go"]),
        ("`Go` is one", ["Go"]),
        ("C++ is not C, and C# is not", ["C"]),
        ("c is a letter", []),
        ("in R, R is used", ["R", "R"]),
        ("Make it so with Make", ["Make"]),
        ("Go is compiled. Go has maps. Go's runtime", ["Go", "Go"]),
        ("It works. R plots. C is old.", ["R", "C"]),
        ("Go can wait. Make must be there.", ["Go", "Make"]),
        ("Go and see. Make canned food.", []),
    ],
)
def test_names_like_ordinary_words_are_found_in_context(text, names):
    curated = {"Go": ["golang"], "C": [], "R": [], "Make": []}
    assert names_in(NameGazetteer(curated=curated), text) == names


def test_names_may_have_characters_of_regular_expressions():
    names = known(
        ("a+b*", T.SYMBOL), ("operator[]", T.SYMBOL), ("C++", T.NAME), ("$PATH", T.VARIABLE)
    )
    expected = ["a+b*", "operator[]", "C++", "$PATH", "a+b*"]
    assert names_in(names, "a+b* aab operator[] C++ $PATH (a+b*)") == expected
    assert mentions(known(("***", T.NAME), ("", T.NAME)), "*** ") == []


def test_names_in_scripts_from_right_to_left_and_without_spaces():
    hebrew, *chinese = "\u05e7\u05d5\u05d1\u05e5", "\u8cc7\u6599\u5eab", "\u9023\u7dda"
    names = known(*((name, T.TERM) for name in (hebrew, *chinese)))
    assert mentions(names, f"\u05d9\u05e9 {hebrew} \u05db\u05d0\u05df") == [(hebrew, hebrew)]
    assert names_in(names, "\u4f7f\u7528\u8cc7\u6599\u5eab\u9023\u7dda") == chinese


def test_unambiguous_end_of_a_qualified_name_is_a_mention():
    expected = ["pathlib.Path.glob", "asyncio.get_running_loop"]
    symbols = (*expected, "json.load_all", "yaml.load_all")
    names = known(*((name, T.SYMBOL) for name in symbols))
    assert names_in(names, "Path.glob() and get_running_loop") == expected
    assert mentions(names, "load_all() of either") == []


def test_candidate_of_two_documents_is_a_name():
    one = GivenName("Thunder Lizard", T.NAME, confirmed=False, documents=1)
    assert mentions(NameGazetteer([one]), "the Thunder Lizard") == []
    two = [one, GivenName("thunder lizards", T.TERM, confirmed=False, documents=1)]
    assert len(mentions(NameGazetteer(two), "the Thunder Lizard")) == 1
    assert len(mentions(NameGazetteer(two), "Thunder Lizards")) == 1
    assert mentions(NameGazetteer([one]), "Thunder Lizards") == []


def test_aliases_are_mentions_of_the_curated_name():
    names = NameGazetteer(curated={"PostgreSQL": ["Postgres", "pgsql"]})
    assert names_in(names, "Postgres or pgsql") == ["PostgreSQL"] * 2
    assert list(names.types) == ["PostgreSQL"]


def test_no_names_or_no_text_give_no_mentions():
    assert NameGazetteer().find("anything") == []
    assert known(("x.y", T.SYMBOL)).find("") == []


def test_gazetteer_of_twenty_thousand_symbols():
    names = [GivenName(f"mod{n % 997}.Class{n % 5003}.meth_{n}", T.SYMBOL) for n in range(20_000)]
    gazetteer = NameGazetteer(names)
    assert len(gazetteer.types) == 20_000
    expected = ["mod77.Class77.meth_77", "mod5.Class5.meth_5"]
    assert names_in(gazetteer, "call meth_77() of mod5.Class5.meth_5") == expected


_WORD = st.sampled_from(
    ["a", "B", "foo.bar", "Foo", "`", " ", "\n  ", "()", "\\_", "](http://x)", "--x", "連", "é"]
)
_WORDS = st.lists(_WORD, max_size=30).map("".join)


@given(_WORDS, st.lists(_WORDS, max_size=6))
def test_mentions_are_in_order_and_do_not_overlap(text, names):
    gazetteer = NameGazetteer(GivenName(name) for name in names)
    end = 0
    for mention in gazetteer.find(text):
        assert end <= mention.start < mention.end <= len(text)
        assert mention.name in gazetteer.types
        end = mention.end
