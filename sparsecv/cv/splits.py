"""Held-out errors of models that train on some rows and are judged on others: a ledger of splits.

A split has a training problem, and sets of rows with targets on which its models are judged: the
rows of one outer fold or of two, or the rows of a fold twice, with the response and with the
predictions of another model as targets. Models are estimated first, and then proved where somebody
says that they count. No model is reported, so that its support is not kept, and its errors have no
bounds: an error is that of a proved support, or an estimate.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..design.fold_data import FoldData
from ..solvers.core.limits import Limits
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.paths import support_path
from ..solvers.supports.path import GrownUnits
from .arrays import GammaArrays, GammaLedger
from .executor import Late, RunUnits, all_done

Array = NDArray[np.float64]
Index = NDArray[np.intp]


class Split(NamedTuple):
    """What the models of a split are fitted to, and what they are judged on.

    problem: The training problem, with placeholders for γ and τ.
    sets: Takes increasing columns, outside which no model has a coefficient, or None for all
        columns; returns for every set its rows, shape (m, c), and its targets, shape (m,).
    columns: Increasing columns that ``sets`` needs besides those that models have.
    stretch: The factor, above 0, by which γ of the ledger are multiplied for this problem.
    """

    problem: SparseRidgeProblem
    sets: Callable[[Index | None], list[tuple[Array, Array]]]
    columns: Index
    stretch: float = 1.0


class Splits(ABC):
    """Some splits of a table; units of work share this record, which can be pickled.

    data: The table in its outer folds.
    sets_of: For every split the numbers of its sets, which no other split has; all sets together
        are numbered 0, 1, ….
    bounds_estimates: Whether margins of rounding are asked for of supports without a proof, too.
    """

    data: FoldData
    sets_of: list[Index]
    bounds_estimates: bool = False

    @abstractmethod
    def split(self, m: int) -> Split:
        """The m-th split, which is made from the rows of the table at every call."""

    def rooms(self, taus: Index, errors: list[Array]) -> Sequence[Array | float]:
        """For every set of a split the room of :meth:`SupportPath.error_margins`; 0 by default.

        A room is a number, or an array that broadcasts to (γ, τ).

        errors: For every set the sums of squared errors, shape (γ, τ).
        """
        return [0.0 for _ in errors]


class SplitErrors(NamedTuple):
    """What a unit of work has found of the models of one split, at some γ and sizes.

    errors: For every set the sums of squared errors, shape (γ, τ).
    margins: Likewise how far rounding may have moved them; ∞ where nothing is known.
    proved, shape (γ, τ): Whether the support of each model is proved to be the best.
    grown: From where the searches can go on to larger sizes, by γ.
    """

    errors: list[Array]
    margins: list[Array]
    proved: NDArray[np.bool_]
    grown: dict[float, GrownUnits]


def split_unit(
    splits: Splits,
    m: int,
    gammas: Array,
    taus: Index,
    solver: str,
    grown: dict[float, GrownUnits] | None,
    nodes: int | None,
    limits: Limits,
) -> SplitErrors:
    """The unit of one split: fit its models at all (γ, τ), and sum their squared errors.

    gammas, shape (γ,): The γ of the ledger.
    solver, grown: As of :func:`~sparsecv.solvers.paths.support_path`.
    nodes: The most nodes of a search at a γ; None for no limit.
    limits: Limits of the unit; once a limit is reached, supports are found without a proof.
    """
    problem, sets, more, stretch = splits.split(m)
    limits = limits.within(nodes=nodes)
    path = support_path(problem, gammas * stretch, taus, solver=solver, limits=limits, grown=grown)
    bounded = splits.bounds_estimates or bool(path.proved.any())
    # How far rounding moves errors is asked of whole rows.
    columns = None if bounded else np.union1d(path.used, more)
    judged = sets(columns)
    errors = [path.squared_errors(*one, columns) for one in judged]
    moved = np.inf
    if bounded:
        moved = path.moved(problem, *map(np.concatenate, zip(*judged, strict=True)))
    every = splits.bounds_estimates
    margins = [
        path.error_margins(problem, *one, of_one, moved, room, every=every)
        for one, of_one, room in zip(judged, errors, splits.rooms(taus, errors), strict=True)
    ]
    return SplitErrors(errors, margins, path.proved, path.grown)


class ErrorsOfSets(GammaArrays):
    """Held-out errors of the models of all splits, in arrays of shape (γ, τ, set).

    error: Sums of squared errors; NaN until there is a model.
    margin: How far rounding may have moved them; ∞ where nothing is known.
    """

    error: Array
    margin: Array

    def __init__(self, shape: tuple[int, int]) -> None:
        super().__init__(error=np.full(shape, np.nan), margin=np.full(shape, np.inf))


class ProofsOfSplits(GammaArrays):
    """What is proved of the models of all splits, in arrays of shape (γ, τ, split).

    proved: Whether the support is proved to be the best.
    tried: Whether a proof was tried, or the first search has proved the support.
    """

    proved: NDArray[np.bool_]
    tried: NDArray[np.bool_]

    def __init__(self, shape: tuple[int, int]) -> None:
        no = np.zeros(shape, dtype=bool)
        super().__init__(proved=no, tried=no)


class _Fits(NamedTuple):
    """The models of one split at some rows and sizes of a ledger, which one unit of work fits."""

    split: int
    rows: list[int]
    taus: Index


class SplitLedger(GammaLedger):
    """The held-out errors of some splits at every γ and size, and what is proved of their models.

    The supports of a split and their proofs are functions of its training rows alone.

    splits: The splits.
    of_sets: The errors of the sets.
    of_splits: The proofs of the splits.
    """

    def __init__(self, splits: Splits, taus: Index, run: RunUnits, extends: bool = False) -> None:
        """Take splits of whose models nothing is known.

        taus: The sizes, in increasing order.
        run: Runs units of work, and returns their results in the order of the tasks.
        extends: Whether sizes will be added, so that searches note from where they can go on.
        """
        super().__init__(taus)
        self.splits, self._run, self._extends = splits, run, extends
        n_sets = sum(own.size for own in splits.sets_of)
        self.of_sets = ErrorsOfSets((taus.size, n_sets))
        self.of_splits = ProofsOfSplits((taus.size, len(splits.sets_of)))
        self.sized = self.arrays = self.of_sets, self.of_splits

    def extended(self, taus: Index) -> SplitLedger:
        """A ledger of the sizes ``taus``, which knows what this one knows if its sizes come first.

        Otherwise nothing is known there.
        """
        other = SplitLedger(self.splits, taus, self._run, self._extends)
        other.go_on_from(self)
        return other

    def visit(
        self, gammas: Sequence[float], solver: str, what: str, splits: Sequence[int] | None = None
    ) -> list[int]:
        """Estimate the models of some splits at some γ, and return the rows of these γ.

        A model that is known costs nothing.

        solver: As of :func:`~sparsecv.solvers.paths.support_path`.
        what: The text of the progress reports.
        splits: Numbers of splits; by default all.
        Raises OutOfTime: The time is over, and the grace after it.
        """
        rows = self.rows_of(gammas)
        wanted = list[_Fits]()
        for m in range(len(self.splits.sets_of)) if splits is None else splits:
            lacks = np.isnan(self.of_sets.error[:, :, self.splits.sets_of[m]])
            unknown: NDArray[np.bool_] = np.logical_or.reduce(lacks, axis=(1, 2))
            new = [g for g in dict.fromkeys(rows) if unknown[g]]
            wanted += [_Fits(m, *part) for part in self.rows_by_sizes_to_grow(new, m)]
        found = all_done(self._computed(what, Late.AFTER_GRACE, wanted, solver, None))
        for fits, one in zip(wanted, found, strict=True):
            self.grown[fits.split] |= one.grown
            # What the first fits have proved needs no further proof.
            self._enter(fits, one, np.ones(one.proved.shape, dtype=bool), tried=one.proved)
        return rows

    def prove(self, wanted: NDArray[np.bool_], what: str, nodes: int | None) -> bool:
        """Try to prove models, and take the errors of supports that are proved.

        A proof is tried once: another try would end at the same limits.

        wanted, shape (γ, τ, split): The models whose proof is wanted, at the first rows of the
            ledger.
        what: The text of the progress reports.
        nodes: The most nodes of a proof at a γ; None for no limit.
        Returns: Whether anything was proved, so that errors may have changed.
        """
        known, fits = self.of_splits, list[_Fits]()
        missing = wanted & ~known.tried[: len(wanted)]
        for m in np.flatnonzero(missing.any(axis=(0, 1))).tolist():
            at_gamma, at_size = (missing[:, :, m].any(axis=axis) for axis in (1, 0))
            fits.append(_Fits(m, np.flatnonzero(at_gamma).tolist(), self.taus[at_size]))
        any_proved = False
        found = self._computed(what, Late.LEFT_OUT, fits, "exact", nodes)
        for some, one in zip(fits, found, strict=True):
            if one is not None:  # Else the time was up before this proof.
                new = one.proved & ~known.proved[..., some.split][self._cells(some)]
                self._enter(some, one, new, tried=np.ones_like(new))
                any_proved |= bool(new.any())
        return any_proved

    def _computed(
        self,
        what: str,
        late: Late,
        fits: Sequence[_Fits],
        solver: str,
        nodes: int | None,
    ) -> list[Any]:
        """What :func:`split_unit` returns for every unit of work; None of one that was left out.

        late: What becomes of a unit whose time is up before it begins.
        fits: The models of every unit.
        """
        grown = solver != "exact" and self._extends
        gammas = np.array(self.gammas)
        tasks = [
            (m, gammas[rows], taus, solver, self.grown[m] if grown else None, nodes)
            for m, rows, taus in fits
        ]
        return self._run(what, late.unit(split_unit), self.splits, tasks) if tasks else []

    def _cells(self, fits: _Fits) -> tuple[Index, Index]:
        """The index of the cells of some models in arrays of shape (γ, τ)."""
        return np.array(fits.rows, dtype=np.intp)[:, None], np.searchsorted(self.taus, fits.taus)

    def _enter(
        self,
        fits: _Fits,
        found: SplitErrors,
        new: NDArray[np.bool_],
        tried: NDArray[np.bool_],
    ) -> None:
        """Enter what a unit of work has found.

        fits: The models of the unit.
        new, shape (γ, τ): Those whose errors are entered.
        tried, shape (γ, τ): Those of which a proof counts as tried.
        """
        at, m = self._cells(fits), fits.split
        of_unit = zip(self.splits.sets_of[m].tolist(), found.errors, found.margins, strict=True)
        for number, error, margin in of_unit:
            for array, values in ((self.of_sets.error, error), (self.of_sets.margin, margin)):
                of_set = array[..., number]
                of_set[at] = np.where(new, values, of_set[at])
        self.of_splits.proved[..., m][at] |= found.proved
        self.of_splits.tried[..., m][at] |= tried
