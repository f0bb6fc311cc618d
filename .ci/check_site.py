"""Checks a built documentation site: links and anchors lead somewhere, and nothing is loaded from another host.

    python .ci/check_site.py DIRECTORY

Links to other hosts are listed, not followed: a build needs no network.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

LOADING: Final = {"link": "href", "script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data"}
"""Elements whose address a browser loads without a click."""
NOT_LOADED: Final = {"canonical", "next", "prev", "alternate", "author"}
"""Kinds of ``<link>`` that are only facts."""


@dataclass
class LinkParser(HTMLParser):
    """Anchors of a page, links, and what a browser loads."""

    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        of = {name: value or "" for name, value in attrs}
        self.ids.update(of[name] for name in ("id", "name") if of.get(name))
        if tag == "a" and "href" in of:
            self.links.append(of["href"])
        if tag in LOADING and of.get(LOADING[tag]) and not NOT_LOADED & set(of.get("rel", "").split()):
            self.loaded.append(of[LOADING[tag]])


def read_page(path: Path) -> LinkParser:
    page = LinkParser()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def problems(site: Path) -> list[str]:
    """Return a line for each wrong link and each foreign address."""
    pages = {path.resolve(): read_page(path) for path in sorted(site.rglob("*.html"))}
    wrong_links = []
    for path, page in pages.items():
        where = path.relative_to(site.resolve())
        wrong_links += [f"{where}: loads {url}" for url in page.loaded if urlsplit(url).netloc]
        local = [
            url for url in (*page.links, *page.loaded) if not urlsplit(url).netloc and ":" not in url.split("/")[0]
        ]
        wrong_links += [f"{where}: {url}: {wrong}" for url in local if (wrong := missing(path, url, pages))]
    for path in sorted([*site.rglob("*.css"), *site.rglob("*.svg")]):
        urls = re.findall(r"url\(\s*['\"]?((?:https?:)?//[^)'\"]+)", path.read_text(encoding="utf-8"))
        wrong_links += [f"{path.relative_to(site)}: loads {url}" for url in urls]
    return wrong_links


def missing(path: Path, url: str, pages: dict[Path, LinkParser]) -> str:
    """Return what a local address lacks; "" if it leads somewhere."""
    parts = urlsplit(url)
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    target = target / "index.html" if target.is_dir() else target
    if path.name == "404.html":  # its addresses are absolute on the server
        return ""
    if not target.is_file():
        return "no such file"
    anchor = unquote(parts.fragment)
    return "no such anchor" if anchor and target in pages and anchor not in pages[target].ids else ""


def main() -> int:
    site = Path(sys.argv[1])
    wrong_links = problems(site)
    print(*wrong_links, sep="\n", end="\n" if wrong_links else "")
    print(f"{len(list(site.rglob('*.html')))} pages, {len(wrong_links)} problems")
    return int(bool(wrong_links))


if __name__ == "__main__":
    sys.exit(main())
