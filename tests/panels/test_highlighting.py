import pytest

from kbkit.panels.search.results import Highlighter
from kbkit.text.analysis import analyzer

ENGLISH = analyzer()


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
