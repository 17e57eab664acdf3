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

from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..cv.executor import OutOfTime, RunUnits
from ..cv.grid import grown_grid
from ..cv.plan import RunPlan
from ..cv.settings import DEFAULT_GAMMAS
from ..cv.splits import Split, SplitLedger, Splits
from ..design.design import Array
from ..design.fold_data import FoldData
from ..design.folds import Index, make_folds
from ..solvers.core.error_margin import MAX_SHARED
from ..solvers.core.rounding import exact_margin, left_of_perfect_fits
from .weights import AVERAGE, SizeRound, model_weights, proof_nodes, soft_least, worth_more_sizes


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


class InnerFolds(Splits):
    """The inner models of all blocks as splits: a set is what a model predicts for one block.

    models: The inner models.
    block_of, shape (sets,): The block whose weights a set decides.
    """

    def __init__(self, data: FoldData, models: Sequence[InnerModel]) -> None:
        self.data, self.models = data, models
        # The grid of a block ends where rounding moves errors, those of estimates included.
        self.bounds_estimates = data.p <= MAX_SHARED
        self.block_of = np.array([b for model in models for b in model.tests], dtype=np.intp)
        first = np.cumsum([0, *(len(model.tests) for model in models)])
        self.sets_of = [np.arange(*ends) for ends in pairwise(first.tolist())]

    def split(self, m: int) -> Split:
        """The m-th inner model."""
        train, tests = self.models[m]
        first, *others = tests.values()
        fold = self.data.one_fold(train, first)
        # The other sets are predicted by the same model, for which only their rows are scaled.
        folds = [fold, *(self.data.one_fold(train, test, fold) for test in others)]

        def sets(columns: Index | None) -> list[tuple[Array, Array]]:
            return [one.held_out(0, columns) for one in folds]

        return Split(fold.training(0), sets, columns=np.empty(0, dtype=np.intp))

    def counting(self, weights: Sequence[Array]) -> NDArray[np.bool_]:
        """The pairs (γ, τ) at which models count, shape (γ, τ, model).

        weights: For every block the weights (γ, τ) of its models. An inner model counts where a
            block that it serves has a weight above 0.
        """
        counts = np.stack(weights, axis=2) > 0.0
        found = [counts[:, :, list(model.tests)].any(axis=2) for model in self.models]
        return np.stack(found, axis=2) if found else counts[:, :, :0]


def inner_weights(
    data: FoldData,
    gammas: Array | None,
    size_rounds: Sequence[SizeRound],
    run: RunUnits,
    plan: RunPlan,
    first_round: int = 0,
) -> FoldWeights:
    """Weights of every fold's models, from errors of inner models that have not seen its rows.

    Up to 45 columns inner models of pairs that carry weight are proved, as far as the time allows.
    A fold without inner models has all sizes, and weights as if all its CV errors were equal.

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
    Raises OutOfTime: The time is over, and the grace after it, before all inner models of the first
        sizes are fitted.
    Raises InputError: Inner folds are needed within folds, and the rows are not in memory.
    """
    models, block, n = _inner_models(data)
    splits, start = InnerFolds(data, models), DEFAULT_GAMMAS if gammas is None else gammas
    blocks = _visited_blocks(splits, n, start, size_rounds, run, plan, first_round)
    every_block, ledger = range(n.size), blocks.ledger
    grids = [blocks.grid(b) if gammas is None else start.tolist() for b in every_block]
    every_gamma = np.unique(np.concatenate(grids)) if gammas is None else gammas
    rows = ledger.rows_of(every_gamma.tolist())

    def counting() -> NDArray[np.bool_]:
        """The models that count, at the rows of the ledger."""
        found = np.zeros((len(ledger.gammas), ledger.taus.size, len(models)), dtype=bool)
        np.logical_or.at(found, rows, splits.counting(weights))
        return found

    weights = [blocks.weights(b, every_gamma, grids[b]) for b in every_block]
    # Proofs change errors, and with the errors the pairs that carry weight.
    while plan.proves_models and not plan.time_is_up:
        nodes = proof_nodes(plan, data.constraints.n_units)
        if not ledger.prove(counting(), "proving inner folds", nodes):
            break
        weights = [blocks.weights(b, every_gamma, grids[b]) for b in every_block]
    proved = bool(ledger.of_splits.proved[: len(ledger.gammas)][counting()].all())
    for b in every_block:
        # Rounding may move no sum of errors that carries weight by a noticeable share.
        most = exact_margin(blocks.errors(rows, b), data.rounding * data.total)
        proved &= bool((blocks.margins(rows, b) <= most)[weights[b] > 0.0].all())
    return FoldWeights(every_gamma, ledger.taus, [weights[b] for b in block], proved)


class _Blocks:
    """Errors of the inner models by the block whose weights they decide.

    Weights take sums of squared errors as CV errors: a factor changes nothing.

    ledger: The errors of the inner models.
    sizes: For every block which sizes it has tried, shape (τ,).
    """

    def __init__(self, ledger: SplitLedger, block_of: Index, n: Array, plan: RunPlan) -> None:
        """Take a ledger all of whose sizes count as tried by every block.

        :func:`_visited_blocks` changes ``sizes`` where a block has enough with fewer.

        block_of, shape (sets,): The block whose weights a set of the ledger decides.
        n, shape (blocks,): The weight of the rows outside every block.
        """
        self.ledger, self._block_of, self._n, self._plan = ledger, block_of, n, plan
        self.sizes = [np.ones(ledger.taus.size, dtype=bool) for _ in n]

    def errors(self, rows: Sequence[int], b: int) -> Array:
        """Squared errors at some rows of the ledger, summed over the sets of a block, (γ, τ).

        They are NaN where a γ was not visited in time, and 0 of a block without inner models.
        """
        return self._summed(self.ledger.of_sets.error, rows, b)

    def margins(self, rows: Sequence[int], b: int) -> Array:
        """How far rounding may have moved :meth:`errors`; ∞ where nothing is known."""
        return self._summed(self.ledger.of_sets.margin, rows, b)

    def _summed(self, values: Array, rows: Sequence[int], b: int) -> Array:
        """Numbers of the ledger's sets at some rows, summed over the sets of a block, (γ, τ)."""
        return np.asarray(values[np.array(rows)][:, :, self._block_of == b].sum(axis=2))

    def visit(self, gammas: Sequence[float]) -> list[int]:
        """Fit all inner models at some γ; return the rows of these γ in the ledger.

        Raises OutOfTime: The time is over, and the grace after it.
        """
        return self.ledger.visit(gammas, self._plan.model_solver, "inner folds")

    def grid(self, b: int) -> list[float]:
        """The γ of a block: the default grid, as far past its ends as the block's errors ask for.

        All γ of the default grid have been visited.
        """
        n, tried = self._n[b], self.sizes[b]

        def score(gamma: float) -> float:
            return soft_least(self.errors(self.ledger.rows_of([gamma]), b)[0, tried], n)

        def blurred(gamma: float) -> bool:
            if not self.ledger.splits.bounds_estimates:
                return False
            rows = self.ledger.rows_of([gamma])
            errors, margins = (of(rows, b)[0, tried] for of in (self.errors, self.margins))
            # What rounding leaves of a perfect fit, from rows that the block does not hold out. The
            # errors of a γ that the time did not suffice for are NaN.
            most = float(np.nanmax(self.errors(range(len(self.ledger.gammas)), b)))
            enough = exact_margin(errors, left_of_perfect_fits(n, most))
            return not bool((margins <= enough).all())

        return grown_grid(self.visit, score, lambda: self._plan.out_of_time, blurred)[0]

    def weights(self, b: int, gammas: Array, grid: Sequence[float]) -> Array:
        """The weights (γ, τ) of a block's models; 0 at pairs that the block has not tried.

        gammas, shape (γ,): Visited γ.
        grid: Those of them that the block has.
        """
        own = np.isin(gammas, grid)
        errors = self.errors(self.ledger.rows_of(gammas.tolist()), b)
        tried, weights = np.ix_(own, self.sizes[b]), np.zeros(errors.shape)
        weights[tried] = model_weights(errors[tried], gammas[own], self._n[b])
        return weights


def _visited_blocks(
    splits: InnerFolds,
    n: Array,
    gammas: Array,
    size_rounds: Sequence[SizeRound],
    run: RunUnits,
    plan: RunPlan,
    first_round: int,
) -> _Blocks:
    """The errors of all blocks at some γ, at sizes that grow as far as a block's errors say.

    n, shape (blocks,): The weight of the rows outside every block.
    size_rounds, run, plan, first_round: As of :func:`inner_weights`.
    Raises OutOfTime: The time does not suffice for the first sizes.
    """
    blocks: _Blocks | None = None
    round_of_block: list[SizeRound | None] = [None] * n.size
    for number in range(first_round, len(size_rounds)):
        taus = size_rounds[number].taus
        if blocks is None:
            ledger = SplitLedger(splits, taus, run, extends=number < len(size_rounds) - 1)
        else:
            ledger = blocks.ledger.extended(taus)
        larger = _Blocks(ledger, splits.block_of, n, plan)
        try:
            rows = larger.visit(gammas.tolist())
        except OutOfTime:
            if blocks is None:
                raise
            break  # The sizes of the round before have to suffice.
        blocks = larger
        for b, known in enumerate(round_of_block):
            if known is None:
                errors = blocks.errors(rows, b)
                # The first of the rounds so far after which larger sizes are not worth it.
                enough = (
                    sizes
                    for sizes in size_rounds[: number + 1]
                    if not worth_more_sizes(errors[:, taus <= sizes.end], gammas, n[b])
                )
                round_of_block[b] = next(enough, None)
        if None not in round_of_block or plan.out_of_time:
            break
    assert blocks is not None
    for b, own in enumerate(round_of_block):
        # A block for which no round is enough has all sizes that were computed last.
        if own is not None:
            blocks.sizes[b] = np.isin(blocks.ledger.taus, own.taus)
    return blocks


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
    Returns: The inner models of all folds, those of a fold one after the other; each predicts for
        its own fold alone.
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
    Returns: Training and held-out rows of 2 to ``inner_folds`` folds; an empty list where there are
        fewer than two rows or groups.
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
