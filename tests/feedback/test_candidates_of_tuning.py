"""What tuning adds up over the candidates that it keeps."""

from types import SimpleNamespace

import numpy as np
import pytest

from kbkit.feedback.evaluate import _disjoint, _ideal_dcg


def test_the_best_possible_order_begins_with_the_best():
    best = 3 + 2 / np.log2(3) + 1 / np.log2(4)
    assert _ideal_dcg(SimpleNamespace(gains={"a": 1, "b": 3, "c": 2})) == pytest.approx(best)


def test_groups_of_different_queries_share_no_number():
    parts = [np.array(part, np.int64) for part in ([0, 1], [], [0], [0, 2])]
    assert _disjoint(parts).tolist() == [0, 1, 2, 3, 5]
