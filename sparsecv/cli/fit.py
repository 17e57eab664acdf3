"""The command ``sparsecv fit``, which finds the best model of a size, or of least criterion."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ..cv.engine import interruptible
from ..cv.plan import RunPlan
from ..cv.settings import Settings, checked_gammas, checked_taus
from ..design.design import Protocol
from ..design.prepare import ALL_ROWS, prepare
from ..plots.size_path import plot_size_path
from ..report.audit import audited, no_audit
from ..report.progress import Steps
from ..report.questions import inference_of
from ..selection.certified_choice import model_certificate
from ..selection.criteria import checked_criterion
from ..selection.inference import covered_spread
from ..selection.result import Result, Shown
from ..selection.run import fit_table
from ..solvers.core.limits import Limits
from ..wings import WINGS
from . import grids, outputs
from .column_options import column_constraints
from .console import announce_limit, progress, read
from .cv import add_frames
from .deliver import deliver
from .options import Exit

# The text that is printed beside the model when Ctrl-C ended its search.
INTERRUPTED = "the best model found when Ctrl-C came"


def fit(data: str, **options: Any) -> Exit:
    """Fit the best model of at most τ features, or the one of least criterion.

    data: What the user writes for the table.
    options: The values of all options of the command, under their names in ``options.py``.
    Returns: INTERRUPTED after Ctrl-C; GAP where --time-limit names seconds and the model is not
        proved; else DONE. Files are written in each of these cases.
    Raises InputError: The options, the table or what they ask for cannot be used.
    """
    asked, steps = SimpleNamespace(**options), Steps()
    outputs.refuse_unwritable(asked)
    tau, gamma = grids.parse_tau(asked.tau), asked.gamma
    sized: dict[str, Any]
    if isinstance(tau, str):  # The name of a criterion, which compares least-squares fits (γ = 0).
        what = f"the subset of least {tau.upper()}"
        sized = {"criterion": checked_criterion(tau, gamma)}
    else:
        what = f"the best {tau}"
        sized = {"taus": [tau], "gammas": checked_gammas([1.0 if gamma is None else gamma])}
    grids.check_count("--n-best", asked.n_best)
    limit = grids.parse_time_limit(asked.time_limit)
    settings = Settings(backend=asked.backend, time_limit=limit, **sized)
    most = "" if limit is None else f", at most {limit:g} s"
    with progress(asked.quiet, steps):
        source, levels = read(data, asked, steps)
        rules = column_constraints(source, asked, levels, settings.counts_coefficients)
        table = prepare(source, ALL_ROWS, Protocol(asked.protocol, asked.scale), asked=rules)
        units, largest = table.design.n_units, table.design.largest_size
        # Raise an InputError, before the search, where the table does not allow what is asked for.
        settings.check_constraints(table.design.constraints)
        if "taus" in sized:
            checked_taus(sized["taus"], largest, table.design.constraints, least=0)
        if asked.inference:
            covered_spread(table, table.problem(), sigma=None)
        deadline = settings.deadline()
        announce_limit(RunPlan.of(settings, table.data, deadline=deadline), units, asked)
        steps(f"proving {what} of {largest}{most}", 0, 1)
        assert deadline.stop is not None
        with interruptible(deadline.stop, gently=True) as stop:
            result = fit_table(table, settings, WINGS, deadline=deadline)
        interrupted = INTERRUPTED if stop.is_set() else ""
        ended = result.ended
        searches = f"The search took {ended.seconds:.3g} s and {ended.n_nodes:,} nodes."
        result.shown = Shown(searches=searches)
        # Other sizes are searched for once, where they are needed, and after Ctrl-C only estimated.
        remaining = 0.0 if interrupted else deadline.remaining()
        result.ended = ended._replace(remaining=remaining)
        steps(f"the best of every size up to {result.model.tau}{most}", 0, 1)
        if not interrupted:
            add_frames(result, asked)
        if asked.inference and not interrupted:
            steps(f"the responses that select the same columns{most}", 0, 1)
            tests = inference_of(result, level=0.95, sigma=None, seconds=remaining)
            result.answers["inference"] = tests
        audit = None
        if asked.audit and not interrupted and not no_audit(result):
            steps(f"the audit of the columns{most}", 0, 1)
            audit = audited(result, None, Limits(remaining, stop=deadline.stop))
        if asked.html is not None:
            _ = result.sizes  # A page shows every size, for which this searches.
    result.shown.seconds = steps.seconds
    if asked.certificate is not None and audit is None:  # Else that of the audit is written.
        model_certificate(result).save(asked.certificate)
    model, work = result.model, {"n_nodes": ended.n_nodes, "seconds": ended.seconds}
    entries = {"tau": model.tau, "gamma": model.own_gamma, "criterion": result.criterion}
    entries |= {"status": result.status, **work}
    deliver(result, asked, steps, entries, partial(_draw, result, asked.plot), interrupted, audit)
    if interrupted:
        return Exit.INTERRUPTED
    # Only a limit that the user has named makes what is open a fault.
    limited = asked.time_limit is not None and limit is not None
    return Exit.GAP if limited and not result.model.proved else Exit.DONE


def _draw(result: Result, path: Path) -> None:
    """Draw the picture that the option --plot asks for."""
    title = f"The least objective of each size: {result.name}, γ = {result.model.gamma:g}"
    plot_size_path(result.sizes, result.effects_by_size, result.features.names, str(path), title)
