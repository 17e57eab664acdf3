"""Errors of models that leave out one fold, two folds or none, and Algorithm 1 on these errors.

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
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError
from ..solvers.core.limits import Limits
from ..solvers.executor import run_units

# The weights λ of the stability that are compared by default. The values are a choice.
DEFAULT_LAMBDAS = (0.0, *np.logspace(-4.0, 4.0, 10).tolist())
Array = NDArray[np.float64]
Index = NDArray[np.intp]
Subset = tuple[int, ...]  # The folds that are left out: none, one or two.
# The rows that models are fitted to, and the numbers of the candidates that are fitted.
Task = tuple[Index, list[int]]
# A function that fits some tasks, and yields the number of a task with its losses (c, n).
Fit = Callable[[list[Task]], Iterable[tuple[int, Array]]]


class Learner(Protocol):
    """Models of every candidate θ on some rows, judged on all rows.

    A learner that has an attribute ``at_once`` which is true fits all candidates in one unit.
    """

    def __call__(self, training: Index, candidates: Sequence[int]) -> Array:
        """Losses (c, n) on all rows of the models fitted to ``training``, a row per candidate."""
        ...


class PartialErrors(NamedTuple):
    """Errors of every candidate θ, shape (m,) or (m, k).

    Attributes
    ----------
    held_out : ndarray, shape (m, k)
        Mean loss on fold t of the model without it: h_t / |N_t|.
    stability : ndarray, shape (m,)
        μ̂_h, eq. (5): max over folds of the mean over ALL rows of |loss without it − loss|.
    inner, inner_stability : ndarray, shape (m, k), or None
        s̃ and μ of Algorithm 1, lines 20 and 17: both errors with outer fold t left out of all.
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
    """The sets of folds that models leave out in Algorithm 1: none, one fold, or two folds.

    k: Number of folds.
    nested: Whether pairs of folds are among the sets.
    """
    single: list[Subset] = [(), *((t,) for t in range(k))]
    return single + (list(itertools.combinations(range(k), 2)) if nested else [])


def checked_partition(
    label: Any, n: int, nested: bool, weights: Array | None = None
) -> tuple[Index, int]:
    """Checked folds of n rows: the fold of every row, shape (n,), and the number of folds.

    nested: Whether pairs of folds are left out, which needs at least 3 folds.
    weights, shape (n,), optional: Weights of the rows.
    Raises InputError: The folds do not hold out every row exactly once, are too few, or a fold has
        no row of a weight above 0.
    """
    if label is None:
        raise InputError(
            "nested cross-validation and stability need folds that hold out every row exactly once "
            "and train on the rest"
        )
    found = np.asarray(label, dtype=np.intp)
    k = int(found.max()) + 1 if found.size else 0
    if found.shape != (n,) or k < 2 or np.unique(found).size != k:
        raise InputError(f"folds must label {n} rows 0..k-1 with k >= 2 and none empty")
    if nested and k < 3:
        raise InputError(f"nested cross-validation needs at least 3 folds; got {k}")
    if weights is not None and (empty := np.bincount(found, weights) == 0.0).any():
        raise InputError(
            f"fold {int(empty.argmax()) + 1} of {k} has no row with a weight above 0, so that its "
            "mean loss is not defined: use fewer folds"
        )
    return found, k


def losses_of(
    learner: Learner, tasks: Sequence[Task], n_jobs: int | None = None
) -> Iterator[tuple[int, Array]]:
    """Losses of models, where every task is a unit of work.

    learner: The learner, which is sent once to every process.
    Yields: The number of a task and its losses (c, n), in the order in which the units end.
    """
    return run_units(_losses, learner, tasks, n_jobs, allot=lambda _: Limits())


def _losses(learner: Learner, training: Index, candidates: Sequence[int], _: Limits) -> Array:
    """The unit of work that fits some candidates to some rows; returns their losses (c, n)."""
    return learner(training, candidates)


class FoldLosses:
    """Losses of models that leave out folds; models are fitted when asked for, and losses kept.

    The losses of models without two folds are reduced to means, so that (k + 1)·m·n numbers are
    kept for m candidates, n rows and k folds.

    label, shape (n,): Fold of every row.
    m: Number of candidates.
    fit: Fits tasks and yields their losses.
    at_once: Whether all candidates of some rows are one task; otherwise every candidate is a task.
    weights, shape (n,), optional: Weights of the rows in all means of losses.
    """

    def __init__(
        self, label: Index, m: int, fit: Fit, at_once: bool, weights: Array | None = None
    ) -> None:
        self.label, self.k, self.fit, self.weights = label, int(label.max()) + 1, fit, weights
        self.at_once, self.n_fits = at_once, 0
        self.known: dict[Subset, set[int]] = defaultdict(set)
        self.full = np.full((m, label.size), np.nan)
        self.single = np.full((self.k, m, label.size), np.nan)
        # Entries [t, l] belong to the model without folds t and l: its mean loss on fold l, and the
        # mean change of its losses outside fold t from those of the model without fold t alone.
        self.score = np.full((self.k, self.k, m), np.nan)
        self.change = np.full((self.k, self.k, m), np.nan)
        # The losses of models without folds t and l, until the model without fold t is fitted.
        self._waiting: dict[tuple[int, int], dict[int, Array]] = defaultdict(dict)

    def mean(self, losses: Array, rows: NDArray[np.bool_] | slice = slice(None)) -> Array:
        """Mean losses over rows, shape (...): of all rows, or of those that ``rows`` selects.

        losses, shape (..., m): The losses of the selected rows.
        """
        weights = None if self.weights is None else self.weights[rows]
        return np.asarray(np.average(losses, axis=-1, weights=weights))

    def need(self, left_out: Iterable[Subset], candidates: Iterable[int]) -> None:
        """Fit the candidates that are not fitted yet, without each of some sets of folds."""
        subsets: list[Subset] = []
        tasks: list[Task] = []
        for subset in left_out:
            missing = [c for c in candidates if c not in self.known[subset]]
            if not missing:
                continue
            self.known[subset].update(missing)
            rows = np.flatnonzero(~np.isin(self.label, subset))
            blocks = [missing] if self.at_once else [[c] for c in missing]
            subsets += [subset] * len(blocks)
            tasks += [(rows, block) for block in blocks]
            self.n_fits += len(missing)
        for index, losses in self.fit(tasks) if tasks else ():
            self._enter(subsets[index], tasks[index][1], losses)

    def _enter(self, left_out: Subset, candidates: list[int], losses: Array) -> None:
        """Enter the losses (c, n) of candidates fitted without some folds."""
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
        """Enter how much losses outside fold t change where ``other`` is left out, too."""
        waiting = self._waiting[t, other]
        ready = [c for c in waiting if not np.isnan(self.single[t, c, 0])]
        if ready:
            rest = self.label != t
            without = np.array([waiting.pop(c) for c in ready])
            change = np.abs(without[:, rest] - self.single[t, ready][:, rest])
            self.change[t, other, ready] = self.mean(change, rest)

    def inner(self, t: int, candidates: Sequence[int]) -> tuple[Array, Array]:
        """s̃ and μ, shape (c,), of some candidates with outer fold t left out of all models.

        s̃ is the mean over the other folds of the held-out losses, and μ the largest mean change
        of the losses when another fold is left out (lines 20 and 17 of Algorithm 1).
        """
        others = [j for j in range(self.k) if j != t]
        score, change = self.score[t][:, candidates], self.change[t][:, candidates]
        return score[others].mean(axis=0), change[others].max(axis=0)

    def outer(self, candidates: Sequence[int]) -> tuple[Array, Array]:
        """Held-out errors (c, k) and μ̂_h (c,) of some candidates."""
        every = [(t, self.label == t) for t in range(self.k)]
        held = [self.mean(self.single[t, candidates][:, rows], rows) for t, rows in every]
        change = np.abs(self.single[:, candidates] - self.full[candidates])
        return np.stack(held, axis=1), np.asarray(self.mean(change).max(axis=0))

    def errors(self, candidates: Sequence[int], nested: bool) -> PartialErrors:
        """All errors of candidates whose models are fitted.

        nested: Whether the errors of models without two folds are among them.
        """
        inner = inner_stability = None
        if nested:
            pairs = [self.inner(t, candidates) for t in range(self.k)]
            inner, inner_stability = (np.stack(one, axis=1) for one in zip(*pairs, strict=True))
        trained = self.mean(self.full[candidates])
        without = self.mean(self.single[:, candidates]).T
        held, stability = self.outer(candidates)
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
        Fold of every row.
    m : int
        Candidates, numbered 0..m−1.
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
        The folds do not hold out every row exactly once, or a fold has no row of a weight above 0.

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
    at_once = getattr(learner, "at_once", False)
    fit = fit or partial(losses_of, learner)
    losses = FoldLosses(label, m, fit, at_once, weights)
    losses.need(subsets(k, nested), range(m))
    return losses.errors(range(m), nested)


class Selection(NamedTuple):
    """What Algorithm 1 of the stability paper finds, for every weight λ of the stability.

    Lines are those of the algorithm; θ is the number of a candidate.

    Attributes
    ----------
    lambdas : ndarray, shape (l,), increasing
        The weights λ.
    inner_choice : ndarray of int, shape (l, k)
        θ chosen without fold t (line 23).
    outer : ndarray, shape (l, k)
        m_{λ,t}: error on fold t of the model chosen without fold t (line 25).
    choice : ndarray of int, shape (l,)
        θ that minimises criterion (7) on all rows, for every λ; −1 where nobody needs it.
    """

    lambdas: Array
    inner_choice: NDArray[np.intp]
    outer: Array
    choice: NDArray[np.intp]

    @property
    def nested_error(self) -> Array:
        """m̄_λ, shape (l,): the means of ``outer`` over folds (line 28)."""
        return np.asarray(self.outer.mean(axis=1))

    @property
    def best(self) -> int:
        """Position of λ*: the least nested error; of equal errors the smaller λ."""
        return int(np.argmin(self.nested_error))

    @property
    def lambda_(self) -> float:
        """λ*."""
        return float(self.lambdas[self.best])

    @property
    def theta(self) -> int:
        """θ*, by its number."""
        return int(self.choice[self.best])


def checked_lambdas(lambdas: ArrayLike | None) -> Array:
    """Distinct weights λ ≥ 0, increasing, shape (l,); by default 0 and ten from 1e-4 to 1e4.

    Raises InputError: No weight, or a weight that is negative or not a number.
    """
    try:
        values = np.unique(np.asarray(DEFAULT_LAMBDAS if lambdas is None else lambdas, dtype=float))
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.size == 0 or not (np.isfinite(values).all() and values[0] >= 0.0):
        raise InputError(f"lambdas must be numbers >= 0; got {lambdas!r}")
    return values


def criterion(errors: PartialErrors, weight: float) -> Array:
    """Criterion (7): k-fold error + λ·μ̂_h of every candidate, shape (m,).

    Parameters
    ----------
    errors : PartialErrors
    weight : float
        λ ≥ 0.

    Returns
    -------
    ndarray, shape (m,)

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.selection.partial_errors import PartialErrors, criterion
    >>> held_out, change = np.array([[1.0, 3.0], [2.0, 2.5]]), np.array([1.0, 0.0])
    >>> errors = PartialErrors(held_out, change, None, None, change, held_out)
    >>> criterion(errors, 0.5)
    array([2.5 , 2.25])
    """
    return np.asarray(errors.cv_error + weight * errors.stability)


def select(errors: PartialErrors, lambdas: ArrayLike | None = None) -> Selection:
    """Choose λ and a candidate by Algorithm 1 of the stability paper; every λ uses the same fits.

    Parameters
    ----------
    errors : PartialErrors
        With the errors of models without two folds.
    lambdas : array, optional
        Weights λ of the stability; 0 alone is ordinary nested cross-validation.

    Returns
    -------
    Selection

    Raises
    ------
    InputError
        λ < 0, or errors without those of models without two folds.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.selection.partial_errors import PartialErrors, select
    >>> held_out, change = np.array([[1.0, 3.0, 2.0], [2.0, 2.5, 2.0]]), np.array([1.0, 0.0])
    >>> inner, inner_change = held_out, np.array([[1.0] * 3, [0.0] * 3])
    >>> errors = PartialErrors(held_out, change, inner, inner_change, change, held_out)
    >>> select(errors, [0.0, 1.0]).choice
    array([0, 1])
    """
    weights = checked_lambdas(lambdas)
    if errors.inner is None or errors.inner_stability is None:
        raise InputError("choosing lambda needs errors with two folds left out (nested=True)")
    pairs = [errors.inner + weight * errors.inner_stability for weight in weights]
    inner_choice = np.array([np.argmin(values, axis=0) for values in pairs])
    outer = errors.held_out[inner_choice, np.arange(errors.held_out.shape[1])]
    choice = np.array([np.argmin(criterion(errors, float(weight))) for weight in weights])
    return Selection(weights, inner_choice, outer, choice)
