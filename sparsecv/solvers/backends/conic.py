"""The perspective model as a conic problem, written once in cvxpy for every conic solver.

    min ||Fu − f||² − 2rᵀu + wᵀs   s.t.  u_i² ≤ s_i z_i,  Σz ≤ τ,  |u_i| ≤ M_i z_i

with z 0–1 (MOSEK, SCIP, Gurobi), F the root of Q = XᵀX − D, w = γ/2 + D, β = u times the columns'
lengths. The rows |u| ≤ Mz follow from the other constraints; without these rows SCIP has reported
optima that are too low.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..core.limits import Limits
from ..core.result import Status
from ..kernels.linalg import Array
from ..supports.rounding import largest
from . import gurobi, scip
from .cuts import CutForm
from .optional_dependencies import (
    SCIP,
    SolverUnavailable,
    mosek_guarded,
    quiet_stderr,
    required,
)
from .presolve import Claim, Prepared


class ConicSettings(NamedTuple):
    """What conic solvers are asked for, and what is taken off their bounds.

    The numbers are choices; the tests compare bounds, less the two losses, with known optima.
    """

    # A relative gap up to this value counts as proved, because conic solvers' tolerances allow no
    # smaller gap. Twice the value would call twice as large gaps optimal.
    precision: float = 1e-5
    # Solvers are asked for this feasibility tolerance. Twice the value makes the solvers' bounds
    # wrong by up to twice as much.
    tolerance: float = 1e-8
    # This share of the incumbent's objective is taken off every bound. Twice the share widens every
    # proved gap by as much again.
    bound_loss_ratio: float = 2e-6
    # This share of yᵀy is taken off every bound as well, because solvers see objectives less yᵀy
    # and round relative to yᵀy. Twice the share widens gaps where objectives are far below yᵀy.
    total_loss_ratio: float = 2e-9


SETTINGS = ConicSettings()


class _Solver(NamedTuple):
    """The packages that a solver needs, and how options are passed to the solver.

    key: The keyword under which cvxpy expects the options; None if cvxpy takes each by itself.
    limits: What the solver calls the absolute gap, seconds, nodes and threads.
    others: Options that do not depend on the problem.
    """

    packages: Sequence[str]
    key: str | None
    limits: str
    others: dict[str, float]


SOLVERS = {
    "MOSEK": _Solver(
        ["cvxpy", "mosek"],
        "mosek_params",
        "MSK_DPAR_MIO_TOL_ABS_GAP MSK_DPAR_MIO_MAX_TIME MSK_IPAR_MIO_MAX_NUM_BRANCHES "
        "MSK_IPAR_NUM_THREADS",
        {"MSK_DPAR_MIO_TOL_REL_GAP": 0.0, "MSK_DPAR_MIO_TOL_FEAS": SETTINGS.tolerance},
    ),
    "GUROBI": _Solver(
        ["cvxpy", "gurobipy"],
        None,
        "MIPGapAbs TimeLimit NodeLimit Threads",
        {"MIPGap": 0.0, "BarQCPConvTol": 1e-9}
        | dict.fromkeys(["FeasibilityTol", "IntFeasTol"], SETTINGS.tolerance),
    ),
    "SCIP": _Solver(
        ["cvxpy>=1.8", SCIP],  # An older cvxpy keeps SCIP's model to itself.
        "scip_params",
        "limits/absgap limits/time limits/nodes",
        {"limits/gap": 0.0, "numerics/feastol": SETTINGS.tolerance},
    ),
}


class ConicModel(NamedTuple):
    """The model in cvxpy: (the model's objective + ``constant``)·``scale`` is the problem's."""

    problem: Any
    z: Any
    constant: float
    scale: float


def perspective_model(form: CutForm, upper: float) -> ConicModel:
    """Write the model of this module's first lines.

    upper: Objective of a known support, which bounds the coefficients and is the model's unit.
    Raises SolverUnavailable: cvxpy is missing.
    """
    cp = required("cvxpy")
    p = form.p
    scaled = Scaled.of(form, upper)
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
    most = cp.multiply(scaled.bounds, z)
    constraints = [
        cp.SOC(t + 1.0, cp.hstack([2.0 * (F @ u - f), t - 1.0])),
        cp.SOC(z + s, cp.vstack([2.0 * u, z - s]), axis=0),
        cp.sum(z) <= form.tau,
        u <= most,
        u >= -most,
    ]
    objective = cp.Minimize(t - 2.0 * (rest @ u) + scaled.w @ s)
    model = cp.Problem(objective, constraints)
    return ConicModel(model, z, scaled.constant - float(f @ f), scaled.scale)


@dataclass(frozen=True)
class Scaled:
    """The problem in units that solvers' tolerances are made for.

    The problem is min constant + uᵀQu − 2bᵀu + Σ w_i u_i²/z_i, where columns have unit length and
    the objective of the known support is 1; times ``scale`` the objective is the original one.
    """

    Q: Array
    b: Array
    w: Array
    constant: float
    scale: float
    bounds: Array  # (p,) on |u|

    @classmethod
    def of(cls, form: CutForm, upper: float) -> Scaled:
        """Scale the problem, and bound |u| for every u whose objective is at most ``upper``.

        With c the ridge solution on all columns, every such β = u·length satisfies
        (β − c)ᵀ(XᵀX + γ/2 I)(β − c) ≤ upper − (objective at c).

        upper: Objective of a known support.
        """
        scale = upper if upper > 0.0 else 1.0
        short = 1.0 / np.sqrt(np.diag(form.Q) + form.w)
        Q = short[:, None] * form.Q * short
        b, w = form.b * short / np.sqrt(scale), form.w * short * short
        constant = form.yy / scale
        ridge = form.problem.gamma / 2.0
        bounds = np.full(w.size, np.sqrt(upper / ridge)) / (short * np.sqrt(scale))
        # Where γ is tiny beside dependent columns, only (γ/2)β_i² ≤ upper holds.
        with contextlib.suppress(np.linalg.LinAlgError):
            inverse = np.linalg.inv(Q + np.diag(w))
            if np.isfinite(inverse).all() and np.diag(inverse).min() > 0.0:
                centre = inverse @ b
                gap = max(upper / scale - (constant - float(b @ centre)), 0.0)
                gap += form.margin / scale
                bounds = np.minimum(bounds, np.abs(centre) + np.sqrt(gap * np.diag(inverse)))
        return cls(Q, b, w, constant, scale, bounds * (1.0 + 1e-6))


def claimed(solver: str, ready: Prepared, n_jobs: int) -> Claim:
    """What a conic solver, "MOSEK", "GUROBI" or "SCIP", says of a problem.

    The solver itself sees the limits of time and nodes, but not the stop flag.
    Raises SolverUnavailable: The solver has no licence.
    """
    model = perspective_model(ready.form, ready.objective)
    try:
        raw = _run(model, solver, _options(solver, least_gap(ready.tol), ready.limits, n_jobs))
    except SolverUnavailable:
        raise
    except Exception:  # Solvers raise anything where they give up on the numbers.
        return Claim(ready.support, ready.bound, Status.FAILED)
    bound, nodes, status = _claims(solver, raw, ready.limits)
    bound = (bound + model.constant) * model.scale
    return claim_of(ready, bound, status, nodes, model.z.value)


def claim_of(ready: Prepared, bound: float, status: Status, n_nodes: int, z: Array | None) -> Claim:
    """A conic solver's claim, its tolerances taken off the bound.

    bound: In the problem's units, −∞ where there is none.
    z: The solution, whose largest entries are the support; None where the solver has none.
    """
    form = ready.form
    support = ready.support if z is None else largest(np.asarray(z), form.tau)
    margin = form.margin + SETTINGS.total_loss_ratio * form.yy
    lower = max(ready.bound, bound - SETTINGS.bound_loss_ratio * ready.objective - margin)
    return Claim(support, lower, status, n_nodes, SETTINGS.precision, margin)


def least_gap(tol: float) -> float:
    """The gap to ask for, in units of the incumbent's objective, so that ``tol`` is proved."""
    return max(tol - 2.0 * SETTINGS.bound_loss_ratio, 1e-7)


def _run(model: ConicModel, solver: str, options: dict[str, Any]) -> Any:
    """Solve, and return the solver's own model, which knows the bound and the nodes."""
    data, chain, inverse = model.problem.get_problem_data(solver, solver_opts=options)
    with warnings.catch_warnings(), _guarded(solver):
        warnings.simplefilter("ignore")
        raw = chain.solve_via_data(model.problem, data, False, False, options)
        if solver == "GUROBI" and raw["model"].Status == required("gurobipy").GRB.LOADED:
            raw["model"].optimize()  # cvxpy has swallowed the reason why Gurobi did not start.
        # The search may have stopped before any solution.
        with contextlib.suppress(required("cvxpy").error.SolverError):
            model.problem.unpack_results(raw, chain, inverse)
    return raw


def _guarded(solver: str) -> contextlib.AbstractContextManager[None]:
    """Turn a solver's complaints about its licence into one line, and SCIP's output into none."""
    if solver == "SCIP":
        return quiet_stderr()
    return gurobi.guarded(required("gurobipy")) if solver == "GUROBI" else mosek_guarded()


def _options(solver: str, gap: float, limits: Limits, n_jobs: int) -> dict[str, Any]:
    """A solver's own parameters; gaps are absolute, as objectives leave a constant out."""
    key, names, others = SOLVERS[solver][1:]
    values = [gap, limits.remaining(), limits.node_limit, n_jobs]
    pairs = zip(names.split(), values, strict=False)
    known = {**others, **{name: value for name, value in pairs if value is not None}}
    return {key: known} if key else {**known, "env": gurobi.environment(required("gurobipy"))}


def _claims(solver: str, raw: Any, limits: Limits) -> tuple[float, int, Status]:
    """The lower bound, the number of nodes and the end of the search, as the solver has them."""
    if solver == "SCIP":
        if raw["model"].getStatus() == "userinterrupt" and limits.stop is not None:
            limits.stop.set()  # SCIP has caught Ctrl-C, which this process has not seen.
        return scip.claims_of(raw["model"], limits)
    if solver == "GUROBI":
        return gurobi.claims_of(required("gurobipy"), raw["model"], limits)
    mosek, task = required("mosek"), raw["task"]
    bound = float(task.getdouinf(mosek.dinfitem.mio_obj_bound))
    nodes = int(task.getintinf(mosek.iinfitem.mio_num_branch))
    if task.getsolsta(mosek.soltype.itg) == mosek.solsta.integer_optimal:
        return bound, nodes, Status.OPTIMAL
    return bound, nodes, limits.reached(nodes) or Status.TIME_LIMIT
