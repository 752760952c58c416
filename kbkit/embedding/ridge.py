"""Ridge regression with a sparse design and many targets, in bounded memory.

The normal equations ``(X'X + diag(p)) E = X'Y`` are solved by conjugate gradients (Hestenes and
Stiefel, 1952), all columns side by side, a block of columns at a time. The preconditioner solves
the equations of the heaviest columns of X together, by Cholesky, and those of all others one by
one: a block Jacobi preconditioner (Saad, "Iterative Methods for Sparse Linear Systems", 2003,
chapter 10). Word counts are what it is made for: some hundred frequent words make nearly all of
the correlation, so that ten steps do. Unlike the dual solve, which needs ``n * n`` memory, this
needs a few blocks, whatever the number of rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]

_HEAVY = 600
"""Columns of the design that the preconditioner solves together."""
_BLOCK = 96
"""Targets solved at once; their vectors fit the processor's cache better than all would."""
_STEPS = 60
_CLOSE = 0.03
"""Residual, over that at the start, at which a block is done. Smaller changes no ranking."""


def ridge(design: Any, targets: Matrix, penalty: Matrix) -> Matrix:
    """The E that makes ``|X E - Y|^2 + sum_t penalty_t |E_t|^2`` smallest.

    Source: Hoerl and Kennard, "Ridge Regression: Biased Estimation for Nonorthogonal Problems"
    (1970), with a penalty for each row of E as in Tikhonov's general form.
    """
    transposed = design.T.tocsr()
    solve = _Preconditioner(design, penalty)
    result = np.empty((design.shape[1], targets.shape[1]), np.float32)
    for start in range(0, targets.shape[1], _BLOCK):
        columns = slice(start, start + _BLOCK)
        right = transposed @ np.ascontiguousarray(targets[:, columns], np.float32)
        result[:, columns] = _conjugate_gradients(design, transposed, penalty, right, solve)
    return result


class _Preconditioner:
    """An approximate inverse of ``X'X + diag(p)``."""

    def __init__(self, design: Any, penalty: Matrix) -> None:
        from scipy.linalg import cho_factor, cho_solve

        weight = np.asarray(design.power(2).sum(axis=0), np.float32).ravel()
        self._inverse: Matrix = np.reciprocal(weight + penalty)[:, None]
        self._heavy = np.sort(np.argsort(-weight, kind="stable")[:_HEAVY])
        part = design[:, self._heavy]
        block: Matrix = (part.T @ part).toarray()
        # a little more, lest rounding make a nearly singular block indefinite
        block[np.diag_indices_from(block)] += penalty[self._heavy] + 1e-5 * weight[self._heavy]
        self._factor = cho_factor(block, lower=True, overwrite_a=True, check_finite=False)
        self._cho_solve = cho_solve

    def __call__(self, right: Matrix) -> Matrix:
        solved: Matrix = self._inverse * right
        solved[self._heavy] = self._cho_solve(self._factor, right[self._heavy], check_finite=False)
        return solved


def _conjugate_gradients(
    design: Any, transposed: Any, penalty: Matrix, right: Matrix, solve: _Preconditioner
) -> Matrix:
    """Solve for some columns; nearly all of the time goes into memory, so `right` is used up."""
    found, spare = np.zeros_like(right), np.empty_like(right)
    rest = right
    direction = solve(rest)
    size = first = _dots(rest, direction)
    for _ in range(_STEPS):
        # a target that is constant has nothing to solve
        open_ = size > first * _CLOSE**2
        if not open_.any():
            break
        image = transposed @ (design @ direction)
        image += np.multiply(penalty[:, None], direction, out=spare)
        step = _ratio(size, _dots(direction, image))
        found += np.multiply(step, direction, out=spare)
        rest -= np.multiply(step, image, out=spare)
        solved = solve(rest)
        before, size = size, _dots(rest, solved)
        direction *= _ratio(size, before)
        direction += solved
    return found


def _dots(a: Matrix, b: Matrix) -> Matrix:
    products: Matrix = np.einsum("ij,ij->j", a, b)
    return products


def _ratio(a: Matrix, b: Matrix) -> Matrix:
    ratios: Matrix = np.divide(a, b, out=np.zeros_like(a), where=b > 0)
    return ratios
