"""Errors of models that leave out one fold, two folds or none.

The errors are the partial k-fold errors h_j(θ) of candidates θ and their empirical hypothesis
stability μ̂_h(θ) (eq. 5 of the stability paper), on all rows and inside every outer fold. A model
without folds t and l is fitted once, and counts for outer fold t and for outer fold l.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..cv.executor import run_units
from ..cv.results import bias_corrected
from ..design.folds import checked_partition
from ..solvers.core.limits import Limits

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Subset = tuple[int, ...]  # The folds that are left out: none, one or two.
# The rows that models are fitted to, and the numbers of the candidates that are fitted.
Task = tuple[Index, list[int]]
# A function that fits some tasks, and yields the number of a task with its losses (c, n).
Fit = Callable[[list[Task]], Iterable[tuple[int, Array]]]


class Learner(Protocol):
    """Models of every candidate θ, which are fitted to some rows and judged on all n rows.

    A learner that has an attribute ``at_once`` which is true fits all candidates in one unit.
    """

    def __call__(self, training: Index, candidates: Sequence[int]) -> Array:
        """Losses on all rows of the models of c candidates, shape (c, n), which are finite.

        training: Positions of the rows that the models are fitted to.
        candidates: The numbers of the candidates.
        """
        ...


class PartialErrors(NamedTuple):
    """Errors of m candidates θ with k folds. A mean loss counts rows by their weights.

    Attributes
    ----------
    held_out : ndarray, shape (m, k)
        Mean loss on fold t of the model without fold t: h_t / |N_t|, N_t the rows of the fold.
    stability : ndarray, shape (m,)
        μ̂_h, eq. (5): max over folds of the mean over ALL rows of |loss without it − loss|.
    inner, inner_stability : ndarray, shape (m, k), or None
        s̃ and μ of Algorithm 1, lines 20 and 17, in place of the k-fold error and the stability:
        both are computed from models that all lack outer fold t. None without such models.
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
        """Bias-corrected k-fold error of every candidate."""
        return bias_corrected(self.cv_error, self.trained, self.without)


def subsets(k: int, nested: bool = True) -> list[Subset]:
    """The sets of folds that models leave out in Algorithm 1: none, one fold, or two folds.

    Folds are numbered from 0 on, and those of a pair increase.

    k: Number of folds.
    nested: Whether pairs of folds are among the sets.
    """
    single: list[Subset] = [(), *((t,) for t in range(k))]
    return single + (list(itertools.combinations(range(k), 2)) if nested else [])


def losses_of(
    learner: Learner, tasks: Sequence[Task], n_jobs: int | None = None
) -> Iterator[tuple[int, Array]]:
    """Losses of models, where every task is a unit of work, and ``n_jobs`` of them run at a time.

    learner: The learner, which is sent once to every process.
    Yields: The number of a task and its losses (c, n), in the order in which the units end.
    """
    return run_units(_losses, learner, tasks, n_jobs, allot=lambda _: Limits())


def _losses(learner: Learner, training: Index, candidates: Sequence[int], _: Limits) -> Array:
    """The unit of work that fits c candidates to some rows; it returns their losses (c, n).

    The last argument is what every unit of work gets, and a learner takes no limits.
    """
    return learner(training, candidates)


def losses_without(
    fit: Fit, label: Index, models: Sequence[tuple[Subset, list[int]]]
) -> Iterator[tuple[Subset, list[int], Array]]:
    """Losses of candidates that are fitted without some folds: the loop over folds.

    fit: Fits tasks and yields their losses, as :func:`losses_of` a learner does.
    label, shape (n,): Fold of every row.
    models: Sets of folds that are left out, each with the candidates that are fitted without them.
    Yields: An entry of ``models`` and its losses (c, n), in the order in which the fits end.
    """
    tasks = [(np.flatnonzero(~np.isin(label, left_out)), some) for left_out, some in models]
    for number, losses in fit(tasks):
        left_out, candidates = models[number]
        yield left_out, candidates, losses


class FoldLosses:
    """Losses of models that leave out folds, as far as errors and stabilities need them.

    The losses of models without two folds are reduced to means, so that (k + 1)·m·n numbers are
    kept for m candidates, n rows and k folds.

    label, shape (n,): Fold of every row.
    m: Number of candidates.
    weights, shape (n,), optional: Weights of the rows in all means of losses.
    """

    def __init__(self, label: Index, m: int, weights: Array | None = None) -> None:
        self.label, self.k, self.weights = label, int(label.max()) + 1, weights
        # The losses of the models of all rows, and of those without one fold; NaN until entered.
        self.full = np.full((m, label.size), np.nan)
        self.single = np.full((self.k, m, label.size), np.nan)
        # Entries [t, l] belong to the model without folds t and l: its mean loss on fold l, and the
        # mean change of its losses outside fold t from those of the model without fold t alone.
        self.score = np.full((self.k, self.k, m), np.nan)
        self.change = np.full((self.k, self.k, m), np.nan)
        # The losses of models without folds t and l, until the model without fold t is fitted.
        self._waiting: dict[tuple[int, int], dict[int, Array]] = defaultdict(dict)

    def mean(self, losses: Array, rows: NDArray[np.bool_] | slice = slice(None)) -> Array:
        """Weighted mean losses over rows, shape (...).

        losses, shape (..., r): The losses of the selected rows.
        rows: Which r rows are selected; by default all rows.
        """
        weights = None if self.weights is None else self.weights[rows]
        return np.asarray(np.average(losses, axis=-1, weights=weights))

    def enter(self, left_out: Subset, candidates: list[int], losses: Array) -> None:
        """Enter the losses of candidates that were fitted without some folds.

        left_out: No fold, one fold or two folds.
        candidates: Numbers of c candidates.
        losses, shape (c, n): Their losses on all rows.
        """
        if len(left_out) == 0:
            self.full[candidates] = losses
        elif len(left_out) == 1:
            self.single[left_out[0], candidates] = losses
            for other in range(self.k):
                self._compare(left_out[0], other)
        else:
            for t, other in (left_out, left_out[::-1]):
                held = self.label == other
                self.score[t, other, candidates] = self.mean(losses[:, held], held)
                self._waiting[t, other].update(zip(candidates, losses, strict=True))
                self._compare(t, other)

    def _compare(self, t: int, other: int) -> None:
        """Enter how much losses outside fold t change where ``other`` is left out, too.

        This needs the model without fold t, and the model without both folds, and is done for those
        candidates for which both have been entered. Losses of other candidates wait.
        """
        waiting = self._waiting[t, other]
        ready = [c for c in waiting if not np.isnan(self.single[t, c, 0])]
        if ready:
            rest = self.label != t
            without = np.array([waiting.pop(c) for c in ready])
            change = np.abs(without[:, rest] - self.single[t, ready][:, rest])
            self.change[t, other, ready] = self.mean(change, rest)

    def inner(self, t: int) -> tuple[Array, Array]:
        """s̃ and μ, shape (m,), with outer fold t left out of all models.

        s̃ is the mean over the other folds of the held-out losses, and μ the largest mean change
        of the losses outside fold t when another fold is left out (lines 20 and 17 of Algorithm 1).
        All models without fold t, alone and with another fold, have been entered.
        """
        others = [j for j in range(self.k) if j != t]
        return self.score[t, others].mean(axis=0), self.change[t, others].max(axis=0)

    def outer(self) -> tuple[Array, Array]:
        """Held-out errors, shape (m, k), and the stabilities μ̂_h, shape (m,).

        The models of all rows, and those without one fold, have been entered.
        """
        masks = [self.label == t for t in range(self.k)]
        held = [self.mean(self.single[t][:, mask], mask) for t, mask in enumerate(masks)]
        change = np.abs(self.single - self.full)
        return np.stack(held, axis=1), np.asarray(self.mean(change).max(axis=0))

    def errors(self, nested: bool) -> PartialErrors:
        """The errors of all candidates, from the losses of the models that were fitted.

        nested: Whether the errors of models without two folds are among them; else ``inner`` and
            ``inner_stability`` are None.
        """
        inner = inner_stability = None
        if nested:
            pairs = [self.inner(t) for t in range(self.k)]
            inner, inner_stability = (np.stack(one, axis=1) for one in zip(*pairs, strict=True))
        trained, without = self.mean(self.full), self.mean(self.single).T
        held, stability = self.outer()
        return PartialErrors(held, stability, inner, inner_stability, trained, without)


def partial_errors(
    learner: Learner,
    label: Any,
    m: int,
    *,
    nested: bool = True,
    weights: Array | None = None,
    fit: Fit | None = None,
) -> PartialErrors:
    """Fit every candidate with nothing, one fold and two folds left out.

    Parameters
    ----------
    learner : Learner
    label : array of int, shape (n,)
        Fold of every row, from 0 to k − 1.
    m : int
        Number of candidates, which are numbered 0..m−1.
    nested : bool
        Also with two folds left out: the choice of λ needs these models.
    weights : ndarray, shape (n,), optional
        Weights of the rows in all means of losses. The learner's fits have weights of their own.
    fit : callable, optional
        Fits tasks and yields their losses; by default :func:`losses_of` the learner.

    Returns
    -------
    PartialErrors

    Raises
    ------
    InputError
        The folds do not hold out every row exactly once, a fold has no row of a weight above 0, or
        there are fewer than 2 folds, or 3 with ``nested``.

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
    label, k = checked_partition(label, np.size(label), nested, weights)
    every = list(range(m))
    # The candidates that are fitted to the same rows in one unit of work.
    blocks = [every] if getattr(learner, "at_once", False) else [[c] for c in every]
    models = [(subset, block) for subset in subsets(k, nested) for block in blocks]
    entered, fit = FoldLosses(label, m, weights), fit or partial(losses_of, learner)
    for left_out, candidates, losses in losses_without(fit, label, models):
        entered.enter(left_out, candidates, losses)
    return entered.errors(nested)
