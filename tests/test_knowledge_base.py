import json
from concurrent.futures import ThreadPoolExecutor

import pytest

import kbkit
from kbkit.errors import ConfigError, NotFoundError
from kbkit.models import DocumentState
from kbkit.recipes import ChunkingSpec, JsonlSource, KnowledgeBaseSpec, StorageSpec
from kbkit.stores import vector_index as vector_store

TEA = (
    "# Tea\n\n## Green {#green}\n\nSteep two minutes.\n\n## Black {#black}\n\nSteep four minutes.\n"
)


@pytest.fixture
def kb(tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        yield workspace.create("notes")


def write_lines(path, *documents):
    path.write_text("".join(json.dumps(document) + "\n" for document in documents))
    return JsonlSource(path=str(path))


def doc(name, text, **more):
    return {"uri": f"doc:{name}", "title": name, "text": text, **more}


def chroma_records(kb):
    import chromadb

    settings = chromadb.config.Settings(anonymized_telemetry=False)
    client = chromadb.PersistentClient(str(kb._stores.folder / "chroma"), settings=settings)
    collection = client.get_collection(kb.info().collection, embedding_function=None)
    records = collection.get(include=["metadatas", "documents"])
    client.close()
    return records


def test_every_mode_ranks_and_explains_scores(kb):
    kb.add("Tea", TEA)
    kb.add("Bread", "# Bread\n\nBake for an hour.\n")
    for mode in ("hybrid", "dense", "lexical"):
        hits = kb.search("bake bread", mode=mode)
        assert hits[0].title == "Bread"
        parts = hits[0].parts
        assert hits[0].score == pytest.approx(parts.total)
        assert (parts.summary > 0) == (mode != "lexical")
        assert (parts.page > 0) == (mode != "dense")
        assert (parts.dense > 0) == (mode != "lexical")
        assert (parts.lexical > 0) == (mode != "dense")


def test_unchanged_chunk_gets_its_new_page_number(kb):
    ids = set()
    for number in (1, 3):
        kb.add("Book", "Some words of a preface.\n" + "\f" * number + "\nA book of green tea.\n")
        *_, chunk = kb.chunks
        ids.add(chunk.id)
        assert chunk.page == number + 1
        assert kb.search("green tea")[0].chunk.page == chunk.page
    assert len(ids) == 1


def test_chroma_stores_text_and_metadata_only_on_request(kb):
    kb.add("Tea", TEA, tags=["drinks"], document_type="faq")
    records = chroma_records(kb)
    assert set(records["ids"]) == {chunk.id for chunk in kb.chunks}
    assert set(records["metadatas"]) == set(records["documents"]) == {None}
    kb.configure(KnowledgeBaseSpec(storage=StorageSpec(text_in_chroma=True)))
    records = chroma_records(kb)
    assert set(records["documents"]) == {chunk.text for chunk in kb.chunks}
    assert records["metadatas"][0]["document_type"] == "faq"
    assert list(records["metadatas"][0]["tags"]) == ["drinks"]
    kb.documents.update(next(iter(kb.documents)).id, tags=["hot", "cups"])
    assert {tuple(each["tags"]) for each in chroma_records(kb)["metadatas"]} == {("hot", "cups")}


def test_unchanged_chunks_keep_id_vector_and_rating(kb, tmp_path):
    source = write_lines(tmp_path / "a.jsonl", doc("Tea", TEA))
    kb.ingest(source)
    before = {chunk.anchor: chunk.id for chunk in kb.chunks}
    kb.rate(before["black"], 5, query="black tea")
    changed = TEA.replace("two minutes", "one minute") + "\n## White {#white}\n\nSteep long.\n"
    write_lines(tmp_path / "a.jsonl", doc("Tea", changed))
    report = kb.refresh()
    after = {chunk.anchor: chunk.id for chunk in kb.chunks}
    assert after["black"] == before["black"]
    assert after["green"] != before["green"]
    assert (report.changed, report.chunks_embedded) == (1, 2)
    assert list(kb.ratings.to_frame().target) == [before["black"]]


def test_second_ingest_does_nothing(kb, tmp_path):
    source = write_lines(tmp_path / "a.jsonl", doc("Tea", TEA), doc("Bread", "Bake."))
    assert kb.ingest(source).new == 2
    report = kb.ingest(source)
    assert (report.new, report.changed, report.same) == (0, 0, 2)
    assert (report.chunks_embedded, report.chunks_added, report.chunks_removed) == (0, 0, 0)


def test_returning_document_keeps_its_rating(kb, tmp_path):
    both = (doc("Tea", TEA), doc("Bread", "Bake for an hour."))
    source = write_lines(tmp_path / "a.jsonl", *both)
    kb.ingest(source)
    chunk = kb.search("bake")[0].chunk.id
    kb.rate(chunk, 4)
    write_lines(tmp_path / "a.jsonl", both[0])
    assert kb.refresh().gone == 1
    assert kb.documents["doc:Bread"].state is DocumentState.GONE
    assert not [hit for hit in kb.search("bake for an hour") if hit.title == "Bread"]
    assert len(kb.ratings.to_frame()) == 1
    write_lines(tmp_path / "a.jsonl", *both)
    assert kb.refresh().new == 1
    assert kb.search("bake")[0].chunk.id == chunk


def test_equal_passages_are_embedded_once(kb, tmp_path):
    text = "The same words.\n"
    report = kb.ingest(write_lines(tmp_path / "a.jsonl", doc("A", text)))
    assert report.chunks_embedded == 1
    again = {"uri": "doc:B", "title": "A", "text": text}
    report = kb.ingest(write_lines(tmp_path / "b.jsonl", again))
    assert (report.chunks_added, report.chunks_embedded) == (1, 0)


def test_new_chunking_splits_stored_documents_without_their_source(kb, tmp_path):
    long = "# A\n\n" + "\n\n".join(f"Paragraph {i} says something." for i in range(60))
    kb.ingest(write_lines(tmp_path / "a.jsonl", doc("A", long)))
    before = kb.info().chunks
    (tmp_path / "a.jsonl").unlink()
    kb.configure(KnowledgeBaseSpec(chunking=ChunkingSpec(size=200)))
    assert kb.info().chunks > before
    content = kb.documents["doc:A"].content
    assert all(content[c.start : c.end] == c.text for c in kb.chunks)
    assert kb.search("paragraph 59 says")[0].title == "A"


@pytest.mark.parametrize("score", [0, 6, 2.5, "5", None])
def test_rating_must_be_1_to_5(kb, score):
    added = kb.add("Tea", TEA)
    with pytest.raises(ConfigError, match="1 to 5"):
        kb.rate(added.id, score)


ODD = [
    '"',
    "NEAR(a b)",
    "a* OR b",
    "-",
    "terms:x",
    "the of and",
    "🙂",
    "日本語",
    "\0",
    "x" * 100_000,
]


@pytest.mark.parametrize("query", ODD)
def test_odd_queries_are_answered(kb, query):
    kb.add("Tea", TEA)
    for mode in ("hybrid", "dense", "lexical"):
        assert len(kb.search(query, mode=mode)) <= 10


def test_empty_knowledge_base_gives_empty_results(kb):
    assert len(kb.search("anything")) == 0
    assert kb.search("anything").to_frame().empty
    assert kb.documents.to_frame().empty
    assert kb.chunks.to_frame().empty
    assert kb.ratings.to_frame().empty


def test_reprs_show_hostile_text_as_text(kb):
    nasty = "<script>alert(1)</script>"
    kb.add(nasty, f"# {nasty}\n\n{nasty} tea", source="javascript:alert(1)")
    for shown in (kb.search("tea")._repr_html_(), kb._repr_html_()):
        assert "<script>" not in shown
        assert "href='javascript:" not in shown


def test_search_is_complete_while_chroma_lags_behind(kb, tmp_path, monkeypatch):
    """As when another process stores and has not written to Chroma yet."""
    kb.add("Tea", TEA)
    kb.search("tea")
    with monkeypatch.context() as patch:
        patch.setattr(vector_store.VectorIndex, "apply", lambda *_: 0)
        kb.add("Bread", "# Bread\n\nBake for an hour.\n")
    assert kb.info().pending == 1
    assert kb.search("oven loaf baking", mode="dense")[0].title == "Bread"


def test_sync_removes_documents_of_dropped_sources(kb, tmp_path):
    a = write_lines(tmp_path / "a.jsonl", doc("A", "Apples."))
    b = write_lines(tmp_path / "b.jsonl", doc("B", "Pears."))
    kb.add("Mine", "Added by hand.")
    kb.sync([a, b])
    kb.sync([a])
    assert set(kb.documents.to_frame().title) == {"A", "Mine"}


def test_document_is_updated_and_deleted_by_id(kb):
    added = kb.add("Tea", TEA, tags=["drinks"], metadata={"by": "me"})
    kept = {chunk.id for chunk in kb.chunks}
    changed = kb.documents.update(added.id, content=TEA + "\n## White {#white}\n\nSteep long.\n")
    assert changed.id == added.id
    assert kept < {chunk.id for chunk in kb.chunks}
    document = kb.documents[added.id]
    assert (document.tags, document.metadata) == (("drinks",), {"by": "me"})
    assert kb.search("white tea")[0].chunk.anchor == "white"
    kb.documents.update(document.uri, title="Infusions", tags=[])
    assert kb.search("infusions")[0].title == "Infusions"
    assert kb.documents[added.id].tags == ()
    kb.documents.delete(added.id)
    assert len(kb.search("white tea")) == 0
    with pytest.raises(NotFoundError):
        kb.documents.update(added.id, title="Gone")


@pytest.mark.parametrize("wrong", [{"title": " "}, {"content": "\n"}, {"document_type": "novel"}])
def test_document_cannot_be_emptied(kb, wrong):
    added = kb.add("Tea", TEA)
    with pytest.raises(ConfigError):
        kb.documents.update(added.id, **wrong)
    assert kb.documents[added.id].title == "Tea"


def test_concurrent_changes_of_different_fields_are_kept(kb):
    added = kb.add("Tea", "Green tea.")

    def label(number):
        kb.documents.update(added.id, title=f"Tea {number}")
        kb.documents.update(added.id, metadata={"number": number})

    with ThreadPoolExecutor() as pool:
        changes = [pool.submit(label, number) for number in range(4)]
        changes.append(pool.submit(kb.documents.update, added.id, content="Green tea steeps."))
    for change in changes:
        change.result()
    document = kb.documents[added.id]
    assert document.content == "Green tea steeps."
    assert document.title != "Tea"
    assert "number" in document.metadata


def test_source_is_not_remembered_on_request(kb, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "tea.md").write_text("# Tea\n\nGreen tea steeps.\n")
    (tmp_path / "docs" / "bad.pdf").write_bytes(b"no PDF")
    report = kb.ingest({"type": "files", "path": "docs"}, base=tmp_path, remember=False)
    assert (report.new, report.documents) == (1, (kb.documents["docs/tea.md"].id,))
    assert [one.uri for one in (*report.failed, *report.skipped)] == ["docs/bad.pdf"]
    assert not len(kb.sources)
    again = kb.ingest({"type": "files", "path": "docs"}, base=tmp_path, remember=False)
    assert (again.new, again.same, again.documents) == (0, 1, report.documents)
    missing = kb.ingest({"type": "files", "path": "nowhere"}, base=tmp_path, remember=False)
    assert [one.uri for one in missing.failed] == ["nowhere"]
    assert "no such file" in missing.failed[0].reason


@pytest.mark.parametrize(
    ("before", "after", "chunking"),
    [
        ("Tea steeps.\n\fMilk is cold.", "New.\n\fTea steeps.\n\fMilk is cold.", "page"),
        ("# Use\n\nTea.\n", "# Use\n\nMilk.\n\n# Use\n\nTea.\n", "headings"),
    ],
)
def test_unchanged_chunk_gets_its_new_place(kb, before, after, chunking):
    kb.configure(KnowledgeBaseSpec(chunking=ChunkingSpec(strategy=chunking)))

    def stored(text, source):
        known = kb.add("Book", text, source=source).id
        found = [chunk for chunk in kb.chunks if chunk.document_id == known]
        return sorted(found, key=lambda chunk: chunk.start)

    def place(chunk):
        return chunk.text, chunk.position, chunk.start, chunk.end, chunk.page, chunk.anchor

    kept = {chunk.id for chunk in stored(before, "doc:a")}
    moved = stored(after, "doc:a")
    assert {chunk.id for chunk in moved} > kept
    assert [place(chunk) for chunk in moved] == [place(one) for one in stored(after, "doc:b")]
