"""Records from the probed kernel to the result file, through engine, hook and the conversion when a file is saved."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.e2e.conftest import EXAMPLE, SAXPY
from tests.engine.device_maps import DeviceMaps
from tests.engine.kernels import probed
from tests.engine.test_recording import KERNEL, RECORD
from tests.simgpu.device import Device
from tui_probe.draw import units
from tui_probe.pages.run_report import run_report
from tui_probe.probe_files.loading import load_probe
from tui_probe.ptx.parser import parse
from tui_probe.simgpu.executor import compile_kernel
from tui_probe.trace.follow import open_trace

if TYPE_CHECKING:
    from .conftest import Tool

PROGRAM = Path(__file__).parent / "programs" / "steps.py"

ALL_KINDS = '''
[map.threads]
level = "thread"
cap = 4
size = 24
regs = { value = "u64", step = "u32", lane = "u32", count = "u32" }
[map.sums]
level = "warp"
regs = { lanes = "u32", steps = "u64" }
[map.warps]
level = "warp"
cap = 5
regs = { step = "u32", lane = "u32" }
[map.last]
level = "thread"
size = 12
regs = { step = "u32", lane = "u32" }
[map.small]
level = "thread"
cap = 3
regs = { step = "u32" }
[probe.frame]
position = "kernel"
before = ".reg .b32 %n; mov.u32 %n, 0;"
after = "ADD [ sums ] {1, %n};"
[probe.p]
position = "prmt"
before = """
.reg .b64 %wide;
cvt.u64.u32 %wide, IN1;
add.u32 %n, %n, 1;
SAVE [ threads ] {%wide, IN2, %laneid, 1};
SAVE [ warps ] {IN2, %laneid};
SAVE [ last ] {IN2, %laneid};
SAVE [ small ] {IN2};
"""
'''

ONE_MAP = '''
[map.whole]
level = "{level}"
{kind}
regs = {{ value = "u64", step = "u32", lane = "u32" }}
[probe.p]
position = "prmt"
before = """
.reg .b64 %wide;
cvt.u64.u32 %wide, IN1;
SAVE [ whole ] {{%wide, IN2, %laneid}};
"""
'''


def run(tool: Tool, text: str, grid: int, block: int, *launches: str, options: tuple[str, ...] = ()) -> Any:
    """Run the program with a probe of that text; its kernel, and its probe."""
    (tool.folder / "steps.ptx").write_text(KERNEL)
    probe = tool.folder / "own.toml"
    probe.write_text(text)
    command = [sys.executable, str(PROGRAM), "steps.ptx", str(grid), str(block), *launches]
    result, trace = tool.run(command, "-p", str(probe), "--launches", "all", *options)
    assert (result.returncode, result.stdout) == (0, "done\n"), result.stderr
    (kernel,) = open_trace(trace).kernels
    assert kernel.status == "probed", kernel.reason
    assert len(kernel.results) == len(launches)
    return kernel, load_probe(str(probe))


def words(values: list[int]) -> str:
    return ",".join(map(str, values))


@pytest.mark.parametrize(("grid", "block"), [(3, 77), (2, 64), (5, 7)])
def test_a_file_holds_byte_for_byte_what_the_kernel_saved(tool: Tool, grid: int, block: int) -> None:
    """Whole and partial warps, lanes that come and go, slots that are full, and slots that no one wrote."""
    random = np.random.default_rng(grid)
    steps = random.integers(0, 9, grid * block)
    begin = random.integers(0, 9, grid * block)
    steps[:5] = begin[:5] = 0
    if block > 32:
        steps[32:64] = 0
    kernel, probe = run(tool, ALL_KINDS, grid, block, f"{words(list(steps))}/{words(list(begin))}")
    maps = DeviceMaps(probe, (grid,), (block,))
    arrays = [np.zeros(grid * block, np.uint32), steps.astype(np.uint32), begin.astype(np.uint32)]
    Device().launch(
        compile_kernel(parse(probed(KERNEL, probe=probe)), "kernel"),
        *arrays,
        *maps.arguments,
        grid=(grid,),
        block=(block,),
    )
    maps.save(tool.folder / "expected.bin")
    assert kernel.results[0].read_bytes() == (tool.folder / "expected.bin").read_bytes()
    result = kernel.read_result_file(kernel.results[0])
    written = result.written_mask(5)
    assert written is not None
    np.testing.assert_array_equal(written.ravel(), steps > begin)
    assert result.attempts(2) is None
    attempts = result.attempts(0)
    assert attempts is not None
    np.testing.assert_array_equal(attempts.ravel(), np.maximum(steps - begin, 0))


@pytest.mark.parametrize("level", ["thread", "warp"])
def test_a_dynamic_map_grows_from_launch_to_launch(tool: Tool, level: str) -> None:
    """The first estimate is 64 records; each overflow makes room for the next launch, and no kernel runs twice.

    A file has room for as many as the fullest slot kept: 100 of 128, 300 of 512.
    """
    text = ONE_MAP.format(level=level, kind='type = "dynamic"')
    kernel, _ = run(tool, text, 2, 40, "100/0", "100/0", "300/0", "300,7/0")
    recorded = []
    for path in kernel.results:
        result = kernel.read_result_file(path)
        recorded.append((result.capacity(0), result.totals(0)))
        records, written = result.records(0, RECORD), result.written_mask(0)
        assert written is not None
        np.testing.assert_array_equal(
            records["step"][written], np.broadcast_to(np.arange(records.shape[2]), records.shape)[written]
        )
    slots = 80 if level == "thread" else 4
    last = 40 * 300 + 40 * 7 if level == "thread" else 4 * 300
    assert recorded == [
        (64, (slots * 64, slots * 100)),
        (100, (slots * 100, slots * 100)),
        (128, (slots * 128, slots * 300)),
        (300, (last, last)),
    ]
    rows = [line.split() for line in run_report(kernel.trace).splitlines()]
    least = units.count(slots * 64).split()
    assert ["whole", "kept", *least] in [row[: 2 + len(least)] for row in rows]


def test_a_measured_launch_keeps_all_of_a_dynamic_map(tool: Tool) -> None:
    """Launches before the timed ones measure the required memory, and are repeated with it."""
    text = ONE_MAP.format(level="thread", kind='type = "dynamic"')
    kernel, _ = run(tool, text, 2, 40, "300/0", options=("--benchmark", "--save-results"))
    (path,) = kernel.results
    result = kernel.read_result_file(path)
    assert (result.capacity(0), result.totals(0)) == (300, (80 * 300, 80 * 300))


def test_a_dynamic_map_stays_within_the_memory_for_probes(tool: Tool) -> None:
    """Half of the limit for one launch, so that another can run while its records are saved."""
    text = ONE_MAP.format(level="thread", kind='type = "dynamic"')
    kernel, _ = run(tool, text, 2, 64, "100/0", "100/0", options=("--max-probe-memory", "64K"))
    for path in kernel.results:
        result = kernel.read_result_file(path)
        assert result.capacity(0) == 8  # × 16 bytes × 128 threads, and the counts
        assert result.totals(0) == (128 * 8, 128 * 100)


def test_slots_of_many_megabytes(tool: Tool) -> None:
    """A warp's rows are larger than what is copied at the same time, and all of them too large to wait in host
    memory.
    """
    cap, grid, block = 9000, 8, 40
    kernel, _ = run(
        tool, ONE_MAP.format(level="thread", kind=f"cap = {cap}"), grid, block, "3,0,1,9010,70/0,0,0,8990,2"
    )
    result = kernel.read_result_file(kernel.results[0])
    steps = np.resize([3, 0, 1, 9010, 70], grid * block).reshape(grid, block)
    begin = np.resize([0, 0, 0, 8990, 2], grid * block).reshape(grid, block)
    np.testing.assert_array_equal(result.attempts(0), steps - begin)
    written, records = result.written_mask(0), result.records(0, RECORD)
    assert written is not None
    np.testing.assert_array_equal(written.sum(axis=2), steps - begin)
    expected = begin[:, :, np.newaxis] + np.arange(cap)
    np.testing.assert_array_equal(records["step"], np.where(written, expected, 0))


def test_a_probe_that_meets_nothing_says_so(tool: Tool) -> None:
    """In the kernel's log, its reason, and the report; prepared anew and from the cache."""
    for _ in range(2):
        run, trace = tool.run(EXAMPLE, "-p", "tensorop_count", "-k", "saxpy:matmul")
        assert run.returncode == 0
        reason = "tensorop_count matched no instruction of this kernel, which has no matrix instruction"
        kernels = [kernel for kernel in open_trace(trace).kernels if kernel.status == "probed"]
        assert [kernel.reason for kernel in kernels] == [reason, reason]
        log = kernels[0].file("process.log")
        assert log is not None
        assert f"[note] {reason}\n" in log.read_text()
        report = run_report(open_trace(trace))
        text = " ".join(report.split())
        assert f"Kernels in which the probe matched nothing {reason}: 2 kernels, 2 launches #3 saxpy" in text


def test_a_probe_of_ones_own_that_meets_nothing_has_no_numbers(tool: Tool) -> None:
    """Initial values of registers are not measurements: no page shows a 0 of them."""
    assert tool("new-probe", "mine", "--at", "nowhere.cu:10-13").returncode == 0
    _, trace = tool.run(SAXPY, "-p", "mine.py")
    reason = (
        "mine matched no instruction of this kernel, which has no nowhere.cu:10-13: its source lines are in saxpy.cu"
    )
    assert " ".join(run_report(open_trace(trace)).split()).count(reason) == 1
    page = tool("show", "results", f"{trace}:saxpy").stdout
    assert reason in page
    assert "cycles" not in page
    data = json.loads(tool("show", "results", f"{trace}:saxpy", "--format", "json").stdout)["data"]
    assert (data["values"], data["launches"][0]["problem"]) == ([], reason)
    summary = " ".join(tool("show", "summary", f"{trace}:saxpy").stdout.split())
    assert "not measured the kernel has no nowhere.cu:10-13: its source lines are in saxpy.cu" in summary
