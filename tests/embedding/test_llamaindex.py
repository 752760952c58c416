"""Embeddings of llama-index: imported by name, normalised, without keys in errors."""

import hashlib
import socket
import sys
import traceback

import httpx
import numpy as np
import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding

from kbkit.embedding import open_embedder
from kbkit.embedding.llamaindex import SHORT_FORMS, LlamaIndexEmbedder, is_unreachable
from kbkit.errors import EmbedderError, EmbedderUnreachableError
from kbkit.recipes import LlamaIndexEmbedding

LETTERS = "letters_for_tests:LettersEmbedding"
MOCK = "llama_index.core.embeddings.mock_embed_model:MockEmbedding"
KEY = "abcdef0123456789"


class LettersEmbedding(BaseEmbedding):
    """Embeds by hashes, and questions in reverse order to tell them from passages."""

    fails: str = ""
    api_key: str = ""
    batches: list[int] = []  # noqa: RUF012 (a pydantic field)
    down: int = 0  # number of failing connections

    def _get_text_embedding(self, text: str) -> list[float]:
        if self.fails == "raise":
            raise RuntimeError(f"401 wrong key {self.api_key}, Bearer xyz, sk-live-12345")
        if self.fails == "nan":
            return [float("nan")] * 8
        if self.fails == "ragged":
            return [1.0] * len(text)
        return [float(byte) for byte in hashlib.sha256(text.encode()).digest()[:8]]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        self.batches.append(len(texts))
        self._connect()
        return [self._get_text_embedding(text) for text in texts]

    def _get_query_embedding(self, query: str) -> list[float]:
        self._connect()
        return self._get_text_embedding(query)[::-1]

    def _connect(self) -> None:
        if self.down:
            self.down -= 1
            with socket.socket() as closed:
                closed.connect(("127.0.0.1", 9))

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


class RefusesEmbedding(BaseEmbedding):
    """Its constructor fails with the key in the message."""

    def __init__(self, api_key: str) -> None:
        raise ValueError(f"no such key: {api_key}")

    def _get_text_embedding(self, text: str) -> list[float]:
        raise NotImplementedError

    _get_query_embedding = _get_text_embedding
    _aget_query_embedding = _get_text_embedding


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    """Lets the embedder import the classes by name."""
    module = type(sys)("letters_for_tests")
    module.LettersEmbedding = LettersEmbedding
    module.RefusesEmbedding = RefusesEmbedding
    monkeypatch.setitem(sys.modules, "letters_for_tests", module)


def letters(**options):
    return open_embedder(LlamaIndexEmbedding(model=LETTERS, **options))


def test_vectors_are_normalised_and_queries_embedded_apart():
    embedder = letters()
    passages = embedder.embed_passages(["one", "", "two"])
    assert passages.shape == (3, 8)
    assert passages.dtype == np.float32
    assert np.linalg.norm(passages, axis=1) == pytest.approx([1, 0, 1], abs=1e-6)
    np.testing.assert_allclose(embedder.embed_query("one"), passages[0][::-1], atol=1e-6)
    assert not embedder.embed_query(" ").any()


def test_dimensions_are_those_of_the_model():
    embedder = open_embedder(LlamaIndexEmbedding(model=MOCK, arguments={"embed_dim": 5}))
    assert embedder.dimensions == 5
    assert embedder.embed_passages([]).shape == (0, 5)
    assert letters().embed_passages([" "]).shape == (1, 8)


def test_batches_have_the_batch_size():
    embedder = letters(batch_size=3)
    embedder.embed_passages([f"text {n}" for n in range(7)])
    assert embedder._model.batches == [3, 3, 1]


def test_model_may_be_a_dotted_path():
    spec = LlamaIndexEmbedding(model=MOCK.replace(":", "."), arguments={"embed_dim": 3})
    assert open_embedder(spec).dimensions == 3


def test_fingerprint_depends_on_the_model_but_not_on_keys():
    first = letters(arguments={"api_key": KEY})
    assert first.fingerprint == letters(arguments={"api_key": "another-key"}).fingerprint
    assert first.fingerprint == letters(batch_size=2).fingerprint
    assert first.fingerprint != letters(arguments={"model_name": "b"}).fingerprint
    assert KEY not in first.fingerprint


@pytest.mark.parametrize("ask", ["embed_passages", "embed_query"])
def test_errors_name_the_model_but_no_key(ask, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "from-the-environment")
    embedder = letters(arguments={"fails": "raise", "api_key": KEY})
    with pytest.raises(EmbedderError, match=r"letters_for_tests.*RuntimeError: 401") as caught:
        getattr(embedder, ask)(["x"] if ask == "embed_passages" else "x")
    shown = "".join(traceback.format_exception(caught.value))
    for secret in (KEY, "sk-live-12345", "xyz"):
        assert secret not in shown


@pytest.mark.parametrize("fails", ["nan", "ragged"])
def test_invalid_vectors_are_refused(fails):
    embedder = letters(arguments={"fails": fails})
    with pytest.raises(EmbedderError, match="letters_for_tests"):
        embedder.embed_passages(["one", "three"])


def test_changed_dimensions_are_refused():
    embedder = letters(arguments={"fails": "ragged"})
    embedder.embed_passages(["one"])
    with pytest.raises(EmbedderError, match="5 dimensions after 3"):
        embedder.embed_passages(["three"])


def test_error_of_a_constructor_names_no_key():
    refusing = "letters_for_tests:RefusesEmbedding"
    with pytest.raises(EmbedderError, match="cannot be opened") as caught:
        open_embedder(LlamaIndexEmbedding(model=refusing, arguments={"api_key": KEY}))
    assert KEY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("short", sorted(SHORT_FORMS))
def test_error_of_a_short_form_names_the_package_to_install(short):
    module = SHORT_FORMS[short][0]
    pytest.importorskip("llama_index.core")
    try:
        __import__(f"llama_index.embeddings.{module}")
    except ImportError:
        package = f"llama-index-embeddings-{module.replace('_', '-')}"
        with pytest.raises(EmbedderError, match=f"pip install {package}"):
            open_embedder(LlamaIndexEmbedding(model=f"{short}:some-model"))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("text-embedding-3-small", "SHORT:MODEL"),
        ("openai:", "SHORT:MODEL"),
        ("no.such.package:Thing", "cannot import no.such.package"),
        ("json:JSONDecoder", "not a llama-index embedding"),
        ("opnai:text-embedding-3-small", "SHORT:MODEL"),
        ("json.decoder:JSONDecoder", "not a llama-index embedding"),
        ("json.decoder:Nothing", "not a llama-index embedding"),
        ("..a:B", "SHORT:MODEL"),
        (".", "SHORT:MODEL"),
    ],
)
def test_invalid_names_of_models_are_errors(model, message):
    with pytest.raises(EmbedderError, match=message):
        open_embedder(LlamaIndexEmbedding(model=model))


def patient(down):
    spec = LlamaIndexEmbedding(model=LETTERS, arguments={"down": down}, batch_size=2)
    return LlamaIndexEmbedder(spec, wait=0.01)


def test_passages_are_sent_again_to_an_unreachable_model():
    embedder = patient(down=2)
    assert embedder.embed_passages(["a", "b", "c"]).shape == (3, 8)
    assert embedder._model.batches == [2, 2, 2, 1]


def test_unreachable_and_refusing_models_raise_different_errors():
    with pytest.raises(EmbedderUnreachableError, match="cannot be reached"):
        patient(down=3).embed_passages(["a"])
    with pytest.raises(EmbedderError, match="401") as refused:
        letters(arguments={"fails": "raise"}).embed_passages(["a"])
    assert not isinstance(refused.value, EmbedderUnreachableError)


def test_question_is_sent_once():
    embedder = patient(down=1)
    with pytest.raises(EmbedderUnreachableError):
        embedder.embed_query("a")
    assert embedder.embed_query("a").any()


def error_of(status):
    """The error of httpx for a status, wrapped as by clients."""
    request = httpx.Request("POST", "http://127.0.0.1/")
    try:
        try:
            httpx.Response(status, request=request).raise_for_status()
        except httpx.HTTPStatusError as error:
            raise RuntimeError("the client's own words") from error
    except RuntimeError as error:
        return error


@pytest.mark.parametrize(
    ("status", "temporary"), [(429, True), (503, True), (500, True), (400, False), (401, False)]
)
def test_temporary_statuses_count_as_unreachable(status, temporary):
    assert is_unreachable(error_of(status)) is temporary
