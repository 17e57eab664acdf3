"""What rules look at beside h itself: other partitions into folds, and models without two folds.

Both are cross-validations of the same γ and τ on other folds, solved or bounded like the first.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cv.budget import Budget
from ..cv.engine import Settings
from ..cv.results import Array, CVResult
from ..design.fold_data import FoldData, RowFolds
from ..design.folds import Folds, make_folds
from ..errors import InputError
from ..solvers import SparseRidgeProblem, Status, worst
from .criterion import Selection, select
from .partial_errors import PartialErrors, Subset, Table, checked_partition, subsets, training_rows

AVERAGES = frozenset({"repeated", "averaged"})  # rules that look at several partitions
REPEATS = 6  # partitions that are averaged, the first among them
BLOCK = 10_000_000  # losses held at a time
LEAST = 1e-3  # seconds a cross-validation is given at least
MOST_PAIRS = 25_000_000  # rows of all pairs of folds together: 200 MB
APART = 1.5  # least ratio of neighbouring γ that other partitions are asked about

Solve = Callable[[FoldData, Array, str, float], CVResult]


@dataclass(frozen=True)
class Evidence:
    """Further cross-validations.

    Attributes
    ----------
    others : list of CVResult
        Of other partitions, every h exact: what a time limit leaves open is of no use, as its
        supports may have seen the rows they are judged on.
    wanted : int
        Other partitions that were asked for.
    at : ndarray of int
        Positions of the γ they were asked about.
    errors : PartialErrors or None
        A candidate is number g·|τ| + t.
    selection : Selection or None
        Algorithm 1 of the stability paper on them; None also where time ran out.
    status : Status
        Optimal, or the limit that was met.
    n_nodes : int
    """

    others: list[CVResult] = field(default_factory=list)
    wanted: int = 0
    at: NDArray[np.intp] | None = None
    errors: PartialErrors | None = None
    selection: Selection | None = None
    status: Status = Status.OPTIMAL
    n_nodes: int = 0

    @property
    def whole(self) -> bool:
        """Whether all partitions asked for are there."""
        return len(self.others) == self.wanted


class Runs:
    """Settings of several cross-validations that share one time limit.

    Parameters
    ----------
    settings : Settings
    more : float
        Work to come after the first, in runs of the first.
    """

    def __init__(self, settings: Settings, more: float) -> None:
        self._settings, self._left = settings, 1.0 + more
        self._budget = Budget(settings.time_limit)

    @property
    def spent(self) -> bool:
        """Whether the time is up."""
        return self._budget.share(1.0) == 0.0

    def next(self, cost: float = 1.0) -> Settings:
        """Settings of the next one, with its share of what is left of the time."""
        share = self._budget.share(self._left / cost)
        self._left = max(self._left - cost, cost)
        return replace(self._settings, time_limit=None if share is None else max(share, LEAST))


def checked_repeats(repeats: Any) -> int:
    """Validate a number of partitions.

    Raises
    ------
    InputError
    """
    if not isinstance(repeats, Integral) or isinstance(repeats, bool) or repeats < 2:
        raise InputError(f"repeats must be a whole number >= 2; got {repeats!r}")
    return int(repeats)


def redrawn(folds: Folds) -> bool:
    """Whether other partitions of the same kind can be drawn."""
    return folds.kind in ("kfold", "size")


def extra_runs(rules: Collection[str], folds: Folds, repeats: int) -> float:
    """Work that rules ask for beyond the first partition, in runs of that one."""
    more = AVERAGES.intersection(rules) and redrawn(folds)
    found = float(repeats - 1) if more else 0.0
    return found + (_pairs_cost(folds) if "stability" in rules else 0.0)


def _pairs_cost(folds: Folds) -> float:
    """Pairs of folds, in runs of the first partition."""
    return (folds.k - 1) / 2.0


def refuse_rule(rule: str, data: FoldData) -> None:
    """Refuse a rule that these folds do not allow.

    Raises
    ------
    InputError
    """
    folds = data.folds
    if rule == "repeated" and not (folds.leave_one_out or redrawn(folds)):
        raise InputError(
            "rule repeated draws partitions of its own: give the folds as a number K or size:M"
        )
    if rule == "corrected" and folds.label is None:
        raise InputError("rule corrected needs folds that hold out every row once")
    if rule != "stability":
        return
    checked_partition(folds.label, folds.n)
    if folds.k < 3:
        raise InputError(f"rule stability needs at least 3 folds; got {folds.k}")
    if not isinstance(data, RowFolds):
        raise InputError("rule stability needs the rows in memory: this table is too large")
    if folds.k * (folds.k - 1) // 2 * folds.n > MOST_PAIRS:
        raise InputError(
            f"rule stability solves every pair of folds, {folds.k * (folds.k - 1) // 2:,} here: "
            "use fewer folds"
        )


def partition_again(folds: Folds, seed: Any, number: int) -> Folds:
    """Another partition of the same kind, drawn with the same source of randomness.

    Parameters
    ----------
    folds : Folds
        Drawn with ``seed``.
    seed : int, RandomState or None
    number : int
        1, 2, ...: with a whole number as the seed each has its own partition.

    Raises
    ------
    InputError
        The folds were not drawn at random.
    """
    if not redrawn(folds):
        raise InputError("only K folds and folds of a size can be drawn again")
    if isinstance(seed, Integral):
        seed = int(np.random.SeedSequence([int(seed), number]).generate_state(1)[0])
    text = str(folds.k) if folds.kind == "kfold" else f"size:{folds.n // folds.k}"
    return make_folds(text, folds.n, seed=seed)


def gather(
    result: CVResult,
    data: FoldData,
    rules: Collection[str],
    solve: Solve,
    runs: Runs,
    *,
    again: Callable[[int], FoldData],
    repeats: int = REPEATS,
) -> Evidence:
    """Solve what rules ask for beyond the first partition, as far as time allows.

    Parameters
    ----------
    result : CVResult
        Of the first partition, h known at every τ.
    data : FoldData
        Its folds.
    rules : collection of str
        That :func:`refuse_rule` lets pass.
    solve : callable
        Cross-validates other folds of the same rows at some γ and the τ of ``result``; is told
        what they are and their cost in runs of the first partition.
    runs : Runs
        Knows whether there is time left.
    again : callable
        The same rows in partition number 1, 2, ...
    repeats : int
        Partitions in all.

    Returns
    -------
    Evidence
    """
    at = _apart(result)
    every: list[CVResult] = []
    wanted = repeats - 1 if AVERAGES.intersection(rules) and redrawn(data.folds) else 0
    for number in range(1, wanted + 1):
        if runs.spent:
            break
        name = f"partition {number + 1} of {repeats}"
        every.append(solve(again(number), result.gammas[at], name, 1.0))
    others = [one for one in every if one.complete]
    status = worst([Status.OPTIMAL, *(one.status for one in every)])
    if len(every) < wanted:
        status = Status.TIME_LIMIT
    errors = selection = None
    if "stability" in rules and not runs.spent:
        assert isinstance(data, RowFolds)
        label, k = checked_partition(data.folds.label, data.folds.n)
        apart = RowFolds(data.X, data.y, pair_folds(label, k), data.refit_intercept)
        pairs = solve(apart, result.gammas, "pairs of folds", _pairs_cost(data.folds))
        every.append(pairs)
        status = worst([status, pairs.status])
        if pairs.complete:
            errors = _partial_errors(result, data, pairs, apart)
            selection = select(errors)
    elif "stability" in rules:
        status = Status.TIME_LIMIT
    nodes = sum(one.n_nodes for other in every for one in other.by_gamma)
    return Evidence(others, wanted, at, errors, selection, status, nodes)


def _apart(result: CVResult) -> NDArray[np.intp]:
    """Positions of γ for other partitions: all, or of an alternation's those not too close."""
    if not result.trace:
        return np.arange(result.gammas.size)
    order = np.argsort(result.gammas, kind="stable")
    best = int(np.flatnonzero(order == result.best().gamma_index)[0])
    kept = [int(order[best])]
    for way in (order[best + 1 :], order[:best][::-1]):
        last = result.gammas[kept[0]]
        for g in way:
            if max(result.gammas[g], last) >= APART * min(result.gammas[g], last):
                kept.append(int(g))
                last = result.gammas[g]
    return np.array(sorted(kept), dtype=np.intp)


def pair_folds(label: NDArray[np.intp], k: int) -> Folds:
    """Folds that hold out two of k folds at a time, in the order of ``itertools.combinations``."""
    pairs = []
    for t, other in itertools.combinations(range(k), 2):
        held = (label == t) | (label == other)
        pairs.append((np.flatnonzero(~held), np.flatnonzero(held)))
    sizes = np.array([test.size for _, test in pairs], dtype=np.intp)
    return Folds("custom", label.size, sizes, None, pairs)


def _partial_errors(
    result: CVResult, data: RowFolds, pairs: CVResult, apart: RowFolds
) -> PartialErrors:
    """Errors of models without no, one or two folds, a block of τ at one γ at a time."""
    label, k = checked_partition(data.folds.label, data.folds.n)
    number = {pair: j for j, pair in enumerate(itertools.combinations(range(k), 2))}
    blocks = []
    for g, at in _blocks(result, (k + 1) * label.size):
        one, two = result.by_gamma[g], pairs.by_gamma[g]
        table, every = Table(label, at.size), range(at.size)
        for left_out in subsets(k):
            if len(left_out) == 2:
                j = number[left_out[0], left_out[1]]
                problem = apart.training(j)
                supports = [two.supports[c] for c in two.choice[at, j]]
            elif len(left_out) == 1:
                problem = data.training(left_out[0])
                supports = [one.supports[c] for c in one.choice[at, left_out[0]]]
            else:
                problem, supports = data.full(), [one.models[t] for t in at]
            problem = problem.replace(gamma=one.gamma)
            table.enter(left_out, every, _losses(data, left_out, problem, supports))
        blocks.append(table.errors(every))
    return PartialErrors(
        *(
            np.concatenate([np.asarray(getattr(block, name)) for block in blocks])
            for name in PartialErrors.__dataclass_fields__
        )
    )


def _blocks(result: CVResult, numbers: int) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Positions of τ whose losses fit in memory, at one γ after the other."""
    at_once = max(1, BLOCK // numbers)
    for g in range(result.gammas.size):
        for start in range(0, result.taus.size, at_once):
            yield g, np.arange(start, min(start + at_once, result.taus.size))


def _losses(
    data: RowFolds,
    left_out: Subset,
    problem: SparseRidgeProblem,
    supports: list[NDArray[np.intp]],
) -> Array:
    """Squared errors (c, n) on all rows of the ridge fits without some folds."""
    X, y, shift = data.X, data.y, np.zeros(data.p)
    if data.refit_intercept and left_out:
        assert data.folds.label is not None
        train = training_rows(data.folds.label, left_out)
        shift, y = X[train].mean(axis=0), y - y[train].mean()
    found = np.empty((len(supports), y.size))
    known: dict[bytes, int] = {}
    for c, support in enumerate(supports):
        first = known.setdefault(support.tobytes(), c)
        if first < c:
            found[c] = found[first]
            continue
        coef = problem.replace(tau=max(1, support.size)).fit(support).coef
        found[c] = (y - (X[:, support] - shift[support]) @ coef) ** 2
    return found
