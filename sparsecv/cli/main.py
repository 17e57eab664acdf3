"""The command line: ``sparsecv cv``, ``fit``, ``stability``, ``benchmark`` and ``datasets``."""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from .. import __version__
from ..errors import InputError
from .options import (
    BackendName,
    Data,
    Drop,
    Json,
    NoIntercept,
    OneHot,
    ProtocolName,
    Quiet,
    Scale,
    Target,
    TimeLimit,
    as_protocol,
    check_jobs,
    check_json,
    names_in,
    note,
    open_console,
    progress,
    write_json,
)
from .stability import stability

DONE, GAP, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Exact cross-validation of best-subset ridge regression.",
)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        typer.echo(f"sparsecv {__version__}")
        raise typer.Exit(DONE)


@app.command("cv")
def cv(
    data: Data,
    target: Target = None,
    folds: Annotated[str, typer.Option(help="loo, a number K or size:M.")] = "5",
    tau: Annotated[str, typer.Option(help="all, A:B or a list t1,t2.")] = "all",
    gamma: Annotated[
        str,
        typer.Option(
            help="A number, a list, LO:HI:N spaced in the logarithm, or auto (alternate)."
        ),
    ] = "1e-4:1e4:10",
    method: Annotated[
        str,
        typer.Option(
            help="exact: h at every τ; search: the best τ alone, by bounds and few problems "
            "(Algorithm 1); bounds: its first phase; grid: one problem per fold and τ; auto: "
            "exact, or grid where --backend names an outside solver."
        ),
    ] = "auto",
    tol: Annotated[float, typer.Option(help="Relative tolerance of --method search.")] = 0.01,
    bounds: Annotated[
        str, typer.Option(help="Of search and bounds: best, paper or paper-exact.")
    ] = "best",
    mio_limit: Annotated[
        int | None, typer.Option(help="Most problems solved per γ by --method search.")
    ] = None,
    backend: BackendName = "auto",
    rule: Annotated[
        str,
        typer.Option(
            help="What the model is chosen by: minimum, one-se, stability, corrected, "
            "repeated or averaged; auto: repeated for K folds of up to 30 columns, else minimum."
        ),
    ] = "auto",
    repeats: Annotated[
        int, typer.Option(help="Partitions into folds that --rule repeated and averaged look at.")
    ] = 6,
    protocol: ProtocolName = "honest",
    scale: Scale = "unit-variance",
    no_intercept: NoIntercept = False,
    one_hot: OneHot = False,
    drop: Drop = None,
    time_limit: TimeLimit = None,
    seed: Annotated[int, typer.Option(help="Of the shuffle of K folds.")] = 0,
    jobs: Annotated[int, typer.Option(help="Threads; -1 uses every core.")] = 1,
    json_file: Json = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Picture of the curves; of a search: its bounds (.gif: a film, 300 frames)."
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder that keeps finished γ; a rerun goes on from it.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Print the exact CV error at every sparsity, choose the best and fit the model."""
    from ..cv.engine import Settings
    from ..plots import curves as plots
    from ..selection import pipeline
    from ..selection.evidence import checked_repeats
    from ..selection.rules import checked_rule
    from ..solvers import Status, worst
    from ..tables.datasets import resolve
    from . import grids as options
    from . import report

    started = time.perf_counter()
    console = open_console(quiet)
    if plot is not None:
        plots.check_writable(str(plot), film=method in ("search", "bounds"))
    check_json(json_file)
    gammas, taus = options.parse_gammas(gamma), options.parse_taus(tau)
    check_jobs(jobs)
    if not 0 <= seed < 2**32:
        raise InputError(f"--seed must lie in 0..2^32-1; got {seed}")
    settings = Settings(method, backend, time_limit, jobs, tol, bounds, mio_limit)
    checked_repeats(repeats)
    checked_rule(rule)
    layout = as_protocol(protocol, scale, no_intercept)
    source = resolve(str(data), target=target, one_hot=one_hot, drop=names_in(drop))
    with progress(quiet) as bar:
        prepared = pipeline.prepare(
            source, folds, layout, seed=seed, progress=lambda i, n: bar("reading rows", i, n)
        )
        notice, limit = pipeline.size_notice(prepared.design.p, time_limit)
        if notice is not None:
            note(notice)
            settings = replace(settings, time_limit=limit)
        ruled = pipeline.run_rule(
            prepared,
            gammas,
            taus,
            settings,
            rule,
            repeats,
            seed,
            checkpoint=None if checkpoint is None else str(checkpoint),
            progress=bar,
        )
    result, choices, rule = ruled.result, ruled.choices, ruled.rule
    model = prepared.chosen(result, choices[rule])
    if result.trace:
        report.print_trace(console, result)
    report.print_cv(console, prepared, result)
    report.print_choices(console, choices, rule)
    report.print_model(console, prepared, model)
    if json_file is not None:
        document = report.cv_document(
            prepared,
            result,
            model,
            choices,
            rule=rule,
            status=worst([result.status, ruled.status]),
            method=method,
            backend=backend,
            seconds=time.perf_counter() - started,
        )
        write_json(json_file, document)
    if plot is not None:
        _draw(result, plot, f"{source.name}, {folds} folds".replace("loo folds", "leave-one-out"))
    finished = result.finished or (method == "bounds" and result.status is Status.MIO_LIMIT)
    finished = finished and ruled.status is Status.OPTIMAL
    raise typer.Exit(DONE if finished and model.proved else GAP)


@app.command("fit")
def fit(
    data: Data,
    tau: Annotated[int, typer.Option(help="Largest number of features.")],
    gamma: Annotated[float, typer.Option(help="Ridge weight γ of (γ/2)||β||².")] = 1.0,
    target: Target = None,
    backend: BackendName = "auto",
    tol: Annotated[float, typer.Option(help="Relative gap at which to stop.")] = 1e-6,
    protocol: ProtocolName = "honest",
    scale: Scale = "unit-variance",
    no_intercept: NoIntercept = False,
    one_hot: OneHot = False,
    drop: Drop = None,
    time_limit: TimeLimit = None,
    jobs: Annotated[int, typer.Option(help="Threads of the search; -1 uses every core.")] = 1,
    json_file: Json = None,
    quiet: Quiet = False,
) -> None:
    """Fit the best model of at most τ features, with its certificate."""
    from ..cv.engine import Settings, checked_gammas, checked_taus
    from ..selection import pipeline
    from ..solvers import Status, solve
    from ..tables.datasets import resolve
    from . import report

    console = open_console(quiet)
    check_json(json_file)
    checked_gammas([gamma])
    check_jobs(jobs)
    Settings(backend=backend, time_limit=time_limit)
    if not tol >= 0:
        raise InputError(f"--tol must be >= 0; got {tol}")
    source = resolve(str(data), target=target, one_hot=one_hot, drop=names_in(drop))
    with progress(quiet) as bar:
        prepared = pipeline.prepare(
            source,
            "2",
            as_protocol(protocol, scale, no_intercept),
            progress=lambda i, n: bar("reading rows", i, n),
        )
        checked_taus([tau], prepared.design.p)
        notice, limit = pipeline.size_notice(prepared.design.p, time_limit)
        if notice is not None:
            note(notice)
        problem = prepared.data.full().replace(gamma=gamma, tau=tau)
        try:
            solution = solve(problem, backend=backend, time_limit=limit, tol=tol, n_jobs=jobs)
        except ValueError as error:  # γ below what double precision can tell from zero
            raise InputError(str(error)) from error
    proved = solution.status is Status.OPTIMAL
    model = prepared.model(gamma, solution.support, solution.lower_bound, proved)
    report.print_model(console, prepared, model)
    console.print(
        f"{solution.status}: {solution.n_nodes:,} nodes, {solution.seconds:.3f} s", style="dim"
    )
    if json_file is not None:
        document = {
            "sparsecv": __version__,
            "dataset": source.name,
            "n": source.n,
            "p": prepared.design.p,
            "tau": tau,
            "gamma": gamma,
            "model": report.model_document(prepared, model),
            "status": str(solution.status),
            "n_nodes": solution.n_nodes,
            "seconds": solution.seconds,
            "versions": pipeline.versions(),
        }
        write_json(json_file, document)
    raise typer.Exit(DONE if proved else GAP)


app.command("stability")(stability)


@app.command("benchmark")
def benchmark(
    names: Annotated[
        str, typer.Option("--datasets", help="Data sets, comma-separated.")
    ] = "diabetes11,housing,servo,autompg",
    folds: Annotated[str, typer.Option(help="loo, K or size:M, comma-separated.")] = "loo,size:10",
    gamma: Annotated[str, typer.Option(help="As in cv.")] = "0.01,0.02,0.05,0.1,0.2,0.5,1",
    ways: Annotated[
        str, typer.Option(help="Of grid, paper, paper-exact, best (Algorithm 1) and exact.")
    ] = "grid,paper,paper-exact,best,exact",
    scale: Annotated[str, typer.Option(help="unit-norm or unit-variance.")] = "unit-norm",
    tol: Annotated[float, typer.Option(help="Relative tolerance of Algorithm 1.")] = 0.01,
    backend: BackendName = "auto",
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds for each way at each γ.")
    ] = None,
    csv_file: Annotated[Path | None, typer.Option("--csv", help="Write the table here.")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Picture of the reductions over γ (Figures 2 and 3).")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Compare the grid with Algorithm 1 and the shared trees: problems, nodes, seconds.

    The main paper's Section 4.1 under its own protocol (standardised once, no intercept in the
    folds). The data sets are read from the folder SPARSECV_DATA names.
    """
    from ..cv.engine import Settings
    from ..plots import curves as plots
    from . import benchmark as comparison
    from . import grids as options
    from . import report

    console = open_console(quiet)
    if plot is not None:
        plots.check_writable(str(plot))
    if csv_file is not None and not csv_file.absolute().parent.is_dir():
        raise InputError(f"--csv {csv_file}: the folder does not exist")
    gammas = options.parse_gammas(gamma)
    if gammas is None:
        raise InputError("--gamma auto: a benchmark needs values of gamma")
    Settings(backend=backend, time_limit=time_limit, tol=tol)
    rows = []
    with progress(quiet) as bar:
        found = comparison.run(
            names_in(names),
            names_in(folds),
            gammas,
            names_in(ways),
            scale=scale,
            tol=tol,
            backend=backend,
            time_limit=time_limit,
        )
        for row in found:
            rows.append(row)
            bar(f"{row.dataset} {row.folds} γ = {row.gamma:g} {row.way}", len(rows), len(rows) + 1)
            if csv_file is not None:  # a run of hours that is cut short keeps what it has
                comparison.write_csv(rows, csv_file)
    report.print_benchmark(console, rows)
    if plot is not None:
        comparison.plot(rows, str(plot))
    raise typer.Exit(DONE if all(row.status == "optimal" for row in rows) else GAP)


@app.command("datasets")
def datasets(
    action: Annotated[str, typer.Argument(help="list or show.")] = "list",
    name: Annotated[str | None, typer.Argument(help="Data set to show.")] = None,
) -> None:
    """List the data sets sparsecv knows, or show one."""
    from rich.table import Table

    from ..tables.datasets import describe, list_datasets

    console = open_console(False)
    if action == "show":
        if name is None:
            raise InputError("datasets show needs a NAME; sparsecv datasets lists them")
        for key, value in vars(describe(name)).items():
            if value not in (None, ""):
                console.print(f"{key:>10}  {value}", markup=False, soft_wrap=True)
        return
    if action != "list" or name is not None:
        given = action if name is None else f"{action} {name}"
        raise InputError(f"datasets knows 'list' and 'show NAME'; got {given!r}")
    table = Table()
    for column in ("name", "n", "p", "task", "response", "here"):
        table.add_column(column, justify="right" if column in "np" else "left")
    for info in list_datasets():
        here = "built in" if info.builtin else ("yes" if info.available else "no")
        cells = (info.name, info.n, info.p, info.task, info.response, here)
        table.add_row(*("" if cell is None else str(cell) for cell in cells))
    console.print(table)
    console.print(
        "'here: no' means: set SPARSECV_DATA to a folder that holds the file", style="dim"
    )


def _draw(result: Any, plot: Path, title: str) -> None:
    """Curves, or for a search of the best τ its bounds: two moments of them, or a film."""
    from ..plots import bounds as bound_plots
    from ..plots import curves as plots

    chosen = result.by_gamma[result.best().gamma_index]
    if not chosen.history:
        plots.plot_cv(result, str(plot), title)
    elif plot.suffix.lower() == ".gif":
        bound_plots.animate_bounds(chosen, str(plot), title, bound_plots.MOST_FRAMES)
    else:
        bound_plots.plot_bounds(chosen, str(plot), title)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status and calls ``sys.exit`` when run as a script."""
    warnings.showwarning = _one_line_warning
    np.seterr(all="ignore")  # kernels report what matters themselves
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal that cannot show γ gets a question mark
            stream.reconfigure(errors="replace")
    given = sys.argv[1:] if arguments is None else arguments
    try:
        status = app(args=given or ["--help"], prog_name="sparsecv", standalone_mode=False)
    except InputError as error:
        status = _complain(str(error))
    except (KeyboardInterrupt, typer.Abort):
        status = INTERRUPTED
    except Exception as error:
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        status = _complain(message())
    status = status if isinstance(status, int) else DONE
    if status == INTERRUPTED:
        print("sparsecv: interrupted", file=sys.stderr)
    if arguments is None:
        sys.exit(status)
    return status


def _complain(text: str) -> int:
    print(f"sparsecv: error: {' '.join(text.split())}", file=sys.stderr)
    return BAD_INPUT


def _one_line_warning(message: Any, *_: Any, **__: Any) -> None:
    print(f"warning: {message}", file=sys.stderr)


if __name__ == "__main__":
    main()
