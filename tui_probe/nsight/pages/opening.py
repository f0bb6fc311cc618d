"""What the screen shows of imported files: their pages, each made when it is first looked at.

Modules are imported where they are needed: those of one profiler's pages take as long to import as a file to read.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from tui_probe.draw.shell import shell_word
from tui_probe.errors import ImportFileError
from tui_probe.nsight.analysis.chosen_launches import FIND_OUT, Plan
from tui_probe.nsight.importers.chrome_file import chrome_files
from tui_probe.nsight.importers.mistaken import code_words
from tui_probe.nsight.importers.nsys import read_nsys
from tui_probe.nsight.importers.text_file import first_bytes
from tui_probe.nsight.importers.which_tool import tool_of
from tui_probe.nsight.pages.choices import NCU_PAGES
from tui_probe.nsight.pages.explanations import EXPLANATIONS
from tui_probe.pages.bandwidth.result_file import looks_like_bandwidth, read_bandwidth
from tui_probe.pages.imported import Imported, ImportedPage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tui_probe.draw.view import View
    from tui_probe.nsight.analysis.sectors import Tensor
    from tui_probe.nsight.pages.ncu_report import Sources
    from tui_probe.pages.table_page import TablePage
    from tui_probe.trace.model import Trace


def open_imported(
    paths: Sequence[Path], plan: Plan = FIND_OUT, tensor: Tensor | None = None, traces: Sequence[Trace] = ()
) -> Imported:
    """The pages about files of one profiler, or about a measurement of bandwidth. ImportFileError if they are neither;
    ``traces`` are of the same program.
    """
    title = ", ".join(path.name for path in paths)
    if chrome_files(paths):
        return Imported(title, _nsys_pages(paths, traces))
    start = first_bytes(paths[0])
    if looks_like_bandwidth(start):
        if len(paths) > 1:
            raise ImportFileError(
                f"{paths[0]}: a bandwidth result is opened by itself: tui-probe open {shell_word(paths[0])}"
            )
        from tui_probe.pages.bandwidth.opening import open_bandwidth

        return open_bandwidth(read_bandwidth(paths[0]), title)
    if code := code_words(paths[0]):
        raise ImportFileError(f"{paths[0]}: {code}")
    tool = tool_of(paths[0])
    if tool == "nsys":
        return Imported(title, _nsys_pages(paths, traces))
    try:
        return Imported(title, _ncu_pages(paths, plan, tensor, traces))
    except ImportFileError:
        if tool == "ncu":
            raise
        with suppress(ImportFileError):
            return Imported(title, _nsys_pages(paths, traces))
        raise


def _ncu_pages(paths: Sequence[Path], plan: Plan, tensor: Tensor | None, traces: Sequence[Trace]) -> list[ImportedPage]:
    from tui_probe.nsight.importers.ncu import read_ncu
    from tui_probe.nsight.pages.ncu_report import Sources

    sources = Sources(read_ncu(paths), traces, plan, tensor)
    return [
        ImportedPage(name, name.title(), partial(_ncu_page, name, sources), EXPLANATIONS[name]) for name in NCU_PAGES
    ]


def _ncu_page(name: Any, sources: Sources) -> View:
    from tui_probe.nsight.pages.ncu_report import ncu_page

    return _explained(ncu_page(name, sources))


def _nsys_pages(paths: Sequence[Path], traces: Sequence[Trace]) -> list[ImportedPage]:
    from tui_probe.nsight.pages.nsys_pages import gaps_page, kernels_page, ranges_page, sums_page, totals_page
    from tui_probe.nsight.pages.nsys_sources import NsysSources

    sources = NsysSources(read_nsys(paths), traces=traces)

    def timeline() -> View:
        from tui_probe.nsight.pages.timeline import StreamTimeline

        return StreamTimeline(sources)

    makers: dict[str, Callable[[], View]] = {
        "totals": lambda: _explained(totals_page(sources)),
        "kernels": lambda: _explained(kernels_page(sources)),
        "ranges": lambda: _explained(ranges_page(sources)),
        "gaps": lambda: _explained(gaps_page(sources)),
        "timeline": timeline,
        "sums": lambda: _explained(sums_page(sources)),
    }
    return [ImportedPage(name, name.title(), make, EXPLANATIONS[f"nsys {name}"]) for name, make in makers.items()]


def _explained(page: TablePage[Any]) -> TablePage[Any]:
    """A page ready to be shown, with how to read it at its end."""
    page.explained = True
    return page.prepare()
