"""Odd documents in three languages."""

import math

import pytest

import kbkit
from kbkit.ingest.cutting import MAX_SUMMARY_LENGTH as LENGTH
from kbkit.ingest.cutting import chunk, describe, summary_text
from kbkit.knowledge_base import handle_of
from kbkit.models import DocumentType, Mode, SourceDocument
from kbkit.recipes import ChunkingSpec, KnowledgeBaseSpec, RetrievalSpec
from kbkit.retrieval.query import Query

LANGUAGES = {
    "english": {
        "word": ("kettle", "Kettle."),
        "tables": ("fares", "| stop | price |\n|---|---|\n| harbour | 3 |\n| castle | 4 |"),
        "code": ("brew.py", "```python\ndef brew(leaves):\n    return infuse(leaves)\n```"),
        "list": ("birds", "- heron\n- stork\n- crane"),
        "prose": ("Tides", "The sea rises and falls twice a day, drawn by the moon and the sun."),
        "asked": "when does the sea rise",
    },
    "german": {
        "word": ("Kessel", "Kessel."),
        "tables": ("Preise", "| Halt | Preis |\n|---|---|\n| Hafen | 3 |\n| Schloss | 4 |"),
        "code": ("bruehen.py", "```python\ndef bruehen(blatt):\n    return ziehen(blatt)\n```"),
        "list": ("Vögel", "- Reiher\n- Storch\n- Kranich"),
        "prose": ("Gezeiten", "Das Meer steigt und fällt zweimal am Tag, vom Mond angezogen."),
        "asked": "wann steigt das Meer",
    },
    "japanese": {
        "word": ("やかん", "やかん。"),
        "tables": ("運賃", "| 停留所 | 値段 |\n|---|---|\n| 港 | 三 |\n| 城 | 四 |"),
        "code": ("入れる.py", "```python\ndef 入れる(葉):\n    return 蒸らす(葉)\n```"),
        "list": ("鳥", "- 鷺\n- 鸛\n- 鶴"),
        "prose": ("潮", "海は月と太陽に引かれて、一日に二度、満ちたり引いたりする。"),
        "asked": "海はいつ満ちるか",
    },
}
KINDS = ("word", "tables", "code", "list", "prose")


@pytest.fixture(scope="module", params=LANGUAGES)
def odd(request, tmp_path_factory):
    """A workspace of one language, and its texts."""
    texts = LANGUAGES[request.param]
    pages = [texts[kind] for kind in KINDS]
    title, prose = texts["prose"]
    pages.append((f"{title} {'x ' * 1_500}", prose))  # a title of 3,000 characters
    with kbkit.open(tmp_path_factory.mktemp("odd")) as workspace:
        # Japanese has no stemmer; its words are found in any language
        language = "english" if request.param == "japanese" else request.param
        spec = KnowledgeBaseSpec(language=language)
        workspace.create("odd", spec=spec).ingest(
            SourceDocument(f"doc:{n}", title, text) for n, (title, text) in enumerate(pages)
        )
        yield workspace, texts


def check(hits):
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 and math.isfinite(score) for score in scores)
    for hit in hits:
        assert hit.score == pytest.approx(hit.parts.total)
    assert hits.notes == ()


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("kind", KINDS)
def test_odd_document_is_found_by_title_and_words(odd, kind, mode):
    workspace, texts = odd
    title, text = texts[kind]
    word = text.strip("|-` ").split("\n")[0].strip("|.。 `").split("|")[0]
    for query in (title, f"{title} {word}"):
        hits = workspace["odd"].search(query, mode=mode)
        check(hits)
        assert title in {hit.title for hit in hits[:2]}  # beside the one with the long title


def test_question_finds_prose_among_odd_documents(odd):
    workspace, texts = odd
    hits = workspace["odd"].search(texts["asked"])
    check(hits)
    assert hits[0].title.startswith(texts["prose"][0])
    assert hits[0].parts.summary > 0
    assert hits[0].parts.page > 0


def test_title_of_3000_characters_takes_its_share_of_a_summary(odd):
    workspace, texts = odd
    (title,) = (d.title for d in workspace["odd"].documents if len(d.title) > 3_000)
    summary = summary_text(title, texts["prose"][1], texts["prose"][1])
    assert len(summary) <= LENGTH
    assert texts["prose"][1][:20] in summary
    hit = workspace["odd"].search(texts["asked"])[0]
    assert hit.snippet


@pytest.mark.slow
def test_50000_headings_give_as_many_chunks_and_a_short_summary():
    content = "".join(f"## Part {n}\n\nText of part {n}.\n\n" for n in range(50_000))
    spans = chunk(content, DocumentType.MANUAL, ChunkingSpec(strategy="headings"))
    assert len(spans) == 50_000
    assert sum(span.end - span.start for span in spans) <= len(content)
    assert max(len(span.heading_path) for span in spans) == 1
    assert len(summary_text("Parts", content, describe("Parts", content, {}))) <= LENGTH


def test_nested_headings_give_short_paths_and_summary():
    content = "".join(f"{'#' * (n % 6 + 1)} Level {n}\n\n" for n in range(6_000))
    spans = chunk(content, DocumentType.MANUAL, ChunkingSpec(strategy="headings"))
    assert max(len(span.heading_path) for span in spans) <= 6
    assert len(summary_text("Levels", content, describe("Levels", content, {}))) <= LENGTH


def test_search_without_summary_and_page_weights_reads_chunks_only(odd):
    workspace, texts = odd
    kb = workspace["odd"]
    alone = RetrievalSpec(summary_weight=0, page_weight=0, candidates=1)
    retriever = handle_of(kb).retriever
    for query in (texts["asked"], texts["word"][0]):
        hits = kb.search(query, retrieval=alone)
        assert all(hit.parts.summary == hit.parts.page == 0 for hit in hits)
        pool = retriever.pool(Query.of(query, retrieval=alone, limit=1))
        assert pool.ranked <= 2  # the best of either retriever of chunks
        assert not pool.columns["summary"].any()
        assert not pool.columns["page"].any()
        whole = retriever.pool(Query.of(query, limit=1))
        assert whole.ranked > pool.ranked
