"""Delimited text: round trips, text columns, and every refusal by its words."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.inside import Reading, joined, resolve
from support.stand_ins import standing_in
from support.tables import NAMES, check, csv_text, refused, table, write

from sparsecv.errors import InputError

# Twice so many rows of two or three columns are read in many pieces.
ROWS_OF_PIECES = 500

# ---------------------------------------------------------------------------- round trips


@pytest.mark.parametrize(
    ("file", "mark", "point"),
    [
        ("t.csv", ",", "."),
        ("t.csv", ";", "."),
        ("t.csv", ";", ","),
        ("t.tsv", "\t", "."),
        ("t.txt", "\t", "."),
        ("t.dat", ",", "."),
        ("noending", ";", "."),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_csv_round_trip(
    tmp_path: Path, file: str, mark: str, point: str, newline: str, bom: str
) -> None:
    values = table()
    text = bom + csv_text(values, mark, point).replace("\n", newline)
    check(resolve(write(tmp_path / file, text)), values, NAMES, "resp")


@pytest.mark.parametrize("file", ["t.csv.gz", "t.tsv.gz", "t.txt.GZ"])
def test_gzip_round_trip(tmp_path: Path, file: str) -> None:
    values = table()
    path = tmp_path / file
    path.write_bytes(gzip.compress(csv_text(values, "\t").encode()))
    source = resolve(path)
    check(source, values, NAMES, "resp")
    assert source.name == "t"


@pytest.mark.parametrize(
    ("file", "name"),
    [("a.b.csv", "a.b"), ("x.csv.gz", "x"), ("x.dat", "x.dat"), ("x.CSV", "x"), ("x", "x")],
)
def test_name_is_the_stem(tmp_path: Path, file: str, name: str) -> None:
    data = csv_text(table()).encode()
    path = tmp_path / file
    path.write_bytes(gzip.compress(data) if file.endswith("gz") else data)
    assert resolve(path).name == name


def test_quotes_blanks_and_blank_lines(tmp_path: Path) -> None:
    text = '\n"a, first", b ,"say ""y"""\n\n 1 , "2",3\n   \n4,5e0,+6\n\n'
    source = resolve(write(tmp_path / "t.csv", text))
    check(source, np.array([[1, 2, 3], [4, 5, 6.0]]), ["a, first", "b"], 'say "y"')


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16"])
@pytest.mark.parametrize("suffix", ["csv", "csv.gz"])
def test_a_blank_row_is_left_out_however_the_text_is_read(
    tmp_path: Path, encoding: str, suffix: str
) -> None:
    text = '\nweiß,kind,y\n1,"a\n \nb",3\n  \n2,c,4\n3,c,5\n4,"a\n \nb",1\n'
    data = text.encode(encoding)
    path = tmp_path / f"t.{suffix}"
    path.write_bytes(gzip.compress(data) if suffix.endswith("gz") else data)
    source = resolve(path, reading=Reading(encoding))
    X, y = source.load()[:2]
    np.testing.assert_array_equal(y, [3.0, 4.0, 5.0, 1.0])
    np.testing.assert_array_equal(X, [[1, 0], [2, 1], [3, 1], [4, 0]])


def test_a_gzip_file_may_end_in_zeros(tmp_path: Path) -> None:
    values = table()
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(csv_text(values).encode()) + bytes(10))
    check(resolve(path), values, NAMES, "resp")


def test_booleans_are_numbers(tmp_path: Path) -> None:
    text = "a,b,y\nTrue,false,1\nFalse,true,0\nTRUE,true,1\n"
    source = resolve(write(tmp_path / "t.csv", text))
    check(source, np.array([[1, 0, 1], [0, 1, 0], [1, 1, 1.0]]), ["a", "b"], "y")


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("n", [2, ROWS_OF_PIECES])
def test_booleans_and_numbers_are_levels_of_one_column(tmp_path: Path, first: bool, n: int) -> None:
    # Also when the two kinds fall into different pieces.
    cells = ["true"] * n + ["7"] * n
    rows = [f"{cell},1" for cell in (cells if first else cells[::-1])]
    source = resolve(write(tmp_path / "t.csv", "\n".join(["flag,y", *rows])))
    assert source.feature_names == ["flag=True"]
    assert source.load()[0].sum() == n


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a,b,c\n1,2,3\n4,1,5\n", ["a", "b"]),
        ("a;b;c\n1,5;2,5;3,5\n2,5;1,5;4,5\n", ["a", "b"]),
        ("a\tb\tc\n1\t2\t3\n4\t1\t5\n", ["a", "b"]),
        ('"a;b;c;d",e\n1,2\n2,4\n', ["a;b;c;d"]),
        ("x(1;2),y\n1,2\n2,4\n", ["x(1;2)"]),
        ("size, m;mass, kg;y\n1,5;2,5;3\n2,5;1,5;4\n", ["size, m", "mass, kg"]),
    ],
)
def test_the_mark_between_columns_is_found(tmp_path: Path, text: str, names: list[str]) -> None:
    assert resolve(write(tmp_path / "t.csv", text)).feature_names == names


def test_target_and_drop(tmp_path: Path) -> None:
    values = table()
    path = write(tmp_path / "t.csv", csv_text(values))
    check(resolve(path, target="b c"), values[:, [0, 2, 3, 1]], ["a", "d.e", "resp"], "b c")
    check(resolve(path, drop="a"), values[:, 1:], NAMES[1:], "resp")
    check(resolve(path, drop=("resp", "a")), values[:, 1:3], ["b c"], "d.e")


def test_dropped_columns_may_hold_anything(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "id,a,y\nx1,1,2\n,3,4\nNA,5,6\n")
    check(resolve(path, drop=["id"]), np.array([[1, 2], [3, 4], [5, 6.0]]), ["a"], "y")


# ---------------------------------------------------------------------------- refusals


def test_file_faults(tmp_path: Path) -> None:
    refused(tmp_path / "nowhere.csv", "no file", "nowhere.csv")
    refused(tmp_path, "is a folder")
    (tmp_path / "latin.csv").write_bytes("größe,y\n1,2\n3,4\n".encode("latin-1"))
    refused(tmp_path / "latin.csv", "not UTF-8")
    (tmp_path / "utf16.txt").write_bytes("a,y\n1,2\n3,4\n".encode("utf-16"))
    refused(tmp_path / "utf16.txt", "not UTF-8")


def test_damaged_gzip(tmp_path: Path) -> None:
    whole = gzip.compress(csv_text(table(500)).encode())
    (tmp_path / "cut.csv.gz").write_bytes(whole[: len(whole) // 2])
    refused(tmp_path / "cut.csv.gz", "cut.csv.gz", "gzip")
    refused(write(tmp_path / "plain.csv.gz", "a,y\n1,2\n3,4\n"), "plain.csv.gz", "gzip")
    middle = len(whole) // 2
    (tmp_path / "bad.csv.gz").write_bytes(whole[:middle] + b"\xff" * 40 + whole[middle + 40 :])
    refused(tmp_path / "bad.csv.gz", "bad.csv.gz")


PRICES = "Price,weight,y\n1,2,3\n4,5,6\n"
REFUSED: list[tuple[str, dict[str, Any], list[str]]] = [
    (PRICES, {"target": "prise"}, ["'prise'", "did you mean 'Price'"]),
    (PRICES, {"target": "qqq"}, ["'qqq'", "'Price', 'weight', 'y'"]),
    (PRICES, {"drop": ["wight"]}, ["--exclude", "'wight'", "did you mean 'weight'"]),
    (PRICES, {"drop": ["Price", "weight"]}, ["no feature columns left"]),
    (PRICES, {"target": "y", "drop": ["y"]}, ["'y'", "target", "--exclude"]),
    ("y\n1\n2\n", {}, ["no feature columns left"]),
    (
        "a,b,a,b,y\n1,2,3,4,5\n1,2,3,4,6\n",
        {},
        ["duplicate", "'a' (columns 1 and 3), 'b' (columns 2 and 4)"],
    ),
    (",a,y\n1,2,3\n4,5,6\n", {}, ["column 1", "empty name"]),
    ('a," ",y\n1,2,3\n4,5,6\n', {}, ["column 2", "empty name"]),
    ("1.5,2,3\n4,5,6\n7,8,9\n", {}, ["header line", "'1.5'"]),
    ('"a\nb",c,y\nq,1,2\n2,3,4\n', {}, [r"'a\nb'", "'q'"]),
    ("a,b,y\n1,2,3\n4,5\n7,8,9\n", {}, ["line 3 ", "2 fields", "has 3"]),
    ("a,b,y\n1,2,3\n\n4,5,6,7\n", {}, ["line 4 ", "4 fields", "has 3"]),
    ("\n\na,b,y\n1,2,3\n4,5,6\n7\n", {}, ["line 6 ", "1 fields", "has 3"]),
    ("a,y\n" + '"x\ny",1\n' * 3 + "1,2,3\n", {}, ["line 8 ", "3 fields"]),
    ("a;money;y\n1;1.234;1\n2;1,5;2\n", {}, ["'money'", "decimal commas", "'1.234'"]),
    ("a,y\n5,1\n1_000,2\n", {}, ["'a'", "'1_000'", "data row 2"]),
    ("a;y\n1,5;1\nabc;2\n2,5;3\n", {}, ["'a'", "'abc'", "data row 2"]),
    ("a,city,y\n1,5,3\n4,Oslo,6\n", {}, ["'city'", "text", "'Oslo'", "data row 2", "every row"]),
    ("g,y\nu,p\nv,q\nu,p\n", {}, ["target column 'y'", "holds text"]),
    ("g=b,g,y\n1,a,1\n2,a,2\n3,b,3\n", {}, ["duplicate", "'g=b'"]),
    (
        "a,g,y\n1,u,3\n,v,4\n",
        {},
        ["2 columns", "missing value in column 'a'", "every row"],
    ),
    ("a,y\n1,2\n", {}, ["only 1 data row", "at least 2"]),
    ("a,b,y\n", {}, ["no data rows"]),
    ("Sales of 2024,,\na,b,y\n1,2,3\n4,5,6\n", {}, ["a title above the header"]),
    ("a b y\n1 2 3\n4 5 6\n", {}, ["separated by spaces"]),
    ('a,y\n"1,2\n3,4\n', {}, ["malformed quotes", "line 2"]),
    ("", {}, ["the file is empty"]),
    ("\ufeff\n\n", {}, ["the file is empty"]),
]


@pytest.mark.parametrize(("text", "options", "words"), REFUSED)
def test_what_is_refused(
    tmp_path: Path, text: str, options: dict[str, Any], words: list[str]
) -> None:
    refused(write(tmp_path / "t.csv", text), "t.csv", *words, **options)


@pytest.mark.parametrize("cell", ["", "  ", "NA", "NaN", "nan", "null", "NULL", "n/a", "?", "-nan"])
@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_missing_values(tmp_path: Path, cell: str, mark: str) -> None:
    rows = ["1,2,3", f"4,{cell},6", "7,8,9"]
    path = write(tmp_path / "t.csv", "\n".join(["a,b,y", *rows]).replace(",", mark))
    refused(path, "missing value", "'b'", "data row 2")
    rows = ["1,2,3", "4,5,6", f"7,8,{cell or 'NA'}"]
    path = write(tmp_path / "u.csv", "\n".join(["a,b,y", *rows]).replace(",", mark))
    refused(path, "missing value", "'y'", "data row 3", "remove the row")


def test_row_numbers_run_over_pieces(tmp_path: Path) -> None:
    rows = [f"{i},1" for i in range(2 * ROWS_OF_PIECES)]
    row = len(rows) - 23
    for cell, word in (("", "missing"), ("inf", "infinite"), ("abc", "numbers, and 'abc'")):
        rows[row - 1] = f"{cell},1"
        path = write(tmp_path / "t.csv", "\n".join(["a,y", *rows]))
        refused(path, word, "'a'", f"data row {row}")
    rows[row - 1] = "1,1,1"
    path = write(tmp_path / "t.csv", "\n".join(["a,y", *rows]))
    refused(path, f"line {row + 1} has 3 fields")


@pytest.mark.parametrize("cell", ["inf", "-Inf", "Infinity", "1e999"])
def test_infinite_values(tmp_path: Path, cell: str) -> None:
    path = write(tmp_path / "t.csv", f"a,b,y\n1,2,3\n4,5,6\n{cell},8,9\n")
    refused(path, "infinite value", "'a'", "data row 3")


@pytest.mark.parametrize("day", ["2024-01-05", "5.1.2024", "01/05/24", "2024-01-05T10:00:00"])
def test_dates_are_refused(tmp_path: Path, day: str) -> None:
    path = write(tmp_path / "d.csv", f"a,day,y\n1,{day},3\n4,{day},6\n")
    refused(path, "'day'", "dates", repr(day), "days since", "--exclude")


# ---------------------------------------------------------------------------- text columns


def test_text_columns_become_levels(tmp_path: Path) -> None:
    text = "a,g,b,y\n1,m,0,5\n2,f,1,6\n3, m ,0,7\n4,d,1,8\n"
    source = resolve(write(tmp_path / "t.csv", text))
    expected = np.array(
        [[1, 0, 0, 1, 0, 5], [2, 0, 1, 0, 1, 6], [3, 0, 0, 1, 0, 7], [4, 1, 0, 0, 1, 8.0]]
    )
    check(source, expected, ["a", "g=d", "g=f", "g=m", "b"], "y")


def test_levels_of_a_column_that_turns_text_late(tmp_path: Path) -> None:
    cells = ["03", "4"] * ROWS_OF_PIECES + ["5more"] * ROWS_OF_PIECES
    text = "\n".join(["y,doors,x", *(f"{i},{c},{i * i}" for i, c in enumerate(cells))])
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(text.encode()))
    source = resolve(path, target="y")
    assert source.feature_names == ["doors=03", "doors=4", "doors=5more", "x"]
    X, y = source.load()
    np.testing.assert_array_equal(X[:, :3], [[c == v for v in ("03", "4", "5more")] for c in cells])
    np.testing.assert_array_equal(y, np.arange(len(cells)))
    np.testing.assert_array_equal(X[:, 3], y**2)


def test_levels_agree_with_pandas(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "u": rng.choice(["red", "green", "blue, dark"], 300),
            "v": rng.standard_normal(300),
            "w": rng.choice([f"L{i:03d}" for i in range(100)], 300),
            "y": rng.standard_normal(300),
        }
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    dummies = pd.get_dummies(frame, columns=["u", "w"], prefix_sep="=", dtype=float)
    for file in ("t.csv", "t.parquet"):
        source = resolve(tmp_path / file)
        assert set(source.feature_names) == set(dummies.columns) - {"y"}
        check(source, dummies[[*source.feature_names, "y"]].to_numpy(), source.feature_names, "y")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_identifiers_are_refused(tmp_path: Path, kind: str) -> None:
    def save(cells: list[str], n: int) -> Path:
        frame = pd.DataFrame({"who": cells, "x": np.arange(n) % 2.5, "y": np.arange(n)})
        path = tmp_path / f"t.{kind}"
        _ = frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
        return path

    many = save([f"id{i % 101}" for i in range(500)], 500)
    refused(many, "'who'", "more than 100 levels", "identifier", "--exclude 'who'")
    distinct = save([f"id{i}" for i in range(20)], 20)
    refused(distinct, "'who'", "every row", "identifier", "--exclude 'who'")
    assert resolve(save([f"id{i % 100}" for i in range(500)], 500)).p == 101


# ---------------------------------------------------------------------------- properties

finite = st.floats(allow_nan=False, allow_infinity=False)


@given(
    rows=st.lists(st.tuples(finite, finite, finite), min_size=2, max_size=30),
    style=st.sampled_from([(",", "."), (";", "."), (";", ","), ("\t", ".")]),
)
def test_any_finite_table_survives(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[float, float, float]],
    style: tuple[str, str],
) -> None:
    mark, point = style
    lines = [mark.join(repr(v).replace(".", point) for v in row) for row in rows]
    text = "\n".join([mark.join("aby"), *lines])
    path = write(tmp_path_factory.mktemp("any") / "t.csv", text)
    X, y = resolve(path).load()
    np.testing.assert_array_equal(np.column_stack([X, y]), np.array(rows))


@given(text=st.text(alphabet='ab1.,;\t"\n\r -eNA\x00_', max_size=60))
def test_junk_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = write(tmp_path_factory.mktemp("junk") / "t.csv", text)
    try:
        X, y = resolve(path).load()
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017
    else:
        assert np.isfinite(X).all()
        assert np.isfinite(y).all()
        assert X.shape[0] == len(y) >= 2
        assert X.shape[1] >= 1


@given(
    rows=st.lists(
        st.tuples(
            *[st.sampled_from(["1", "-2", "2.5", "1e3", "", "NA", "x", "07", "true", "3.102"])] * 2,
            st.sampled_from(["1", "2.5", "4", "1.102"]),
        ),
        min_size=2,
        max_size=12,
    ),
    mark=st.sampled_from([",", ";"]),
)
def test_pieces_do_not_matter(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, ...]], mark: str
) -> None:
    text = "\n".join([mark.join("aby"), *(mark.join(row) for row in rows)])
    path = write(tmp_path_factory.mktemp("pieces") / "t.csv", text)
    found = list[Any]()
    for cells in (3, 7, 1_000):
        with standing_in(CELLS_OF_TEXT_AT_A_TIME=cells):
            try:
                source = resolve(path, missing="mean")
                X, y = source.load()
                found.append([source.coding.levels, X.tolist(), y.tolist()])
            except InputError as error:
                found.append(str(error))
    assert repr(found[0]) == repr(found[1]) == repr(found[2])


@pytest.mark.parametrize("options", [{}, {"target": "a"}, {"drop": "d.e"}])
def test_numbers_are_held_once(tmp_path: Path, options: dict[str, Any]) -> None:
    """X and y are columns of the array that was filled while the file was read."""
    X, y = resolve(write(tmp_path / "t.csv", csv_text(table())), **options).load()
    assert X.base is y.base
    assert X.base.shape == (len(y), X.shape[1] + 1)
    assert joined(X, y) is X.base
