"""Vectors of chunks: of their text, of the statements of annotations, or of both."""

import json
import re

import numpy as np
import pytest

import kbkit
from kbkit.errors import ConfigError, RecipeError
from kbkit.ingest.embedding import embed_sums
from kbkit.knowledge_base import handle_of
from kbkit.recipes import (
    ChunkingSpec,
    KnowledgeBaseSpec,
    LlmAnnotation,
    NoAnnotation,
    RetrievalSpec,
    StaticEmbedding,
    load_recipe,
)
from kbkit.stores.catalog import corpus, ratings
from kbkit.testing import HashEmbedder
from tests.ingest.scripted_llm import serve

PATH = "tests.ingest.scripted_llm:ScriptedLLM"
QUERY = "feline purring sofa"
COUNT = 12


def statements_of(number):
    """Statements in words that do not occur in the passage."""
    text = "A feline is purring on the sofa." if number == 7 else f"Harvest of field {number}."
    return [{"normalized_text": text, "frame": None}]


def farmer(prompt, statements=statements_of):
    """Answers about passages that name a number."""
    places = re.findall(r"^\[(\d+)\]$.*?Ledger (\d+)", prompt, re.MULTILINE | re.DOTALL)
    passages = [
        {"number": int(place), "statements": statements(int(number))} for place, number in places
    ]
    return json.dumps({"passages": passages})


def spec(service, text="normalized", **embedding):
    return KnowledgeBaseSpec.model_validate(
        {
            "embedding": {"type": "static", "text": text, **embedding},
            "annotation": LlmAnnotation(llm=PATH, arguments={"api_base": service.address}),
            "chunking": ChunkingSpec(size=200),
        }
    )


def wordy_spec(service, text="normalized", **embedding):
    model = {"type": "llama-index", "model": "wordy_embedding:WordyEmbedding", "arguments": {}}
    return spec(service, text, **model | embedding)


def filled(workspace, spec):
    kb = workspace.create("ledgers", spec=spec)
    for number in range(COUNT):
        kb.add(f"L{number}", f"Ledger {number} has columns of sums.\n", source=f"text:{number}")
    kb.improve()
    return kb


def first(kb, **options):
    hits = kb.search(QUERY, mode="dense", **options)
    return hits[0].uri, round(hits[0].parts.cosine, 3)


def vectors(kb):
    """Vectors of chunks by id, the same in catalog and snapshot."""
    with kb._stores.database.read() as transaction:
        seqs = corpus.chunk_seqs(transaction, kb.id).tolist()
        held = corpus.vectors_of(transaction, kb.info().dimensions, seqs)
        by_id = corpus.seqs_by_id(transaction, [chunk.id for chunk in kb.chunks])
    snapshot = kb._stores.snapshots.renew(kb.id)
    assert np.array_equal(held, snapshot.vectors_of(np.arange(len(snapshot))))
    return dict(zip(sorted(by_id, key=by_id.get), held, strict=True))


def test_passage_is_found_by_statements_of_a_model(workspace):
    with serve(farmer) as service:
        kb = filled(workspace, spec(service, "chunk"))
        plain = vectors(kb)
        assert first(kb)[1] < 0.3
        assert kb.configure(spec(service, "normalized")).chunks_embedded == 0
        assert first(kb)[0] == "text:7"
        cosine = first(kb)[1]
        normalized = vectors(kb)
        assert not any(np.array_equal(plain[known], normalized[known]) for known in plain)
        kb.configure(spec(service, "both"))
        assert first(kb)[0] == "text:7"
        assert cosine > first(kb)[1] > 0.3
        calls = len(service.asked)
        kb.configure(spec(service, "chunk"))
        assert vectors(kb).keys() == plain.keys()
        assert all(np.array_equal(plain[known], each) for known, each in vectors(kb).items())
        assert len(service.asked) == calls
    with kbkit.open(workspace.path) as reopened:
        assert first(reopened["ledgers"])[1] < 0.3


def test_passage_is_found_by_its_own_words(workspace):
    with serve(farmer) as service:
        kb = filled(workspace, spec(service))
        assert kb.search("ledger 3 columns", mode="lexical")[0].uri == "text:3"
        assert kb.search("ledger 3 columns of sums")[0].uri == "text:3"


def test_vector_of_several_statements_is_their_sum(workspace):
    def two(number):
        engines = {"normalized_text": f"Engines of train {number}.", "frame": None}
        return [*statements_of(number), engines]

    with serve(lambda prompt: farmer(prompt, two)) as service:
        kb = filled(workspace, spec(service))
        embedder = handle_of(kb).embedders.of(handle_of(kb).row())
        [chunk] = [each for each in kb.chunks if "Ledger 7 " in each.text]
        texts = ["L7\nA feline is purring on the sofa.", "L7\nEngines of train 7."]
        total = embedder.embed_passages(texts).sum(axis=0)
        expected = total / np.linalg.norm(total)
        assert vectors(kb)[chunk.id] == pytest.approx(expected, abs=1e-3)
        assert kb.search("engines of a train", mode="dense")[0].parts.cosine > 0.3
        assert first(kb)[0] == "text:7"


def test_only_changed_texts_are_embedded_again(workspace, wordy):
    with serve(farmer) as service:
        kb = filled(workspace, wordy_spec(service))
        wordy.batches.clear()
        kb.improve()
        assert wordy.batches == []
        kb.documents.update("text:3", content="Ledger 30 has columns of sums.\n")
        kb.improve()
        texts = [text for batch in wordy.batches for text in batch]
        assert texts == ["L3\nLedger 30 has columns of sums.", "L3\nHarvest of field 30."]
        wordy.batches.clear()
        # a new name changes annotations, but no statements
        before = vectors(kb)
        annotation = {**kb.spec.annotation.model_dump(), "names": [{"name": "columns"}]}
        changed = {"annotation": LlmAnnotation.model_validate(annotation)}
        kb.configure(kb.spec.model_copy(update=changed))
        assert [each.entities for each in kb.annotations] == [("columns",)] * COUNT
        assert wordy.batches == []
        assert kb.improve().chunks == 0
        after = vectors(kb)
        assert all(np.array_equal(before[known], after[known]) for known in before)


def test_unchanged_chunks_of_a_changed_document_keep_their_vectors(workspace, wordy):
    def text(*numbers):
        return "\n\n".join(f"## Part {n}\n\nLedger {n} has columns of sums." for n in numbers)

    with serve(farmer) as service:
        small = wordy_spec(service).model_copy(update={"chunking": ChunkingSpec(size=100)})
        kb = workspace.create("ledgers", spec=small)
        kb.add("Long", text(*range(6)), source="text:long")
        kb.improve()
        wordy.batches.clear()
        kb.add("Long", text(0, 1, 2, 33, 4, 5), source="text:long")
        kb.improve()
        texts = [each.rpartition("\n")[2] for batch in wordy.batches for each in batch]
        assert texts == ["Ledger 33 has columns of sums.", "Harvest of field 33."]


def test_another_embedder_embeds_the_same_texts(workspace, wordy):
    with serve(farmer) as service:
        kb = filled(workspace, spec(service))
        wordy.batches.clear()
        report = kb.configure(wordy_spec(service, arguments={"dimensions": 32}))
        assert report.chunks_embedded == COUNT
        texts = {text for batch in wordy.batches for text in batch if text.startswith("L")}
        assert texts == {f"L{n}\n{statements_of(n)[0]['normalized_text']}" for n in range(COUNT)}
        assert kb.info().dimensions == 32
        assert first(kb)[0] == "text:7"


def test_stopped_embedding_is_resumed(workspace, wordy):
    with serve(farmer) as service:
        kb = filled(workspace, wordy_spec(service, "chunk", batch_size=2))
        wordy.batches.clear()
        two = wordy_spec(service, batch_size=2)
        kb.configure(two, stop=lambda: len(wordy.batches) >= 3)
        assert len(wordy.batches) == 3
        assert kb.improve(estimate=True).chunks == COUNT - 6
        assert kb.info().waiting.chunks == COUNT - 6
        wordy.batches.clear()
        steps = []
        assert not kb.improve(on_progress=steps.append)
        assert sum(map(len, wordy.batches)) == COUNT - 6
        assert [each.done for each in steps if each.stage == "embed"][:2] == [2, 4]
        assert first(kb)[0] == "text:7"


def test_statements_of_rules_are_embedded_and_the_query_encoder_fitted_again(workspace):
    fitted = KnowledgeBaseSpec(retrieval=RetrievalSpec(query_encoder="fitted"))
    kb = workspace.create("notes", spec=fitted)
    for number in range(20):
        lines = "\n".join(f"x{n} = {number * n}" for n in range(12))
        text = f"Set value {number} first.\n\n```\n{lines}\n```\n"
        kb.add(f"N{number}", text, source=f"n:{number}")
    kb.improve()
    before, version = vectors(kb), encoder_version(kb)
    kb.configure(fitted.model_copy(update={"embedding": StaticEmbedding(text="normalized")}))
    after = vectors(kb)
    assert not all(np.array_equal(before[known], after[known]) for known in before)
    assert encoder_version(kb) > version
    version = encoder_version(kb)
    kb.improve()
    assert encoder_version(kb) == version


def encoder_version(kb):
    with kb._stores.database.read() as transaction:
        return ratings.encoder_state(transaction, kb.id).version


def test_sum_of_several_vectors_is_normalised_and_a_single_one_is_not():
    class Long(HashEmbedder):
        def embed_passages(self, texts):
            return 2 * super().embed_passages(texts)

    packed = embed_sums(Long(16), {"a": ("one two",), "b": ("one", "two")})
    lengths = [np.linalg.norm(np.frombuffer(each, "<f2").astype(float)) for each in packed.values()]
    assert lengths == pytest.approx([2, 1], abs=1e-2)


STATIC = "embedding:\n  type: static\n  text:"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (f"{STATIC} sentences\n", "6: embedding.text: 'sentences' is unknown"),
        (f"{STATIC} both\nannotation: none\n", "7: annotation: none: leaves nothing"),
        (f"summary_{STATIC} both\n", "4: summary_embedding: text: is for chunks only"),
    ],
)
def test_invalid_recipe_is_an_error_with_key_and_line(tmp_path, settings, message):
    recipe = tmp_path / "r.yaml"
    recipe.write_text(f"name: r\nsources:\n- {{type: files, path: .}}\n{settings}")
    with pytest.raises(RecipeError, match=re.escape(f"r.yaml:{message}")):
        load_recipe(recipe)


def test_embedded_statements_need_annotations(tmp_path):
    with pytest.raises(ConfigError, match="annotation: none: leaves nothing"):
        KnowledgeBaseSpec(embedding=StaticEmbedding(text="both"), annotation=NoAnnotation())
    recipe = tmp_path / "r.yaml"
    recipe.write_text(f"name: r\nsources:\n- {{type: files, path: .}}\n{STATIC} both\n")
    assert load_recipe(recipe).spec.embedding == StaticEmbedding(text="both")


def test_another_embedder_keeps_the_embedded_text():
    spec = KnowledgeBaseSpec(embedding=StaticEmbedding(text="both"))
    assert spec.with_embedding(StaticEmbedding()).embedding.text == "both"
    assert spec.with_embedding(StaticEmbedding(text="chunk")).embedding.text == "chunk"
