"""``sparsecv cv``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ..errors import InputError
from .options import (
    DONE,
    GAP,
    AllLevels,
    BackendName,
    Dask,
    Data,
    Drop,
    Encoding,
    Groups,
    Json,
    NoIntercept,
    OneHot,
    ProtocolName,
    Quiet,
    Save,
    Scale,
    Target,
    TimeLimit,
    Weights,
    announce_limit,
    as_limit,
    as_protocol,
    check_file,
    check_jobs,
    note,
    open_console,
    progress,
    read,
    save_model,
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
        Literal["auto", "exact", "search", "bounds", "grid"],
        typer.Option(
            help="exact: h at every τ; search: the best τ alone, by bounds and few problems "
            "(Algorithm 1); bounds: its first phase; grid: one problem per fold and τ; auto: "
            "exact, or grid where --backend names an outside solver."
        ),
    ] = "auto",
    tol: Annotated[float, typer.Option(help="Relative tolerance of --method search.")] = 0.01,
    bounds: Annotated[
        Literal["best", "paper", "paper-exact"], typer.Option(help="Of search and bounds.")
    ] = "best",
    mio_limit: Annotated[
        int | None, typer.Option(help="Most problems solved per γ by --method search.")
    ] = None,
    backend: BackendName = "auto",
    rule: Annotated[
        Literal[
            "auto",
            "minimum",
            "one-se",
            "stability",
            "corrected",
            "repeated",
            "averaged",
            "projected",
        ],
        typer.Option(
            help="What the model is chosen by; auto: repeated for K folds of up to 30 "
            "columns, else minimum."
        ),
    ] = "auto",
    repeats: Annotated[
        int,
        typer.Option(help="Partitions that repeated, averaged and projected look at."),
    ] = 6,
    compare: Annotated[
        bool, typer.Option("--compare", help="Also show what every other rule would choose.")
    ] = False,
    prove: Annotated[
        str, typer.Option(help="Beyond 45 columns: choice, or all (every error).")
    ] = "choice",
    protocol: ProtocolName = "honest",
    scale: Scale = "unit-variance",
    no_intercept: NoIntercept = False,
    one_hot: OneHot = False,
    all_levels: AllLevels = False,
    drop: Drop = None,
    weights: Weights = None,
    groups: Groups = None,
    encoding: Encoding = "utf-8",
    time_limit: TimeLimit = "auto",
    seed: Annotated[int, typer.Option(help="Of the shuffle of K folds.")] = 0,
    jobs: Annotated[int, typer.Option(help="Threads; -1 uses every core.")] = 1,
    json_file: Json = None,
    save: Save = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Picture of the curves; of a search: its bounds (.gif: a film, 300 frames)."
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder that keeps finished γ; a rerun goes on from it.")
    ] = None,
    dask: Dask = None,
    quiet: Quiet = False,
) -> None:
    """Print the exact CV error at every sparsity, choose the best and fit the model."""
    from ..cv.settings import Settings
    from ..design.prepare import prepare
    from ..plots import curves as plots
    from ..selection.rules import checked_rule, choose, chosen_model, refuse_rule
    from ..selection.study import Study, checked_repeats
    from ..solvers import Limits, Status, on_client
    from . import grids as options
    from . import report, sizes

    clock, console = Limits(), open_console(quiet, json_file)
    if plot is not None:
        plots.check_writable(str(plot), film=method in ("search", "bounds"))
    check_file("--json", json_file)
    check_file("--save", save)
    gammas, taus = options.parse_gammas(gamma), options.parse_taus(tau)
    check_jobs(jobs)
    if not 0 <= seed < 2**32:
        raise InputError(f"--seed must lie in 0..2^32-1; got {seed}")
    settings = Settings(method, backend, as_limit(time_limit), jobs, tol, bounds, mio_limit, prove)
    checked_repeats(repeats)
    checked_rule(rule)
    layout = as_protocol(protocol, scale, no_intercept)
    source = read(data, target, one_hot, all_levels, drop, encoding, quiet, weights, groups)
    with on_client(dask), progress(quiet) as bar:
        prepared = prepare(
            source,
            folds,
            layout,
            seed=seed,
            progress=lambda i, n: bar("reading rows", i, n),
            n_jobs=jobs,
            announce=None if quiet else note,
        )
        announce_limit(prepared.design.p, settings.time_limit)
        refuse_rule(rule, prepared.data, settings)
        study = Study(
            prepared.data,
            prepared.design,
            gammas,
            taus,
            settings,
            repeats=repeats,
            seed=seed,
            checkpoint=checkpoint,
            progress=bar,
        )
        try:
            used, choices = choose(study, rule, compare=compare)
            model = chosen_model(study, choices[used])
        except KeyboardInterrupt as interrupt:
            _tell_partial(console, prepared, interrupt, json_file)
            raise
    result = study.surface
    if study.reused:
        note(f"--checkpoint: {len(study.reused)} γ taken over from {checkpoint}")
    if result.trace:
        report.print_trace(console, result)
    report.print_terms(console)
    report.print_cv(console, prepared, result, choices[used])
    report.print_choices(console, choices, used)
    projection = choices[used].projection
    if projection is not None:
        sizes.print_sizes(console, prepared.names, projection)
    report.print_model(
        console, prepared, model, "training" if projection is None else "the projection's"
    )
    if save is not None:
        save_model(save, source, model, choices[used].tau, choices[used].gamma)
    if json_file is not None:
        document = report.cv_document(
            prepared,
            result,
            model,
            choices,
            rule=used,
            status=study.status,
            method=method,
            backend=backend,
            seconds=clock.elapsed(),
        )
        if projection is not None:
            document |= sizes.sizes_document(prepared.names, projection)
        write_json(json_file, document)
    if plot is not None:
        kind = "leave-one-out" if folds == "loo" else f"{folds} folds"
        _draw(study, choices[used], plot, f"{source.name}, {kind}")
    finished = result.finished or (method == "bounds" and result.status is Status.MIO_LIMIT)
    finished = finished and choices[used].certified
    raise typer.Exit(DONE if finished and model.proved else GAP)


def _tell_partial(
    console: Any, prepared: Any, interrupt: KeyboardInterrupt, json_file: Path | None
) -> None:
    """Print and keep the intervals that are known when Ctrl-C comes."""
    from . import report

    result = getattr(interrupt, "partial", None)
    if result is None:
        return
    report.print_cv(console, prepared, result, None)
    if json_file is not None:
        write_json(json_file, report.partial_document(prepared, result))


def _draw(study: Any, choice: Any, plot: Path, title: str) -> None:
    """Curves against τ, or of a search its bounds: two moments of them, or a film."""
    from ..plots import bounds as bound_plots
    from ..plots import curves as plots
    from ..plots.sizes import linear_peers, plot_sizes
    from ..selection.projection import PARTITIONS

    result, found = study.surface, choice.projection
    chosen = result.by_gamma[choice.gamma_index]
    if found is not None:
        every = [one.folds for one in study.evaluated[:PARTITIONS]]
        peers = linear_peers(study.data, every, found.sizes)
        plot_sizes(found, str(plot), title, peers=peers)
    elif not chosen.history:
        pair = (choice.gamma_index, choice.tau_index) if choice.is_pair else None
        plots.plot_cv(result, str(plot), title, chosen=pair)
    elif plot.suffix.lower() == ".gif":
        bound_plots.animate_bounds(chosen, str(plot), title, bound_plots.MOST_FRAMES)
    else:
        bound_plots.plot_bounds(chosen, str(plot), title)
