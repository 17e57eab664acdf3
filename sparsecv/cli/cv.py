"""``sparsecv cv``."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InputError
from .options import (
    DONE,
    GAP,
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
