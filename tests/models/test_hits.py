from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from kbkit.models import Chunk, DocumentType, Hit, ScoreParts

HOSTILE = "](javascript:x) <img src=x> ![y](z) `code` # *bold* ~~s~~ &copy; \\ | 1. - _under_"


def hit(title="Title", path=("Title", "Part"), uri="https://e.org/a", text="Said.", **chunk):
    values = {"anchor": "", "page": None} | chunk
    return Hit(
        kb="kb",
        score=1.0,
        parts=ScoreParts(0, 0, 0, 0),
        chunk=Chunk("c", "d", 0, 0, 1, "t", path, **values),
        uri=uri,
        title=title,
        document_type=DocumentType.OTHER,
        tags=(),
        fetched_at=datetime(2026, 1, 2, tzinfo=UTC),
        cut=lambda: text,
    )


def test_a_citation_quotes_and_names_the_source():
    assert hit(anchor="part", page=3).citation() == (
        "> Said.\n>\n> [Title › Part](<https://e.org/a#part>), page 3, fetched 2026-01-02\n"
    )
    assert hit(uri="notes/a.md").citation().endswith("> Title › Part, fetched 2026-01-02\n")


def test_the_title_is_not_said_again_as_a_heading():
    assert hit().headings == ("Part",)
    assert hit(path=("Part", "Title")).headings == ("Part", "Title")
    assert hit(path=()).headings == ()


@pytest.mark.parametrize("text", [HOSTILE, "1. x", "12) x", "- x", "+ x", "> x", "# x", "=== x"])
def test_what_documents_say_stays_text_in_a_citation(text):
    citation = hit(title=text, path=(text,), text=text).citation()
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(citation)
    assert [token.tag for token in tokens if token.nesting == 1] == ["blockquote", "p", "p"]
    quote, source = (token for token in tokens if token.type == "inline")
    assert {part.type for part in quote.children} <= {"text", "text_special"}
    assert "".join(part.content for part in quote.children) == text
    assert [part.type for part in source.children].count("link_open") == 1
    assert source.children[0].attrs == {"href": "https://e.org/a"}


@given(st.text(max_size=60))
def test_no_address_breaks_out_of_its_citation(rest):
    citation = hit(uri=f"https://e.org/{rest}").citation()
    assert len(citation.splitlines()) == 3 or not rest.isprintable()
    tokens = MarkdownIt("commonmark").parse(citation)
    source = [token for token in tokens if token.type == "inline"][-1]
    kinds = [part.type for part in source.children]
    assert kinds.count("link_open") <= 1
    assert not {"image", "html_inline"} & set(kinds)
