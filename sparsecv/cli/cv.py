"""The command ``sparsecv cv``: the error at every sparsity, and the model it chooses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from . import options as shared

if TYPE_CHECKING:
    from rich.console import Console

    from ..design.model import FittedModel
    from ..design.prepare import Prepared
    from ..selection.choice import Choice
    from ..selection.nested import NestedError
    from ..selection.study import Study

Folds = Annotated[str, typer.Option(help="loo, a number K or size:M.")]
Taus = Annotated[str, typer.Option(help="all, A:B or a list t1,t2.")]
Gammas = Annotated[
    str,
    typer.Option(
        help="Ridge weight: a number, a list, LO:HI:N spaced in the logarithm, or auto (minimise "
        "over τ and γ in turn, from 1e-4 to 1e4)."
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
Tolerance = Annotated[float, typer.Option(help="Relative tolerance of --method search.")]
Bounds = Annotated[
    Literal["best", "paper", "paper-exact"], typer.Option(help="Of search and bounds.")
]
MioLimit = Annotated[
    int | None, typer.Option(help="Most problems solved per γ by --method search.")
]
Rule = Annotated[
    Literal[
        "auto", "minimum", "one-se", "stability", "corrected", "repeated", "averaged", "projected"
    ],
    typer.Option(
        help="What the model is chosen by; auto, which depends on the number of columns alone, is "
        "said in the first line of the output."
    ),
]
Repeats = Annotated[
    int, typer.Option(help="Partitions that repeated, averaged and projected look at.")
]
Compare = Annotated[
    bool, typer.Option("--compare", help="Also show what every other rule would choose.")
]
Nested = Annotated[
    bool | None,
    typer.Option(
        "--nested/--no-nested",
        help="Cross-validate the whole fit by outer folds: the error to expect on new data. "
        "By default up to 45 columns, where it is quick.",
    ),
]
Prove = Annotated[str, typer.Option(help="Beyond 45 columns: choice, or all (every error).")]
Plot = Annotated[
    Path | None,
    typer.Option(help="Picture of the curves; of a search: its bounds (.gif: a film, 300 frames)."),
]


def cv(
    data: shared.Data,
    target: shared.Target = None,
    folds: Folds = "5",
    tau: Taus = "all",
    gamma: Gammas = "auto",
    method: Method = "auto",
    tol: Tolerance = 0.01,
    bounds: Bounds = "best",
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
    one_hot: shared.OneHot = False,
    all_levels: shared.AllLevels = False,
    drop: shared.Drop = None,
    weights: shared.Weights = None,
    groups: shared.Groups = None,
    encoding: shared.Encoding = "utf-8",
    time_limit: shared.TimeLimit = "auto",
    seed: shared.Seed = 0,
    jobs: shared.Jobs = 1,
    json_file: shared.Json = None,
    save: shared.Save = None,
    plot: Plot = None,
    table: shared.WholeTables = False,
    checkpoint: shared.Checkpoint = None,
    dask: shared.Dask = None,
    quiet: shared.Quiet = False,
) -> None:
    """Print the exact CV error at every sparsity, choose the best and fit the model."""
    from ..cv.settings import Settings
    from ..plots import curves as plots
    from ..selection.choice import choose, chosen_model
    from ..selection.rules import checked_repeats, checked_rule
    from ..solvers.core.limits import Limits
    from ..solvers.executor import on_client
    from . import documents, grids

    clock, console = Limits(), shared.open_console(quiet, json_file)
    if plot is not None:
        plots.check_writable(str(plot), film=method in ("search", "bounds"))
    shared.check_file("--json", json_file)
    shared.check_file("--save", save)
    gammas, taus = grids.parse_gammas(gamma), grids.parse_taus(tau)
    shared.check_numbers(jobs, seed)
    limit = shared.as_limit(time_limit)
    settings = Settings(method, backend, limit, jobs, tol, bounds, mio_limit, prove)
    options = {"repeats": checked_repeats(repeats), "seed": seed, "checkpoint": checkpoint}
    checked_rule(rule)
    layout = shared.as_protocol(protocol, scale, no_intercept)
    source = shared.read(data, target, one_hot, all_levels, drop, encoding, quiet, weights, groups)
    with on_client(dask), shared.progress(quiet) as bar:
        prepared = shared.prepared(source, folds, layout, bar, seed, jobs, quiet)
        study = _study(prepared, rule, gammas, taus, settings, nested, progress=bar, **options)
        try:
            used, choices = study.rule, choose(study, compare=compare)
            model = chosen_model(study, choices[used])
            expected = _expected(study, folds, source.groups, nested)
        except KeyboardInterrupt as interrupt:
            _tell_partial(console, prepared, interrupt, json_file)
            raise
    choice = choices[used]
    if save is not None:
        shared.save_model(save, source, model, choice.tau, choice.gamma)
    if json_file is not None:
        made = documents.cv_document(prepared, study, model, choices, used, expected)
        shared.write_json(json_file, made | {"seconds": clock.elapsed()})
    if plot is not None:
        kind = "leave-one-out" if folds == "loo" else f"{folds} folds"
        _draw(study, choice, plot, f"{source.name}, {kind}")
    found = Found(study, model, choices, used, expected)
    _print(console, prepared, found, rule, table, compare)  # last: its reader may have gone
    raise typer.Exit(_status(study, choice, model))


def _status(study: Study, choice: Choice, model: FittedModel) -> int:
    """Whether a limit that the user has named has left something open."""
    from ..solvers.core.result import Status

    settings = study.settings
    named = settings.time_limit not in ("auto", None) or settings.mio_limit is not None
    if study.estimating:  # nothing was to be proved: only the time can have been too short
        return shared.GAP if named and study.status is Status.TIME_LIMIT else shared.DONE
    errors = settings.searches or study.surface.finished  # a search is after the choice alone
    finished = errors and choice.certified and model.proved
    return shared.GAP if named and not finished else shared.DONE


def _study(
    prepared: Prepared,
    rule: str,
    gammas: Any,
    taus: Any,
    settings: Any,
    nested: bool | None,
    **options: Any,
) -> Study:
    """The run, where its table allows the rule and the outer folds."""
    from ..selection.nested import refuse_nested
    from ..selection.rules import RULES, allowed_rule
    from ..selection.study import Study

    needs = RULES[allowed_rule(rule, prepared.data, settings)].needs
    if "averages" not in needs:
        shared.announce_limit(prepared.design.p, settings.time_limit)
    refuse_nested(prepared.data, "5", bool(nested))
    return Study(prepared.data, prepared.design, gammas, taus, settings, rule=rule, **options)


def _expected(study: Study, folds: str, groups: Any, nested: bool | None) -> NestedError | None:
    """The error to expect on new data, where it is asked for or quick."""
    from ..errors import InputError
    from ..selection.nested import nested_by_default, nested_error

    if not (nested_by_default(study) if nested is None else nested):
        return None
    try:
        return nested_error(study, folds, groups=groups)
    except InputError:
        if nested:
            raise
        return None  # nobody has asked for it


class Found(NamedTuple):
    """What a run has found: the model of the rule it names, and what every rule chooses."""

    study: Study
    model: FittedModel
    choices: dict[str, Choice]
    rule: str
    expected: NestedError | None


def _print(
    console: Console, prepared: Prepared, found: Found, asked: str, whole: bool, compare: bool
) -> None:
    """The answer, the coefficients, then how they were found."""
    from . import details, report

    study, model, choices, rule, expected = found
    choice = choices[rule]
    if study.reused:
        shared.note(f"--checkpoint: {len(study.reused)} γ taken over from {study.folder}")
    report.print_answer(console, prepared, study, choice, model, asked, expected)
    report.print_model(console, prepared, model, whole)
    details.print_details(console, prepared, study, choices, rule, whole=whole, compare=compare)
    report.print_signs(console, not (study.surface.complete and choice.certified and model.proved))


def _tell_partial(
    console: Console, prepared: Prepared, interrupt: KeyboardInterrupt, json_file: Path | None
) -> None:
    """Print and keep the intervals that are known when Ctrl-C comes."""
    from . import details, documents, report

    result = getattr(interrupt, "partial", None)
    if result is None:
        return
    report.print_data(console, prepared)
    details.print_sizes(console, prepared, result, None, False)
    report.print_signs(console, not result.complete)
    if json_file is not None:
        shared.write_json(json_file, documents.partial_document(prepared, result))


def _draw(study: Study, choice: Choice, plot: Path, title: str) -> None:
    """Curves against τ, or of a search its bounds: two moments of them, or a film."""
    from ..plots import curves as plots
    from ..plots import intervals as bound_plots
    from ..plots.sizes import linear_peers, plot_sizes

    result, found = study.surface, choice.projection
    chosen = result.by_gamma[choice.gamma_index]
    if found is not None:
        peers = linear_peers(study.data, [result.folds], found.sizes)
        plot_sizes(found, str(plot), title, peers=peers)
    elif not chosen.history:
        pair = (choice.gamma_index, choice.tau_index) if choice.is_pair else None
        plots.plot_cv(result, str(plot), title, chosen=pair)
    elif plot.suffix.lower() == ".gif":
        bound_plots.animate_bounds(chosen, str(plot), title, bound_plots.MOST_FRAMES)
    else:
        bound_plots.plot_bounds(chosen, str(plot), title)
