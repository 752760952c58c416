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
WITHOUT_DATA = ("chunking", "quality")


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


def test_missing_data_is_told_and_all_benchmarks_are_in_the_index(tmp_path: Path) -> None:
    copied = tmp_path / "project" / "benchmarks"
    copied.parent.mkdir()
    shutil.copytree(BENCHMARKS, copied, ignore=shutil.ignore_patterns("__pycache__"))
    (copied / "quick.py").write_text('"""Fails at once."""\nraise SystemExit(3)\n', "utf-8")
    command = [sys.executable, copied / "_all.py", "quick", *WITHOUT_DATA]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    index = (tmp_path / "project" / "build" / "bench" / "index.md").read_text("utf-8")
    assert "| quick | failed with exit code 3 |" in index
    for name in WITHOUT_DATA:
        assert f"| {name} | none: see above |" in index
    assert "scifact: its data is missing" in done.stdout
