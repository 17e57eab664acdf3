"""The command ``sparsecv fit``, which finds the best model of a size, or of least criterion."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ..cv.engine import interruptible
from ..cv.settings import Settings, checked_gammas, checked_taus
from ..design.design import Protocol
from ..design.prepare import ALL_ROWS, prepare
from ..plots.size_path import plot_size_path
from ..report.outcome import inference_of
from ..selection.certified_choice import model_certificate
from ..selection.criteria import checked_criterion
from ..selection.inference import covered_spread
from ..selection.result import Result, Shown
from ..selection.run import fit_table
from ..selection.study import Request
from . import column_options, grids, outputs
from .console import Steps, announce_limit, as_limit, open_console, progress, read, remarks
from .cv import besides
from .deliver import deliver
from .options import Exit

# The text that is printed beside the model when Ctrl-C ended its search.
INTERRUPTED = "the best model found when Ctrl-C came"


def fit(data: str, **given: Any) -> Exit:
    """Fit the best model of at most τ features, or the one of least criterion."""

    asked = SimpleNamespace(**given)
    steps = Steps()
    console = open_console(asked.quiet, asked.json_file)
    outputs.refuse_unwritable(asked)
    tau, gamma = grids.parse_tau(asked.tau), asked.gamma
    sized: dict[str, Any]
    if isinstance(tau, str):
        what = f"the subset of least {tau.upper()}"
        sized = {"criterion": checked_criterion(tau, gamma)}
    else:
        what = f"the best {tau}"
        sized = {"taus": [tau], "gammas": checked_gammas([1.0 if gamma is None else gamma])}
    grids.check_count("--n-best", asked.n_best)
    settings = Settings(backend=asked.backend, time_limit=as_limit(asked.time_limit))
    with progress(asked.quiet, steps):
        source = read(data, given, steps)
        how: Any = {"asked": column_options.column_constraints(source, given)}
        ready = prepare(source, ALL_ROWS, Protocol(asked.protocol, asked.scale), **how)
        units, limit = ready.design.n_units, settings.time_limit
        settings.check_constraints(ready.design.constraints)
        if "taus" in sized:
            checked_taus(sized["taus"], units, ready.design.constraints)
        if asked.inference:
            covered_spread(ready, ready.problem(), None)
        deadline = settings.deadline()
        request = Request(settings, deadline=deadline, **sized)
        announce_limit(request.plan(ready.data, asked.protocol), units, asked.time_limit)
        most = "" if limit is None else f", at most {limit:g} s"
        steps(f"proving {what} of {units}{most}", 0, 1)
        assert deadline.stop is not None
        with interruptible(deadline.stop, gently=True) as stop:
            found = fit_table(ready, request)
        note = INTERRUPTED if stop.is_set() else ""
        seconds, nodes = found.ended.seconds, found.ended.n_nodes
        searches = f"The search took {seconds:.3g} s and {nodes:,} nodes."
        found.shown = Shown(remarks=list(remarks(source)), searches=searches)
        # Other sizes are searched for once, where they are needed, and after Ctrl-C only estimated.
        found.ended = found.ended._replace(remaining=0.0 if note else deadline.remaining())
        steps(f"the best of every size up to {found.model.tau}{most}", 0, 1)
        if not note:
            besides(found, asked)
            if asked.inference:
                steps(f"the responses that select the same columns{most}", 0, 1)
                left = found.ended.remaining
                found.answers["inference"] = inference_of(found, 0.95, None, left)
        if asked.html is not None:
            _ = found.sizes  # A page shows every size, for which this searches.
    found.shown.seconds = steps.seconds
    more = {
        "tau": found.model.tau,
        "gamma": found.model.gamma,
        "criterion": found.criterion,
        "status": found.status,
        "n_nodes": nodes,
        "seconds": seconds,
    }
    if asked.certificate is not None:
        model_certificate(found).save(asked.certificate)
    draw = partial(_draw, found, asked.plot)
    deliver(asked, console, ready, found, more, draw, steps, note=note)
    named = asked.time_limit is not None and settings.time_limit is not None
    status = Exit.GAP if named and not found.model.proved else Exit.DONE
    return Exit.INTERRUPTED if note else status


def _draw(found: Result, path: Path) -> None:
    """Draw the picture that the option --plot asks for."""
    title = f"{found.name}, γ = {found.model.gamma:g}"
    plot_size_path(found.sizes, found.design.raw_spread, found.names, str(path), title)
