"""The pages of a measurement of bandwidth, for the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.analysis.sweep import sweep_of
from tui_probe.pages.bandwidth.bars import BandwidthBars
from tui_probe.pages.bandwidth.explanations import BANDWIDTH, SWEEP
from tui_probe.pages.bandwidth.sweep_page import SweepPage
from tui_probe.pages.bandwidth.table_page import bandwidth_page
from tui_probe.pages.imported import Imported, ImportedPage

if TYPE_CHECKING:
    from tui_probe.bandwidth.figures import Bandwidth
    from tui_probe.draw.view import View


def open_bandwidth(measured: Bandwidth, title: str) -> Imported:
    """The figures as a table and as bars, and the sweep where there was one."""

    def figures() -> View:
        page = bandwidth_page(measured)
        page.explained = True
        return page.prepare()

    pages = [
        ImportedPage("bandwidth", "Figures", figures, BANDWIDTH),
        ImportedPage("bars", "Bars", lambda: BandwidthBars(measured), BANDWIDTH),
    ]
    sweep = sweep_of(measured.swept)
    if sweep is not None:
        shown = sweep
        blocks = ImportedPage(
            "sweep", "Blocks", lambda: SweepPage(shown, measured.card, explained=True), SWEEP, in_text=True
        )
        pages.append(blocks)
    return Imported(title, pages)
