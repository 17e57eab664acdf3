"""Weights of every fold's models in their average, from inner folds of the fold's training rows.

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

from ..cv.alternating import grown_grid
from ..cv.plan import RunPlan
from ..cv.settings import DEFAULT_GAMMAS
from ..design.design import Array
from ..design.fold_data import FoldData
from ..design.folds import Index, make_folds
from ..solvers.core.limits import Limits
from ..solvers.paths import support_path
from .weights import AVERAGE, Tried, model_weights, proof_nodes, soft_least, worth_more_sizes

# A function that does one unit of work, which may run in another thread or process.
Unit = Callable[..., Any]
# The arguments of every call of such a function.
Tasks = Sequence[tuple[Any, ...]]
# Runs units of work: (text for progress reports, function, data of all calls, tasks) → results.
Run = Callable[[str, Unit, Any, Tasks], list[Any]]


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
    tried: For every γ whether a proof of the supports has been tried, shape (split, τ).
    """

    def __init__(self, data: FoldData, splits: Sequence[Split], run: Run, solver: str) -> None:
        self.splits, self._solver = splits, solver
        self._data, self._run = data, run
        self.taus = np.empty(0, dtype=np.intp)
        self.errors = dict[float, list[dict[int, Array]]]()
        self.proved = dict[float, NDArray[np.bool_]]()
        self.tried = dict[float, NDArray[np.bool_]]()

    def forget(self, taus: Index) -> None:
        """Forget all errors, and take other sizes."""
        self.taus = taus
        self.errors.clear()
        self.proved.clear()
        self.tried.clear()

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
            self.tried[gamma] = self.proved[gamma].copy()

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
        self, gammas: Array, weights: Sequence[Array], done: dict[float, NDArray[np.bool_]]
    ) -> list[tuple[int, NDArray[np.bool_]]]:
        """Splits with models that are not done, and which pairs (γ, τ) with weight these are.

        weights: For every block the weights (γ, τ) at some γ and all sizes.
        done: :attr:`proved` or :attr:`tried`.
        """
        found = []
        for s, (_, tests) in enumerate(self.splits):
            carry = np.any([weights[b] > 0.0 for b in tests], axis=0)
            mine = np.array([done[gamma][s] for gamma in gammas.tolist()])
            if (carry & ~mine).any():
                found.append((s, carry & ~mine))
        return found

    def prove(
        self, gammas: Array, pairs: list[tuple[int, NDArray[np.bool_]]], nodes: int | None
    ) -> bool:
        """Prove models at pairs that :meth:`open_pairs` has named; return whether one is proved.

        A proof that ends at its limits is not tried again, as it would end there again.

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
                self.tried[gamma][s][at] = True
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

        models.visit(DEFAULT_GAMMAS.tolist())
        return grown_grid(models.visit, score, lambda: plan.out_of_time)[0]

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
        untried = models.open_pairs(gammas, every, models.tried)
        if not (untried and plan.proves_models):
            break
        if not models.prove(gammas, untried, proof_nodes(plan)):
            break
    proved = not models.open_pairs(gammas, every, models.proved)
    return FoldWeights(gammas, taus, [every[b] for b in block], proved)


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
    """Inner folds of the training rows of every fold.

    A fold has none where its training rows are one row or one group of rows, or where no row is
    early enough in time. A row of weight 0 is no row.
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
    """Fit the models of all (γ, τ) to some rows, and sum their squared errors on sets of rows.

    train, tests: Numbers of rows, or of blocks of rows where folds are made of blocks. There is at
        least one test.
    nodes: The most nodes of a search at a γ; None for no limit.
    Returns: For every test the sums of squared errors, shape (γ, τ), and whether each model is
        proved, shape (γ, τ).
    """
    first = data.one_fold(train, tests[0])
    problem, limits = first.training(0), limits.within(nodes=nodes)
    path = support_path(problem, gammas, taus, solver=solver, limits=limits)
    folds = [first, *(data.one_fold(train, test, first) for test in tests[1:])]
    errors = [path.squared_errors(*one.held_out(0)) for one in folds]
    return errors, path.proved
