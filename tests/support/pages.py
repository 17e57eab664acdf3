"""What the pages of the documentation say: their tables, their text, and the numbers in both."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "experiments" / "results"
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?|(?<![\w.\d])\.\d+")
# A number with a unit, with two or more decimals, or of a count ("7 of the 21"): a sentence that
# has such a number states a measurement, a setting, or what somebody else has printed.
STATED = re.compile(
    r"(?<![\w.\-⁻])(?:"
    r"(?:\d[\d,]*(?:\.\d+)?|\.\d+)\s?(?:s|ms|kB|MB|GB|GB/s|%|×|times|percent|million nodes|"
    r"(?:CPU |core-)?seconds?|minutes?|hours?)(?![\w/×])(?! ×? ?\d)"
    r"|\d*\.\d{2,}(?!\d)|\d[\d,]* of (?:the |all )?\d[\d,]*)"
    r"|(?:about|takes?|took) (?:an?|half an?|two|three|four|five|six|ten|some) "
    r"(?:second|minute|hour)s?"
)


class Table(NamedTuple):
    """A table of a page: the cells of its header, and of every row."""

    page: str
    head: list[str]
    rows: list[list[str]]

    @property
    def name(self) -> str:
        return f"{self.page}: {' | '.join(self.head)[:60]}"


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def names() -> list[str]:
    """README, the changes, and the pages that are written by hand: not the page of messages."""
    found = sorted(path.name for path in (ROOT / "docs").glob("*.md"))
    return [
        "README.md",
        "CHANGELOG.md",
        *(f"docs/{name}" for name in found if name != "bad-input.md"),
    ]


def without_code(name: str) -> str:
    return re.sub(r"^```.*?^```", "", page(name), flags=re.M | re.S)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def tables(name: str) -> list[Table]:
    found = []
    for block in re.findall(r"(?:^\|.*\n)+", without_code(name) + "\n", re.M):
        head, _, *rows = block.splitlines()
        found.append(Table(name, cells(head), [cells(row) for row in rows]))
    return found


def text(name: str) -> str:
    """The sentences of a page, without code and tables, each blank a single space."""
    return " ".join(re.sub(r"^\|.*$", "", without_code(name), flags=re.M).split())


def numbers(shown: str) -> list[str]:
    return [found.replace(",", "") for found in NUMBER.findall(shown)]


def agrees(shown: str, stored: str) -> bool:
    """Whether a number on a page is a stored number, rounded; half a unit may go either way."""
    digits = len(shown.split(".")[1]) if "." in shown else 0
    return abs(float(shown) - float(stored)) <= 0.5 * 10.0**-digits * (1 + 1e-9)


def missing(shown: str, stored: str) -> list[str]:
    """The numbers of ``shown`` that ``stored`` does not have."""
    known = numbers(stored)
    return [one for one in numbers(shown) if not any(agrees(one, other) for other in known)]


def stored(file: str) -> str:
    return (RESULTS / file).read_text(encoding="utf-8")


def lines(file: str, *keys: str) -> str:
    """The lines of a result file that begin with one of the keys, blanks and case left aside."""
    wanted = [key.lower() for key in keys]
    found = [
        line for line in stored(file).splitlines() if line.strip().lower().startswith(tuple(wanted))
    ]
    assert found, f"{file} has no line that begins with {keys}"
    return "\n".join(found)


def aligned(file: str, key: str, column: str) -> str:
    """The number in a table of blanks: in the line that begins with ``key``, below ``column``."""
    rows = stored(file).splitlines()
    at = next(i for i, row in enumerate(rows) if row.strip().lower().startswith(key.lower()))
    for head in reversed(rows[:at]):
        for end in (r"(?=\s\s|$)", r"(?=\s)"):  # "nested" may also begin the name "nested 5"
            if found := re.search(rf"(?<=\s\s){re.escape(column)}{end}", head):
                return rows[at][: found.end()].split()[-1]
    raise AssertionError(f"{file} has no column {column} above {key}")


def part(file: str, after: str, before: str = "\0") -> str:
    """What stands in a result file after a text, and before another."""
    return stored(file).split(after, 1)[1].split(before)[0]
