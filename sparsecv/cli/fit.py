"""``sparsecv fit``."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import __version__
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
