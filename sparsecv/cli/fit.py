"""The command ``sparsecv fit``, which finds the best model of at most τ features at one γ."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from . import answers
from . import column_options as asks
from . import options as shared

if TYPE_CHECKING:
    from rich.console import Console

    from ..design.model import FittedModel
    from ..design.prepare import Standardised
    from ..selection.sizes import SizeModels
    from ..solvers.core.problem import SparseRidgeProblem
    from ..solvers.core.result import Proof

GROUPS = shared.option(
    str | None, "Column of groups, as in cv: no feature. A fit has no folds to keep whole."
)
TABLE = shared.of_table(order=None, groups=GROUPS)
Plot = Annotated[
    Path | None,
    typer.Option(help="Picture of every size up to τ: training objectives and coefficients."),
]
INTERRUPTED = "the best model found when Ctrl-C came"


@shared.with_options(asks.OPTIONS | answers.WITHOUT_FOLDS, TABLE, before="backend")
def fit(
    data: shared.Data,
    tau: Annotated[int, typer.Option(help="Largest number of features.")],
    gamma: Annotated[float, typer.Option(help="Ridge weight γ of (γ/2)||β||².")] = 1.0,
    backend: shared.BackendName = "auto",
    tol: Annotated[float, typer.Option(help="Relative gap at which to stop.")] = 1e-6,
    protocol: shared.ProtocolName = "honest",
    scale: shared.Scale = "unit-variance",
    no_intercept: shared.NoIntercept = False,
    encoding: shared.Encoding = "utf-8",
    time_limit: shared.TimeLimit = "auto",
    jobs: shared.Jobs = 1,
    json_file: shared.Json = None,
    save: shared.Save = None,
    plot: Plot = None,
    html: shared.Html = None,
    table: shared.WholeTables = False,
    quiet: shared.Quiet = False,
    **asking: Any,
) -> None:
    """Fit the best model of at most τ features, with its certificate."""
    from ..cv.engine import interruptible
    from ..cv.settings import Settings, checked_gammas, checked_taus
    from ..design.design import Protocol
    from ..design.prepare import standardise
    from ..selection.sizes import models_at_gamma
    from ..solvers.api import best_support
    from ..solvers.backends.optional_dependencies import SolverUnavailable
    from ..solvers.core.limits import StopFlag
    from . import documents

    wanted = answers.taken(asking, save)
    console = shared.open_console(quiet, json_file, wanted.sql)
    shared.check_pictures(plot, html)
    shared.check_files(json=json_file, save=save, html=html, sql=wanted.sql, plot=plot)
    checked_gammas([gamma])
    settings = Settings(backend=backend, time_limit=shared.as_limit(time_limit))
    if not tol >= 0:
        raise InputError(f"--tol must be >= 0; got {tol}")
    with shared.progress(quiet) as bar:
        source = shared.read(data, quiet, encoding, asking, bar)
        asked = asks.asked_of(source, quiet, **asking)
        reading: Any = {"progress": partial(bar, "reading rows"), "asked": asked}
        ready = standardise(source, Protocol(protocol, scale, not no_intercept), **reading)
        constraints = ready.problem.constraints
        settings.check_constraints(constraints)
        checked_taus([tau], ready.problem.p, constraints)
        shared.announce_limit(constraints.n_units, settings.time_limit)
        limit = settings.longest
        most = "" if limit is None else f", at most {limit:g} s"
        bar(f"proving the best {tau} of {asks.selectable(ready.design)}{most}", 0, 1)
        problem = ready.problem.replace(gamma=gamma, tau=tau)
        try:
            how: Any = {"backend": backend, "time_limit": limit, "tol": tol, "n_jobs": jobs}
            with interruptible(StopFlag(), gently=True) as stop:
                solution = best_support(problem, **how, stop=stop)
        except SolverUnavailable as error:
            raise InputError(str(error)) from error
        proved = str(solution.status) == "optimal"
        model = ready.model(gamma, solution.support, solution.lower_bound, proved)
        note = INTERRUPTED if stop.is_set() else ""
        # Other sizes are searched for once, where they are needed, and after Ctrl-C only estimated.
        own = problem, ready.design, tau, model, 0.0 if note else limit
        every = cache(partial(models_at_gamma, *own))
        bar(f"the best of every size up to {tau}{most}", 0, 1)
        found = {} if note else answers.without_folds(ready, problem, every, limit, wanted)
    shared.save_model(save, ready, model, tau, gamma, note, sql=wanted.sql)
    if json_file is not None:
        document = documents.fit_document(ready, model, tau, gamma, solution, found)
        shared.write_json(json_file, document)
    with shared.progress(quiet) as bar:
        bar(f"reports and pictures of every size up to {tau}", 0, 1)
        _draw(ready, problem, every, model, (plot, html), found)
    _print(console, ready, problem, model, solution, note, found, table)
    raise typer.Exit(_status(settings.time_limit, proved, note))


def _status(limit: float | str | None, proved: bool, note: str) -> shared.Exit:
    """The exit status: GAP where a limit that the user named has left the model unproved.

    note: Not empty after Ctrl-C.
    """
    if note:
        return shared.Exit.INTERRUPTED
    named = limit not in ("auto", None)
    return shared.Exit.GAP if named and not proved else shared.Exit.DONE


def _print(
    console: Console,
    ready: Standardised,
    problem: SparseRidgeProblem,
    model: FittedModel,
    solution: Proof,
    note: str,
    found: dict[str, Any],
    whole: bool,
) -> None:
    """Print the model, what the user asked for besides, and the work done.

    problem: All rows, with the γ and τ of the fit.
    note: Not empty after Ctrl-C.
    found: What the user asked for besides.
    whole: Print every table to its last row.
    """
    from . import report

    if note:
        console.print(f"[bold]interrupted[/]: {note}")
    report.print_fit(console, ready, model, problem.tau, problem.given_gamma)
    report.print_model(console, ready, model, whole)
    answers.print_answers(console, ready.names, found, problem.tau, whole)
    work = f"{solution.status}: {solution.n_nodes:,} nodes, {solution.seconds:.3f} s"
    console.print(work, style="dim")
    report.print_signs(console, not model.proved)


def _draw(
    ready: Standardised,
    problem: SparseRidgeProblem,
    every: Callable[[], SizeModels],
    model: FittedModel,
    files: tuple[Path | None, Path | None],
    found: dict[str, Any],
) -> None:
    """Draw the picture that the option --plot asks for, and write the page of --html.

    problem: All rows, with the γ and τ of the fit.
    every: Gives the model of every size.
    files: The files of --plot and --html.
    found: What the user asked for besides, such as the n best subsets.
    """
    plot, html = files
    source, gamma = ready.source, problem.given_gamma
    if plot is not None:
        from ..plots.size_path import plot_size_path
        from ..selection.sizes import forward_steps

        sizes, title = every(), f"{source.name}, γ = {gamma:g}"
        steps = forward_steps(problem, ready.design, sizes)
        spread = ready.design.raw_spread
        plot_size_path(sizes, steps, spread, ready.names, str(plot), title)
    if html is None:
        return
    from ..plots.findings import Findings, whole_report
    from ..plots.page import write

    title = f"{source.name}: {model.support.size} of {ready.design.p} columns"
    known = title, ready.names, source.target_name, ready.total, ready.design, model, gamma, every()
    other = found.get("alternatives_")
    write(html, whole_report(Findings(*known, alternatives=other)))
