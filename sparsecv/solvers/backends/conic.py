"""The perspective model as a conic problem in cvxpy, which MOSEK solves.

    min ||Fu − f||² − 2rᵀu + wᵀs   s.t.  u_i² ≤ s_i z_i,  Σz ≤ τ,  |u_i| ≤ M_i z_i

with z 0–1, F the root of Q = XᵀX − D, w = γ/2 + D, β = u times the columns' lengths. The rows
|u| ≤ Mz follow from the other constraints; without these rows SCIP has reported optima that are too
low. Every solver in cvxpy that takes cones and 0–1 variables can solve the model; only MOSEK is a
back end of the package.
"""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.limits import Limits
from ..core.result import Status
from ..core.rounding import SOLVER_SHARE_OF_YY
from ..kernels.linalg import Array
from ..relaxation.ellipsoid import ellipsoid
from ..supports.rounding import largest
from .optional_dependencies import mosek_guarded, required
from .oracle import Claim, Oracle

# This share of the incumbent's objective is taken off every bound for the solver's tolerances. The
# value is a choice; tests compare the bounds with known optima.
BOUND_LOSS_RATIO = 2e-6
# MOSEK is asked for this feasibility tolerance. The value is a choice.
FEASIBILITY_TOLERANCE = 1e-8


@dataclass(frozen=True)
class Scaled:
    """The problem in units that solvers' tolerances are made for.

    The problem is min constant + uᵀQu − 2bᵀu + Σ w_i u_i²/z_i, where columns have unit length and
    the objective of the first support is 1.
    """

    Q: Array  # (p, p)
    b: Array  # (p,)
    w: Array  # (p,)
    constant: float  # yᵀy in units of ``Oracle.scale``
    bounds: Array  # (p,) on |u|

    @classmethod
    def of(cls, oracle: Oracle) -> Scaled:
        """Scale the problem of an oracle; every optimal β is in the ellipsoid that bounds |u|."""
        form, scale = oracle.form, oracle.scale
        lengths = np.sqrt(np.diag(form.Q) + form.w)
        region = ellipsoid(form.problem, oracle.upper)
        ends = region.prediction_range(np.eye(form.problem.p)[form.columns])
        bounds = np.abs(ends).max(axis=0) * lengths / np.sqrt(scale)
        return cls(
            Q=form.Q / lengths / lengths[:, None],
            b=form.b / lengths / np.sqrt(scale),
            w=form.w / lengths**2,
            constant=form.yy / scale,
            bounds=bounds * (1.0 + 1e-6),  # Solvers' tolerances cut off no optimum.
        )


def perspective_model(oracle: Oracle) -> tuple[Any, Any, float]:
    """The conic model of an oracle's problem, in the units of :class:`Scaled`.

        min ||Fu − f||² − 2rᵀu + wᵀs  s.t.  u_i² ≤ s_i z_i,  Σz ≤ τ,  |u_i| ≤ M_i z_i,  z 0–1

    Here FᵀF = Q and Fᵀf + r = b, so that the objective is that of :class:`Scaled` less a constant.
    The first cone says that ||Fu − f||² ≤ t, and the second that u_i² ≤ s_i z_i.

    Returns: The model; its variable z; and the constant, which has to be added to the model's
        objective to give that of the problem, in units of ``oracle.scale``.
    Raises SolverUnavailable: cvxpy is missing.
    """
    cp = required("cvxpy")
    p, scaled = oracle.form.p, Scaled.of(oracle)
    values, vectors = np.linalg.eigh(scaled.Q)
    values = np.maximum(values, 0.0)
    root = np.sqrt(values)
    F = root[:, None] * vectors.T
    # f only where it is no longer than y: elsewhere the constant would cancel too many digits.
    target = vectors.T @ scaled.b
    large = target**2 <= values * scaled.constant
    f = np.divide(target, root, out=np.zeros(p), where=large & (root > 0.0))
    rest = scaled.b - F.T @ f
    u, s, t = cp.Variable(p), cp.Variable(p, nonneg=True), cp.Variable(nonneg=True)
    z = cp.Variable(p, boolean=True)
    constraints = [
        cp.SOC(t + 1.0, cp.hstack([2.0 * (F @ u - f), t - 1.0])),
        cp.SOC(z + s, cp.vstack([2.0 * u, z - s]), axis=0),
        cp.sum(z) <= oracle.form.tau,
        cp.abs(u) <= cp.multiply(scaled.bounds, z),
    ]
    objective = cp.Minimize(t - 2.0 * (rest @ u) + scaled.w @ s)
    return cp.Problem(objective, constraints), z, scaled.constant - float(f @ f)


def claimed(oracle: Oracle, solver: str = "MOSEK") -> Claim:
    """What a conic solver says of a problem.

    MOSEK itself sees the limits of time and nodes, but not the stop flag. Another solver runs with
    its own settings. Where it closes its search, its value counts as the bound, which is right only
    if its settings ask for no relative gap.

    solver: Name of a solver in cvxpy that takes second-order cones and 0–1 variables.
    Returns: The claim; where the solver gives up, one of status FAILED with the bound that the
        oracle has. A better support of the solver becomes the incumbent of the oracle.
    Raises SolverUnavailable: cvxpy or mosek is missing, or MOSEK has no licence.
    """
    model, z, constant = perspective_model(oracle)
    options = _mosek_options(oracle) if solver == "MOSEK" else {}
    try:
        bound, nodes, status = solved(model, solver, options, oracle.limits)
    except _gave_up(solver):
        return oracle.claim(-np.inf, 0, Status.FAILED, 0.0)
    return conic_claim(oracle, bound + constant, nodes, status, z.value)


def conic_claim(
    oracle: Oracle, bound: float, n_nodes: int, status: Status, z: Array | None
) -> Claim:
    """A conic solver's claim, without what its tolerances and rounding may have added to the bound.

    bound: In units of ``oracle.scale``; −∞ where there is none.
    z: The solution, whose largest entries are the support; None where the solver has none.
    """
    if z is not None:
        oracle.offer(largest(np.asarray(z), oracle.form.tau))
    margin = oracle.form.margin + SOLVER_SHARE_OF_YY * oracle.form.yy
    # A relative gap up to 1e-5 counts as proved, because conic solvers' tolerances allow no smaller
    # gap. The value is a choice.
    kept = bound - margin / oracle.scale
    return oracle.claim(kept, n_nodes, status, lost=BOUND_LOSS_RATIO, precision=1e-5, margin=margin)


def _gave_up(solver: str) -> tuple[type[Exception], ...]:
    """The errors by which a solver says that it gives up; any other error is a mistake in code."""
    own = [required("mosek").Error] if solver == "MOSEK" else []
    return (required("cvxpy").error.SolverError, *own)


def solved(
    model: Any, solver: str, options: dict[str, Any], limits: Limits
) -> tuple[float, int, Status]:
    """Solve a model: its lower bound in the model's units, the number of nodes, and how it ended.

    The model's variables hold the best solution, if the solver has found one.
    """
    data, chain, inverse = model.get_problem_data(solver, solver_opts=options)
    guarded = mosek_guarded() if solver == "MOSEK" else nullcontext()
    with warnings.catch_warnings(), guarded:
        warnings.simplefilter("ignore")
        raw = chain.solve_via_data(model, data, False, False, options)
        if solver == "MOSEK":
            # cvxpy releases the task when it unpacks the solution, so the task is read before.
            bound, nodes, closed, found = _of_task(raw["task"])
            if found:
                model.unpack_results(raw, chain, inverse)
        else:
            model.unpack_results(raw, chain, inverse)
            nodes, closed = 0, model.status == "optimal"
            bound = float(model.value) if closed else -np.inf
    if closed:
        return bound, nodes, Status.OPTIMAL
    # The solver counts seconds and nodes itself, and stops a little before a limit that it was
    # given. Without a limit it has given up.
    ended = Status.FAILED if limits.node_limit is None else Status.NODE_LIMIT
    ended = ended if limits.remaining() is None else Status.TIME_LIMIT
    return bound, nodes, limits.reached(nodes) or ended


def _of_task(task: Any) -> tuple[float, int, bool, bool]:
    """What a task of MOSEK knows at its end.

    Returns: The lower bound in the model's units; the number of branchings; whether a solution is
        proved to be optimal; whether a solution is known.
    """
    mosek = required("mosek")
    kind, proved = mosek.soltype.itg, mosek.solsta.integer_optimal
    state = task.getsolsta(kind) if task.solutiondef(kind) else mosek.solsta.unknown
    # Until a relaxation is solved, the number in the bound's place means nothing.
    has_bound = task.getintinf(mosek.iinfitem.mio_obj_bound_defined)
    bound = float(task.getdouinf(mosek.dinfitem.mio_obj_bound)) if has_bound else -np.inf
    nodes = int(task.getintinf(mosek.iinfitem.mio_num_branch))
    return bound, nodes, state == proved, state in (proved, mosek.solsta.prim_feas)


def _mosek_options(oracle: Oracle) -> dict[str, Any]:
    """MOSEK's parameters; gaps are absolute, because objectives leave a constant out."""
    values = {
        "MSK_DPAR_MIO_TOL_REL_GAP": 0.0,
        "MSK_DPAR_MIO_TOL_FEAS": FEASIBILITY_TOLERANCE,
        "MSK_DPAR_MIO_TOL_ABS_GAP": oracle.gap(BOUND_LOSS_RATIO),
        "MSK_DPAR_MIO_MAX_TIME": oracle.limits.remaining(),
        "MSK_IPAR_MIO_MAX_NUM_BRANCHES": oracle.limits.node_limit,
        "MSK_IPAR_NUM_THREADS": oracle.n_jobs,
    }
    return {"mosek_params": {name: value for name, value in values.items() if value is not None}}
