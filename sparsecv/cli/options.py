"""The commands and their options: names, what they take, and what ``--help`` says of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import IntEnum
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import typer
from typer.models import OptionInfo

from ..errors import InputError
from ..schedule import DEFAULT_SECONDS

# What options take; None stands for an option that is not given.
Number = float | None
Whole = int | None
Text = str | None
File = Path | None
Names = list[str] | None  # The option may be repeated.
Prove = Literal["choice", "all"]
Rule = Literal["minimum", "one-se", "stability", "corrected", "projected"] | None
Method = Literal["auto", "exact", "search", "grid"]
Scale = Literal["unit-variance", "unit-norm", "none"]
Missing = Literal["drop", "mean"] | None


class Exit(IntEnum):
    """Exit statuses; GAP means that a limit which the user named left something unproved."""

    DONE = 0
    GAP = 1
    BAD_INPUT = 2
    INTERRUPTED = 130


class Option(NamedTuple):
    """An option or an argument of a command.

    kind: The type of its value.
    default: Its value where it is not given; ... where it must be given.
    shown: What ``typer.Option`` or ``typer.Argument`` makes, which says how ``--help`` shows it.
    """

    kind: Any
    default: Any
    shown: Any

    def parameter(self, name: str) -> inspect.Parameter:
        """The parameter of a command's function that stands for the option."""
        kind, annotation = inspect.Parameter.KEYWORD_ONLY, Annotated[self.kind, self.shown]
        return inspect.Parameter(name, kind, default=self.default, annotation=annotation)


def option(kind: Any, default: Any, text: str, *written: str, **more: Any) -> Option:
    """An option.

    text: What ``--help`` says of it.
    written: How it is written, such as "--json", where that is not its name.
    more: Other arguments of ``typer.Option``.
    """
    return Option(kind, default, typer.Option(*written, help=text, **more))


def flag(text: str) -> Option:
    """An option without a value, which is False where it is not given."""
    return option(bool, default=False, text=text)


def argument(kind: Any, default: Any, text: str, **more: Any) -> Option:
    """An argument; ``more`` is that of ``typer.Argument``."""
    return Option(kind, default, typer.Argument(help=text, **more))


def _checked_jobs(jobs: int) -> int:
    """Return a number of threads; raise an InputError where it is 0 or below -1."""
    if jobs < -1 or jobs == 0:
        raise InputError(f"--jobs must be a number of threads or -1; got {jobs}")
    return jobs


# The options of all commands by the panels of ``--help``. COMMANDS says which command has which
# option, and may give it another type, default or text.
PANELS: dict[str, dict[str, Option]] = {
    "Table": {
        "target": option(Text, None, "Response column; default: the last one."),
        "weights": option(Text, None, "Column of weights >= 0 of the squared errors."),
        "groups": option(Text, None, "Column of groups, which folds keep together."),
        "offset": option(Text, None, "Column to take off the response; predictions add it again."),
        "missing": option(
            Missing, None, "Leave out rows with missing values, or fill the values by folds."
        ),
        "factor": option(
            Names, None, "Columns of codes that are factors, as a,b; text always is one."
        ),
        "decimal": option(
            Text, None, "Decimal mark of the file, . or ,; by default the file shows it."
        ),
        "thousands": option(Text, None, "Mark between groups of three digits, such as . or ,."),
        "na": option(Text, None, "Codes of missing values, as -999,-200."),
        "names": option(
            File, None, "File with the names of all columns, for a table without a line of names."
        ),
        "header": option(
            bool | None,
            None,
            "Whether the first line holds the names; with --no-header columns are x1, x2, ...",
            "--header/--no-header",
        ),
        "encoding": option(Text, None, "Encoding of a text file, such as latin-1; default: utf-8."),
    },
    "Folds": {
        "folds": option(str, "5", "loo, a number K, size:M, or time:K for rows in order of time."),
        "nested": option(
            bool | None,
            None,
            "The error to expect on new data, from outer folds of the whole fit. By default up to "
            "45 columns and 20 folds, where this takes about 2 s at most.",
            "--nested/--no-nested",
        ),
        "seed": option(int, 0, "Seed of all random numbers.", min=0, max=2**32 - 1),
    },
    "Model": {
        "tau": option(str, "all", "Numbers of features: all, A:B or a list t1,t2."),
        "gamma": option(
            str,
            "auto",
            "Ridge weight γ, twice scikit-learn's alpha: a number, a list, LO:HI:N, auto, global "
            "or global:LO:HI (the least error over all γ of the range, proved).",
        ),
        "rule": option(
            Rule,
            None,
            "How the model is chosen: projected (the default), minimum, one-se, stability or "
            "corrected. Search, global, paper and --certificate take minimum by default.",
            metavar="RULE",
        ),
        "compare": flag("Also show what every other rule would choose."),
        "protocol": option(
            Literal["honest", "paper"],
            "honest",
            "honest: folds refit the intercept; paper: all is centred and scaled once.",
        ),
        "scale": option(
            Scale,
            "unit-variance",
            "Scale of the columns: unit-variance, unit-norm or none.",
            metavar="SCALE",
        ),
    },
    "Search and proof": {
        "method": option(
            Method,
            "auto",
            "exact: the CV error at every τ; search: the best τ alone (Algorithm 1); grid: one "
            "problem per fold and τ; auto: exact, or grid with an outside solver.",
            metavar="METHOD",
        ),
        "backend": option(str, "auto", "auto, native, highs, gurobi or mosek."),
        "prove": option(
            Prove,
            "choice",
            "choice: what the choice needs, and the rest where it takes no longer; all: every "
            "error and every model. A certificate proves all.",
            metavar="PROVE",
        ),
        "time_limit": option(
            Text,
            None,
            f"Seconds of the call, by default {DEFAULT_SECONDS:g}; 0: estimates alone; none: no "
            "limit.",
        ),
    },
    "Output": {
        "json_file": option(File, None, "Write results here; - is standard output.", "--json"),
        "save": option(File, None, "Write the model here, for sparsecv predict."),
        "plot": option(File, None, "Draw the CV errors here."),
        "html": option(File, None, "Write a report here, as one HTML page."),
        "csv_file": option(File, None, "Write the table as CSV here.", "--csv"),
        "certificate": option(
            File, None, "Write a proof for sparsecv verify here, and its table to FILE.csv."
        ),
        "table": flag("Print every table, to its last row."),
        "verbose": flag("Also tell the γ, sizes and gaps of what is being done."),
        "quiet": flag("Print nothing but warnings and errors."),
    },
    "Machine": {
        "jobs": option(int, 1, "Threads; -1 uses every core.", callback=_checked_jobs),
        "checkpoint": option(File, None, "Folder that keeps what is finished, for a rerun."),
    },
    "Constraints on columns": {
        "include": option(Text, None, "Columns that are in every model, as a,b."),
        "exclude": option(Names, None, "Columns to leave out, as a,b; the option may be repeated."),
        "positive": option(
            Text, None, "Columns with coefficients >= 0, as a,b; all means every column."
        ),
        "constraints": option(
            File,
            None,
            "JSON file with the names of sparsecv.Constraints, such as "
            '{"groups": {"style": ["s1", "s2"]}, "bounds": {"age": [0, 2]}}.',
        ),
    },
    "What else to find out": {
        "size": option(Whole, None, "Choose the model of this size, by the same rule."),
        "n_best": option(Whole, None, "Also show the N best subsets of each size."),
        "criteria": flag("Also show AIC, BIC, EBIC and Cp of each size."),
        "audit": flag(
            "Show whether each column can be trusted: p-values, models that fit nearly as well, "
            "rows that decide, other partitions, the error to expect, and a judgement."
        ),
        "inference": flag("Also show p-values and 95 % intervals that know about the search."),
    },
}
PANEL_OF = {name: panel for panel, options in PANELS.items() for name in options}
SHARED = {name: one for options in PANELS.values() for name, one in options.items()}


class Command(NamedTuple):
    """A command: what ``--help`` says of it, and its arguments and options by their names."""

    text: str
    options: dict[str, Option]

    def function(self, name: str) -> Callable[..., Callable[[], Exit | None]]:
        """A function for typer, whose parameters are the command's options.

        When called it imports the command's module, and returns a function without parameters that
        does the work. The caller runs that, and turns errors into exit statuses.
        """

        def run(**given: Any) -> Callable[[], Exit | None]:
            return partial(getattr(import_module(f"..{name}", __name__), name), **given)

        parameters = [one.parameter(name) for name, one in self.options.items()]
        made: Any = run  # typer reads the options from the signature and the annotations.
        made.__signature__ = inspect.Signature(parameters)
        made.__annotations__ = {one.name: one.annotation for one in parameters}
        return run


def command(text: str, names: str, **own: Option) -> Command:
    """A command with options of PANELS, and some of its own.

    text: What ``--help`` says of the command.
    names: Names of arguments and options, in the order of ``--help``, with blanks between. Each is
        a key of PANELS' options or of ``own``.
    own: By name the arguments, and the options that PANELS lacks or has with another type, default
        or text. An option is shown in the panel that PANELS has for its name, if it has one.
    """
    known = SHARED | own
    options = {name: known[name] for name in names.split()}
    for name, one in options.items():
        if isinstance(one.shown, OptionInfo):
            one.shown.rich_help_panel = PANEL_OF.get(name)
    return Command(text, options)


DATA = argument(
    str,
    ...,
    "A CSV or Parquet file or a workbook, a folder of Parquet files, a data set's name, or - for "
    "CSV on standard input.",
)
# Names of options that several commands have.
TABLE = " ".join(PANELS["Table"])
COLUMNS = " ".join(PANELS["Constraints on columns"])
# Every command: its text, the names of its arguments and options in order, and those that differ
# from PANELS.
COMMANDS = {
    "cv": command(
        "Print the exact CV error at every sparsity, choose the best and fit the model.",
        f"data {TABLE} folds tau gamma rule compare nested size n_best "
        "criteria method backend prove time_limit protocol scale json_file save plot html "
        f"certificate audit table checkpoint seed jobs verbose quiet {COLUMNS}",
        data=DATA,
    ),
    "fit": command(
        "Fit the best model of at most τ features, or the one of least AIC, BIC or EBIC.",
        f"data {TABLE} tau gamma n_best criteria inference backend time_limit "
        f"protocol scale json_file save plot html certificate audit table jobs quiet {COLUMNS}",
        data=DATA,
        tau=option(
            str,
            ...,
            "Largest number of coefficients, 0 for the mean alone; or aic, bic or ebic for the "
            "size of least criterion.",
        ),
        gamma=option(
            Number, None, "Ridge weight γ of (γ/2)||β||²: by default 1, or 0 with aic, bic or ebic."
        ),
        groups=option(Text, None, "Column of groups, as in cv: no feature. A fit has no folds."),
        plot=option(File, None, "Draw objectives and coefficients of every size up to τ here."),
    ),
    "predict": command(
        "Predict the rows of a table by a saved model; a row that cannot be predicted stays empty.",
        "model data out coverage ids unknown decimal thousands na names header encoding",
        model=argument(Path, ..., "A file that --save has written."),
        data=argument(str, ..., "A table, as for cv; its columns are matched by name."),
        out=option(File, None, "Write predictions as CSV here; default: the screen."),
        coverage=option(Number, None, "Also intervals of this coverage, such as 0.9 (cv --save)."),
        ids=option(Names, None, "Column to write before the predictions; repeatable.", "--id"),
        unknown=option(
            Literal["error", "zero"] | None,
            None,
            "A text that is no level of its column: no prediction (error), or no level (zero).",
        ),
    ),
    "verify": command(
        "Check a proof that --certificate has written, with whole numbers alone.",
        "certificate data",
        certificate=argument(str, ..., "The file that --certificate names."),
        data=argument(str, ..., "The table that was written beside it."),
    ),
    "benchmark": command(
        "Compare the grid with Algorithm 1 and the shared trees: problems, nodes, seconds.\n\n"
        "This repeats Section 4.1 of the first paper by the paper's protocol: columns are "
        "standardised once and folds have no intercept.",
        "tables folds gamma ways scale tol backend time_limit csv_file jobs quiet",
        tables=argument(list[str], ["diabetes"], "Tables, as for cv.", metavar="[DATA]..."),
        folds=option(str, "loo,size:10", "loo, K, size:M or time:K, comma-separated."),
        gamma=option(str, "0.01,0.02,0.05,0.1,0.2,0.5,1", "As in cv."),
        ways=option(
            str,
            "grid,paper,paper-exact,best,exact",
            "Some of these, comma-separated: grid: one problem per fold and τ; paper: Algorithm 1 "
            "with the paper's bounds; paper-exact: with the optimum on all rows in Corollary 3; "
            "best: with the best bounds; exact: shared trees.",
        ),
        scale=option(
            Literal["unit-norm", "unit-variance"],
            "unit-norm",
            "Scale of the columns: unit-norm or unit-variance.",
            metavar="SCALE",
        ),
        tol=option(float, 0.01, "Relative tolerance of Algorithm 1."),
        time_limit=option(Number, None, "Seconds for each way at each γ."),
    ),
    "warmup": command("Compile all kernels once, so that no later call waits for it.", ""),
}
