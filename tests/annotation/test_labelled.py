"""What the rules get right of chunks that a person labelled; benchmarks/annotation.py shows more.

The floors are a little below what was measured, on the half that chose no weights too.
"""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def benchmark():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        yield importlib.import_module("annotation")


@pytest.fixture(scope="module")
def chunks(benchmark):
    return benchmark.labelled()


def test_there_are_enough_labels_of_enough_manuals(chunks):
    assert len(chunks) >= 200
    assert len({chunk.manual for chunk in chunks}) >= 4
    assert sum(chunk.tuning for chunk in chunks) == len(chunks) / 2
    assert {chunk.frame for chunk in chunks} == {
        None, "causal", "constraint", "pattern", "equivalence", "taxonomy", "procedure"
    }  # fmt: skip


@pytest.mark.parametrize(("tuning", "accuracy", "f1"), [(True, 0.77, 0.76), (False, 0.69, 0.75)])
def test_frames_and_entities(benchmark, chunks, tuning, accuracy, f1):
    got = benchmark.scores([chunk for chunk in chunks if chunk.tuning == tuning])
    assert got.accuracy >= accuracy
    assert got.f1 >= f1


def test_frames_are_right_as_often_as_the_confidence_says(benchmark, chunks):
    bins = benchmark.reliability([chunk for chunk in chunks if not chunk.tuning])
    assert sum(held for held, _, _ in bins) == len(chunks) / 2
    off = sum(held * abs(mean - right) for held, mean, right in bins) / (len(chunks) / 2)
    assert off <= 0.1  # expected calibration error
    assert bins[-1][2] > bins[0][2]
