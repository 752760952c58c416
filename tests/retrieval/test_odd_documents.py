"""Documents as they should not be, in three languages: each is found, and pushes none aside."""

import json
import math

import pytest

import kbkit
from kbkit.ingest.cutting import chunk, describe
from kbkit.ingest.summaries import LENGTH, summary_text
from kbkit.knowledge_base import handle_of
from kbkit.models import DocumentType, Mode
from kbkit.models.reports import MAX_QUERY_LENGTH
from kbkit.recipes import ChunkingSpec, JsonlSource, KnowledgeBaseSpec, RetrievalSpec
from kbkit.retrieval.query import Query

LANGUAGES = {
    "english": {
        "word": ("kettle", "Kettle."),
        "tables": ("fares", "| stop | price |\n|---|---|\n| harbour | 3 |\n| castle | 4 |"),
        "code": ("brew.py", "```python\ndef brew(leaves):\n    return infuse(leaves)\n```"),
        "list": ("birds", "- heron\n- stork\n- crane"),
        "prose": ("Tides", "The sea rises and falls twice a day, drawn by the moon and the sun."),
        "asked": "when does the sea rise",
        "stop words": "the of and to is",
    },
    "german": {
        "word": ("Kessel", "Kessel."),
        "tables": ("Preise", "| Halt | Preis |\n|---|---|\n| Hafen | 3 |\n| Schloss | 4 |"),
        "code": ("bruehen.py", "```python\ndef bruehen(blatt):\n    return ziehen(blatt)\n```"),
        "list": ("Vögel", "- Reiher\n- Storch\n- Kranich"),
        "prose": ("Gezeiten", "Das Meer steigt und fällt zweimal am Tag, vom Mond angezogen."),
        "asked": "wann steigt das Meer",
        "stop words": "der die und das ist",
    },
    "japanese": {
        "word": ("やかん", "やかん。"),
        "tables": ("運賃", "| 停留所 | 値段 |\n|---|---|\n| 港 | 三 |\n| 城 | 四 |"),
        "code": ("入れる.py", "```python\ndef 入れる(葉):\n    return 蒸らす(葉)\n```"),
        "list": ("鳥", "- 鷺\n- 鸛\n- 鶴"),
        "prose": ("潮", "海は月と太陽に引かれて、一日に二度、満ちたり引いたりする。"),
        "asked": "海はいつ満ちるか",
        "stop words": "の は を が です",
    },
}
KINDS = ("word", "tables", "code", "list", "prose")
OTHER_SCRIPTS = ["чайник", "茶壺", "غلاية", "🫖", "κατσαρόλα"]


@pytest.fixture(scope="module", params=LANGUAGES)
def odd(request, tmp_path_factory):
    """A knowledge base of one language, and what it is made of."""
    said, folder = LANGUAGES[request.param], tmp_path_factory.mktemp("odd")
    pages = {said[kind][0]: said[kind][1] for kind in KINDS}
    pages[said["prose"][0] + " " + "x " * 1_500] = said["prose"][1]  # a title of 3,000 characters
    lines = [
        json.dumps({"uri": f"doc:{n}", "title": title, "text": text})
        for n, (title, text) in enumerate(pages.items())
    ]
    (folder / "docs.jsonl").write_text("\n".join(lines), encoding="utf-8")
    with kbkit.open(folder / "kb") as workspace:
        # Japanese has no stemmer; its words are found whichever language is named
        language = "english" if request.param == "japanese" else request.param
        spec = KnowledgeBaseSpec(language=language)
        kb = workspace.create("odd", spec=spec)
        kb.ingest(JsonlSource(path=str(folder / "docs.jsonl")))
        workspace.create("one", spec=spec).add("Tea", said["prose"][1])
        workspace.create("empty", spec=spec)
        yield workspace, said


def check(hits):
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 and math.isfinite(score) for score in scores)
    for hit in hits:
        assert hit.score == pytest.approx(hit.parts.total)
    assert hits.notes == ()


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("kind", KINDS)
def test_each_is_found_by_its_title_and_by_its_words(odd, kind, mode):
    workspace, said = odd
    title, text = said[kind]
    word = text.strip("|-` ").split("\n")[0].strip("|.。 `").split("|")[0]
    for query in (title, f"{title} {word}"):
        hits = workspace["odd"].search(query, mode=mode)
        check(hits)
        assert title in {hit.title for hit in hits[:2]}  # beside the one with the long title


def test_a_question_finds_prose_among_them(odd):
    workspace, said = odd
    hits = workspace["odd"].search(said["asked"])
    check(hits)
    assert hits[0].title.startswith(said["prose"][0])
    assert hits[0].parts.summary > 0
    assert hits[0].parts.page > 0


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("name", ["odd", "one", "empty"])
def test_odd_queries_are_answered(odd, name, mode):
    workspace, said = odd
    long = (said["asked"] + " ") * (MAX_QUERY_LENGTH // len(said["asked"]))
    for query in (said["word"][0], said["stop words"], long, *OTHER_SCRIPTS):
        hits = workspace[name].search(query, mode=mode)
        check(hits)
        assert len(hits) == 0 if name == "empty" else len(hits) <= 6
    if name == "one":
        assert workspace[name].search(long, mode=mode)[0].title == "Tea"
    check(workspace.search(long, mode=mode))


def test_a_title_of_3000_characters_takes_no_more_than_its_part_of_a_summary(odd):
    workspace, said = odd
    (title,) = (d.title for d in workspace["odd"].documents if len(d.title) > 3_000)
    summary = summary_text(title, said["prose"][1], said["prose"][1])
    assert len(summary) <= LENGTH
    assert said["prose"][1][:20] in summary
    hit = workspace["odd"].search(said["asked"])[0]
    assert hit.snippet


@pytest.mark.slow
def test_50000_headings_are_as_many_chunks_and_one_short_summary():
    content = "".join(f"## Part {n}\n\nText of part {n}.\n\n" for n in range(50_000))
    spans = chunk(content, DocumentType.MANUAL, ChunkingSpec(strategy="headings"))
    assert len(spans) == 50_000
    assert sum(span.end - span.start for span in spans) <= len(content)
    assert max(len(span.heading_path) for span in spans) == 1
    assert len(summary_text("Parts", content, describe("Parts", content, {}))) <= LENGTH


def test_headings_below_headings_stay_short():
    content = "".join(f"{'#' * (n % 6 + 1)} Level {n}\n\n" for n in range(6_000))
    spans = chunk(content, DocumentType.MANUAL, ChunkingSpec(strategy="headings"))
    assert max(len(span.heading_path) for span in spans) <= 6
    assert len(summary_text("Levels", content, describe("Levels", content, {}))) <= LENGTH


def test_without_weights_documents_are_chunks_alone(odd):
    """As if there were no summaries: nothing of theirs is read, and no candidate is theirs."""
    workspace, said = odd
    kb = workspace["odd"]
    alone = RetrievalSpec(summary_weight=0, page_weight=0, candidates=1)
    handle = handle_of(kb)
    for query in (said["asked"], said["word"][0]):
        hits = kb.search(query, retrieval=alone)
        assert all(hit.parts.summary == hit.parts.page == 0 for hit in hits)
        asked = Query.of(query, retrieval=alone, limit=1)
        pool = handle.retriever.pool(asked)
        assert pool.candidates.ranked <= 2  # the best of either retriever of chunks
        assert not pool.columns["summary"].any()
        assert not pool.columns["page"].any()
        whole = handle.retriever.pool(Query.of(query, limit=1))
        assert whole.candidates.ranked > pool.candidates.ranked
