"""What the command line prints: rich tables, and the JSON document."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..cv.results import CVResult, GammaResult
from ..design.model import FittedModel
from ..design.prepare import Prepared
from ..selection.choice import Choice
from ..selection.nested import NestedError
from ..selection.rules import RULES

BAR = 24  # characters of the longest bar
EIGHTHS = " ▏▎▍▌▋▊▉"


def number(value: float) -> str:
    """Six significant digits, without an exponent where that is short.

    Parameters
    ----------
    value : float

    Returns
    -------
    str
    """
    return f"{value:.6g}"


def bar(value: float, longest: float, width: int = BAR) -> str:
    """Draw a value as a bar of eighths of a character.

    Parameters
    ----------
    value, longest : float
    width : int, characters that ``longest`` takes

    Returns
    -------
    str
    """
    if not (np.isfinite(value) and longest > 0):
        return ""
    eighths = round(8 * width * min(max(value / longest, 0.0), 1.0))
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def print_trace(console: Console, result: CVResult) -> None:
    """Print the iterations of the alternating minimisation.

    Parameters
    ----------
    console, result : Console and CVResult
    """
    console.print(
        "alternating minimisation: best τ at γ, then γ for those supports", style="italic"
    )
    table = Table()
    for head in ("γ", "τ", "CV error", "next γ", "for τ", "predicted"):
        table.add_column(head, justify="right")
    for step in result.trace:
        sure = "" if step.certified else "≈"
        table.add_row(
            number(step.gamma),
            str(step.tau),
            sure + number(step.cv_error),
            number(step.next_gamma),
            str(step.next_tau),
            number(step.predicted),
        )
    console.print(table)
    console.print(f"ended: {result.ended}", style="dim")


def print_terms(console: Console) -> None:
    """Say what γ, τ and "proved" mean, in a line each.

    Parameters
    ----------
    console : Console
    """
    for word, meaning in (
        ("γ", "weight of the ridge penalty (γ/2)‖β‖², which shrinks coefficients"),
        ("τ", "the largest number of features that a model may have"),
        ("proved", "no set of features does better: a search has ruled out all others"),
    ):
        console.print(f"[bold]{word:>6}[/]  {meaning}", style="dim")


def print_cv(console: Console, prepared: Prepared, result: CVResult, choice: Choice | None) -> None:
    """Print h(γ, τ) for every γ of a grid, the table of the chosen γ and the choice.

    Without a choice, of a run that was interrupted, the γ of the least estimate.

    Parameters
    ----------
    console, prepared, result : Console, Prepared and CVResult
    choice : Choice, optional
    """
    folds, protocol = prepared.folds, prepared.design.protocol
    kind = "leave-one-out" if folds.leave_one_out else f"{folds.k} folds"
    scaled = "" if protocol.scale == "none" else f", columns scaled to {protocol.scale} on all rows"
    source, aside = prepared.source, ""
    for what, name in (("weights", source.weights_name), ("groups", source.groups_name)):
        aside += "" if name is None else f", {what} {escape(name)}"
    console.print(
        f"[bold]{escape(source.name)}[/]: {folds.n} rows, {prepared.design.p} features, "
        f"{kind}{aside}, {protocol.name} protocol{scaled}"
    )
    best = result.best()
    if len(result.gammas) > 1 and not result.trace:
        _print_grid(console, result)
    marks: dict[int, str] = {}
    if choice is not None and choice.is_pair:
        marks = {choice.tau: "chosen"}
    shown = best.gamma_index if choice is None else choice.gamma_index
    one = result.by_gamma[shown]
    if shown == best.gamma_index:
        marks = {best.one_se: "1 s.e.", best.tau: "least", **marks}
    _print_gamma(console, one, marks)
    grid = f"of the {len(result.gammas)} γ visited" if result.trace else "on this grid"
    if choice is not None:
        console.print(_chosen(result, choice))
    if choice is None or not choice.is_pair or (choice.tau, choice.gamma) != (best.tau, best.gamma):
        console.print(
            f"least CV error {grid}: τ = {best.tau}, γ = {number(best.gamma)}, "
            f"{number(best.cv_error)} ± {number(best.std_error)} ({_proof(result, grid)})"
        )
    else:
        console.print(_proof(result, grid))
    if choice is not None and best.one_se not in (best.tau, choice.tau):
        sure = "" if result.by_gamma[best.gamma_index].exact.all() else " (not proved)"
        console.print(f"within one standard error of the least: τ = {best.one_se}{sure}")
    mios = sum(r.n_mio for r in result.by_gamma)
    nodes = sum(r.n_nodes for r in result.by_gamma)
    problems = folds.k * result.taus.size * len(result.gammas)
    trees = f"{mios:,} tree{'s' if mios != 1 else ''}" if mios else "the whole data's trees alone"
    console.print(
        f"{problems:,} training problems by {trees}, {nodes:,} nodes, {result.seconds:.2f} s",
        style="dim",
    )


def print_expected(console: Console, expected: NestedError | None) -> None:
    """Say which figure to quote, and what the CV errors are for.

    Parameters
    ----------
    console, expected : Console and NestedError
    """
    purpose = "a CV error serves to choose: the least of many is below what new data give"
    if expected is None:
        console.print(f"{purpose} (--nested: the error to expect)", style="dim")
        return
    figure = f"{number(expected.error)}[/] ± {number(expected.std_error)}"
    console.print(
        f"[bold]error to expect on new data: {figure} (the whole procedure cross-validated in "
        f"{expected.folds} outer folds; the figure to quote)"
    )
    console.print(purpose, style="dim")


def _chosen(result: CVResult, choice: Choice) -> str:
    """The model that is presented, in a line."""
    by = f"chosen by the rule {choice.rule}"
    if choice.weights is not None:
        return f"[bold green]{by}: the average of all models, {choice.tau} columns[/]"
    if (found := choice.projection) is not None:
        spread = number(found.of_size(found.std_error)[found.chosen])
        what = f"{choice.tau} columns, γ⊥ = {number(choice.gamma)}"
        return f"[bold green]{by}: {what}, CV error {number(choice.cv_error)}[/] ± {spread}"
    one, t = result.by_gamma[choice.gamma_index], choice.tau_index
    text = f"CV error {number(choice.cv_error)}[/] ± {number(one.std_error[t])}"
    if not one.exact[t]:
        interval = f"[{number(choice.lower)}, {number(choice.upper)}]"
        text += f", an estimate: the exact one lies in {escape(interval)}"
    sure = "" if choice.certified or choice.rule == "minimum" else "; another pair may be chosen "
    sure += "where everything is proved" if sure else ""
    return f"[bold green]{by}: τ = {choice.tau}, γ = {number(choice.gamma)}, {text}{sure}"


def _proof(result: CVResult, grid: str) -> str:
    """What is proved of the least CV error."""
    best = result.best()
    if best.certified:
        within = "" if result.tolerance is None else f" within {100 * result.tolerance:g} %"
        return f"proved the least {grid}{within}"
    interval = f"[{number(best.lower_bound)}, {number(best.upper)}]"
    return f"not proved: the least error {grid} lies in {escape(interval)}"


def print_choices(console: Console, choices: dict[str, Choice], rule: str) -> None:
    """Print what other rules would choose, beside the one that was asked for.

    Parameters
    ----------
    console : Console
    choices : dict of str to Choice
    rule : str
    """
    if len({(c.tau, c.gamma) for c in choices.values() if c.is_pair}) == 1:
        return
    table = Table(title="what each rule chooses", title_justify="left", title_style="italic")
    for head in ("rule", "τ", "γ", "CV error", "what is least"):
        table.add_column(head, justify="left" if head in ("rule", "what is least") else "right")
    for name, choice in choices.items():
        least = RULES[name].least + ("" if name == "one-se" else f" = {number(choice.criterion)}")
        if choice.lambda_ is not None:
            least = least.replace("λ", f"{choice.lambda_:.3g}", 1)
        row = [name, str(choice.tau), number(choice.gamma), number(choice.cv_error), least]
        if choice.weights is not None:
            row[2:] = ["", f"≤ {row[3]}", RULES[name].least]
        if not choice.certified:
            row[-1] += ", not proved"
        table.add_row(*row, style="bold" if name == rule else None)
    console.print(table)


def _print_grid(console: Console, result: CVResult) -> None:
    """One column per γ, wrapped to the width of the console; ≈ marks what is not proved."""
    unproved = "" if result.complete else "; ≈ marks what is not proved"
    console.print(f"CV error h(γ, τ); the least of each γ in bold{unproved}", style="italic")
    least = [int(np.argmin(r.cv_error)) for r in result.by_gamma]
    cells = [
        [("" if exact else "≈") + number(h) for h, exact in zip(r.cv_error, r.exact, strict=True)]
        for r in result.by_gamma
    ]
    heads = [f"γ={gamma:.4g}" for gamma in result.gammas]
    widths = [3 + max(map(len, [head, *rows])) for head, rows in zip(heads, cells, strict=True)]
    for shown in _chunks(widths, console.width - 4 - len(str(result.taus[-1]))):
        table = Table()
        table.add_column("τ", justify="right")
        for g in shown:
            table.add_column(heads[g], justify="right", no_wrap=True)
        for t, tau in enumerate(result.taus):
            row = [f"[bold]{cells[g][t]}[/]" if t == least[g] else cells[g][t] for g in shown]
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


def _print_gamma(console: Console, result: GammaResult, marks: dict[int, str]) -> None:
    console.print(f"γ = {number(result.gamma)}", style="italic")
    table = Table()
    proved = bool(result.exact.all())
    heads = ["τ", "CV error", "± s.e."] + ([] if proved else ["proved interval"])
    rows = []
    for t, size in enumerate(result.taus):
        row = [str(size), number(result.cv_error[t]), number(result.std_error[t])]
        if not proved:
            interval = f"[{number(result.lower[t])}, {number(result.upper[t])}]"
            row.append("exact" if result.exact[t] else interval)
        rows.append(row)
    widths = [max(len(row[c]) for row in [heads, *rows]) + 3 for c in range(len(heads))]
    room = console.width - sum(widths) - 4 - len(" chosen")
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("above the least", overflow="fold")
    above = result.cv_error - result.cv_error.min()
    for t, size in enumerate(result.taus):
        mark = f" {marks[int(size)]}" if int(size) in marks else ""
        drawn = bar(float(above[t]), float(above.max()), min(BAR, max(room, 3))) + mark
        style = "bold green" if marks.get(int(size)) == "chosen" else None
        table.add_row(*map(escape, rows[t]), drawn.strip(), style=style)
    console.print(table)


def print_model(
    console: Console, prepared: Prepared, model: FittedModel, objective: str = "training"
) -> None:
    """Print the coefficients in original units and the certificate of an objective.

    Parameters
    ----------
    console, prepared, model : Console, Prepared and FittedModel
    objective : str, what the objective is called
    """
    console.print("model on all rows, original units", style="italic")
    table = Table()
    table.add_column("feature", overflow="fold")
    table.add_column("coefficient", justify="right")
    room = max(console.height - 12, 10) if console.is_terminal else model.support.size
    for column in model.support[:room]:
        table.add_row(escape(prepared.names[column]), number(model.coef[column]))
    if (more := model.support.size - room) > 0:
        table.add_row(f"… {more} more", "in --json or --save", style="dim")
    table.add_row("(intercept)", number(model.intercept), style="dim")
    console.print(table)
    if np.isnan(model.objective):
        console.print("average of the grid's models, weights h^(-n/10)", style="dim")
        return
    gap = "optimal" if model.proved else f"relative gap {model.gap:.2g}"
    console.print(
        f"{objective} objective {number(model.objective)}, proved lower bound "
        f"{number(model.lower_bound)} ({gap})",
        style="dim",
    )
