"""Errors of models that leave out one fold, two folds or none: all that Algorithm 1 needs.

Partial k-fold errors h_j(θ), the empirical hypothesis stability μ̂_h(θ) (eq. 5 of the stability
paper), and the same inside every outer fold. A model without folds t and l is fitted once and
serves both as (t, l) and as (l, t).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..solvers.core.limits import Limits
from ..solvers.executor import run_units

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Subset = tuple[int, ...]  # the folds that are left out


class Learner(Protocol):
    """Models of every candidate θ on some rows, judged on all rows."""

    def __call__(self, training: Index, candidates: Sequence[int]) -> Array:
        """Losses (c, n) on all rows of the models fitted to ``training``, a row per candidate."""
        ...


@dataclass(frozen=True)
class PartialErrors:
    """Errors of every candidate θ, shape (m,) or (m, k).

    Attributes
    ----------
    held_out : ndarray, shape (m, k)
        Mean loss on fold t of the model without it: h_t / |N_t|.
    stability : ndarray, shape (m,)
        μ̂_h, eq. (5): max over folds of the mean over ALL rows of |loss without it − loss|.
    inner, inner_stability : ndarray, shape (m, k), or None
        The same with outer fold t left out of everything: s̃ and μ of Algorithm 1, lines 20 and 17.
    trained : ndarray, shape (m,)
        Mean loss on all rows of the model of all rows.
    without : ndarray, shape (m, k)
        Mean loss on all rows of the model without fold t.
    """

    held_out: Array
    stability: Array
    inner: Array | None
    inner_stability: Array | None
    trained: Array
    without: Array

    @property
    def cv_error(self) -> Array:
        """k-fold error of every candidate: the mean over folds of their mean losses."""
        return np.asarray(self.held_out.mean(axis=1))

    @property
    def corrected(self) -> Array:
        """Bias-corrected k-fold error (Burman; Section 5 of [Consistent Cross Validation])."""
        return np.asarray(self.cv_error + self.trained - self.without.mean(axis=1))


def subsets(k: int, nested: bool = True) -> list[Subset]:
    """What is left out of the models Algorithm 1 needs: nothing, one fold, two folds.

    k: Number of folds.
    nested: With pairs of folds.
    """
    single: list[Subset] = [(), *((t,) for t in range(k))]
    return single + (list(itertools.combinations(range(k), 2)) if nested else [])


def checked_partition(label: Any, n: int) -> tuple[Index, int]:
    """Fold of every row and the number of folds.

    label, shape (n,), or None.
    Returns label, shape (n,).
    Raises InputError: The folds do not hold out every row exactly once, or there are fewer than 2.
    """
    if label is None:
        raise InputError(
            "stability needs folds that hold out every row exactly once and train on the rest"
        )
    found = np.asarray(label, dtype=np.intp)
    k = int(found.max()) + 1 if found.size else 0
    if found.shape != (n,) or k < 2 or np.unique(found).size != k:
        raise InputError(f"folds must label {n} rows 0..k-1 with k >= 2 and none empty")
    return found, k


def losses_of(
    learner: Learner,
    tasks: Sequence[tuple[Index, Sequence[int]]],
    n_jobs: int | None = None,
    done: Callable[[int, Array], None] | None = None,
) -> list[Array]:
    """Losses of models, each a unit of work of its own.

    learner: Sent once to every process that fits; what else a unit needs is its task.
    tasks, sequence of (rows, candidates).
    done: Called with the number of a task and its losses when they are there, in any order.
    Returns, shape (c, n): In the order of the tasks.
    """
    found: dict[int, Array] = {}
    for index, losses in run_units(_losses, learner, tasks, n_jobs, allot=lambda _: Limits()):
        found[index] = losses
        if done is not None:
            done(index, losses)
    return [found[index] for index in range(len(tasks))]


def _losses(learner: Learner, training: Index, candidates: Sequence[int], _: Limits) -> Array:
    """The unit of some candidates fitted to some rows."""
    return learner(training, candidates)


def training_rows(label: Index, left_out: Subset) -> Index:
    """Rows of every fold that is not left out.

    label, shape (n,).
    left_out: Folds.
    """
    return np.flatnonzero(~np.isin(label, left_out))


class Table:
    """Losses gathered as they come; needs (k + 1)·m·n numbers, pairs are reduced at once.

    label, shape (n,).
    m: Candidates.
    """

    def __init__(self, label: Index, m: int) -> None:
        self.label, self.k = label, int(label.max()) + 1
        self.m, n = m, label.size
        self.full = np.full((m, n), np.nan)
        self.single = np.full((self.k, m, n), np.nan)
        # [t, l]: the model without t and l, judged for outer fold t
        self.score = np.full((self.k, self.k, m), np.nan)
        self.change = np.full((self.k, self.k, m), np.nan)
        # losses of models without two folds that wait for the model without one of them
        self._waiting: dict[tuple[int, int], dict[int, Array]] = {}

    def enter(self, left_out: Subset, candidates: Sequence[int], losses: Array) -> None:
        """Take over the losses (c, n) of some candidates' models, in any order.

        left_out: The folds those models have not seen: none, one or two.
        losses, shape (c, n): On all rows.
        """
        at = np.asarray(candidates, dtype=np.intp)
        if len(left_out) == 0:
            self.full[at] = losses
        elif len(left_out) == 1:
            (t,) = left_out
            self.single[t, at] = losses
            for other in range(self.k):
                waiting = self._waiting.get((t, other), {})
                ready = sorted(set(waiting).intersection(at.tolist()))
                if ready:
                    apart = np.array([waiting.pop(c) for c in ready])
                    self._compare(t, other, np.array(ready), apart)
        else:
            for t, other in (left_out, left_out[::-1]):
                self.score[t, other, at] = losses[:, self.label == other].mean(axis=1)
                missing = np.isnan(self.single[t, at]).any(axis=1)
                for c in np.flatnonzero(missing):
                    self._waiting.setdefault((t, other), {})[int(at[c])] = losses[c]
                self._compare(t, other, at[~missing], losses[~missing])

    def _compare(self, t: int, other: int, at: Index, losses: Array) -> None:
        """How much leaving out ``other``, too, changes the losses outside fold t."""
        rest = self.label != t
        apart = np.abs(losses[:, rest] - self.single[t, at][:, rest])
        self.change[t, other, at] = apart.mean(axis=1)

    def inner(self, t: int, candidates: Sequence[int] | Index) -> tuple[Array, Array]:
        """s̃ and μ of some candidates with outer fold t left out.

        Returns score, change, shape (c,).
        """
        at = np.asarray(candidates, dtype=np.intp)
        others = [j for j in range(self.k) if j != t]
        score, change = self.score[t][:, at][others], self.change[t][:, at][others]
        return score.mean(axis=0), change.max(axis=0)

    def outer(self, candidates: Sequence[int] | Index) -> tuple[Array, Array]:
        """Held-out errors (c, k) and μ̂_h (c,) of some candidates.

        Returns held_out, shape (c, k).
        Returns stability, shape (c,).
        """
        at = np.asarray(candidates, dtype=np.intp)
        held = np.stack(
            [self.single[t, at][:, self.label == t].mean(axis=1) for t in range(self.k)], axis=1
        )
        change = np.abs(self.single[:, at] - self.full[at]).mean(axis=2).max(axis=0)
        return held, np.asarray(change)

    def errors(self, candidates: Sequence[int] | Index, nested: bool = True) -> PartialErrors:
        """Everything about candidates whose models have all been entered.

        nested: With what the choice of λ needs.
        """
        at = np.asarray(candidates, dtype=np.intp)
        held, stability = self.outer(at)
        inner = inner_stability = None
        if nested:
            pairs = [self.inner(t, at) for t in range(self.k)]
            inner = np.stack([score for score, _ in pairs], axis=1)
            inner_stability = np.stack([change for _, change in pairs], axis=1)
        trained = self.full[at].mean(axis=1)
        without = self.single[:, at].mean(axis=2).T
        return PartialErrors(held, stability, inner, inner_stability, trained, without)


def partial_errors(
    learner: Learner,
    label: Any,
    m: int,
    *,
    nested: bool = True,
    run: Callable[[list[Subset]], Iterable[Array]] | None = None,
) -> PartialErrors:
    """Fit every candidate with nothing, one fold and two folds left out.

    Parameters
    ----------
    learner : Learner
    label : array of int, shape (n,)
        Fold of every row.
    m : int
        Candidates, numbered 0..m−1.
    nested : bool
        Also with two folds left out: what the choice of λ needs.
    run : callable, optional
        Losses of every candidate for each of several subsets, in order; one after the other by
        default.

    Returns
    -------
    PartialErrors

    Raises
    ------
    InputError
        The folds do not hold out every row exactly once.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.stability import partial_errors
    >>> y = np.array([0.0, 1.0, 2.0, 3.0])
    >>> def learner(training, candidates):  # predicts c times the mean
    ...     return np.array([(y - c * y[training].mean()) ** 2 for c in candidates])
    >>> partial_errors(learner, [0, 1, 0, 1], 2, nested=False).held_out
    array([[2., 5.],
           [2., 2.]])
    """
    label, k = checked_partition(label, np.asarray(label).size if label is not None else 0)
    if nested and k < 3:
        raise InputError(f"nested cross-validation needs at least 3 folds; got {k}")
    table, every = Table(label, m), range(m)
    todo = subsets(k, nested)
    one_by_one = (learner(training_rows(label, left_out), every) for left_out in todo)
    for left_out, values in zip(todo, one_by_one if run is None else run(todo), strict=True):
        table.enter(left_out, every, values)
    return table.errors(every, nested)
