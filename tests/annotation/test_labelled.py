"""Accuracy of the rules on labelled chunks, a little below that of benchmarks/annotation.py."""

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


@pytest.mark.parametrize(("tuning", "accuracy", "f1"), [(True, 0.75, 0.73), (False, 0.76, 0.78)])
def test_accuracy_of_frames_and_entities(benchmark, chunks, tuning, accuracy, f1):
    scores = benchmark.scores([chunk for chunk in chunks if chunk.tuning == tuning])
    assert scores.accuracy >= accuracy
    assert scores.f1 >= f1


def test_accuracy_of_frames_of_two_more_manuals(benchmark):
    fresh = benchmark.labelled_frames()
    assert len(fresh) == 60
    assert sum(chunk.is_right for chunk in fresh) / len(fresh) >= 0.76
    rows = {frame: row for frame, *row in benchmark.frames(fresh)}
    assert sum(count for count, _, _ in rows.values()) == 60
    assert rows["none"][1] >= 0.8


def test_accuracy_of_frames_agrees_with_their_confidence(benchmark, chunks):
    unseen = [chunk for chunk in chunks if not chunk.tuning]
    bins = benchmark.reliability(unseen)
    assert sum(held for held, _, _ in bins) == len(unseen)
    off = sum(held * abs(mean - right) for held, mean, right in bins) / len(unseen)
    assert off <= 0.1  # expected calibration error
    assert bins[-1][2] > bins[0][2]
