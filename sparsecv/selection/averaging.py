"""The average of a grid's models, each weighted by its CV error, and the weights inside a fold.

Best-subset models change a lot with few rows (Breiman 1996, "Heuristics of instability"), and many
pairs (τ, γ) have CV errors that cannot be told apart: averaging their models rather than choosing
one model lowers the test error where rows are few. The weights h^(−n/10) are tempered Gaussian
profile likelihoods h^(−n/2) of the held-out rows; the likelihoods would nearly choose one pair.

With weights from the CV errors of all rows, the average of a fold's models has seen the rows that
the fold holds out, and its error on the held-out rows is too small. So every fold has weights of
its own, from inner folds of its training rows. A model fitted without two folds serves both folds:
its errors on either fold count for the weights of the other fold, so that five folds need ten fits.
Where the user names no γ, the same errors decide how far the grid of a fold goes.
Folds that do not partition the rows have inner folds by the same rule: in order of time where every
fold trains on earlier rows alone, of whole groups where folds keep groups together, and otherwise
the other folds, cut to the training rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..cv.alternating import default_grid
from ..cv.needs import Known, Needed
from ..cv.plan import RunPlan
from ..cv.results import CVResult
from ..cv.settings import DEFAULT_GAMMAS
from ..design.design import Array
from ..design.fold_data import FoldData
from ..design.folds import Index, make_folds
from ..solvers.core.limits import Limits
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.paths import support_path
from ..solvers.ridge_fits import known_path
from ..solvers.supports.path import window_ends


class AverageSettings(NamedTuple):
    """Numbers that define the average and the inner folds of its weights."""

    # A model of CV error h on n rows has weight h^(−n/temperature), where a row of weight w counts
    # as w rows. The value is measured:
    # experiments/selection/average_weights.py compares test errors under other values.
    temperature: float = 10.0
    # A model whose weight is below this share of the largest weight is left out of the average.
    # Beyond 45 columns, where estimates suffice, other partitions then skip the γ at which every
    # model is left out, and the sizes beyond the last that has a model.
    min_weight_share: float = 1e-4
    # More folds than this are joined to this many blocks, and the folds of a block share their
    # weights, which takes 10 inner fits.
    max_blocks: int = 5
    # Where sizes grow, the last sizes, this share of those tried, say whether larger ones are worth
    # trying. The share is a choice.
    last_share: float = 0.25
    # The first sizes that are tried go up to this one.
    first_end: int = 32
    # Where the next sizes to try are more than this share of all, all are tried at once, because
    # smaller sizes are then searched again: a choice.
    most_of_all: float = 0.7
    # The proof of an inner model, or of a projection, is left after so many nodes at one γ, which
    # take about a fifth of a second, and at later γ after a tenth of them; without a time limit it
    # is not left. The seconds of a default fit, and what it finds, then seldom depend on the clock.
    # The number is a choice.
    proof_nodes: int = 2_000_000
    # Where there are two folds alone, or the folds do not partition the rows, every fold has at
    # most this many inner folds. The number is a choice.
    inner_folds: int = 4


AVERAGE = AverageSettings()
# A function that does one unit of work, which may run in another thread or process.
Unit = Callable[..., Any]
# The arguments of every call of such a function.
Tasks = Sequence[tuple[Any, ...]]
# Runs units of work: (text for progress reports, function, data of all calls, tasks) → results.
Run = Callable[[str, Unit, Any, Tasks], list[Any]]


def _log_weights(errors: Array, n: float) -> tuple[Array, float]:
    """Logarithms of the weights (h / least h)^(−n/temperature) of CV errors h, and log(least h).

    A CV error of 0 counts as the smallest normal number.
    """
    logs = np.log(np.maximum(errors, np.finfo(np.float64).tiny))
    return np.asarray(-(logs - logs.min()) * (n / AVERAGE.temperature)), float(logs.min())


def model_weights(surface: Array, gammas: Array, n: float) -> Array:
    """Weights of the pairs (γ, τ), shape (γ, τ), which sum to 1.

    The weight of a pair of CV error h is proportional to h^(−n/10) times the length of the interval
    of log γ around the pair's γ; pairs of a small share of the largest weight get 0.

    surface, shape (γ, τ): CV errors ≥ 0.
    gammas, shape (γ,): Values of γ in any order.
    n: Number of rows, or the sum of their weights.
    """
    weight = np.exp(_log_weights(surface, n)[0]) * _interval_lengths(gammas)[:, None]
    weight[weight < AVERAGE.min_weight_share * weight.max()] = 0.0
    return np.asarray(weight / weight.sum())


def of_average(known: Known, n: float) -> Needed:
    """The pairs whose weight in an average can be above 0, and the pair of least estimate.

    A pair weighs at most as much as its lower bound says, and at least one pair weighs as much as
    its upper bound says.

    n: Number of rows, or the sum of their weights.
    """
    lengths = np.log(np.maximum(_interval_lengths(known.gammas), np.finfo(np.float64).tiny))
    tiny = np.finfo(np.float64).tiny
    most, least = (
        lengths[:, None] - np.log(np.maximum(errors, tiny)) * (n / AVERAGE.temperature)
        for errors in (known.lower, known.upper)
    )
    needed = most >= least.max() + np.log(AVERAGE.min_weight_share) - 1e-9
    needed[known.least()] = True
    return Needed(needed, needed)


def worth_more_sizes(errors: Array, gammas: Array, n: float) -> bool:
    """Whether sizes beyond those tried may carry weight in the average.

    They may where one of the last quarter of the sizes does, or where the least CV error of a size
    falls over this quarter. A second minimum beyond sizes at which errors rise is not looked for.

    errors, shape (γ, τ): CV errors, with sizes in increasing order.
    n: Number of rows, or the sum of their weights.

    Examples
    --------
    >>> errors, gamma = np.array([[9.0, 3.0, 1.0, 1.1, 1.4, 1.9, 2.5, 3.0]]), np.array([1.0])
    >>> worth_more_sizes(errors, gamma, 200), worth_more_sizes(errors, gamma, 20)
    (False, True)
    """
    last = max(0, errors.shape[1] - max(2, round(AVERAGE.last_share * errors.shape[1])))
    weighted = model_weights(errors, gammas, n)[:, last:] > 0.0
    least = errors.min(axis=0)
    return bool(weighted.any() or least[-1] < least[last])


def soft_least(errors: Array, n: float) -> float:
    """A soft minimum of CV errors ≥ 0 on n rows: the h whose weight h^(−n/10) is their mean weight.

    The result lies between the least and the largest of the errors.
    """
    weights, least = _log_weights(errors, n)
    return float(np.exp(least - np.log(np.mean(np.exp(weights))) * (AVERAGE.temperature / n)))


def _interval_lengths(gammas: Array) -> Array:
    """Half the distance between the two neighbours of every log γ; at an end, to its neighbour.

    γ = 0 counts as far below the least γ > 0 as the next γ is above; a decade where there is none.
    """
    order = np.argsort(gammas, kind="stable")
    positive = np.log(np.unique(gammas[gammas > 0.0]))
    if positive.size == 0:
        return np.ones(gammas.size)
    below = positive[1] - positive[0] if positive.size > 1 else np.log(10.0)
    none = gammas[order] == 0.0
    steps = np.diff(np.where(none, positive[0] - below, np.log(np.where(none, 1.0, gammas[order]))))
    if steps.sum() == 0.0:  # All γ are equal.
        return np.ones(gammas.size)
    found = np.empty(gammas.size)
    found[order] = 0.5 * (np.append(steps, 0.0) + np.append(0.0, steps))
    return found


def averaged_coefficients(
    problem: SparseRidgeProblem,
    result: CVResult,
    weights: Array,
    fold: int | None = None,
) -> Array:
    """Coefficients (p,) of a weighted average of models; 0 where no model has the column.

    problem: The training problem of the fold, or of all rows.
    weights, shape (γ, τ): Weights of the models.
    fold: The fold whose models are averaged; with None the models of all rows are.
    """
    g, t = np.flatnonzero(weights.any(axis=1)), np.flatnonzero(weights.any(axis=0))
    supports = np.stack([result.by_gamma[i].padded(fold)[t] for i in g])
    path = known_path(problem, result.gammas[g], result.taus[t], supports)
    weighted = weights[np.ix_(g, t)][:, :, None] * path.coef
    coef, inside = np.zeros(problem.p), supports >= 0
    np.add.at(coef, supports[inside], weighted[inside])
    return coef


class Tried(NamedTuple):
    """Sizes that are tried together.

    taus: The sizes, increasing.
    end: Sizes up to this one say whether larger ones are worth trying.
    """

    taus: Index
    end: int


def growing_sizes(every: Index, named: Index) -> list[Tried]:
    """The sizes that are tried first, and those that are tried next as long as they are worth it.

    They end where windows of the search for supports end, which then finds the same supports of
    small sizes however far sizes grow.

    every, named: All sizes that may be worth trying, and sizes that are tried in any case.
    """
    most = int(every[-1])
    below = min(most - 1, AVERAGE.most_of_all * most)
    ends = [end for end in window_ends(most) if AVERAGE.first_end <= end <= below]
    return [Tried(np.union1d(every[every <= end], named), end) for end in (*ends, most)]


def proof_nodes(plan: RunPlan) -> int | None:
    """The most nodes of the proof of an inner model or a projection; None without a time limit."""
    return None if plan.limits.remaining() is None else AVERAGE.proof_nodes


class FoldWeights(NamedTuple):
    """Weights of every fold's models, which are functions of the fold's training rows alone.

    gammas, shape (γ,): Every γ that the grid of some fold has.
    taus, shape (τ,): Every size that some fold has tried.
    weights: For every fold the weights (γ, τ) of its models; 0 at pairs that it has not tried.
    proved: Whether all inner models of pairs that carry weight are proved.
    """

    gammas: Array
    taus: Index
    weights: list[Array]
    proved: bool


class _InnerModels:
    """Squared errors of inner models at the γ visited so far, and what is proved of the models.

    An inner model serves every γ and size; the estimates of its supports and their proofs are
    functions of its training rows alone.

    splits: What every inner model trains on, and what it predicts.
    taus: The sizes, which may be changed once nothing is known any more (:meth:`forget`).
    errors: For every γ, split and block of the split the squared errors, shape (τ,).
    proved: For every γ whether the supports of every split are proved, shape (split, τ).
    """

    def __init__(self, data: FoldData, splits: Sequence[Split], run: Run, solver: str) -> None:
        self.splits, self._solver = splits, solver
        self._data, self._run = data, run
        self.taus = np.empty(0, dtype=np.intp)
        self.errors = dict[float, list[dict[int, Array]]]()
        self.proved = dict[float, NDArray[np.bool_]]()

    def forget(self, taus: Index) -> None:
        """Forget all errors, and take other sizes."""
        self.taus = taus
        self.errors.clear()
        self.proved.clear()

    def visit(self, gammas: Sequence[float]) -> None:
        """Compute the errors at some γ; a γ that was visited before costs nothing."""
        new = [gamma for gamma in dict.fromkeys(gammas) if gamma not in self.errors]
        if not new:
            return
        every = [(s, np.array(new), self.taus) for s in range(len(self.splits))]
        found = self._computed("inner folds", every, self._solver, None)
        for g, gamma in enumerate(new):
            self.errors[gamma] = [
                {b: of_block[g] for b, of_block in zip(tests, errors, strict=True)}
                for (_, tests), (errors, _) in zip(self.splits, found, strict=True)
            ]
            self.proved[gamma] = np.array([proved[g] for _, proved in found])

    def _computed(self, what: str, tasks: Tasks, solver: str, nodes: int | None) -> list[Any]:
        """Results of :func:`_inner_errors` for tasks of a split, its γ and its sizes."""
        units = [
            (train, list(tests.values()), gammas, taus, solver, nodes)
            for s, gammas, taus in tasks
            for train, tests in [self.splits[s]]
        ]
        return self._run(what, _inner_errors, self._data, units)

    def of_block(self, gamma: float, b: int) -> Array:
        """Squared errors of all inner models that predict a block, shape (τ,)."""
        parts = [of_split[b] for of_split in self.errors[gamma] if b in of_split]
        return np.asarray(sum(parts, np.zeros(self.taus.size)))

    def open_pairs(
        self, gammas: Array, weights: Sequence[Array]
    ) -> list[tuple[int, NDArray[np.bool_]]]:
        """Splits with models that are not proved, and which pairs (γ, τ) with weight these are.

        weights: For every block the weights (γ, τ) at some γ and all sizes.
        """
        found = []
        for s, (_, tests) in enumerate(self.splits):
            carry = np.any([weights[b] > 0.0 for b in tests], axis=0)
            sure = np.array([self.proved[gamma][s] for gamma in gammas.tolist()])
            if (carry & ~sure).any():
                found.append((s, carry & ~sure))
        return found

    def prove(
        self, gammas: Array, pairs: list[tuple[int, NDArray[np.bool_]]], nodes: int | None
    ) -> bool:
        """Prove models at pairs that :meth:`open_pairs` has named; return whether one is proved.

        nodes: The most nodes of a proof.
        """
        tasks = [(s, gammas[open_.any(axis=1)], self.taus[open_.any(axis=0)]) for s, open_ in pairs]
        some = False
        for (s, own, taus), (errors, proved) in zip(
            tasks, self._computed("proving inner folds", tasks, "exact", nodes), strict=True
        ):
            at = np.isin(self.taus, taus)
            for g, gamma in enumerate(own.tolist()):
                new = proved[g] & ~self.proved[gamma][s][at]
                where = np.flatnonzero(at)[new]
                for b, of_block in zip(self.splits[s][1], errors, strict=True):
                    self.errors[gamma][s][b][where] = of_block[g][new]
                self.proved[gamma][s][where] = True
                some |= bool(new.any())
        return some


def inner_weights(
    data: FoldData,
    gammas: Array | None,
    sizes: Sequence[Tried],
    run: Run,
    plan: RunPlan,
    first: int = 0,
) -> FoldWeights:
    """Weights of every fold's models, from errors of inner models that have not seen its rows.

    Up to 45 columns inner models of pairs that carry weight are proved, as far as the time allows.

    gammas: With None every fold has the default grid, which errors of its inner models extend: an
        extension by the CV errors of all rows would have seen the rows that the fold holds out.
    sizes: The sizes that every fold tries first, and those that it tries next where errors of its
        inner models say that larger sizes are worth it.
    run: Runs units of work: takes the text of progress reports, a unit, what all units share and
        the other arguments of every unit; returns the results in the order of the units.
    plan: The plan of the run. Once its time is up neither grids nor sizes grow any more.
    first: The position in ``sizes`` of those that are computed first. It decides what is computed
        at once, and not which sizes a fold takes.
    """
    k = data.folds.k
    # A fold whose rows all have weight 0 counts as no fold.
    number = np.maximum(np.cumsum(data.fold_weight > 0.0) - 1, 0)
    fold_of = data.fold_of if number[-1] >= 2 else None
    block = np.arange(k) if fold_of is None else number % AVERAGE.max_blocks
    splits = _inside_folds(data) if fold_of is None else _without_pairs(block[fold_of])
    rows = data.weight - np.bincount(block, weights=data.fold_weight)
    if fold_of is None:
        rows = np.array([data.training_weight(j) for j in range(k)])
    models = _InnerModels(data, splits, run, plan.model_solver)

    def own_grid(b: int) -> list[float]:
        n, sizes = float(rows[b]), of[b]

        def score(gamma: float) -> float:
            return soft_least(models.of_block(gamma, b)[sizes], n)

        return default_grid(models.visit, score, lambda: plan.out_of_time)[0]

    start = DEFAULT_GAMMAS if gammas is None else gammas
    tried, growing = [sizes[0]] * rows.size, list(range(rows.size))
    for number in range(first, len(sizes)):
        taus = sizes[number].taus
        models.forget(taus)
        models.visit(start.tolist())
        some, left = sizes[: number + 1], list[int]()
        for b in growing:
            errors = np.array([models.of_block(gamma, b) for gamma in start.tolist()])
            enough = _first_enough(some, taus, errors, start, float(rows[b]))
            tried[b] = enough or sizes[number]
            if enough is None:
                left.append(b)
        growing = left
        if not growing or plan.out_of_time:
            break
    of = [np.isin(taus, one.taus) for one in tried]
    grids = [own_grid(b) if gammas is None else start.tolist() for b in range(rows.size)]
    gammas = np.unique(np.concatenate(grids)) if gammas is None else gammas

    def weights_of(b: int, gammas: Array) -> Array:
        found, at = np.zeros((gammas.size, taus.size)), np.isin(gammas, grids[b])
        errors = np.array([models.of_block(gamma, b)[of[b]] for gamma in gammas[at].tolist()])
        found[np.ix_(at, of[b])] = model_weights(errors, gammas[at], float(rows[b]))
        return found

    while True:
        every = [weights_of(b, gammas) for b in range(rows.size)]
        left_open = models.open_pairs(gammas, every)
        if not (left_open and plan.proves_models):
            break
        if not models.prove(gammas, left_open, proof_nodes(plan)):
            break
    return FoldWeights(gammas, taus, [every[b] for b in block], not left_open)


def _first_enough(
    sizes: Sequence[Tried], taus: Index, errors: Array, gammas: Array, n: float
) -> Tried | None:
    """The first of several ``sizes`` beyond which no more are worth trying; None: there is none.

    errors, shape (γ, τ): CV errors at the sizes ``taus``, which hold those of all ``sizes``.
    """
    for tried in sizes:
        if not worth_more_sizes(errors[:, taus <= tried.end], gammas, n):
            return tried
    return None


# A Split has the numbers of the rows that an inner model is trained on, and by block those of
# the rows that it predicts. A block is one or several folds that share the weights of an average.
# Errors on its predicted rows decide these weights. Where rows are not in memory, the numbers are
# those of whole folds.
Split = tuple[Index, dict[int, Index]]


def _without_pairs(block: Index) -> list[Split]:
    """Training on all but two blocks of folds, for every pair of blocks.

    Errors on one block of the pair count for the weights of the other block.

    block: The block of every unit.
    """
    found: list[Split] = []
    for b, c in combinations(range(block.max() + 1), 2):
        on_b, on_c = np.flatnonzero(block == b), np.flatnonzero(block == c)
        found.append((np.flatnonzero((block != b) & (block != c)), {b: on_c, c: on_b}))
    return found


def _inside_folds(data: FoldData) -> list[Split]:
    """Inner folds of the training rows of every fold; a fold of one training row has none.

    A row of weight 0 is no row.
    """
    folds, weights = data.folds, data.rows_for("inner folds need").weights
    pairs = list(folds.splits())
    if weights is not None:
        counted = weights > 0.0
        # A fold that holds out rows of weight 0 alone keeps them, as its models are made, too.
        tests = [test[counted[test]] if counted[test].any() else test for _, test in pairs]
        pairs = [(rows[counted[rows]], test) for (rows, _), test in zip(pairs, tests, strict=True)]
    in_order = all(train.max() < test.min() for train, test in pairs)
    found: list[Split] = []
    for j, (rows, test) in enumerate(pairs):
        if in_order:
            inner = _earlier_rows(rows, int(test.min() - rows.max()))
        elif folds.groups is not None:
            inner = _cut(rows, folds.groups[rows], pairs)
        else:
            others = _other_folds(pairs, j)
            inner = others if len(others) > 1 else _cut(rows, None, pairs)
        found += [(train, {j: held}) for train, held in inner]
    return found


Pairs = list[tuple[Index, Index]]


def _earlier_rows(rows: Index, ahead: int) -> Pairs:
    """Inner folds in order of time: blocks of rows are held out from models of earlier rows.

    rows: In increasing order.
    ahead: How far the first held-out row lies behind the last training row, at least 1.
    """
    found = Pairs()
    for block in np.array_split(rows, min(AVERAGE.inner_folds + 1, rows.size)):
        train = rows[rows <= block[0] - ahead]
        if train.size:
            found.append((train, block))
    return found


def _other_folds(pairs: Pairs, j: int) -> Pairs:
    """Some of the other folds, cut to the training rows of fold j.

    What rows a splitter, or who has listed the rows, keeps together stays together.
    """
    found, (rows, _) = Pairs(), pairs[j]
    for i in range(j - 1, j - len(pairs), -1):
        train, held = (np.intersect1d(part, rows) for part in pairs[i])
        if train.size and held.size:
            found.append((train, held))
        if len(found) == AVERAGE.inner_folds:
            break
    return found


def _cut(rows: Index, groups: Index | None, pairs: Pairs) -> Pairs:
    """Inner folds of whole groups, if given, else of rows that are drawn at random.

    Where every fold of ``pairs`` holds out rows that follow one another, so do the inner folds.
    """
    parts = rows.size if groups is None else np.unique(groups).size
    if parts < 2:
        return []
    cv: Any = min(parts, AVERAGE.inner_folds)
    if groups is None and all(np.ptp(test) + 1 == test.size for _, test in pairs):
        places = np.arange(rows.size)
        cv = [(np.setdiff1d(places, block), block) for block in np.array_split(places, cv)]
    inner = make_folds(cv, rows.size, seed=0, groups=groups)
    return [(rows[train], rows[held]) for train, held in map(inner.split, range(inner.k))]


def _inner_errors(
    data: FoldData,
    train: Index,
    tests: list[Index],
    gammas: Array,
    taus: Index,
    solver: str,
    nodes: int | None,
    limits: Limits,
) -> tuple[list[Array], NDArray[np.bool_]]:
    """The unit of one inner model: train on some units, judge the models on several sets of units.

    nodes: The most nodes at a γ.
    Returns: Squared errors (γ, τ) on every set of units in ``tests``, and whether each model is
        proved, shape (γ, τ).
    """
    first = data.one_fold(train, tests[0])
    problem, limits = first.training(0), limits.within(nodes=nodes)
    path = support_path(problem, gammas, taus, solver=solver, limits=limits)
    folds = [first, *(data.one_fold(train, test, first) for test in tests[1:])]
    errors = [path.squared_errors(*one.held_out(0)) for one in folds]
    return errors, path.proved
