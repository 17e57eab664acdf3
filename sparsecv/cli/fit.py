"""The command ``sparsecv fit``: the best model of at most τ features at one γ."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import __version__
from ..errors import InputError
from . import options as shared


def fit(
    data: shared.Data,
    tau: Annotated[int, typer.Option(help="Largest number of features.")],
    gamma: Annotated[float, typer.Option(help="Ridge weight γ of (γ/2)||β||².")] = 1.0,
    target: shared.Target = None,
    backend: shared.BackendName = "auto",
    tol: Annotated[float, typer.Option(help="Relative gap at which to stop.")] = 1e-6,
    protocol: shared.ProtocolName = "honest",
    scale: shared.Scale = "unit-variance",
    no_intercept: shared.NoIntercept = False,
    one_hot: shared.OneHot = False,
    all_levels: shared.AllLevels = False,
    drop: shared.Drop = None,
    weights: shared.Weights = None,
    encoding: shared.Encoding = "utf-8",
    time_limit: shared.TimeLimit = "auto",
    jobs: shared.Jobs = 1,
    json_file: shared.Json = None,
    save: shared.Save = None,
    table: shared.WholeTables = False,
    quiet: shared.Quiet = False,
) -> None:
    """Fit the best model of at most τ features, with its certificate."""
    from ..cv.settings import Settings, checked_gammas, checked_taus
    from ..design.prepare import versions
    from ..solvers.api import solve
    from ..solvers.backends.optional_dependencies import SolverUnavailable
    from . import documents, report

    console = shared.open_console(quiet, json_file)
    shared.check_file("--json", json_file)
    shared.check_file("--save", save)
    checked_gammas([gamma])
    shared.check_numbers(jobs)
    settings = Settings(backend=backend, time_limit=shared.as_limit(time_limit))
    if not tol >= 0:
        raise InputError(f"--tol must be >= 0; got {tol}")
    source = shared.read(data, target, one_hot, all_levels, drop, encoding, quiet, weights)
    with shared.progress(quiet) as bar:
        layout = shared.as_protocol(protocol, scale, no_intercept)
        prepared = shared.prepared(source, "2", layout, bar)
        checked_taus([tau], prepared.design.p)
        shared.announce_limit(prepared.design.p, settings.time_limit)
        everything, proving = settings.seconds(prepared.design.p)
        limit = everything if proving is None else proving
        most = "" if limit is None else f", at most {limit:g} s"
        bar(f"proving the best {tau} of {prepared.design.p} columns{most}", 0, 1)
        problem = prepared.data.full().replace(gamma=gamma, tau=tau)
        try:
            solution = solve(problem, backend=backend, time_limit=limit, tol=tol, n_jobs=jobs)
        except SolverUnavailable as error:
            raise InputError(str(error)) from error
    proved = str(solution.status) == "optimal"
    model = prepared.model(gamma, solution.support, solution.lower_bound, proved)
    if save is not None:
        shared.save_model(save, source, model, tau, gamma)
    if json_file is not None:
        document = {
            "sparsecv": __version__,
            "dataset": source.name,
            "n": source.n,
            "p": prepared.design.p,
            "weights": source.weights_name,
            "tau": tau,
            "gamma": gamma,
            "model": documents.model_document(prepared, model),
            "status": str(solution.status),
            "n_nodes": solution.n_nodes,
            "seconds": solution.seconds,
            "versions": versions(),
        }
        shared.write_json(json_file, document)
    report.print_fit(console, prepared, model, tau, gamma)
    report.print_model(console, prepared, model, table)
    console.print(
        f"{solution.status}: {solution.n_nodes:,} nodes, {solution.seconds:.3f} s", style="dim"
    )
    report.print_signs(console, not proved)
    named = settings.time_limit not in ("auto", None)
    raise typer.Exit(shared.GAP if named and not proved else shared.DONE)
