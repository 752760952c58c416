"""Embedding of texts once each, also after a failure or with another embedder."""

import pytest
import sqlalchemy as sa

import kbkit
from kbkit.errors import EmbedderError
from kbkit.recipes import KnowledgeBaseSpec
from kbkit.stores.catalog.schema import embedded

SECTIONS = "\n\n".join(f"## Part {n}\n\nNumber {n} says hello to nr{n}x." for n in range(40))


@pytest.fixture
def kb(workspace, wordy_config):
    """A knowledge base of 40 chunks with vectors of 16 dimensions."""
    kb = workspace.create("notes", spec=wordy_config(dimensions=16))
    kb.add("Long", SECTIONS)
    return kb


def first(kb):
    return kb.search("Part 17 > Number 17 says hello to nr17x.", mode="dense")[0].chunk.anchor


def test_another_embedder_keeps_the_chunks(kb, wordy, wordy_config):
    before = kb.info()
    chunks = {chunk.id for chunk in kb.chunks}
    steps = []
    report = kb.configure(wordy_config(dimensions=32), on_progress=steps.append)
    after = kb.info()
    assert report.chunks_embedded == 40
    assert (steps[0].stage, steps[0].done, steps[0].total) == ("embed", 4, 40)
    assert (before.dimensions, after.dimensions) == (16, 32)
    assert before.collection != after.collection
    assert after.pending == 0
    assert {chunk.id for chunk in kb.chunks} == chunks
    assert kb.spec.embedding.arguments == {"dimensions": 32}
    assert first(kb) == "part-17"
    wordy.batches.clear()
    kb.add("Long", SECTIONS)  # an unchanged document
    assert wordy.batches == []


def test_single_chunk_of_a_catalog_is_embedded_again(workspace, wordy_config):
    kb = workspace.create("one", spec=wordy_config(dimensions=16))
    kb.add("Tea", "Tea is steeped.")
    assert kb.configure(wordy_config(dimensions=32)).chunks_embedded == 1
    assert kb.search("Tea is steeped.", mode="dense")[0].title == "Tea"


def test_searches_go_on_during_a_change_of_embedder(kb, wordy_config):
    seen = []

    def look(_):
        seen.append((kb.info().dimensions, first(kb)))

    kb.configure(wordy_config(dimensions=32), on_progress=look)
    assert seen[:10] == [(16, "part-17")] * 10
    assert set(seen[10:]) == {(32, "part-17")}


def test_stopped_change_of_embedder_is_resumed(kb, wordy, wordy_config):
    wordy.batches.clear()
    report = kb.configure(wordy_config(dimensions=32), stop=lambda: len(wordy.batches) >= 3)
    assert report.interrupted
    assert kb.info().dimensions == 16
    assert first(kb) == "part-17"
    report = kb.configure(wordy_config(dimensions=32))
    texts = [text for batch in wordy.batches for text in batch if text != "kbkit"]
    assert len(texts) == len(set(texts)) == 40
    assert not report.interrupted
    assert kb.info().dimensions == 32


def test_failing_embedder_leaves_the_old_vectors(kb, wordy, wordy_config):
    wordy.batches.clear()
    wordy.breaks_at = 5
    with pytest.raises(EmbedderError, match="out of credit"):
        kb.configure(wordy_config(dimensions=32))
    assert kb.info().dimensions == 16
    assert first(kb) == "part-17"
    assert kb.configure(wordy_config(dimensions=32)).chunks_embedded == 40 - 16


def test_documents_added_meanwhile_get_new_vectors(kb, wordy_config):
    def add(_):
        if kb.info().documents == 1:
            kb.add("Late", "A zebra came late.")

    kb.configure(wordy_config(dimensions=32), on_progress=add)
    assert kb.info().documents == 2
    assert kb.search("A zebra came late.", mode="dense")[0].title == "Late"


def test_another_workspace_notices_the_new_embedder(kb, workspace, wordy_config):
    with kbkit.open(workspace.path) as other:
        assert first(other["notes"]) == "part-17"
        kb.configure(wordy_config(dimensions=32))
        assert first(other["notes"]) == "part-17"
        other["notes"].add("Late", "A zebra came late.")
    assert kb.search("A zebra came late.", mode="dense")[0].title == "Late"


def test_ingest_goes_on_with_an_embedder_changed_meanwhile(kb, workspace, wordy_config, tmp_path):
    lines = tmp_path / "a.jsonl"
    lines.write_text('{"uri": "a", "title": "A", "text": "Apples."}\n')
    with kbkit.open(workspace.path) as other:
        changed = []

        def change(_):
            changed.append(kb.configure(wordy_config(dimensions=32)))

        report = other["notes"].ingest(kbkit.JsonlSource(path=str(lines)), on_progress=change)
        assert changed
        assert report.new == 1
    assert kb.info().dimensions == 32
    assert kb.search("Apples.", mode="dense")[0].title == "A"


def test_static_embedder_may_follow_another(kb):
    kb.configure(KnowledgeBaseSpec(embedding={"type": "static"}))
    assert kb.info().embedder.startswith("static:")
    assert kb.info().dimensions == 256
    assert first(kb) == "part-17"


def test_vectors_of_an_abandoned_embedder_are_removed(kb, wordy, wordy_config):
    def kept():
        with kb._stores.database.read() as transaction:
            return transaction.execute(sa.select(embedded.c.embedder)).first() is not None

    wordy.batches.clear()
    kb.configure(wordy_config(dimensions=32), stop=lambda: len(wordy.batches) >= 3)
    assert kept()
    kb.configure(wordy_config(dimensions=24))
    assert not kept()


def waiting(workspace):
    with workspace._stores.database.read() as transaction:
        return transaction.execute(sa.text("SELECT count(*) FROM embedded")).scalar()


def test_batches_before_a_failed_one_are_not_embedded_again(workspace, wordy, wordy_config):
    kb = workspace.create("notes", spec=wordy_config())
    wordy.batches.clear()
    wordy.breaks_at = 9
    with pytest.raises(EmbedderError, match="out of credit"):
        kb.add("Long", SECTIONS)
    assert kb.info().documents == 0
    assert waiting(workspace) == 8 * 4
    failed = wordy.batches.pop()
    wordy.breaks_at = 0
    kb.add("Long", SECTIONS)
    texts = [text for batch in wordy.batches for text in batch]
    assert len(texts) == len(set(texts)) == 40
    assert wordy.batches[8] == failed
    assert waiting(workspace) == 0
    assert kb.search("nr17x")[0].chunk.anchor == "part-17"


def test_repeated_text_is_embedded_once(workspace, wordy, wordy_config):
    kb = workspace.create("notes", spec=wordy_config())
    wordy.batches.clear()
    kb.add("Same", "The same words.\n\n" * 60, source="a")
    kb.add("Same", "The same words.\n\n" * 60, source="b")
    texts = [text for batch in wordy.batches for text in batch]
    assert len(texts) == len(set(texts))
