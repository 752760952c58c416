"""Ingest of documents as a whole: all are stored, or none."""

import pytest

from kbkit.errors import EmbedderError
from kbkit.ingest.cutting import CutTask
from kbkit.knowledge_base import ingestion_of
from kbkit.models import SourceDocument


def documents(count=3, words="Some words."):
    return [
        SourceDocument(f"text:{n}", f"Page {n}", f"# Page {n}\n\n{words} {n}\n")
        for n in range(count)
    ]


def take(kb, pages, on_progress=lambda progress: None, stop=lambda: False):
    return ingestion_of(kb).take_whole(pages, on_progress=on_progress, stop=stop)


def uris(kb):
    return [document.uri for document in kb.documents]


def test_all_documents_are_stored_and_found(workspace):
    kb, steps = workspace.create("notes"), []
    report = take(kb, documents(), steps.append)
    assert (report.new, report.fetched, report.interrupted) == (3, 3, False)
    stored = [(each.done, each.message) for each in steps if each.stage == "store"]
    assert stored == [(n + 1, f"text:{n}") for n in range(3)]
    assert kb.search("page 2")[0].uri == "text:2"
    again = take(kb, documents(4))
    assert (again.new, again.same) == (1, 3)


@pytest.mark.parametrize("after", [0, 2, 3])
def test_stopped_ingest_stores_nothing(workspace, after):
    kb, steps = workspace.create("notes"), []
    report = take(kb, documents(), steps.append, lambda: len(steps) >= after)
    assert report.interrupted
    assert uris(kb) == []


def test_failing_embedder_stores_nothing(workspace, wordy, wordy_config):
    kb = workspace.create("notes", spec=wordy_config())
    wordy.breaks_at = 2
    with pytest.raises(EmbedderError):
        take(kb, documents(9))
    assert uris(kb) == []


def test_documents_of_a_broken_worker_are_cut_in_this_process(workspace):
    kb = workspace.create("notes")
    take(kb, documents())
    task = CutTask(tuple(kb.documents[uri] for uri in uris(kb)), kb.spec)
    assert task.broken("out of memory") == task.perform()
    assert [new.document.uri for new, _ in task.perform()] == uris(kb)
