"""Weights of every fold's models in their average, from inner folds of the fold's training rows.

The models of a fold are best subsets of every size τ at every ridge weight γ, and their average
weights each by its CV error. With weights from the CV errors of all rows, the average has seen the
rows that the fold holds out, and its error on these rows is too small. So every fold has weights of
its own, from models that are fitted to some of its training rows and predict others: inner models.
An inner model fitted without two folds serves both folds: its errors on either fold count for the
weights of the other fold, so that five folds need ten fits. Where the user names no γ, the same
errors decide how far the grid of a fold goes.

Folds that do not partition the rows, and two folds alone, have inner folds of their training rows:
in order of time where every fold trains on earlier rows alone, of whole groups where folds keep
groups together, and otherwise the other folds, cut to the training rows.

A block is a fold, or some of many folds, whose models share their weights. A unit is a row, or a
whole fold of a table whose rows are not in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..cv.grid import grown_grid
from ..cv.plan import RunPlan
from ..cv.progress import Late, OutOfTime, all_done
from ..cv.settings import DEFAULT_GAMMAS
from ..design.design import Array
from ..design.fold_data import FoldData
from ..design.folds import Index, make_folds
from ..solvers.core.error_margin import MAX_SHARED
from ..solvers.core.limits import Limits
from ..solvers.core.rounding import exact_margin, left_of_perfect_fits
from ..solvers.paths import support_path
from ..solvers.supports.path import GrownUnits
from .weights import AVERAGE, SizeRound, model_weights, proof_nodes, soft_least, worth_more_sizes

# A function that does one unit of work, which may run in another thread or process.
Unit = Callable[..., Any]
# The arguments of every call of such a function.
Tasks = Sequence[tuple[Any, ...]]
# Runs units of work as ``Study.run`` does: (text for progress reports, function, data of all calls,
# tasks) → results in the order of the tasks.
Run = Callable[[str, Unit, Any, Tasks], list[Any]]


class FoldWeights(NamedTuple):
    """Weights of every fold's models, which are functions of the fold's training rows alone.

    gammas, shape (γ,): Every γ that the grid of some fold has, increasing if the folds decide them.
    taus, shape (τ,): Every size that some fold has tried, increasing.
    weights: For every fold the weights (γ, τ) of its models, which sum to 1; 0 at pairs that the
        fold has not tried.
    proved: Whether all inner models of pairs that carry weight are proved, and rounding leaves
        their errors alone.
    """

    gammas: Array
    taus: Index
    weights: list[Array]
    proved: bool


class InnerModel(NamedTuple):
    """What an inner model trains on and predicts, at every γ and size.

    train: Numbers of the units that it trains on.
    tests: Numbers of the units that it predicts, for every block whose weights its errors on these
        units decide. The block's own units are none of them.
    """

    train: Index
    tests: dict[int, Index]


class _InnerModels:
    """Squared errors of inner models at the γ visited so far, and what is proved of the models.

    The supports of an inner model and their proofs are functions of its training rows alone.

    data: The rows in their outer folds.
    models: The inner models.
    solver: The solver of the first fits, as of :attr:`RunPlan.model_solver`.
    taus: The sizes τ of all models.
    errors: For every γ, inner model and block that it serves the squared errors summed, shape (τ,).
    margins: As ``errors``: how far rounding may have moved each; ∞ where nothing is proved, and
        there are more than ``MAX_SHARED`` columns.
    grown: For every inner model and γ from where its search without a proof goes on to more sizes.
    proved: For every γ whether the supports are proved to be the best, shape (inner model, τ).
    tried: For every γ whether a proof of the supports has been tried, shape (inner model, τ).
    """

    def __init__(
        self,
        data: FoldData,
        models: Sequence[InnerModel],
        taus: Index,
        run: Run,
        solver: str,
        smaller: _InnerModels | None = None,
    ) -> None:
        """Take models of which nothing is known.

        smaller: The same models at fewer sizes, whose searches go on at the γ that they visited.
        """
        self.models, self.taus, self._solver = models, taus, solver
        self._data, self._run, self._smaller = data, run, smaller
        self.grown: list[dict[float, GrownUnits]] = [{} for _ in models]
        self.errors = dict[float, list[dict[int, Array]]]()
        self.margins = dict[float, list[dict[int, Array]]]()
        self.proved = dict[float, NDArray[np.bool_]]()
        self.tried = dict[float, NDArray[np.bool_]]()

    def visit(self, gammas: Sequence[float]) -> None:
        """Compute the errors at some γ; a γ that was visited before costs nothing.

        Raises OutOfTime: The time is over, and the grace after it.
        """
        new = [gamma for gamma in dict.fromkeys(gammas) if gamma not in self.errors]
        if not new:
            return
        old = self._smaller
        if old is not None and not all(gamma in one for one in old.grown for gamma in new):
            old = None
        known, before = (0, self.grown) if old is None else (old.taus.size, old.grown)
        every = [(m, np.array(new), self.taus[known:]) for m in range(len(self.models))]
        unit = Late.AFTER_GRACE.unit(_inner_errors)
        found = self._computed("inner folds", unit, every, self._solver, None, before)
        results = all_done(found)
        for of_model, result in zip(self.grown, results, strict=True):
            of_model |= result[3]
        for g, gamma in enumerate(new):
            for i, values in enumerate((self.errors, self.margins)):
                values[gamma] = [
                    {b: of_block[g] for b, of_block in zip(model.tests, result[i], strict=True)}
                    for model, result in zip(self.models, results, strict=True)
                ]
            self.proved[gamma] = np.array([result[2][g] for result in results])
            if old is not None:
                self._put_before(gamma, old)
            # What the first fits have proved needs no further proof.
            self.tried[gamma] = self.proved[gamma].copy()

    def _put_before(self, gamma: float, smaller: _InnerModels) -> None:
        """Put what is known of smaller sizes at one γ before what is known of the others."""
        for values, known in ((self.errors, smaller.errors), (self.margins, smaller.margins)):
            for of_model, first in zip(values[gamma], known[gamma], strict=True):
                of_model |= {b: np.append(first[b], of_model[b]) for b in of_model}
        self.proved[gamma] = np.hstack([smaller.proved[gamma], self.proved[gamma]])

    def _computed(
        self,
        what: str,
        unit: Unit,
        fits: Tasks,
        solver: str,
        nodes: int | None,
        grown: list[dict[float, GrownUnits]] | None = None,
    ) -> list[Any]:
        """Results of :func:`_inner_errors`, in the order of the fits; None of one left out.

        what: The text of the progress reports.
        unit: The function, which may be left out where its time is up.
        fits: The number of an inner model, the γ and the sizes of every fit.
        nodes: The most nodes of a search at a γ; None for no limit.
        grown: For every inner model, as of :func:`~sparsecv.solvers.paths.support_path`.
        """
        tasks = list[tuple[Any, ...]]()
        for m, gammas, taus in fits:
            rows = self.models[m].train, list(self.models[m].tests.values())
            before = None if grown is None else grown[m]
            tasks.append((*rows, gammas, taus, solver, before, nodes))
        return self._run(what, unit, self._data, tasks)

    def of_block(self, gamma: float, b: int, margins: bool = False) -> Array:
        """Squared errors, summed over all inner models that serve block b, shape (τ,).

        margins: Whether to sum how far rounding may have moved the errors instead.
        """
        values = (self.margins if margins else self.errors)[gamma]
        parts = [of_model[b] for of_model in values if b in of_model]
        return np.asarray(sum(parts, np.zeros(self.taus.size)))

    def exact(self, gammas: Array, weights: Sequence[Array]) -> bool:
        """Whether rounding moves no sum of errors that carries weight by a noticeable share.

        gammas, weights: As of :meth:`pairs_to_do`.
        """
        room = self._data.rounding * self._data.total
        for b, of_block in enumerate(weights):
            for gamma, counts in zip(gammas.tolist(), of_block > 0.0, strict=True):
                most = exact_margin(self.of_block(gamma, b), room)
                if (counts & ~(self.of_block(gamma, b, margins=True) <= most)).any():
                    return False
        return True

    def pairs_to_do(
        self, done: dict[float, NDArray[np.bool_]], gammas: Array, weights: Sequence[Array]
    ) -> list[tuple[int, NDArray[np.bool_]]]:
        """The pairs (γ, τ) at which inner models count and are not done.

        done: :attr:`proved` or :attr:`tried`.
        gammas, shape (γ,): Visited γ.
        weights: For every block the weights of its models, shape (γ, τ), at these γ and all sizes.
            An inner model counts where a block that it serves has a weight above 0.
        Returns: Numbers of inner models with such pairs, and the pairs, shape (γ, τ).
        """
        found = []
        for m, model in enumerate(self.models):
            counts = np.any([weights[b] > 0.0 for b in model.tests], axis=0)
            missing = counts & ~np.array([done[gamma][m] for gamma in gammas.tolist()])
            if missing.any():
                found.append((m, missing))
        return found

    def prove(
        self, gammas: Array, pairs: list[tuple[int, NDArray[np.bool_]]], nodes: int | None
    ) -> bool:
        """Try to prove inner models, and take the errors of supports that are proved.

        A proof is tried at every γ and at every size that some pair has. What is not proved then
        would not be proved by another try, which would end at the same limits.

        gammas, pairs: As :meth:`pairs_to_do` takes and returns them.
        nodes: The most nodes of a proof at a γ; None for no limit.
        Returns: Whether anything was proved, so that errors may have changed.
        """
        fits = [
            (m, gammas[missing.any(axis=1)], self.taus[missing.any(axis=0)]) for m, missing in pairs
        ]
        unit = Late.LEFT_OUT.unit(_inner_errors)
        results = self._computed("proving inner folds", unit, fits, "exact", nodes)
        any_proved = False
        for (m, own_gammas, taus), result in zip(fits, results, strict=True):
            if result is None:
                continue  # The time was up before this proof.
            errors, margins, proved, _ = result
            positions = np.flatnonzero(np.isin(self.taus, taus))
            for g, gamma in enumerate(own_gammas.tolist()):
                new = proved[g] & ~self.proved[gamma][m, positions]
                for b, of_block, off in zip(self.models[m].tests, errors, margins, strict=True):
                    self.errors[gamma][m][b][positions[new]] = of_block[g][new]
                    self.margins[gamma][m][b][positions[new]] = off[g][new]
                self.proved[gamma][m, positions[new]] = True
                self.tried[gamma][m, positions] = True
                any_proved |= bool(new.any())
        return any_proved


def inner_weights(
    data: FoldData,
    gammas: Array | None,
    size_rounds: Sequence[SizeRound],
    run: Run,
    plan: RunPlan,
    first_round: int = 0,
) -> FoldWeights:
    """Weights of every fold's models, from errors of inner models that have not seen its rows.

    Up to 45 columns inner models of pairs that carry weight are proved, as far as the time allows.

    gammas: With None every fold has the default grid, which errors of its inner models extend: an
        extension by the CV errors of all rows would have seen the rows that the fold holds out.
    size_rounds: The sizes that every fold tries first, and those that it tries next where errors of
        its inner models say that larger sizes are worth it. A round has all sizes of those before.
    run: Runs units of work: takes the text of progress reports, a unit, what all units share and
        the other arguments of every unit; returns the results in the order of the units.
    plan: The plan of the run. Once its time is up neither grids nor sizes grow any more.
    first_round: The position in ``size_rounds`` of the sizes that are computed first. The result is
        that of 0: a fold takes the first round that its errors allow. Small sizes are not computed
        first by themselves, and then again with larger ones.
    """
    inner, block, n = _inner_models(data)  # n: the weight of the rows outside every block
    start = DEFAULT_GAMMAS if gammas is None else gammas
    blocks = range(n.size)
    round_of_block: list[SizeRound | None] = [None for _ in blocks]
    models: _InnerModels | None = None
    for number in range(first_round, len(size_rounds)):
        sizes = size_rounds[number].taus
        larger = _InnerModels(data, inner, sizes, run, plan.model_solver, smaller=models)
        try:
            larger.visit(start.tolist())
        except OutOfTime:
            if models is None:
                raise
            break  # The sizes of the round before have to suffice.
        models, taus = larger, larger.taus
        for b in blocks:
            if round_of_block[b] is None:
                # Weights take sums of squared errors as CV errors: a factor changes nothing.
                errors = np.array([models.of_block(gamma, b) for gamma in start.tolist()])
                # The first of the rounds so far after which larger sizes are not worth it.
                enough = (
                    sizes
                    for sizes in size_rounds[: number + 1]
                    if not worth_more_sizes(errors[:, taus <= sizes.end], start, n[b])
                )
                round_of_block[b] = next(enough, None)
        if None not in round_of_block or plan.out_of_time:
            break
    assert models is not None
    # A block for which no round is enough has all sizes that were computed last.
    has_size = [np.isin(taus, taus if own is None else own.taus) for own in round_of_block]

    def grown(b: int) -> list[float]:
        def score(gamma: float) -> float:
            return soft_least(models.of_block(gamma, b)[has_size[b]], n[b])

        def blurred(gamma: float) -> bool:
            if data.p > MAX_SHARED:
                return False
            errors, margins = (models.of_block(gamma, b, off)[has_size[b]] for off in (False, True))
            # What rounding leaves of a perfect fit, from rows that the block does not hold out.
            most = max(float(models.of_block(one, b).max()) for one in models.errors)
            enough = exact_margin(errors, left_of_perfect_fits(n[b], most))
            return not bool((margins <= enough).all())

        return grown_grid(models.visit, score, lambda: plan.out_of_time, blurred)[0]

    grids = [grown(b) if gammas is None else start.tolist() for b in blocks]
    every_gamma = np.unique(np.concatenate(grids)) if gammas is None else gammas

    def weights_of(b: int) -> Array:
        weights, own = np.zeros((every_gamma.size, taus.size)), np.isin(every_gamma, grids[b])
        grid = every_gamma[own]
        errors = np.array([models.of_block(gamma, b)[has_size[b]] for gamma in grid.tolist()])
        weights[np.ix_(own, has_size[b])] = model_weights(errors, grid, n[b])
        return weights

    weights = [weights_of(b) for b in blocks]
    # Proofs change errors, and with the errors the pairs that carry weight.
    while plan.proves_models and not plan.time_is_up:
        untried = models.pairs_to_do(models.tried, every_gamma, weights)
        nodes = proof_nodes(plan, data.constraints.n_units)
        if not (untried and models.prove(every_gamma, untried, nodes)):
            break
        weights = [weights_of(b) for b in blocks]
    proved = not models.pairs_to_do(models.proved, every_gamma, weights)
    proved = proved and models.exact(every_gamma, weights)
    return FoldWeights(every_gamma, taus, [weights[b] for b in block], proved)


def _inner_models(data: FoldData) -> tuple[list[InnerModel], Index, Array]:
    """The inner models of all folds: without pairs of blocks, or within every fold.

    Returns: The inner models; the block of every fold, shape (k,); and for every block the number
        of rows outside it, or the sum of their weights (of a block that is one fold: of the fold's
        training rows).
    """
    k = data.folds.k
    # Folds are dealt out to the blocks in turn. A fold whose rows all have weight 0 counts as no
    # fold: it joins the block of the fold before it.
    number = np.maximum(np.cumsum(data.fold_weight > 0.0) - 1, 0)
    # Without a pair of two folds no training row would be left.
    if data.fold_of is None or number[-1] < 2:
        n = np.array([data.training_weight(j) for j in range(k)])
        return _inside_folds(data), np.arange(k), n
    block = number % AVERAGE.max_blocks
    n = np.asarray(data.weight - np.bincount(block, weights=data.fold_weight))
    return _without_pairs(block[data.fold_of]), block, n


def _without_pairs(block: Index) -> list[InnerModel]:
    """Training on all but two blocks of folds, for every pair of blocks.

    Errors on one block of the pair count for the weights of the other block.

    block: The block of every unit.
    """
    found = list[InnerModel]()
    for b, c in combinations(range(block.max() + 1), 2):
        on_b, on_c = np.flatnonzero(block == b), np.flatnonzero(block == c)
        train = np.flatnonzero((block != b) & (block != c))
        found.append(InnerModel(train, {b: on_c, c: on_b}))
    return found


def _inside_folds(data: FoldData) -> list[InnerModel]:
    """Inner models of every fold, which train on some of its training rows and predict others.

    A fold has none where its training rows are one row or one group of rows, or where no row is
    early enough in time. A row of weight 0 is no row.

    data: Its rows are in memory; else an InputError is raised.
    """
    folds, weights = data.folds, data.rows_for("inner folds need").rows.weights
    pairs = list(folds.splits())
    if weights is not None:
        counted = weights > 0.0
        # A fold that holds out rows of weight 0 alone keeps them: its held-out rows say below which
        # training rows are early enough.
        tests = [test[counted[test]] if counted[test].any() else test for _, test in pairs]
        pairs = [(rows[counted[rows]], test) for (rows, _), test in zip(pairs, tests, strict=True)]
    in_order = all(train.max() < test.min() for train, test in pairs)
    found = list[InnerModel]()
    for j, (rows, test) in enumerate(pairs):
        if in_order:
            inner = _earlier_rows(rows, ahead=int(test.min() - rows.max()))
        elif folds.groups is not None:
            inner = _drawn_folds(rows, folds.groups[rows], pairs)
        else:
            others = _other_folds(pairs, j)
            # A single other fold would leave most training rows without a prediction.
            inner = others if len(others) > 1 else _drawn_folds(rows, None, pairs)
        found += [InnerModel(train, {j: held_out}) for train, held_out in inner]
    return found


# Training and held-out row numbers of some folds.
Pairs = list[tuple[Index, Index]]


def _earlier_rows(rows: Index, ahead: int) -> Pairs:
    """Inner folds in order of time: blocks of rows are held out from models of earlier rows.

    rows: The training rows of a fold, in increasing order.
    ahead: How many rows the fold's first held-out row lies behind its last training row, at least
        1. The inner folds keep the same distance.
    """
    found = Pairs()
    # The first block has no earlier rows to train on.
    for block in np.array_split(rows, min(AVERAGE.inner_folds + 1, rows.size)):
        train = rows[rows <= block[0] - ahead]
        if train.size:
            found.append((train, block))
    return found


def _other_folds(pairs: Pairs, j: int) -> Pairs:
    """The folds before fold j, and before the first fold the last ones, cut to j's training rows.

    They keep together the rows that the user's folds keep together.

    pairs: Training and held-out rows of all folds of the user.
    Returns: At most ``inner_folds`` folds; those without training or held-out rows are left out.
    """
    found, (rows, _) = Pairs(), pairs[j]
    for i in range(j - 1, j - len(pairs), -1):  # A negative number counts from the last fold.
        train, held_out = (np.intersect1d(part, rows) for part in pairs[i])
        if train.size and held_out.size:
            found.append((train, held_out))
        if len(found) == AVERAGE.inner_folds:
            break
    return found


def _drawn_folds(rows: Index, groups: Index | None, pairs: Pairs) -> Pairs:
    """Inner folds of whole groups, if given, else of single rows, which are drawn with seed 0.

    Where every fold of ``pairs`` holds out rows that follow one another, the rows are cut into
    blocks of rows that follow one another instead.

    rows: The training rows of a fold.
    groups: The group of each of these rows.
    pairs: All folds of the user.
    Returns: None where there are fewer than two rows or groups.
    """
    parts = rows.size if groups is None else np.unique(groups).size
    if parts < 2:
        return []
    cv: Any = min(parts, AVERAGE.inner_folds)
    if groups is None and all(np.ptp(test) + 1 == test.size for _, test in pairs):
        places = np.arange(rows.size)
        cv = [(np.setdiff1d(places, block), block) for block in np.array_split(places, cv)]
    inner = make_folds(cv, rows.size, seed=0, groups=groups)
    return [(rows[train], rows[held_out]) for train, held_out in map(inner.split, range(inner.k))]


def _inner_errors(
    data: FoldData,
    train: Index,
    tests: list[Index],
    gammas: Array,
    taus: Index,
    solver: str,
    grown: dict[float, GrownUnits] | None,
    nodes: int | None,
    limits: Limits,
) -> tuple[list[Array], list[Array], NDArray[np.bool_], dict[float, GrownUnits]]:
    """The unit of one inner model: fit it at all (γ, τ), and sum its squared errors.

    data: The rows in their outer folds, which all units share.
    train, tests: Numbers of the units to train on, and of those to predict, at least one set.
    solver, grown: As of :func:`~sparsecv.solvers.paths.support_path`.
    nodes: The most nodes of a search at a γ; None for no limit.
    limits: Limits of the unit; once a limit is reached, supports are found without a proof.
    Returns: For every set of ``tests`` the sums of squared errors, shape (γ, τ), and likewise how
        far rounding may have moved them; whether the support of each model is proved to be the
        best, shape (γ, τ); and from where its search can go on to more sizes.
    """
    first = data.one_fold(train, tests[0])
    limits = limits.within(nodes=nodes)
    path = support_path(first.training(0), gammas, taus, solver=solver, limits=limits, grown=grown)
    # The other sets are predicted by the same model, for which only their rows have to be scaled.
    folds = [first, *(data.one_fold(train, test, first) for test in tests[1:])]
    problem, every, moved = first.training(0), data.p <= MAX_SHARED, np.inf
    bounded = every or bool(path.proved.any())
    # How far rounding moves errors is asked of whole rows.
    columns = None if bounded else path.used
    held_out = [one.held_out(0, columns) for one in folds]
    errors = [path.squared_errors(*rows, columns) for rows in held_out]
    if bounded:
        moved = path.moved(problem, *map(np.concatenate, zip(*held_out, strict=True)))
    margins = [
        path.error_margins(problem, *rows, of_one, moved, every=every)
        for rows, of_one in zip(held_out, errors, strict=True)
    ]
    return errors, margins, path.proved, path.grown
