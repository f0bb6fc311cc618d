"""What the screen shows of imported files: their pages, each made when it is first looked at."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tui_probe.analysis.chosen_launches import FIND_OUT, Plan
from tui_probe.errors import ImportFileError
from tui_probe.importers.ncu import read_ncu
from tui_probe.importers.nsys import read_nsys
from tui_probe.render.nsight.choices import NCU_PAGES
from tui_probe.render.nsight.ncu_report import Sources, ncu_page
from tui_probe.render.nsight.nsys_pages import NsysSources, gaps_page, kernels_page, ranges_page
from tui_probe.render.nsight.timeline import StreamTimeline

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tui_probe.analysis.sectors import Tensor
    from tui_probe.importers.nsys_model import NsysReport
    from tui_probe.render.nsight.page import TablePage
    from tui_probe.render.views.view import View


@dataclass(frozen=True, slots=True)
class ImportedPage:
    """One page; ``make`` may take a while."""

    name: str
    title: str
    make: Callable[[], View]


@dataclass(frozen=True, slots=True)
class Imported:
    """Files that were read. ``title`` says which."""

    title: str
    pages: Sequence[ImportedPage]


def open_imported(paths: Sequence[Path], plan: Plan = FIND_OUT, tensor: Tensor | None = None) -> Imported:
    """The pages about files of one profiler. ImportFileError if they are of none."""
    title = ", ".join(path.name for path in paths)
    try:
        table = read_ncu(paths)
    except ImportFileError as no_ncu:
        try:
            report = read_nsys(paths)
        except ImportFileError as no_nsys:
            raise (no_nsys if _like_nsys(paths) else no_ncu) from None
        return Imported(title, _nsys_pages(report))
    sources = Sources(table, (), plan, tensor)
    titles = ("Kernels", "Metrics", "Traffic", "Sectors", "Critical", "Averages")
    pages = [
        ImportedPage(name, title, partial(_ncu_page, name, sources))
        for name, title in zip(NCU_PAGES, titles, strict=True)
    ]
    return Imported(title, pages)


def _like_nsys(paths: Sequence[Path]) -> bool:
    return any(path.suffix in (".sqlite", ".db", ".nsys-rep", ".qdrep") for path in paths)


def _ncu_page(name: Any, sources: Sources) -> View:
    return _explained(ncu_page(name, sources))


def _nsys_pages(report: NsysReport) -> list[ImportedPage]:
    sources = NsysSources(report)
    return [
        ImportedPage("kernels", "Kernels", lambda: _explained(kernels_page(sources))),
        ImportedPage("ranges", "Ranges", lambda: _explained(ranges_page(sources))),
        ImportedPage("gaps", "Gaps", lambda: _explained(gaps_page(sources))),
        ImportedPage("timeline", "Timeline", lambda: StreamTimeline(sources)),
    ]


def _explained(page: TablePage[Any]) -> TablePage[Any]:
    """A page ready to be shown, with how to read it at its end."""
    page.explained = True
    return page.prepare()
