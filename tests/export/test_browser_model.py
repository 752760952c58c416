"""MiniLM in the browser: the site's JavaScript in Node equals onnxruntime in Python."""

import re

import numpy as np
import pytest

import kbkit
from kbkit.embedding.onnx import OnnxEmbedder
from kbkit.export.mkdocs.page_head import write_browser_model
from kbkit.recipes import OnnxEmbedding
from tests.export.conftest import JS, ROOT, in_node, published, run_node

ODD = [
    "Ünïcödé ÇA naïve ﬁle İstanbul ΣΊΣΥΦΟΣ",
    "日本語のテキスト hello 漢字",
    "안녕하세요 세계",
    "привет мир, как дела?",
    "مرحبا بالعالم",
    "שלום עולם",
    "हिन्दी में लिखना",
    "ภาษาไทย",
    "a\0b\ufffdc\u200bd\u00ade\tf\ng",
    "[SEP] what [MASK] x [cls] [UNK]",
    "x" * 101 + " y" * 2,
    "$ % & + <= >= ^ ` | ~ ¡ ¿ — “q”",
    "😀 emoji 👩‍👩‍👧 ok",
    "ŉ ǰ ẞ ß ŒŸ",
    "a\u0301e\u0300 𝒜𝓁𝑔 ℌ ①②",
    "\ue000private \ud7ff",
    "\u0085x\u00a0y\u3000z\u2028w",
    "os.path.join(a, b) __init__ don't",
    "how " * 2_500,
    "日本" * 5_000,
]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The files of the model, and its embedder in Python."""
    folder = tmp_path_factory.mktemp("model")
    return folder / write_browser_model(folder), OnnxEmbedder(OnnxEmbedding(preset="minilm"))


def guide_lines(pattern: str) -> list[str]:
    text = "\n".join(path.read_text("utf-8") for path in sorted((ROOT / "site").glob("*.md")))
    return re.findall(pattern, text, re.MULTILINE)


def headings() -> list[str]:
    return guide_lines(r"^#+ (.*)$")


def embedded(node, folder, tmp_path, texts):
    """Embed texts in Node."""
    values = {"folder": str(folder), "texts": texts}
    answers = run_node(node, JS / "embed.js", tmp_path, values)
    return np.array([each["vector"] for each in answers])


@pytest.mark.soak
def test_browser_vectors_equal_python(node, model, tmp_path):
    folder, embedder = model
    texts = [*headings()[::3], *guide_lines("^[A-Z].{30,300}$")[::5], *ODD]
    assert len(texts) >= 200
    found = embedded(node, folder, tmp_path, texts)
    expected = np.array([embedder.embed_query(text) for text in texts])
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    cosines = (found * expected).sum(axis=1)
    assert cosines.min() >= 0.9999, texts[int(cosines.argmin())]


def test_model_files_have_a_license_and_a_stable_name(model, tmp_path):
    folder, _ = model
    assert write_browser_model(tmp_path) == folder.name
    assert "Apache License\n" in (folder / "LICENSE.txt").read_text("utf-8")
    assert sum(path.stat().st_size for path in folder.iterdir()) < 23_400_000
    first = [path for path in folder.iterdir() if not path.name.startswith(("words-", "LICENSE"))]
    assert sum(path.stat().st_size for path in first) < 11_500_000


@pytest.mark.parametrize(
    "name", ["vocabulary.txt", "embeddings.bin", "layer-3.bin", "words-31.bin"]
)
def test_truncated_model_files_are_refused(node, model, tmp_path, name):
    folder = tmp_path / "broken"
    folder.mkdir()
    for path in model[0].iterdir():
        (folder / path.name).symlink_to(path)
    data = (folder / name).read_bytes()
    (folder / name).unlink()
    (folder / name).write_bytes(data[: len(data) // 2])
    with pytest.raises(OSError, match="not whole"):
        embedded(node, folder, tmp_path, ["the"])


@pytest.fixture(scope="module")
def guides(tmp_path_factory):
    """The index of the guides, with and without a model."""
    folder = tmp_path_factory.mktemp("guides")
    with kbkit.open(folder / "kb") as workspace:
        kb = workspace.create("guides")
        kb.ingest(kbkit.FilesSource(path=str(ROOT / "site" / "*.md")))
        kb.improve()
        kb.chunks.fit_query_encoder()
        kb._handle.fit_query_encoder("summaries")
        return published(kb, folder / "with"), published(kb, folder / "without", model=False)


@pytest.mark.slow
def test_engine_ranks_by_the_model_like_python(node, model, guides, tmp_path):
    folder, embedder = model
    index, _ = guides
    queries = headings()[::5]
    assert len(queries) > 60
    found = in_node(node, index, tmp_path, queries, model=folder)
    before = in_node(node, index, tmp_path, queries)
    moved = 0
    for query, hits, others in zip(queries, found, before, strict=True):
        expected = index.search(query, vector=embedder.embed_query(query))
        scores = {hit.chunk: hit.score for hit in expected}
        assert len(hits) == len(expected)
        # near ties may be in another order, and the last hit may be another tie
        for hit, other in zip(hits, expected, strict=True):
            assert hit["score"] == pytest.approx(other.score, abs=2e-3), query
            own = scores.get(hit["row"], expected[-1].score)
            assert hit["score"] == pytest.approx(own, abs=2e-3), query
        moved += [hit["row"] for hit in others] != [hit.chunk for hit in expected]
    assert "m" in index.read
    assert moved > len(queries) / 3


@pytest.mark.slow
def test_index_works_without_a_model(node, model, guides, tmp_path):
    index, other = guides
    assert not (other.folder / "m.js").exists()
    query = "where do my files go"
    vector = model[1].embed_query(query)
    assert index.search(query, vector=vector) != index.search(query)
    assert other.search(query, vector=vector) == other.search(query) == index.search(query)
    assert "m" in index.read
    with_model = in_node(node, other, tmp_path, [query], model=model[0])
    assert with_model == in_node(node, other, tmp_path, [query])
