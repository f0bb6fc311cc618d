"""Traces recorded on an NVIDIA H200 (132 SMs, driver 580, CUDA 13.0): what is known of them is read from them."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from tui_probe.analysis.block_sched import analyse
from tui_probe.trace.model import Trace
from tui_probe.trace.results import read_result

RECORDED = Path(__file__).parents[1] / "data" / "h200"


def test_the_bundled_examples() -> None:
    trace = Trace.open(RECORDED / "demo")
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
        schedule = analyse(kernel.read(path))
        assert schedule.sm.max() < 132
        assert (schedule.warps_missing, schedule.blocks_missing, schedule.blocks_astray) == (0, 0, 0)


def test_compiled_kernels_in_a_graph_and_kernels_without_ptx() -> None:
    trace = Trace.open(RECORDED / "torch_compile")
    kernels = {kernel.index: (kernel.status, kernel.launches, kernel.launches_probed) for kernel in trace.kernels}
    assert kernels[4] == kernels[5] == kernels[6] == ("probed", 2, 1)  # the second one was captured
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
    assert schedule.line() == "No.block:32768 Running:6943 Scheduling:29758(cycle)"
    assert len(schedule.sm) == 132
    assert schedule.span == pytest.approx(37_650, rel=0.01)
