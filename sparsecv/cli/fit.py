"""``sparsecv fit``."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import __version__
from ..errors import InputError
from .options import (
    DONE,
    GAP,
    AllLevels,
    BackendName,
    Data,
    Drop,
    Encoding,
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
    open_console,
    progress,
    read,
    save_model,
    write_json,
)


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
    all_levels: AllLevels = False,
    drop: Drop = None,
    weights: Weights = None,
    encoding: Encoding = "utf-8",
    time_limit: TimeLimit = "auto",
    jobs: Annotated[int, typer.Option(help="Threads of the search; -1 uses every core.")] = 1,
    json_file: Json = None,
    save: Save = None,
    quiet: Quiet = False,
) -> None:
    """Fit the best model of at most τ features, with its certificate."""
    from ..cv.settings import Settings, checked_gammas, checked_taus
    from ..design.prepare import prepare, versions
    from ..solvers import Status, solve
    from . import report

    console = open_console(quiet, json_file)
    check_file("--json", json_file)
    check_file("--save", save)
    checked_gammas([gamma])
    check_jobs(jobs)
    settings = Settings(backend=backend, time_limit=as_limit(time_limit))
    if not tol >= 0:
        raise InputError(f"--tol must be >= 0; got {tol}")
    source = read(data, target, one_hot, all_levels, drop, encoding, quiet, weights)
    with progress(quiet) as bar:
        prepared = prepare(
            source,
            "2",
            as_protocol(protocol, scale, no_intercept),
            progress=lambda i, n: bar("reading rows", i, n),
        )
        checked_taus([tau], prepared.design.p)
        announce_limit(prepared.design.p, settings.time_limit)
        everything, proving = settings.seconds(prepared.design.p)
        limit = everything if proving is None else proving
        most = "" if limit is None else f", at most {limit:g} s"
        bar(f"proving the best {tau} of {prepared.design.p} columns{most}", 0, 1)
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
    if save is not None:
        save_model(save, source, model, tau, gamma)
    if json_file is not None:
        document = {
            "sparsecv": __version__,
            "dataset": source.name,
            "n": source.n,
            "p": prepared.design.p,
            "weights": source.weights_name,
            "tau": tau,
            "gamma": gamma,
            "model": report.model_document(prepared, model),
            "status": str(solution.status),
            "n_nodes": solution.n_nodes,
            "seconds": solution.seconds,
            "versions": versions(),
        }
        write_json(json_file, document)
    raise typer.Exit(DONE if proved else GAP)
