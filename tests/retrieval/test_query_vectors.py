"""Embedding of queries by the model, by the fitted encoder, or not at all."""

import html
from datetime import UTC, datetime
from typing import ClassVar

import numpy as np
import pytest
from llama_index.core import Document
from llama_index.core.base.embeddings.base import BaseEmbedding

import kbkit
from kbkit.errors import ConfigError, EmbedderError, EmbedderUnreachableError
from kbkit.recipes import KnowledgeBaseSpec, RetrievalSpec
from kbkit.retrieval.encoder_fitting import _MADE_BY, _read, is_due, is_outdated
from kbkit.stores.catalog import knowledge_bases, ratings, summaries
from kbkit.testing import HashEmbedder

SUBJECTS = ("tea", "milk", "bread", "kettle", "oven", "flour", "water", "sugar", "salt", "butter")
CHUNKS_ALONE = RetrievalSpec(query_encoder="fitted", summary_weight=0)
MODEL = {"type": "llama-index", "model": f"{__name__}:Model"}
FITTED = RetrievalSpec(query_encoder="fitted")


class Model(BaseEmbedding):
    """A model behind a network that may be down, whose key may be missing."""

    kind: str = ""
    state: ClassVar[str] = "up"
    queries: ClassVar[list[str]] = []

    def __init__(self, **arguments):
        if Model.state == "no key":
            raise ValueError("no API key found")
        super().__init__(**arguments)

    def _get_query_embedding(self, query):
        Model.queries.append(query)
        if Model.state == "down":
            raise ConnectionError("no route to host")
        if Model.state == "broken":
            raise RuntimeError("out of credit")
        return HashEmbedder(32, self.kind).embed_query(query).tolist()

    def _get_text_embedding(self, text):
        return HashEmbedder(32, self.kind).embed_query(text).tolist()

    async def _aget_query_embedding(self, query):
        return self._get_query_embedding(query)


@pytest.fixture(autouse=True)
def up():
    Model.state = "up"
    Model.queries.clear()
    yield
    Model.state = "up"


def config(encoder="model", embedding=MODEL):
    retrieval = {"query_encoder": encoder}
    return KnowledgeBaseSpec.model_validate({"embedding": embedding, "retrieval": retrieval})


def pages(*subjects):
    return [
        Document(text=f"# About {name}\n\nAll there is to know about {name}.", id_=name)
        for name in subjects
    ]


def filled(workspace, encoder="model", name="drinks"):
    kb = workspace.create(name, spec=config(encoder))
    kb.ingest(pages(*SUBJECTS))
    return kb


def remove_encoder(workspace, kb):
    with workspace._stores.database.write() as connection:
        ratings.remove_encoder(connection, kb.id)


def save_encoder(
    workspace, kb, terms, vectors, *, embedder, version=1, report=None, target="chunks"
):
    now, count = datetime.now(UTC), len(SUBJECTS)
    state = ratings.EncoderState(embedder, now, version, count, report or {})
    encoder = ratings.EncoderRow(state, terms, vectors)
    with workspace._stores.database.write() as connection:
        ratings.save_encoder(connection, kb.id, encoder, target)


def due(workspace, kb):
    with workspace._stores.database.read() as connection:
        return is_due(connection, knowledge_bases.get_by_id(connection, kb.id))


@pytest.mark.parametrize("state", ["up", "down", "no key"])
def test_fitted_encoder_needs_no_model(workspace, state):
    filled(workspace, "fitted")
    Model.state = state
    Model.queries.clear()
    with kbkit.open(workspace.path) as fresh:
        for mode in ("hybrid", "dense"):
            hits = fresh["drinks"].search("know about kettle", mode=mode)
            assert hits[0].title == "About kettle"
            assert hits[0].parts.cosine > 0.5
            assert hits.notes == ()
    assert Model.queries == []


def test_query_settings_choose_the_encoder(workspace):
    kb = filled(workspace)
    Model.queries.clear()
    kb.search("kettle", retrieval=FITTED)
    assert Model.queries == []
    kb.search("kettle")
    assert Model.queries == ["kettle"]


def test_unknown_words_find_no_chunks_by_meaning(workspace):
    kb = filled(workspace, "fitted")
    assert len(kb.search("zeppelin", mode="dense", retrieval=CHUNKS_ALONE)) == 0
    assert len(kb.search("the of", mode="dense", retrieval=CHUNKS_ALONE)) == 0
    by_summaries = kb.search("zeppelin", mode="dense")
    assert by_summaries
    assert all(hit.parts.dense == 0 < hit.parts.summary for hit in by_summaries)


def test_fit_by_another_workspace_is_noticed(workspace):
    kb = filled(workspace, "fitted")
    kb.add("Zeppelin", "# Zeppelin\n\nA zeppelin flies.")
    assert len(kb.search("zeppelin", mode="dense", retrieval=CHUNKS_ALONE)) == 0
    with kbkit.open(workspace.path) as other:
        other["drinks"].chunks.fit_query_encoder()
    assert kb.search("zeppelin", mode="dense")[0].title == "Zeppelin"


def test_model_stands_in_for_a_missing_encoder_with_a_note(workspace):
    kb = workspace.create("drinks", spec=config("fitted"))
    kb.add("Tea", "# Tea\n\nGreen tea.")
    hits = kb.search("green tea")
    assert hits[0].parts.cosine > 0
    assert hits.notes == (
        "drinks: its model embedded the query, since no query encoder is fitted yet",
    )


def test_encoder_of_another_model_is_not_used(workspace):
    kb = filled(workspace, "fitted")
    other = config("fitted", {**MODEL, "arguments": {"kind": "other"}})
    kb.configure(other)
    assert kb.search("kettle", mode="dense")[0].title == "About kettle"
    with workspace._stores.database.read() as connection:
        stored = ratings.load_encoder(connection, kb.id)
    assert stored.state.embedder == kb.info().embedder
    save_encoder(workspace, kb, stored.terms, stored.vectors, embedder="another")
    assert "no query encoder" in kb.search("kettle").notes[0]


@pytest.mark.parametrize(
    ("state", "reason"), [("down", "no route to host"), ("no key", "no API key found")]
)
def test_encoder_stands_in_for_an_unreachable_model_with_a_note(workspace, state, reason):
    filled(workspace)
    Model.state = state
    with kbkit.open(workspace.path) as fresh:
        for mode in ("hybrid", "dense"):
            hits = fresh["drinks"].search("kettle", mode=mode)
            assert hits[0].title == "About kettle"
            assert hits[0].parts.cosine > 0
            (note,) = hits.notes
            assert note.startswith("drinks: its fitted query encoder embedded the query, since")
            assert reason in note
            assert hits.to_dicts()[0]["notes"] == [note]
            assert html.escape(note) in hits._repr_html_()
        assert fresh["drinks"].search("kettle", mode="lexical").notes == ()


@pytest.mark.parametrize("state", ["down", "no key"])
def test_without_model_and_encoder_hybrid_searches_words_and_dense_fails(workspace, state):
    remove_encoder(workspace, filled(workspace))
    Model.state = state
    with kbkit.open(workspace.path) as fresh:
        kb = fresh["drinks"]
        hits = kb.search("kettle", retrieval=RetrievalSpec(summary_weight=0))
        assert [hit.title for hit in hits] == ["About kettle"]
        assert hits[0].parts.cosine == 0
        assert kb.search("kettle")[0].title == "About kettle"
        assert "drinks: its passages were searched by words only, since" in hits.notes[0]
        error = EmbedderUnreachableError if state == "down" else EmbedderError
        with pytest.raises(error, match="Model"):
            kb.search("kettle", mode="dense")


def test_error_of_the_model_is_raised(workspace):
    kb = filled(workspace)
    Model.state = "broken"
    for mode in ("hybrid", "dense"):
        with pytest.raises(EmbedderError, match="out of credit"):
            kb.search("kettle", mode=mode)


def test_unreachable_model_is_not_asked_again_at_once(workspace):
    kb = filled(workspace)
    Model.queries.clear()
    Model.state = "down"
    first, second = kb.search("kettle"), kb.search("tea")
    assert first.notes == second.notes != ()
    assert Model.queries == ["kettle"]
    Model.state = "up"
    assert kb.search("milk", mode="dense").notes == ()  # dense search cannot do without it
    assert Model.queries == ["kettle", "milk"]


def test_unreachable_model_of_one_of_several_knowledge_bases(workspace):
    filled(workspace)
    workspace.create("static").add("Kettles", "# Kettles\n\nA kettle boils water.")
    Model.state = "down"
    hits = workspace.search("kettle")
    assert {hit.kb for hit in hits} == {"drinks", "static"}
    assert len(hits.notes) == 1


def test_encoder_is_fitted_again_after_a_fifth_has_changed(workspace):
    kb = filled(workspace, "fitted")
    assert not due(workspace, kb)
    report = kb.ingest(pages("yeast", "honey"))
    assert "fit" not in report.seconds
    assert not due(workspace, kb)
    report = kb.ingest(pages("jam"))
    assert "fit" in report.seconds
    assert kb.search("jam", mode="dense")[0].title == "About jam"
    for name in ("tea", "milk", "bread"):
        kb.documents.delete(name)
    assert due(workspace, kb)


def test_encoder_of_an_earlier_kbkit_is_fitted_again(workspace):
    kb = filled(workspace, "fitted")
    with workspace._stores.database.read() as connection:
        stored = ratings.load_encoder(connection, kb.id)
    report = {name: value for name, value in stored.state.report.items() if name != "made_by"}
    embedder = stored.state.embedder
    save_encoder(workspace, kb, stored.terms, stored.vectors, embedder=embedder, report=report)
    assert due(workspace, kb)
    assert "fit" in kb.ingest(pages("yeast")).seconds
    assert not due(workspace, kb)


@pytest.mark.parametrize(
    ("made_by", "embedder", "outdated"),
    [
        (_MADE_BY["summaries"], "summaries:x", False),
        (_MADE_BY["summaries"], "summaries:y", True),
        ("an older kbkit", "summaries:x", True),
    ],
)
def test_summary_encoder_is_outdated_with_its_embedder_or_kbkit(
    workspace, made_by, embedder, outdated
):
    kb = filled(workspace, "fitted")
    with workspace._stores.database.write() as transaction:
        summaries.search_with(transaction, kb.id, "summaries:x", "summaries:x")
        row = knowledge_bases.get_by_id(transaction, kb.id)
        assert is_outdated(transaction, row, "summaries")
    options = {"embedder": embedder, "version": row.version, "target": "summaries"}
    report = {"made_by": made_by, "last_seq": 10**9}
    vectors = np.ones((1, 2), np.float32)
    save_encoder(workspace, kb, ("tea",), vectors, report=report, **options)
    with workspace._stores.database.read() as transaction:
        assert is_outdated(transaction, row, "summaries") is outdated
        assert not is_outdated(transaction, row, "chunks")


@pytest.mark.parametrize(
    ("encoder", "embedding", "fitted"),
    [
        ("model", {"type": "static"}, False),
        ("fitted", {"type": "static"}, True),
        ("model", MODEL, True),
    ],
)
def test_encoders_are_fitted_unless_a_static_model_embeds_queries(
    workspace, encoder, embedding, fitted
):
    kb = workspace.create("drinks", spec=config(encoder, embedding))
    assert not due(workspace, kb)  # it is empty
    report = kb.ingest(pages(*SUBJECTS))
    assert ("fit" in report.seconds) is fitted
    with workspace._stores.database.read() as connection:
        assert (ratings.encoder_state(connection, kb.id) is not None) is fitted


def test_fit_reports_whether_a_local_model_gave_a_prior(workspace):
    local = workspace.create("local", spec=config("model", {"type": "static"}))
    local.ingest(pages(*SUBJECTS))
    report = local.chunks.fit_query_encoder()
    assert report["chunks"] == len(SUBJECTS)
    assert report["prior"] is True
    assert filled(workspace).chunks.fit_query_encoder()["prior"] is False


def test_fit_reads_titles_and_headings_of_chunks(workspace):
    kb = workspace.create("drinks", spec=config())
    kb.ingest(pages("tea"))
    kb.add("Milk", "# Milk\n\nIt is white.\n\n## Foam\n\nIt is stirred.")
    with workspace._stores.database.read() as connection:
        row = knowledge_bases.get_by_id(connection, kb.id)
        read = _read(connection, row, str.split)
    assert [list(each) for each in read.headings] == [["About", "tea"], ["Milk"], ["Milk", "Foam"]]


def test_static_word_vectors_help_fit_many_chunks_without_the_model(workspace):
    kb = workspace.create("drinks", spec=config())
    parts = [f"## Cup {n}\n\nAll there is to know about cup {n}." for n in range(500)]
    kb.ingest(Document(text="\n\n".join(parts)))
    Model.state = "down"
    report = kb.chunks.fit_query_encoder()
    assert report["chunks"] == 500
    assert (report["words"], report["prior"]) == (True, False)


def test_fit_without_chunks_or_terms_is_an_error(workspace):
    kb = workspace.create("drinks", spec=config("fitted", {"type": "static"}))
    with pytest.raises(ConfigError, match="no chunks"):
        kb.chunks.fit_query_encoder()
    report = kb.ingest(Document(text="the of and"))
    assert report.new == 1
    with pytest.raises(EmbedderError, match="term"):
        kb.chunks.fit_query_encoder()
    assert "no query encoder" in kb.search("tea").notes[0]
