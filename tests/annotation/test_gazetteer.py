"""Known names found in texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbkit.annotation.gazetteer import GazetteerName, NameGazetteer
from kbkit.models import EntityType as T


def found(gazetteer, text):
    return [(text[one.start : one.end], one.name) for one in gazetteer.find(text)]


def known(*names, **curated):
    return NameGazetteer([GazetteerName(name, kind) for name, kind in names], curated=curated)


def test_whole_identifiers_only():
    names = known(("foo.bar", T.SYMBOL), ("open()", T.SYMBOL), ("--all", T.FLAG))
    assert found(names, "use foo.bar, not foo.barista, xfoo.bar or a.foo.bar") == [
        ("foo.bar", "foo.bar")
    ]
    text = "--all, --all-files, x--all and (--all)"
    assert [mention.start for mention in names.find(text)] == [0, text.index("(") + 1]


def test_the_longest_name_wins_and_a_shorter_one_stands_in_for_it():
    names = known(("connection", T.TERM), ("connection pool", T.TERM), ("pool", T.TERM))
    assert found(names, "a connection pool") == [("connection pool", "connection pool")]
    assert found(names, "connection pooling") == [("connection", "connection")]
    tricky = known(("a b c", T.SYMBOL), ("a", T.NAME), ("b c", T.TERM), A=[])
    assert ("B C", "b c") in found(tricky, "see A B C")


def test_phrases_match_in_any_case_and_number():
    names = known(("connection pool", T.TERM), ("registry", T.TERM))
    text = "Connection Pools have registries, and a\n    CONNECTION\n    pool does"
    assert [name for _, name in found(names, text)] == [
        "connection pool",
        "registry",
        "connection pool",
    ]


def test_the_place_is_that_of_the_text_as_it_was():
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
def test_ordinary_words_are_names_where_marks_say_so(text, names):
    assert [name for _, name in found(known(("open()", T.SYMBOL), ("make", T.COMMAND)), text)] == (
        names
    )


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
def test_names_like_stop_words(text, names):
    curated = {"Go": ["golang"], "C": [], "R": [], "Make": []}
    assert [name for _, name in found(NameGazetteer(curated=curated), text)] == names


def test_names_with_characters_of_regular_expressions():
    names = known(
        ("a+b*", T.SYMBOL), ("operator[]", T.SYMBOL), ("C++", T.NAME), ("$PATH", T.VARIABLE)
    )
    assert [name for _, name in found(names, "a+b* aab operator[] C++ $PATH (a+b*)")] == [
        "a+b*",
        "operator[]",
        "C++",
        "$PATH",
        "a+b*",
    ]
    assert found(known(("***", T.NAME), ("", T.NAME)), "*** ") == []


def test_scripts_from_right_to_left_and_without_spaces():
    names = known(
        ("\u05e7\u05d5\u05d1\u05e5", T.TERM),
        ("\u8cc7\u6599\u5eab", T.TERM),
        ("\u9023\u7dda", T.TERM),
    )
    assert found(names, "\u05d9\u05e9 \u05e7\u05d5\u05d1\u05e5 \u05db\u05d0\u05df") == [
        ("\u05e7\u05d5\u05d1\u05e5", "\u05e7\u05d5\u05d1\u05e5")
    ]
    assert [name for _, name in found(names, "\u4f7f\u7528\u8cc7\u6599\u5eab\u9023\u7dda")] == [
        "\u8cc7\u6599\u5eab",
        "\u9023\u7dda",
    ]


def test_ends_of_qualified_names_stand_for_them_where_no_other_ends_so():
    names = known(
        ("pathlib.Path.glob", T.SYMBOL),
        ("asyncio.get_running_loop", T.SYMBOL),
        ("json.load_all", T.SYMBOL),
        ("yaml.load_all", T.SYMBOL),
    )
    assert [name for _, name in found(names, "Path.glob() and get_running_loop")] == [
        "pathlib.Path.glob",
        "asyncio.get_running_loop",
    ]
    assert found(names, "load_all() of either") == []


def test_a_candidate_counts_when_two_documents_give_it():
    one = GazetteerName("Thunder Lizard", T.NAME, confirmed=False, documents=1)
    assert found(NameGazetteer([one]), "the Thunder Lizard") == []
    two = [one, GazetteerName("thunder lizards", T.TERM, confirmed=False, documents=1)]
    assert len(found(NameGazetteer(two), "the Thunder Lizard")) == 1
    assert "Thunder Lizards" in NameGazetteer(two)
    assert "Thunder Lizards" not in NameGazetteer([one])


def test_aliases_lead_to_the_curated_name():
    names = NameGazetteer(curated={"PostgreSQL": ["Postgres", "pgsql"]})
    assert [name for _, name in found(names, "Postgres or pgsql")] == ["PostgreSQL"] * 2
    assert list(names) == ["PostgreSQL"]


def test_no_names_and_no_text():
    assert NameGazetteer().find("anything") == []
    assert known(("x.y", T.SYMBOL)).find("") == []


def test_twenty_thousand_names():
    names = [
        GazetteerName(f"mod{n % 997}.Class{n % 5003}.meth_{n}", T.SYMBOL) for n in range(20_000)
    ]
    gazetteer = NameGazetteer(names)
    assert len(gazetteer) == 20_000
    assert [name for _, name in found(gazetteer, "call meth_77() of mod5.Class5.meth_5")] == [
        "mod77.Class77.meth_77",
        "mod5.Class5.meth_5",
    ]


_WORDS = st.lists(
    st.sampled_from(
        ["a", "B", "foo.bar", "Foo", "`", " ", "\n  ", "()", "\\_", "](http://x)", "--x", "連", "é"]
    ),
    max_size=30,
).map("".join)


@given(_WORDS, st.lists(_WORDS, max_size=6))
def test_mentions_lie_in_the_text_in_order_and_apart(text, names):
    gazetteer = NameGazetteer(GazetteerName(name) for name in names)
    end = 0
    for mention in gazetteer.find(text):
        assert end <= mention.start < mention.end <= len(text)
        assert mention.name in gazetteer
        end = mention.end
