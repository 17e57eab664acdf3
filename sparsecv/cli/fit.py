"""The command ``sparsecv fit``, which finds the best model of at most τ features at one γ."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import typer

from ..errors import InputError
from .console import announce_limit, as_limit, open_console, progress, read
from .cv import of_sizes, remarks
from .options import Exit, option, takes

if TYPE_CHECKING:
    from ..plots.sections import Result
    from ..solvers.core.problem import SparseRidgeProblem

INTERRUPTED = "the best model found when Ctrl-C came"


@takes(
    "data target drop one_hot dates weights groups missing encoding "
    "tau gamma n_best criteria backend tol time_limit protocol scale "
    "json_file save sql plot html table jobs quiet "
    "include exclude split_factors heredity positive constraints",
    tau=option(int, ..., "Largest number of features."),
    gamma=option(float, 1.0, "Ridge weight γ of (γ/2)||β||²."),
    tol=option(float, 1e-6, "Relative gap at which to stop."),
    groups=option(
        str | None,
        None,
        "Column of groups, as in cv: no feature. A fit has no folds.",
    ),
    plot=option(
        Path | None, None, "Picture of every size up to τ: training objectives and coefficients."
    ),
)
def fit(data: str, **given: Any) -> None:
    """Fit the best model of at most τ features, with its certificate."""
    from ..cv.engine import interruptible
    from ..cv.settings import Settings, checked_gammas, checked_taus
    from ..design.design import Protocol
    from ..design.model import fitted_model
    from ..design.prepare import prepare
    from ..plots.conditions import selectable
    from ..plots.details import sections
    from ..plots.sections import Result
    from ..selection.sizes import models_at_gamma
    from ..solvers.api import best_support
    from ..solvers.backends.optional_dependencies import SolverUnavailable
    from ..solvers.core.limits import StopFlag
    from . import column_options, documents, files, grids, screen

    asked = SimpleNamespace(**given)
    console = open_console(asked.quiet, asked.json_file, asked.sql)
    files.check(asked)
    tau, gamma = asked.tau, asked.gamma
    checked_gammas([gamma])
    grids.check_count("--n-best", asked.n_best)
    settings = Settings(backend=asked.backend, time_limit=as_limit(asked.time_limit))
    if not asked.tol >= 0:
        raise InputError(f"--tol must be >= 0; got {asked.tol}")
    with progress(asked.quiet) as bar:
        source = read(data, given, bar)
        rules = column_options.asked_of(source, given)
        reading: Any = {"progress": partial(bar, "reading rows"), "asked": rules}
        ready = prepare(source, None, Protocol(asked.protocol, asked.scale), **reading)
        design, whole = ready.design, ready.data.full()
        settings.check_constraints(whole.constraints)
        checked_taus([tau], whole.p, whole.constraints)
        announce_limit(whole.constraints.n_units, settings.time_limit)
        limit = settings.longest
        most = "" if limit is None else f", at most {limit:g} s"
        bar(f"proving the best {tau} of {selectable(design)}{most}", 0, 1)
        problem = whole.replace(gamma=gamma, tau=tau)
        try:
            how: Any = {"backend": asked.backend, "time_limit": limit, "tol": asked.tol}
            with interruptible(StopFlag(), gently=True) as stop:
                solution = best_support(problem, n_jobs=asked.jobs, **how, stop=stop)
        except SolverUnavailable as error:
            raise InputError(str(error)) from error
        proved = str(solution.status) == "optimal"
        model = fitted_model(design, problem, solution.support, solution.lower_bound, proved)
        note = INTERRUPTED if stop.is_set() else ""
        # Other sizes are searched for once, where they are needed, and after Ctrl-C only estimated.
        own = problem, design, tau, model, 0.0 if note else limit
        every = cache(partial(models_at_gamma, *own))
        work = f"{solution.status}: {solution.n_nodes:,} nodes, {solution.seconds:.3f} s"
        known = source.name, ready.names, source.target_name, design, model
        found = Result(*known, tau, gamma, every, remarks=list(remarks(source)), work=work)
        bar(f"the best of every size up to {tau}{most}", 0, 1)
        if not note:
            _besides(found, problem, limit, asked)
    files.save_model(asked, ready, found, note=note)
    if asked.json_file is not None:
        files.write_json(asked.json_file, documents.fit_document(ready, found, solution))
    with progress(asked.quiet) as bar:
        bar(f"reports and pictures of every size up to {tau}", 0, 1)
        files.write_page(asked.html, found)
        if asked.plot is not None:
            _draw(found, problem, asked.plot)
    if note:
        console.print(f"[bold]interrupted[/]: {note}")
    if not found.answers:
        found.sizes = None  # The screen shows what was asked for, and nothing is searched for it.
    screen.show(console, sections(found, whole=asked.table), asked.table)
    raise typer.Exit(_status(settings.time_limit, proved, note))


def _besides(
    found: Result, problem: SparseRidgeProblem, seconds: float | None, asked: SimpleNamespace
) -> None:
    """Add the tables that are asked for, of sizes up to τ.

    problem: All rows, with the γ and τ of the fit.
    seconds: Limit of the search for the n best subsets.
    """
    from ..selection.alternatives import alternatives_table, ranked_by_size

    assert found.sizes is not None
    if asked.criteria:
        found.answers |= of_sizes(problem, found, found.sizes())
    if asked.n_best is not None:
        sizes, design = found.sizes(), found.design
        ranked = ranked_by_size(problem, design, sizes, asked.n_best, seconds)
        found.answers["alternatives_"] = alternatives_table(problem, design, sizes, ranked, None)


def _status(limit: float | str | None, proved: bool, note: str) -> Exit:
    """The exit status: GAP where a limit that the user named has left the model unproved.

    note: Not empty after Ctrl-C.
    """
    if note:
        return Exit.INTERRUPTED
    named = limit not in ("auto", None)
    return Exit.GAP if named and not proved else Exit.DONE


def _draw(found: Result, problem: SparseRidgeProblem, path: Path) -> None:
    """Draw the picture that the option --plot asks for.

    problem: All rows, with the γ and τ of the fit.
    """
    from ..plots.size_path import plot_size_path
    from ..selection.sizes import forward_steps

    assert found.sizes is not None
    sizes, title = found.sizes(), f"{found.name}, γ = {found.gamma:g}"
    steps = forward_steps(problem, found.design, sizes)
    plot_size_path(sizes, steps, found.design.raw_spread, found.names, str(path), title)
