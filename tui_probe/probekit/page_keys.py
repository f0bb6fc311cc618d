"""Keys of pages: nine digits with one meaning on every screen, and a letter for each further page, behind ``0``."""

from __future__ import annotations

from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

DIGIT_PAGES: Final = ("summary", "source", "ptx", "diff", "sass", "lines", "timeline", "launches", "process")
"""The pages of the digits 1 to 9. On a screen without a summary ``1`` is its first page."""
MORE: Final = "0"
"""Key of the list of further pages."""
LETTERS: Final[Mapping[str, str]] = {
    "all_lines": "a",
    "stderr": "e",
    "phases": "f",
    "gpu": "g",
    "graphs": "h",
    "ranks": "k",
    "latency": "l",
    "ranges": "n",
    "stdout": "o",
    "probe": "p",
    "results": "r",
    "stalls": "s",
    "tree": "t",
    "events": "v",
    "explain": "x",
}
"""Letters of pages that are not of one probe alone; a page of a probe has the first free letter of its title."""
_CLOSING: Final = "q"
"""Closes the list, so it opens no page."""


def page_keys(pages: Mapping[str, str], *, reserved: bool = True) -> dict[str, str]:
    """Return the keys of pages, given their titles by name in order: ``3``, ``b``; "" if no letter is left.

    ``reserved``: letters of other pages stay free, so that a page has the same letter wherever it is shown.
    """
    keys = {name: str(DIGIT_PAGES.index(name) + 1) for name in pages if name in DIGIT_PAGES}
    if pages and "summary" not in pages:
        keys.setdefault(next(iter(pages)), "1")
    keys |= {name: LETTERS[name] for name in pages if name in LETTERS and name not in keys and reserved}
    taken = {*keys.values(), *(LETTERS.values() if reserved else ())}
    return keys | letters_of({name: title for name, title in pages.items() if name not in keys}, taken)


def letters_of(titles: Mapping[str, str], taken: Collection[str] = ()) -> dict[str, str]:
    """Return a letter for each title: the first one of it that is free, else any, capitals last; "" if none is left."""
    free = [letter for letter in ascii_lowercase + ascii_uppercase if letter not in {*taken, _CLOSING}]
    letters = {}
    for name, title in titles.items():
        letters[name] = next((letter for letter in (*title.lower(), *free) if letter in free), "")
        free = [letter for letter in free if letter != letters[name]]
    return letters


def key_text(key: str) -> str:
    """Return a page's key as it is typed: ``3``, ``0 b``."""
    return f"{MORE} {key}" if key.isalpha() else key
