"""The roofline: numbers on paper, several traces of one program, and what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.sizes import golden_widths
from tests.trace.make import TraceWriter, result_bytes
from tui_probe.cli.main import main
from tui_probe.cli.roofline import lines
from tui_probe.draw.spans import plain, to_ascii
from tui_probe.pages.roofline_page import roofline_chart
from tui_probe.probes import gmem_bytes, tensorop_count
from tui_probe.settings import Settings
from tui_probe.trace.event_types import Device
from tui_probe.trace.follow import open_trace
from tui_probe.verdicts.limiter_text import KernelLimiter, limiter_texts
from tui_probe.verdicts.roofline import Roof, RooflinePoint, roofline_points
from tui_probe.verdicts.utilization import Demand, limiter_verdict, peak_rates

ROOF = Roof(peak=1000e12, bandwidth=4e12)


def write_trace(directory: Path, probe: str, *, name: str = "matmul", time_ms: float | None = None) -> Path:
    """One launch of 8 blocks of 128 threads: 4 MB read and 2 MB written, 3 G operations."""
    dtype = {"gmem_bytes": gmem_bytes.RECORD, "tensorop_count": tensorop_count.RECORD}[probe]
    records = np.zeros(8 * 4, dtype)
    records["threads"] = 32
    if probe == "gmem_bytes":
        records["loaded"], records["stored"] = 4_000_000 // 32, 2_000_000 // 32
    else:
        records["multiply_adds"] = 1_500_000_000 // 32
    writer = TraceWriter(directory)
    writer.start()
    folder = writer.kernel(0, name)
    (folder / "kernel.info").write_text(f"{name}\n2\n1\n1,{dtype.itemsize}\ncallback {probe}\n")
    slots = records.view(np.uint8).reshape(8, 4, dtype.itemsize)
    launch = writer.launch(0, (8, 1, 1), (128, 1, 1))
    writer.save(0, launch, result_bytes((8, 1, 1), (128, 1, 1), [(32, slots)]))
    if time_ms is not None:
        writer.benchmark(0, launch, original=time_ms, probed=0.0075)
    writer.exit()
    return directory


@pytest.fixture
def traces(tmp_path: Path) -> list[Path]:
    bytes_run = write_trace(tmp_path / "bytes", "gmem_bytes", time_ms=0.006)
    return [bytes_run, write_trace(tmp_path / "operations", "tensorop_count")]


def test_two_traces_make_one_point(traces: list[Path]) -> None:
    (point,) = roofline_points(map(open_trace, traces), 4e12)
    assert (point.size, point.operations, point.seconds) == (6_000_000, 3_000_000_000, pytest.approx(6e-6))
    assert point.intensity == 500
    assert point.operations_per_second == pytest.approx(5e14)
    assert point.problem is None
    assert (ROOF.ridge, point.share_of(ROOF)) == (250, pytest.approx(0.5))


def test_below_the_ridge_memory_is_the_roof() -> None:
    assert RooflinePoint("k", "k", 1e9, 1e10, 1e-3, None).share_of(ROOF) == pytest.approx(1e13 / 4e13)


def test_certain_limiter_is_a_verdict_despite_missing_data(traces: list[Path]) -> None:
    """mma.sync reaches 63 % of the tensor cores of an H100: 623 of 989 T operations per second."""
    (point,) = roofline_points(map(open_trace, traces), 4e12)
    assert point.limit == "tensor"
    assert point.words[:2] == ("tensor cores: 74% utilization", "utilization: tensor 74%, memory ≤ 25%")


def test_eight_blocks_keep_no_unit_busy_whatever_was_not_counted(traces: list[Path]) -> None:
    (point,) = roofline_points([open_trace(traces[0])], 4e12)
    lacking = (
        "sectors, requests to shared memory, tensor operations, fp32, fp64 and fp16 operations, issued instructions"
    )
    texts = ("too small: 8 blocks for 132 SMs", "utilization: memory ≤ 25%", f"not measured: {lacking}")
    assert (point.limit, point.words[:3]) == ("too small", texts)


@pytest.mark.parametrize(
    ("ways", "words"),
    [
        (("machine code",), "instructions counted in SASS"),
        (("PTX",), "instructions counted in PTX; ptxas removes or merges some of them"),
        ((), ""),
    ],
)
def test_source_of_counted_instructions_is_reported(ways: tuple[str, ...], words: str) -> None:
    machine = peak_rates(Device(0, 132, 1_980_000, "9.0", "NVIDIA H200"))
    demand = Demand(seconds=1e-3, blocks=1000, instructions=1.1 * 4 * 132 * 1.98e9 * 1e-3)
    of = KernelLimiter(limiter_verdict(demand, machine), demand, machine, "", ways)
    assert of.source == words
    assert (words in limiter_texts(of)) == bool(words)
    assert of.record()["counted_in"] == list(ways)
    assert of.words == "issue slots: fully utilized; the counts amount to 110% of its peak"


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ({"sectors": 1e6}, "– no times on a simulated GPU"),
        (
            {"sectors": 1e6, "instructions": 1e6},
            "– no times on a simulated GPU; from incomplete counts, memory (L2 or DRAM) would be the busiest unit of an"
            " A100",
        ),
        (
            {"sectors": 1e6, "instructions": 1e6, "shared": 1e9, "fp32": 0, "fp64": 0, "fp16": 0, "tensor": 0},
            "– no times on a simulated GPU; from counts, memory (L1) would be the busiest unit of an A100",
        ),
    ],
)
def test_slowest_counted_unit_is_reported(counts: dict[str, float], words: str) -> None:
    machine = peak_rates(Device(0, 8, 1_000_000, "8.0", "Simulated GPU"), simulated=True)
    demand = Demand(blocks=1000, **counts)
    of = KernelLimiter(limiter_verdict(demand, machine), demand, machine, "")
    assert of.words == words
    assert ("not measured: requests to shared memory" in "\n".join(limiter_texts(of))) == ("shared" not in counts)
    assert ("L1" in "\n".join(limiter_texts(of))) == ("shared" in counts)


def test_missing_measurement_is_reported(traces: list[Path]) -> None:
    (point,) = roofline_points([open_trace(traces[1])])
    assert point.problem == "not measured: bytes (-p gmem_bytes), time (--benchmark)"
    assert (point.intensity, point.share) == (None, None)


def test_peaks_are_those_of_the_data_sheets() -> None:
    a100 = peak_rates(Device(0, 108, 1_410_000, "8.0", "A100"))
    h100 = peak_rates(Device(0, 132, 1_830_000, "9.0", "H100"))
    assert (a100.tensor, h100.tensor) == (pytest.approx(312e12, rel=0.01), pytest.approx(989e12, rel=0.01))
    assert a100.fp32 is not None
    assert h100.fp64 is not None
    assert (64 * a100.fp32, 64 * h100.fp64) == (pytest.approx(19.5e12, rel=0.01), pytest.approx(31e12, rel=0.1))
    assert peak_rates(Device(0, 100, 1_000_000, "99.0", "?")).tensor is None


def test_the_chart_puts_the_point_below_its_roof() -> None:
    lines = [plain(line) for line in roofline_chart([RooflinePoint("k", "k", 6e6, 3e9, 6e-6, None)], ROOF, 80, 20)]
    point_row = next(row for row, line in enumerate(lines) if "a" in line[9:] and "byte" not in line)
    column = lines[point_row].index("a", 9)
    assert any(line[column : column + 1] == "─" for line in lines[:point_row])
    assert roofline_chart([], ROOF, 80, 20) == []


def test_the_command(traces: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measured = tmp_path / "bandwidth.json"
    measured.write_text('{"bandwidth": [{"key": "memory_read", "bytes_per_second": 4e12}]}')
    command = ["roofline", *map(str, traces), "--bandwidth", str(measured), "--peak", "1000T"]
    assert main([*command, "--format", "json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["ridge"] == 250
    assert record["roofline"][0]["share_of_roof"] == pytest.approx(0.5)
    assert main([*command, "--ascii"]) == 0
    text = capsys.readouterr().out
    assert text.isascii()
    assert "utilization" in text or "not measured" in text


HEADINGS = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device",'
    '"CC","Section Name","Metric Name","Metric Unit","Metric Value"\n'
)


@pytest.mark.parametrize(
    ("counted", "bound", "busy"),
    [({"dram__bytes.sum": 20_000_000}, "memory (DRAM)", 20 / 24), ({}, "tensor", 0.7413621)],
)
def test_counters_of_ncu_tell_the_level_of_memory(
    traces: list[Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    counted: dict[str, int],
    bound: str,
    busy: float,
) -> None:
    """In two launches of the kernel; what ncu counted of another is not of this one."""
    table = tmp_path / "ncu.csv"
    where = '"1","7","(128, 1, 1)","(8, 1, 1)","0","9.0",""'
    rows = [
        f'"{number}","1","a","h","{name}(int)",{where},"{metric}","byte","{value}"'
        for number, name in enumerate(("matmul", "matmul", "other"))
        for metric, value in ({"gpu__time_duration.sum": 1} | counted).items()
    ]
    table.write_text(HEADINGS + "\n".join(rows) + "\n")
    command = ["roofline", *map(str, traces), "--bandwidth", "4T", "--peak", "1000T", "--ncu", str(table)]
    assert main([*command, "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["roofline"]
    assert (found["bound"], found["busy"]) == (bound, pytest.approx(busy, rel=0.001))


def test_the_settings_name_a_measurement(
    traces: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measured = tmp_path / "bw.json"
    measured.write_text('{"bandwidth": [{"key": "memory_read", "bytes_per_second": 4e12}]}')
    monkeypatch.setattr("tui_probe.cli.roofline.user_settings", lambda: Settings(bandwidth=measured))
    command = ["roofline", *map(str, traces), "--peak", "1000T", "--format", "json"]
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out)["ridge"] == 250
    assert main([*command, "--bandwidth", "2T"]) == 0
    assert json.loads(capsys.readouterr().out)["ridge"] == 500


def test_page_explains_itself(traces: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    command = ["roofline", *map(str, traces), "--bandwidth", "4T", "--peak", "1000T"]
    assert main([*command]) == 0
    plain_text = capsys.readouterr().out
    assert main([*command, "--explain"]) == 0
    explained = capsys.readouterr().out
    assert explained.startswith(plain_text)
    assert "The roof is the limit of the GPU" in explained


def point(name: str, demangled: str, size: float, tensor: float, seconds: float) -> RooflinePoint:
    """A kernel whose every unit was counted, on an H200."""
    demand = Demand(seconds, 2048, size, size / 32, 0, size / 512, size / 128, size / 2048, 0, 0, tensor, 1)
    machine = peak_rates(Device(0, 132, 1_980_000, "9.0", "NVIDIA H200"))
    limiter = KernelLimiter(limiter_verdict(demand, machine), demand, machine, "")
    return RooflinePoint(
        name, demangled, size, tensor, seconds, None, None, limiter.verdict, limiter_texts(limiter), limiter.limit
    )


def test_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [
        RooflinePoint("attn", "flash_attention", 142.6e6, 17.2e9, 49.5e-6, None),
        point("gemm", "void gemm<128, 64>(float*, int)", 403e6, 137e9, 213e-6),
        point("copy", "copy_kernel(float*, int)", 1.07e9, 0, 252e-6),
        RooflinePoint("norm", "layer_norm", 67e6, None, None, "not measured: operations (-p tensorop_count)"),
    ]

    def shown(width: int, ascii_only: bool) -> str:
        monkeypatch.setenv("COLUMNS", str(width))
        text = "\n".join(line.rstrip() for line in lines(points, Roof(989e12, 4.6e12), "table")) + "\n"
        return to_ascii(text) if ascii_only else text

    golden_widths("roofline.txt", shown)


def test_a_file_without_bandwidth_is_named(
    traces: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.json").write_text("[]")
    assert main(["roofline", str(traces[0]), "--bandwidth", str(tmp_path / "x.json")]) == 4
    assert "x.json" in capsys.readouterr().err
