"""The table of lines names the instruction that does not coalesce, with its PTX and its source."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from tests.probes.specimens import add_specimen
from tests.sizes import document_text, golden_widths
from tests.trace.make import TraceWriter
from tui_probe.draw.view import no_progress
from tui_probe.pages.view_output import csv_of_view
from tui_probe.pages.views import kind_of
from tui_probe.pages.views.lines import LinesView
from tui_probe.probekit.measured import analyse_results
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.trace.follow import open_trace
from tui_probe.trace.model import Trace

RUNS = (
    "dmat", "nan_check", "program_progress", "warp_progress", "gmem_sectors_by_line", "smem_conflicts_by_line",
    "divergence_by_line", "gmem_bytes_by_line", "tensorop_count_by_line", "barrier_wait_by_line",
)  # fmt: skip


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a trace with a kernel for each probe, run on the simulated GPU."""
    folder = tmp_path_factory.mktemp("lines")
    writer = TraceWriter(folder / "lines")
    writer.start()
    for index, probe in enumerate(RUNS):
        add_specimen(writer, index, probe, folder)
    return writer.directory


@pytest.fixture
def trace(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> Trace:
    monkeypatch.chdir(recorded.parent)
    return open_trace(Path(recorded.name))


def opened(trace: Trace, probe: str) -> LinesView:
    source = ViewSource(trace, trace.kernels[RUNS.index(probe)])
    assert kind_of("lines").missing_reason(source) is None
    view = kind_of("lines").open(source, no_progress)
    assert isinstance(view, LinesView)
    return view


@pytest.mark.parametrize("probe", RUNS)
def test_goldens(trace: Trace, probe: str) -> None:
    view = opened(trace, probe)
    golden_widths(f"lines/{probe}.txt", lambda width, ascii_only: document_text(view, width, ascii_only=ascii_only))


def test_the_instruction_that_does_not_coalesce(trace: Trace) -> None:
    (row,) = csv.DictReader(io.StringIO("\n".join(csv_of_view(opened(trace, "dmat")))))
    assert (row["requests"], row["sectors"], row["ideal"], row["wasted"]) == ("256", "2048", "1024", "0.5")
    assert "st.global" in row["ptx"]
    assert row["file"].endswith("strided_store.cu")
    assert int(row["source_line"]) > 0


def test_data(trace: Trace) -> None:
    for probe in RUNS:
        record = json.loads(json.dumps(opened(trace, probe).record()))
        assert record["probe"] == probe
        assert record["lines"]


def test_every_probe_says_its_result_in_a_line(trace: Trace) -> None:
    results = (result for kernel in trace.kernels for result in analyse_results(trace, kernel))
    texts = dict(zip(RUNS, (result.words for result in results), strict=True))
    assert not any("no analysis" in said for said in texts.values())
    assert "sectors per request 8.00" in texts["dmat"]
    assert "first NaN or infinity at PTX line" in texts["nan_check"]
    assert "most time at PTX line" in texts["program_progress"]
    assert "main loop at line" in texts["warp_progress"]
    assert "lanes per access 31.85, fewest lanes at PTX line" in texts["divergence_by_line"]
    assert (
        "sectors per store 8.00, excessive store sectors 50.00 %, most sectors per request at PTX line"
        in texts["gmem_sectors_by_line"]
    )
    assert "operations 12 288, multiply-adds 6 144, mma 3, most" in texts["tensorop_count_by_line"]
    assert "barriers 1 024, cycles per barrier " in texts["barrier_wait_by_line"]
    assert "max per warp" not in texts["barrier_wait_by_line"]
    assert "written 16 384 B, most bytes at PTX line" in texts["gmem_bytes_by_line"]
    assert "conflict degree 32.00, highest degree at PTX line" in texts["smem_conflicts_by_line"]


def test_simulated_nanoseconds_are_no_times(trace: Trace) -> None:
    kernel = trace.kernels[list(RUNS).index("warp_progress")]
    for on_simulated_gpu in (False, True):
        trace.state.simulated = on_simulated_gpu
        (result,) = analyse_results(trace, kernel)
        assert result.analysis is not None
        values = {metric_value.key: metric_value for metric_value in result.metric_values}
        assert (values["duration"].value is None) is on_simulated_gpu
        assert values["longest_cycles"].value
        assert result.threads_missing == 0
