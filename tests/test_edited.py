"""Labels set by a person survive changes of the source."""

import json
import threading
from dataclasses import replace

import pytest

import kbkit
from kbkit.errors import ConfigError
from kbkit.ingest import document_writer
from kbkit.models import DocumentState
from kbkit.recipes import ChunkingSpec, JsonlSource, KnowledgeBaseSpec

URI = "doc:tea"


@pytest.fixture
def kb(tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        yield workspace.create("notes")


def read(kb, path, text, **more):
    """Ingest a source of one document with this text."""
    row = {"uri": URI, "title": "Tea", "text": text, "tags": ["drinks"], **more}
    path.write_text(json.dumps(row) + "\n")
    return kb.ingest(JsonlSource(path=str(path)))


def labels(kb):
    document = kb.documents[URI]
    return document.document_type, document.tags


def test_labels_survive_a_refresh(kb, tmp_path):
    read(kb, tmp_path / "a.jsonl", "Steep it.")
    before = kb.documents[URI]
    kb.documents.update(URI, document_type="policy", tags=["mine", " two\n words ", "mine", ""])
    assert labels(kb) == ("policy", ("mine", "two words"))
    assert kb.documents[URI].fetched_at == before.fetched_at
    assert kb.search("steep", filters={"tags": ["mine"]})[0].document_type == "policy"
    report = read(kb, tmp_path / "a.jsonl", "Steep it long.", document_type="faq", tags=["new"])
    assert (report.changed, kb.documents[URI].content.strip()) == (1, "Steep it long.")
    assert labels(kb) == ("policy", ("mine", "two words"))
    assert kb.refresh().same == 1


@pytest.mark.parametrize(
    ("edited", "row", "expected"),
    [
        ([], {"document_type": "faq"}, ("faq", ())),
        (["drinks"], {"document_type": "faq", "tags": ["other"]}, ("faq", ("drinks",))),
    ],
    ids=["emptied", "equal to the source"],
)
def test_edited_tags_are_kept_and_other_fields_follow_the_source(
    kb, tmp_path, edited, row, expected
):
    read(kb, tmp_path / "a.jsonl", "Steep it.")
    kb.documents.update(URI, tags=edited)
    read(kb, tmp_path / "a.jsonl", "Steep it.", **row)
    assert labels(kb) == expected


def test_edited_document_still_belongs_to_its_source(kb, tmp_path):
    read(kb, tmp_path / "a.jsonl", "Steep it.")
    kb.documents.update(URI, content="Steep it twice.", tags=["mine"])
    (tmp_path / "a.jsonl").write_text("")
    assert kb.refresh().gone == 1
    kb.documents.update(URI, document_type="faq")  # it stays gone
    assert kb.documents[URI].state is DocumentState.GONE
    assert list(kb.chunks) == []
    assert read(kb, tmp_path / "a.jsonl", "Steep it.").new == 1
    assert labels(kb) == ("faq", ("mine",))
    assert len(kb.search("steep")) == 1


def test_adding_again_keeps_labels_without_new_ones(kb):
    kb.add("Tea", "Steep it.", source=URI, tags=["a"])
    kb.documents.update(URI, document_type="policy", tags=["b"])
    kb.add("Tea", "Steep it long.", source=URI)
    assert labels(kb) == ("policy", ("b",))
    kb.add("Tea", "Steep it long.", source=URI, tags=["c"])
    assert labels(kb) == ("policy", ("c",))
    kb.add("Tea", "Steep it long.", source=URI)
    assert labels(kb) == ("policy", ())


def test_new_chunking_keeps_labels_and_states(kb, tmp_path):
    read(kb, tmp_path / "a.jsonl", "Steep it.")
    kb.documents.update(URI, tags=["mine"])
    before = kb.documents[URI]
    kb.configure(KnowledgeBaseSpec(chunking=ChunkingSpec(strategy="paragraph")))
    after = kb.documents[URI]
    assert (after.tags, after.fetched_at) == (before.tags, before.fetched_at)


@pytest.mark.slow
def test_labels_set_during_ingest_are_kept(kb, tmp_path):
    path = tmp_path / "a.jsonl"
    read(kb, path, "Steep it 0 minutes.")

    def ingest():
        for minutes in range(1, 15):
            read(kb, path, f"Steep it {minutes} minutes.")

    reader = threading.Thread(target=ingest)
    reader.start()
    for number in range(15):
        kb.documents.update(URI, tags=[f"tag{number}"])
        assert kb.documents[URI].tags == (f"tag{number}",)
    reader.join()
    assert labels(kb)[1] == ("tag14",)
    assert kb.documents[URI].content.strip() == "Steep it 14 minutes."


def test_tags_must_be_a_list(kb):
    kb.add("Tea", "Steep it.", source=URI)
    with pytest.raises(ConfigError, match="list of labels"):
        kb.documents.update(URI, tags="one")


def test_documents_are_listed_without_their_text(kb, tmp_path):
    read(kb, tmp_path / "a.jsonl", "Steep it.")
    kb.add("Zen", "Breathe.", tags=["calm"], metadata={"by": "me"})
    listed = kb.documents.list()
    assert listed == [replace(document, content="") for document in kb.documents]
    assert [document.title for document in listed] == ["Tea", "Zen"]


def test_tags_set_during_embedding_are_kept(kb, tmp_path, monkeypatch):
    read(kb, tmp_path / "a.jsonl", "Steep it.")
    embed, tagged = document_writer.embed, []

    def slow(*arguments, **options):
        if not tagged:
            tagged.append(URI)
            kb.documents.update(URI, tags=["mine"])
        return embed(*arguments, **options)

    monkeypatch.setattr(document_writer, "embed", slow)
    read(kb, tmp_path / "a.jsonl", "Steep it long.")
    assert tagged
    assert labels(kb)[1] == ("mine",)
    assert kb.documents[URI].content.strip() == "Steep it long."
