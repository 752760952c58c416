import time

import pytest

from kbkit.errors import ConfigError
from kbkit.text import Analyzer, analyzer, without_link_targets


@pytest.mark.parametrize(
    ("written", "parts"),
    [
        ("append_event", ["append", "event"]),
        ("appendEvent", ["append", "event"]),
        ("os.path.join", ["os", "path", "join"]),
        ("--dry-run", ["dri", "run"]),
        ("HTTPServer", ["http", "server"]),
        ("std::vector", ["std", "vector"]),
        ("v1.2.3", ["v1", "2", "3"]),
    ],
)
def test_code_is_found_whole_and_by_its_parts(written, parts):
    terms = analyzer().terms(f"Call {written}, then stop.")
    assert written.casefold() in terms
    assert set(parts) <= set(terms)


@pytest.mark.parametrize("written", ["C++", "C#", "0x1F", "x-y"])
def test_marks_that_belong_to_a_name_are_kept(written):
    assert written.casefold() in analyzer().terms(f"use {written} here")


def test_words_are_folded_and_stemmed_and_stop_words_left_out():
    assert analyzer().terms("The RUNNING of runs, and don't") == ["run", "run"]


def test_equal_text_gives_equal_terms_whatever_its_unicode_form():
    assert analyzer().terms("ﬁle Über") == analyzer().terms("file U\u0308ber")


def test_scripts_without_spaces_give_pairs():
    assert analyzer().terms("日本語") == ["日本", "本語"]


def test_language_decides_the_stems():
    assert Analyzer("german").terms("Häuser") == ["haus"]
    assert analyzer("english").terms("Häuser") != ["haus"]


def test_unknown_language_names_those_there_are():
    with pytest.raises(ConfigError, match="german"):
        Analyzer("klingon")


def test_nothing_gives_nothing():
    assert analyzer().terms(" \n…\x00— ") == []


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("[a](x) and ![b](y 'z') and [c](<d e> \"f\")", "a and b and c"),
        ("[os.path[0]](a.html#f(x))", "os.path[0]"),
        ("[not a link] (x) [nor] [this]: y", "[not a link] (x) [nor] [this]: y"),
    ],
)
def test_links_are_read_by_their_text(markdown, text):
    assert without_link_targets(markdown) == text


@pytest.mark.parametrize("part", ["[", "[]", "[[]", "[a](", '[a](b "', "[a](<", "!["])
def test_text_made_of_brackets_takes_no_time(part):
    start = time.perf_counter()
    without_link_targets(part * (50_000 // len(part)) + "](x)")
    assert time.perf_counter() - start < 1.5
