"""Documents and chunks as JSON lines and Parquet: written, and read back equal."""

import json
from dataclasses import replace

import pytest

import kbkit
from kbkit.errors import ConfigError, ConflictError, ExportError
from kbkit.knowledge_base.chunks import write_chunks, write_documents
from kbkit.sources import SourceContext
from kbkit.sources.tables import read_parquet
from kbkit.stores.catalog import corpus
from kbkit.stores.catalog.database import unpack

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

LINES = (
    {
        "uri": "https://a.example/1.2/tea",
        "title": "Tee ☕ \u2028",
        "tags": ["hot", "Ü"],
        "content": "# Tea\n\n```\n  code\t\n```\n\nend \U0001f375 \n\n",
        "document_type": "faq",
        "license": "MIT",
        "metadata": {"language": "de", "n": [1.5, None, {"é": True}], "x": None},
    },
    {"uri": "note:2", "content": "Milk.", "metadata": {"license": "my own", "images": {"a": "b"}}},
    {"uri": "note:3", "title": "Bread", "content": "Bread is baked for an hour."},
)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    (folder / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES))
    with kbkit.open(folder / "kb") as workspace:
        workspace.create("one").ingest(kbkit.JsonlSource(path=str(folder / "a.jsonl")))
        yield workspace


def bare(kb):
    return [replace(document, id="", fetched_at=None) for document in kb.documents]


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_documents_are_written_and_read_back_equal(workspace, tmp_path, ending):
    one, path = workspace["one"], tmp_path / f"a.{ending}"
    assert write_documents(one.documents, path) == 3
    kind = {"jsonl": kbkit.JsonlSource, "parquet": kbkit.ParquetSource}[ending]
    two = workspace.create(f"from-{ending}")
    report = two.ingest(kind(path=str(path)))
    assert not report.skipped
    assert len(bare(one)) == 3
    assert bare(two) == bare(one)
    # names of pictures, which are not in the file
    assert [document.images for document in two.documents] == [{}, {}, {}]
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(ConflictError, match="already exists"):
        write_documents(one.documents, path)


def test_chunks_are_written_with_their_vectors(workspace, tmp_path):
    kb = workspace["one"]
    chunks = list(kb.chunks)
    lines, table = tmp_path / "a.jsonl", tmp_path / "a.parquet"
    assert write_chunks(kb.chunks, lines) == write_chunks(kb.chunks, table, vectors=True)
    records = [json.loads(line) for line in lines.read_text().splitlines()]
    rows = pq.read_table(table).to_pylist()
    vectors = [row.pop("vector") for row in rows]
    assert [row["text"] for row in rows] == [chunk.text for chunk in chunks]
    assert [{key: one for key, one in row.items() if one is not None} for row in rows] == records
    assert [tuple(row["heading_path"]) for row in rows] == [one.heading_path for one in chunks]
    assert {len(vector) for vector in vectors} == {kb.info().dimensions}
    with kb._handle.stores.database.read() as transaction:
        kept = {
            row.id: unpack([row.vector], len(vectors[0]))[0].tolist()
            for row in corpus.iter_indexed(transaction, kb._handle.id)
        }
    assert vectors == [kept[row["id"]] for row in rows]
    with pytest.raises(ConfigError, match="workspace's folder"):
        write_chunks(chunks, tmp_path / "b.parquet", vectors=True)


def test_unwritable_file_is_one_error(workspace, tmp_path):
    documents = workspace["one"].documents
    with pytest.raises(ConfigError, match=r"\.jsonl or \.parquet"):
        write_documents(documents, tmp_path / "a.csv")
    with pytest.raises(ExportError, match=r"none/a\.jsonl: cannot be written"):
        write_documents(documents, tmp_path / "none" / "a.jsonl")
    assert not list(tmp_path.iterdir())


def parquet(path, **columns):
    pq.write_table(pa.table(columns), path)


HOSTILE = {
    "no Parquet": lambda path: path.write_bytes(b"PAR1" + b"\xff" * 1000 + b"PAR1"),
    "empty": lambda path: path.write_bytes(b""),
    "cut off": lambda path: (
        parquet(path, uri=["a"], content=["x" * 999]),
        path.write_bytes(path.read_bytes()[:-20]),
    ),
    "overwritten": lambda path: (
        parquet(path, uri=["a"] * 999, content=["x" * 99] * 999),
        path.write_bytes(b"PAR1" + bytes(200) + path.read_bytes()[204:]),
    ),
    "other columns": lambda path: parquet(path, uri=["a"], colour=["red"]),
    # 2 kB that unpack to 100 texts of 40 MB at once
    "bomb": lambda path: parquet(
        path,
        uri=[str(n) for n in range(200)],
        content=pa.DictionaryArray.from_arrays(pa.array([0] * 200), pa.array(["x" * 20_000_000])),
    ),
}


@pytest.mark.parametrize("write", HOSTILE.values(), ids=HOSTILE)
def test_hostile_parquet_is_one_error_and_changes_nothing(workspace, tmp_path, write, monkeypatch):
    monkeypatch.setattr("kbkit.sources.tables._MEMORY", 1_500_000_000)
    path = tmp_path / "a.parquet"
    write(path)
    one = workspace["one"]
    before = bare(one)
    report = one.ingest(kbkit.ParquetSource(path=str(path)), remember=False)
    (problem,) = [*report.failed, *report.skipped]
    assert problem.uri.endswith("a.parquet")
    assert problem.reason.startswith("cannot be read as Parquet (")
    assert "\n" not in problem.reason
    assert bare(one) == before


def test_invalid_rows_are_skipped_with_their_number(tmp_path):
    parquet(
        tmp_path / "a.parquet",
        uri=["a", "b", "c", "a"],
        content=["One.", None, "Three.", "x"],
        metadata=['{"n": 1}', None, "{", None],
    )
    source = kbkit.ParquetSource(path="a.parquet")
    found = list(read_parquet(source, SourceContext(base=tmp_path)))
    assert [event.document.metadata for event in found if event.document] == [{"n": 1}]
    assert [event.reason for event in found[1:]] == [
        "row 2: content: is missing",
        "row 3: metadata: must be a valid dictionary",
        "row 4: uri is the same as in row 1",
    ]


def test_reading_can_be_stopped(tmp_path):
    parquet(tmp_path / "a.parquet", uri=["a"], content=["One."])
    source = kbkit.ParquetSource(path="a.parquet")
    assert not list(read_parquet(source, SourceContext(base=tmp_path, stop=lambda: True)))
