"""This script runs the command on every kind of bad input, and lists the messages in a page.

    python -m experiments.scale.bad_input

Every case is a command on small files in a folder of its own. The command must end with status 2
and print one line on standard error. The script writes the messages to the last section of
docs/python-and-command.md.
"""

from __future__ import annotations

import gzip
import io
import os
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from sparsecv.cli.main import main

PAGE = Path(__file__).parents[2] / "docs" / "python-and-command.md"
HEADER = "| input | command | message |"
GOOD = "a,b,y\n1,2,3\n2,1,4\n3,5,5\n4,4,9\n"


class Case(NamedTuple):
    """One bad input: its description, the content of ``t.csv`` or another file, and the command."""

    what: str
    content: str | bytes
    command: str = "cv t.csv"
    file: str = "t.csv"


def parquet(last: str = "y", **columns: Any) -> bytes:
    """A Parquet file of two numbers and other columns, the column ``last`` as the response."""
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 5.0], "y": [3.0, 4.0, 5.0, 9.0], **columns})
    target = frame.pop(last)
    return bytes(frame.assign(**{last: target}).to_parquet(index=False))


DAYS = pd.date_range("2024-01-05", periods=4)
WHOLE = gzip.compress(GOOD.encode() * 50)
MANY = "who,x,y\n" + "".join(f"id{i % 120},{i % 3},{i}\n" for i in range(240))
CODES = "rooms,x,y\n" + "".join(f"{i if i % 7 else 'n.a.'},{i % 3},{i}\n" for i in range(30))
IDS = "who,x,y\n" + "".join(f"id{i},{i % 3},{i}\n" for i in range(12))
CASES = [
    # the file
    Case("no such file", GOOD, "cv other.csv"),
    Case("a misspelt data set", GOOD, "cv diabetis"),
    Case("a data set whose file is not there", GOOD, "cv housing"),
    Case("a folder", GOOD, "cv ."),
    Case("an empty file", ""),
    Case("a header alone", "a,b,y\n"),
    Case("a single row", "a,b,y\n1,2,3\n"),
    Case("a single column", "y\n1\n2\n"),
    Case("no header line", "1,2,3\n4,5,6\n"),
    Case("a row in place of names", "ford,8,3.5\nopel,6,4\nford,4,5\n"),
    Case("numbers twice in the first line", "u,2,2,3\nv,1,7,4\n"),
    Case("an empty list of names", "", "cv diabetes --names t.csv"),
    Case("a title above the header", "Sales of 2024\n" + GOOD),
    Case("a title with a comma", "Sales, 2024\n" + GOOD),
    Case("separated by spaces", GOOD.replace(",", " ")),
    Case("spaces and a tab", '8  3.5  1\t"u"\n6  4.5  2\t"v"\n'),
    Case("a file of Stata", b"<stata_dta>", "cv t.dta", "t.dta"),
    Case("a file of SPSS", b"$FL2", "cv t.sav", "t.sav"),
    Case("not UTF-8", "größe,y\n1,2\n3,4\n".encode("latin-1")),
    Case("an unknown encoding", GOOD, "cv t.csv --encoding klingon"),
    Case("a damaged .gz", WHOLE[: len(WHOLE) // 2], "cv t.csv.gz", "t.csv.gz"),
    Case("text called .parquet", GOOD, "cv t.parquet", "t.parquet"),
    # rows and columns
    Case("a row too short", "a,b,y\n1,2,3\n4,5\n7,8,9\n"),
    Case("a row too long", "a,b,y\n1,2,3\n\n4,5,6,7\n"),
    Case("an open quote", 'a,y\n1,2\n"3,4\n5,6\n'),
    Case("two columns of one name", "a,a,y\n1,2,3\n2,1,4\n"),
    Case("a column without a name", "a,,y\n4,2,3\n6,5,4\n"),
    Case("several columns without names", "a,,,y\n4,2,1,3\n6,5,2,4\n"),
    Case("names below a line of others", "dates,,y\nyear,month,price\n2020,1,3\n"),
    # cells
    Case("missing values", "a,b,y\n1,2,3\n,NA,4\n3,?,5\n4,nan,9\n"),
    Case(
        "no row without a missing value",
        "a,b,c,y\n1,,2,3\n2,,1,4\n3,,5,5\n4,1,,6\n",
        "cv t.csv --missing drop",
    ),
    Case("a missing response", "a,y\n1,2\n2,\n3,4\n"),
    Case("an infinite value", "a,b,y\n1,2,3\n2,inf,4\n3,5,5\n"),
    Case("dates", "a,day,y\n1,2024-01-05,3\n2,2024-01-06,4\n3,2024-01-06,5\n"),
    Case("text in the response", "a,y\n1,yes\n2,no\n3,no\n"),
    Case("several columns at once", "a,b,c,y\n1,x,,3\n,y,2,4\n3,x,NA,5\n"),
    Case("numbers and a code", CODES),
    Case("numbers and a code in the response", CODES, "cv t.csv --target rooms"),
    Case("numbers with a mark", CODES.replace("n.a.", "7.5T")),
    Case("dates with names of months", "a,day,y\n1,27-Feb-16,3\n2,1-Mar-16,4\n3,2-Mar-16,5\n"),
    Case("months", "a,when,y\n1,2016M02,3\n2,2016M03,4\n3,2016M03,5\n"),
    Case("thousands", 'a,b,y\n1,"1,234",3\n2,"2,345",4\n'),
    Case("percentages", "a,b,y\n1,10 %,3\n2,12 %,4\n"),
    Case("currencies", "a,b,y\n1,€12,3\n2,€13,4\n"),
    Case("decimal commas and points", "a;b;y\n1;1.234;3\n2;1,5;4\n"),
    Case("commas in one column, points in another", "a;b;y\n1,5;2.50;3\n2,5;3.25;4\n"),
    Case("two readings of a column", "a;y\n3.102;3\n939;4\n"),
    Case("two readings of two columns", "a;b;y\n3.102;1,234;3\n939;7;4\n"),
    Case("a point where --decimal says comma", "a;y\n2.50;3\n3.5;4\n", "cv t.csv --decimal ,"),
    Case("apostrophes of thousands", "a,y\n1'234,3\n2'345,4\n"),
    Case(
        "codes of missing values", "a,b,y\n-999,2,3\n1,-200,4\n2,3,5\n", "cv t.csv --na -999,-200"
    ),
    Case("identifiers", IDS),
    Case("many levels", MANY),
    Case("dates of Parquet", parquet(day=DAYS), "cv t.parquet", "t.parquet"),
    Case("a category of dates", parquet(day=DAYS.astype("category")), "cv t.parquet", "t.parquet"),
    Case("periods", parquet(month=DAYS.to_period("D")), "cv t.parquet", "t.parquet"),
    Case("durations", parquet(wait=DAYS - DAYS[0]), "cv t.parquet", "t.parquet"),
    Case("times of day", parquet(clock=DAYS.time), "cv t.parquet", "t.parquet"),
    Case("lists", parquet(some=[[1], [2], [3], [4]]), "cv t.parquet", "t.parquet"),
    Case(
        "text of Parquet in the response",
        parquet("kind", kind=[*"abca"]),
        "cv t.parquet",
        "t.parquet",
    ),
    Case("only constant columns", "a,b,y\n1,2,3\n1,2,4\n", "cv t.csv --folds 2"),
    Case(
        "values too large to square",
        "a,b,y\n1e200,2,3\n2e200,1,4\n-3e200,5,5\n",
        "cv t.csv --folds 2",
    ),
    Case(
        "values too small to square",
        "a,b,y\n1e-300,2,3\n2e-300,1,4\n3e-300,5,5\n",
        "cv t.csv --folds 2",
    ),
    # options
    Case("an unknown target", GOOD, "cv t.csv --target z"),
    Case("an unknown column to drop", GOOD, "cv t.csv --exclude bb"),
    Case("nothing left", GOOD, "cv t.csv --exclude a --exclude b"),
    Case("the target dropped", GOOD, "cv t.csv --target y --exclude y"),
    Case("an unknown factor", GOOD, "cv t.csv --factor bb"),
    Case("the target as a factor", GOOD, "cv t.csv --factor y"),
    Case(
        "dates that are declared a factor",
        parquet(day=DAYS),
        "cv t.parquet --factor day",
        "t.parquet",
    ),
    Case("a decimal mark that is none", GOOD, "cv t.csv --decimal ;"),
    Case("a mark of thousands that is none", GOOD, "cv t.csv --thousands x"),
    Case("one mark for two purposes", GOOD, "cv t.csv --decimal , --thousands ,"),
    Case("an unknown column of weights", GOOD, "cv t.csv --weights w"),
    Case("offsets that are text", "o,a,y\nhalf,2,3\n1,1,4\n", "cv t.csv --offset o"),
    Case("weights that are text", "w,a,y\nhalf,2,3\n1,1,4\n", "cv t.csv --weights w"),
    Case("weights below zero", "w,a,y\n1,2,3\n-1,1,4\n", "fit t.csv --tau 1 --weights w"),
    Case("the target as weights", GOOD, "cv t.csv --target y --weights y"),
    Case("fewer groups than folds", "g,a,y\nu,2,3\nv,1,4\nu,3,5\n", "cv t.csv --groups g"),
    Case("too many folds", GOOD, "cv t.csv --folds 5"),
    Case("folds that are none", GOOD, "cv t.csv --folds many"),
    Case("too many folds in order of time", GOOD, "cv t.csv --folds time:4"),
    Case("tau too large", GOOD, "fit t.csv --tau 3"),
    Case("tau that is no number", GOOD, "cv t.csv --folds 2 --tau 1.5"),
    Case("gamma below zero", GOOD, "cv t.csv --folds 2 --gamma -1"),
    Case("half a grid of gamma", GOOD, "cv t.csv --gamma 1:2"),
    Case("an unknown method", GOOD, "cv t.csv --method fast"),
    Case("an unknown option", GOOD, "cv t.csv --fold 2"),
    Case("no command of this name", GOOD, "frobnicate"),
    Case("a file that cannot be written", GOOD, "cv t.csv --json no/such/folder.json"),
    Case("predictions without a model", GOOD, "predict t.csv t.csv"),
]


def said(case: Case) -> tuple[int, str]:
    """Run a case in a folder of its own; the exit status and what stands on standard error."""
    text, nowhere = io.StringIO(), io.StringIO()
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        content = case.content.encode() if isinstance(case.content, str) else case.content
        Path(case.file).write_bytes(content)
        try:
            with redirect_stderr(text), redirect_stdout(nowhere):
                status = main(case.command.split(" "))
        finally:
            os.chdir(home)
    return status, text.getvalue()


def table() -> str:
    """The messages as a table of Markdown, a line for each case."""
    lines = [HEADER, "| --- | --- | --- |"]
    for case in CASES:
        status, text = said(case)
        # A busy machine takes so long that a line says what the command does.
        said_last = [line for line in text.strip().splitlines() if " s: " not in line[:8]]
        line = "\n".join(said_last).removeprefix("sparsecv: error: ")
        assert status == 2, (case.what, status, text)
        assert "\n" not in line, (case.what, text)
        line = line.replace("|", "\\|").replace("<", "&lt;")
        lines.append(f"| {case.what} | `{case.command}` | {line} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    os.environ.pop("SPARSECV_DATA", None)
    before = PAGE.read_text(encoding="utf-8").split(HEADER)[0]
    PAGE.write_text(before + table(), encoding="utf-8")
    print(f"{PAGE.name}: {len(CASES)} inputs")
