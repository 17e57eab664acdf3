"""What stands below the answer of ``sparsecv cv``: CV errors by size, and how they were found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..cv.results import Array, CVResult, bounds_text, least
from ..design.prepare import Prepared
from ..selection.choice import Choice
from ..selection.projection import PROJECTION, Projection
from ..selection.rules import RULES
from ..selection.study import Study
from ..solvers.leaps.all_sizes import MAX_COLUMNS
from .figures import quality
from .report import MAX_TABLE_ROWS, number, print_table, rows_shown

MAX_BAR_WIDTH = 24  # characters of the longest bar
EIGHTHS = " ▏▎▍▌▋▊▉"


def bar(value: float, longest: float, width: int = MAX_BAR_WIDTH) -> str:
    """Draw a value as a bar of eighths of a character.

    width: Characters that ``longest`` takes.
    """
    if not (np.isfinite(value) and longest > 0):
        return ""
    eighths = round(8 * width * min(max(value / longest, 0.0), 1.0))
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def print_details(
    console: Console,
    prepared: Prepared,
    study: Study,
    choices: dict[str, Choice],
    rule: str,
    *,
    whole: bool,
    compare: bool,
) -> None:
    """Print the CV errors by size, what else could be chosen, and what the search took.

    console, prepared, study, choices, rule: Of the run.
    whole: Print every row of every table.
    compare: Print what other rules choose.
    """
    result, choice = study.surface, choices[rule]
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
        _print_choices(console, choices, rule)
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
    console: Console,
    prepared: Prepared,
    result: CVResult,
    choice: Choice | None,
    whole: bool,
) -> None:
    """Print the CV error of every size at its best γ, of the chosen size at the chosen γ.

    console, prepared, result: Of the run.
    choice: None of a run that was interrupted.
    whole: Print every row.
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
    cells = [[row[c] for c in kept] for row in cells]
    table, widths = _table([heads[c] for c in kept], cells)
    table.add_column("above least", overflow="fold")
    room = min(MAX_BAR_WIDTH, max(console.width - widths - 4 - len(" chosen"), 3))
    of_size = error[at, np.arange(len(at))]
    above = of_size - error.min()
    for row, t in zip(cells, shown, strict=True):
        drawn = f"{bar(float(above[t]), float(above.max()), room)} {marks.get(t, '')}".strip()
        style = "bold green" if marks.get(t) == "chosen" else None
        table.add_row(*map(escape, row), drawn, style=style)
    print_table(console, table, len(at), "sizes")
    _print_least(console, result, choice)


def _table(heads: list[str], cells: list[list[str]]) -> tuple[Table, int]:
    """A table with columns of numbers, still empty, and the characters that they take."""
    table = Table()
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    widths = (max(map(len, column)) for column in zip(heads, *cells, strict=True))
    return table, sum(3 + width for width in widths)


def _size_row(prepared: Prepared, result: CVResult, g: int, t: int) -> list[str]:
    """Size, γ, CV error with its standard error, R², and bounds where they say something."""
    one, r2 = result.by_gamma[g], None
    error, exact = float(one.cv_error[t]), bool(one.exact[t])
    if np.isfinite(error):
        r2 = quality(prepared, error)[1]
    return [
        str(one.taus[t]),
        f"{one.gamma:.4g}",
        number(error, exact),
        number(float(one.std_error[t])),
        "" if r2 is None else f"{r2:.3f}",
        "" if exact else bounds_text(float(one.lower[t]), error, float(one.upper[t])),
    ]


def _print_least(console: Console, result: CVResult, choice: Choice | None) -> None:
    """The pair of least CV error and the fewest features near it, where they are not chosen."""
    best = result.best()
    pair = None if choice is None or not choice.is_pair else (choice.tau, choice.gamma)
    others = [("least CV error", best.gamma_index, best.tau_index, "minimum")]
    if best.one_se != best.tau:
        t = int(np.flatnonzero(result.taus == best.one_se)[0])
        near = "fewest features within one standard error of the least CV error"
        others.append((near, best.one_se_gamma_index, t, "one-se"))
    for what, g, t, rule in others:
        one = result.by_gamma[g]
        if (int(one.taus[t]), one.gamma) == pair:
            continue
        text = f"{what}: τ = {one.taus[t]}, γ = {number(one.gamma)}, CV error "
        text += f"{number(one.cv_error[t], bool(one.exact[t]))} ± {number(one.std_error[t])}"
        console.print(f"{text} (--rule {rule})")


def _print_choices(console: Console, choices: dict[str, Choice], rule: str) -> None:
    """What other rules would choose, beside the one that was asked for."""
    table = Table(title="what each rule chooses", title_justify="left", title_style="italic")
    for head in ("rule", "τ", "γ", "CV error", "what is least"):
        table.add_column(head, justify="left" if head in ("rule", "what is least") else "right")
    for name, choice in choices.items():
        aim = RULES[name].least + ("" if name == "one-se" else f" = {number(choice.criterion)}")
        if choice.lambda_ is not None:
            aim = aim.replace("λ", f"{choice.lambda_:.3g}", 1)
        found = choice.projection
        exact = choice.lower == choice.upper if found is None else found.proved
        row = [name, str(choice.tau), number(choice.gamma), number(choice.cv_error, exact), aim]
        if choice.weights is not None:
            row[2:] = ["", number(choice.cv_error), RULES[name].least]
        if not choice.certified:
            row[-1] += ", not proved"
        table.add_row(*row, style="bold" if name == rule else None)
    console.print(table)


def _print_grid(console: Console, result: CVResult, whole: bool) -> None:
    """A column for every γ, wrapped to the width of the console, where that is not too long."""
    lowest = [int(np.argmin(r.cv_error)) for r in result.by_gamma]
    cells = [
        [number(h, bool(exact)) for h, exact in zip(r.cv_error, r.exact, strict=True)]
        for r in result.by_gamma
    ]
    heads = [f"γ={gamma:.4g}" for gamma in result.gammas]
    widths = [3 + max(map(len, [head, *rows])) for head, rows in zip(heads, cells, strict=True)]
    parts = list(_chunks(widths, console.width - 4 - len(str(result.taus[-1]))))
    asked = not result.trace and len(parts) * result.taus.size <= MAX_TABLE_ROWS
    if len(heads) == 1 or not (whole or asked):
        return
    console.print("CV error at every τ and γ; the least of each γ in bold", style="italic")
    for part in parts:
        table = Table()
        table.add_column("τ", justify="right")
        for g in part:
            table.add_column(heads[g], justify="right", no_wrap=True)
        for t, tau in enumerate(result.taus):
            row = [f"[bold]{cells[g][t]}[/]" if t == lowest[g] else cells[g][t] for g in part]
            table.add_row(str(tau), *row)
        console.print(table)


def _chunks(widths: list[int], room: int) -> Iterator[list[int]]:
    """Split columns into runs that fit side by side."""
    run: list[int] = []
    for column, width in enumerate(widths):
        if run and sum(widths[c] for c in run) + width > room:
            yield run
            run = []
        run.append(column)
    yield run


def _print_trace(console: Console, result: CVResult) -> None:
    """The iterations of the alternating minimisation."""
    console.print(
        "search of γ: the best τ at γ, then the best γ for those features", style="italic"
    )
    table = Table()
    for head in ("γ", "τ", "CV error", "next γ", "for τ", "predicted"):
        table.add_column(head, justify="right")
    for step in result.trace:
        error = number(step.cv_error, step.certified)
        ahead = number(step.next_gamma), str(step.next_tau), number(step.predicted)
        table.add_row(number(step.gamma), str(step.tau), error, *ahead)
    console.print(table)
    console.print(f"ended: {result.ended}", style="dim")


def _print_projections(
    console: Console, names: Sequence[str], found: Projection, whole: bool
) -> None:
    """Error, distance from the average and the change of features for every size."""
    t = found.chosen
    share = _shares(found)
    near = f"the fewest features that stay within {100 * PROJECTION.max_distance_share:g} % of that"
    if share[t] > PROJECTION.max_distance_share:
        near = "the size that comes closest"
    console.print(
        f"\nThe average of all models has CV error "
        f"{number(found.reference, found.proved)} ± "
        f"{number(found.reference_std)}; a model of fewer features is at a distance from it, the "
        f"mean squared difference of their predictions on held-out rows. Chosen: {near}."
    )
    error, spread = found.of_size(found.cv_error), found.of_size(found.std_error)
    shown = rows_shown(len(found.models), t, whole)
    cells = [
        [
            str(found.sizes[i]),
            f"{found.gammas[found.at[i]]:.3g}",
            number(error[i], found.proved),
            number(spread[i]),
            f"{100 * share[i]:.2g} %",
        ]
        for i in shown
    ]
    table, widths = _table(["features", "γ", "CV error", "± s.e.", "distance"], cells)
    room = max(console.width - widths - 4, 12)
    table.add_column("what changes", no_wrap=not whole, overflow="fold", max_width=room)
    supports = [set[int](), *(set(model.support.tolist()) for model in found.models)]
    for row, i in zip(cells, shown, strict=True):
        before, now = supports[i : i + 2]
        changes = [f"+{names[c]}" for c in sorted(now - before)]
        changes += [f"−{names[c]}" for c in sorted(before - now)]
        text = " ".join(changes)
        if len(text) > room and not whole:
            text = f"{len(now - before)} in, {len(before - now)} out"
        table.add_row(*row, escape(text), style="bold green" if i == t else None)
    print_table(console, table, len(found.models), "sizes")


def _shares(found: Projection) -> Array:
    """Distances from the average as shares of its CV error."""
    distance = found.of_size(found.distance)
    return distance / found.reference if found.reference > 0.0 else np.zeros(distance.size)
