"""Measures, data and copies of the benchmarks."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from kbkit.recipes import KnowledgeBaseSpec, StaticEmbedding

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
WITHOUT_DATA = {"fitted": "none: see above", "quality": "failed with exit code 1"}
"""Benchmarks and their lines of the index when their data is missing."""


@pytest.fixture(scope="module")
def corpora() -> ModuleType:
    spec = importlib.util.spec_from_file_location("_corpora", BENCHMARKS / "_corpora.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclasses are looked up
    spec.loader.exec_module(module)
    return module


def test_figures_of_a_question(corpora: ModuleType) -> None:
    question = corpora.about_pages("how?", ["best", "good"])
    best, good, other = (corpora.Place(name, 0, 0) for name in ("best", "good", "other"))
    assert question.ndcg([best, best, good]) == 1
    once = question.ndcg([other, best, good])
    assert question.ndcg([other] * 12 + [best, good]) == pytest.approx(once)
    assert 0 < question.ndcg([good, best]) < 1
    assert question.ndcg([other]) == 0
    assert question.figures([good, best])["hit"] == 1
    found = question.figures([other, other, good])
    assert (found["hit"], found["mrr"]) == (0, 1 / 2)
    assert question.figures([other])["mrr"] == 0


def test_knowledge_bases_of_other_code_are_rebuilt(
    corpora: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpora, "KEPT", tmp_path)
    folder = corpora.kept_folder("one")
    (folder / "catalog").touch()
    assert (corpora.kept_folder("one") / "catalog").exists()
    assert not (corpora.kept_folder("one", rebuild=True) / "catalog").exists()
    (folder / "catalog").touch()
    (folder / "made-by").write_text("other code")
    assert not (corpora.kept_folder("one") / "catalog").exists()


def test_question_tables_have_no_duplicates(corpora: ModuleType) -> None:
    tables = sorted(corpora.OWN.glob("*.tsv"))
    assert len(tables) >= 5
    for table in tables:
        rows = [line.split("\t") for line in table.read_text("utf-8").splitlines()]
        assert len(rows) >= 30, table
        assert len({row[0] for row in rows}) == len(rows), table
        for _, pages, kind in rows:
            named = pages.split(",")
            assert all(named), table
            assert len(set(named)) == len(named), table
            assert kind in {"paraphrase", "keyword", "identifier", "why"}


@pytest.mark.slow
def test_benchmarks_without_data_are_listed_in_the_index(tmp_path: Path) -> None:
    copied = tmp_path / "project" / "benchmarks"
    copied.parent.mkdir()
    shutil.copytree(BENCHMARKS, copied, ignore=shutil.ignore_patterns("__pycache__", "questions"))
    (copied / "quick.py").write_text('"""Fails at once."""\nraise SystemExit(3)\n', "utf-8")
    command = [sys.executable, copied / "_all.py", "quick", *WITHOUT_DATA]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    index = (tmp_path / "project" / "build" / "bench" / "index.md").read_text("utf-8")
    assert "| quick | failed with exit code 3 |" in index
    for name, result in WITHOUT_DATA.items():
        assert f"| {name} | {result} |" in index
    assert "scifact: its data is missing" in done.stdout


def test_paraphrases_are_complete_and_unique() -> None:
    lines = (BENCHMARKS / "data" / "paraphrases.tsv").read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    assert len(rows) >= 40
    assert {len(row) for row in rows} == {5}
    asked = [(row[0], question) for row in rows for question in row[2:]]
    assert len(set(asked)) == len(asked)


def test_copies_in_the_catalog_equal_an_ingest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.setenv("KBKIT_IMPROVE", "off")
    copies = importlib.import_module("_scale_copies")
    words = "coroutine cancelled shield waiter protected event future thread queue signal handler"
    text = f"# Timeouts\n\nEach {words}.\n\n## Shields\n\nNo {words} any more.\n"
    with copies.without_chroma(tmp_path / "kb") as workspace:
        spec = KnowledgeBaseSpec(summary_embedding=StaticEmbedding())  # needs no model
        kb = workspace.create("scale", spec=spec)
        for number in range(3):
            kb.add(f"Page {number}", text * 5, source=f"copy0:tasks/{number}.md")
        before = kb.info()
        copies.copy(kb, before.chunks + 1)
        assert (kb.info().documents, kb.info().chunks) == (6, 2 * before.chunks)
        copies.copy(kb, kb.info().chunks + 1)
        info = kb.info()
        assert (info.documents, info.chunks) == (9, 3 * before.chunks)
        assert (info.pending, info.summaries_waiting, info.chunks_waiting) == (0, 0, 0)
        contents = {document.id: document.content for document in kb.documents}
        assert len(set(contents.values())) == 3
        chunks = list(kb.chunks)
        assert all(c.text == contents[c.document_id][c.start : c.end] for c in chunks)
        renamed = {word for content in contents.values() for word in content.split()}
        new = next(word for word in renamed - set(text.split()) if word.isalpha())
        hits = kb.search(new, mode="lexical").hits
        assert hits
        assert all(new in contents[hit.chunk.document_id] for hit in hits)
        assert kb.search(chunks[-1].text, mode="dense").hits
        assert kb.search("tasks", filters={"path": "tasks/*"}, mode="dense").hits
        assert not (tmp_path / "kb" / "chroma").exists()
