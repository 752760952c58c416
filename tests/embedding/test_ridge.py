"""The sparse ridge regression against the textbook solution."""

import numpy as np
import pytest
from scipy import sparse

from kbkit.embedding import regression as module
from kbkit.embedding.regression import ridge


def problem(columns=80):
    rng = np.random.default_rng(0)
    design = sparse.random(300, columns, density=0.2, random_state=rng, dtype=np.float32).tocsr()
    targets = rng.standard_normal((300, 100)).astype(np.float32)
    penalty = rng.uniform(0.1, 1, columns).astype(np.float32)
    return design, targets, penalty


def textbook(design, targets, penalty):
    dense = design.toarray().astype(np.float64)
    return np.linalg.solve(dense.T @ dense + np.diag(penalty), dense.T @ targets)


def cost(solution, design, targets, penalty):
    residual = np.square(design @ solution - targets).sum()
    return residual + (penalty[:, None] * np.square(solution)).sum()


@pytest.mark.parametrize("columns", [80, module._HEAVY + 200])
def test_ridge_solves_the_normal_equations_directly_and_iteratively(columns):
    case = problem(columns)
    best = textbook(*case)
    solution = ridge(*case)
    start = cost(np.zeros_like(best), *case)
    assert cost(solution, *case) - cost(best, *case) < 0.005 * start
    if columns <= module._HEAVY:
        np.testing.assert_allclose(solution, best, atol=1e-3)


def test_large_penalty_of_a_column_draws_it_to_zero():
    design, targets, penalty = problem()
    free = ridge(design, targets, penalty)
    penalty[5] = 1e6
    held = ridge(design, targets, penalty)
    assert np.abs(held[5]).max() < 1e-3 * np.abs(free[5]).max()
    assert np.linalg.norm(held[6]) > 0.5 * np.linalg.norm(free[6])


def test_repeated_columns_are_solved():
    design, targets, _ = problem()
    design = sparse.hstack([design, design], format="csr")
    solution = ridge(design, targets, np.full(160, 1e-4, np.float32))
    assert np.isfinite(solution).all()
    residual = np.linalg.norm(design @ solution - targets)
    best = np.linalg.norm(design @ textbook(design, targets, np.full(160, 1e-4)) - targets)
    assert residual < 1.02 * best
