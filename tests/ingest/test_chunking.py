"""Chunking of any text, and of the structure of documentation."""

import os
import re
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kbkit.ingest.cutting import CutTask, chunk, embedded_text
from kbkit.ingest.spans import strategy_for
from kbkit.models import ChunkSpan, DocumentType
from kbkit.recipes import ChunkingSpec
from kbkit.text.markdown.structure import outline
from tests.growth import grows_with

pytestmark = pytest.mark.local

SOAK = "KBKIT_HYPOTHESIS_PROFILE" in os.environ
EXAMPLES = settings().max_examples if SOAK else int(os.environ.get("KBKIT_EXAMPLES", "40"))
STRATEGIES = ["auto", "headings", "paragraph", "page", "fixed", "sentence"]

words = st.text(st.sampled_from("abc Äß.!?,;*_`|{}<>-=~#\\[]()日。\t\r\f\x1c\u00a0"), max_size=40)
lines = st.one_of(
    words,
    st.just(""),
    st.builds("{} {}".format, st.sampled_from(["#", "##", "###", "######"]), words),
    st.builds("{} {} {{#a{}}}".format, st.sampled_from(["#", "##"]), words, st.integers(0, 3)),
    st.sampled_from(
        [
            *("```", "```python", "~~~", "~~~~", "  ```", "- ```", "> ```", "===", "---", "\f"),
            *("<!-- page 3 -->", "<!--", "-->", "<pre>", "</pre>", "| a | b |", "|---|---|"),
            *("- item", "1. item", "    code", "\tcode", "> quote", "***", "```x```"),
        ]
    ),
    st.builds(lambda word, count: (word + " ") * count, words, st.integers(1, 60)),
    st.builds(lambda count: "x" * count, st.integers(1, 900)),
)
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


@pytest.mark.parametrize(
    ("kind", "content", "strategy"),
    [
        ("manual", "Words.", "headings"),
        ("policy", "Words.", "paragraph"),
        ("other", "Words.", "paragraph"),
        ("policy", "# Top\n\nWords.", "headings"),
        ("other", "# Top\n\nWords.", "headings"),
    ],
)
def test_strategy_follows_document_type_and_headings(kind, content, strategy):
    assert strategy_for(outline(content), DocumentType(kind)) == strategy


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(content=documents, size=st.integers(100, 400), share=st.sampled_from([0, 0, 3, 10]))
@example(content=";\n```\n" + "x" * 97, size=100, share=3)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_spans_cover_all_text_in_order(strategy, content, size, share):
    overlap = size // share if share else 0
    check(content, chunk(content, DocumentType.OTHER, spec(strategy, size, overlap)), size)


GUIDE = """\
Before any heading.

# Guide {#top}

## Install `kbkit` with **pip** {#install}

Run [pip](https://example.org/a_(b)).

```bash
# not a heading
pip install kbkit
```

- step
  ~~~
  ## not one either
  ~~~

Usage
-----

Call \\_\\_init\\_\\_.

## Usage ##

Again.
"""


def test_headings_give_path_and_anchor():
    assert [(span.heading_path, span.anchor) for span in cut(GUIDE)] == [
        ((), ""),
        (("Guide", "Install kbkit with pip"), "install"),
        (("Guide", "Usage"), "usage"),
        (("Guide", "Usage"), "usage_1"),
    ]


def test_heading_without_text_joins_a_deeper_one_below_only():
    assert texts(GUIDE)[1].startswith("# Guide {#top}\n\n## Install")
    assert texts("## A\n\n## B\n\ntext") == ["## A", "## B\n\ntext"]


@pytest.mark.parametrize(
    ("heading", "title"),
    [
        ("# `__init__`", "__init__"),
        ("# snake_case_name", "snake_case_name"),
        (r"# 2 \* 3 \_x\_", "2 * 3 _x_"),
        ("# ***Bold*** _and_ <b>so</b> &amp; on", "Bold and so & on"),
        ("# ![logo](a.png) [`os.path`](#os)", "logo os.path"),
        ("# {#if} {#svelte}", "{#if}"),
        ("# C# {: #csharp .wide }", "C#"),
        ("Two\nlines\n===", "Two lines"),
        ("#", None),
        ("#no space", None),
        ("- item\n---", None),
        ("    # code", None),
    ],
)
def test_heading_paths_are_plain_text(heading, title):
    (span,) = cut(f"{heading}\n\ntext")
    assert span.heading_path == ((title,) if title else ())


def test_slugs_are_those_of_mkdocs():
    markdown = pytest.importorskip("markdown")
    hello = "Hello, World!"
    titles = [hello, hello, "Ünïcode & more", "日本", "a_b - c", "hello-world_1"]
    content = "".join(f"# {title}\n\nx\n\n" for title in titles)
    html = markdown.markdown(content, extensions=["toc"])
    assert [span.anchor for span in cut(content)] == re.findall(r'id="([^"]*)"', html)


def test_code_and_tables_stay_whole_or_are_cut_at_line_ends():
    code = "```\n" + "".join(f"line {n:03} of the code\n" for n in range(60)) + "```"
    table = "| a | b |\n|---|---|\n" + "".join(f"| {n:03} | x |\n" for n in range(60))
    small = "~~~\n" + "x = 1\n\n" * 40 + "~~~"
    content = f"# T\n\n{'Words here. ' * 40}\n\n{small}\n\n{code}\n\n{table}"
    pieces = texts(content, size=500)
    assert sum(small in piece for piece in pieces) == 1
    lines = [line for piece in pieces for line in piece.split("\n")]
    cut_up = [line for line in lines if "line 0" in line or "|" in line]
    assert len(cut_up) == 122
    assert set(cut_up) <= set(content.split("\n"))


def test_prose_is_cut_between_sentences():
    pieces = texts("# T\n\n" + "One sentence of some length, i.e. this one. " * 60, size=400)
    assert len(pieces) > 5
    assert all(piece.endswith(".") and not piece.endswith("i.e.") for piece in pieces)


@pytest.mark.parametrize("strategy", ["headings", "paragraph"])
def test_lists_are_cut_between_items(strategy):
    items = "".join(f"- Item {n} says one. And another, e.g. this.\n" for n in range(40))
    table = "| a | b |\n|---|---|\n" + "| One. Two. | x |\n" * 40
    pieces = texts(f"{items}\n{table}", strategy, 300)
    assert len(pieces) > 8
    assert all(piece.startswith(("- Item", "|")) and piece.endswith((".", "|")) for piece in pieces)
    assert sum(piece.count("- Item") for piece in pieces) == 40


def test_heading_does_not_end_a_chunk():
    content = "\n\n".join(f"# H{n}\n\n" + "word " * 70 for n in range(20))
    for piece in texts(content, "paragraph", 500):
        assert not piece.splitlines()[-1].startswith("#")


@pytest.mark.parametrize(
    ("content", "pages"),
    [
        ("one\ftwo\f\fthree", [1, 2, 4]),
        ("<!-- page 7 -->\n\none\n\n<!-- page 8 -->\n\n<!-- page 9 -->\ntwo", [7, 9]),
        ("```\n\f\n```\n\none", [1]),  # a form feed in code is code
        ("text", [None]),
    ],
)
def test_pages_are_cut_apart_and_numbered(content, pages):
    assert [span.page for span in cut(content, "page")] == pages


@pytest.mark.parametrize("strategy", ["fixed", "sentence"])
def test_chunks_overlap_within_a_section(strategy):
    content = "# A\n\n" + "Some words make a sentence. " * 60 + "\n\n# B\n\nEnd."
    spans = chunk(content, DocumentType.OTHER, spec(strategy, 400, 100))
    shared = [before.end - span.start for before, span in pairwise(spans)]
    assert all(0 < count <= 100 for count in shared[:-1])
    assert shared[-1] < 0
    assert all(content[span.start - 1].isspace() for span in spans[1:])


def test_unclosed_blocks_end_with_their_list_or_the_document():
    content = "- ```\n  x\n\n- <!-- y\n\n# A\n\ntext\n\n<!-- b\n\n# C\n\ny"
    assert [span.anchor for span in cut(content)] == ["", "a"]


@pytest.mark.parametrize("unit", ["x", "- ```\n", "<!--\n", "> ", "`*_[", "word "])
def test_hostile_text_takes_linear_time(unit):
    grows_with(lambda size: cut(f"# {unit}\n" + unit * (size // len(unit))), 25_000)


def test_lone_surrogates_keep_offsets_of_spans():
    content = "# A \ud800\n\ntext \udfff here"
    (span,) = cut(content)
    assert (span.start, span.end) == (0, len(content))


def test_blank_text_has_no_chunks():
    assert cut(" \n\t\n") == []


def test_embedded_text_has_title_path_and_text_without_anchors():
    text = "## Install {#install}\n\nTitle {#t}\n---\nUse {#x} here"
    plain = "## Install\n\nTitle\n---\nUse {#x} here"
    assert embedded_text("Guide", ("Guide", "Install"), text) == f"Guide\nInstall\n{plain}"
    assert embedded_text("", (), "x") == "x"
    text = "Says it. {#first}\n\n-   An item {#two}\n\n`{#code}` stays {#if}x"
    plain = "Says it.\n\n-   An item\n\n`{#code}` stays {#if}x"
    assert embedded_text("", (), text) == plain


def test_node_parser_for_pipelines_cuts_the_same_spans():
    from llama_index.core.schema import Document

    from kbkit.ingest.node_parser import SpanParser

    text = "# A\n\n" + "Some words here. " * 90 + "\n\n## B {#bee}\n\nThe end.\n"
    spans = chunk(text, DocumentType.MANUAL, ChunkingSpec(size=500))
    nodes = SpanParser(size=500).get_nodes_from_documents([Document(text=text)])
    assert len(spans) > 3
    assert [(n.start_char_idx, n.end_char_idx, n.metadata["anchor"]) for n in nodes] == [
        (span.start, span.end, span.anchor) for span in spans
    ]


def test_chunk_has_the_nearest_anchor_before_it():
    items = "\n\n".join(f"-   Item {n} {'says more ' * 8}. {{#i{n}}}" for n in range(6))
    content = f"# Title {{#t}}\n\n{'Words come first. ' * 9}\n\n{items}\n\n## Next {{#n}}\n\nEnd."
    anchors = {
        content[span.start : span.end]: span.anchor
        for span in chunk(content, DocumentType.MANUAL, ChunkingSpec(size=150))
    }
    items = {text: anchor for text, anchor in anchors.items() if text.startswith("-   Item")}
    assert len(items) >= 5
    assert all(anchor == f"i{text[9]}" for text, anchor in items.items())
    assert [anchor for text, anchor in anchors.items() if "Words" in text] == ["t", "t"]
    assert list(anchors.values())[-1] == "n"


def test_only_short_sections_share_a_chunk_of_paragraphs():
    names = ("Tea", "Milk", "Jam")
    long = "\n\n".join(f"# {name}\n\n" + f"{name} words. " * 20 for name in names)
    spans = cut(f"# Book\n\n{long}", "paragraph", 1000)
    assert [span.heading_path for span in spans] == [("Tea",), ("Milk",), ("Jam",)]
    short = "\n\n".join(f"## {name}\n\nA line." for name in names)
    assert len(cut(f"# Book\n\n{short}", "paragraph", 1000)) == 1
    assert len(cut(f"# Book\n\nA line.\n\n{long}\n\n{short}", "paragraph", 1000)) == 5
    chapters = cut(f"# Book\n\n{short.replace('##', '#')}", "paragraph", 1000)
    assert [span.heading_path for span in chapters] == [("Tea",), ("Milk",), ("Jam",)]


def test_documents_of_a_broken_worker_are_cut_in_this_process(workspace):
    kb = workspace.create("notes")
    kb.add("Tea", "# Tea\n\nSome words.")
    task = CutTask(tuple(kb.documents), kb.spec)
    assert task.broken("out of memory") == task.perform()
    assert [new.document.title for new, _ in task.perform()] == ["Tea"]
