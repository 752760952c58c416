"""The sparse ridge regression against the textbook solution."""

import numpy as np
import pytest
from scipy import sparse

from kbkit.embedding import regression as module
from kbkit.embedding.regression import ridge


def problem(rows=300, columns=80, targets=100, seed=0):
    rng = np.random.default_rng(seed)
    design = sparse.random(rows, columns, density=0.2, random_state=rng, dtype=np.float32).tocsr()
    wanted = rng.standard_normal((rows, targets)).astype(np.float32)
    penalty = rng.uniform(0.1, 1, columns).astype(np.float32)
    return design, wanted, penalty


def textbook(design, wanted, penalty):
    dense = design.toarray().astype(np.float64)
    return np.linalg.solve(dense.T @ dense + np.diag(penalty), dense.T @ wanted)


def cost(found, design, wanted, penalty):
    missed = np.square(design @ found - wanted).sum()
    return missed + (penalty[:, None] * np.square(found)).sum()


@pytest.mark.parametrize("columns", [80, module._HEAVY + 200])
def test_it_solves_the_normal_equations(columns):
    """With all columns solved together, and with some that are left to the iteration."""
    given = problem(columns=columns)
    best = textbook(*given)
    found = ridge(*given)
    start = cost(np.zeros_like(best), *given)
    assert cost(found, *given) - cost(best, *given) < 0.005 * start
    if columns <= module._HEAVY:
        np.testing.assert_allclose(found, best, atol=1e-3)


def test_the_penalty_of_a_column_draws_it_to_zero():
    design, wanted, penalty = problem()
    free = ridge(design, wanted, penalty)
    penalty[5] = 1e6
    held = ridge(design, wanted, penalty)
    assert np.abs(held[5]).max() < 1e-3 * np.abs(free[5]).max()
    assert np.linalg.norm(held[6]) > 0.5 * np.linalg.norm(free[6])


def test_constant_targets_and_empty_columns_stay_zero():
    design, wanted, penalty = problem()
    wanted[:, 3] = 0
    design = sparse.hstack([design, sparse.csr_matrix((300, 1))], format="csr", dtype=np.float32)
    found = ridge(design, wanted, np.append(penalty, np.float32(1)))
    assert np.isfinite(found).all()
    assert not found[:, 3].any()
    assert not found[-1].any()


def test_doubled_columns_are_no_trouble():
    design, wanted, _ = problem()
    design = sparse.hstack([design, design], format="csr")
    found = ridge(design, wanted, np.full(160, 1e-4, np.float32))
    assert np.isfinite(found).all()
    residual = np.linalg.norm(design @ found - wanted)
    best = np.linalg.norm(design @ textbook(design, wanted, np.full(160, 1e-4)) - wanted)
    assert residual < 1.02 * best
