"""The embedding `auto`: static vectors first, MiniLM's while the knowledge base is small."""

import json

import pytest

import kbkit
from kbkit.embedding.onnx import MiniLmEmbedder
from kbkit.ingest import document_writer
from kbkit.knowledge_base import handle_of
from kbkit.knowledge_base.improving import Improving
from kbkit.recipes import (
    AutoEmbedding,
    JsonlSource,
    KnowledgeBaseSpec,
    OnnxEmbedding,
    RetrievalSpec,
    StaticEmbedding,
)
from kbkit.stores.catalog import corpus
from tests.stores.workspaces import opened

CUPS = 12
LIMIT = 24


TEXT = "Is drunk from a cup of number {n}, which stands on the table."


def cups(path, count=CUPS, text=TEXT, name="tea"):
    with path.open("w") as file:
        for n in range(count):
            document = {"uri": f"{name}:{n}", "title": f"Tea {n}", "text": text.format(n=n)}
            file.write(json.dumps(document) + "\n")
    return JsonlSource(path=str(path))


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.setenv("KBKIT_IMPROVE", "off")
    monkeypatch.setenv("KBKIT_MINILM_CHUNKS", str(LIMIT))
    with kbkit.open(tmp_path / "kb") as workspace:
        yield workspace


@pytest.fixture
def kb(workspace, tmp_path):
    """Twelve chunks with vectors by MiniLM."""
    kb = workspace.create("drinks")
    kb.ingest(cups(tmp_path / "cups.jsonl"))
    assert state(kb) == ("static", "static")
    assert not kb.improve()
    assert state(kb) == ("minilm", "onnx")
    return kb


def state(kb):
    """The choice, and the kind of vectors that serve."""
    return kb.spec.embedding.model, handle_of(kb).row().embedder.partition(":")[0]


@pytest.fixture
def embedded(monkeypatch):
    """Texts that MiniLM embeds."""
    texts, embed = [], MiniLmEmbedder.embed_passages

    def noted(embedder, passages):
        texts.extend(passages)
        return embed(embedder, passages)

    monkeypatch.setattr(MiniLmEmbedder, "embed_passages", noted)
    return texts


def test_minilm_replaces_static_vectors_and_stays(kb):
    assert kb.spec.retrieval.dense_weight == 0.6
    assert kb.search("mug", mode="dense")[0].parts.cosine > 0
    kb.configure(KnowledgeBaseSpec(retrieval=RetrievalSpec(candidates=50)))
    assert state(kb) == ("minilm", "onnx")
    assert (kb.spec.retrieval.dense_weight, kb.spec.retrieval.candidates) == (0.6, 50)


@pytest.mark.parametrize(
    "embedding", [StaticEmbedding(), AutoEmbedding(text="both"), OnnxEmbedding(preset="minilm")]
)
def test_a_recipe_changes_the_embedding(kb, embedding):
    kb.configure(KnowledgeBaseSpec(embedding=embedding))
    assert kb.spec.embedding.text == embedding.text
    kind = "static" if isinstance(embedding, StaticEmbedding) else "onnx"
    assert handle_of(kb).row().embedder.startswith(kind)
    kb.improve()
    kb.configure(KnowledgeBaseSpec())
    kb.improve()
    assert state(kb) == ("minilm", "onnx")


def test_large_and_foreign_knowledge_bases_stay_static(workspace, tmp_path):
    kb = workspace.create("large")
    kb.ingest(cups(tmp_path / "a.jsonl", LIMIT + 1))
    foreign = workspace.create("tassen")
    text = "Der Tee und die Tassen sind auf dem Tisch, und das ist nicht die Nummer {n} von ihnen."
    foreign.ingest(cups(tmp_path / "b.jsonl", text=text))
    for each in (kb, foreign):
        assert not each.improve().chunks
        assert state(each) == ("static", "static")


def test_growth_beyond_twice_the_limit_returns_to_static_vectors(kb, tmp_path):
    kb.ingest(cups(tmp_path / "cups.jsonl", 2 * LIMIT))
    kb.improve()
    assert state(kb) == ("minilm", "onnx")
    kb.ingest(cups(tmp_path / "cups.jsonl", 2 * LIMIT + 1))
    kb.improve()
    assert state(kb) == ("static", "static")
    assert kb.spec.retrieval.dense_weight == 0.35


def test_a_large_ingest_does_not_wait_for_minilm(kb, tmp_path, monkeypatch, embedded):
    monkeypatch.setattr(document_writer, "_MANY", 2)
    monkeypatch.setattr(document_writer, "_CHARACTERS", 100)
    text = "Another text of document {n}."
    kb.ingest(cups(tmp_path / "new.jsonl", text=text, name="new"))
    assert 2 < len([each for each in embedded if "\nAnother" in each]) < CUPS
    assert lengths(kb) == {256}
    embedded.clear()
    kb.improve()
    assert state(kb) == ("minilm", "onnx")
    assert not [each for each in embedded if "cup" in each]  # their vectors were kept
    assert lengths(kb) == {384}


def lengths(kb):
    """Dimensions of the vectors that are stored, without zeros."""
    with kb._stores.database.read() as transaction:
        seqs = corpus.chunk_seqs(transaction, kb.id).tolist()
        matrix = corpus.vectors_of(transaction, handle_of(kb).row().dimensions, seqs)
    assert (abs(matrix).sum(axis=1) > 0).all()
    return {matrix.shape[1]}


def test_an_export_does_not_wait_for_chunks(workspace, tmp_path):
    kb = workspace.create("drinks")
    kb.ingest(cups(tmp_path / "cups.jsonl"))
    Improving(handle_of(kb))._choose_model()
    assert kb.info().waiting.chunks == CUPS
    kb.export(folder=tmp_path / "site", build=False)
    assert state(kb) == ("minilm", "static")


def test_static_vectors_serve_meanwhile_on_a_server_too(postgres, tmp_path, monkeypatch):
    settings = {"improve": "off", "minilm_chunks": LIMIT}
    with opened(tmp_path / "kb", postgres.empty(), **settings) as workspace:
        kb = workspace.create("drinks")
        source = cups(tmp_path / "cups.jsonl", text="The same text.", name="same")
        kb.ingest(source)
        kb.improve()
        assert lengths(kb) == {384}
        monkeypatch.setattr(document_writer, "_MANY", 2)
        monkeypatch.setattr(document_writer, "_CHARACTERS", 100)
        kb.ingest(cups(tmp_path / "new.jsonl", text="Another text of document {n}.", name="new"))
        assert lengths(kb) == {256}
        kb.improve()
        assert (state(kb), lengths(kb)) == (("minilm", "onnx"), {384})
