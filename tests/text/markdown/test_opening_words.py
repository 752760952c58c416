"""Words at the start and end of passages, for links to them."""

import pytest

from kbkit.text.markdown.structure import MAX_LENGTH, opening_words, passage_ends


@pytest.mark.parametrize(
    ("markdown", "words"),
    [
        ("## Options {#_options}\n\nThese are known.", ""),
        ("## Above\n\n### Options {#o}\n\nThese are known.", ""),
        ("## Options\n\nThese are known to all.", "These are known to all."),
        ("## Options\n\n### Long", "Options"),
        ("", ""),
        ("Say *it* with [a link](https://e.org/x-y) \\*now\\*.", "Say it with a link *now*."),
        ("-   **-a, --all**: Show each *file*.\n\n-   **-b**: Bare.", "Show each file."),
        ("-   `--all`: Show each file.", "Show each file."),
        ("-   **--all**\n\n    Show each file.", "Show each file."),
        ("-   **--all**\n-   **--bare**", "--all"),
        ("-   [x] write it all down\n-   read", "write it all down"),
        ("> 1. Quoted words come first", "Quoted words come first"),
        ("A line  \nbroken in the midst", "broken in the midst"),
        ("Before the end ![an image](x.png) behind", "Before the end"),
        ("```sh\n\ngit add --all .\ngit commit\n```", "git add --all ."),
        ("| a | the second of the cells |\n|---|---|\n| b | c |", "the second of the cells"),
        ("thin\u2009spaces are\xa0kept as they are", "thin\u2009spaces are\xa0kept as they are"),
        ("\0\nNothing of it fails", "Nothing of it fails"),
        ("Words and more of them. {#said}", ""),
        ("Sequences of the form **$**'*string*' are special", "Sequences of the form"),
        ("A string after a sign (**$**x) is quoted", "A string after a sign"),
        (
            "Old.\n\n        (1.11) Use `get(X, byte[])` of **it**",
            "(1.11) Use get(X, byte[]) of it",
        ),
        ("Run.\n\n    $ ls -l **/*.py | wc", "$ ls -l **/*.py | wc"),
        ("-   One that has more. {#one}\n-   Two", ""),
    ],
)
def test_opening_words_are_shown_words_of_one_block(markdown, words):
    assert opening_words(markdown) == words


def test_passage_at_the_top_of_a_page_has_no_opening_words():
    assert opening_words("# Title\n\nIt says much.", from_top=True) == ""
    assert opening_words("It says so much.", from_top=True) == "It says so much."
    assert opening_words("# Title\n\n## Part\n\nIt says much.", from_top=True) == ""


def test_opening_words_are_cut_at_the_end_of_a_word():
    words = opening_words("incomprehensible " * 40)
    assert words == " ".join(["incomprehensible"] * 4)
    assert opening_words("x" * 500) == "x" * MAX_LENGTH
    assert opening_words("資料を検索する、" * 30).endswith("、")
    assert opening_words("`" * 5_000 + "[" * 5_000) is not None


def test_ends_of_a_passage_are_its_first_and_last_words():
    assert passage_ends("Few *words* … here") == "Few words   here"
    assert passage_ends("") == ""
    first, last = passage_ends("## Above\n\n" + "first " * 40 + "`last` " * 40).split("…")
    assert first.split() == ["first"] * 8
    assert last.split() == ["last"] * 9
    assert passage_ends("\ud83d" * 200).strip("… ") == ""
