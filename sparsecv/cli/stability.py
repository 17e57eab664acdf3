"""The command ``sparsecv stability``, which chooses hyperparameters by CV error and stability."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import typer

from ..errors import InputError
from . import column_options
from .console import open_console, progress, read
from .options import Exit, option, takes

if TYPE_CHECKING:
    from ..plots.sections import Section
    from ..tables.row_source import RowSource


@takes(
    "data target drop one_hot dates weights groups missing encoding "
    "learner folds tau gamma lambdas loss classify search solver test "
    "json_file save plot checkpoint seed jobs dask quiet "
    "include exclude split_factors heredity positive constraints",
    tau=option(str, "all", "sparse-ridge, projected: all (τ log τ <= n), A:B or a list."),
    gamma=option(
        str | None, None, "sparse-ridge: a number, a list or LO:HI:N; 2e-3:2e3:20 by default."
    ),
    missing=option(
        Literal["drop"] | None, None, "Missing values: leave out the rows that have any."
    ),
    plot=option(Path | None, None, "Heatmaps over (τ, γ), minimisers marked (sparse-ridge)."),
)
def stability(data: str, **given: Any) -> None:
    """Choose a model by cross-validation error and stability, the weight by nested folds."""
    from ..plots import heatmaps
    from ..plots.conditions import values
    from ..solvers.core.limits import Limits
    from ..solvers.executor import on_client
    from ..stability import command
    from . import documents, files, grids, screen

    clock, asked = Limits(), SimpleNamespace(**given)
    console = open_console(asked.quiet, asked.json_file)
    sparse = asked.learner in ("sparse-ridge", "projected")
    if asked.plot and (asked.learner != "sparse-ridge" or asked.search == "coordinate"):
        raise InputError("--plot needs --learner sparse-ridge and a grid")
    if asked.save and not sparse:
        raise InputError(f"--save needs --learner sparse-ridge or projected; got {asked.learner}")
    files.check(asked)
    taus = grids.parse_taus(asked.tau)
    gammas = None if asked.gamma is None else grids.parse_gammas(asked.gamma)
    if asked.gamma is not None and gammas is None:
        raise InputError("--gamma auto: stability needs values of gamma")
    grid = {"taus": taus, "gammas": gammas}
    made = {name: None if some is None else some.tolist() for name, some in grid.items()}
    with on_client(asked.dask), progress(asked.quiet) as bar:
        source = read(data, given, bar)
        if not sparse and column_options.some_asked(given):
            raise InputError(
                "constraints on columns belong to the learners sparse-ridge and projected; "
                f"{asked.learner} serves none"
            )
        rules = column_options.asked_of(source, given) if sparse else None
        job = command.run(
            source,
            asked.learner,
            grids=made | {"asked": rules},
            cv=asked.folds,
            lambdas=None if asked.lambdas is None else grids.parse_weights(asked.lambdas),
            loss=asked.loss,
            search=asked.search,
            classify=asked.classify,
            test=asked.test,
            seed=asked.seed,
            n_jobs=asked.jobs,
            checkpoint=asked.checkpoint,
            solver=asked.solver,
            progress=bar,
        )
    found = documents.head(source, source.p) | job.found
    found["constraints"] = values(rules, source.feature_names)
    found["seconds"] = clock.elapsed()
    if asked.save is not None:
        _save(asked.save, source, job.search.best_estimator_)
    screen.show(console, _sections(found), whole=True)
    if asked.json_file is not None:
        files.write_json(asked.json_file, found)
    if asked.plot is not None:
        heatmaps.plot(job, str(asked.plot), f"{source.name}, {found['folds']['k']} folds")
    raise typer.Exit(Exit.DONE)


def _save(path: Path, source: RowSource, model: Any) -> None:
    """Write the chosen model, a fitted SparseRidge or SparseRidgeCV, to the file of --save."""
    from ..design.saved import SavedModel
    from .files import kept_facts

    known = model._fitted(), source.feature_names, model._own_gamma()
    SavedModel.of(*known, tau=int(model.tau_), **kept_facts(source)).write(path)


def _sections(found: dict[str, Any]) -> Iterator[Section]:
    """Yield the chosen hyperparameters with their errors, also those chosen at λ = 0.

    found: The document that ``--json`` writes.
    """
    from ..plots.sections import Column, Fact, Section, Table, filled, number

    data = f"{found['dataset']}: {found['learner']}, {found['n_train']} rows"
    data += "".join(f", {what} {found[what]}" for what in ("weights", "groups") if found[what])
    data += f", {found['folds']['k']} folds, {found['loss']} loss, {found['n_fits']:,} fits"
    choices = [(f"λ = {found['lambda']:.4g}", found["best_params"], found["test_error"])]
    if found["lambda"] != 0.0:
        plain = found["params_without_stability"], found["test_error_without_stability"]
        choices.append(("λ = 0", *plain))
    names, params, tested = zip(*choices, strict=True)
    lines = [_candidate(found, chosen) for chosen in params]
    columns = [
        Column("", names, "words"),
        Column("hyperparameters", [_text(chosen) for chosen in params], "words"),
        Column("CV error", [number(line.get("cv_error", np.nan)) for line in lines]),
        Column("stability", [number(line.get("stability", np.nan)) for line in lines]),
        Column("corrected", [number(line.get("corrected", np.nan)) for line in lines]),
        Column("test error", [number(np.nan if one is None else one) for one in tested]),
    ]
    yield Section("What is chosen", [Fact("data", "", data)], Table(filled(*columns)))
    if len(found["lambdas"]) > 1:
        every = [line["lambda"] for line in found["lambdas"]]
        columns = [
            Column("λ", [f"{one:.4g}" for one in every]),
            Column("nested error", [number(one["nested_error"]) for one in found["lambdas"]]),
        ]
        table = Table(columns, every.index(found["lambda"]))
        yield Section("Weights λ of the stability", table=table)
    sentences = [f"{found['seconds']:.2f} s"]
    if found["nested_error"] is not None:
        sentences.insert(0, f"least nested error over λ: {number(found['nested_error'])}")
    yield Section("", sentences=sentences)


def _candidate(found: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """What was found of hyperparameters; empty where nothing was."""
    lines = (one for one in found["candidates"] if params.items() <= one.items())
    return next(lines, {})


def _text(params: dict[str, Any]) -> str:
    """Hyperparameters as a text for the screen."""
    return ", ".join(
        f"{name} = {value:.4g}" if isinstance(value, float) else f"{name} = {value}"
        for name, value in sorted(params.items())
    )
