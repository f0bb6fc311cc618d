"""Counts in reports and as data, against texts that were looked at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.formats import check_formats
from tests.golden import golden
from tests.trace.make import TraceWriter, result_bytes
from tui_probe.pages.page_registry import report_lines
from tui_probe.pages.run_report import run_report
from tui_probe.probekit.page_kinds import Format
from tui_probe.probes import gmem_bytes, tensorop_count
from tui_probe.probes.gmem_sectors import analysis as gmem_sectors
from tui_probe.trace.follow import open_trace
from tui_probe.trace.model import Trace

if TYPE_CHECKING:
    from tui_probe.trace.launch_shape import Dim3

BLOCK: Dim3 = (40, 1, 1)


class Writer(TraceWriter):
    """Writes kernels of counting probes, and results in which every warp has the same record."""

    def counting_kernel(self, index: int, name: str, probe: str, record: np.dtype[Any]) -> None:
        folder = self.kernel(index, name)
        (folder / "kernel.info").write_text(f"{name}\n2\n1\n1,{record.itemsize}\ncallback {probe}\n")

    def counts(self, index: int, record: np.dtype[Any], blocks: int = 3, lost: int = 0, **fields: int) -> None:
        """Fields are those of each warp; of the last block's second warp ``lost`` of its 8 threads never left."""
        records = np.zeros((blocks, 2, 1), record)
        for name, value in fields.items():
            records[name] = value
        records["threads"] = np.array([32, 8])[np.newaxis, :, np.newaxis]
        records["threads"][-1, -1] -= lost
        slots = np.ascontiguousarray(records).view(np.uint8).reshape(blocks, 2, record.itemsize)
        launch = self.launch(index, (blocks, 1, 1), BLOCK)
        self.save(index, launch, result_bytes((blocks, 1, 1), BLOCK, [(32, slots)]))


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trace:
    monkeypatch.chdir(tmp_path)
    writer = Writer(Path("example"))
    writer.start()
    moved, sectors, products = gmem_bytes.RECORD, gmem_sectors.RECORD, tensorop_count.RECORD
    writer.counting_kernel(0, "saxpy", "gmem_bytes", moved)
    writer.counts(0, moved, loaded=256, stored=128)
    writer.counts(0, moved, blocks=1, lost=3, loaded=2**40 + 1, copied=512, bulk_loaded=4096, stored=16, bulk_stored=64)
    writer.counts(0, moved, loaded=64, tensor_loads=1, tensor_stores=2)
    writer.counting_kernel(1, "_Z6matmulILi16EEvPKfS1_Pfi", "gmem_sectors.py", sectors)
    writer.counts(1, sectors, load_requests=8, load_sectors=20, store_requests=1, store_sectors=4)
    writer.counts(1, sectors, store_requests=2, store_sectors=64, matrix_accesses=96)
    writer.counting_kernel(2, "gemm", "tensorop_count", products)
    writer.counts(2, products, multiply_adds=2048 * 10, mma=320)
    writer.counts(2, products, blocks=2, multiply_adds=64 * 64 * 16 // 4, wgmma=32, wmma=64)
    writer.counts(2, products, mma=33)
    writer.save(2, writer.launch(2, (1, 1, 1), BLOCK), b"not a result")
    return open_trace("example")


def results_text(trace: Trace, form: Format, width: int) -> str:
    return "".join(f"{line}\n" for line in report_lines(trace, "results", form, width=width))


@pytest.mark.parametrize("form", ["table", "json"])
def test_the_page_of_results(trace: Trace, form: Format) -> None:
    golden(f"results.{'txt' if form == 'table' else form}", results_text(trace, form, 100))


def test_results_have_the_same_cells_in_all_formats(trace: Trace) -> None:
    check_formats(lambda form: results_text(trace, form, 400), "results", has_table=False)


def test_counts_in_the_report_of_a_run(trace: Trace) -> None:
    text = run_report(trace, width=90, ascii_only=True)
    golden("run-90.txt", text, width=90)


def test_unmeasured_value_is_null(trace: Trace) -> None:
    page = json.loads("\n".join(report_lines(trace, "results", "json")))
    values = {(row["kernel"], row["launch"], row["figure"]): row["value"] for row in page["results"]}
    assert values[0, 2, "read"] is None
    assert values[0, 2, "loaded"] == 6 * 64
    assert values[1, 4, "sectors_per_load"] is None
    assert values[1, 4, "sectors_per_store"] == 32
    assert values[2, 8, None] is None


def test_a_trace_without_counts_says_how_to_get_them(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "none")
    writer.start()
    assert list(report_lines(open_trace(tmp_path / "none"), "results"))[-1].startswith(
        "No kernel has results: run a program with a probe"
    )
