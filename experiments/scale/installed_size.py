"""This script lists the packages that an install brings, and the megabytes of their files.

    python -m experiments.scale.installed_size

It follows the requirements of sparsecv without extras, as they are installed here.
"""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, distribution

from experiments.common import machine


def sizes(package: str, known: dict[str, float]) -> dict[str, float]:
    """Megabytes of a package and of all that it requires, by name, added to ``known``."""
    if package in known:
        return known
    try:
        found = distribution(package)
    except PackageNotFoundError:  # a requirement of other systems or of another Python
        return known
    files = [file.locate() for file in found.files or []]
    known[package] = sum(file.stat().st_size for file in files if file.is_file()) / 1e6
    for requirement in found.requires or []:
        if "extra ==" not in requirement:
            name = re.split(r"[^\w.-]", requirement)[0]
            sizes(name.lower().replace("_", "-"), known)
    return known


def main() -> None:
    found = sizes("sparsecv", {})
    print(f"{machine()}\n\n| package | MB |\n|---|---:|")
    for package, size in sorted(found.items(), key=lambda one: -one[1]):
        print(f"| {package} | {size:.1f} |")
    print(f"| all {len(found)} | {sum(found.values()):.0f} |")


if __name__ == "__main__":
    main()
