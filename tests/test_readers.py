"""Documents of llama-index readers."""

import pytest
from llama_index.core import Document
from llama_index.core.schema import TextNode

import kbkit
from kbkit import FilesSource
from kbkit.errors import ConfigError
from kbkit.models import DocumentState


@pytest.fixture
def kb(tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        yield workspace.create("notes")


def pages(*texts):
    return [
        Document(text=text, metadata={"file_name": "tea.pdf", "page_label": str(number)})
        for number, text in enumerate(texts, 1)
    ]


def test_pages_are_found_with_their_number(kb):
    report = kb.ingest(pages("Tea is a plant.", "Green tea steeps for two minutes."))
    assert (report.new, report.fetched, report.skipped) == (1, 1, ())
    hit = kb.search("how long does green tea steep")[0]
    assert (hit.uri, hit.title, hit.chunk.page) == ("tea.pdf", "tea", 2)


def test_second_ingest_is_an_update(kb):
    kb.ingest(pages("Tea is a plant.", "It is green."))
    assert kb.ingest(pages("Tea is a plant.", "It is green.")).same == 1
    report = kb.ingest(pages("Tea is a plant.", "It is black."))
    assert (report.new, report.changed) == (0, 1)
    assert [d.uri for d in kb.documents] == ["tea.pdf"]
    assert "black" in kb.search("tea plant", limit=2)[1].chunk.text


def test_documents_and_sources_are_ingested_together(kb, tmp_path):
    (tmp_path / "milk.md").write_text("# Milk\n\nMilk is kept cold.\n", encoding="utf-8")
    report = kb.ingest(
        FilesSource(path="milk.md"),
        Document(text="# Bread\n\nBread is baked.", id_="bread"),
        [TextNode(text="# Salt\n\nSalt is mined.", id_="salt"), *pages("Tea is a plant.")],
        base=tmp_path,
    )
    assert report.new == 4
    found = {hit.title for hit in kb.search("milk bread salt tea")}
    assert found == {"Milk", "Bread", "Salt", "tea"}


def test_refresh_leaves_them_alone(kb, tmp_path):
    path = tmp_path / "milk.md"
    path.write_text("# Milk\n\nMilk is kept cold.\n", encoding="utf-8")
    kb.ingest(FilesSource(path=str(tmp_path / "*.md")), pages("Tea is a plant."))
    (tmp_path / "salt.md").write_text("# Salt\n\nSalt is mined.\n", encoding="utf-8")
    path.unlink()
    report = kb.refresh()
    assert (report.new, report.gone) == (1, 1)
    states = {d.title: d.state for d in kb.documents}
    assert states["tea"] is DocumentState.CURRENT
    assert states["Milk"] is DocumentState.GONE
    assert kb.search("tea plant")[0].title == "tea"


def test_skipped_documents_are_reported(kb):
    report = kb.ingest([Document(text=" ", id_="empty"), *pages("Tea is a plant.")])
    assert [(p.uri, p.reason) for p in report.skipped] == [("empty", "contains no text")]
    assert report.new == 1


def test_progress_is_reported_and_ingest_can_be_stopped(kb):
    progress = []
    documents = [Document(text=f"Text {n}.", id_=f"d{n}") for n in range(5)]
    report = kb.ingest(documents, on_progress=progress.append, stop=lambda: len(progress) == 3)
    assert report.interrupted
    first, second = ((each.stage, each.done, each.message) for each in progress[:2])
    assert (first, second) == (("store", 1, "d0"), ("store", 2, "d1"))
    assert kb.info().documents == 3
    assert kb.ingest(documents).new == 2


@pytest.mark.parametrize("wrong", ["docs", 7, ["a.md"], b"x", None])
def test_other_objects_are_a_config_error(kb, wrong):
    with pytest.raises(ConfigError, match=r"FilesSource.*llama-index reader"):
        kb.ingest(Document(text="x", id_="x"), wrong)
    assert kb.info().documents == 0
