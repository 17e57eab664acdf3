"""What is known of every fold at every τ: incumbents, and an interval that holds h_j."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..design.fold_data import FoldData, RowFolds
from ..solvers import Ellipsoid, GramForm, Neighbour, Spectrum, Status, deleted_fits, node_bounds
from .bounds import squared_error_bounds, strengths
from .fold_solvers import FoldOutcome, out_of_time

Array = NDArray[np.float64]
Support = NDArray[np.intp]
SAFE = 1e-5  # least 1 − leverage at which a row is deleted from a fit instead of refitting
JOINT_NODES = 30  # open nodes up to which a fold of several rows is bounded as a whole


class FoldTable:
    """Incumbents and bounds of h_j, shape (τ, k) each, in the units of y².

    Attributes
    ----------
    objective : ndarray
        Training objective of the incumbent.
    error : ndarray
        Its squared error on the fold.
    lower, upper : ndarray
        h_j lies between them.
    exact : ndarray of bool
        The incumbent is proved optimal; the three agree.
    searched : ndarray of bool
        Something was branched on for this fold and τ alone.
    """

    def __init__(self, data: FoldData, gamma: float, taus: NDArray[np.intp]) -> None:
        self.data, self.gamma, self.taus = data, gamma, taus
        shape = (taus.size, data.folds.k)
        self.objective, self.error = np.full(shape, np.inf), np.zeros(shape)
        self.lower, self.upper = np.zeros(shape), np.full(shape, np.inf)
        self.exact = np.zeros(shape, dtype=bool)
        self.searched = np.zeros(shape, dtype=bool)
        self.choice = np.zeros(shape, dtype=np.intp)
        self.supports: list[Support] = []
        self._seen: dict[bytes, int] = {}

    def offer(self, t: int, folds: NDArray[np.intp], support: Support) -> None:
        """Make a support the incumbent of those folds where it is better than what they have."""
        objective, error = self.fits(folds, support)
        better = objective < self.objective[t, folds]
        chosen = folds[better]
        self.objective[t, chosen], self.error[t, chosen] = objective[better], error[better]
        if chosen.size:
            self.choice[t, chosen] = self._index(support)

    def prove(self, t: int, folds: NDArray[np.intp]) -> None:
        """The incumbents are optimal."""
        self.exact[t, folds] = True
        self.lower[t, folds] = self.upper[t, folds] = self.error[t, folds]

    def narrow(self, t: int, folds: NDArray[np.intp], low: Array, high: Array) -> None:
        """Intersect with another interval; the incumbent's own error stays inside."""
        error = self.error[t, folds]
        self.lower[t, folds] = np.minimum(np.maximum(self.lower[t, folds], low), error)
        self.upper[t, folds] = np.maximum(np.minimum(self.upper[t, folds], high), error)

    def narrow_by_objective(self, t: int, full_lower: float) -> None:
        """h_j ≥ u* − u_j where not exact: Corollary 3, main paper, for all folds at once."""
        folds = np.flatnonzero(~self.exact[t])
        low = full_lower - self.objective[t, folds]
        self.narrow(t, folds, np.maximum(low, 0.0), np.full(folds.size, np.inf))

    def bound_the_rest(self) -> None:
        """Give folds that nothing has bracketed an interval around their ridge fit.

        Every fold must have an incumbent at every τ.
        """
        for j in np.flatnonzero(~np.isfinite(self.upper).all(axis=0)):
            problem = self.data.training(int(j)).replace(gamma=self.gamma)
            supports = [self.support(t, int(j)) for t in range(self.taus.size)]
            found = out_of_time(self.data, int(j), problem, self.taus, supports)
            here = np.array([j])
            for t in np.flatnonzero(~np.isfinite(self.upper[:, j])):
                self.narrow(int(t), here, found.lower[t : t + 1], found.upper[t : t + 1])

    def fits(self, folds: NDArray[np.intp], support: Support) -> tuple[Array, Array]:
        """Training objective and held-out error of one support on some of the folds."""
        data = self.data
        objective, error = np.empty(folds.size), np.empty(folds.size)
        alone = np.ones(folds.size, dtype=bool)
        if isinstance(data, RowFolds) and data.folds.leave_one_out and folds.size > 1:
            rows, targets, weight = data.deleted_rows()
            at = data.row_of[folds]
            found = deleted_fits(
                data.full().replace(gamma=self.gamma), support, rows[at], targets[at]
            )
            objective[:] = found.objective
            error[:] = (weight * found.residual) ** 2
            alone = ~(found.remain > SAFE)
        for i in np.flatnonzero(alone):
            j = int(folds[i])
            fit = data.training(j).replace(gamma=self.gamma).fit(support)
            H, t = data.held_out(j)
            objective[i] = fit.objective
            error[i] = float(np.sum((t - H[:, support] @ fit.coef) ** 2))
        return objective, error

    def support(self, t: int, j: int) -> Support:
        """The incumbent's columns."""
        return self.supports[int(self.choice[t, j])]

    def sums(self) -> tuple[Array, Array]:
        """Bounds on Σ_j h_j, shape (τ,) each."""
        return self.lower.sum(axis=1), self.upper.sum(axis=1)

    def outcome(self, n_mio: int, n_nodes: int, status: Status) -> FoldOutcome:
        """The table as cross-validation's summary takes it."""
        return FoldOutcome(
            self.error,
            self.lower,
            self.upper,
            self.exact,
            self.supports,
            self.choice,
            n_mio,
            n_nodes,
            self.searched.sum(axis=1).astype(np.intp),
            status,
        )

    def _index(self, support: Support) -> int:
        key = support.tobytes()
        if key not in self._seen:
            self._seen[key] = len(self.supports)
            self.supports.append(support)
        return self._seen[key]


def open_node_range(
    gram: GramForm,
    found: Neighbour,
    tau: int,
    gamma: float,
    rows: Array,
    targets: Array,
    n: int,
    spectrum: Spectrum,
) -> tuple[float, float]:
    """Bound h_j from the nodes still open: the union of one region of Theorem 1 per node.

    An optimal solution is the incumbent or lies below an open node, in the ellipsoid around that
    node's coefficients; several ε give several ellipsoids to intersect.

    Parameters
    ----------
    gram : GramForm
        Of the training rows.
    found : Neighbour
        Incumbent and open nodes.
    rows, targets : arrays, shape (m, p) and (m,)
        The fold.
    n : int
        Training rows.
    spectrum : Spectrum
        Of the same rows.

    Returns
    -------
    lower, upper : float
        Without the incumbent's own error.
    """
    upper, beta = found.objective, found.beta
    m = found.leaves.shape[0]
    centre = beta @ rows.T
    ball = (np.sqrt(2.0 * max(upper, 0.0) / gamma) + np.linalg.norm(beta, axis=1)) * (1 + 1e-9)
    low, high = np.zeros(m), np.full(m, np.inf)
    for epsilon in strengths(gamma, spectrum):
        bound = node_bounds(gram, found.leaves, beta, tau, gamma, epsilon)
        room = np.maximum(upper - bound, 0.0) * (1 + 1e-9) + 1e-13 * gram.yy
        radius = np.sqrt(room)
        A, left = spectrum.image(rows, epsilon / 2.0)
        reach = radius[:, None] * np.linalg.norm(A, axis=1) + ball[:, None] * left
        reach = reach * (1 + 1e-9) + 1e-12 * np.abs(centre)
        least, most = squared_error_bounds(centre - reach - targets, centre + reach - targets)
        low = np.maximum(low, least.sum(axis=1))
        high = np.minimum(high, most.sum(axis=1))
        if targets.size > 1 and m <= JOINT_NODES:
            for i in range(m):
                region = Ellipsoid(beta[i], float(radius[i]), epsilon, float(ball[i]), spectrum)
                a, b = region.error_range(rows, targets)
                low[i], high[i] = max(low[i], a), min(high[i], b)
    return float(low.min()), float(high.max())
