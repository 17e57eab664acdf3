"""The command line ``sparsecv``: its commands, and how errors and warnings are printed.

Every command is a function in a module of its name, which is imported when the command runs.
"""

from __future__ import annotations

import errno
import gc
import os
import re
import sys
import warnings
from collections.abc import Callable
from difflib import get_close_matches
from typing import Annotated, Any

import typer

from .._version import __version__
from ..errors import InputError
from .options import COMMANDS, Exit

app = typer.Typer(
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    help="Exact cross-validation of best-subset ridge regression.",
)
for name, command in COMMANDS.items():
    app.command(name, help=command.text)(command.function(name))


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Print the version where the option --version is given."""
    if version:
        typer.echo(f"sparsecv {__version__}")
        raise typer.Exit(Exit.DONE)


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status.

    arguments: The words after ``sparsecv``; by default those of the process, which then exits.
    """
    warnings.showwarning = _one_line_warning
    if sys.stdout is None:  # The caller has closed standard output.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A terminal that cannot show γ shows a question mark.
            stream.reconfigure(errors="replace")
    words = sys.argv[1:] if arguments is None else arguments
    if arguments is None:
        # Nearly all objects of so short a process stay, so that it is seldom worth looking for
        # objects that can be freed.
        gc.set_threshold(100_000)
    try:
        # A command gives back the function that does its work; --help and --version give a status.
        work = app(args=words or ["--help"], prog_name="sparsecv", standalone_mode=False)
        status = (_done(work) if callable(work) else work) or Exit.DONE
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        status = Exit.INTERRUPTED
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.ENOSPC, errno.EDQUOT):
            raise
        if arguments is None:  # At its end Python would try to write the rest once more.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno == errno.EPIPE:  # Nobody reads on, and typer ends a command like this, too.
            raise SystemExit(1) from None
        place = error.filename or "standard output"
        print(f"sparsecv: error: {place}: {error.strerror}", file=sys.stderr)
        status = Exit.BAD_INPUT
    except Exception as error:
        # The module of the class of errors in a command's words depends on the version of typer.
        # Their method is the same in every version.
        if not (isinstance(error, InputError) or hasattr(error, "format_message")):
            raise
        print(f"sparsecv: error: {' '.join(_complaint(error).split())}", file=sys.stderr)
        status = Exit.BAD_INPUT
    if status == Exit.INTERRUPTED:
        print("sparsecv: interrupted", file=sys.stderr)
    if arguments is None:
        # At its end Python would look at every object once more, which takes a third of a second.
        gc.freeze()
        sys.exit(status)
    return status


def _done(work: Callable[[], Exit | None]) -> Exit | None:
    """Run a command, in which NumPy does not warn, as kernels check their results themselves."""
    import numpy as np  # --help needs no arrays.

    np.seterr(all="ignore")
    return work()


def _complaint(error: Any) -> str:
    """The message of an error in the input or in a command's words, for any version of typer."""
    if hasattr(error, "option_name") and hasattr(error, "possibilities"):
        options = f" (Possible options: {', '.join(sorted(error.possibilities or []))})"
        return f"No such option: {error.option_name}" + (options if error.possibilities else "")
    text = error.format_message() if hasattr(error, "format_message") else str(error)
    # Some versions of typer put these words before what this package says of a value.
    return text.replace("Value error, ", "") + _meant(error)


def _meant(error: Any) -> str:
    """A question that names the choice that a wrong value of an option is close to, or nothing.

    Typer's message is "'1se' is not one of 'minimum', 'one-se'.", and other messages are ignored.
    """
    wrong, _, listed = str(getattr(error, "message", "")).partition(" is not one of ")
    choices = re.findall(r"'([^']*)'", listed)
    given = wrong.rpartition("'")[0].rpartition("'")[2]
    # Words are compared by their letters and digits alone: "1 SE" is close to "one-se".
    plain = {re.sub(r"\W", "", choice): choice for choice in choices}
    word = re.sub(r"\W|_", "", given.lower().replace("1", "one"))
    close = get_close_matches(word, plain, n=1)
    return f" Did you mean {plain[close[0]]}?" if close else ""


def _one_line_warning(message: Any, *_: Any, **__: Any) -> None:
    """Print a warning in one line, without the place in the code that Python would add."""
    print(f"warning: {message}", file=sys.stderr)


if __name__ == "__main__":
    main()
