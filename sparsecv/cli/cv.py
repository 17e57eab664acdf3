"""The command ``sparsecv cv``, which prints the error at every sparsity and chooses a model."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ..cv.checkpoint import CheckpointFolder
from ..cv.plan import RunPlan
from ..cv.settings import Settings
from ..design.design import Protocol
from ..design.fold_models import FoldModels
from ..design.model import values_of
from ..design.prepare import Prepared, prepare
from ..errors import InputError
from ..plots import curves, over_gamma, size_path
from ..report.audit import audited, no_audit
from ..report.details import why_chosen
from ..report.frames import criteria_of_sizes
from ..report.peers import linear_peers
from ..report.progress import Steps
from ..report.questions import alternatives_of_sizes
from ..selection.certified_choice import choice_certificate
from ..selection.claims import beyond_certificate
from ..selection.intervals import fold_models
from ..selection.nested import nested_by_default, nested_error, refuse_nested
from ..selection.result import HeldOut, Result, Shown
from ..selection.rules import takes_average
from ..selection.run import fit_table
from ..selection.study import partitions_of
from ..solvers.core.result import Status
from ..tables.table import Table
from ..wings import WINGS
from . import grids, outputs
from .column_options import column_constraints
from .console import announce_limit, note, progress, read
from .deliver import deliver
from .options import Exit

# What is said of the model of a run that Ctrl-C has ended before the choice, and after it.
INTERRUPTED = "the model of least CV error when Ctrl-C came; neither chosen by the rule nor proved"
INTERRUPTED_LATE = "Ctrl-C came after the choice, while what else is asked for was computed"


def cv(data: str, **options: Any) -> Exit:
    """Print the CV error of every size as far as it is proved, choose a model and fit it.

    data: What the user writes for the table.
    options: The values of all options of the command, under their names in ``options.py``.
    Returns: INTERRUPTED after Ctrl-C, once a model was known; GAP where --time-limit names seconds
        and something is open that was to be proved; else DONE. Files are written in each case.
    Raises InputError: The options, the table or what they ask for cannot be used.
    Raises KeyboardInterrupt: Ctrl-C came before a model was known.
    """
    asked, steps = SimpleNamespace(**options), Steps(options["verbose"])
    outputs.refuse_unwritable(asked)
    gammas, taus = grids.parse_asked_gammas(asked.gamma), grids.parse_taus(asked.tau)
    grids.check_count("--n-best", asked.n_best)
    certifies = asked.certificate is not None  # A certificate needs every CV error proved.
    limit, prove = grids.parse_time_limit(asked.time_limit), "all" if certifies else asked.prove
    how: Any = {name: getattr(asked, name) for name in ("rule", "size", "compare", "seed")}
    how |= {"gammas": gammas, "taus": taus, "prove": prove, "certificate": certifies}
    settings = Settings(asked.method, asked.backend, limit, asked.jobs, **how)
    store = None if asked.checkpoint is None else CheckpointFolder(asked.checkpoint)
    interrupted, intervals, audit = "", None, None
    with progress(asked.quiet, steps):
        source, levels = read(data, asked, steps)
        layout = Protocol(asked.protocol, asked.scale)
        rules = column_constraints(source, asked, levels, settings.counts_coefficients)
        partitions = partitions_of(settings, asked.protocol)
        prepared = prepare(
            source, asked.folds, layout, seed=asked.seed, partitions=partitions, asked=rules
        )
        _refuse_nested(prepared, asked)
        average = takes_average(settings, asked.protocol)
        plan = RunPlan.of(settings, prepared.data, averages=average)
        announce_limit(plan, prepared.design.n_units, asked)
        try:
            result = fit_table(prepared, settings, WINGS, progress=steps, checkpoint=store)
        except KeyboardInterrupt as interrupt:
            result, interrupted = _partial(interrupt), INTERRUPTED
        assert result.held_out is not None  # This command always has folds.
        held_out = result.held_out
        result.shown = _shown(held_out, source)
        try:
            if not interrupted:
                _add_answers(result, held_out, asked)
            if asked.audit and not interrupted and not no_audit(result):
                steps("the audit of the columns", 0, 1)
                limits = held_out.study.plan.limits
                audit = audited(result, asked.folds, limits)
            if asked.save and not interrupted:
                intervals = _intervals(held_out)
        except KeyboardInterrupt:
            interrupted = INTERRUPTED_LATE
    if result.ended.reused:
        note(f"--checkpoint: {len(result.ended.reused)} γ taken over from {asked.checkpoint}")
    result.shown.seconds = steps.seconds
    if certifies and not interrupted and audit is None:  # Else that of the audit is written.
        _certify(result, held_out, asked.certificate)
    entries = {"interrupted": bool(interrupted), "seconds": steps.seconds}
    draw = partial(_draw, result, held_out, asked)
    deliver(result, asked, steps, entries, draw, interrupted, audit, intervals)
    if interrupted:
        return Exit.INTERRUPTED
    # Only a limit that the user has named makes what is open a fault.
    limited = asked.time_limit is not None and limit is not None
    return Exit.GAP if limited and not _finished(result, held_out) else Exit.DONE


def _refuse_nested(prepared: Prepared, asked: SimpleNamespace) -> None:
    """Raise an InputError, before the fit, where --nested asks for what cannot be computed."""
    if not asked.nested:
        return
    if asked.size is not None:
        raise InputError("--nested judges the choice of a size. With --size, leave it out")
    refuse_nested(prepared.data, asked.folds, groups=prepared.source.groups)


def _shown(held_out: HeldOut, source: Table) -> Shown:
    """What a report says of the rows and the work."""
    surface = held_out.surface
    trees, nodes = (int(surface.table(name).sum()) for name in ("n_mio", "n_nodes"))
    problems = surface.folds.k * surface.taus.size * surface.gammas.size
    searches = f"{problems:,} training problems (folds × τ × γ), {trees:,} searches, "
    return Shown(searches=f"{searches}{nodes:,} nodes.")


def _certify(result: Result, held_out: HeldOut, path: Path) -> None:
    """Write the certificate of the least CV error, and say on standard error what it proves.

    Raises InputError: A CV error is not proved, certificates do not serve the fit, or the file
        cannot be written.
    """
    made = choice_certificate(result)
    made.save(path)
    note(f"{path} proves: {made.claim[0]}")
    if text := beyond_certificate(held_out.surface, held_out.choice, result.claim):
        note(text)


def add_frames(result: Result, asked: SimpleNamespace) -> None:
    """Add to a result the frames that --criteria and --n-best ask for."""
    if asked.criteria:
        result.answers["criteria"] = criteria_of_sizes(result)
    if asked.n_best is not None:
        study = result.study
        seconds = result.ended.remaining if study is None else study.plan.limits.remaining()
        result.answers["alternatives"] = alternatives_of_sizes(result, asked.n_best, seconds)


def _add_answers(result: Result, held_out: HeldOut, asked: SimpleNamespace) -> None:
    """Add to a result the frames that are asked for, and the error to expect on new data.

    Without --nested and --no-nested that error is computed where it takes little time.
    """
    nested, study, groups = asked.nested, held_out.study, result.table.source.groups
    if nested is None:
        # This is asked before the frames, as they take time that the fit itself did not take.
        nested = asked.size is None and nested_by_default(study, result.ended.seconds, groups)
    add_frames(result, asked)
    if not nested:
        return
    try:
        result.expected = nested_error(study, asked.folds, groups=groups)
    except InputError as error:
        if asked.nested:
            raise
        note(f"the error to expect on new data is not computed: {error}")


def _partial(interrupt: KeyboardInterrupt) -> Result:
    """What is known when Ctrl-C comes: CV errors, bounds, and the best model, whatever the rule.

    Raises KeyboardInterrupt: No model is known.
    """
    found: Result | None = getattr(interrupt, "result", None)
    if found is None:
        note("interrupted before the first model was known; nothing is saved")
        raise interrupt
    return found


def _intervals(held_out: HeldOut) -> FoldModels | None:
    """What a model file keeps for prediction intervals; None where the table allows none."""
    try:
        return fold_models(*held_out)
    except InputError:
        return None


def _finished(result: Result, held_out: HeldOut) -> bool:
    """Whether all is proved that was to be proved."""
    study = held_out.study
    if study.plan.needs_no_proof:  # Nothing was to be proved: only the time can be too short.
        return result.ended.limit is not Status.TIME_LIMIT
    # A search looks for the choice alone, not for the CV error of every size.
    settings = study.settings
    errors = settings.prove == "choice" or settings.searches or held_out.surface.complete
    return errors and result.claim.proved and result.model.proved


def _draw(result: Result, held_out: HeldOut, asked: SimpleNamespace) -> None:
    """Draw the picture of --plot.

    The picture shows CV errors against τ; for the rule projected, errors of the projections; for a
    range of γ, what is proved of it.
    """
    study, surface, choice = held_out
    folds = surface.folds
    kind = "leave-one-out" if folds.kind == "loo" else f"{folds.k} folds"
    kind += " in order of time" * (folds.kind == "time")
    path, title = str(asked.plot), f"{result.name}, {kind}"
    said = f"The CV error of each size: {title}. {why_chosen(result)}"
    if choice.projection is not None:
        peers = linear_peers(study.data, values_of(result.sizes, "tau"))
        size_path.plot_errors(result.sizes, result.marks, peers, path, said)
    elif surface.minimum is not None:
        over_gamma.plot_minimum(surface.minimum, path, title)
    else:
        curves.plot_cv(surface, path, said, chosen=choice.position)
