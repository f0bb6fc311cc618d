"""Figures from traces of tui-probe, next to those of ncu."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.importers.files import details, identity, real, write
from tests.probes.test_report import Writer
from tests.trace.make import result_bytes
from tui_probe.cli.main import main
from tui_probe.nsight.analysis.critical import data_type, operations_per_byte
from tui_probe.nsight.analysis.kernel_metrics import COUNT_METRICS
from tui_probe.nsight.importers.ncu import read_ncu
from tui_probe.nsight.pages.critical_page import CriticalRow
from tui_probe.nsight.pages.memory_pages import SectorRow, sector_rows
from tui_probe.nsight.pages.opening import NcuSources, ncu_page
from tui_probe.nsight.pages.trace_counters import metrics_of_traces
from tui_probe.pages.table_page import TablePage
from tui_probe.probes import gmem_bytes, inst_mix, tensorop_count
from tui_probe.probes.gmem_sectors import analysis as gmem_sectors
from tui_probe.trace.follow import open_trace
from tui_probe.trace.model import Trace

GRID, BLOCK = (32, 1, 1), (256, 1, 1)


def stores_trace(folder: Path, sectors: int = 4) -> Trace:
    """The two stores of the recorded ncu file as ``gmem_sectors`` counts them: each warp stores once."""
    writer = Writer(folder / f"stores{sectors}")
    writer.start()
    for index, (name, each) in enumerate({"_Z9coalescedPii": sectors, "_Z11uncoalescedPii": 8}.items()):
        writer.counting_kernel(index, name, "gmem_sectors", gmem_sectors.RECORD)
        records = np.zeros((32, 8, 1), gmem_sectors.RECORD)
        records["store_requests"], records["store_sectors"], records["threads"] = 1, each, 32
        slots = np.ascontiguousarray(records).view(np.uint8).reshape(32, 8, gmem_sectors.RECORD.itemsize)
        for _ in range(2):
            writer.save(index, writer.launch(index, GRID, BLOCK), result_bytes(GRID, BLOCK, [(32, slots)]))
    return open_trace(writer.directory)


def rows_of(tmp_path: Path, trace: Trace) -> list[SectorRow]:
    table = read_ncu([real(tmp_path, "ncu/vec_metrics.csv")])
    return sector_rows(table, metrics_of_traces([trace]), None)


def test_the_probe_counts_what_ncu_counts(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, stores_trace(tmp_path))
    assert [(row.metrics.tool, row.metrics.launches) for row in rows] == [
        ("ncu", 3), ("probes", 2), ("ncu", 3), ("probes", 2), ("ncu", 7),
    ]  # fmt: skip
    for row in rows[:4]:
        assert row.differences == []
        assert row.other_tool is not None
        assert all(getattr(row.metrics, name) == getattr(row.other_tool, name) for name in COUNT_METRICS)
    assert rows[4].differences is None


def test_differences_are_marked(tmp_path: Path) -> None:
    trace = stores_trace(tmp_path, sectors=5)
    assert [row.differences for row in rows_of(tmp_path, trace)[:4]] == [["store_sectors"], ["store_sectors"], [], []]
    table = read_ncu([real(tmp_path, "ncu/vec_metrics.csv")])
    text = "\n".join(ncu_page("sectors", NcuSources(table, [trace])).text(200))
    assert "store sectors differ from probes" in text
    assert "= probes" in text


def test_page_of_traces_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = stores_trace(tmp_path)
    options = ["--seq-len", "1024", "--head-dim", "8", "--dtype", "fp32", "--format", "json"]
    assert main(["import", "ncu", "--trace", str(trace.directory), "--page", "sectors", *options]) == 0
    page = json.loads(capsys.readouterr().out)
    assert page["expected_sectors"] == 1024
    assert [(row["tool"], row["store_sectors"], row["verdict"]) for row in page["sectors"]] == [
        ("probes", 1024, "equal"),
        ("probes", 2048, "within"),
    ]
    assert main(["import", "ncu", "--trace", str(trace.directory), "--page", "traffic"]) == 4
    assert "needs a file from ncu" in capsys.readouterr().err


@pytest.fixture
def product(tmp_path: Path) -> list[Trace]:
    """Three traces of a program: a matrix product in tensor cores, and a copy, counted by three probes."""
    traces = []
    for probe, record, gemm, copy in (
        ("tensorop_count", tensorop_count.RECORD, {"multiply_adds": 4096, "mma": 32}, {}),
        ("gmem_bytes", gmem_bytes.RECORD, {"loaded": 512, "stored": 512}, {"loaded": 2048, "stored": 2048}),
        ("inst_mix", inst_mix.RECORD, {"tensor": 1, "fp32": 2}, {"fp64": 9, "fp32": 1}),
    ):
        writer = Writer(tmp_path / probe)
        writer.start()
        for index, (name, fields) in enumerate({"gemm": gemm, "copy": copy}.items()):
            writer.counting_kernel(index, name, probe, record)
            writer.counts(index, record, **fields)
        traces.append(open_trace(writer.directory))
    return traces


def test_traces_of_several_probes_complete_each_other(product: list[Trace]) -> None:
    gemm, copy = metrics_of_traces(product)
    assert gemm.shape.kernel == "gemm"
    assert gemm.tensor_operations == 2 * 4096 * 6
    assert gemm.requested_bytes == 6 * 1024
    assert operations_per_byte(gemm) == 8
    assert gemm.uses_tensor_cores
    assert copy.tensor_operations == 0
    assert not copy.uses_tensor_cores
    inferred = data_type(copy)
    assert inferred is not None
    assert (inferred.name, inferred.evidence) == ("fp64", "90% of its arithmetic instructions")


def test_counted_operations_give_the_critical_kernel(product: list[Trace]) -> None:
    page = ncu_page("critical", NcuSources(None, product))
    assert [(row.metrics.shape.kernel, row.is_critical) for row in page.rows] == [
        ("gemm", True),
        ("copy", False),
    ]
    text = "\n".join(page.text(100))
    assert "kernels with tensor core work: 1 of 2" in text
    assert "tensor operations per loaded or stored byte: 8.0" in text


def page_with_ncu(folder: Path, product: list[Trace], **gemm: str) -> TablePage[CriticalRow]:
    """The page of those traces and of a file of ncu with the same kernels; ``gemm`` are values of the product."""
    grid, block = (f"({', '.join(map(str, side))})" for side in metrics_of_traces(product)[0].shape[1:])
    assert grid != block
    names = {
        "activity": "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
        "time": "gpu__time_duration.sum",
        "bf16": "sm__ops_path_tensor_src_bf16_dst_fp32.sum",
    }
    of = {"gemm": {"activity": "50.00", "time": "3,000"} | gemm, "copy": {"activity": "0.50", "time": "9,000"}}
    launches = [
        (
            identity(number, kernel, grid=grid, block=block),
            {("S", names[key], "ns" if key == "time" else ""): text for key, text in values.items()},
        )
        for number, (kernel, values) in enumerate(of.items())
    ]
    return ncu_page("critical", NcuSources(read_ncu([write(folder, details(launches))]), product))


def test_the_critical_kernel_of_ncu_and_of_probes_side_by_side(tmp_path: Path, product: list[Trace]) -> None:
    for trace in product:
        gemm = trace.kernels[0]
        assert gemm.folder is not None
        (gemm.folder / "pruned.ptx").write_text("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1};\n")
    page = page_with_ncu(tmp_path, product, bf16="4,096")
    seen = [
        (row.program, row.metrics.shape.kernel, row.is_critical, row.type_name, row.differences) for row in page.rows
    ]
    assert seen == [
        ("profile.csv", "gemm", True, "bf16", []),
        ("probes", "gemm", True, "bf16", []),
        ("profile.csv", "copy", False, None, []),
        ("probes", "copy", False, "fp64", []),
    ]
    text = "\n".join(page.text(120))
    assert "profile and the probes find the same critical kernel" in text
    assert text.count("= probes") == text.count("= ncu") == 2
    assert "1 of 1 matrix instructions in its code" in text


def test_disagreement_of_ncu_and_probes_is_marked(tmp_path: Path, product: list[Trace]) -> None:
    page = page_with_ncu(tmp_path, product, activity="0.20", time="30,000")
    assert page.rows[0].differences == ["tensor cores"]
    text = "\n".join(page.text(120))
    assert "≠ probes: tensor cores" in text
    assert "profile and the probes find the same critical kernel" in text
    page = page_with_ncu(tmp_path, product, activity="0.10")
    assert "profile and the probes find different critical kernels" in "\n".join(page.text(120))


def test_traces_without_counts_say_what_to_run(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "bare")
    writer.start()
    table = read_ncu([real(tmp_path, "ncu/vec_metrics.csv")])
    for page in ("sectors", "critical"):
        notes = ncu_page(page, NcuSources(table, [open_trace(writer.directory)])).texts.notes  # type: ignore[arg-type]
        assert any("-p gmem_sectors" in note for note in notes)


def test_launches_that_were_cut_off_do_not_count(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "cut")
    writer.start()
    writer.counting_kernel(0, "saxpy", "gmem_sectors", gmem_sectors.RECORD)
    writer.counts(0, gmem_sectors.RECORD, lost=3, store_requests=1, store_sectors=4)
    writer.counts(0, gmem_sectors.RECORD, store_requests=1, store_sectors=4)
    (metrics,) = metrics_of_traces([open_trace(writer.directory)])
    assert (metrics.launches, metrics.store_requests) == (1, 6)
