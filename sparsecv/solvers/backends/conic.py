"""The perspective model as a conic problem in cvxpy, which MOSEK solves.

    min ||Fu − f||² − 2rᵀu + wᵀs   s.t.  u_i² ≤ s_i z_i,  Σz ≤ τ,  |u_i| ≤ M_i z_i

with z 0–1, F the root of Q = XᵀX − D, w = γ/2 + D, β = u times the columns' lengths. The rows
|u| ≤ Mz follow from the other constraints; without these rows SCIP has reported optima that are too
low. Every solver in cvxpy that takes cones and 0–1 variables can solve the model; only MOSEK is a
back end of the package.
"""

from __future__ import annotations

import contextlib
import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..core.limits import Limits
from ..core.result import Status
from ..kernels.linalg import Array
from ..supports.rounding import largest
from .cuts import CutForm
from .optional_dependencies import SolverUnavailable, mosek_guarded, required
from .presolve import Claim, Prepared

# A relative gap up to this value counts as proved, because conic solvers' tolerances allow no
# smaller gap. The value is a choice.
CLOSED_GAP_RATIO = 1e-5
# MOSEK is asked for this feasibility tolerance. The value is a choice.
FEASIBILITY_TOLERANCE = 1e-8
# This share of the incumbent's objective is taken off every bound for the solver's tolerances. The
# value is a choice; tests compare the bounds with known optima.
BOUND_LOSS_RATIO = 2e-6
# This share of yᵀy is taken off every bound as well, because solvers see objectives less yᵀy and
# round relative to yᵀy. The value is a choice; tests compare the bounds with known optima.
TOTAL_LOSS_RATIO = 2e-9
# The solver is asked for no smaller gap than this share of the incumbent's objective. The value is
# a choice.
LEAST_GAP_RATIO = 1e-7


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


def claimed(ready: Prepared, n_jobs: int, solver: str = "MOSEK") -> Claim:
    """What a conic solver says of a problem.

    MOSEK itself sees the limits of time and nodes, but not the stop flag. Another solver runs with
    its own settings; its bound is used where it closes its search and asks for no relative gap.

    solver: Name of a solver in cvxpy that takes second-order cones and 0–1 variables.
    Raises SolverUnavailable: The solver has no licence.
    """
    model = perspective_model(ready.form, ready.objective)
    options = (
        _mosek_options(least_gap(ready.tol), ready.limits, n_jobs) if solver == "MOSEK" else {}
    )
    try:
        bound, nodes, status = solved(model, solver, options, ready.limits)
    except SolverUnavailable:
        raise
    except Exception:  # Solvers raise anything where they give up on the numbers.
        return Claim(ready.support, ready.bound, Status.FAILED)
    bound = (bound + model.constant) * model.scale
    return claim_of(ready, bound, status, nodes, model.z.value)


def claim_of(ready: Prepared, bound: float, status: Status, n_nodes: int, z: Array | None) -> Claim:
    """A conic solver's claim, its tolerances taken off the bound.

    bound: In the problem's units, −∞ where there is none.
    z: The solution, whose largest entries are the support; None where the solver has none.
    """
    form = ready.form
    support = ready.support if z is None else largest(np.asarray(z), form.tau)
    margin = form.margin + TOTAL_LOSS_RATIO * form.yy
    lower = max(ready.bound, bound - BOUND_LOSS_RATIO * ready.objective - margin)
    return Claim(support, lower, status, n_nodes, CLOSED_GAP_RATIO, margin)


def least_gap(tol: float) -> float:
    """The gap to ask for, in units of the incumbent's objective, so that ``tol`` is proved."""
    return max(tol - 2.0 * BOUND_LOSS_RATIO, LEAST_GAP_RATIO)


def solved(
    model: ConicModel, solver: str, options: dict[str, Any], limits: Limits
) -> tuple[float, int, Status]:
    """Solve a model: its lower bound in the model's units, the number of nodes, and how it ended.

    The model's variables hold the best solution, if the solver has found one.
    """
    data, chain, inverse = model.problem.get_problem_data(solver, solver_opts=options)
    with warnings.catch_warnings(), mosek_guarded():
        warnings.simplefilter("ignore")
        raw = chain.solve_via_data(model.problem, data, False, False, options)
        # The search may have stopped before any solution.
        with contextlib.suppress(required("cvxpy").error.SolverError):
            model.problem.unpack_results(raw, chain, inverse)
    closed = model.problem.status == "optimal"
    bound, nodes = (model.problem.value if closed else -np.inf), 0
    if solver == "MOSEK":
        mosek, task = required("mosek"), raw["task"]
        bound = task.getdouinf(mosek.dinfitem.mio_obj_bound)
        nodes = task.getintinf(mosek.iinfitem.mio_num_branch)
        closed = task.getsolsta(mosek.soltype.itg) == mosek.solsta.integer_optimal
    status = Status.OPTIMAL if closed else limits.reached(nodes) or Status.TIME_LIMIT
    return float(bound), int(nodes), status


def _mosek_options(gap: float, limits: Limits, n_jobs: int) -> dict[str, Any]:
    """MOSEK's parameters; gaps are absolute, because objectives leave a constant out."""
    values = {
        "MSK_DPAR_MIO_TOL_REL_GAP": 0.0,
        "MSK_DPAR_MIO_TOL_FEAS": FEASIBILITY_TOLERANCE,
        "MSK_DPAR_MIO_TOL_ABS_GAP": gap,
        "MSK_DPAR_MIO_MAX_TIME": limits.remaining(),
        "MSK_IPAR_MIO_MAX_NUM_BRANCHES": limits.node_limit,
        "MSK_IPAR_NUM_THREADS": n_jobs,
    }
    return {"mosek_params": {name: value for name, value in values.items() if value is not None}}
