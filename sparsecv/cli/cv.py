"""The command ``sparsecv cv``, which prints the error at every sparsity and chooses a model."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer

from ..errors import InputError
from . import answers
from . import column_options as asks
from . import options as shared

if TYPE_CHECKING:
    from rich.console import Console

    from ..cv.settings import Settings
    from ..design.prepare import Prepared
    from ..selection.study import Study
    from ..solvers.core.limits import Limits
    from .report import Run

Folds = Annotated[str, typer.Option(help="loo, a number K or size:M.")]
Taus = Annotated[str, typer.Option(help="all, A:B or a list t1,t2.")]
Gammas = Annotated[
    str,
    typer.Option(
        help="Ridge weight: a number, a list, LO:HI:N spaced in the logarithm, auto (minimise "
        "over τ and γ in turn, from 1e-4 to 1e4), or global or global:LO:HI (the least error over "
        "every τ and all γ of the range, proved)."
    ),
]
Method = Annotated[
    Literal["auto", "exact", "search", "bounds", "grid"],
    typer.Option(
        help="exact: h at every τ; search: the best τ alone, by bounds and few problems "
        "(Algorithm 1); bounds: its first phase; grid: one problem per fold and τ; auto: "
        "exact, or grid where --backend names an outside solver."
    ),
]
Tolerance = Annotated[
    float | None,
    typer.Option(
        help="Relative tolerance of --method search (0.01 by default) and --gamma global (1e-4).",
        show_default=False,
    ),
]
SearchBounds = Annotated[
    Literal["best", "paper", "paper-exact"],
    typer.Option(help="Bounds that --method search and --method bounds use."),
]
MioLimit = Annotated[
    int | None, typer.Option(help="Most problems solved per γ by --method search.")
]
Rule = Annotated[
    Literal[
        "auto", "minimum", "one-se", "stability", "corrected", "repeated", "averaged", "projected"
    ],
    typer.Option(
        help="How the model is chosen; auto depends on the number of columns, and the first "
        "line of the output names the rule."
    ),
]
Repeats = Annotated[
    int, typer.Option(help="Number of partitions into folds, for repeated, averaged and projected.")
]
Compare = Annotated[
    bool, typer.Option("--compare", help="Also show what every other rule would choose.")
]
Nested = Annotated[
    bool | None,
    typer.Option(
        "--nested/--no-nested",
        help="Cross-validate the whole fit by outer folds: the error to expect on new data. "
        "By default up to 45 columns, where the fit took at most 5 s.",
    ),
]
Prove = Annotated[str, typer.Option(help="Beyond 45 columns: choice, or all (every error).")]
Plot = Annotated[
    Path | None,
    typer.Option(help="Picture of the curves; of a search: its bounds (.gif: a film, 300 frames)."),
]
# What is said of the model of a run that Ctrl-C has ended before the choice, and after it.
INTERRUPTED = "the model of least CV error when Ctrl-C came; neither chosen by the rule nor proved"
INTERRUPTED_LATE = "Ctrl-C came after the choice, while the error to expect was computed"


@shared.with_options(asks.OPTIONS | answers.OPTIONS, shared.TABLE, before="folds")
def cv(
    data: shared.Data,
    folds: Folds = "5",
    tau: Taus = "all",
    gamma: Gammas = "auto",
    method: Method = "auto",
    tol: Tolerance = None,
    search_bounds: SearchBounds = "best",
    mio_limit: MioLimit = None,
    backend: shared.BackendName = "auto",
    rule: Rule = "auto",
    repeats: Repeats = 6,
    compare: Compare = False,
    nested: Nested = None,
    prove: Prove = "choice",
    protocol: shared.ProtocolName = "honest",
    scale: shared.Scale = "unit-variance",
    no_intercept: shared.NoIntercept = False,
    encoding: shared.Encoding = "utf-8",
    time_limit: shared.TimeLimit = "auto",
    seed: shared.Seed = 0,
    jobs: shared.Jobs = 1,
    json_file: shared.Json = None,
    save: shared.Save = None,
    plot: Plot = None,
    html: shared.Html = None,
    table: shared.WholeTables = False,
    checkpoint: shared.Checkpoint = None,
    dask: shared.Dask = None,
    quiet: shared.Quiet = False,
    **asking: Any,
) -> None:
    """Print the exact CV error at every sparsity, choose the best and fit the model."""
    from ..cv.settings import Settings
    from ..design.design import Protocol
    from ..design.folds import TimeOrdered
    from ..design.prepare import prepare
    from ..selection.study import Study
    from ..solvers.core.limits import Limits
    from ..solvers.executor import on_client
    from . import grids

    clock, wanted = Limits(), answers.taken(asking, save)
    console = shared.open_console(quiet, json_file, wanted.sql)
    shared.check_pictures(plot, html, film=method in ("search", "bounds"))
    shared.check_files(json=json_file, save=save, html=html, sql=wanted.sql, plot=plot)
    gammas, taus = grids.parse_asked_gammas(gamma), grids.parse_taus(tau)
    limit, announce = shared.as_limit(time_limit), None if quiet else shared.note
    settings = Settings(method, backend, limit, jobs, tol, search_bounds, mio_limit, prove)
    more: Any = {"repeats": repeats, "seed": seed, "checkpoint": checkpoint}
    layout = Protocol(protocol, scale, intercept=not no_intercept)
    held_out = folds if asking["order"] is None else TimeOrdered(folds)
    with on_client(dask), shared.progress(quiet) as bar:
        source = shared.read(data, quiet, encoding, asking, bar)
        reading: Any = {"asked": asks.asked_of(source, quiet, **asking), "announce": announce}
        reading["progress"] = partial(bar, "reading rows")
        prepared = prepare(source, held_out, layout, seed=seed, n_jobs=jobs, **reading)
        _refuse(prepared, rule, settings, nested and held_out, wanted)
        taken = prepared.data, prepared.design, gammas, taus, settings
        study = Study(*taken, rule=rule, progress=bar, **more)
        try:
            run = _evaluated(prepared, study, held_out, nested, compare, wanted)
        except KeyboardInterrupt as interrupt:
            _keep_partial(console, study, prepared, interrupt, (json_file, save))
            raise
    _write(run, wanted, save, json_file, clock)
    with shared.progress(quiet) as bar:
        bar("reports and pictures", 0, 1)
        _draw(run, plot, html, folds)
    _print(console, run, table, compare)  # Files come first, so that printing cannot delay them.
    raise typer.Exit(_status(run))


def _refuse(
    prepared: Prepared, rule: str, settings: Settings, outer: Any, wanted: answers.Wanted
) -> None:
    """Refuse what the table does not allow, before the fit; announce the time limit.

    outer: The folds of nested fits that the user asks for; else None or False.
    """
    from ..selection.intervals import refuse_intervals
    from ..selection.nested import refuse_nested
    from ..selection.rules import RULES, allowed_rule

    if "averages" not in RULES[allowed_rule(rule, prepared.data, settings)].needs:
        shared.announce_limit(prepared.data.n_units, settings.time_limit)
    if outer:
        refuse_nested(prepared.data, outer, groups=prepared.source.groups)
    if wanted.intervals:
        refuse_intervals(prepared.data)


def _evaluated(
    prepared: Prepared,
    study: Study,
    folds: Any,
    nested: bool | None,
    compare: bool,
    wanted: answers.Wanted,
) -> Run:
    """The choice, the model, what is wanted besides, and the error to expect.

    Unless ``nested`` says so, the last is computed where the time of the fit and the table allow.

    Ctrl-C while the last is computed leaves that one out.
    """
    from ..selection.choice import choose, chosen_model
    from ..selection.nested import nested_by_default, nested_error
    from ..selection.sizes import check_size, choice_of_size
    from . import report

    if wanted.size is not None:
        check_size(study.sizes, wanted.size)
        if nested:
            raise InputError("--nested judges the choice of a size: with --size, leave it out")
    choices = choose(study, compare=compare)
    if wanted.size is not None:
        choices[study.rule] = choice_of_size(study, choices[study.rule], wanted.size)
        nested = False
    model = chosen_model(study, choices[study.rule])
    asked = nested
    if nested is None:  # What is wanted besides takes time that the fit did not take.
        nested = nested_by_default(study)
    run = report.Run(prepared, study, choices, model, None)
    run = run._replace(
        answers=answers.after_folds(study, run.choice, wanted),
        intervals=answers.kept_intervals(study, run.choice, wanted),
    )
    if not nested:
        return run
    try:
        return run._replace(expected=nested_error(study, folds, groups=prepared.source.groups))
    except InputError as error:
        if asked:
            raise
        shared.note(f"the error to expect on new data is not computed: {error}")
        return run
    except KeyboardInterrupt:
        return run._replace(interrupted=True)


def _status(run: Run) -> shared.Exit:
    """The exit status: GAP where a limit that the user named left something unproved."""
    from ..solvers.core.result import Status

    if run.interrupted:
        return shared.Exit.INTERRUPTED
    study, settings = run.study, run.study.settings
    if settings.time_limit in ("auto", None) and settings.mio_limit is None:
        return shared.Exit.DONE
    if study.estimating:  # Nothing was to be proved, so only the time can have been too short.
        finished = study.status is not Status.TIME_LIMIT
    else:  # A search looks for the choice alone, not for the CV error of every size.
        errors = settings.searches or study.surface.finished
        finished = errors and run.choice.certified and run.model.proved
    return shared.Exit.DONE if finished else shared.Exit.GAP


def _keep_partial(
    console: Console,
    study: Study,
    prepared: Prepared,
    interrupt: KeyboardInterrupt,
    files: tuple[Path | None, Path | None],
) -> None:
    """Print and write what is known when Ctrl-C comes: CV errors, bounds, and the best model.

    The model is that of least CV error so far, whatever the rule.

    files: The files of the options --json and --save.
    """
    from ..cv.results import least
    from . import details, documents, report

    result = vars(study).get("surface") or getattr(interrupt, "partial", None)
    if result is None:
        shared.note("interrupted before the first model was known; nothing is saved")
        return
    asked = np.flatnonzero(np.isin(result.taus, study.sizes))
    errors = result.table("cv_error")[:, asked]
    g, t = least(errors, result.taus[asked], result.gammas)
    one, t, gamma = result.by_gamma[g], int(asked[t]), float(result.gammas[g])
    model = replace(one.model(prepared.design, prepared.problem, t), proved=False)
    json_file, save = files
    shared.save_model(save, prepared, model, int(result.taus[t]), gamma, INTERRUPTED)
    report.print_data(console, prepared)
    console.print(f"[bold]interrupted[/]: {INTERRUPTED}")
    report.print_model(console, prepared, model)
    details.print_sizes(console, prepared, result, None, False)
    report.print_signs(console, not result.complete)
    if json_file is not None:
        shared.write_json(json_file, documents.partial_document(prepared, result, model))


def _write(
    run: Run, wanted: answers.Wanted, save: Path | None, json_file: Path | None, clock: Limits
) -> None:
    """Write the files of --save, --sql and --json; ``clock`` has run since the start."""
    from . import documents

    note = INTERRUPTED_LATE if run.interrupted else ""
    pair = run.choice.tau, run.choice.gamma
    files: Any = {"sql": wanted.sql, "intervals": run.intervals}
    shared.save_model(save, run.prepared, run.model, *pair, note, **files)
    if json_file is not None:
        shared.write_json(json_file, documents.cv_document(run) | {"seconds": clock.elapsed()})


def _report(run: Run, html: Path | None) -> None:
    """Write the page that the option --html asks for."""
    if html is None:
        return
    from ..plots.findings import Findings, whole_report
    from ..plots.page import write
    from ..selection.sizes import models_by_size

    prepared, choice, source = run.prepared, run.choice, run.prepared.source
    folds, remarks = prepared.folds, list[str]()
    if folds.kind == "time":
        remarks.append(
            f"Folds in order of {source.order_name} train on earlier rows and hold out later ones: "
            f"the first {folds.n - int(folds.sizes.sum())} rows are never held out."
        )
    if source.rows_left_out:
        remarks.append(f"{source.rows_left_out:,} rows were left out, as values are missing.")
    if source.missing is not None:
        what = f"by the {source.missing} of each fold's training rows"
        remarks.append(f"Missing values were filled {what}, and here by that of all rows.")
    found = Findings(
        f"{source.name}: {run.model.support.size} of {prepared.design.p} columns",
        prepared.names,
        source.target_name,
        prepared.total,
        prepared.design,
        run.model,
        choice.gamma,
        models_by_size(run.study, choice),
        study=run.study,
        choice=choice,
        expected=run.expected,
        alternatives=run.answers.get("alternatives_"),
        remarks=tuple(remarks),
    )
    write(html, whole_report(found))


def _print(console: Console, run: Run, whole: bool, compare: bool) -> None:
    """Print the chosen model, its coefficients, and the details; ``whole`` prints all rows."""
    from . import details, report

    if run.study.reused:
        shared.note(f"--checkpoint: {len(run.study.reused)} γ taken over from {run.study.folder}")
    report.print_answer(console, run)
    report.print_model(console, run.prepared, run.model, whole)
    details.print_details(console, run, whole, compare)
    answers.print_answers(console, run.prepared.names, run.answers, run.choice.tau, whole)
    proved = run.study.surface.complete and run.choice.certified and run.model.proved
    report.print_signs(console, not proved)


def _draw(run: Run, plot: Path | None, html: Path | None, folds: str) -> None:
    """Write the page that the option --html asks for, and draw the picture of --plot.

    The picture shows CV errors against τ; for the rule projected, errors of the projections; for a
    range of γ, what is proved of it, and the way of the alternating minimisation from γ = 1/√n; for
    a search, the bounds at its start and end, or a film of the bounds if the file is a .gif.
    """
    _report(run, html)
    if plot is None:
        return
    from ..cv.alternating import alternate
    from ..plots import curves, over_gamma, projected_sizes, search_bounds

    kind = "leave-one-out" if folds == "loo" else f"{folds} folds"
    title = f"{run.prepared.source.name}, {kind}"
    result, choice = run.study.surface, run.choice
    chosen, found = result.by_gamma[choice.gamma_index], choice.projection
    if found is not None:
        peers = projected_sizes.linear_peers(run.study.data, [result.folds], found.sizes)
        projected_sizes.plot_sizes(found, str(plot), title, peers=peers)
    elif result.minimum is not None:
        start = 1.0 / run.prepared.source.n**0.5
        way = alternate(run.study.data, result.taus, run.study.settings, start=start)
        over_gamma.plot_minimum(result.minimum, str(plot), title, trace=way.trace)
    elif not chosen.history:
        pair = (choice.gamma_index, choice.tau_index) if choice.is_pair else None
        curves.plot_cv(result, str(plot), title, chosen=pair)
    elif plot.suffix.lower() == ".gif":
        search_bounds.animate_bounds(chosen, str(plot), title, search_bounds.FILM.max_frames)
    else:
        search_bounds.plot_bounds(chosen, str(plot), title)
