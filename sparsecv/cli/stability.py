"""The command ``sparsecv stability``, which chooses hyperparameters by CV error and stability."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ..errors import InputError
from . import column_options as asks
from . import options as shared

if TYPE_CHECKING:
    from rich.console import Console

    from ..tables.rows import RowSource

Learner = Annotated[
    Literal["sparse-ridge", "projected", "cart", "xgboost", "svm"],
    typer.Option(help="What is fitted; projected: the average of the grid's models."),
]
Folds = Annotated[str, typer.Option(help="K, size:M or loo.")]
Taus = Annotated[
    str, typer.Option(help="sparse-ridge, projected: all (τ log τ <= n), A:B or a list.")
]
Gammas = Annotated[
    str | None,
    typer.Option(help="sparse-ridge: a number, a list or LO:HI:N; 2e-3:2e3:20 by default."),
]
Lambdas = Annotated[
    str | None,
    typer.Option(
        "--lambda", help="Weights of the stability: one, or a list or LO:HI:N, to which 0 is added."
    ),
]
Loss = Annotated[
    Literal["auto", "squared", "absolute", "zero-one", "hinge", "log"],
    typer.Option(help="What errors are measured by."),
]
Search = Annotated[
    Literal["grid", "coordinate"] | None,
    typer.Option(help="Coordinate is a descent; the paper's choice by default."),
]
Solver = Annotated[
    Literal["auto", "exact", "heuristic", "rounding"],
    typer.Option(help="sparse-ridge: rounding is the paper's; auto: exact up to 20 columns."),
]
Classify = Annotated[bool, typer.Option("--classify", help="The response holds labels.")]
Test = Annotated[float, typer.Option(help="Share of the rows that are held out for a test.")]
MISSING = shared.option(Literal["drop"] | None, "Missing values: leave out the rows that have any.")
Plot = Annotated[
    Path | None, typer.Option(help="Heatmaps over (τ, γ), minimisers marked (sparse-ridge).")
]


@shared.with_options(asks.OPTIONS, shared.of_table(order=None, missing=MISSING), before="folds")
def stability(
    data: shared.Data,
    learner: Learner = "sparse-ridge",
    folds: Folds = "5",
    tau: Taus = "all",
    gamma: Gammas = None,
    lambdas: Lambdas = None,
    loss: Loss = "auto",
    search: Search = None,
    solver: Solver = "auto",
    classify: Classify = False,
    test: Test = 0.0,
    encoding: shared.Encoding = "utf-8",
    seed: shared.Seed = 0,
    jobs: shared.Jobs = 1,
    json_file: shared.Json = None,
    save: shared.Save = None,
    plot: Plot = None,
    checkpoint: shared.Checkpoint = None,
    dask: shared.Dask = None,
    quiet: shared.Quiet = False,
    **asking: Any,
) -> None:
    """Choose a model by cross-validation error and stability, the weight by nested folds."""
    from ..plots import heatmaps
    from ..solvers.core.limits import Limits
    from ..stability import command
    from . import documents, grids

    clock, console = Limits(), shared.open_console(quiet, json_file)
    _check_files(learner, search, plot, save)
    shared.check_files(json=json_file, save=save, plot=plot)
    taus, gammas = grids.parse_taus(tau), None if gamma is None else grids.parse_gammas(gamma)
    if gamma is not None and gammas is None:
        raise InputError("--gamma auto: stability needs values of gamma")
    grid = {"taus": taus, "gammas": gammas}
    made = {name: None if some is None else some.tolist() for name, some in grid.items()}
    with shared.progress(quiet) as bar:
        source = shared.read(data, quiet, encoding, asking, bar)
        sparse = learner in ("sparse-ridge", "projected")
        if not sparse and any(asking.values()):
            raise InputError(
                "constraints on columns belong to the learners sparse-ridge and projected; "
                f"{learner} serves none"
            )
        asked = asks.asked_of(source, quiet, **asking) if sparse else None
        job = command.run(
            source,
            learner,
            grids=made | {"asked": asked},
            cv=folds,
            lambdas=None if lambdas is None else grids.parse_weights(lambdas),
            loss=loss,
            search=search,
            classify=classify,
            test=test,
            seed=seed,
            n_jobs=jobs,
            checkpoint=checkpoint,
            solver=solver,
            client=dask,
            progress=bar,
        )
    found = documents.head(source, source.p) | command.document(job)
    found["constraints"] = asks.document(asked, source.feature_names)
    found["seconds"] = clock.elapsed()
    if save is not None:
        _save(save, source, job.search.best_estimator_)
    _show(console, found)
    if json_file is not None:
        shared.write_json(json_file, found)
    if plot is not None:
        heatmaps.plot(job, str(plot), f"{source.name}, {found['folds']['k']} folds")
    raise typer.Exit(shared.Exit.DONE)


def _check_files(learner: str, search: str | None, plot: Path | None, save: Path | None) -> None:
    """Refuse files that the learner cannot fill, before any work is done."""
    from ..plots import curves

    if plot is not None:
        curves.check_writable(str(plot))
        if learner != "sparse-ridge" or search == "coordinate":
            raise InputError("--plot needs --learner sparse-ridge and a grid")
    if save is not None and learner not in ("sparse-ridge", "projected"):
        raise InputError(f"--save needs --learner sparse-ridge or projected; got {learner}")


def _save(path: Path, source: RowSource, model: Any) -> None:
    """Write the chosen model, a fitted SparseRidge or SparseRidgeCV, to the file of --save."""
    from ..design.saved import SavedModel

    what: Any = {"tau": model.tau_, "gamma": model._own_gamma(), "levels": source.levels}
    names, target = source.feature_names, source.target_name
    SavedModel.of(model._fitted(), names, target=target, **what).write(path)


def _show(console: Console, found: dict[str, Any]) -> None:
    """Print the chosen hyperparameters and their errors, also those chosen at λ = 0.

    found: The document that ``--json`` writes.
    """
    from rich.markup import escape

    from .report import make_table

    named = [f", {what} {found[what]}" for what in ("weights", "groups") if found[what]]
    console.print(
        f"[bold]{escape(found['dataset'])}[/]: {found['learner']}, {found['n_train']} rows"
        f"{escape(''.join(named))}, "
        f"{found['folds']['k']} folds, {found['loss']} loss, {found['n_fits']:,} fits"
    )
    heads = ("", "hyperparameters", "CV error", "stability", "corrected", "test error")
    table = make_table(heads, left=heads[:2])
    errors = ("cv_error", "stability", "corrected")
    choices = [(f"λ = {found['lambda']:.4g}", found["best_params"], found["test_error"])]
    if found["lambda"] != 0.0:
        plain = found["params_without_stability"], found["test_error_without_stability"]
        choices.append(("λ = 0", *plain))
    for name, params, error in choices:
        lines = (one for one in found["candidates"] if params.items() <= one.items())
        line: dict[str, Any] = next(lines, {})
        cells = [f"{line[key]:.6g}" if line else "" for key in errors]
        table.add_row(name, _text(params), *cells, "" if error is None else f"{error:.6g}")
    console.print(table)
    if len(found["lambdas"]) > 1:
        rows = (
            (f"{line['lambda']:.4g}", f"{line['nested_error']:.6g}{mark}")
            for line in found["lambdas"]
            for mark in [" ◀" if line["lambda"] == found["lambda"] else ""]
        )
        console.print(make_table(("λ", "nested error"), rows, title="weights λ of the stability"))
    if found["nested_error"] is not None:
        console.print(f"least nested error over λ: {found['nested_error']:.6g}")
    console.print(f"{found['seconds']:.2f} s", style="dim")


def _text(params: dict[str, Any]) -> str:
    """Hyperparameters as a text for the screen."""
    return ", ".join(
        f"{name} = {value:.4g}" if isinstance(value, float) else f"{name} = {value}"
        for name, value in sorted(params.items())
    )
