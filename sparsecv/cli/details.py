"""Prints the details of ``sparsecv cv``: CV errors by size, other choices, and the search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.bar import Bar
from rich.console import Console
from rich.markup import escape

from ..cv.results import CVResult, bounds_text, least
from ..design.prepare import Prepared
from ..selection.choice import Choice
from ..selection.projection import Projection
from ..selection.rules import RULES
from ..selection.sizes import changes
from ..solvers.core.plan import MAX_COLUMNS
from .report import MAX_TABLE_ROWS, Run, make_table, number, print_table, rows_shown

# In the table of sizes, the bar of the largest CV error takes at most this many characters. Bars of
# twice the width would not fit beside the numbers on a screen of 80 characters.
MAX_BAR_CHARACTERS = 24


def print_details(console: Console, run: Run, whole: bool, compare: bool) -> None:
    """Print the CV errors by size, other choices, and the number of searches, nodes and seconds.

    whole: Every row of every table is printed.
    compare: The choices of the other rules are printed.
    """
    study, prepared, choice = run.study, run.prepared, run.choice
    result = study.surface
    if choice.projection is not None:
        _print_projections(console, prepared.names, choice.projection, whole)
        _print_least(console, result, choice)
    else:
        print_sizes(console, prepared, result, choice, whole)
    if not study.sizes_named and prepared.design.p > MAX_COLUMNS:
        console.print(
            f"Sizes up to {study.sizes[-1]} of {prepared.design.p} were searched, as beyond "
            f"{MAX_COLUMNS} features by default; --tau 1:{prepared.design.p} searches all."
        )
    if result.edge:
        console.print(escape(result.edge))
    if compare or whole:
        _print_choices(console, run.choices, study.rule)
    _print_grid(console, result, whole)
    if result.trace and whole:
        _print_trace(console, result)
    trees, nodes = (sum(getattr(r, name) for r in result.by_gamma) for name in ("n_mio", "n_nodes"))
    problems = prepared.folds.k * result.taus.size * len(result.gammas)
    console.print(
        f"{problems:,} training problems (folds × τ × γ), {trees:,} searches, {nodes:,} nodes, "
        f"{result.seconds:.2f} s",
        style="dim",
    )


def print_sizes(
    console: Console, prepared: Prepared, result: CVResult, choice: Choice | None, whole: bool
) -> None:
    """Print the CV error of every size at the size's best γ; at the chosen size, the chosen γ.

    choice: The chosen pair (τ, γ), or None where the run was interrupted.
    whole: Every row is printed.
    """
    best, error = result.best(), result.table("cv_error")
    at = [least(error[:, [t]], result.taus[[t]], result.gammas)[0] for t in range(error.shape[1])]
    marks, centre = {best.tau_index: "least"}, best.tau_index
    marks.setdefault(int(np.flatnonzero(result.taus == best.one_se)[0]), "1 s.e.")
    if choice is not None and choice.is_pair:
        centre = choice.tau_index
        at[centre] = choice.gamma_index
        marks[centre] = "chosen"
    console.print("\nCV error by number of features, each at its best γ", style="italic")
    shown = rows_shown(len(at), centre, whole)
    cells = [_size_row(prepared, result, at[t], t) for t in shown]
    heads = ["features", "γ", "CV error", "± s.e.", "R²", "bounds"]
    kept = [c for c in range(len(heads)) if any(row[c] for row in cells)]
    table = make_table([heads[c] for c in kept])
    table.add_column("above least", max_width=MAX_BAR_CHARACTERS)
    table.add_column("", no_wrap=True, overflow="fold")
    above = np.nan_to_num(error[at, np.arange(len(at))] - error.min(), posinf=0.0)
    for row, t in zip(cells, shown, strict=True):
        bar = Bar(max(float(above.max()), 1e-300), 0.0, float(above[t]))
        style = "bold green" if marks.get(t) == "chosen" else None
        table.add_row(*(escape(row[c]) for c in kept), bar, marks.get(t, ""), style=style)
    print_table(console, table, len(at), "sizes")
    _print_least(console, result, choice)


def _size_row(prepared: Prepared, result: CVResult, g: int, t: int) -> list[str]:
    """Cells of the table of sizes: size, γ, CV error, standard error, R², and proved bounds.

    g, t: Positions of γ and of the size τ on the surface.
    """
    one, r2 = result.by_gamma[g], None
    error, exact = float(one.cv_error[t]), bool(one.exact[t])
    if np.isfinite(error):
        r2 = prepared.quality(error)[1]
    return [
        str(one.taus[t]),
        f"{one.gamma:.4g}",
        number(error, exact),
        number(float(one.std_error[t])),
        "" if r2 is None else f"{r2:.3f}",
        "" if exact else bounds_text(float(one.lower[t]), error, float(one.upper[t])),
    ]


def _print_least(console: Console, result: CVResult, choice: Choice | None) -> None:
    """Print the pairs that the rules minimum and one-se would choose, unless they are chosen."""
    best = result.best()
    pair = None if choice is None or not choice.is_pair else (choice.tau, choice.gamma)
    others = [("least CV error", best.gamma_index, best.tau_index, "minimum")]
    if best.one_se != best.tau:
        t = int(np.flatnonzero(result.taus == best.one_se)[0])
        within = "fewest features within one standard error of the least CV error"
        others.append((within, best.one_se_gamma_index, t, "one-se"))
    for what, g, t, rule in others:
        one = result.by_gamma[g]
        if (int(one.taus[t]), one.gamma) != pair:
            error = number(one.cv_error[t], bool(one.exact[t]))
            console.print(
                f"{what}: τ = {one.taus[t]}, γ = {number(one.gamma)}, "
                f"CV error {error} ± {number(one.std_error[t])} (--rule {rule})"
            )


def _print_choices(console: Console, choices: dict[str, Choice], rule: str) -> None:
    """Print a table of the choices of rules, to show how much the choice depends on the rule.

    After the aim of a rule that minimises a criterion stands the criterion's value at the choice.
    An average of models has no γ of its own, and its cell is empty.

    choices: The choices that were computed, by the names of their rules.
    rule: The rule of the run, whose row is printed in bold.
    """
    heads, aims = ("rule", "τ", "γ", "CV error"), "what the rule looks for"
    table = make_table((*heads, aims), left=("rule", aims), title="what each rule chooses")
    for name, choice in choices.items():
        found, gamma, aim = choice.projection, number(choice.gamma), RULES[name].aim
        exact = choice.lower == choice.upper if found is None else found.proved
        if choice.weights is not None:
            gamma, exact = "", True
        elif found is None and name != "one-se" and np.isfinite(choice.criterion):
            aim += f": {number(choice.criterion)}"
        if choice.lambda_ is not None:
            aim += f" at λ = {choice.lambda_:.3g}"
        if not choice.certified:
            aim += ", not proved"
        cells = name, str(choice.tau), gamma, number(choice.cv_error, exact), aim
        table.add_row(*cells, style="bold" if name == rule else None)
    console.print(table)


def _print_grid(console: Console, result: CVResult, whole: bool) -> None:
    """Print the CV error of every size and γ, in as many tables as the console's width needs.

    Without ``whole``, nothing is printed where the tables would be long.
    """
    heads, columns = [f"γ={gamma:.4g}" for gamma in result.gammas], []
    for one in result.by_gamma:
        cells = [number(h, bool(exact)) for h, exact in zip(one.cv_error, one.exact, strict=True)]
        columns.append(cells)
    sizes = [str(tau) for tau in result.taus]
    width = 3 + max(len(cell) for cells in [heads, *columns] for cell in cells)
    beside = max((console.width - 4 - len(sizes[-1])) // width, 1)
    parts = range(0, len(heads), beside)
    asked = not result.trace and len(parts) * len(sizes) <= MAX_TABLE_ROWS
    if len(heads) == 1 or not (whole or asked):
        return
    for one, cells in zip(result.by_gamma, columns, strict=True):
        lowest = int(np.argmin(one.cv_error))
        cells[lowest] = f"[bold]{cells[lowest]}[/]"
    console.print("CV error at every τ and γ; the least of each γ in bold", style="italic")
    for start in parts:
        here = slice(start, start + beside)
        rows = zip(sizes, *columns[here], strict=True)
        console.print(make_table(("τ", *heads[here]), rows))


def _print_trace(console: Console, result: CVResult) -> None:
    """Print the iterations of the alternating minimisation over τ and γ."""
    console.print(
        "search of γ: the best τ at γ, then the best γ for those features", style="italic"
    )
    table = make_table(("γ", "τ", "CV error", "next γ", "for τ", "predicted"))
    for step in result.trace:
        error = number(step.cv_error, step.certified)
        ahead = number(step.next_gamma), str(step.next_tau), number(step.predicted)
        table.add_row(number(step.gamma), str(step.tau), error, *ahead)
    console.print(table)
    console.print(f"ended: {result.ended}", style="dim")


def _print_projections(
    console: Console, names: Sequence[str], found: Projection, whole: bool
) -> None:
    """Print CV error, distance from the average and change of features for every size.

    names: Names of all columns.
    """
    t, distance = found.chosen, found.of_size(found.distance)
    share = distance / found.reference if found.reference > 0.0 else np.zeros(distance.size)
    most = found.max_share[t]
    aim = f"the fewest features that stay within {100 * most:.2g} % of that"
    if share[t] > most:
        aim = "the size that comes closest"
    console.print(
        f"\nThe average of all models has CV error "
        f"{number(found.reference, found.proved)} ± "
        f"{number(found.reference_std)}; a model of fewer features is at a distance from it, the "
        f"mean squared difference of their predictions on held-out rows. Chosen: {aim}."
    )
    error, spread = found.of_size(found.cv_error), found.of_size(found.std_error)
    table = make_table(("features", "γ", "CV error", "± s.e.", "distance"))
    table.add_column("what changes", overflow="fold")
    supports = [np.empty(0, dtype=np.intp), *(model.support for model in found.models)]
    for i in rows_shown(len(found.models), t, whole):
        change = changes(supports[i], supports[i + 1], names)
        if len(change) > 4 and not whole:
            came = sum(one.startswith("+") for one in change)
            change = [f"{came} in, {len(change) - came} out"]
        table.add_row(
            str(found.sizes[i]),
            f"{found.gammas[found.at[i]]:.3g}",
            number(error[i], found.proved),
            number(spread[i]),
            f"{100 * share[i]:.2g} %",
            escape(" ".join(change)),
            style="bold green" if i == t else None,
        )
    print_table(console, table, len(found.models), "sizes")
