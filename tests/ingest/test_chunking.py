"""Chunking keeps its promises on any text, and knows documentation's structure."""

import re
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kbkit.ingest.chunking import chunk, embedded_text
from kbkit.models import ChunkSpan, DocumentType
from kbkit.recipes import ChunkingSpec

STRATEGIES = ["auto", "headings", "paragraph", "page", "fixed", "sentence"]

words = st.text(st.sampled_from("abc Äß.!?,;*_`|{}<>-=~#\\[]()日。\t\r\f\x1c\u00a0"), max_size=40)
lines = st.one_of(
    words,
    st.just(""),
    st.builds("{} {}".format, st.sampled_from(["#", "##", "###", "######"]), words),
    st.builds("{} {} {{#a{}}}".format, st.sampled_from(["#", "##"]), words, st.integers(0, 3)),
    st.sampled_from(
        ["```", "```python", "~~~", "~~~~", "  ```", "- ```", "> ```", "===", "---", "\f",
         "<!-- page 3 -->", "<!--", "-->", "<pre>", "</pre>", "| a | b |", "|---|---|", "- item",
         "1. item", "    code", "\tcode", "> quote", "***", "```x```"]
    ),
    st.builds(lambda word, count: (word + " ") * count, words, st.integers(1, 60)),
    st.builds(lambda count: "x" * count, st.integers(1, 900)),
)  # fmt: skip
documents = st.lists(lines, max_size=40).map("\n".join)


def spec(strategy: str, size: int = 1000, overlap: int = 0) -> ChunkingSpec:
    return ChunkingSpec(strategy=strategy, size=size, overlap=overlap)


def cut(content: str, strategy: str = "headings", size: int = 1000) -> list[ChunkSpan]:
    return chunk(content, DocumentType.OTHER, spec(strategy, size))


def texts(content: str, strategy: str = "headings", size: int = 1000) -> list[str]:
    return [content[span.start : span.end] for span in cut(content, strategy, size)]


def check(content: str, spans: list[ChunkSpan], size: int) -> None:
    covered = 0
    for before, span in zip([None, *spans], spans, strict=False):
        text = content[span.start : span.end]
        assert text
        assert text == text.strip()
        assert len(text) <= size
        assert not content[covered : span.start].strip()
        if before:
            assert span.start > before.start
            assert span.end > before.end
        covered = span.end
    assert not content[covered:].strip()


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(content=documents, size=st.integers(100, 400), share=st.sampled_from([0, 0, 3, 10]))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_spans_hold_all_text_in_order(strategy, content, size, share):
    overlap = size // share if share else 0
    check(content, chunk(content, DocumentType.OTHER, spec(strategy, size, overlap)), size)


@given(content=st.text(max_size=2000))
@settings(max_examples=100, deadline=None)
def test_any_text_will_do(content):
    check(content, chunk(content, DocumentType.MANUAL, spec("auto", 100)), 100)
