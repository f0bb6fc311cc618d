"""Keys of pages: nine digits with one meaning on every screen, and a letter for each further page, behind ``0``."""

from __future__ import annotations

from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

MORE: Final = "0"
"""Key of the list of further pages."""


@dataclass(frozen=True, slots=True)
class PageKey:
    """A page with its digit or letter. ``short`` is its title on narrow terminals; ``of_run``: it is about the whole
    run, not about a kernel. A letter without a title is kept for a page to come.
    """

    name: str
    key: str
    title: str = ""
    about: str = ""
    short: str = ""
    of_run: bool = False


PAGES: Final = (
    PageKey("summary", "1", "Summary", "findings, limiter, registers", "Sum"),
    PageKey("source", "2", "Source", "source with the values of each line", "Src"),
    PageKey("ptx", "3", "PTX", "PTX: probed, pruned, original"),
    PageKey("diff", "4", "Diff", "pruned and probed PTX side by side"),
    PageKey("sass", "5", "SASS", "SASS: pruned and probed"),
    PageKey("lines", "6", "Lines", "table of the values of each line"),
    PageKey("timeline", "7", "Timeline", "blocks and warps, or streams, over time", "Time"),
    PageKey("launches", "8", "Launches", "shape, parameters and result of each launch", "Launch"),
    PageKey("process", "9", "Log", "process.log: how the kernel was built"),
    PageKey("all_lines", "a", "All lines", "lines of all kernels, those first that waste or wait most", of_run=True),
    PageKey("stderr", "e", "stderr", "standard error of the program", of_run=True),
    PageKey("phases", "f"),
    PageKey("gpu", "g", "GPU", "load, memory, clocks, temperature and power of the GPUs", of_run=True),
    PageKey("graphs", "h", "Graphs", "CUDA graphs: nodes over time, replays", of_run=True),
    PageKey("ranks", "k"),
    PageKey("latency", "l", "Latency", "cost of a probe, waits, times of blocks"),
    PageKey("ranges", "n", "Ranges", "NVTX ranges and the kernels launched in them", of_run=True),
    PageKey("stdout", "o", "stdout", "standard output of the program", of_run=True),
    PageKey("probe", "p", "Probe", "file of the probe"),
    PageKey("results", "r", "Results", "values that the probe recorded, a line per finished launch", of_run=True),
    PageKey("stalls", "s", "Stalls", "wait cycles of each line"),
    PageKey("tree", "t", "Tree", "where the GPU time goes: program, ranges, kernels, lines", of_run=True),
    PageKey("events", "v", "event.log", "log of the hook driver", of_run=True),
    PageKey("explain", "x", "Explain", "walk through the trace"),
)
"""All pages that are not of one probe only; a page of a probe has the first free letter of its title. On a screen
without a summary ``1`` is its first page.
"""
DIGIT_PAGES: Final = tuple(page.name for page in PAGES if page.key.isdigit())
LETTERS: Final[Mapping[str, str]] = {page.name: page.key for page in PAGES if page.key.isalpha()}
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
