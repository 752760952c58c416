"""What is embedded of chunks: their text, what annotations say that they say, or both."""

import json
import re

import numpy as np
import pytest

import kbkit
from kbkit.errors import ConfigError, RecipeError
from kbkit.ingest.embedding import embed_sums
from kbkit.knowledge_base import handle_of
from kbkit.models import Progress
from kbkit.recipes import (
    ChunkingSpec,
    KnowledgeBaseSpec,
    LlmAnnotation,
    NoAnnotation,
    RetrievalSpec,
    StaticEmbedding,
    load_recipe,
)
from kbkit.stores.catalog import corpus, query_encoders
from kbkit.testing import HashEmbedder
from tests.ingest.scripted_llm import serve

PATH = "tests.ingest.scripted_llm:ScriptedLLM"
QUERY = "feline purring sofa"
COUNT = 12


def says(number):
    """What a model says of a passage, in words that do not stand in it."""
    meant = "A feline is purring on the sofa." if number == 7 else f"Harvest of field {number}."
    return [{"normalized_text": meant, "frame": None}]


def farmer(given, statements=says):
    """Answers about passages that name a number."""
    found = re.findall(r"^\[(\d+)\]$.*?Ledger (\d+)", given, re.MULTILINE | re.DOTALL)
    return json.dumps(
        {
            "passages": [
                {"number": int(place), "statements": statements(int(number))}
                for place, number in found
            ]
        }
    )


def spec(service, text="normalized", **embedding):
    given = {"type": "static", "text": text, **embedding}
    return KnowledgeBaseSpec.model_validate(
        {
            "embedding": given,
            "annotation": LlmAnnotation(llm=PATH, arguments={"api_base": service.address}),
            "chunking": ChunkingSpec(size=200),
        }
    )


def filled(workspace, made, count=COUNT):
    kb = workspace.create("ledgers", spec=made)
    for number in range(count):
        kb.add(f"L{number}", f"Ledger {number} has columns of sums.\n", source=f"text:{number}")
    kb.improve()
    return kb


def first(kb, **options):
    hits = kb.search(QUERY, mode="dense", **options)
    return hits[0].uri, round(hits[0].parts.cosine, 3)


def vectors(kb):
    """The vectors of chunks by the URI of their document, as the catalog and searches have them."""
    with kb._stores.database.read() as transaction:
        seqs = corpus.chunk_seqs(transaction, kb.id).tolist()
        held = corpus.vectors_of(transaction, kb.info().dimensions, seqs)
        uris = [chunk.id for chunk in sorted(kb.chunks, key=lambda each: seq_of(kb)[each.id])]
    snapshot = kb._stores.snapshots.renew(kb.id)
    assert np.array_equal(held, snapshot.vectors_of(np.arange(len(snapshot))))
    return dict(zip(uris, held, strict=True))


def seq_of(kb):
    with kb._stores.database.read() as transaction:
        return corpus.seqs_by_id(transaction, [chunk.id for chunk in kb.chunks])


def test_a_passage_is_found_by_what_a_model_says_that_it_says(workspace):
    with serve(farmer) as service:
        kb = filled(workspace, spec(service, "chunk"))
        plain = vectors(kb)
        assert first(kb)[1] < 0.3
        assert kb.configure(spec(service, "normalized")).chunks_embedded == 0
        assert first(kb)[0] == "text:7"
        found = {"normalized": first(kb)[1]}
        said = vectors(kb)
        assert not any(np.array_equal(plain[known], said[known]) for known in plain)
        kb.configure(spec(service, "both"))
        assert first(kb)[0] == "text:7"
        found["both"] = first(kb)[1]
        assert found["normalized"] > found["both"] > 0.3
        asked = len(service.asked)
        kb.configure(spec(service, "chunk"))
        assert vectors(kb).keys() == plain.keys()
        assert all(np.array_equal(plain[known], each) for known, each in vectors(kb).items())
        assert len(service.asked) == asked
    with kbkit.open(workspace.path) as again:  # what lies on disk is as new
        assert first(again["ledgers"])[1] < 0.3


def test_words_that_stand_there_find_it_as_before(workspace):
    with serve(farmer) as service:
        kb = filled(workspace, spec(service))
        assert kb.search("ledger 3 columns", mode="lexical")[0].uri == "text:3"
        assert kb.search("ledger 3 columns of sums")[0].uri == "text:3"


def test_several_statements_are_added_up(workspace):
    def two(number):
        return [*says(number), {"normalized_text": f"Engines of train {number}.", "frame": None}]

    with serve(lambda given: farmer(given, two)) as service:
        kb = filled(workspace, spec(service))
        embedder = handle_of(kb).embedder(handle_of(kb).row())
        [chunk] = [each for each in kb.chunks if "Ledger 7 " in each.text]
        texts = ["L7\nA feline is purring on the sofa.", "L7\nEngines of train 7."]
        total = embedder.embed_passages(texts).sum(axis=0)
        expected = total / np.linalg.norm(total)
        assert vectors(kb)[chunk.id] == pytest.approx(expected, abs=1e-3)
        assert kb.search("engines of a train", mode="dense")[0].parts.cosine > 0.3
        assert first(kb)[0] == "text:7"


def test_only_what_changed_is_embedded_again(workspace, wordy):
    with serve(farmer) as service:
        remote = {"type": "llama-index", "model": "wordy_embedding:WordyEmbedding", "arguments": {}}
        kb = filled(workspace, spec(service, **remote))
        wordy.batches.clear()
        kb.improve()
        assert wordy.batches == []
        kb.documents.update("text:3", content="Ledger 30 has columns of sums.\n")
        kb.improve()
        texts = [text for batch in wordy.batches for text in batch]
        assert texts == ["L3\nLedger 30 has columns of sums.", "L3\nHarvest of field 30."]
        wordy.batches.clear()
        # a name that is known now has chunks annotated anew, which say what they said
        before = vectors(kb)
        kb.configure(
            kb.spec.model_copy(
                update={
                    "annotation": LlmAnnotation.model_validate(
                        {**kb.spec.annotation.model_dump(), "names": [{"name": "columns"}]}
                    )
                }
            )
        )
        assert [each.entities for each in kb.annotations] == [("columns",)] * COUNT
        assert wordy.batches == []
        assert kb.improve().chunks == 0
        after = vectors(kb)
        assert all(np.array_equal(before[known], after[known]) for known in before)


def test_chunks_that_stay_in_a_changed_document_keep_their_vectors(workspace, wordy):
    def text(*numbers):
        return "\n\n".join(f"## Part {n}\n\nLedger {n} has columns of sums." for n in numbers)

    with serve(farmer) as service:
        remote = {"type": "llama-index", "model": "wordy_embedding:WordyEmbedding", "arguments": {}}
        made = spec(service, **remote).model_copy(update={"chunking": ChunkingSpec(size=100)})
        kb = workspace.create("ledgers", spec=made)
        kb.add("Long", text(*range(6)), source="text:long")
        kb.improve()
        wordy.batches.clear()
        kb.add("Long", text(0, 1, 2, 33, 4, 5), source="text:long")
        kb.improve()
        texts = [each for batch in wordy.batches for each in batch]
        assert [each.rpartition("\n")[2] for each in texts] == [
            "Ledger 33 has columns of sums.",
            "Harvest of field 33.",
        ]


def test_another_embedder_embeds_what_the_one_before_did(workspace, wordy):
    with serve(farmer) as service:
        remote = {
            "type": "llama-index",
            "model": "wordy_embedding:WordyEmbedding",
            "arguments": {"dimensions": 32},
        }
        kb = filled(workspace, spec(service))
        wordy.batches.clear()
        report = kb.configure(spec(service, **remote))
        assert report.chunks_embedded == COUNT
        texts = {text for batch in wordy.batches for text in batch}
        assert {each for each in texts if each.startswith("L")} == {
            f"L{n}\n{says(n)[0]['normalized_text']}" for n in range(COUNT)
        }
        assert kb.info().dimensions == 32
        assert first(kb)[0] == "text:7"


def test_it_goes_on_where_it_was_stopped(workspace, wordy):
    with serve(farmer) as service:
        remote = {
            "type": "llama-index",
            "model": "wordy_embedding:WordyEmbedding",
            "arguments": {},
            "batch_size": 2,
        }
        kb = filled(workspace, spec(service, "chunk", **remote))
        wordy.batches.clear()
        kb.configure(spec(service, **remote), stop=lambda: len(wordy.batches) >= 3)
        assert len(wordy.batches) == 3
        assert kb.improve(estimate=True).chunks == COUNT - 6
        assert kb.info().waiting.chunks == COUNT - 6
        wordy.batches.clear()
        told: list[Progress] = []
        assert not kb.improve(on_progress=told.append)
        assert sum(map(len, wordy.batches)) == COUNT - 6
        assert [each.done for each in told if each.stage == "embed"][:2] == [2, 4]
        assert first(kb)[0] == "text:7"


def test_rules_say_it_too_and_a_query_encoder_is_fitted_again(workspace):
    fitted = KnowledgeBaseSpec(retrieval=RetrievalSpec(query_encoder="fitted"))
    kb = workspace.create("notes", spec=fitted)
    for number in range(20):
        lines = "\n".join(f"x{n} = {number * n}" for n in range(12))
        kb.add(
            f"N{number}", f"Set value {number} first.\n\n```\n{lines}\n```\n", source=f"n:{number}"
        )
    kb.improve()
    before, made = vectors(kb), encoder_version(kb)
    kb.configure(fitted.model_copy(update={"embedding": StaticEmbedding(text="normalized")}))
    after = vectors(kb)
    assert not all(np.array_equal(before[known], after[known]) for known in before)
    assert encoder_version(kb) > made
    made = encoder_version(kb)
    kb.improve()
    assert encoder_version(kb) == made


def encoder_version(kb):
    with kb._stores.database.read() as transaction:
        return query_encoders.state(transaction, kb.id).version


def test_sums_are_of_length_one_and_of_nothing_are_nothing():
    embedder = HashEmbedder(16)
    packed = embed_sums(embedder, {"a": ("one two",), "b": ("one two", "three"), "c": ("", "")})
    numbers = {key: np.frombuffer(each, "<f2").astype(float) for key, each in packed.items()}
    assert numbers["a"] == pytest.approx(embedder.embed_query("one two"), abs=1e-3)
    assert np.linalg.norm(numbers["b"]) == pytest.approx(1, abs=1e-3)
    assert not numbers["c"].any()
    assert embed_sums(embedder, {}) == {}

    class Long(HashEmbedder):
        def embed_passages(self, texts):
            return 2 * super().embed_passages(texts)

    packed = embed_sums(Long(16), {"a": ("one two",), "b": ("one", "two")})
    lengths = [np.linalg.norm(np.frombuffer(each, "<f2").astype(float)) for each in packed.values()]
    assert lengths == pytest.approx([2, 1], abs=1e-2), "one by itself is as the embedder made it"

    class Apart(HashEmbedder):
        def embed_passages(self, texts):
            return np.array([[1, 0], [-0.9, 0.1]], np.float32)

    (packed,) = embed_sums(Apart(2), {"a": ("up", "down")}).values()
    assert np.frombuffer(packed, "<f2").tolist() == pytest.approx([2**-0.5] * 2, abs=1e-2)


def test_a_recipe_that_cannot_be_names_the_key(tmp_path):
    recipe = tmp_path / "r.yaml"
    sources = "sources:\n- {type: files, path: .}\n"
    recipe.write_text(f"name: r\n{sources}embedding:\n  type: static\n  text: sentences\n")
    with pytest.raises(RecipeError, match=r"r\.yaml:6: embedding\.text: 'sentences' is unknown"):
        load_recipe(recipe)
    recipe.write_text(
        f"name: r\n{sources}embedding:\n  type: static\n  text: both\nannotation: none\n"
    )
    with pytest.raises(RecipeError, match=r"r\.yaml:7: annotation: none: leaves nothing"):
        load_recipe(recipe)
    recipe.write_text(f"name: r\n{sources}summary_embedding:\n  type: static\n  text: both\n")
    with pytest.raises(
        RecipeError, match=r"r\.yaml:4: summary_embedding: text: is for chunks only"
    ):
        load_recipe(recipe)
    with pytest.raises(ConfigError, match="annotation: none: leaves nothing"):
        KnowledgeBaseSpec(embedding=StaticEmbedding(text="both"), annotation=NoAnnotation())
    recipe.write_text(f"name: r\n{sources}embedding: {{type: static, text: both}}\n")
    assert load_recipe(recipe).spec.embedding == StaticEmbedding(text="both")


def test_another_embedder_leaves_what_is_embedded():
    spec = KnowledgeBaseSpec(embedding=StaticEmbedding(text="both"))
    assert spec.embedded_by(StaticEmbedding()).embedding.text == "both"
    assert spec.embedded_by(StaticEmbedding(text="chunk")).embedding.text == "chunk"
