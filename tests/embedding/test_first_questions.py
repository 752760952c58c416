"""The first questions of a process are computed by numpy, others by onnxruntime."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest

from kbkit.embedding import Embedders, open_embedder
from kbkit.embedding.onnx import MiniLmEmbedder, OnnxEmbedder
from kbkit.recipes import OnnxEmbedding

MINILM = OnnxEmbedding(preset="minilm")
TEXTS = [
    *("", "  \n", "x", "How do I delete a file?", "$ % &", "word " * 1_000, "\n".join("abc" * 90)),
    *("Schlüssel für die Tür", "日本語の文書", "🎉 done 🎉", "e\u0301\u200b\0", "a" * 5_000),
    *("def f(x): return x + 1", "ИМЯ файла", "[CLS] [MASK] </s>", "timeout\tseconds"),
]


@pytest.fixture(scope="module")
def by_onnxruntime():
    return OnnxEmbedder(MINILM)


def test_numpy_and_onnxruntime_give_the_same_vectors(by_onnxruntime):
    for text in TEXTS:
        embedder = open_embedder(MINILM)
        vector, expected = embedder.embed_query(text), by_onnxruntime.embed_query(text)
        assert vector.dtype == expected.dtype == np.float32
        np.testing.assert_allclose(vector, expected, atol=3e-4)
        assert vector @ expected == pytest.approx(1 if text.strip() else 0, abs=1e-5)
    assert embedder.fingerprint == by_onnxruntime.fingerprint
    assert embedder.dimensions == by_onnxruntime.dimensions == 384


def test_only_many_questions_import_onnxruntime():
    code = (
        "import sys; from kbkit.embedding import open_embedder\n"
        "from kbkit.recipes import OnnxEmbedding\n"
        "embedder = open_embedder(OnnxEmbedding(preset='minilm'))\n"
        "def opened(): return 'onnxruntime' in sys.modules\n"
        "embedder.embed_query('tea'); assert not opened()\n"
        "for _ in range(9): embedder.embed_query('tea')\n"
        "assert opened()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_passages_and_later_questions_are_those_of_onnxruntime(by_onnxruntime):
    embedder = open_embedder(MINILM)
    first = embedder.embed_query("tea")
    passages, expected = (each.embed_passages(["tea"]) for each in (embedder, by_onnxruntime))
    np.testing.assert_array_equal(passages, expected)
    np.testing.assert_array_equal(embedder.embed_query("tea"), by_onnxruntime.embed_query("tea"))
    np.testing.assert_allclose(first, embedder.embed_query("tea"), atol=3e-4)


def test_missing_onnxruntime_is_an_error_at_opening():
    code = (
        "import sys; sys.modules['onnxruntime'] = None\n"
        "from kbkit.embedding import open_embedder\n"
        "from kbkit.recipes import OnnxEmbedding\n"
        "open_embedder(OnnxEmbedding(preset='minilm'))"
    )
    ended = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)
    assert b"needs onnxruntime" in ended.stderr


def test_threads_that_open_an_embedder_at_once_share_it(monkeypatch):
    both = threading.Barrier(2)

    def opened(spec):
        with suppress(threading.BrokenBarrierError):
            both.wait(0.5)
        return MiniLmEmbedder(spec)

    monkeypatch.setattr("kbkit.embedding.open_embedder", opened)
    embedders = Embedders()
    with ThreadPoolExecutor(2) as threads:
        one, other = threads.map(embedders.open, [MINILM, MINILM])
    assert one is other
