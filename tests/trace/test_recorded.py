"""Traces recorded on an NVIDIA H200 (132 SMs, driver 580, CUDA 13.0): what is known of them is read from them."""

from __future__ import annotations

import lzma
import shutil
from pathlib import Path

import pytest

from tui_probe.probes.block_sched.analysis import analyse
from tui_probe.probes.block_sched.view import schedule_line
from tui_probe.records import warp_pace as warp_progress
from tui_probe.trace.follow import open_trace
from tui_probe.trace.model import Kernel, Trace
from tui_probe.trace.results import read_result
from tui_probe.trace.source_lines import SourceLines

RECORDED = Path(__file__).parents[1] / "data" / "h200"


def test_the_bundled_examples() -> None:
    trace = open_trace(RECORDED / "demo")
    assert [(device.name, device.sms) for device in trace.state.devices.values()] == [("NVIDIA H200", 132)]
    assert {kernel.name: (kernel.registers_pruned, kernel.registers_probed) for kernel in trace.kernels} == {
        "zero_fill": (8, 10),
        "coalesced_store": (8, 10),
        "strided_store": (10, 10),
        "saxpy": (10, 10),
        "matmul": (32, 32),
        "reduction": (15, 16),
        "softmax": (19, 19),
    }
    for kernel in trace.kernels:
        (path,) = kernel.results
        schedule = analyse(kernel.read_result_file(path))
        assert schedule.sm.max() < 132
        assert (schedule.warps_missing, schedule.blocks_missing, schedule.blocks_astray) == (0, 0, 0)


def test_compiled_kernels_in_a_graph_and_kernels_without_ptx() -> None:
    trace = open_trace(RECORDED / "torch_compile")
    kernels = {kernel.index: (kernel.status, kernel.launches, kernel.launches_probed) for kernel in trace.kernels}
    assert kernels[4] == kernels[5] == kernels[6] == ("probed", 1, 1)  # another one was captured
    assert {kernels[index][0] for index in (0, 1, 2, 3, 7, 8, 9)} == {"skipped"}
    assert trace.kernels[3].reason == "the PTX in the image is for sm_120, which a device of sm_90 cannot run"
    assert trace.kernels[2].registers_pruned == 80  # from the driver: its registers are known without PTX


@pytest.fixture(scope="module")
def zero_fill(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("h200") / "0.5.bin"
    path.write_bytes(lzma.decompress((RECORDED / "zero_fill.bin.xz").read_bytes()))
    return path


def test_a_zero_fill_of_32768_blocks(zero_fill: Path) -> None:
    """The hardware counted 37 611 to 37 722 cycles on the SM that was active longest."""
    schedule = analyse(read_result(zero_fill))
    assert schedule_line(schedule) == "32 768 blocks, cycles per slot: 6 943 running, 29 758 in gaps"
    assert len(schedule.sm) == 132
    assert schedule.span == pytest.approx(37_650, rel=0.01)


def test_attention_timed_and_its_lines_known() -> None:
    """A Triton kernel from its cubin, whose PTX has no .loc: lines come from its machine code."""
    trace = open_trace(RECORDED / "attention_blocks")
    (kernel,) = (kernel for kernel in trace.kernels if kernel.status == "probed")
    assert (kernel.registers_pruned, kernel.registers_probed) == (194, 195)
    assert kernel.slowdown == pytest.approx(0.995, abs=0.001)
    (result,) = kernel.result_rows
    launch = trace.results.launch(result)
    assert launch is not None, "saved while it was measured, before its own lines"
    assert (trace.launches[launch].number, trace.launches[launch].result) == (3, result)
    assert kernel.folder is not None
    lines = SourceLines.from_folder(kernel.folder)
    stores = [n for n, line in enumerate(pruned(kernel), 1) if "st.global" in line]
    assert {found[1] for n in stores if (found := lines.ptx_line(n))} == {40}, "tl.store in attention.py"


def test_the_pace_of_attention(tmp_path: Path) -> None:
    trace = unpacked("attention_progress", tmp_path)
    (kernel,) = (kernel for kernel in trace.kernels if kernel.status == "probed")
    (path,) = kernel.results
    progress = warp_progress.analyse(kernel.read_result_file(path), 1_980_000)
    assert progress.start.size == 1024
    assert {len(progress.arrivals(block, warp)[1]) for block in (0, 255) for warp in range(4)} == {32}, (
        "2 048 / 64 keys"
    )


def pruned(kernel: Kernel) -> list[str]:
    path = kernel.file("pruned.ptx")
    assert path is not None
    return path.read_text().splitlines()


def unpacked(name: str, folder: Path) -> Trace:
    """A copy of a trace whose results are packed."""
    shutil.copytree(RECORDED / name, folder / name)
    for packed in (folder / name / "result").glob("*.xz"):
        packed.with_suffix("").write_bytes(lzma.decompress(packed.read_bytes()))
        packed.unlink()
    return open_trace(folder / name)
