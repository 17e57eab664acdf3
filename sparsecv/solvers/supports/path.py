"""Good supports of every size up to τ in one pass: forward steps, swaps, and a pass back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..kernels.compiled import kernel
from ..kernels.linalg import Array
from ..limits import Limits
from ..problem import SparseRidgeProblem
from ..threads import on_one_thread
from .beam import PROMISING, promising_columns
from .greedy import complete_support, forward_order
from .swaps import afresh, inverse_on, join, leave, settled_gain, swap_from

Support = NDArray[np.intp]
SWAPS = 30  # at most, at every size
FEW_COLUMNS, COLUMNS_PER_SIZE = 600, 100  # that are looked at
SAME = 1e-12  # relative difference of gains that counts as none
CLOSE = 0.99  # of the gain found without: what a warm start must gain to be improved by swaps


@on_one_thread
def heuristic_path(
    problem: SparseRidgeProblem,
    sizes: Iterable[int],
    *,
    warm_starts: Sequence[NDArray[np.intp]] = (),
    limits: Limits | None = None,
) -> dict[int, Support]:
    """Good supports of several sizes, without a proof; deterministic.

    A size starts from the best support of the size below and the column that helps it most, and
    from the best warm start, goes on by swaps of one, and is tried again from the size above less
    the column it misses least.

    Parameters
    ----------
    problem : SparseRidgeProblem
        Gives the data and γ; its τ is not used.
    sizes : iterable of int
        In 1..p.
    warm_starts : supports, optional
        Tried at the sizes they have.
    limits : Limits, optional
        Once they are reached sizes are filled by forward steps alone.

    Returns
    -------
    dict of int to ndarray of intp, increasing columns

    Raises
    ------
    ValueError
        A size out of 1..p.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.solvers import SparseRidgeProblem, heuristic_path
    >>> problem = SparseRidgeProblem(np.eye(3), np.array([1.0, 3.0, 2.0]), gamma=1.0, tau=1)
    >>> heuristic_path(problem, [1, 2])[2]
    array([1, 2])
    """
    starts = [np.asarray(start, dtype=np.intp) for start in warm_starts]
    return SupportGrower(problem, sizes, starts).at(problem.gamma, starts, limits or Limits())


class SupportGrower:
    """:func:`heuristic_path` at one γ after the other; the Gram matrix is formed once.

    Parameters
    ----------
    problem, sizes
        As there.
    starts : supports
        What may be started from at the first γ, at its γ.

    Raises
    ------
    ValueError
        Sizes out of 1..p.
    """

    def __init__(
        self, problem: SparseRidgeProblem, sizes: Iterable[int], starts: Sequence[Support] = ()
    ) -> None:
        self.wanted = sorted({int(size) for size in sizes})
        p = problem.p
        if not self.wanted or self.wanted[0] < 1 or self.wanted[-1] > p:
            raise ValueError(f"sizes must lie in 1..{p}; got {self.wanted}")
        # few more rows than columns: a Gram matrix costs less than the factor it would come from
        factor = problem._short
        head, y = factor[:, :p], factor[:, p]
        most = self.wanted[-1]
        needed = np.concatenate([np.zeros(0, dtype=np.intp), *starts])
        # the Gram matrix should not take longer than the supports that are made from it
        share = min(PROMISING, max(FEW_COLUMNS, COLUMNS_PER_SIZE * most))
        columns = promising_columns(head, y, needed, share)
        if columns.size < p:
            order = forward_order(head, y, min(most, problem.rank_bound), problem.gamma)
            columns = np.union1d(columns, order)
        if columns.size < most:
            columns = np.arange(p, dtype=np.intp)
        self.columns, m = columns, columns.size
        self.G, self.b = _products(head if m == p else head[:, columns], y)
        self.allowed = np.ones(m, dtype=np.int8)
        self.work = (
            np.empty((most + 1, most + 1)),
            np.empty(max(m, most + 1)),
            np.empty((most + 1, m)),
            np.empty(m),
            np.empty(m),
        )

    def at(self, gamma: float, starts: Sequence[Support], limits: Limits) -> dict[int, Support]:
        """The supports at one γ.

        Parameters
        ----------
        gamma : float
        starts : supports
            Those with a column that is not looked at are passed over.
        limits : Limits

        Returns
        -------
        dict of int to ndarray of intp, increasing columns
        """
        most, columns = self.wanted[-1], self.columns
        supports = np.full((most + 1, most), -1, dtype=np.int64)
        gains, polished = np.full(most + 1, -np.inf), np.zeros(most + 1, dtype=np.int8)
        trial = np.full(most, -1, dtype=np.int64)
        data = (self.G, self.b, gamma / 2.0, supports, gains, polished, trial)
        rest = (self.allowed, self.work, SWAPS)
        for start in starts:
            k = start.size
            known = 1 <= k <= most and np.isin(start, columns).all()
            if known and limits.reached(0) is None:
                trial[:k] = np.searchsorted(columns, np.sort(start))
                enter_start(*data, k, self.work)
        for k in range(1, most + 1):
            if limits.reached(0) is not None:
                first = supports[k - 1, : k - 1]
                order = complete_support(self.G, self.b, gamma / 2.0, first, most)
                for size in range(k, most + 1):
                    if gains[size] == -np.inf:
                        supports[size, :size] = order[:size]
                break
            step_up(*data, k, *rest)
        for k in range(most - 1, 0, -1):
            if limits.reached(0) is not None:
                break
            step_down(*data, k, *rest)
        return {k: np.sort(columns[supports[k, :k]]).astype(np.intp) for k in self.wanted}


def _products(within: Array, y: Array) -> tuple[Array, Array]:
    """XᵀX and Xᵀy."""
    return np.asarray(within.T @ within), np.asarray(within.T @ y)


@kernel
def enter_start(G, b, ridge, supports, gains, polished, trial, k, work):  # type: ignore[no-untyped-def]
    """Keep ``trial[:k]`` as it is where it is the best of its size."""
    A, beta, _, _, _ = work
    gain = inverse_on(G, b, ridge, trial, k, A, beta)
    if gain > gains[k] * (1.0 + SAME) or gains[k] == -np.inf:
        gains[k], polished[k] = gain, 0
        for a in range(k):
            supports[k, a] = trial[a]


@kernel(inner=True)
def restore(G, b, ridge, supports, trial, k, work):  # type: ignore[no-untyped-def]
    """Have ``trial`` and ``work`` be those of the best support of k columns."""
    A, beta, V, c, d = work
    same = True
    for a in range(k):
        same = same and trial[a] == supports[k, a]
    if not same or k == 0:
        for a in range(k):
            trial[a] = supports[k, a]
        afresh(G, b, ridge, trial, k, A, beta, V, c, d)


@kernel(inner=True)
def polish(G, b, ridge, supports, gains, polished, trial, k, allowed, work, gain, most):  # type: ignore[no-untyped-def]
    """Swaps from ``trial[:k]``, and once from the start at this size; the best is kept."""
    A, beta, V, c, d = work
    gain = swap_from(G, b, ridge, trial, k, allowed, A, beta, V, c, d, most, gain)
    if polished[k] == 0 and gains[k] > CLOSE * gain and abs(gain - gains[k]) > SAME * gain:
        gains[k] = gain
        for a in range(k):
            trial[a], supports[k, a] = supports[k, a], trial[a]
        gain = afresh(G, b, ridge, trial, k, A, beta, V, c, d)
        gain = swap_from(G, b, ridge, trial, k, allowed, A, beta, V, c, d, most, gain)
    polished[k] = 1
    if gain >= gains[k] * (1.0 - SAME) or gains[k] == -np.inf:
        gains[k] = max(gain, gains[k])
        for a in range(k):  # of equal ones that which ``work`` belongs to
            supports[k, a] = trial[a]


@kernel
def step_up(G, b, ridge, supports, gains, polished, trial, k, allowed, work, most):  # type: ignore[no-untyped-def]
    """Size k from the support of size k − 1 and the column that helps it most."""
    A, beta, V, c, d = work
    restore(G, b, ridge, supports, trial, k - 1, work)
    best, which = -1.0, -1
    for j in range(b.shape[0]):
        taken = False
        for a in range(k - 1):
            taken = taken or trial[a] == j
        score = c[j] * c[j] / max(d[j], 1e-12 * (G[j, j] + ridge))
        if not taken and score > best:
            best, which = score, j
    join(G, ridge, trial, k, k - 1, which, A, beta, V, c, d)
    gain = settled_gain(G, b, ridge, trial, k, A, beta, V, c, d)
    polish(G, b, ridge, supports, gains, polished, trial, k, allowed, work, gain, most)


@kernel
def step_down(G, b, ridge, supports, gains, polished, trial, k, allowed, work, most):  # type: ignore[no-untyped-def]
    """Size k from the support of size k + 1 less the column it misses least."""
    A, beta, V, c, d = work
    restore(G, b, ridge, supports, trial, k + 1, work)
    least, which = np.inf, 0
    for a in range(k + 1):
        loss = beta[a] * beta[a] / max(A[a, a], 1e-300)
        if loss < least:
            least, which = loss, a
    leave(k + 1, which, A, beta, V, c, d)
    trial[which], beta[which] = trial[k], beta[k]  # the last takes its place
    for j in range(b.shape[0]):
        V[which, j] = V[k, j]
    for e in range(k + 1):
        A[which, e] = A[k, e]
    for e in range(k + 1):
        A[e, which] = A[e, k]
    gain = settled_gain(G, b, ridge, trial, k, A, beta, V, c, d)
    polish(G, b, ridge, supports, gains, polished, trial, k, allowed, work, gain, most)
