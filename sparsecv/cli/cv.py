"""The command ``sparsecv cv``, which prints the error at every sparsity and chooses a model."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ..cv.checkpoint import CheckpointFolder
from ..cv.settings import Settings
from ..design.design import Protocol
from ..design.fold_models import FoldModels
from ..design.model import values_of
from ..design.prepare import Prepared, prepare
from ..errors import InputError
from ..plots import curves, over_gamma, size_path
from ..report import peers
from ..report.outcome import alternatives_of_sizes, criteria_of_sizes
from ..selection.certified_choice import choice_certificate
from ..selection.intervals import fold_models
from ..selection.nested import nested_by_default, nested_error, refuse_nested
from ..selection.result import Result, Shown
from ..selection.run import fit_table
from ..selection.study import Request
from ..solvers.core.result import Status
from ..tables.table import Table
from . import column_options, grids, outputs
from .console import Steps, announce_limit, as_limit, note, open_console, progress, read, remarks
from .deliver import deliver
from .options import Exit

# What is said of the model of a run that Ctrl-C has ended before the choice, and after it.
INTERRUPTED = "the model of least CV error when Ctrl-C came; neither chosen by the rule nor proved"
INTERRUPTED_LATE = "Ctrl-C came after the choice, while the error to expect was computed"


def cv(data: str, **given: Any) -> Exit:
    """Print the CV error of every size as far as it is proved, choose a model and fit it.

    given: The values of all options. ``read`` takes names out of "exclude" that are no columns of
        numbers, so that constraints are made after it.
    """
    asked, ended = SimpleNamespace(**given), ""
    steps = Steps(asked.verbose)
    console = open_console(asked.quiet, asked.json_file)
    outputs.refuse_unwritable(asked)
    gammas, taus = grids.parse_asked_gammas(asked.gamma), grids.parse_taus(asked.tau)
    grids.check_count("--n-best", asked.n_best)
    limit, proves = as_limit(asked.time_limit), asked.certificate is not None
    prove = "all" if proves else asked.prove
    settings = Settings(asked.method, asked.backend, limit, asked.jobs, prove=prove)
    with progress(asked.quiet, steps):
        source = read(data, given, steps)
        how: Any = {"rule": asked.rule, "certificate": proves, "size": asked.size}
        how |= {"compare": asked.compare, "seed": asked.seed, "progress": steps}
        if asked.checkpoint is not None:
            how["checkpoint"] = CheckpointFolder(asked.checkpoint)
        request = Request(settings, gammas, taus, **how)
        layout = Protocol(asked.protocol, asked.scale)
        how = {"asked": column_options.column_constraints(source, given), "seed": asked.seed}
        how["partitions"] = request.partitions(layout.name)
        prepared = prepare(source, asked.folds, layout, **how)
        _refuse(prepared, request, asked)
        try:
            found = fit_table(prepared, request)
            found.shown = _shown(found, source)
            ended = _expected(found, asked, source.groups)
        except KeyboardInterrupt as interrupt:
            found, ended = _partial(interrupt), INTERRUPTED
            found.shown = _shown(found, source)
        intervals = _intervals(found) if asked.save and not ended else None
    if found.ended.reused:
        note(f"--checkpoint: {len(found.ended.reused)} γ taken over from {asked.checkpoint}")
    found.shown.seconds = steps.seconds
    more = {"interrupted": bool(ended), "seconds": steps.seconds}
    if asked.certificate is not None and not ended:
        _certify(found, asked.certificate)
    draw = partial(_draw, found, asked)
    deliver(asked, console, prepared, found, more, draw, steps, note=ended, intervals=intervals)
    return _status(found, ended, asked.time_limit is not None)


def _refuse(prepared: Prepared, request: Request, asked: SimpleNamespace) -> None:
    """Refuse what the table does not allow, before the fit; announce the time limit."""
    plan = request.plan(prepared.data, asked.protocol)
    announce_limit(plan, prepared.design.n_units, asked.time_limit)
    if asked.nested and asked.size is not None:
        raise InputError("--nested judges the choice of a size. With --size, leave it out")
    if asked.nested:
        refuse_nested(prepared.data, asked.folds, groups=prepared.source.groups)


def _shown(found: Result, source: Table) -> Shown:
    """What is said of the rows and the work."""
    surface = found.surface
    assert surface is not None
    trees, nodes = (int(surface.table(name).sum()) for name in ("n_mio", "n_nodes"))
    problems = surface.folds.k * surface.taus.size * len(surface.gammas)
    searches = f"{problems:,} training problems (folds × τ × γ), {trees:,} searches, "
    return Shown(remarks=list(remarks(source)), searches=f"{searches}{nodes:,} nodes.")


def _certify(found: Result, path: Path) -> None:
    """Write the certificate of the least CV error, and say what it proves."""
    assert found.held_out is not None
    made = choice_certificate(found)
    made.save(path)
    note(f"{path} proves: {made.claim[0]}")
    if not found.held_out.choice.is_least(found.held_out.surface):
        note("the model that is chosen is another, and the certificate says nothing of it")


def besides(found: Result, asked: SimpleNamespace) -> None:
    """Add the tables that are asked for: criteria, other subsets."""
    if asked.criteria:
        found.answers["criteria"] = criteria_of_sizes(found)
    if asked.n_best is not None:
        study = found.study
        seconds = found.ended.remaining if study is None else study.plan.limits.remaining()
        found.answers["alternatives"] = alternatives_of_sizes(found, asked.n_best, seconds)


def _expected(found: Result, asked: SimpleNamespace, groups: Any) -> str:
    """Add the tables that are asked for, and the error to expect; return what Ctrl-C has ended.

    The error is computed where it is asked for or takes little time.
    """
    study, nested = found.study, asked.nested
    assert study is not None
    if nested is None:  # What is asked for besides takes time that the fit did not take.
        nested = asked.size is None and nested_by_default(study, found.ended.seconds, groups)
    besides(found, asked)
    if not nested:
        return ""
    try:
        found.expected = nested_error(study, asked.folds, groups=groups)
    except InputError as error:
        if asked.nested:
            raise
        note(f"the error to expect on new data is not computed: {error}")
    except KeyboardInterrupt:
        return INTERRUPTED_LATE
    return ""


def _partial(interrupt: KeyboardInterrupt) -> Result:
    """What is known when Ctrl-C comes: CV errors, bounds, and the best model, whatever the rule.

    Raises KeyboardInterrupt: No model is known.
    """
    found: Result | None = getattr(interrupt, "result", None)
    if found is None:
        note("interrupted before the first model was known; nothing is saved")
        raise interrupt
    return found


def _intervals(found: Result) -> FoldModels | None:
    """What a model file keeps for prediction intervals; None where the table allows none."""
    try:
        return None if found.held_out is None else fold_models(*found.held_out)
    except InputError:
        return None


def _status(found: Result, ended: str, named: bool) -> Exit:
    """The exit status: GAP where a limit that the user named left something unproved.

    ended: Not empty after Ctrl-C.
    named: Whether the user has named a time limit.
    """
    if ended:
        return Exit.INTERRUPTED
    assert found.held_out is not None
    study, surface, choice = found.held_out
    settings = study.request.settings
    if settings.time_limit is None or not named:
        return Exit.DONE
    if study.plan.estimates_serve:  # Nothing was to be proved: only the time can be too short.
        finished = found.ended.limit is not Status.TIME_LIMIT
    else:  # A search looks for the choice alone, not for the CV error of every size.
        errors = settings.searches or surface.finished
        finished = errors and choice.certified and found.model.proved
    return Exit.DONE if finished else Exit.GAP


def _draw(found: Result, asked: SimpleNamespace) -> None:
    """Draw the picture of --plot.

    The picture shows CV errors against τ; for the rule projected, errors of the projections; for a
    range of γ, what is proved of it.
    """
    if found.held_out is None:
        return
    study, surface, choice = found.held_out
    kind = "leave-one-out" if asked.folds == "loo" else f"{asked.folds} folds"
    path, title = str(asked.plot), f"{found.name}, {kind}"
    if choice.projection is not None:
        sizes = values_of(found.sizes, "tau")
        others = peers.linear_peers(study.data, [surface.folds], sizes)
        size_path.plot_errors(found.sizes, found.marks, others, path, title)
    elif surface.minimum is not None:
        over_gamma.plot_minimum(surface.minimum, path, title)
    else:
        curves.plot_cv(surface, path, title, chosen=choice.position)
