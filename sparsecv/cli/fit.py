"""The command ``sparsecv fit``, which finds the best model of at most τ features at one γ."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ..cv.engine import interruptible
from ..cv.plan import RunPlan
from ..cv.settings import Settings, checked_gammas, checked_taus
from ..design.design import Protocol
from ..design.model import fitted_model
from ..design.prepare import ALL_ROWS, prepare
from ..errors import InputError
from ..plots.size_path import plot_size_path
from ..report.outcome import Result
from ..selection.certified_choice import model_certificate
from ..solvers.api import best_support
from ..solvers.backends.optional_dependencies import SolverUnavailable
from ..solvers.core.result import Status
from . import column_options, grids, outputs
from .console import Steps, announce_limit, as_limit, open_console, progress, read, remarks
from .cv import besides
from .deliver import deliver
from .options import Exit

# The text that is printed beside the model when Ctrl-C ended its search.
INTERRUPTED = "the best model found when Ctrl-C came"


def fit(data: str, **given: Any) -> Exit:
    """Fit the best model of at most τ features, with its certificate."""

    asked = SimpleNamespace(**given)
    steps = Steps()
    console = open_console(asked.quiet, asked.json_file)
    outputs.refuse_unwritable(asked)
    tau, gamma = asked.tau, asked.gamma
    checked_gammas([gamma])
    grids.check_count("--n-best", asked.n_best)
    settings = Settings(backend=asked.backend, time_limit=as_limit(asked.time_limit))
    with progress(asked.quiet, steps):
        source = read(data, given, steps)
        how: Any = {"asked": column_options.column_constraints(source, given)}
        ready = prepare(source, ALL_ROWS, Protocol(asked.protocol, asked.scale), **how)
        whole, limit = ready.data.full(), settings.time_limit
        settings.check_constraints(whole.constraints)
        checked_taus([tau], whole.p, whole.constraints)
        plan = RunPlan.of(settings, ready.data)
        announce_limit(plan, whole.constraints.n_units, asked.time_limit)
        most = "" if limit is None else f", at most {limit:g} s"
        steps(f"proving the best {tau} of {whole.constraints.n_units}{most}", 0, 1)
        problem = whole.replace(gamma=gamma, tau=tau)
        how = {"backend": asked.backend, "time_limit": limit}
        try:
            with interruptible(plan.stop, gently=True) as stop:
                solution = best_support(problem, n_jobs=asked.jobs, **how, stop=stop)
        except SolverUnavailable as error:
            raise InputError(str(error)) from error
        proved, note = solution.status is Status.OPTIMAL, INTERRUPTED if stop.is_set() else ""
        model = fitted_model(ready.design, problem, solution.support, solution.lower_bound, proved)
        # Other sizes are searched for once, where they are needed, and after Ctrl-C only estimated.
        own = problem, ready.design, model
        work = f"The search took {solution.seconds:.3g} s and {solution.n_nodes:,} nodes."
        known = source.name, ready.names, source.target_name
        how = {
            "limit": 0.0 if note else plan.limits.remaining(),
            "remarks": list(remarks(source)),
            "work": work,
        }
        found = Result(*known, *own, tau, gamma, **how)
        steps(f"the best of every size up to {tau}{most}", 0, 1)
        if not note:
            besides(found, asked)
        if asked.html is not None:
            _ = found.sizes  # A page shows every size, for which this searches.
    found.seconds = steps.seconds
    kept = ("status", "n_nodes", "seconds")
    more = {"tau": tau, "gamma": gamma} | {name: getattr(solution, name) for name in kept}
    if asked.certificate is not None:
        proof, names = (solution.support, str(solution.status)), (ready.names, source.target_name)
        made = model_certificate(ready.data, ready.design, problem, *proof, *names)
        made.save(asked.certificate)
    draw = partial(_draw, found, asked.plot)
    deliver(asked, console, ready, found, more, draw, steps, note=note)
    named = asked.time_limit is not None and settings.time_limit is not None
    status = Exit.GAP if named and not proved else Exit.DONE
    return Exit.INTERRUPTED if note else status


def _draw(found: Result, path: Path) -> None:
    """Draw the picture that the option --plot asks for."""
    title = f"{found.name}, γ = {found.gamma:g}"
    plot_size_path(found.sizes, found.design.raw_spread, found.names, str(path), title)
