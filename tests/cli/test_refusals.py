"""What cannot be used is refused in one line that names the option or column, before any search."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.commands import Capture, complaint, run_json
from support.inside import main
from support.stand_ins import StandIn
from support.tables import growing_columns, write_csv

SOME = "a,b,w,y\n" + "".join(f"{i % 5},{i * i % 7},{int(i < 2)},{i % 4}\n" for i in range(12))
WEIGHED = "w,a,g,y\n1,2,u,3\n2,1,v,4\n0,5,u,5\n1,4,v,7\n"
FILES: dict[str, str | bytes] = {
    "good.csv": "a,b,y\n1,2,3\n2,1,4\n3,5,5\n4,4,9\n",
    "some.csv": SOME,
    "weighed.csv": WEIGHED,
    "negative.csv": WEIGHED.replace("2,1", "-2,1"),
    "infinite.csv": WEIGHED.replace("2,1", "inf,1"),
    "no-weight.csv": WEIGHED.replace("2,1", ",1"),
    "no-group.csv": WEIGHED.replace(",v,7", ",,7"),
    "two-weights.csv": WEIGHED.replace("w,a,g", "w,w,g"),
    "one-weight.csv": "w,a,y\n1,2,3\n0,1,4\n0,5,5\n",
    "one-group.csv": WEIGHED.replace("v", "u"),
    "weights-alone.csv": "w,y\n1,2\n2,3\n",
    "bound.json": '{"bound": {}}',
    "latin.json": '{"include": ["größe"]}'.encode("latin-1"),
    "half.json": '{"include": ["a"',
    "wide.json": f'{{"bounds": {{"a": [{"9" * 400}, 2]}}}}',
    "text.json": '{"include": "a"}',
    "pair.json": '{"bounds": {"a": ["x", 1]}}',
    "page.html": "<!DOCTYPE html>\n<html><body>a table</body></html>\n",
    "model.json": '{\n "format": "sparsecv model",\n "version": 1\n}\n',
    "result.json": '{\n "sparsecv": "0.2.0",\n "dataset": "t"\n}\n',
    "other.json": '{"a": 1}\n',
    "proof.txt": "sparsecv certificate, format 1\n",
    "huge.csv": "a,b,y\n1,2,3e200\n2,1,4e200\n3,5,-5e200\n",
}
LONG = "x" * 300
CV, FIT = "cv good.csv --folds 2 --gamma 1", "fit good.csv --tau 1"
WEIGHTS, GROUPS = "--folds 2 --gamma 1 --weights w", "--folds 2 --gamma 1 --groups g"
REFUSED = {
    # commands
    "cv": "Missing argument",
    "fit good.csv": "--tau",
    # files of other kinds
    "cv page.html": "page.html is a page of HTML|a table is wanted",
    "cv model.json": "model.json is a model|sparsecv predict takes",
    "cv result.json": "result.json is a result that --json has written|a table is wanted",
    "cv other.json": "other.json is a file of JSON|a table is wanted",
    "cv proof.txt": "proof.txt is a certificate|sparsecv verify takes",
    "cv https://example.org/t.csv": "https://example.org/t.csv is an address|download the file",
    # values of options
    f"{CV} --folds 0": "at least 2 folds",
    f"{CV} --folds size:3": "size 3|there are 4",
    f"{CV} --folds {'9' * 5000}": "folds|999",
    f"{CV} --tau 1:3": "p = 2|got 3",
    f"{CV} --gamma nan": "gamma|>= 0",
    f"{CV} --backend abacus": "backend|'abacus'",
    f"{CV} --backend highs --method exact": "backend highs|grid or search",
    f"{CV} --nonsense": "No such option: --nonsense",
    f"{CV} --encoding klingon": "--encoding|klingon",
    f"{CV} --encoding hex": "--encoding|no encoding of text 'hex'",
    f"{CV} --rule best": "rule|'best'",
    f"{CV} --rule 1se": "'1se'|Did you mean one-se?",
    f"{CV} --rule minimal": "'minimal'|Did you mean minimum?",
    f"{CV} --rule one-se --method search": "rule one-se|every tau",
    f"{CV} --protocol kind": "protocol|'kind'",
    f"{CV} --scale big": "scale|'big'",
    f"{CV} --time-limit -1": "--time-limit",
    f"{CV} --time-limit nan": "time",
    f"{CV} --seed -1": "--seed",
    f"{CV} --jobs 0": "--jobs",
    "cv some.csv --gamma 1 --size 9": "size must be one of 0 to 3; got 9",
    f"{CV} --size 2 --nested": "--nested judges the choice",
    f"{CV} --n-best 0": "--n-best must be from 1",
    f"cv some.csv --n-best {'9' * 9}": "--n-best|100000",
    f"{CV} another.csv": "another.csv",
    f"{FIT} --tau one": "--tau must be a whole number or one of aic, bic, ebic|'one'",
    f"{FIT} --tau cp": "--tau|'cp'",
    f"{FIT} --tau bic --gamma 1": "tau='bic' compares least-squares fits|leave gamma out",
    f"{FIT} --tau bic --positive a": "tau='bic' serves no signs or bounds|give a size",
    f"{FIT} --tau aic --backend highs": "tau='aic' is searched by the native backend",
    f"{CV} --tau bic": "--tau must be all, A:B or a list|'bic'",
    "cv huge.csv --folds 2": "response",
    # files that are written
    f"{CV} --json": "--json",
    f"{CV} --plot no/such/folder.png": "--plot|no/such",
    f"{CV} --plot p.xyz": "--plot|xyz",
    f"{CV} --html no/such/folder.html": "--html",
    f"{CV} --save no/m.json": "--save no/m.json",
    f"{CV} --checkpoint good.csv": "--checkpoint|good.csv",
    f"{CV} --json {LONG}": "--json",
    f"benchmark --csv {LONG}": "--csv",
    f"{CV} --json o.json --save o.json": "--json|--save|o.json",
    # files that are read
    "cv good": "did you mean 'good.csv'?",
    f"{CV} --constraints {LONG}": "--constraints|too long",
    "predict m.json good.csv": "cannot read m.json",
    "cv diabetes --folds loo --gamma 1 --rule stability": "use fewer folds",
    # what cannot go together
    "cv some.csv --folds 7 --nested --groups b": "folds of whole groups|4",
    "cv some.csv --folds size:6 --nested": "outer fold 1 of 12|11",
    "benchmark diabetes pears --gamma 1": "pears",
    "benchmark diabetes --folds 5,1000 --gamma 1": "1000 folds",
    "benchmark diabetes --ways nonsense": "--ways knows",
    "benchmark diabetes --ways , --gamma 1": "--ways",
    "benchmark diabetes --gamma auto": "needs values of gamma",
    # weights and groups
    f"cv weighed.csv {GROUPS}g": "no groups column 'gg'|'g'",
    f"cv infinite.csv {WEIGHTS}": "'w'|finite|'inf'|data row 2",
    f"cv no-weight.csv {WEIGHTS}": "missing value in column 'w'|data row 2",
    f"cv no-group.csv {GROUPS}": "missing value in column 'g'|data row 4; fill it in, or remove",
    f"cv two-weights.csv {WEIGHTS}": "duplicate|'w'",
    f"cv negative.csv {WEIGHTS}": "'w'|>= 0|'-2'|data row 2",
    f"cv one-weight.csv {WEIGHTS}": "'w'|above 0|2 rows",
    f"cv one-group.csv {GROUPS}": "groups (1)|got 2",
    f"cv weighed.csv {GROUPS} --folds size:1": "groups|folds of a size",
    f"cv weighed.csv {WEIGHTS} --groups w": "'w'|--groups|--weights",
    f"cv weighed.csv {WEIGHTS} --exclude a,w": "'w'|--weights|--exclude",
    f"cv weights-alone.csv {WEIGHTS}": "no feature columns",
    "cv some.csv --weights w --folds 3 --rule projected --seed 1": "weight 0",
    # constraints
    f"{FIT} --constraints latin.json": "--constraints latin.json|save it as UTF-8",
    f"{FIT} --constraints half.json": "--constraints half.json: it holds no JSON|line 1 column",
    f"{FIT} --constraints wide.json": "bounds of 'a': give (low, high)",
    f"{FIT} --constraints bound.json": "'bound' is none of the names include, exclude, groups",
    f"{FIT} --constraints text.json": "include must be a list of columns",
    f"{FIT} --constraints pair.json": "bounds of 'a': give (low, high)",
    f"{FIT} --backend highs --positive a": "backend highs serves no constraints",
}


@pytest.fixture
def nothing_is_searched(stand_in: StandIn) -> None:
    def searched(*_: Any, **__: Any) -> None:
        raise AssertionError("searched first")

    stand_in(visit=searched)
    stand_in(best_model=searched)


def written() -> list[str]:
    return sorted(str(path) for path in Path().iterdir())


@pytest.mark.usefixtures("nothing_is_searched")
@pytest.mark.parametrize("command", REFUSED, ids=lambda command: command[:60])
def test_one_line_before_any_search(command: str, capsys: Capture) -> None:
    for name, text in FILES.items():
        Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    before = written()
    complaint(capsys, command.split(), REFUSED[command].split("|"))
    assert written() == before


@pytest.mark.parametrize(
    ("option", "text", "values"),
    [
        ("--gamma", " 3 ", [3.0]),
        ("--gamma", "10, 0.1", [10.0, 0.1]),
        ("--gamma", "1e-4:1e4:9", [1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1e3, 1e4]),
        ("--gamma", "2:2:1", [2.0]),
        ("--tau", "1:4", [1, 2, 3, 4]),
        ("--tau", " 2 : 2 ", [2]),
        ("--tau", "5,2,3", [2, 3, 5]),
        ("--tau", " ALL ", [0, 1, 2, 3, 4, 5]),
    ],
)
def test_lists_and_grids(option: str, text: str, values: list[float]) -> None:
    table = write_csv(Path("t.csv"), *growing_columns())
    quick = ["--rule", "minimum", "--no-nested", "--time-limit", "0", "--folds", "2"]
    results = run_json("cv", table, "--gamma", "1", option, text, *quick, status=1)["results"]
    found = [one["gamma"] for one in results] if option == "--gamma" else results[0]["tau"]
    np.testing.assert_allclose(found, values, rtol=1e-14)


@pytest.mark.usefixtures("nothing_is_searched")
@pytest.mark.parametrize(
    ("option", "texts"),
    [
        ("--gamma", "|x|1,,2|1,x|1:2|1:2:|1:2:0|1:2:1|1:2:-3|1:2:2.5|2:1:3|0:1:3|-1:1:3"),
        ("--gamma", "1:inf:3|nan:1:3|1:2:3:4|1:2,3|1:10:999999999999|-1|nan|1,-2|1e400"),
        ("--tau", "|x|1.5|1,|4:2|1:2:3|:|1:|1:99999999999|9999999999999999999|1:1" + "0" * 19),
    ],
)
def test_texts_that_are_no_grid(option: str, texts: str, capsys: Capture) -> None:
    table = str(write_csv(Path("t.csv"), *growing_columns()))
    for text in texts.split("|"):
        complaint(capsys, ["cv", table, f"{option}={text}"], [option[2:]])


@pytest.mark.usefixtures("nothing_is_searched")
def test_two_spellings_of_one_file(capsys: Capture) -> None:
    write_csv(Path("t.csv"), *growing_columns())
    Path("sub").mkdir()
    files = ["--json", "o.json", "--save", "sub/../o.json"]
    complaint(capsys, ["cv", "t.csv", *files], ["--json and --save name the same file"])


def test_what_is_unusual_is_no_fault(capsys: Capture) -> None:
    """More threads than work, columns that depend, two rows, γ at the ends of the numbers."""
    X, y = growing_columns()
    X[:, 1] = X[:, 0]
    write_csv(Path("t.csv"), X, y)
    Path("two.csv").write_text("a,b,y\n1,2,3\n2,1,4\n")
    for command in (
        *(f"{name} --jobs 1000000" for name in ("cv t.csv --no-nested", "fit t.csv --tau 1")),
        *(f"cv t.csv --folds 4 --gamma {gamma}" for gamma in ("0", "1e-30")),
        *(f"fit t.csv --tau 2 --gamma {gamma}" for gamma in ("0", "1e-30")),
        *(
            f"cv t.csv --gamma global:{span} --tau 1 --no-nested"  # may lie outside every range
            for span in ("1e-320:1e-319", "1e-301:1e-300", "1e300:1e308")
        ),
        *(
            f"cv two.csv --folds loo --gamma {gamma} --no-nested{more}"
            for gamma in ("1e-8", "1", "1e8")
            for more in ("", " --protocol paper", " --scale none")
        ),
    ):
        assert main([*command.split(), "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    complaint(capsys, ["cv", "two.csv"], ["5 folds"])


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_link_to_a_file_that_does_not_exist_yet_stays(tmp_path: Path, capsys: Capture) -> None:
    """Whether a file can be written is tried before the work, and leaves nothing behind."""
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "file.json")
    write_csv(Path("t.csv"), *growing_columns())
    complaint(capsys, ["cv", "t.csv", "--tau", "99", "--json", str(link)], ["tau"])
    assert link.is_symlink()
    assert not link.exists()
