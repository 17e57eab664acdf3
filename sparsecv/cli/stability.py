"""The command ``sparsecv stability``, which chooses hyperparameters by CV error and stability."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from ..design.saved import SavedModel
from ..errors import InputError
from ..plots import heatmaps
from ..report import screen
from ..report.outcome import constraints
from ..report.sections import Column, Fact, Section, Table, number
from ..solvers.core.limits import Limits
from ..stability import command
from . import column_options, deliver, grids, outputs
from .console import open_console, progress, read
from .options import Exit


def stability(data: str, **given: Any) -> Exit:
    """Choose hyperparameters by the CV error plus λ times the stability, and λ by nested folds.

    The stability is how much losses change, at most over the folds, when a fold is left out. The
    result is printed, and the JSON document, model and picture that were asked for are written.

    data: What the user named as the table.
    given: The values of all options of the command, by name.
    Raises InputError: Options contradict each other, or the table does not serve them.
    """
    clock, asked = Limits(), SimpleNamespace(**given)
    console = open_console(asked.quiet, asked.json_file)
    sparse = asked.learner in ("sparse-ridge", "projected")
    if asked.plot and (asked.learner != "sparse-ridge" or asked.search == "coordinate"):
        raise InputError("--plot needs --learner sparse-ridge and a grid")
    if asked.save and not sparse:
        raise InputError(f"--save needs --learner sparse-ridge or projected; got {asked.learner}")
    outputs.check(asked)
    taus = grids.parse_taus(asked.tau)
    gammas = None if asked.gamma is None else grids.parse_gammas(asked.gamma)
    if asked.gamma is not None and gammas is None:
        raise InputError("--gamma auto: stability needs values of gamma")
    lambdas = None if asked.lambdas is None else grids.parse_weights(asked.lambdas)
    same = ("loss", "search", "classify", "test", "seed", "checkpoint", "solver")
    how = {name: given[name] for name in same}
    with progress(asked.quiet) as bar:
        source = read(data, given, bar)
        if not sparse and column_options.some_asked(given):
            raise InputError(
                "constraints on columns belong to the learners sparse-ridge and projected; "
                f"{asked.learner} serves none"
            )
        rules = column_options.column_constraints(source, given) if sparse else None
        made: dict[str, Any] = {"asked": rules}
        for name, values in (("taus", taus), ("gammas", gammas)):
            made[name] = None if values is None else values.tolist()
        how |= {"cv": asked.folds, "lambdas": lambdas, "n_jobs": asked.jobs, "progress": bar}
        # job.found is the JSON document, and job.search the fitted search.
        job = command.run(source, asked.learner, grids=made, **how)
    found = deliver.head(source, source.p) | job.found
    found["constraints"] = constraints(rules, source.feature_names)
    found["seconds"] = clock.elapsed()
    if asked.save is not None:
        model: Any = job.search.best_estimator_
        known = model._fitted(), source.feature_names, model._own_gamma()
        own = {"tau": int(model.tau_), **deliver.kept_facts(source)}
        SavedModel.of(*known, **own).write(asked.save)
    deliver.write_json(asked.json_file, found)
    if asked.plot is not None:
        heatmaps.plot(job, str(asked.plot), f"{source.name}, {found['folds']['k']} folds")
    screen.show(console, _sections(found))
    return Exit.DONE


def _sections(found: dict[str, Any]) -> Iterator[Section]:
    """Yield the chosen hyperparameters with their errors, also those chosen at λ = 0.

    found: The document that ``--json`` writes.
    """
    data = f"{found['dataset']}: {found['learner']}, {found['n_train']} rows"
    data += "".join(f", {what} {found[what]}" for what in ("weights", "groups") if found[what])
    data += f", {found['folds']['k']} folds, {found['loss']} loss, {found['n_fits']:,} fits"
    weight, every = found["lambda"], [line["lambda"] for line in found["lambdas"]]
    rows = [(f"λ = {weight:.4g}", found["best_params"], found["test_error"])]
    if weight != 0.0:
        plain = found["params_without_stability"], found["test_error_without_stability"]
        rows.append(("λ = 0", *plain))
    names, params, tested = zip(*rows, strict=True)
    lines: list[dict[str, Any]] = [
        next((one for one in found["candidates"] if chosen.items() <= one.items()), {})
        for chosen in params
    ]
    columns = [
        Column("", names, "words"),
        Column("hyperparameters", list(map(_text, params)), "words"),
        Column("CV error", [line.get("cv_error", "") for line in lines]),
        Column("stability", [line.get("stability", "") for line in lines]),
        Column("corrected", [line.get("corrected", "") for line in lines]),
        Column("test error", ["" if one is None else one for one in tested]),
    ]
    yield Section("What is chosen", [Fact("data", "", data)], Table(columns).filled())
    if len(every) > 1:
        errors = [line["nested_error"] for line in found["lambdas"]]
        columns = [Column("λ", [f"{one:.4g}" for one in every]), Column("nested error", errors)]
        yield Section("Weights λ of the stability", table=Table(columns, every.index(weight)))
    sentences = [f"{found['seconds']:.2f} s"]
    if found["nested_error"] is not None:
        sentences.insert(0, f"least nested error over λ: {number(found['nested_error'])}")
    yield Section("", sentences=sentences)


def _text(params: dict[str, Any]) -> str:
    """Hyperparameters as a text for the screen."""
    return ", ".join(
        f"{name} = {value:.4g}" if isinstance(value, float) else f"{name} = {value}"
        for name, value in sorted(params.items())
    )
