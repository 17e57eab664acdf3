"""The perspective model as a conic problem, written once in cvxpy for every conic solver.

    min ||Fu − f||² − 2rᵀu + wᵀs   s.t.  u_i² ≤ s_i z_i,  Σz ≤ τ,  |u_i| ≤ M_i z_i

with z 0–1 (MOSEK, SCIP, Gurobi), F the root of Q = XᵀX − D, w = γ/2 + D, β = u times the columns'
lengths. The rows |u| ≤ Mz follow from the others; without them SCIP has reported optima that are
too low.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..core.result import Proof, Status
from ..kernels.linalg import Array
from ..supports.rounding import largest
from .cuts import CutForm
from .gurobi import environment, progress_of, status_of
from .optional_dependencies import (
    SCIP,
    SolverUnavailable,
    missing,
    no_mosek_licence,
    quiet_stderr,
    required,
)
from .presolve import Prepared, prepare

PRECISION = 1e-5  # relative gap that counts as proved: what conic solvers' tolerances are worth
TOLERANCE = 1e-8  # feasibility asked of them
LOSS = 2e-6  # taken off their bounds, relative to the incumbent,
DIGITS = 2e-9  # and relative to yᵀy, from which their objectives are differences
PACKAGES = {
    "MOSEK": ("cvxpy", "mosek"),
    "GUROBI": ("cvxpy", "gurobipy"),
    "SCIP": ("cvxpy>=1.8", SCIP),  # an older one keeps its model
}


@dataclass(frozen=True)
class ConicModel:
    """The model in cvxpy: its objective times ``scale``, and ``constant``, is the problem's.

    ``u`` times ``length`` are the coefficients.
    """

    problem: Any
    u: Any
    z: Any
    length: Array
    constant: float
    scale: float


def perspective_model(form: CutForm, upper: float, *, big_m: bool = True) -> ConicModel:
    """Write the model.

    upper: Objective of a support that is known: it bounds the coefficients and is the unit.
    big_m, bool, add the rows |u| ≤ Mz.
    Raises SolverUnavailable: No cvxpy.
    """
    cp = required("cvxpy")
    p = form.p
    scaled = Scaled.of(form, upper)
    b = scaled.b
    values, vectors = np.linalg.eigh(scaled.Q)
    root = np.sqrt(np.maximum(values, 0.0))
    F = root[:, None] * vectors.T
    # a target only where it is no larger than y: elsewhere the constant would cancel too much
    target = vectors.T @ b
    large = target**2 <= np.maximum(values, 0.0) * scaled.constant
    f = np.divide(target, root, out=np.zeros(p), where=large & (root > 0.0))
    rest = b - F.T @ f
    u, s, t = cp.Variable(p), cp.Variable(p, nonneg=True), cp.Variable(nonneg=True)
    z = cp.Variable(p, boolean=True)
    constraints = [
        cp.SOC(t + 1.0, cp.hstack([2.0 * (F @ u - f), t - 1.0])),
        cp.SOC(z + s, cp.vstack([2.0 * u, z - s]), axis=0),
        cp.sum(z) <= form.picks,
    ]
    if big_m:
        M = scaled.bounds
        constraints += [u <= cp.multiply(M, z), u >= -cp.multiply(M, z)]
    objective = cp.Minimize(t - 2.0 * (rest @ u) + scaled.w @ s)
    constant = scaled.constant - float(f @ f)
    model = cp.Problem(objective, constraints)
    return ConicModel(model, u, z, scaled.length, constant, scaled.scale)


@dataclass(frozen=True)
class Scaled:
    """The problem in units that solvers' tolerances are made for.

    min constant + uᵀQu − 2bᵀu + Σ w_i u_i²/z_i, β = length·u: columns have unit length, and the
    objective is 1 at the support known; times ``scale`` it is the problem's.
    """

    Q: Array
    b: Array
    w: Array
    constant: float
    length: Array
    scale: float
    bounds: Array

    @classmethod
    def of(cls, form: CutForm, upper: float) -> Scaled:
        """Scale; ``bounds`` hold for |u| of every u whose objective is at most ``upper``.

        (β − c)ᵀ(XᵀX + γ/2 I)(β − c) ≤ upper − (objective at c), c the ridge solution on all
        columns.

        upper, float, objective of a known support.
        """
        scale = upper if upper > 0.0 else 1.0
        short = 1.0 / np.sqrt(np.diag(form.Q) + form.w)
        Q = short[:, None] * form.Q * short
        b, w = form.b * short / np.sqrt(scale), form.w * short * short
        constant = form.yy / scale
        ridge = form.problem.gamma / 2.0
        bounds = np.full(w.size, np.sqrt(upper / ridge)) / (short * np.sqrt(scale))
        try:
            inverse = np.linalg.inv(Q + np.diag(w))
        except np.linalg.LinAlgError:  # γ tiny beside dependent columns: (γ/2)β_i² ≤ upper must do
            inverse = np.full_like(Q, np.inf)
        if np.isfinite(inverse).all() and np.diag(inverse).min() > 0.0:
            centre = inverse @ b
            room = max(upper / scale - (constant - float(b @ centre)), 0.0) + form.margin / scale
            bounds = np.minimum(bounds, np.abs(centre) + np.sqrt(room * np.diag(inverse)))
        bounds = bounds * (1.0 + 1e-6)
        return cls(Q, b, w, constant, short * np.sqrt(scale), scale, bounds)


def solve_conic(
    problem: SparseRidgeProblem,
    solver: str,
    *,
    warm_starts: Sequence[NDArray[np.intp]] = (),
    tol: float = 1e-6,
    limits: Limits | None = None,
    n_jobs: int = 1,
    big_m: bool = True,
) -> Proof:
    """Solve eq. (1), main paper, as a mixed-integer conic problem.

    Parameters
    ----------
    problem : SparseRidgeProblem
    solver : str
        "MOSEK", "GUROBI" or "SCIP".
    warm_starts : supports
    tol : float
        Relative gap; conic solvers prove no less than 1e-5.
    limits : Limits, optional
        A stop flag is looked at before and after: the solver itself sees time and nodes.
    n_jobs : int
        Threads.
    big_m : bool
        Add the rows |u| ≤ Mz.

    Returns
    -------
    Proof
        A claim that recomputing contradicts has the status "solver failure".

    Raises
    ------
    ValueError
        A solver that knows no 0–1 variables.
    SolverUnavailable
        cvxpy, the solver or its licence is missing.
    """
    if solver not in PACKAGES:
        raise ValueError(f"solver must be one of {', '.join(PACKAGES)}; got {solver!r}")
    lacking = missing(*PACKAGES[solver])
    if lacking is not None:
        raise SolverUnavailable(lacking)
    limits = limits or Limits()
    ready = prepare(problem, warm_starts, tol, limits)
    if ready.done is not None:
        return ready.done
    form = CutForm(problem, ready.columns, ready.gram)
    model = perspective_model(form, ready.objective, big_m=big_m)
    try:
        raw = _run(model, solver, _options(solver, least_gap(tol), limits, n_jobs))
    except SolverUnavailable:
        raise
    except Exception:  # whatever a solver raises where it gives up on the numbers
        return ready.proof(ready.support, ready.bound, Status.FAILED, 0)
    bound, nodes, status = _claims(solver, raw, limits)
    z = model.z.value
    return concluded(ready, form, (bound + model.constant) * model.scale, status, nodes, z)


def concluded(
    ready: Prepared, form: CutForm, bound: float, status: Status, n_nodes: int, z: Array | None
) -> Proof:
    """The solution that a solver's claims amount to, its tolerances taken off the bound.

    bound, float, in the problem's units, −∞ where there is none.
    z, array or None, its largest entries are the support.
    """
    support = ready.support
    if z is not None:
        support = largest(np.asarray(z), form.picks)
    margin = form.margin + DIGITS * form.yy
    lower = max(ready.bound, bound - LOSS * ready.objective - margin)
    return ready.proof(support, lower, status, n_nodes, PRECISION, margin)


def least_gap(tol: float) -> float:
    """The gap to ask for, in units of the incumbent's objective: LOSS is taken off afterwards.

    tol, float, the relative gap that was asked for.
    """
    return max(tol - 2.0 * LOSS, 1e-7)


def _run(model: ConicModel, solver: str, options: dict[str, Any]) -> Any:
    """Solve and keep the solver's own model, which knows its bound and nodes."""
    data, chain, inverse = model.problem.get_problem_data(solver, solver_opts=options)
    try:
        quiet = quiet_stderr() if solver == "SCIP" else contextlib.nullcontext()
        with warnings.catch_warnings(), quiet:
            warnings.simplefilter("ignore")
            raw = chain.solve_via_data(model.problem, data, False, False, options)
            if solver == "GUROBI" and raw["model"].Status == required("gurobipy").GRB.LOADED:
                raw["model"].optimize()  # cvxpy has swallowed the reason why it did not start
    except Exception as error:
        raise _explained(solver, error) from error
    with warnings.catch_warnings(), contextlib.suppress(required("cvxpy").error.SolverError):
        warnings.simplefilter("ignore")  # stopped early, perhaps before any solution
        model.problem.unpack_results(raw, chain, inverse)
    return raw


def _explained(solver: str, error: Exception) -> Exception:
    """The same in one line where a licence is what is missing."""
    text = " ".join(str(error).split())
    if solver == "MOSEK" and "license" in text.lower():
        return SolverUnavailable(no_mosek_licence(text))
    if solver == "GUROBI" and "license" in text.lower():
        return SolverUnavailable(
            f"Gurobi's licence does not do (the pip licence holds 200 variables in conic models; "
            f"backends gurobi, highs and native hold more): {text}"
        )
    return error


def _options(solver: str, tol: float, limits: Limits, n_jobs: int) -> dict[str, Any]:
    """A solver's own parameters; gaps are absolute, as objectives leave a constant out."""
    seconds, nodes = limits.remaining(), limits.node_limit
    if solver == "SCIP":
        scip: dict[str, Any] = {
            "limits/gap": 0.0,
            "limits/absgap": tol,
            "numerics/feastol": TOLERANCE,
            "limits/nodes": -1 if nodes is None else nodes,
        }
        if seconds is not None:
            scip["limits/time"] = seconds
        return {"scip_params": scip}
    if solver == "GUROBI":
        gurobi: dict[str, Any] = {
            "MIPGap": 0.0,
            "MIPGapAbs": tol,
            "FeasibilityTol": TOLERANCE,
            "IntFeasTol": TOLERANCE,
            "BarQCPConvTol": 1e-9,
            "Threads": n_jobs,
            "env": environment(required("gurobipy")),
        }
        if seconds is not None:
            gurobi["TimeLimit"] = seconds
        if nodes is not None:
            gurobi["NodeLimit"] = nodes
        return gurobi
    mosek = {
        "MSK_DPAR_MIO_TOL_REL_GAP": 0.0,
        "MSK_DPAR_MIO_TOL_ABS_GAP": tol,
        "MSK_DPAR_MIO_TOL_FEAS": TOLERANCE,
        "MSK_IPAR_NUM_THREADS": n_jobs,
    }
    if seconds is not None:
        mosek["MSK_DPAR_MIO_MAX_TIME"] = seconds
    if nodes is not None:
        mosek["MSK_IPAR_MIO_MAX_NUM_BRANCHES"] = nodes
    return {"mosek_params": mosek}


def _claims(solver: str, raw: Any, limits: Limits) -> tuple[float, int, Status]:
    """What the solver says of its bound, its nodes and its end."""
    if solver == "SCIP":
        model = raw["model"]
        if model.getStatus() == "userinterrupt" and limits.stop is not None:
            limits.stop.set()  # it has seen Ctrl-C in our place
        bound, nodes = float(model.getDualbound()), int(model.getNTotalNodes())
        status = {
            "optimal": Status.OPTIMAL,
            "gaplimit": Status.OPTIMAL,
            "timelimit": Status.TIME_LIMIT,
            "nodelimit": Status.NODE_LIMIT,
            "totalnodelimit": Status.NODE_LIMIT,
        }.get(model.getStatus(), limits.reached(0) or Status.FAILED)
        return (bound if abs(bound) < 1e19 else -np.inf), nodes, status
    if solver == "GUROBI":
        gp, model = required("gurobipy"), raw["model"]
        return *progress_of(model), status_of(gp, model, limits)
    mosek, task = required("mosek"), raw["task"]
    bound = float(task.getdouinf(mosek.dinfitem.mio_obj_bound))
    nodes = int(task.getintinf(mosek.iinfitem.mio_num_branch))
    ended = task.getsolsta(mosek.soltype.itg)
    if ended == mosek.solsta.integer_optimal:
        return bound, nodes, Status.OPTIMAL
    return bound, nodes, limits.reached(nodes) or Status.TIME_LIMIT
