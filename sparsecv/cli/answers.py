"""Options of ``cv`` and ``fit`` that ask for more than the model, and how the answers are printed.

They are the size of the model, other subsets, criteria, forward steps, SQL and prediction
intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.markup import escape

from ..errors import InputError
from .options import Options, option

if TYPE_CHECKING:
    from ..design.design import Design
    from ..design.fold_models import FoldModels
    from ..design.prepare import Standardised
    from ..selection.choice import Choice
    from ..selection.sizes import SizeModels
    from ..selection.study import Study
    from ..solvers.core.problem import SparseRidgeProblem

# A subset counts as good if the CV error of its size exceeds the least of all sizes by at most this
# share, and its own that of the best subset of its size.
GOOD = 0.02
COUNTS = (
    "The shares describe this table and these folds. They are no probabilities: neither that a "
    "feature matters, nor what other data would select. Features that stand in for each other "
    "share their counts."
)
OWN_ERRORS = (
    "Every fold fits the same features, which all rows have chosen: these CV errors are mostly "
    "lower than those of a size, whose folds choose features of their own."
)


class Wanted(NamedTuple):
    """What a command is asked for besides the model; the fields are the options of these names."""

    size: int | None = None
    n_best: int | None = None
    criteria: bool = False
    stepwise: bool = False
    sql: Path | None = None
    intervals: bool = False

    @property
    def tables(self) -> bool:
        """Whether a table about every size is asked for."""
        return self.n_best is not None or self.criteria or self.stepwise


OPTIONS: Options = {
    "size": option(int | None, "The model of this size, by the same rule."),
    "n_best": option(int | None, "Also the N best subsets of each size, and their columns."),
    "criteria": option(bool, "Also AIC, BIC, EBIC and Cp of each size.", "--criteria"),
    "stepwise": option(bool, "Also what forward steps would have missed.", "--stepwise"),
    "sql": option(Path | None, "Write the model as an SQL expression here (- the screen)."),
    "intervals": option(
        bool, "With --save: keep what sparsecv predict --coverage needs.", "--intervals"
    ),
}
# The options of ``fit``, which does not cross-validate.
WITHOUT_FOLDS = {name: OPTIONS[name] for name in ("n_best", "criteria", "stepwise", "sql")}


def taken(asking: dict[str, Any], save: Path | None) -> Wanted:
    """Take the options above out of what a command was given.

    Raises InputError: --n-best is below 1 or too large, or --intervals has no file.
    """
    from .grids import MAX_RANGE_VALUES  # The module imports much, and the help needs none of it.

    wanted = Wanted(**{name: asking.pop(name) for name in OPTIONS if name in asking})
    if wanted.n_best is not None and wanted.n_best < 1:
        raise InputError(f"--n-best must be at least 1; got {wanted.n_best}")
    if wanted.n_best is not None and wanted.n_best > MAX_RANGE_VALUES:
        raise InputError(f"--n-best must be at most {MAX_RANGE_VALUES}; got {wanted.n_best}")
    if wanted.intervals and save is None:
        raise InputError("--intervals goes with --save FILE, which keeps them")
    return wanted


def after_folds(study: Study, choice: Choice, wanted: Wanted) -> dict[str, Any]:
    """The tables that ``sparsecv cv`` was asked for, under the names of the estimator's."""
    from ..selection.alternatives import alternatives, column_table
    from ..selection.sizes import models_by_size, subsets_by_size

    if not wanted.tables:
        return {}
    full, sizes = study.data.full(), models_by_size(study, choice)
    subsets = subsets_by_size(study, choice)
    found = _of_sizes(full, study.design, study.data.total, sizes, subsets, wanted)
    if wanted.n_best is not None:
        found["alternatives_"] = alternatives(study, subsets, wanted.n_best)
        found["column_table"] = column_table(study, subsets, found["alternatives_"], GOOD)
    return found


def without_folds(
    ready: Standardised,
    problem: SparseRidgeProblem,
    every: Callable[[], SizeModels],
    seconds: float | None,
    wanted: Wanted,
) -> dict[str, Any]:
    """The tables that ``sparsecv fit`` was asked for, of sizes up to τ at one γ.

    problem: All rows, with the γ and τ of the fit.
    every: Gives the model of every size.
    seconds: Limit of the search for the n best subsets.
    """
    from ..selection.alternatives import alternatives_table, ranked_by_size

    if not wanted.tables:
        return {}
    design, sizes = ready.design, every()
    found = _of_sizes(problem, design, ready.total, sizes, sizes, wanted)
    if wanted.n_best is not None:
        ranked = ranked_by_size(problem, design, sizes, wanted.n_best, seconds)
        found["alternatives_"] = alternatives_table(problem, design, sizes, ranked, None)
    return found


def _of_sizes(
    problem: SparseRidgeProblem,
    design: Design,
    n: float,
    sizes: SizeModels,
    subsets: SizeModels,
    wanted: Wanted,
) -> dict[str, Any]:
    """The criteria of models, and forward steps beside the best subsets of the same sizes.

    n: Number of rows, or the sum of their weights.
    """
    from ..selection.criteria import criteria
    from ..selection.sizes import forward_steps

    found: dict[str, Any] = {}
    if wanted.criteria:
        held_out = {} if np.isnan(sizes.cv_error).all() else {"cv_error": sizes.cv_error}
        values = criteria(problem, design, n, [model.support for model in sizes.models])
        found["criteria_"] = {"tau": sizes.tau, **held_out, **values}
    if wanted.stepwise:
        found["forward_steps_"] = forward_steps(problem, design, subsets)
    return found


def kept_intervals(study: Study, choice: Choice, wanted: Wanted) -> FoldModels | None:
    """What the model file keeps for prediction intervals, if it is asked for."""
    from ..selection.intervals import fold_models

    return fold_models(study, choice) if wanted.intervals else None


def print_answers(
    console: Console, names: list[str], found: Mapping[str, Any], size: int, whole: bool
) -> None:
    """Print the tables that were asked for.

    names: Names of all columns.
    size: The size whose subsets are printed, unless ``whole`` asks for those of all sizes.
    """
    if "criteria_" in found:
        _print_criteria(console, found["criteria_"], size, whole)
    if "forward_steps_" in found:
        _print_steps(console, names, found["forward_steps_"], size, whole)
    if "alternatives_" in found:
        _print_alternatives(console, names, found["alternatives_"], size, whole)
    if "column_table" in found:
        _print_columns(console, names, found["column_table"], whole)


def _print_criteria(console: Console, found: dict[str, Any], size: int, whole: bool) -> None:
    from .report import make_table, number, print_table, rows_shown

    heads = {"cv_error": "CV error", "aic": "AIC", "bic": "BIC", "ebic": "EBIC", "cp": "Cp"}
    heads = {name: head for name, head in heads.items() if name in found}
    console.print("\ncriteria by number of features; the least of each in bold", style="italic")
    table, sizes = make_table(("features", *heads.values())), found["tau"]
    for t in rows_shown(sizes.size, int(np.searchsorted(sizes, size)), whole):
        cells = [str(sizes[t])]
        for name in heads:
            values = found[name]
            least = np.isfinite(values).any() and values[t] == np.nanmin(values)
            text = "" if np.isnan(values[t]) else number(values[t])
            cells.append(f"[bold]{text}[/]" if least else text)
        table.add_row(*cells)
    print_table(console, table, sizes.size, "sizes")
    console.print(
        "AIC, BIC (as R's lm), EBIC and Cp (as leaps) of a least-squares fit on the features of "
        "each size. They do not know that the features were searched for, and are too small."
    )


def _print_steps(
    console: Console, names: list[str], found: dict[str, Any], size: int, whole: bool
) -> None:
    from .report import make_table, number, print_table, rows_shown

    console.print("\nforward steps against the best subset, by size", style="italic")
    table, sizes = make_table(("features", "best", "forward", "above", "proved")), found["tau"]
    table.add_column("missed", overflow="fold")
    for t in rows_shown(sizes.size, int(np.searchsorted(sizes, size)), whole):
        excess = found["excess"][t]
        table.add_row(
            str(sizes[t]),
            number(found["best"][t], bool(found["proved"][t])),
            number(found["objective"][t]),
            f"{100.0 * excess:.2g} %" if excess != 0.0 else "",
            "yes" if found["proved"][t] else "no",
            escape(", ".join(names[c] for c in found["missed"][t])),
        )
    print_table(console, table, sizes.size, "sizes")


def _print_alternatives(
    console: Console, names: list[str], found: dict[str, Any], size: int, whole: bool
) -> None:
    from .report import make_table, number, print_table

    errors = bool(np.isfinite(found["cv_error"]).any())
    console.print("\nthe best subsets, by training objective", style="italic")
    heads = ("features", "rank", "objective", *(("CV error", "± s.e.") if errors else ()))
    table = make_table(heads)
    table.add_column("which", overflow="fold")
    shown = np.flatnonzero(found["tau"] == size) if not whole else np.arange(found["tau"].size)
    for i in shown:
        spread = [number(found[name][i]) for name in ("cv_error", "std_error") if errors]
        table.add_row(
            str(found["tau"][i]),
            str(found["rank"][i]),
            number(found["objective"][i], bool(found["proved"][i])),
            *spread,
            escape(", ".join(names[c] for c in found["columns"][i])),
        )
    print_table(console, table, shown.size, "subsets")
    if not found["proved"][shown].all():
        console.print("≈: the search ended before this rank was proved.")
    if errors:
        console.print(OWN_ERRORS)


def _print_columns(console: Console, names: list[str], found: dict[str, Any], whole: bool) -> None:
    from .report import make_table, print_table, rows_shown

    heads = ("feature", "in good subsets", "in folds")
    console.print(
        f"\nshare of the {found['n_good']} subsets within {100 * GOOD:g} % of the best CV errors, "
        f"and of {found['n_folds']} models of folds, that have a feature",
        style="italic",
    )
    order = np.lexsort((-found["in_folds"], -found["in_good"]))
    table = make_table(heads, left=("feature",))
    for i in order[rows_shown(order.size, 0, whole)]:
        shares = (f"{100.0 * found[name][i]:.0f} %" for name in ("in_good", "in_folds"))
        table.add_row(escape(names[found["column"][i]]), *shares)
    print_table(console, table, order.size, "features")
    console.print(COUNTS)
