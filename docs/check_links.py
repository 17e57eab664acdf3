"""Check that every link inside a built site leads to a file and to a place in it.

``python docs/check_links.py SITE`` prints the links that do not; its status is 1 if there are any.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The places of a page that can be linked to, and its links."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.places.add(value)
            elif name in ("href", "src") and value:
                self.links.add(value)


def broken(site: Path) -> list[str]:
    """The links of a site, written as page: link, that lead nowhere."""
    files = (path for path in site.rglob("*.html") if "_static" not in path.parts)
    pages = {path.resolve(): Page(path) for path in files}
    found = []
    for path, page in sorted(pages.items()):
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            # pages of source code lead to the right page, whose place may bear a shorter name
            place = "" if "_modules" in path.parts else unquote(parts.fragment)
            known = pages[target].places if target in pages else set()
            if not target.exists() or (place and target in pages and place not in known):
                found.append(f"{path.relative_to(site.resolve())}: {link}")
    return found


if __name__ == "__main__":
    wrong = broken(Path(sys.argv[1]))
    print("\n".join(wrong) or "every link inside the site leads somewhere")
    sys.exit(bool(wrong))
