"""The options of all commands: their names, what they take, and what ``--help`` says of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import typer

from ..errors import InputError

Command = TypeVar("Command", bound=Callable[..., None])


class Exit(IntEnum):
    """Exit statuses; GAP means that a limit which the user named left something unproved."""

    DONE = 0
    GAP = 1
    BAD_INPUT = 2
    INTERRUPTED = 130


class Option(NamedTuple):
    """What an option takes, its default, and its names and words in ``--help``.

    names: Names such as "--json"; where there are none, the parameter's name with hyphens.
    more: Further arguments of ``typer.Option``.
    """

    kind: Any
    default: Any
    text: str
    names: tuple[str, ...]
    more: dict[str, Any]

    def parameter(self, name: str, panel: str | None) -> inspect.Parameter:
        """The parameter of a command, whose option stands in a panel of ``--help``."""
        how = typer.Option(*self.names, help=self.text, rich_help_panel=panel, **self.more)
        return inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=self.default,
            annotation=Annotated[self.kind, how],
        )


def option(kind: Any, default: Any, text: str, *names: str, **more: Any) -> Option:
    """An option; ``names`` and ``more`` are those of ``typer.Option``."""
    return Option(kind, default, text, names, more)


def flag(name: str, text: str) -> Option:
    """An option without a value."""
    return option(bool, False, text, f"--{name}")


def _data_sets() -> list[str]:
    """Names of data sets for the shell's completion."""
    from ..tables.datasets import list_datasets

    return [info.name for info in list_datasets() if info.available]


def _checked_jobs(jobs: int) -> int:
    """Return the value of --jobs; raise an InputError where it is 0 or below -1."""
    if jobs < -1 or jobs == 0:
        raise InputError(f"--jobs must be a number of threads or -1; got {jobs}")
    return jobs


DATA = Annotated[
    str,
    typer.Argument(
        metavar="data",
        help="A CSV, Parquet or .npy file, a data set's name, or - for CSV on standard input.",
        autocompletion=_data_sets,
    ),
]
RULE = Literal[
    "auto", "minimum", "one-se", "stability", "corrected", "repeated", "averaged", "projected"
]
Encoding = Annotated[str, typer.Option(help="Encoding of a text file, such as latin-1.")]
TABLE = {
    "target": option(str | None, None, "Response column; default: the last one."),
    "drop": option(
        list[str] | None, None, "Columns to leave out, comma-separated; may be repeated."
    ),
    "one_hot": flag("one-hot", "Encode text columns as 0/1 columns."),
    "dates": flag(
        "dates", "Replace columns of dates by year, month, weekday and days since the first row."
    ),
    "weights": option(str | None, None, "Column of weights >= 0 of the squared errors."),
    "groups": option(str | None, None, "Column of groups, which folds keep together."),
    "order": option(
        str | None, None, "Column of times: folds train on earlier rows and hold out later ones."
    ),
    "missing": option(
        Literal["drop", "mean", "median"] | None,
        None,
        "Missing values: leave out their rows, or fill them with the mean or median of each "
        "fold's training rows.",
    ),
    "encoding": option(str, "utf-8", "Encoding of a text file, such as latin-1."),
}
CONSTRAINTS = {
    "include": option(str | None, None, "Columns that are in every model, as a,b."),
    "exclude": option(str | None, None, "Columns that are in no model, as a,b."),
    "split_factors": flag(
        "split-factors",
        "With --one-hot: each 0/1 column enters alone, not the columns of a text column together.",
    ),
    "heredity": option(
        Literal["strong", "weak"] | None,
        None,
        "A column named a:b needs a and b (strong), or one of them (weak).",
    ),
    "positive": option(
        str | None,
        None,
        "Columns whose coefficients are not negative; without names all.",
        metavar="[a,b]",
    ),
    "constraints": option(
        Path | None,
        None,
        "JSON file of constraints on columns, with the names of sparsecv.Constraints, such as "
        '{"groups": {"style": ["s1", "s2"]}, "bounds": {"age": [0, 2]}}, and "penalty_factors".',
    ),
}
# The panels of ``--help``, with the options in each.
PANELS: dict[str, dict[str, Option]] = {
    "Table": TABLE,
    "Folds": {
        "folds": option(str, "5", "loo, a number K or size:M."),
        "nested": option(
            bool | None,
            None,
            "Cross-validate the whole fit by outer folds: the error to expect on new data. "
            "By default up to 45 columns, where the fit took at most 5 s.",
            "--nested/--no-nested",
        ),
        "test": option(float, 0.0, "Share of the rows that are held out for a test."),
        "seed": option(
            int, 0, "Seed of the folds, and of what else is drawn.", min=0, max=2**32 - 1
        ),
    },
    "Model": {
        "tau": option(str, "all", "Numbers of features: all, A:B or a list t1,t2."),
        "gamma": option(
            str,
            "auto",
            "Ridge weight: a number, a list, LO:HI:N spaced in the logarithm, auto (minimise "
            "over τ and γ in turn, from 1e-4 to 1e4), or global or global:LO:HI (the least error "
            "over every τ and all γ of the range, proved).",
        ),
        "rule": option(
            RULE,
            "auto",
            "How the model is chosen; auto depends on the number of columns, and the output names "
            "the rule.",
        ),
        "compare": flag("compare", "Also show what every other rule would choose."),
        "protocol": option(
            Literal["honest", "paper"],
            "honest",
            "honest: folds refit the intercept, columns are scaled by all rows, or by each fold's "
            "training rows where folds leave rows aside; paper: y and columns are centred and "
            "scaled once by all rows.",
        ),
        "scale": option(
            Literal["unit-variance", "unit-norm", "none"], "unit-variance", "Scale of the columns."
        ),
        "learner": option(
            Literal["sparse-ridge", "projected", "cart", "xgboost", "svm"],
            "sparse-ridge",
            "What is fitted; projected: the average of the grid's models.",
        ),
        "loss": option(
            Literal["auto", "squared", "absolute", "zero-one", "hinge", "log"],
            "auto",
            "What errors are measured by.",
        ),
        "lambdas": option(
            str | None,
            None,
            "Weights of the stability: one, or a list or LO:HI:N, to which 0 is added.",
            "--lambda",
        ),
        "classify": flag("classify", "The response holds labels."),
    },
    "Search and proof": {
        "method": option(
            Literal["auto", "exact", "search", "bounds", "grid"],
            "auto",
            "exact: h at every τ; search: the best τ alone, by bounds and few problems "
            "(Algorithm 1); bounds: its first phase; grid: one problem per fold and τ; auto: "
            "exact, or grid where --backend names an outside solver.",
        ),
        "tol": option(
            float | None,
            None,
            "Relative tolerance of --method search (0.01 by default) and --gamma global (1e-4).",
            show_default=False,
        ),
        "backend": option(
            str, "auto", "Solver of single problems: auto, native, highs, gurobi, scip or mosek."
        ),
        "prove": option(str, "choice", "Beyond 45 columns: choice, or all (every error)."),
        "time_limit": option(
            str,
            "auto",
            "Seconds for everything (0: estimates only), none, or auto: 60 of proving once the "
            "estimates are there.",
        ),
        "search": option(
            Literal["grid", "coordinate"] | None,
            None,
            "Coordinate is a descent; the paper's choice by default.",
        ),
        "solver": option(
            Literal["auto", "exact", "heuristic", "rounding"],
            "auto",
            "sparse-ridge: rounding is the paper's; auto: exact up to 20 columns.",
        ),
    },
    "Output": {
        "json_file": option(
            Path | None, None, "Write the results here; - is standard output.", "--json"
        ),
        "save": option(Path | None, None, "Write the model here, for sparsecv predict."),
        "sql": option(
            Path | None, None, "Write the model as an SQL expression here (- the screen)."
        ),
        "plot": option(
            Path | None,
            None,
            "Picture of the curves; of a search: its bounds (.gif: a film, 300 frames).",
        ),
        "html": option(Path | None, None, "Write a report here, as one HTML page."),
        "table": flag("table", "Print every table, to its last row."),
        "quiet": flag("quiet", "Print nothing but warnings and errors."),
    },
    "Machine": {
        "jobs": option(int, 1, "Threads; -1 uses every core.", callback=_checked_jobs),
        "checkpoint": option(
            Path | None, None, "Folder that keeps what is finished; a rerun goes on from it."
        ),
        "dask": option(str | None, None, "Address of a Dask scheduler, whose workers work."),
    },
    "Constraints on columns": CONSTRAINTS,
    "What else to find out": {
        "size": option(int | None, None, "The model of this size, by the same rule."),
        "n_best": option(int | None, None, "Also the N best subsets of each size."),
        "criteria": flag(
            "criteria",
            "Also AIC, BIC, EBIC and Cp of each size, and what forward steps would have missed.",
        ),
    },
}
# What to write in place of an option that is gone.
GONE = {
    "--all-levels": "a text column of two levels has one 0/1 column; make a second one in the "
    "table where both are wanted",
    "--repeats": "cv takes six partitions; SparseRidgeCV(repeats=...) takes another number",
    "--no-intercept": "SparseRidgeCV(fit_intercept=False) fits through the origin",
    "--search-bounds": "cv takes the best bounds; sparsecv benchmark --ways paper,best compares",
    "--mio-limit": "write --time-limit SECONDS",
    "--stepwise": "write --criteria, which shows forward steps, too",
    "--intervals": "cv --save FILE always keeps what sparsecv predict --coverage needs",
    "--column-groups": 'write --constraints FILE, with {"groups": {"style": ["s1", "s2"]}}',
    "--bounds": 'write --constraints FILE, with {"bounds": {"age": [0, 2]}}',
    "--penalty-factors": 'write --constraints FILE, with {"penalty_factors": {"age": 0}}',
}


def takes(names: str, **own: Option) -> Callable[[Command], Command]:
    """A decorator that puts options in the place of the ``**given`` of a command.

    names: Names of parameters with blanks between; "data" is the table.
    own: Options of the command that are other than those in PANELS, by their names.
    """
    panel_of = {name: panel for panel, options in PANELS.items() for name in options}
    every = {name: one for options in PANELS.values() for name, one in options.items()} | own

    def parameter(name: str) -> inspect.Parameter:
        if name == "data":
            return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=DATA)
        return every[name].parameter(name, panel_of.get(name))

    def decorate(command: Command) -> Command:
        made: Any = command
        options = [parameter(name) for name in names.split()]
        made.__signature__ = inspect.Signature(options)
        made.__annotations__ = {one.name: one.annotation for one in options}
        return command

    return decorate
