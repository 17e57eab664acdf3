"""The least CV error over every τ and a whole range of γ, with a proof (branch and bound over γ).

Every fold's supports along the range are found first (``leaps.gamma_range``): the range is cut into
pieces, on each of which one support of the fold is best, or several may be. Then cells (τ, range of
γ) are bounded from below by the predictions of the supports that can be best there
(``error_bounds``), and the cells that may hold the least error are divided, until no cell can hold
an error that is lower than the best known error by more than the tolerance.

The CV error h counts the largest error of a fold where several supports tie or may be best. Lower
bounds count the least. Inside, ranges are those of t = γ/2, which is what a ridge fit adds to XᵀX.

The module adds the range ``gammas="global"``. Without it the least CV error is known at single γ
alone.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..design.fold_data import FoldData
from ..errors import InputError
from ..solvers.core.gamma_span import GammaSpan
from ..solvers.core.limits import Limits
from ..solvers.core.plan import refuse_many_columns
from ..solvers.core.result import Status
from ..solvers.kernels.envelope import Fits
from ..solvers.leaps.gamma_range import GammaRange, Pieces
from .engine import Surface
from .error_bounds import CellData, bound_cell
from .executor import Report, run_units
from .needs import Need
from .results import CVResult, ErrorsOverGamma, GlobalMinimum
from .settings import checked_taus

# The error at a single γ is that of a cell around it. Its ends are this share of γ away: a choice.
POINT_TOLERANCE = 1e-12

Array = NDArray[np.float64]
# The search ends once its lower bound on the least CV error is at most this share below the least
# error found, unless ``tol`` names another share. The number is a choice.
GLOBAL_TOLERANCE = 1e-4
# Folds are searched in blocks of at most this many folds. The arrays of a block's tree then
# stay in the processor's cache. The number is a choice.
FOLDS_PER_BLOCK = 128
# Where folds are few, they are divided into about this many blocks, so that as many threads have
# work and progress can be reported after each block. The number is a choice.
BLOCKS_OF_FEW_FOLDS = 4
# A picture of the range shows h at 81 γ (``_shown``). Every eighth of them is also cross-validated
# like the γ of a grid, so that tables have h there. These are 11 γ, from the first to the last.
# Where the range begins at 0, γ = 0 comes in front, and the last γ is left out. The number is a
# choice.
VISITED_EVERY = 8


class Cell(NamedTuple):
    """A size and a range of t = γ/2; cells of a smaller lower bound come first in a heap.

    lower: A lower bound on h in the whole cell.
    s: Position of the size among the sizes searched; so in the functions below.
    low, high: The ends of the range of t.
    divide: The t at which the cell is divided; 0 where that would not help.
    """

    lower: float
    s: int
    low: float
    high: float
    divide: float


def cell_data(pieces: Pieces, rows: Array, targets: Array, lengths: Array) -> CellData:
    """What cells of one size are bounded from, for the folds that pieces are of.

    pieces: Pieces of the range of γ with the decomposed fits of their supports, fold after fold.
        ``pieces.row`` is the position in ``pieces.decomposed`` of the only support that can be the
        best in a piece; −1 where any support may be.
    rows, shape (folds, m, p + 1): Held-out rows, with a last column of zeros, which stands for the
        columns that a support of fewer columns lacks.
    targets, shape (folds, m): The held-out y.
    lengths, shape (folds, 2): The length of the y of the fold's training rows, and its square.
    Returns: The data, in which the range is one of t = γ/2 and folds count from 0.
    """
    decomposed = pieces.decomposed
    known = pieces.row >= 0
    used, row = np.unique(pieces.row[known], return_inverse=True)
    number, columns = decomposed.number[used], decomposed.columns[used]
    H = rows[number[:, None, None], np.arange(rows.shape[1])[:, None], columns[:, None, :]]
    # A fit is Σ_k vectors[k] turned[k]/(d_k + t), and predicts Σ_k coef[k]/(d_k + t) of a row.
    coef = np.einsum("imc,ikc->imk", H, decomposed.vectors[used]) * decomposed.turned[used][:, None]
    row_of_piece = pieces.row.copy()
    row_of_piece[known] = row
    return CellData(
        start=np.searchsorted(pieces.number, np.arange(len(targets) + 1)).astype(np.int64),
        ends=np.column_stack([pieces.low, pieces.high]) / 2.0,
        row=row_of_piece,
        fits=Fits(*(part[used] for part in decomposed.fits)),
        coef=coef,
        length=np.sqrt(np.einsum("imc,imc->im", H, H)),
        targets=targets,
        lengths=lengths,
    )


def _joined(parts: Sequence[CellData]) -> CellData:
    """The data of all blocks of folds in one record.

    Numbers of pieces and of supports begin at 0 in every block, and are counted through here.
    """
    starts, rows, n_pieces, n_supports = [np.zeros(1, dtype=np.int64)], [], 0, 0
    for part in parts:
        starts.append(part.start[1:] + n_pieces)
        rows.append(np.where(part.row >= 0, part.row + n_supports, -1))
        n_pieces, n_supports = n_pieces + len(part.row), n_supports + len(part.coef)
    return CellData(
        start=np.concatenate(starts),
        ends=np.concatenate([part.ends for part in parts]),
        row=np.concatenate(rows),
        fits=Fits(*map(np.concatenate, zip(*(part.fits for part in parts), strict=True))),
        coef=np.concatenate([part.coef for part in parts]),
        length=np.concatenate([part.length for part in parts]),
        targets=np.concatenate([part.targets for part in parts]),
        lengths=np.concatenate([part.lengths for part in parts]),
    )


def supports_unit(
    data: FoldData,
    folds: NDArray[np.intp],
    max_rows: int,
    low: float,
    high: float,
    taus: NDArray[np.intp],
    limits: Limits,
) -> tuple[list[CellData], int, Status]:
    """The unit of some folds: their supports along the range of γ, with the predictions.

    max_rows: The largest number of rows that any fold holds out. Rows of zeros with the target 0,
        which change no error, give all folds as many.
    folds: Numbers of folds.
    low, high: The ends of the range of γ.
    taus: Sizes above 0, increasing.
    limits: Where they are reached, pieces remain in which any support may be best.
    Returns: For every τ the data of its cells, the number of trees, and how the searches ended.
    """
    problems = [data.training(j) for j in folds.tolist()]
    rows, targets = np.zeros((folds.size, max_rows, data.p + 1)), np.zeros((folds.size, max_rows))
    for i, j in enumerate(folds.tolist()):
        H, t = data.held_out(j)
        rows[i, : t.size, :-1], targets[i, : t.size] = H, t
    full_and_deleted = None
    deleted = data.deleted_rows if data.tree_deletes_rows else None
    if deleted is not None:
        held_out = deleted.row_of[folds]
        full_and_deleted = data.full(), deleted.rows[held_out], deleted.targets[held_out]
    search = GammaRange(problems, taus, limits, full_and_deleted)
    cells = [cell_data(one, rows, targets, search.lengths) for one in search.run(low, high)]
    return cells, search.n_trees, search.status


def global_minimum(
    data: FoldData,
    taus: Sequence[int] | NDArray[np.intp],
    *,
    low: float = GammaSpan().low,
    high: float = GammaSpan().high,
    tolerance: float = GLOBAL_TOLERANCE,
    limits: Limits | None = None,
    n_jobs: int | None = None,
    progress: Report | None = None,
) -> GlobalMinimum:
    """Find the least CV error h(γ, τ) over some τ and all γ from low to high, and prove it.

    The proof is of h with the tie rule of :class:`GlobalMinimum`.

    Parameters
    ----------
    data : FoldData
        At most 45 columns, unless p is the only τ.
    taus : sequence of int
        Sizes from 1 to p. With p alone, ridge regression without a choice of columns.
    low, high : float
        Ends of the range, 0 ≤ low < high. From γ = 0 on the bounds are useful where the columns
        are linearly independent in the training rows of every fold.
    tolerance : float
        Relative gap (upper − lower)/upper at which the search ends, between 0 and 1.
    limits : Limits, optional
        Where they are reached the bounds are valid, and wider.
    n_jobs : int, optional
        Threads, as in joblib.
    progress : callable, optional
        Takes what is being done, the number of units done and the number of all units.

    Returns
    -------
    GlobalMinimum

    Raises
    ------
    InputError
        A range, τ or tolerance that cannot be searched for, too many columns, or constraints.

    Examples
    --------
    >>> from sparsecv.cv.global_gamma import global_minimum
    >>> from sparsecv.design.fold_data import RowFolds
    >>> from sparsecv.design.folds import make_folds
    >>> from sparsecv.design.row_table import RowTable
    >>> from sparsecv.tables.synthetic import make_synthetic
    >>> X, y, _ = make_synthetic(n=20, p=3, tau_true=1)
    >>> found = global_minimum(RowFolds(RowTable(X, y), make_folds("loo", 20)), [1, 2, 3])
    >>> str(found.status), found.tau
    ('optimal', 3)
    """
    data.full().refuse_constraints("a certified minimum over a range of gamma")
    sizes = checked_taus(taus, data.p)
    GammaSpan(low, high).check()
    if not 0.0 < tolerance < 1.0:
        raise InputError(f"the tolerance must lie in (0, 1); got {tolerance:g}")
    if sizes.tolist() != [data.p]:
        refuse_many_columns(data.p, "a certified minimum over a range of gamma at tau < p")
    limits, report = (limits or Limits()).within(), progress or (lambda *_: None)
    k = data.folds.k
    per_block = min(-(-k // BLOCKS_OF_FEW_FOLDS), FOLDS_PER_BLOCK)
    blocks = [np.arange(i, min(i + per_block, k)) for i in range(0, k, per_block)]
    max_rows = max(data.held_out(j)[1].size for j in range(k))
    tasks = [(block, max_rows, low, high, sizes) for block in blocks]
    found: dict[int, tuple[list[CellData], int, Status]] = {}
    report("fitting the folds", 0, len(blocks), "supports along γ")
    units = run_units(
        supports_unit, data, tasks, n_jobs, allot=lambda left: limits.share(left + 1.0)
    )
    for done, (index, one) in enumerate(units, 1):
        found[index] = one
        report("fitting the folds", done, len(blocks), "supports along γ")
    by_block, trees, statuses = zip(*(found[i] for i in range(len(blocks))), strict=True)
    tables = [_joined(parts) for parts in zip(*by_block, strict=True)]
    search = _Search(data, sizes, tables, limits)
    return search.run(GammaSpan(low, high), tolerance, report, sum(trees), Status.worst(statuses))


def least_over_range(surface: Surface, span: GammaSpan, need: Need) -> CVResult:
    """Search a range of γ for the least CV error, prove it, and visit γ of the range.

    surface: It has visited no γ yet, and has a size above 0. Its settings have the tolerance.
    need: The pairs (γ, τ) that are proved, too.
    Returns: h(γ, τ) at the γ of least error, where it is proved, and at some γ of the range that
        show how h varies.
    """
    settings = surface.settings
    tolerance = GLOBAL_TOLERANCE if settings.tol is None else float(settings.tol)
    with surface:
        found = global_minimum(
            surface.data,
            surface.taus[surface.taus > 0],
            low=span.low,
            high=span.high,
            tolerance=tolerance,
            limits=surface.plan.limits,
            n_jobs=settings.n_jobs,
            progress=surface.report,
        )
        surface.visit(np.sort(np.append(found.shown.gammas[::VISITED_EVERY], found.gamma)))
        surface.prove(need)
    result = surface.result()
    if result.taus[0] == 0:
        lower, upper = (float(result.table(name)[0, 0]) for name in ("lower", "upper"))
        found = found.with_size_0(lower, upper)
    return replace(result, minimum=found)


class _Search:
    """Branch and bound over cells (τ, range of t = γ/2), the least lower bound first.

    taus: The sizes.
    tables: For every size what its cells are bounded from.
    limits: Where they are reached the bounds are valid, and wider.
    total: The divisor of the CV error, by which sums of squared errors become h.
    n_cells: How many cells have been bounded.
    """

    def __init__(
        self, data: FoldData, taus: NDArray[np.intp], tables: list[CellData], limits: Limits
    ) -> None:
        self.taus, self.tables, self.limits, self.total = taus, tables, limits, data.total
        # Work space of ``bound_cell``, and what it returns.
        self._work, self._out = (np.empty((3, 2)), np.empty(6)), np.empty(5)
        self.n_cells = 0
        # Cells of no larger t are not divided: ``run`` sets it from the range.
        self._narrowest = 0.0

    def bound(self, s: int, low: float, high: float, middle: float = 0.0) -> tuple[float, ...]:
        """Bound h, the CV error, in a cell: at the s-th τ, for t = γ/2 from ``low`` to ``high``.

        middle: Where in the cell h is bounded from above; by default the middle in log t, or a
            hundredth of ``high`` where ``low`` is 0.
        Returns: A lower bound on h in the whole cell; an upper bound at ``middle``; ``middle``; and
            the t at which to divide the cell. The last is 0 where that would not help: where the
            two bounds differ by rounding alone, where several supports may be best and none
            begins or ends to be best inside the cell, or the cell is as narrow as cells get.
        """
        self.n_cells += 1
        cell = GammaSpan(low, high)
        middle = middle or cell.middle  # It halves a range of t as one of γ.
        bound_cell(np.array([low, high, middle]), self.tables[s], self._work, self._out)
        # ``lower`` and ``upper`` bound the sum of squared errors, and rounding takes ``lost`` off
        # them. In the cell ``several`` folds have more than one support that may be best. Of the t
        # at which such a support begins or ends to be best, ``nearest`` is the one nearest to the
        # middle; it is 0 where there is none.
        lower, upper, several, nearest, lost = self._out.tolist()
        divide = nearest if several else middle
        # Smaller cells have no better bounds, unless from γ = 0 on there is no bound at all.
        if not several and low > 0.0 and upper - lower <= 4.0 * lost:
            divide = 0.0
        if cell.is_narrow or high <= self._narrowest:
            divide = 0.0
        return lower / self.total, upper / self.total, middle, divide

    def error(self, s: int, t: float) -> float:
        """h at one γ = 2t, rounded up; the largest where several supports may be best.

        It is the upper bound of a cell around t, which may not be empty, nor its middle 0.
        """
        low, high = t * (1.0 - POINT_TOLERANCE), t * (1.0 + POINT_TOLERANCE) or 1e-300
        _, upper, _, _ = self.bound(s, low, high, middle=t or 1e-301)
        return upper

    def polished(self, s: int, t: float, best: float) -> tuple[float, float]:
        """An error near t at the s-th size that is at most ``best``, and its t.

        It is the end of a local search where all folds keep their supports, without the ends of
        that range. Of two equal errors the one at the smaller t is returned.

        best: The error at t.
        """
        ends = self.tables[s].ends
        here = ends[(ends[:, 0] <= t) & (t <= ends[:, 1])]
        if here.size == 0:  # Rounding has left t outside all ranges of supports.
            return best, t
        low, high = np.log(max(here[:, 0].max(), 1e-300)), np.log(here[:, 1].min())
        if not (low < high and np.isfinite(best)):
            return best, t

        from scipy.optimize import minimize_scalar  # slow to import

        found = minimize_scalar(
            lambda x: min(self.error(s, float(np.exp(x))), 4.0 * best),  # Else ∞ may be the error.
            bounds=(low, high),
            method="bounded",
        )
        return min((best, t), (float(found.fun), float(np.exp(found.x))))

    def run(
        self,
        span: GammaSpan,
        tolerance: float,
        report: Report,
        n_trees: int,
        status: Status,
    ) -> GlobalMinimum:
        """Divide cells until the gap is at most the tolerance or a limit is reached.

        span: The range of γ.
        tolerance: The relative gap that ends the search.
        n_trees, status: How many trees have found the supports, and how these searches ended.
        """
        # The range of every τ is cut into this many cells first: a choice.
        ends = span.spaced(32 + 1) / 2.0
        self._narrowest = span.narrowest / 2.0
        heap: list[Cell] = []
        final: list[Cell] = []  # Cells that are not divided.
        best, best_size, best_t = np.inf, 0, float(ends[-1])
        ranges, sizes = list(itertools.pairwise(ends.tolist())), range(self.taus.size)
        # Cells to bound: size, ends, and the lower bound of the cell that they are a part of.
        new_cells = [(s, low, high, 0.0) for s in sizes for low, high in ranges]
        # Once the gap is small, at most this many cells are divided, to show more closely which
        # pairs cannot be excluded: a choice.
        extra, closed = 2000, False
        while True:
            for s, low, high, known in new_cells:
                lower, upper, middle, divide = self.bound(s, low, high)
                if upper < best:
                    best, best_size, best_t = upper, s, middle
                cell = Cell(max(lower, known), s, low, high, divide)
                # Once the gap is small, cells that may hold the least error are divided until their
                # ends differ by less than this factor.
                small = closed and high <= 1.02 * low
                if divide and not small:
                    heapq.heappush(heap, cell)
                else:
                    final.append(cell)
            of_final = min((one.lower for one in final), default=np.inf)
            least = min(heap[0].lower if heap else np.inf, of_final)
            closed = closed or least >= best * (1.0 - tolerance)
            reached = self.limits.reached(self.n_cells)
            # Perhaps no cell remains but those whose bounds cannot be improved.
            stuck = not heap or heap[0].lower > best * (1.0 if closed else 1.0 - tolerance)
            if reached is not None or stuck or extra == 0:
                break
            extra -= closed
            cell = heapq.heappop(heap)
            below = cell.s, cell.low, cell.divide, cell.lower
            new_cells = [below, (cell.s, cell.divide, cell.high, cell.lower)]
            if self.n_cells % 1024 < 2:  # Each turn bounds two cells.
                total = self.n_cells + len(heap)
                report("bounding the errors", self.n_cells, total, "cells of γ")
        status = Status.OPTIMAL if closed else Status.worst([status, reached or Status.UNPROVED])
        best, best_t = self.polished(best_size, best_t, best)
        possible = [cell for cell in heap + final if cell.lower <= best]
        least = min((cell.lower for cell in possible), default=best)
        return GlobalMinimum(
            tau=int(self.taus[best_size]),
            gamma=2.0 * best_t,
            upper=best,
            lower=min(least, best),
            span=span,
            tolerance=tolerance,
            status=status,
            left=self._merged(possible),
            shown=self._shown(span),
            n_trees=n_trees,
            n_cells=self.n_cells,
            seconds=self.limits.elapsed(),
        )

    def _merged(self, cells: list[Cell]) -> Array:
        """Cells as rows (τ, least γ, largest γ), in which cells that touch are joined."""
        merged: list[list[float]] = []
        last_tau = last_high = -1.0
        for cell in sorted(cells, key=lambda cell: (cell.s, cell.low)):
            tau, low, high = float(self.taus[cell.s]), 2.0 * cell.low, 2.0 * cell.high
            if tau == last_tau and last_high >= low:
                merged[-1][2] = high
            else:
                merged.append([tau, low, high])
            last_tau, last_high = tau, high
        return np.array(merged).reshape(-1, 3)

    def _shown(self, span: GammaSpan) -> ErrorsOverGamma:
        """h at γ from end to end of the range, and at every τ; ∞ where supports are unknown."""
        # The surface that pictures show has this many γ, evenly spaced in log γ: a choice.
        gammas = span.spaced(81)
        errors = np.empty((gammas.size, self.taus.size))
        for g, t in enumerate(gammas / 2.0):
            for s in range(self.taus.size):
                errors[g, s] = self.error(s, float(t))
        return ErrorsOverGamma(gammas, self.taus, errors)
