"""Documents of llama-index readers become documents of a knowledge base, with lasting URIs."""

from pathlib import Path

import pytest
from llama_index.core import Document, SimpleDirectoryReader
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import MediaResource, NodeWithScore, TextNode

from kbkit.models import DocumentType, SourceDocument
from kbkit.recipes import split_sources
from kbkit.sources import Outcome
from kbkit.sources.llamaindex import document_events

BASE = Path("/base")


def documents(*items, base=BASE):
    events = list(document_events(items, base))
    assert {event.outcome for event in events} <= {Outcome.FETCHED}
    return [event.document for event in events]


def skipped(*items):
    return [(e.uri, e.reason) for e in document_events(items, BASE) if e.outcome is Outcome.SKIPPED]


@pytest.mark.parametrize(
    ("metadata", "id_", "uri"),
    [
        ({"url": "https://example.org/a", "file_path": "/base/b.md"}, "c", "https://example.org/a"),
        ({"source": "https://example.org/a"}, "c", "https://example.org/a"),
        ({"url": "no address", "file_path": "/base/docs/b.md"}, "c", "docs/b.md"),
        ({"file_path": "/elsewhere/b.md"}, "c", "/elsewhere/b.md"),
        ({"file_path": "bucket/b.md"}, "c", "bucket/b.md"),
        ({"file_name": "b.md"}, "ticket-12", "ticket-12"),
        ({"file_name": "b.md"}, None, "b.md"),
        ({"url": 7, "file_path": ["b"], "source": "3"}, "c", "c"),
    ],
)
def test_uri_is_the_best_name(metadata, id_, uri):
    known = {} if id_ is None else {"id_": id_}
    assert [d.uri for d in documents(Document(text="x", metadata=metadata, **known))] == [uri]


def test_unnamed_text_has_a_uri_by_content():
    one, again, other = (documents(Document(text=text))[0] for text in ("tea", "tea", "milk"))
    assert one.uri == again.uri != other.uri
    assert one.title == "tea"


def test_pages_of_a_file_become_one_document_with_page_marks():
    about = {"file_name": "a.pdf", "file_path": "/base/a.pdf"}
    pages = [
        Document(text=f"Page on {word}.", metadata={**about, "page_label": str(label)})
        for label, word in ((2, "milk"), (10, "bread"), (1, "tea"))
    ]
    (document,) = documents(*pages)
    assert document.content == (
        "<!-- page 1 -->\n\nPage on tea.\n\n<!-- page 2 -->\n\nPage on milk.\n\n"
        "<!-- page 10 -->\n\nPage on bread.\n"
    )
    assert (document.uri, document.title) == ("a.pdf", "a")
    assert document.metadata == {**about, "file_path": "a.pdf", "format": "pdf"}


def test_pages_without_plain_numbers_are_counted():
    pages = [
        Document(text=label, metadata={"file_name": "a.pdf", "page_label": label})
        for label in ("i", "ii", "1")
    ]
    content = documents(*pages)[0].content
    assert content == ("<!-- page 1 -->\n\ni\n\n<!-- page 2 -->\n\nii\n\n<!-- page 3 -->\n\n1\n")


def test_parts_of_one_place_are_joined():
    about = {"url": "https://example.org/a"}
    first, other = documents(
        Document(text="# Tea\n\nGreen.", metadata={**about, "part": 1}),
        Document(text="Milk.", id_="milk"),
        Document(text="Black.", metadata={**about, "part": 2}),
    )
    assert first.content == "# Tea\n\nGreen.\n\nBlack.\n"
    assert first.metadata == about
    assert other.uri == "milk"


def test_nodes_of_a_splitter_become_their_document():
    text = " ".join(f"Sentence number {n} speaks of tea." for n in range(60))
    nodes = SentenceSplitter(chunk_size=60, chunk_overlap=20).get_nodes_from_documents(
        [Document(text=text)]
    )
    assert len(nodes) > 5
    (document,) = documents(*nodes)
    assert " ".join(document.content.split()) == text
    scored = documents(*[NodeWithScore(node=node, score=0.5) for node in nodes])
    assert scored == [document]


def test_dictionaries_are_documents():
    document = Document(text="# Tea", id_="tea", metadata={"n": 1})
    assert documents(document.to_dict()) == documents(document)
    node = TextNode(text="# Tea", id_="tea", metadata={"n": 1})
    assert documents(node.to_dict()) == documents(node)
    assert documents({"doc_id": "tea", "text": "# Tea", "extra_info": {"n": 1}})[0].uri == "tea"


def test_source_document_is_unchanged():
    document = SourceDocument("tea", "Tea", "# Tea", metadata={"source": "https://tea.example/"})
    (event,) = document_events([document], Path())
    assert event.document is document
    assert split_sources([[document]]) == ([], [document])


def test_title_tags_and_type_come_from_metadata_or_text():
    (document,) = documents(
        Document(
            text="---\nauthor: Ann\n---\n# Heading\n\ntext",
            id_="x",
            metadata={"title": "A  title", "tags": "a, b", "document_type": "faq", "n": 1},
        )
    )
    assert (document.title, document.tags) == ("A title", ("a", "b"))
    assert document.document_type is DocumentType.FAQ
    assert document.metadata == {"author": "Ann", "n": 1}
    (plain,) = documents(Document(text="# Heading", id_="y", metadata={"document_type": "poem"}))
    assert (plain.title, plain.document_type) == ("Heading", None)


def test_metadata_without_a_json_type_becomes_text():
    about = {"when": Path("a"), "many": {1}, "nan": float("nan"), 3: b"x", "last_accessed_date": 1}
    (document,) = documents({"id_": "x", "text": "tea", "metadata": about})
    assert document.metadata == {"when": "a", "many": [1], "nan": "nan", "3": "b'x'"}


def test_documents_without_text_are_skipped_with_a_reason():
    circle = {}
    circle["self"] = circle
    assert skipped(
        Document(text=" ", id_="empty"),
        Document(id_="picture", image_resource=MediaResource(path="a.png")),
        Document(text="---\na: 1\n---\n", id_="front"),
        {"id_": "circle", "text": "x", "metadata": circle},
        "a path",
        {"text": 7},
    ) == [
        ("document 4", "metadata nested too deeply"),
        ("document 5", "not a llama-index document, but str"),
        ("document 6", "not a llama-index document: text or metadata has the wrong type"),
        ("empty", "contains no text"),
        ("picture", "contains no text"),
        ("front", "contains no text"),
    ]


def test_text_with_surrogates_can_be_stored():
    (document,) = documents(
        {"id_": "a\udcff", "text": "tea\udcff\0", "metadata": {"title": "\ud83d"}}
    )
    for text in (document.uri, document.title, document.content):
        assert "\0" not in text
        text.encode()


def test_folder_reader_keeps_uris_of_files(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/tea.md").write_text("# Tea\n\nGreen.\n", encoding="utf-8")
    (document,) = documents(*SimpleDirectoryReader(tmp_path / "docs").load_data(), base=tmp_path)
    assert (document.uri, document.title) == ("docs/tea.md", "Tea")
