"""Training problems and held-out rows of every fold, from rows in memory or from moments."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any
from typing import Protocol as Interface

import numpy as np
from numpy.typing import NDArray

from ..solvers.branching.row_deletion import LeftOut
from ..solvers.core.problem import LONG, SparseRidgeProblem, gram_root
from ..solvers.relaxation.gram import GramForm
from .design import Array, Design, weighted_rows
from .folds import Folds, HashedFolds
from .moments import FoldMoments

CACHE_BYTES = 256_000_000


class FoldData(Interface):
    """What cross-validation needs of the data, in solved units."""

    folds: Folds
    p: int
    fold_weight: Array  # (k,): rows of every fold, or the sum of their weights

    @property
    def total(self) -> float:
        """Sum of ``fold_weight``: what the CV error is a mean over."""

    def full(self) -> SparseRidgeProblem:
        """All rows.

        Returns, SparseRidgeProblem, whose γ and τ are placeholders.
        """

    def training(self, j: int) -> SparseRidgeProblem:
        """Rows outside fold j. γ and τ are placeholders: replace them."""

    def held_out(self, j: int) -> tuple[Array, Array]:
        """Rows H and targets t with fold error Σ (t − Hβ)²; maybe fewer rows than held out.

        Returns H, t, shape (m, p) and (m,).
        """

    def with_folds(self, folds: Folds) -> FoldData:
        """The same rows in other folds."""

    def digest(self) -> bytes:
        """Identify the data, their order and their folds.

        Returns, bytes.
        """


class RowFolds:
    """Folds of rows in memory.

    X, y, shape (n, p) and (n,): In solved units (``Design.apply``).
    refit_intercept: Centre every fold on its own training means.
    weights, shape (n,), optional: Weights >= 0 of the squared errors, in training and held out: a
        whole number counts as that many copies of a row that stay in one fold.
    scale, shape (p,), optional: Columns are divided by it once they are centred; only where the
        intercept is refitted.
    """

    raw: tuple[Array, Array] | None = None  # X and y in the user's units, of :meth:`of`

    def __init__(
        self,
        X: Array,
        y: Array,
        folds: Folds,
        refit_intercept: bool,
        weights: Array | None = None,
        scale: Array | None = None,
    ) -> None:
        self.weights, self.folds = weights, folds
        # A fold is centred from the rows as they came: a shift by the mean of all rows would leave
        # rounding of the held-out rows in its training rows.
        self._rows, self._scale = (X, y), scale
        self._means: dict[int, tuple[Array, ...]] = {}
        self.refit_intercept = refit_intercept
        self.X, self.y = self._about(self._means_of(slice(None)), slice(None))
        counts = np.ones(y.size) if weights is None else weights
        if folds.label is not None:
            sums = np.bincount(folds.label, weights=counts, minlength=folds.k)
            self.fold_weight: Array = sums.astype(np.float64)
        else:
            self.fold_weight = np.array([counts[test].sum() for _, test in folds.pairs])
        self.p = X.shape[1]
        self._full: SparseRidgeProblem | None = None
        per_fold = 8 * min(X.shape[0], self.p + 1) * (self.p + 1)
        self._cache: dict[int, SparseRidgeProblem] | None = (
            {} if per_fold * folds.k <= CACHE_BYTES else None
        )

    def __getstate__(self) -> dict[str, Any]:
        kept = self._cache is not None  # to another process go the rows, not what is made of them
        return {**self.__dict__, "_full": None, "_cache": {} if kept else None, "raw": None}

    @property
    def total(self) -> float:
        """Rows held out over all folds, or the sum of their weights."""
        return float(self.fold_weight.sum())

    @classmethod
    def of(
        cls, design: Design, X: Array, y: Array, folds: Folds, weights: Array | None = None
    ) -> RowFolds:
        """Folds of raw rows, each centred on its own where the design refits the intercept.

        X, y, shape (n, p_raw) and (n,): Raw rows; they are neither copied nor changed where every
            column is kept.
        weights, shape (n,), optional.
        """
        if not design.protocol.refit_intercept:
            made = cls(*design.apply(X, y), folds, False, weights)
        else:
            columns = X if design.p == design.p_raw else X[:, design.kept]
            made = cls(columns, y, folds, True, weights, design.x_scale)
        made.raw = X, y
        return made

    def _means_of(self, rows: NDArray[np.intp] | slice) -> tuple[Array, ...]:
        """Weighted means of X and y over some rows, and what rounding took off them."""
        if not self.refit_intercept:
            return ()
        weight = None if self.weights is None else self.weights[rows]
        found: list[Array] = []
        for values in self._rows:
            inside = values[rows]
            mean = np.average(inside, axis=0, weights=weight)
            found += [mean, np.average(inside - mean, axis=0, weights=weight)]
        return tuple(found)

    def _training_means(self, j: int) -> tuple[Array, ...]:
        if j not in self._means:
            self._means[j] = self._means_of(self._training_rows(j))
        return self._means[j]

    def _about(
        self, means: tuple[Array, ...], rows: NDArray[np.intp] | slice
    ) -> tuple[Array, Array]:
        """Rows in solved units, less the means that :meth:`_means_of` gave of these or others."""
        X, y = self._rows[0][rows], self._rows[1][rows]
        if not means:
            return X, y
        x_mean, x_rest, y_mean, y_rest = means
        X = X - x_mean
        X -= x_rest
        if self._scale is not None:
            X /= self._scale
        return X, (y - y_mean) - y_rest

    def _training_rows(self, j: int) -> NDArray[np.intp]:
        train, _ = self.folds.split(j)
        return train if self.weights is None else train[self.weights[train] > 0.0]

    def _weighted(
        self, X: Array, y: Array, rows: NDArray[np.intp] | slice | None = None
    ) -> tuple[Array, Array]:
        """Rows times the roots of their weights."""
        if self.weights is None:
            return X, y
        return weighted_rows(X, y, self.weights if rows is None else self.weights[rows])

    def with_folds(self, folds: Folds) -> RowFolds:
        """The same rows in other folds."""
        return RowFolds(*self._rows, folds, self.refit_intercept, self.weights, self._scale)

    def full(self) -> SparseRidgeProblem:
        """All rows (centred already where an intercept is fitted)."""
        if self._full is None:
            X, y = self._weighted(self.X, self.y)
            self._full = _problem(X, y)
        return self._full

    def training(self, j: int) -> SparseRidgeProblem:
        """Rows outside fold j, centred on their own means where the intercept is refitted."""
        if self._cache is not None and j in self._cache:
            return self._cache[j]
        train = self._training_rows(j)
        X, y = self._about(self._training_means(j), train)
        if self.refit_intercept:  # a column of one value becomes exactly zero
            inside, response = self._rows[0][train], self._rows[1][train]
            X[:, inside.min(axis=0) == inside.max(axis=0)] = 0.0
            y = y * (response.min() < response.max())
        X, y = self._weighted(X, y, train)
        problem = _problem(X, y)
        if self._cache is not None:
            self._cache[j] = problem
        return problem

    def held_out(self, j: int) -> tuple[Array, Array]:
        """Held-out rows and targets, about the training means where the intercept is refitted.

        Returns H, t, shape (m, p) and (m,): A row of weight 0 is a row of zeros.
        """
        _, test = self.folds.split(j)
        return self._weighted(*self._about(self._training_means(j), test), test)

    def digest(self) -> bytes:
        """Identify rows and their order.

        Returns, bytes.
        """
        found = hashlib.sha256(np.ascontiguousarray(self.X).tobytes())
        found.update(np.ascontiguousarray(self.y).tobytes())
        if self.weights is not None:
            found.update(self.weights.tobytes())
        return found.digest()

    def deleted_rows(
        self, wanted: NDArray[np.intp] | slice = slice(None)
    ) -> tuple[Array, Array, Array]:
        """Rows and targets whose deletion from the full problem gives each leave-one-out fold.

        The root of row i's weighted held-out error is the third value (n,) times the deleted
        residual. With an intercept refitted in every fold, deleting row i of weight w from centred
        data of weight W is a down-date by √(wW/(W−w)) times that row.

        wanted, ndarray of int or slice: Which rows: all by default.
        Returns rows, targets, factor, shape (n, p), (n,) and (n,).
        """
        X, y = self._weighted(self.X[wanted], self.y[wanted], wanted)
        n = y.size
        if not self.refit_intercept:
            return X, y, np.ones(n)
        weights = np.ones(n) if self.weights is None else self.weights[wanted]
        total = float(self.y.size if self.weights is None else self.weights.sum())
        factor = np.sqrt(total / (total - weights))
        return factor[:, None] * X, factor * y, factor

    @property
    def row_of(self) -> NDArray[np.intp]:
        """Row that each leave-one-out fold holds out."""
        assert self.folds.label is not None
        return np.argsort(self.folds.label, kind="stable")

    def left_out(self, gram: GramForm) -> LeftOut | None:
        """The folds as rows left out of the full problem; None where folds are not a partition.

        With an intercept refitted in every fold the held-out rows' sum is left out as one more
        row (a row alone is scaled instead): centring on the training means is a rank-one change.

        gram, GramForm, of all rows.
        """
        if self.folds.label is None:
            return None
        n = self.X.shape[0]
        if self.folds.leave_one_out:
            order = self.row_of
            rows, targets, _ = self.deleted_rows()
            return _left_out(gram, rows[order], targets[order], np.arange(n + 1), n)
        X_all, y_all = self._weighted(self.X, self.y)
        parts, responses, start = [], [], [0]
        for j in range(self.folds.k):
            held = self.folds.label == j
            y = y_all[held]
            parts.append(X_all[held])
            responses.append(y)
            if self.refit_intercept:
                weight = np.ones(y.size) if self.weights is None else self.weights[held]
                root = np.sqrt(self.total - self.fold_weight[j])
                parts.append((weight @ self.X[held])[None] / root)
                responses.append(np.array([weight @ self.y[held] / root]))
            start.append(start[-1] + y.size + int(self.refit_intercept))
        return _left_out(gram, np.vstack(parts), np.concatenate(responses), np.array(start), n)


def _left_out(
    gram: GramForm, rows: Array, targets: Array, start: NDArray[np.intp], n: int
) -> LeftOut:
    return LeftOut(
        gram, np.ascontiguousarray(rows), np.ascontiguousarray(targets), start.astype(np.int64), n
    )


class MomentFolds:
    """Folds known through their moments only: any number of rows, memory for k (p+1)² numbers.

    read: Moments of the same rows in other folds, by another pass over them.
    """

    def __init__(
        self,
        moments: FoldMoments,
        design: Design,
        folds: Folds,
        read: Callable[[Folds], FoldMoments] | None = None,
    ) -> None:
        if isinstance(folds, HashedFolds):
            folds = folds.counted(np.array([part.n for part in moments.folds], dtype=np.intp))
        self.folds, self.p, self._read = folds, design.p, read
        self._design, self._moments = design, moments
        self._centre = design.protocol.refit_intercept
        self.fold_weight = folds.sizes.astype(np.float64)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_read": None}  # other processes read no rows

    @property
    def total(self) -> float:
        """Rows held out over all folds."""
        return float(self.fold_weight.sum())

    def with_folds(self, folds: Folds) -> MomentFolds:
        """The same rows in other folds: they are read again."""
        assert self._read is not None
        return MomentFolds(self._read(folds), self._design, folds, self._read)

    def full(self) -> SparseRidgeProblem:
        """All rows."""
        return _from_moments(*self._moments.total().about(None, self._design))

    def training(self, j: int) -> SparseRidgeProblem:
        """Rows outside fold j."""
        rest = self._moments.without(j)
        joint, row = rest.about(rest if self._centre else None, self._design)
        return _from_moments(joint, row)

    def held_out(self, j: int) -> tuple[Array, Array]:
        """At most p + 2 rows with the same sum of squared errors as fold j, whatever β.

        Returns H, t, shape (m, p) and (m,).
        """
        centre = self._moments.without(j) if self._centre else None
        joint, row = self._moments.fold(j).about(centre, self._design)
        rows = gram_root(joint) if row is None else np.vstack([row, gram_root(joint)])
        return rows[:, : self.p], rows[:, self.p]

    def digest(self) -> bytes:
        """Identify the moments of every fold.

        Returns, bytes.
        """
        found = hashlib.sha256()
        for part in self._moments.folds:
            for one in (part.mean, part.tail, part.scatter):
                found.update(np.asarray(one).tobytes())
        return found.digest()


def _problem(X: Array, y: Array) -> SparseRidgeProblem:
    problem = SparseRidgeProblem(X, y, gamma=1.0, tau=1)
    return problem.compressed() if y.size > LONG * problem.p else problem


def _from_moments(joint: Array, row: Array | None) -> SparseRidgeProblem:
    G, b, yy = joint[:-1, :-1], joint[:-1, -1], float(joint[-1, -1])
    return SparseRidgeProblem.from_gram(G, b, yy, gamma=1.0, tau=1, row=row)
