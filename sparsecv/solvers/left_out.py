"""Many problems that differ by the rows left out, solved or bounded together.

The main paper solves or bounds every fold alone. Here one tree, that of all rows, is searched for
all of them (:func:`solve_jointly`): a node is branched on while it is open for many neighbours, and
what is open for a few is handed over to searches of their own. Most neighbours need none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from . import branch_and_bound_kernels as search_kernels
from . import joint_kernels, left_out_kernels
from ._linalg import Array
from .certificate import LEAVES
from .limits import Limits
from .perspective import Relaxation
from .problem import SparseRidgeProblem
from .root import TOLERANCE, GramForm, Root
from .search import STACKS, Search, grown, new_state
from .solution import Status

EPS = float(np.finfo(np.float64).eps)
FEW = 5  # neighbours, or
SHARE = 0.01  # of them: a node open for no more is handed over
PATIENCE = 500  # nodes handed over to a neighbour beyond which its own tree is the better one
CHUNK = 64  # nodes between two looks at the clock
MOST_NODES = 20_000  # of a joint tree; what is open then is handed over
MOST_PAIRS = 2_000_000


@dataclass(frozen=True)
class LeftOut:
    """One problem's Gram matrices and the rows each neighbour leaves out of them.

    Attributes
    ----------
    gram : GramForm
        Of all rows.
    rows, targets : ndarray, shape (R, p) and (R,)
        The rows left out, neighbour after neighbour, scaled so that leaving them out subtracts
        rowsᵀrows from G.
    start : ndarray of int, shape (k + 1,)
        ``rows[start[j]:start[j + 1]]`` belong to neighbour j.
    n : int
        Rows of the data: what rounding is relative to.
    """

    gram: GramForm
    rows: Array
    targets: Array
    start: NDArray[np.int64]
    n: int

    @property
    def count(self) -> int:
        """Number of neighbours."""
        return int(self.start.size - 1)

    def of(self, j: int) -> slice:
        """Rows of neighbour j."""
        return slice(int(self.start[j]), int(self.start[j + 1]))

    @cached_property
    def yy(self) -> Array:
        """Squared length of y in every neighbour, shape (k,)."""
        squares = np.concatenate([[0.0], np.cumsum(self.targets**2)])
        return np.asarray(self.gram.yy - (squares[self.start[1:]] - squares[self.start[:-1]]))

    @cached_property
    def length(self) -> Array:
        """Lengths of the columns, all rows in, shape (p,)."""
        return np.asarray(np.sqrt(np.maximum(np.diag(self.gram.G), 0.0)))

    @cached_property
    def eigen(self) -> tuple[Array, Array]:
        """Eigenvalues of G, rounded down, and its eigenvectors."""
        values, vectors = np.linalg.eigh(self.gram.G)
        return values - self._eps * max(float(values[-1]), 0.0), vectors

    @cached_property
    def _turned(self) -> Array:
        """``rows`` in the basis of the eigenvectors."""
        return np.asarray(self.rows @ self.eigen[1])

    @property
    def _eps(self) -> float:
        return 4.0 * (self.n + self.gram.b.size + 16) * EPS

    @cached_property
    def least(self) -> Array:
        """Lower bounds ≥ 0 on the least eigenvalue of every neighbour's Gram matrix, shape (k,)."""
        values, turned = self.eigen[0], self._turned
        k = self.count
        if self.n <= values.size or values[0] <= 0.0:
            return np.zeros(k)
        low, high = np.zeros(k), np.full(k, values[0] * (1.0 - 1e-9))
        single = np.diff(self.start) == 1
        squares = turned[self.start[:-1][single]] ** 2
        below, above = np.zeros(squares.shape[0]), high[single].copy()
        # G − μI − ddᵀ ⪰ 0 while dᵀ(G − μI)⁻¹d ≤ 1
        for _ in range(50):
            middle = 0.5 * (below + above)
            fits = np.sum(squares / (values - middle[:, None]), axis=1) <= 1.0 - 1e-9
            below, above = np.where(fits, middle, below), np.where(fits, above, middle)
        low[single] = below
        for j in np.flatnonzero(~single):
            D = self.rows[self.of(int(j))]
            fold = sla.eigvalsh(self.gram.G - D.T @ D, check_finite=False)
            low[j] = max(0.0, float(fold[0]) - 1e-9 * float(values[-1]))
        return np.asarray(np.maximum(low - self._eps * float(values[-1]), 0.0))

    @cached_property
    def levers(self) -> tuple[float, Array]:
        """A multiple s of I and, per neighbour, the norm of (I − D(G + sI)⁻¹Dᵀ)⁻¹ from above.

        s is minus half of the least eigenvalue: most of what extraction gains is kept, and the
        leverages stay below twice those of G.
        """
        values, turned = self.eigen[0], self._turned
        nothing = np.full(self.count, np.inf)
        if self.n <= values.size or values[0] <= 0.0:
            return 0.0, nothing
        shift = -0.5 * float(values[0])
        scaled = turned / np.sqrt(values + shift)
        found = np.empty(self.count)
        for j in range(self.count):
            here = scaled[self.of(j)]
            inside = here @ here.T if here.shape[0] <= here.shape[1] else here.T @ here
            most = float(np.linalg.eigvalsh(inside)[-1]) if inside.shape[0] > 1 else inside[0, 0]
            left = 1.0 - most * (1.0 + 1e-9)
            found[j] = (1.0 + 1e-7) / left if left > 1e-6 else np.inf
        return shift, found

    def form(self, j: int) -> GramForm:
        """Gram matrices of neighbour j, with the diagonal that :attr:`least` allows."""
        D, t = self.rows[self.of(j)], self.targets[self.of(j)]
        gram = self.gram
        return GramForm(
            gram.G - D.T @ D,
            gram.b - D.T @ t,
            max(float(self.yy[j]), 0.0),
            np.full(gram.b.size, self.least[j]),
            (self.length**2, gram.yy),
        )

    def neighbours(
        self, ridge: float, tau: int, shift: Array, margin: float
    ) -> left_out_kernels.Neighbours:
        """State of the kernels, nothing known of any neighbour yet."""
        p, widest = self.gram.b.size, max(int(np.diff(self.start).max(initial=1)), 1)
        columns = max(p, tau)
        inflation = (float(self.length.max()) ** 2 + ridge) / (float(self.gram.D.min()) + ridge)
        return left_out_kernels.Neighbours(
            D=self.rows,
            T=self.targets,
            start=self.start,
            yy=self.yy,
            shift=np.ascontiguousarray(shift, dtype=np.float64),
            length=self.length,
            lever=self.levers[1],
            reals=np.array(
                [ridge, self._eps, margin, self.levers[0], self.gram.yy, 20.0 * EPS * inflation]
            ),
            upper=np.full(self.count, np.inf),
            support=np.zeros((self.count, tau), dtype=np.int64),
            doubt=np.zeros(self.count, dtype=np.int32),
            beta=np.zeros(p),
            c=np.zeros(p),
            inside=np.zeros(p),
            free=np.zeros(p),
            scalars=np.zeros(8),
            residual=np.zeros(self.targets.size),
            fitted=np.zeros(self.targets.size),
            active=np.zeros(p, dtype=np.int64),
            inverse=np.zeros((p, p)),
            moved=np.zeros(p),
            v=np.zeros(p),
            top=np.zeros(p + 2),
            V=np.zeros((widest, columns)),
            S=np.zeros((widest, widest)),
            e=np.zeros(widest),
            L=np.zeros((tau, tau)),
            w=np.zeros(tau),
        )

    def centres(
        self, relaxation: Relaxation, ridge: float, tau: int, shift: Array
    ) -> tuple[Array, Array]:
        """Coefficients for every neighbour near its relaxation's optimum, and bounds at them.

        Parameters
        ----------
        relaxation : Relaxation
            Of all rows.
        ridge : float
            γ/2.
        tau : int
        shift : ndarray, shape (k,)
            ε/2 of the main paper's eq. (5): multiple of I added to the neighbour's G and taken off
            the perspective; negative ones at most :attr:`least`.

        Returns
        -------
        beta : ndarray, shape (k, p)
        bound : ndarray, shape (k,)
            objective(β') ≥ bound + (β' − β)ᵀ(G_j + shift_j I)(β' − β) for every β' of at most τ
            non-zeros.
        """
        nb = self.neighbours(ridge, tau, shift, 0.0)
        p = self.gram.b.size
        free = np.zeros(p, dtype=np.int8)
        d = -float(np.median(shift))
        level = relaxation.multiplier * (ridge + d)
        left_out_kernels.load_node(nb, self.gram.G, self.gram.b, free, relaxation.beta, tau, level)
        beta, bound = np.empty((self.count, p)), np.empty(self.count)
        left_out_kernels.centres(
            nb,
            self.gram.G,
            self.gram.b,
            d,
            float(np.sqrt(relaxation.multiplier)),
            beta,
            bound,
        )
        return beta, bound

    def spreads(self, H: Array, shift: float, of: NDArray[np.intp]) -> Array:
        """xᵀ(G_j + shift·I)⁻¹x from above for one row x of H (r, p) in neighbour ``of`` (r,) each.

        For neighbours that leave out one row. Infinite where nothing bounds it.
        """
        values, vectors = self.eigen
        scale = values + shift
        if scale.min() <= 0.0:
            return np.full(of.size, np.inf)
        row, inner = self._turned[self.start[:-1][of]], H @ vectors
        hh = np.sum(inner * inner / scale, axis=1)
        hd = np.sum(inner * row / scale, axis=1)
        left = 1.0 - np.sum(row * row / scale, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            grown = np.where(left > 1e-6, hh + hd * hd / left, np.inf)
        lost = 1e-13 * np.sum(H * H, axis=1) / float(scale.min())
        return np.asarray(grown * (1.0 + 1e-7) + lost)


@dataclass(frozen=True)
class JointResult:
    """What one tree found out about all neighbours at one τ.

    Attributes
    ----------
    support : ndarray of int, shape (k, τ)
        Incumbents.
    upper : ndarray, shape (k,)
        Their objectives by down-dates, good to about nine digits.
    leaves, beta, root_lam
        Nodes handed over: included (1), excluded (2) and free (0) columns (m, p), coefficients
        (m, p) and √λ (m,).
    pairs : ndarray of int, shape (q, 2)
        Node and the neighbour it is open for.
    n_nodes, n_branched : int
    rounding : float
        What objectives may be off by: Gram matrices keep half of the digits.
    """

    support: NDArray[np.intp]
    upper: Array
    leaves: NDArray[np.int8]
    beta: Array
    root_lam: Array
    pairs: NDArray[np.intp]
    n_nodes: int
    n_branched: int
    rounding: float

    def open_for(self, j: int) -> NDArray[np.intp]:
        """Nodes open for neighbour j."""
        return np.asarray(self.pairs[self.pairs[:, 1] == j, 0])


def solve_jointly(
    left_out: LeftOut,
    problem: SparseRidgeProblem,
    supports: NDArray[np.intp],
    *,
    limits: Limits | None = None,
    most_nodes: int = MOST_NODES,
    few: int | None = None,
    patience: int = PATIENCE,
) -> JointResult:
    """Search the tree of all rows for every neighbour at the problem's γ and τ.

    Parameters
    ----------
    left_out : LeftOut
    problem : SparseRidgeProblem
        On all rows; gives γ and τ.
    supports : array of int, shape (s, τ)
        Good supports of all rows, the best first.
    limits : Limits, optional
    most_nodes : int
        Nodes after which what is open is handed over.
    few : int, optional
        A node open for at most so many neighbours is handed over.
    patience : int
        A neighbour that more nodes than this are handed over to is left out of the search: it gets
        the root instead.

    Returns
    -------
    JointResult
        A neighbour in no pair is solved: its incumbent is optimal.
    """
    limits = limits or Limits()
    gram, tau, ridge, p = left_out.gram, problem.tau, problem.gamma / 2.0, problem.p
    k = left_out.count
    few = max(min(FEW, k // 8), int(SHARE * k)) if few is None else few
    root = Root(np.arange(p, dtype=np.intp), np.zeros(p), 0.0, 0.0, np.inf)
    level = np.sort(gram.b**2 / (ridge + gram.D))[::-1]
    root.root_lam = 0.5 * float(np.sqrt(level[min(tau, p) - 1]))
    st = new_state(gram, problem, 0.0, root)
    st.limits[:] = [np.inf, 1e-5, 20.0, 0.0, float(not gram.D.any())]
    search_kernels.record_support(st, np.ascontiguousarray(supports[0], dtype=np.int64))
    margin = gram.rounding(ridge)
    nb = left_out.neighbours(ridge, tau, -left_out.least, margin)
    jt = _joint_state(st, k, p, tau, few, patience)
    for support in supports:
        chosen = np.ascontiguousarray(support, dtype=np.int64)
        gain = left_out_kernels.factor_support(nb, gram.G, gram.b, chosen)
        left_out_kernels.try_support(nb, chosen, gain, gram.yy, jt.folds[0], k)
    while True:
        nodes = int(st.ints[search_kernels.NODES])
        if limits.reached(nodes) is not None or nodes >= most_nodes:
            break
        code = joint_kernels.explore_jointly(st, jt, nb, CHUNK)
        if code == 0:
            break
        if code == 2:
            rows = 2 * st.stack.shape[0]
            st = grown(st, STACKS, rows)
            jt = _grown(jt, ("folds", "counts"), rows)
        if code == 3:
            if jt.ints[1] > MOST_PAIRS:
                break
            jt = _grown(jt, ("leaves", "leaf_beta", "leaf_lam"), 2 * jt.leaves.shape[0])
            jt = _grown(jt, ("pairs",), 2 * jt.pairs.shape[0])
    m, q, top = int(jt.ints[0]), int(jt.ints[1]), int(st.ints[search_kernels.TOP])
    lost = np.flatnonzero(jt.load > patience)
    pairs = [jt.pairs[:q]]
    for row in range(top):
        folds = jt.folds[row, : jt.counts[row]]
        pairs.append(np.column_stack([np.full(folds.size, m + row), folds]))
    together = np.concatenate(pairs)
    together = together[~np.isin(together[:, 1], lost)]
    pairs = [together, np.column_stack([np.full(lost.size, m + top), lost])]
    whole = np.zeros((1, p))
    return JointResult(
        np.sort(nb.support, axis=1).astype(np.intp),
        nb.upper,
        np.concatenate([jt.leaves[:m], st.stack[:top], whole.astype(np.int8)]),
        np.concatenate([jt.leaf_beta[:m], st.stack_beta[:top], whole]),
        np.concatenate([jt.leaf_lam[:m], st.stack_lam[:top], [root.root_lam]]),
        np.concatenate(pairs).astype(np.intp),
        int(st.ints[search_kernels.NODES]),
        int(st.ints[search_kernels.BRANCHED]),
        margin,
    )


@dataclass(frozen=True)
class Neighbour:
    """One neighbour after its own relaxations, or its own search.

    Attributes
    ----------
    support : ndarray of int, shape (τ,)
    objective : float
        Of the incumbent; infinite where none is known.
    leaves, beta : ndarray, shape (m, p)
        Nodes still open and coefficients to bound them by; none where it is solved.
    branched : bool
    status : Status
    """

    support: NDArray[np.intp]
    objective: float
    leaves: NDArray[np.int8]
    beta: Array
    root_lam: Array
    branched: bool
    n_nodes: int
    status: Status

    @property
    def solved(self) -> bool:
        """Whether the incumbent is optimal."""
        return bool(self.leaves.shape[0] == 0)


def settle(
    left_out: LeftOut,
    problem: SparseRidgeProblem,
    j: int,
    found: JointResult | Neighbour,
    limits: Limits | None = None,
    *,
    branch: bool = False,
) -> Neighbour:
    """Try the nodes that are open for neighbour j on its own relaxations; branch where asked to.

    Parameters
    ----------
    left_out, problem
        As in :func:`solve_jointly`.
    j : int
    found : JointResult or Neighbour
        What is open for j.
    limits : Limits, optional
    branch : bool
        Search on until it is solved. Without, no node is branched on and none enumerated.
    """
    limits = limits or Limits()
    if isinstance(found, JointResult):
        at = found.open_for(j)
        leaves, beta, lam = found.leaves[at], found.beta[at], found.root_lam[at]
        support, upper = found.support[j], float(found.upper[j])
    else:
        leaves, beta, lam = found.leaves, found.beta, found.root_lam
        support, upper = found.support, found.objective
    if leaves.shape[0] == 0:
        nothing = (leaves, beta, lam)
        return Neighbour(support, upper, *nothing, False, 0, Status.OPTIMAL)
    gram, p = left_out.form(j), problem.p
    root = Root(np.arange(p, dtype=np.intp), np.zeros(p), 0.0, 0.0, np.inf)
    state = new_state(gram, problem, 0.0, root)
    state = grown(state, STACKS, max(state.stack.shape[0], leaves.shape[0] + 64))
    search_kernels.record_support(state, np.ascontiguousarray(support, dtype=np.int64))
    if np.isfinite(upper):  # not above what is known, should the matrices here round otherwise
        state.reals[search_kernels.UPPER] = min(state.reals[search_kernels.UPPER], upper)
    _push(state, leaves, beta, lam)
    if branch:
        search = Search(state)
        # its own clock: what a search may spend on enumeration grows with its time
        status = search.run(limits.restarted()) or Status.TIME_LIMIT
        state = search.states[0]
        top = int(state.ints[search_kernels.TOP])
        rest = (
            state.stack[:top].copy(),
            state.stack_beta[:top].copy(),
            state.stack_lam[:top].copy(),
        )
    else:
        state, rest, status = _settled(state, limits)
    ints = state.ints
    return Neighbour(
        np.sort(state.support).astype(np.intp),
        float(state.reals[search_kernels.UPPER]),
        *rest,
        bool(ints[search_kernels.BRANCHED] > 0) or branch,
        int(ints[search_kernels.NODES]),
        status if rest[0].shape[0] else Status.OPTIMAL,
    )


def _push(
    state: search_kernels.SearchState, leaves: NDArray[np.int8], beta: Array, lam: Array
) -> None:
    """Make these the open nodes."""
    m = leaves.shape[0]
    state.stack[:m], state.stack_beta[:m], state.stack_lam[:m] = leaves, beta, lam
    state.stack_bound[:] = 0.0
    state.ints[search_kernels.TOP] = m


def _settled(
    state: search_kernels.SearchState, limits: Limits
) -> tuple[search_kernels.SearchState, tuple[NDArray[np.int8], Array, Array], Status]:
    """Close what relaxations alone close; again while the incumbent improves."""
    ints, reals = state.ints, state.reals
    state = grown(state, LEAVES, int(ints[search_kernels.TOP]) + 1)
    ints[search_kernels.RECORDING] = search_kernels.SETTLE
    while True:
        before = float(reals[search_kernels.UPPER])
        ints[search_kernels.LEAVES] = 0
        while True:
            reached = limits.reached(int(ints[search_kernels.NODES]))
            if reached is not None or search_kernels.explore(state, CHUNK) != 1:
                break
        m, top = int(ints[search_kernels.LEAVES]), int(ints[search_kernels.TOP])
        rest = (
            np.concatenate([state.leaves[:m], state.stack[:top]]),
            np.concatenate([state.leaf_beta[:m], state.stack_beta[:top]]),
            np.concatenate([state.leaf_lam[:m], state.stack_lam[:top]]),
        )
        if reached is not None or m == 0 or reals[search_kernels.UPPER] >= before:
            return state, rest, reached or Status.NODE_LIMIT
        _push(state, *rest)


def _joint_state(
    st: search_kernels.SearchState, k: int, p: int, tau: int, few: int, patience: int
) -> joint_kernels.Joint:
    depth = st.stack.shape[0]
    jt = joint_kernels.Joint(
        folds=np.zeros((depth, k), dtype=np.int32),
        counts=np.zeros(depth, dtype=np.int64),
        reals=np.array([float(few), max(0.01, 4.0 / k), TOLERANCE, float(patience)]),
        leaves=np.zeros((64, p), dtype=np.int8),
        leaf_beta=np.zeros((64, p)),
        leaf_lam=np.zeros(64),
        pairs=np.zeros((64 + 2 * k, 2), dtype=np.int64),
        ints=np.zeros(2, dtype=np.int64),
        load=np.zeros(k, dtype=np.int64),
        here=np.zeros(k, dtype=np.int32),
        retry=np.zeros(k, dtype=np.int8),
        c=np.zeros(p),
        rounded=np.zeros(tau, dtype=np.int64),
        order=np.zeros(p, dtype=np.int64),
        places=np.arange(p, dtype=np.int64),
        one=np.zeros(1, dtype=np.int32),
        G=np.zeros((p, p)),
        b=np.zeros(p),
        last=np.full(tau, -1, dtype=np.int64),
    )
    jt.folds[0] = np.arange(k)
    jt.counts[0] = k
    return jt


def _grown(jt: joint_kernels.Joint, names: tuple[str, ...], rows: int) -> joint_kernels.Joint:
    new: dict[str, Any] = {}
    for name in names:
        old = getattr(jt, name)
        new[name] = np.zeros((rows, *old.shape[1:]), dtype=old.dtype)
        new[name][: old.shape[0]] = old
    return jt._replace(**new)
