"""What ``sparsecv cv --rule projected`` prints: errors, distances and columns by size."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..selection.projection import NEAR, Projection
from .report import number


def print_sizes(console: Console, names: Sequence[str], found: Projection) -> None:
    """Say what was done, and print error, distance and the change of columns for every size.

    Parameters
    ----------
    console : Console
    names : sequence of str
        Of the raw columns.
    found : Projection
    """
    t, distance = found.chosen, found.of_size(found.distance)
    share = distance[t] / found.reference if found.reference > 0.0 else 0.0
    near = (
        f"the fewest whose predictions on held-out rows stay within {100 * NEAR:g} % of that error"
    )
    if share > NEAR:
        near = "the size whose predictions on held-out rows come closest"
    sure = "proved the best of their size" if found.proved else "good ones, not all proved the best"
    console.print(
        "projected: the average of all models of the grid (CV error "
        f"{number(found.reference)} ± {number(found.reference_std)}) is replaced by the best "
        f"{found.sizes[t]} columns, {near} (mean squared distance {100 * share:.2g} %); columns "
        f"are {sure}"
    )
    table = Table()
    for head in ("τ", "CV error", "± s.e.", "distance", "γ⊥"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("columns, as they change", overflow="fold")
    error, spread = found.of_size(found.cv_error), found.of_size(found.std_error)
    before: set[int] = set()
    for i, model in enumerate(found.models):
        now = set(model.support.tolist())
        changes = [f"+{names[c]}" for c in sorted(now - before)]
        changes += [f"−{names[c]}" for c in sorted(before - now)]
        mark = "" if model.proved else " (not proved)"
        values = (error[i], spread[i], distance[i], found.gammas[found.at[i]])
        table.add_row(
            str(found.sizes[i]),
            *map(number, values),
            escape(" ".join(changes) + mark),
            style="bold green" if i == t else None,
        )
        before = now
    console.print(table)
