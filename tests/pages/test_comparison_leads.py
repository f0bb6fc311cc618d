"""Pages of a kernel that show a value of a comparison."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pages.before_after import write_pair
from tests.recorded import H200, SIMULATED, unpacked
from tui_probe.pages.comparison import Comparison, compare_sources, compare_traces
from tui_probe.pages.comparison_tables import PageLink, change_link, linked_page
from tui_probe.pages.views import names
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probekit.registry import all_probes
from tui_probe.trace.follow import open_trace
from tui_probe.verdicts.kernel_values import metric_pages


def leads(found: Comparison) -> dict[str, PageLink]:
    """By the key of the value."""
    known = ((change, change_link(pair, change)) for pair in found.pairs for change in pair.changes)
    return {change.baseline.key: lead for change, lead in known if lead is not None}


def of_itself(trace: Path) -> dict[str, PageLink]:
    opened = open_trace(trace)
    kernel = next(probed for probed in opened.kernels if probed.result_rows)
    return leads(compare_sources(ViewSource(opened, kernel), ViewSource(opened, kernel), lambda _: None))


@pytest.mark.parametrize(
    ("trace", "key", "page"),
    [
        (H200 / "demo", "span_cycles", "blocks"),
        (H200 / "attention_sectors", "load_sectors", "lines"),
        (SIMULATED / "gmem_sectors", "load_sectors", "sectors"),
        (SIMULATED / "gmem_bytes", "read", "memory"),
        (SIMULATED / "warp_progress", "median_cycles", "progress"),
        (SIMULATED / "warp_progress", "stragglers", "progress"),
        (H200 / "demo", "launches", "launches"),
        (H200 / "demo", "registers_probed", "diff"),
        (H200 / "demo", "occupancy", "summary"),
    ],
)
def test_value_opens_page_that_shows_it(trace: Path, key: str, page: str, tmp_path: Path) -> None:
    lead = of_itself(unpacked(trace, tmp_path))[key]
    assert (lead.letter, lead.subject != "") == ("B", True)
    assert linked_page(lead) == (page, "")


def test_times_lead_to_the_launches(tmp_path: Path) -> None:
    before, after = write_pair(tmp_path)
    pages = leads(compare_traces(open_trace(before), open_trace(after), lambda _: None))
    assert linked_page(pages["time_ms"]) == ("launches", "")
    assert pages["time_ms"].source.trace.directory == after


def test_every_metric_names_pages_that_there_are() -> None:
    for probe in all_probes():
        for metric in probe.metrics:
            pages = metric_pages(probe, metric)
            assert set(pages) <= set(names())
            assert pages[-1] == "launches"


def test_a_figure_of_another_probe_says_which_page_lacks_what(tmp_path: Path) -> None:
    sectors, demo = open_trace(unpacked(H200 / "attention_sectors", tmp_path)), open_trace(H200 / "demo")
    page, why = linked_page(PageLink("B", ViewSource(demo, demo.kernels[0]), ("lines",), "load sectors"))
    assert page == ""
    assert "was probed with block_sched: run with" in why
    source = ViewSource(sectors, sectors.kernels[1])
    assert linked_page(PageLink("A", source, ("no page", "lines"), "load sectors")) == ("lines", "")
    assert linked_page(PageLink("A", source, (), "load sectors")) == ("", "no page shows this value")
