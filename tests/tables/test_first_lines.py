"""What the first line of a table holds, and which columns of texts are numbers or dates."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.commands import Capture, complaint, run_json
from support.inside import Reading, main, resolve
from support.tables import refused, write

from sparsecv import SparseRidge
from sparsecv.errors import InputError

N = 40
RNG = np.random.default_rng(0)
PRICES = [f"{value:.2f}" for value in RNG.uniform(5, 9, N)]
SIZES = [f"{value:.1f}" for value in RNG.uniform(80, 99, N)]
MAKES = [("ford", "opel", "fiat")[i % 3] for i in range(N)]
MODELS = [f"type{i % 4}" for i in range(N)]


def lines(*columns: list[str], mark: str = ",") -> str:
    return "".join(mark.join(row) + "\n" for row in zip(*columns, strict=True))


ROWS = lines(MAKES, MODELS, SIZES, PRICES)
# The file, and what the message must name.
NO_HEADERS = {
    "texts repeat": (ROWS, "looks like a row|'ford' is also a cell|--names FILE|--no-header"),
    "texts differ": (f"town,8.5,3\n{lines(MODELS, SIZES, PRICES)}", "'8.5' stands above numbers"),
    "missing": (f"ford,?,8.1\n{lines(MAKES, SIZES, PRICES)}", "'ford' is also|'8.1' stands above"),
    "twice": (f"8,0.5,0.5,u\n{lines(SIZES, SIZES, PRICES, MODELS)}", "'0.5' twice|--no-header"),
    "numbers": (lines(SIZES, PRICES), "numbers only|--names FILE|--no-header"),
    "commas": (lines(MAKES, SIZES, PRICES, mark=";").replace(".", ","), "looks like a row|'ford'"),
    "booleans": (f"true,ford,3.5\n{lines(['true', 'false'] * 20, MAKES, PRICES)}", "'ford'"),
    "spaces and a tab": (
        lines([f"{a}   8   {b}" for a, b in zip(SIZES, PRICES, strict=True)], MODELS, mark="\t"),
        "seem to be separated by spaces|pandas.read_csv",
    ),
}
HEADERS = {
    "names": f"make,model,size,price\n{ROWS}",
    "years": f"make,1990,1995,2000\n{lines(MAKES, SIZES, SIZES, PRICES)}",
    "spectra": f"850,852.5,853,fat\n{lines(SIZES, SIZES, SIZES, PRICES)}",
    "one name is a level": f"ford,8,price\n{lines(MAKES, SIZES, PRICES)}",
    "thousands": f"my size;price\n{lines(['1 234'] * N, PRICES, mark=';')}",
}


@pytest.mark.parametrize("kind", NO_HEADERS)
def test_a_row_is_not_taken_for_names(tmp_path: Path, kind: str) -> None:
    text, words = NO_HEADERS[kind]
    refused(write(tmp_path / "t.data", text), *words.split("|"))


@pytest.mark.parametrize("kind", HEADERS)
def test_names_may_be_numbers(tmp_path: Path, kind: str) -> None:
    text = HEADERS[kind]
    mark, blank = (";", " ") if ";" in text else (",", None)
    table = resolve(write(tmp_path / "t.csv", text), reading=Reading(thousands=blank))
    assert table.n == N
    assert [*table.coding.names, table.target_name] == text.splitlines()[0].split(mark)


@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
@pytest.mark.parametrize("names", [(), ("make", "model", "size", "price")])
def test_a_table_without_a_line_of_names(
    tmp_path: Path, suffix: str, names: tuple[str, ...]
) -> None:
    path = write(tmp_path / "t.csv", ROWS)
    if suffix == "xlsx":
        path = tmp_path / "t.xlsx"
        pd.read_csv(tmp_path / "t.csv", header=None).to_excel(path, header=False, index=False)
        refused(path, "sheet 'Sheet1': the first line looks like a row")
    reading = Reading(names=names) if names else Reading(header=False)
    table = resolve(path, reading=reading)
    assert table.n == N
    np.testing.assert_allclose(table.load()[1], np.array(PRICES, dtype=float))
    assert [*table.coding.names, table.target_name] == [*(names or ("x1", "x2", "x3", "x4"))]
    both = resolve(path, reading=Reading(header=True, names=("a", "b", "c", "d")))
    assert both.n == N - 1
    assert resolve(path, reading=Reading(header=True)).target_name == PRICES[0]
    three = Reading(names=("a", "b", "c"))
    refused(path, "--names gives 3 names where the table has 4", reading=three)


def test_a_model_reads_new_rows_as_its_table_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.data").write_text(ROWS)
    Path("short.data").write_text("ford,type1,90.5,7\nopel,type2,85,6\nfiat,type0,90.5,7\n" * 2)
    fit = ["fit", "t.data", "--tau", "3", "--gamma", "1"]
    for option in (["--no-header"], ["--names", "names.txt"]):
        Path("names.txt").write_text("make\nmodel\nsize\nprice\n")
        said = run_json(*fit, *option, "--save", "m.json")
        assert said["n"] == N
        capsys.readouterr()
        assert main(["predict", "m.json", "short.data"]) == 0
        without = capsys.readouterr().out
        assert len(without.splitlines()) == 7
        named = "x1,x2,x3,x4" if option == ["--no-header"] else "make,model,size,price"
        Path("named.csv").write_text(f"{named}\n{Path('short.data').read_text()}")
        assert main(["predict", "m.json", "named.csv", "--header"]) == 0
        assert capsys.readouterr().out == without
        Path("names.txt").write_text(named.replace(",", " ; "))
        assert main(["predict", "m.json", "short.data", "--names", "names.txt"]) == 0
        assert capsys.readouterr().out == without
    pd.DataFrame({"a": [1.0, 2.0, 4.0], "y": [1.0, 2.0, 3.0]}).to_parquet("t.parquet")
    for command in ("cv diabetes --no-header", "cv t.parquet --header"):
        complaint(capsys, command.split(), ["for text files and workbooks", "names of its own"])
    wrong = {"": "the file is empty", "a,a,b,c": "duplicate", "a,b,c": "3 names", "ä": "UTF-8"}
    for text, words in wrong.items():
        Path("names.txt").write_bytes(text.encode("latin-1"))
        complaint(capsys, [*fit, "--names", "names.txt"], ["--names", words])
    complaint(capsys, [*fit, "--names", "none.txt"], ["--names none.txt", "No such file"])


# ---------------------------------------------------------------------------- texts that are none


@pytest.mark.parametrize("code", [".", "..", "-", ":", "None", "n.a.", "#DIV/0!", "14+", "N/D"])
@pytest.mark.parametrize("decimals", [0, 3])
def test_numbers_and_a_few_codes_are_no_factor(tmp_path: Path, code: str, decimals: int) -> None:
    cells = [f"{value:.{decimals}f}" for value in RNG.uniform(0, 15, 200)]
    cells[3] = cells[50] = cells[120] = code
    text = "rooms,y\n" + "".join(f"{cell},{i % 7}\n" for i, cell in enumerate(cells))
    path = write(tmp_path / "t.csv", text)
    refused(path, "'rooms'", f"{code!r} (data row 4) in 3 of 200 rows", "--na", "--factor 'rooms'")
    missing = resolve(path, reading=Reading(na=(code,)), missing="drop")
    assert missing.n == 197
    assert missing.feature_names == ["rooms"]
    if not decimals:
        assert f"rooms={code}" in resolve(path, factors=["rooms"]).feature_names
    refused(path, "target column 'rooms'", f"{code!r} (data row 4)", "--na", target="rooms")
    frame = pd.read_csv(path)
    if frame["rooms"].dtype.kind not in "iuf":
        with pytest.raises(InputError, match=r"pandas\.to_numeric\(X\['rooms'\]"):
            SparseRidge(1).fit(frame[["rooms"]], frame["y"])


def test_codes_beside_decimal_commas(tmp_path: Path) -> None:
    """The numbers beside a code show what the decimal mark is, though no other column does."""
    cells = [f"{value:.2f}".replace(".", ",") for value in RNG.uniform(0, 3, 60)]
    cells[7] = "n.a."
    text = "a;y\n" + "".join(f"{cell};{i % 7}\n" for i, cell in enumerate(cells))
    path = write(tmp_path / "t.csv", text)
    refused(path, "'a' holds numbers, and 'n.a.' (data row 8) in 1 of 60 rows")
    read = resolve(path, reading=Reading(na=("n.a.",)), missing="drop").load()[0]
    assert read[0, 0] == float(cells[0].replace(",", "."))


def test_a_mark_of_numbers_is_named(tmp_path: Path) -> None:
    """Weather stations mark doubtful numbers; each marked number is another text."""
    cells = [f"{value:.2f}{'s' * (i % 5 == 0)}" for i, value in enumerate(RNG.uniform(0, 9, 90))]
    cells[3] = "0.01T"
    text = "rain,y\n" + "".join(f"{cell},{i % 7}\n" for i, cell in enumerate(cells))
    path = write(tmp_path / "t.csv", text)
    refused(path, "with the mark 's', 'T'", "in 19 of 90 rows", "write the numbers alone")


def test_a_currency_behind_thousands_is_named(tmp_path: Path) -> None:
    rows = "\n".join(f"{i};{i + 1}.234,50{' €' if i % 2 else ''}" for i in range(9))
    path = write(tmp_path / "t.csv", f"a;price\n{rows}\n")
    refused(path, "target column 'price'", "'2.234,50 €'", "with the mark '€'")


def test_codes_with_commas_are_no_value_of_an_option(tmp_path: Path) -> None:
    """The option --na divides its value at commas, so that it cannot take such a code."""
    cells = [f"{value:.1f}".replace(".", ",") for value in RNG.uniform(10, 99, 60)]
    cells[7] = "ca. 95,0"
    text = "a;y\n" + "".join(f"{cell};{i % 7}\n" for i, cell in enumerate(cells))
    path = write(tmp_path / "t.csv", text)
    refused(path, "'ca. 95,0' (data row 8)", "write a number or nothing in these cells")
    with pytest.raises(InputError) as caught:
        resolve(path)
    assert "--na" not in str(caught.value)


@pytest.mark.parametrize(
    "levels",
    [["2", "3", "4", "5more"], ["A1", "A2", "B1"], ["10mg", "20mg", "50mg"], ["1", "no"]],
)
def test_levels_with_digits_are_a_factor(tmp_path: Path, levels: list[str]) -> None:
    text = "g,y\n" + "".join(f"{levels[i % len(levels)]},{i % 7}\n" for i in range(60))
    assert resolve(write(tmp_path / "t.csv", text)).coding.levels == {"g": levels}


@pytest.mark.parametrize(
    "form",
    [
        "%d-%b-%y",
        "%b %d %Y",
        "%b %d, %Y",
        "%d %B %Y",
        "%Y%m%dT000000",
        "%b-%y",
        "%Y-%m",
        "%YM%m",
        "%Y-%m-%d",
        "%d.%m.%Y",
        "%m/%d/%y",
        "%m/%Y",
        "%YQ1",
        "%d-%b-%Y 10:30",
        "%Y-%m-%dT%H:%M",
    ],
)
def test_dates_are_refused_however_they_are_written(tmp_path: Path, form: str) -> None:
    days = pd.date_range("2014-01-13", periods=30, freq="31D").repeat(3)
    rows = "".join(f'"{day:{form}}",{i % 7},{i % 5}\n' for i, day in enumerate(days))
    path = write(tmp_path / "t.csv", f"when,x,y\n{rows}")
    refused(path, "'when' holds dates", f"{days[0]:{form}}"[:10], "days since the first row")


@pytest.mark.parametrize("levels", [["may", "june"], ["mon", "dec"], ["19", "20M"], ["1-2", "3-4"]])
def test_what_only_looks_like_a_date_is_a_factor(tmp_path: Path, levels: list[Any]) -> None:
    text = "g,y\n" + "".join(f"{levels[i % 2]},{i % 7}\n" for i in range(60))
    table = resolve(write(tmp_path / "t.csv", text))
    assert table.coding.levels == {"g": sorted(levels)}


# ---------------------------------------------------------------------------- where refusals lead


def test_refused_columns_end_with_an_option_that_serves(tmp_path: Path, capsys: Capture) -> None:
    """A shell takes the option as it stands, whatever names it has, and the command then runs."""
    names = ["it's", "a, b", "two words", "$x", *(f"n{j}" for j in range(12))]
    frame = pd.DataFrame({name: RNG.standard_normal(N) for name in ["x", *names, "y"]})
    frame.loc[3, names] = np.nan
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    assert main(["fit", str(path), "--tau", "1"]) == 2
    said = capsys.readouterr().err
    assert "16 columns cannot be used" in said
    option = said[said.index("--exclude") :]
    assert main(["fit", str(path), "--tau", "1", "--quiet", *shlex.split(option)]) == 0


@pytest.mark.parametrize("hopeless", [0, 2])
def test_rows_that_all_lack_a_value(tmp_path: Path, capsys: Capture, hopeless: int) -> None:
    """Each row lacks one of many values; where few columns lack most, leaving these out serves."""
    frame = pd.DataFrame({f"x{j}": RNG.standard_normal(N) for j in range(6)} | {"y": range(N)})
    for i in range(N):
        frame.iloc[i, i % hopeless if hopeless else i % 6] = np.nan
    frame.to_csv(tmp_path / "t.csv", index=False)
    command = ["fit", str(tmp_path / "t.csv"), "--tau", "1", "--missing", "drop"]
    words = [
        "--missing drop leaves 0 of 40 rows",
        "most values are missing in 'x0'",
        "--missing mean",
    ]
    assert main(command) == 2
    said = capsys.readouterr().err
    assert all(word in said for word in words)
    option = said[said.index("--exclude") :]
    assert main([*command, "--quiet", *shlex.split(option)]) == 0


def test_names_are_told_with_their_positions(tmp_path: Path) -> None:
    path = write(tmp_path / "five.csv", "a,b,a,a,c,a,a,y\n" + "1,2,3,4,5,6,7,8\n" * 3)
    refused(path, "duplicate column name 'a' (columns 1, 3, 4, 6 and 7)")
    refused(path, "duplicate column name 'a' (columns 1, 3, 4, 6 and 7)", drop=["b"])
    path = write(tmp_path / "blank.csv", "a" + "," * 100 + ",y\n" + ",".join("1" * 102) + "\n")
    with pytest.raises(InputError, match=r"columns 2, 3, .*100 in all.* have empty") as caught:
        resolve(path)
    assert "--exclude" not in str(caught.value)
    above = "dates,,sizes,,result\nyear,month,width,depth,price\n" + "1,2,3,4,5\n" * 4
    refused(write(tmp_path / "two.csv", above), "looks like a title above the header line")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.dta", b"\x72\x02", "pandas.read_stata"),
        ("t.dat", b"<stata_dta><header>", "pandas.read_stata"),
        ("t.sav", b"$FL2@(#) SPSS DATA FILE", "pyreadstat.read_sav"),
        ("t.csv", b"$FL3@(#) SPSS DATA FILE", "pyreadstat.read_sav"),
        ("t.sas7bdat", bytes(32), "pandas.read_sas"),
        ("t.rds", b"\x1f\x8b", "pyreadr.read_r"),
    ],
)
def test_files_of_other_programs_are_named(
    tmp_path: Path, name: str, content: bytes, words: str
) -> None:
    (tmp_path / name).write_bytes(content)
    refused(tmp_path / name, f"Read it with {words}", "to_parquet")


def test_the_sheet_that_is_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0], "y": [1.0, 2.0, 3.0]})
    with pd.ExcelWriter(path) as book:
        for name in ("Prices", "Notes", "Old"):
            frame.to_excel(book, sheet_name=name, index=False)
    assert "sheet 'Prices' is read, of 3 sheets" in resolve(path).notes()
    with pd.ExcelWriter(path) as book:
        frame[["a"]].to_excel(book, sheet_name="About", index=False)
        frame.to_excel(book, sheet_name="Prices", index=False)
    refused(path, "sheet 'About' (the first of 2 sheets): no feature columns left")
