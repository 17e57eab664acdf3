"""Training problems and held-out rows of every fold, from rows in memory or from moments."""

from __future__ import annotations

import hashlib
from typing import Protocol as Interface

import numpy as np
from numpy.typing import NDArray

from ..solvers import TREE_ONLY, GramForm, LeftOut, SparseRidgeProblem, gram_root
from .design import Array, Design
from .folds import Folds
from .moments import FoldMoments

CACHE_BYTES = 256_000_000


class FoldData(Interface):
    """What cross-validation needs of the data, in solved units."""

    folds: Folds
    p: int

    def full(self) -> SparseRidgeProblem:
        """All rows."""

    def training(self, j: int) -> SparseRidgeProblem:
        """Rows outside fold j. γ and τ are placeholders: replace them."""

    def held_out(self, j: int) -> tuple[Array, Array]:
        """Rows H and targets t with fold error Σ (t − Hβ)²; maybe fewer rows than held out."""

    def digest(self) -> bytes:
        """Identify the data, their order and their folds."""


class RowFolds:
    """Folds of rows in memory.

    Parameters
    ----------
    X, y : arrays, shape (n, p) and (n,)
        In solved units (``Design.apply``).
    folds : Folds
    refit_intercept : bool
        Centre every fold on its own training means.
    """

    def __init__(self, X: Array, y: Array, folds: Folds, refit_intercept: bool) -> None:
        if refit_intercept:  # the mean of a far-off column is rounded: take the rest off, too
            X, y = X - X.mean(axis=0), y - y.mean()
        self.X, self.y, self.folds = X, y, folds
        self.p = X.shape[1]
        self.refit_intercept = refit_intercept
        self._full: SparseRidgeProblem | None = None
        rows = X.shape[0] if self.p > TREE_ONLY else min(X.shape[0], self.p + 1)
        per_fold = 8 * rows * (self.p + 1)
        self._cache: dict[int, SparseRidgeProblem] | None = (
            {} if per_fold * folds.k <= CACHE_BYTES else None
        )

    def full(self) -> SparseRidgeProblem:
        """All rows (centred already where an intercept is fitted)."""
        if self._full is None:
            self._full = SparseRidgeProblem(self.X, self.y, gamma=1.0, tau=1).compressed()
        return self._full

    def training(self, j: int) -> SparseRidgeProblem:
        """Rows outside fold j, centred on their own means where the intercept is refitted."""
        if self._cache is not None and j in self._cache:
            return self._cache[j]
        train, _ = self.folds.split(j)
        X, y = self.X[train], self.y[train]
        if self.refit_intercept:
            X, y = _centred(X), _centred(y[:, None])[:, 0]
        problem = SparseRidgeProblem(X, y, gamma=1.0, tau=1)
        if self.p <= TREE_ONLY:  # branch-and-bound works on Gram matrices
            problem.compressed()
        if self._cache is not None:
            self._cache[j] = problem
        return problem

    def held_out(self, j: int) -> tuple[Array, Array]:
        """Held-out rows and targets, about the training means where the intercept is refitted."""
        train, test = self.folds.split(j)
        X, y = self.X[test], self.y[test]
        if self.refit_intercept:
            X, y = X - self.X[train].mean(axis=0), y - self.y[train].mean()
        return X, y

    def digest(self) -> bytes:
        """Identify rows and their order."""
        found = hashlib.sha256(np.ascontiguousarray(self.X).tobytes())
        found.update(np.ascontiguousarray(self.y).tobytes())
        return found.digest()

    def deleted_rows(self) -> tuple[Array, Array, float]:
        """Rows and targets whose deletion from the full problem gives each leave-one-out fold.

        The held-out error of row i is the third value times the deleted residual. With an
        intercept refitted in every fold, deleting row i of centred data is a down-date by
        √(n/(n−1)) times that row.
        """
        if not self.refit_intercept:
            return self.X, self.y, 1.0
        n = self.X.shape[0]
        weight = float(np.sqrt(n / (n - 1.0)))
        return weight * self.X, weight * self.y, weight

    @property
    def row_of(self) -> NDArray[np.intp]:
        """Row that each leave-one-out fold holds out."""
        assert self.folds.label is not None
        return np.argsort(self.folds.label, kind="stable")

    def left_out(self, gram: GramForm) -> LeftOut | None:
        """The folds as rows left out of the full problem; None where folds are not a partition.

        With an intercept refitted in every fold the held-out rows' sum is left out as one more
        row (a row alone is scaled instead): centring on the training means is a rank-one change.
        """
        if self.folds.label is None:
            return None
        n = self.X.shape[0]
        if self.folds.leave_one_out:
            order = self.row_of
            rows, targets, _ = self.deleted_rows()
            return _left_out(gram, rows[order], targets[order], np.arange(n + 1), n)
        parts, responses, start = [], [], [0]
        for j in range(self.folds.k):
            held = self.folds.label == j
            X, y = self.X[held], self.y[held]
            parts.append(X)
            responses.append(y)
            if self.refit_intercept:
                root = np.sqrt(n - y.size)
                parts.append(X.sum(axis=0, keepdims=True) / root)
                responses.append(y.sum(keepdims=True) / root)
            start.append(start[-1] + y.size + int(self.refit_intercept))
        return _left_out(gram, np.vstack(parts), np.concatenate(responses), np.array(start), n)


def _left_out(
    gram: GramForm, rows: Array, targets: Array, start: NDArray[np.intp], n: int
) -> LeftOut:
    return LeftOut(
        gram, np.ascontiguousarray(rows), np.ascontiguousarray(targets), start.astype(np.int64), n
    )


class MomentFolds:
    """Folds known through their moments only: any number of rows, memory for k (p+1)² numbers."""

    def __init__(self, moments: FoldMoments, design: Design, folds: Folds) -> None:
        self.folds, self.p = folds, design.p
        self._design, self._moments = design, moments
        self._centre = design.protocol.refit_intercept
        self._everything = moments.total().about(None, design)

    def full(self) -> SparseRidgeProblem:
        """All rows."""
        return _from_joint(self._everything)

    def training(self, j: int) -> SparseRidgeProblem:
        """Rows outside fold j."""
        rest = self._moments.without(j)
        centre = rest.mean if self._centre else None
        joint = rest.about(centre, self._design)
        # a column constant in these rows is left with rounding only: make it exactly zero
        noise = np.diag(joint) <= 1e-24 * np.diag(self._everything)
        joint[noise] = joint[:, noise] = 0.0
        return _from_joint(joint)

    def held_out(self, j: int) -> tuple[Array, Array]:
        """p + 1 rows with the same sum of squared errors as fold j, whatever β."""
        centre = self._moments.without(j).mean if self._centre else None
        joint = self._moments.fold(j).about(centre, self._design)
        root = gram_root(joint)
        return root[:, : self.p], root[:, self.p]

    def digest(self) -> bytes:
        """Identify the moments of every fold."""
        found = hashlib.sha256()
        for part in self._moments.folds:
            found.update(part.mean.tobytes())
            found.update(part.scatter.tobytes())
        return found.digest()


def _centred(X: Array) -> Array:
    """X less its column means; a column of one value becomes exactly zero."""
    centred = X - X.mean(axis=0)
    centred[:, X.min(axis=0) == X.max(axis=0)] = 0.0
    return np.asarray(centred)


def _from_joint(joint: NDArray[np.float64]) -> SparseRidgeProblem:
    p = joint.shape[0] - 1
    return SparseRidgeProblem.from_gram(
        joint[:p, :p], joint[:p, p], float(joint[p, p]), gamma=1.0, tau=1
    )
