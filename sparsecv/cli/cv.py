"""The command ``sparsecv cv``, which prints the error at every sparsity and chooses a model."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..cv.checkpoint import CheckpointFolder
from ..cv.settings import Settings
from ..design.design import Protocol
from ..design.fold_models import FoldModels
from ..design.prepare import Prepared, prepare
from ..errors import InputError
from ..plots import curves, over_gamma, size_path
from ..report import peers
from ..report.outcome import Result
from ..selection.certified_choice import choice_certificate
from ..selection.choice import CHOOSERS, Choice, choose
from ..selection.intervals import fold_models
from ..selection.nested import nested_by_default, nested_error, refuse_nested
from ..selection.rules import resolved_rule
from ..selection.sizes import choice_of_size
from ..selection.study import Study, partitions_of
from ..solvers.core.result import Status
from . import column_options, grids, outputs
from .console import Steps, announce_limit, as_limit, note, open_console, progress, read, remarks
from .deliver import deliver
from .options import Exit

# What is said of the model of a run that Ctrl-C has ended before the choice, and after it.
INTERRUPTED = "the model of least CV error when Ctrl-C came; neither chosen by the rule nor proved"
INTERRUPTED_LATE = "Ctrl-C came after the choice, while the error to expect was computed"


def cv(data: str, **given: Any) -> Exit:
    """Print the exact CV error at every sparsity, choose the best and fit the model."""
    asked, ended = SimpleNamespace(**given), ""
    steps = Steps(asked.verbose)
    console = open_console(asked.quiet, asked.json_file)
    outputs.refuse_unwritable(asked)
    gammas, taus = grids.parse_asked_gammas(asked.gamma), grids.parse_taus(asked.tau)
    grids.check_count("--n-best", asked.n_best)
    limit = as_limit(asked.time_limit)
    prove = "all" if asked.certificate is not None else asked.prove
    settings = Settings(asked.method, asked.backend, limit, asked.jobs, prove=prove)
    with progress(asked.quiet, steps):
        source = read(data, given, steps)
        proves = asked.certificate is not None
        rule, _ = resolved_rule(asked.rule, settings, gammas, asked.protocol, proves)
        how: Any = {"asked": column_options.column_constraints(source, given)}
        how["partitions"] = partitions_of("projected" if asked.compare else rule)
        layout = Protocol(asked.protocol, asked.scale)
        prepared = prepare(source, asked.folds, layout, seed=asked.seed, **how)
        kept = None if asked.checkpoint is None else CheckpointFolder(asked.checkpoint)
        how = {"rule": asked.rule, "certificate": proves, "seed": asked.seed, "checkpoint": kept}
        known = prepared.data, prepared.design, gammas, taus, settings
        study = Study(*known, progress=steps, **how)
        _refuse(study, prepared, asked)
        try:
            if asked.size is not None:
                study.try_size(asked.size)
            choices = choose(study, compare=asked.compare)
            if asked.size is not None:
                own = choice_of_size(study, choices[study.rule], asked.size)
                choices[study.rule] = own
            found = _result(prepared, study, choices)
            ended = _expected(found, study, asked, source.groups)
        except KeyboardInterrupt as interrupt:
            found, ended = _partial(prepared, study, interrupt), INTERRUPTED
        intervals = _intervals(study, found) if asked.save and not ended else None
    if study.reused:
        note(f"--checkpoint: {len(study.reused)} γ taken over from {asked.checkpoint}")
    found.seconds = steps.seconds
    more = {"interrupted": bool(ended), "seconds": found.seconds}
    if asked.certificate is not None and not ended:
        made = prepared.data, prepared.design, study.surface, prepared.names, source.target_name
        certificate = choice_certificate(*made)
        certificate.save(asked.certificate)
        note(f"{asked.certificate} proves: {certificate.claim[0]}")
        if not choices[study.rule].is_least(study.surface):
            note("the model that is chosen is another, and the certificate says nothing of it")
    draw = partial(_draw, found, study, asked)
    deliver(asked, console, prepared, found, more, draw, steps, note=ended, intervals=intervals)
    return _status(study, found, ended, asked.time_limit is not None)


def _refuse(study: Study, prepared: Prepared, asked: SimpleNamespace) -> None:
    """Refuse what the table does not allow, before the fit; announce the time limit."""
    announce_limit(study.plan, study.data.n_units, asked.time_limit)
    if asked.nested and asked.size is not None:
        raise InputError("--nested judges the choice of a size. With --size, leave it out")
    if asked.nested:
        refuse_nested(prepared.data, asked.folds, groups=prepared.source.groups)


def _result(prepared: Prepared, study: Study, choices: dict[str, Choice]) -> Result:
    """What is shown of a study: the model that its rule chooses, and that of every size."""
    surface, source = study.surface, prepared.source
    trees, nodes = (int(surface.table(name).sum()) for name in ("n_mio", "n_nodes"))
    problems = prepared.folds.k * surface.taus.size * len(surface.gammas)
    return Result.of_choices(
        source.name,
        prepared.names,
        source.target_name,
        study,
        choices,
        remarks=list(remarks(source)),
        work=f"{problems:,} training problems (folds × τ × γ), {trees:,} searches, "
        f"{nodes:,} nodes.",
    )


def besides(found: Result, asked: SimpleNamespace) -> None:
    """Add the tables that are asked for: criteria, other subsets."""
    if asked.criteria:
        found.answers["criteria"] = found.criteria()
    if asked.n_best is not None:
        seconds = found.limit if found.study is None else found.study.seconds_left
        found.answers["alternatives"] = found.alternatives(asked.n_best, seconds)


def _expected(found: Result, study: Study, asked: SimpleNamespace, groups: Any) -> str:
    """Add the tables that are asked for, and the error to expect; return what Ctrl-C has ended.

    The error is computed where it is asked for or takes little time.
    """
    nested = asked.nested
    if nested is None:  # What is asked for besides takes time that the fit did not take.
        nested = asked.size is None and nested_by_default(study)
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


def _partial(prepared: Prepared, study: Study, interrupt: KeyboardInterrupt) -> Result:
    """What is known when Ctrl-C comes: CV errors, bounds, and the best model, whatever the rule.

    Raises KeyboardInterrupt: No model is known.
    """
    surface = vars(study).get("surface") or getattr(interrupt, "partial", None)
    if surface is None:
        note("interrupted before the first model was known; nothing is saved")
        raise interrupt
    vars(study)["surface"] = surface
    asked = np.isin(surface.taus, study.sizes)
    errors = np.where(asked, surface.table("cv_error").min(axis=0), np.inf)
    size = int(surface.taus[np.argmin(errors)])
    choice = choice_of_size(study, CHOOSERS["minimum"](study), size)
    choice = replace(choice, certified=False, size_given=False)
    found = _result(prepared, study, {study.rule: choice})
    found.model = replace(found.model, proved=False)
    return found


def _intervals(study: Study, found: Result) -> FoldModels | None:
    """What a model file keeps for prediction intervals; None where the table allows none."""
    try:
        return None if found.choice is None else fold_models(study, found.choice)
    except InputError:
        return None


def _status(study: Study, found: Result, ended: str, named: bool) -> Exit:
    """The exit status: GAP where a limit that the user named left something unproved.

    ended: Not empty after Ctrl-C.
    named: Whether the user has named a time limit.
    """
    if ended:
        return Exit.INTERRUPTED
    settings = study.settings
    if settings.time_limit is None or not named:
        return Exit.DONE
    if study.estimating:  # Nothing was to be proved, so only the time can have been too short.
        finished = study.status is not Status.TIME_LIMIT
    else:  # A search looks for the choice alone, not for the CV error of every size.
        errors = settings.searches or study.surface.finished
        certified = found.choice is not None and found.choice.certified
        finished = errors and certified and found.model.proved
    return Exit.DONE if finished else Exit.GAP


def _draw(found: Result, study: Study, asked: SimpleNamespace) -> None:
    """Draw the picture of --plot.

    The picture shows CV errors against τ; for the rule projected, errors of the projections; for a
    range of γ, what is proved of it.
    """
    choice, surface = found.choice, study.surface
    if choice is None:
        return
    kind = "leave-one-out" if asked.folds == "loo" else f"{asked.folds} folds"
    path, title = str(asked.plot), f"{found.name}, {kind}"
    if choice.projection is not None:
        others = peers.linear_peers(study.data, [surface.folds], found.sizes.tau)
        size_path.plot_errors(found.sizes, found.marks, others, path, title)
    elif surface.minimum is not None:
        over_gamma.plot_minimum(surface.minimum, path, title)
    else:
        pair = (choice.gamma_index, choice.tau_index) if choice.is_pair else None
        curves.plot_cv(surface, path, title, chosen=pair)
