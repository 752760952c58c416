"""The benchmarks themselves: what they measure with, and that missing data stops none."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
WITHOUT_DATA = {"chunking": "none: see above", "quality": "failed with exit code 1"}
"""What the index says of them where nothing is there to be measured."""


@pytest.fixture(scope="module")
def corpora() -> ModuleType:
    spec = importlib.util.spec_from_file_location("_corpora", BENCHMARKS / "_corpora.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclasses are looked up
    spec.loader.exec_module(module)
    return module


def test_the_best_page_counts_twice_and_each_page_once(corpora: ModuleType) -> None:
    question = corpora.about_pages("how?", ["best", "good"])
    best, good, other = (corpora.Place(name, 0, 0) for name in ("best", "good", "other"))
    assert question.ndcg([best, best, good]) == 1
    assert question.ndcg([other] * 12 + [best, good]) == pytest.approx(
        question.ndcg([other, best, good])
    )
    assert 0 < question.ndcg([good, best]) < 1
    assert question.ndcg([other]) == 0


def test_figures_of_a_question(corpora: ModuleType) -> None:
    question = corpora.about_pages("how?", ["best", "good"])
    best, good, other = (corpora.Place(name, 0, 0) for name in ("best", "good", "other"))
    assert question.figures([good, best])["hit"] == 1
    found = question.figures([other, other, good])
    assert (found["hit"], found["mrr"]) == (0, 1 / 2)
    assert question.figures([other])["mrr"] == 0


def test_knowledge_bases_of_other_code_are_made_anew(
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


def test_tables_of_questions_name_pages_once(corpora: ModuleType) -> None:
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


def test_missing_data_is_told_and_all_benchmarks_are_in_the_index(tmp_path: Path) -> None:
    copied = tmp_path / "project" / "benchmarks"
    copied.parent.mkdir()
    shutil.copytree(BENCHMARKS, copied, ignore=shutil.ignore_patterns("__pycache__", "questions"))
    (copied / "quick.py").write_text('"""Fails at once."""\nraise SystemExit(3)\n', "utf-8")
    command = [sys.executable, copied / "_all.py", "quick", *WITHOUT_DATA]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    index = (tmp_path / "project" / "build" / "bench" / "index.md").read_text("utf-8")
    assert "| quick | failed with exit code 3 |" in index
    for name, told in WITHOUT_DATA.items():
        assert f"| {name} | {told} |" in index
    assert "scifact: its data is missing" in done.stdout


def test_paraphrases_are_complete_and_no_question_stands_twice() -> None:
    lines = (BENCHMARKS / "data" / "paraphrases.tsv").read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    assert len(rows) >= 40
    assert {len(row) for row in rows} == {5}
    asked = [(row[0], question) for row in rows for question in row[2:]]
    assert len(set(asked)) == len(asked)
