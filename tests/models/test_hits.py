"""Citations and links of hits."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from kbkit.models import Chunk, DocumentType, Hit, Hits, ScoreParts

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


def test_citation_quotes_and_names_the_source():
    assert hit(anchor="part", page=3).citation() == (
        "> Said.\n>\n> [Title › Part](<https://e.org/a#part>), page 3, fetched 2026-01-02\n"
    )
    assert hit(uri="notes/a.md").citation().endswith("> Title › Part, fetched 2026-01-02\n")


def test_headings_leave_out_the_title():
    assert hit().headings == ("Part",)
    assert hit(path=("Part", "Title")).headings == ("Part", "Title")
    assert hit(path=()).headings == ()


@pytest.mark.parametrize("text", [HOSTILE, "1. x", "12) x", "- x", "+ x", "> x", "# x", "=== x"])
def test_citation_escapes_document_text(text):
    citation = hit(title=text, path=(text,), text=text).citation()
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(citation)
    assert [token.tag for token in tokens if token.nesting == 1] == ["blockquote", "p", "p"]
    quote, source = (token for token in tokens if token.type == "inline")
    assert {part.type for part in quote.children} <= {"text", "text_special"}
    assert "".join(part.content for part in quote.children) == text
    assert [part.type for part in source.children].count("link_open") == 1
    assert source.children[0].attrs == {"href": "https://e.org/a"}


@given(st.text(max_size=60))
def test_citation_escapes_addresses(rest):
    citation = hit(uri=f"https://e.org/{rest}").citation()
    assert len(citation.splitlines()) == 3 or not rest.isprintable()
    tokens = MarkdownIt("commonmark").parse(citation)
    source = [token for token in tokens if token.type == "inline"][-1]
    kinds = [part.type for part in source.children]
    assert kinds.count("link_open") <= 1
    assert not {"image", "html_inline"} & set(kinds)


def test_link_has_a_text_fragment_where_browsers_read_it():
    def url(words="", **values):
        return replace(hit(**values), opening=lambda: words).url

    assert url(anchor="part") == "https://e.org/a#part"
    assert url("-a, b & c é", anchor="p") == (
        "https://e.org/a#p:~:text=%2Da%2C%20b%20%26%20c%20%C3%A9"
    )
    assert url("some words") == "https://e.org/a#:~:text=some%20words"
    assert url("lone \ud800") == "https://e.org/a#:~:text=lone%20%3F"
    # Other files have no text fragments, and scripts read the fragments of some pages
    assert url("some words", uri="notes/a.md", anchor="p") == "notes/a.md#p"
    assert url("some words", uri="https://e.org/#/guide", anchor="p") == "https://e.org/#/guide"
    assert url("some words", uri="https://e.org/a.PDF?x=1", anchor="p", page=7) == (
        "https://e.org/a.PDF?x=1#page=7"
    )


def test_all_forms_of_a_hit_have_the_same_link():
    found = replace(hit(anchor="p"), opening=lambda: "some words")
    link = "https://e.org/a#p:~:text=some%20words"
    hits = Hits("q", (found,))
    assert found.to_dict()["url"] == link
    assert f"](<{link}>)" in found.citation()
    assert link in hits._repr_html_()
    assert list(hits.to_frame()["url"]) == [link]
