"""The quadratic part of the relaxation, in Gram or residual form, and systems with it."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from ..core.problem import SparseRidgeProblem
from ..kernels.linalg import Array
from .descent import gram_arrays
from .dual_bound import weights
from .gram import GramForm, residual_form


def solve_bordered(K: Array, right: Array) -> Array | None:
    """Solve with a matrix that is positive (semi)definite but for its last row and column.

    K, shape (n + 1, n + 1).
    right, shape (n + 1,).
    Returns: None where K is singular.
    """
    n = K.shape[0] - 1
    try:
        factor = sla.cho_factor(K[:n, :n], lower=True, check_finite=False)
        both = sla.cho_solve(factor, np.column_stack([right[:n], K[:n, n]]), check_finite=False)
        pivot = K[n, n] - K[n, :n] @ both[:, 1]
        last = (right[n] - K[n, :n] @ both[:, 0]) / pivot if pivot != 0.0 else 0.0
        solution = np.append(both[:, 0] - last * both[:, 1], last)
    except sla.LinAlgError:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sla.LinAlgWarning)  # the line search judges the step
            try:
                solution = sla.solve(K, right, assume_a="sym", check_finite=False)
            except (sla.LinAlgError, ValueError):
                return None
    return solution if np.isfinite(solution).all() else None


class Quadratic:
    """Q = XᵀX + (ε/2)I − D, held as a matrix or, for p ≫ n and D = 0, through X.

    ``arrays`` is what the relaxation's kernel asks, ``terms`` what the dual bound does.

    gram: Without it the quadratic is held through X.
    epsilon: ε of eq. (5).
    D, shape (p,): The diagonal extracted.
    """

    def __init__(
        self, problem: SparseRidgeProblem, gram: GramForm | None, epsilon: float, D: Array
    ) -> None:
        p, half = problem.p, epsilon / 2.0
        if gram is not None:
            self.Q = replace(gram, D=D - half).quadratic()
            self.X, self.e, self.mean = np.zeros((0, 0)), 0.0, float(np.trace(self.Q)) / p
            self.arrays: Any = gram_arrays(self.Q)
            terms = gram.terms(problem.gamma / 2.0)
            # ε/2 off γ/2 and onto Q: lengths are those of γ/2
            self.terms = terms._replace(w=weights(problem.gamma / 2.0 - half, D))
            self.b = self.terms.b
            return
        self.Q, self.e = np.zeros((0, 0)), half
        self.X = np.ascontiguousarray(problem._base[:, :p].T)
        self.y = problem._base[:, p].copy()
        self.r = self.y.copy()
        self.arrays, self.terms = residual_form(problem, self.X, self.y, self.r, half)
        self.b, self.mean = self.terms.b, float(self.arrays[5].mean())

    def gradient(self, beta: Array) -> Array:
        """b − Qβ; the residual kept is that of β from here on.

        beta, shape (p,).
        Returns, shape (p,).
        """
        if self.X.shape[0] == 0:
            return np.asarray(self.b - self.Q @ beta)
        self.r[:] = self.y - beta @ self.X
        return np.asarray(self.X @ self.r - self.e * beta)

    def form(self, betas: Array) -> Array:
        """βᵀQβ for every row.

        betas, shape (m, p).
        Returns, shape (m,).
        """
        if self.X.shape[0] == 0:
            return np.asarray(np.einsum("ij,ij->i", betas @ self.Q, betas))
        fitted = betas @ self.X
        squares = np.einsum("ij,ij->i", fitted, fitted)
        return np.asarray(squares + self.e * np.einsum("ij,ij->i", betas, betas))

    def factor(self, columns: NDArray[np.intp]) -> tuple[Array, Array]:
        """F and y with Q = FᵀF and b = Fᵀy on some columns.

        Returns F, y, shape (r, m) and (r,).
        """
        if self.X.shape[0] > 0 and self.e == 0.0:
            return np.ascontiguousarray(self.X[columns].T), self.y
        Q = self.block(columns)
        values, vectors = np.linalg.eigh(Q)
        large = values > 1e-13 * max(float(values[-1]), 1e-300)
        root = np.sqrt(values[large])
        F = root[:, None] * vectors[:, large].T
        return F, (vectors[:, large].T @ self.b[columns]) / root

    def block(self, columns: NDArray[np.intp]) -> Array:
        """Rows and columns of Q.

        Returns, shape (m, m).
        """
        if self.X.shape[0] == 0:
            return np.asarray(self.Q[np.ix_(columns, columns)])
        part = self.X[columns]
        return np.asarray(part @ part.T + self.e * np.eye(columns.size))
