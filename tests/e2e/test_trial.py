"""Tasks of a first hour with the tool, each answered by one command: what is there, in its words.

The programs run here, so no golden knows their traces; the answers are planted: a strided store, a kernel that is made
slower, a loop whose lines take a known time.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.e2e.conftest import Tool
from tests.recorded import H200, unpacked
from tests.trace.make import TraceWriter, result_bytes
from tui_probe.probes.what_limits import RECORD

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLE = (sys.executable, str(Path(__file__).parents[2] / "tui_probe" / "simgpu" / "examples" / "demo.py"))


def lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


@pytest.fixture
def tool(tmp_path: Path, natives: Path) -> Tool:
    return Tool(tmp_path, natives)


def trace_of(tool: Tool, tmp_path: Path, name: str, *words: str, size: int = 4096) -> str:
    done = tool("run", "--sim", "--tracedir", str(tmp_path / name), *words, "--", *EXAMPLE, "--size", str(size))
    assert done.returncode == 0, done.stderr
    return str(next((tmp_path / name).iterdir()))


def test_find_the_worst_line(tool: Tool, tmp_path: Path) -> None:
    """4096 threads store 4 bytes each, 8 apart: 1024 sectors where ideal 512."""
    trace = trace_of(tool, tmp_path, "lines", "-p", "gmem_sectors_by_line")
    shown = lines(tool("show", "lines", trace, "--width", "120").stdout)
    first = shown[next(i for i, line in enumerate(shown) if line.startswith("─")) + 1]
    assert first.startswith("2 strided_store PTX:32 excessive sectors 512 ")
    assert first.endswith("strided_store.cu:4 st.global.u32")


def test_limiter_on_simulated_gpu(tool: Tool, tmp_path: Path) -> None:
    trace = trace_of(tool, tmp_path, "limits", "-p", "what_limits")
    shown = lines(tool("show", "summary", f"{trace}:saxpy", "--width", "160").stdout)
    asked = "limited by – no times on a simulated GPU; from counts, {} would be the busiest unit of an A100"
    assert asked.format("memory (L2 or DRAM)") in shown
    product = lines(tool("show", "summary", f"{trace}:matmul", "--width", "160").stdout)
    assert asked.format("memory (L1)") in product, "two words of shared memory per multiply-add"


def kernels() -> Iterator[tuple[str, dict[str, int], float, int]]:
    """Name, sums over the launch, milliseconds and blocks; on an H200, whose peaks are known."""
    cycles = 132 * 1.98e9 * 1e-3
    yield "copy", {"loaded": 2_160_000_000, "stored": 2_160_000_000, "load_sectors": 67_500_000,
                   "store_sectors": 67_500_000}, 1.0, 65536  # fmt: skip
    yield "strided", {"loaded": 270_000_000, "stored": 270_000_000, "load_sectors": 67_500_000,
                      "store_sectors": 67_500_000}, 1.0, 65536  # fmt: skip
    yield "product", {"tensor_half": int(0.8 * 0.63 * 4096 * cycles / 2), "loaded": 1_000_000}, 1.0, 1024
    yield "doubles", {"fp64_instructions": int(0.9 * 2 * cycles), "instructions": int(0.9 * 2 * cycles)}, 1.0, 4096
    yield "chain", {"loaded": 8000, "load_sectors": 2000, "instructions": 20000}, 1.0, 132
    yield "single", {"loaded": 8000, "load_sectors": 2000, "instructions": 20000}, 1.0, 1
    yield "empty", {"stored": 128, "store_sectors": 4, "instructions": 8}, 0.002, 1


def test_limited_by_what(tool: Tool, tmp_path: Path) -> None:
    """Seven kernels of an H200, each with another limiter."""
    writer = TraceWriter(tmp_path / "kinds")
    writer.start(device="NVIDIA H200", command="./kinds")
    for index, (name, sums, milliseconds, blocks) in enumerate(kernels()):
        folder = writer.kernel(index, name)
        (folder / "kernel.info").write_text(f"{name}\n2\n1\n1,{RECORD.itemsize}\ncallback what_limits\n")
        record = np.zeros(1, RECORD)
        record["threads"] = 32
        for field, value in sums.items():
            record[field] = value
        launch = writer.launch(index, (blocks, 1, 1), (32, 1, 1))
        slots = np.zeros((blocks, 1, RECORD.itemsize), np.uint8)
        slots[0, 0] = record.view(np.uint8)
        writer.save(index, launch, result_bytes((blocks, 1, 1), (32, 1, 1), [(32, slots)]))
        writer.benchmark(index, launch, original=milliseconds, probed=2 * milliseconds)
    writer.exit()
    shown = lines(tool("roofline", str(writer.directory), "--format", "table").stdout)
    verdicts = [line for line in shown if line[1:2] == " " and ": " in line and "axis" not in line]
    verdict_of = {line.partition(": ")[0].split()[-1]: line.partition(": ")[2] for line in verdicts}
    assert verdict_of == {
        "copy": "memory: 90% utilization",
        "strided": "memory: 90% utilization",
        "product": "tensor cores: 80% utilization",
        "doubles": "fp64: 90% utilization",
        "chain": "latency bound: no unit reaches 60% utilization",
        "single": "too small: 1 block for 132 SMs",
        "empty": "launch bound: 2.00 µs is close to launch overhead",
    }


def test_limited_by_what_in_a_recorded_trace(tool: Tool, tmp_path: Path) -> None:
    """Its 16 384 elements take a few µs, no matter what is done with them."""
    trace = unpacked(H200 / "demo_bytes", tmp_path)
    shown = lines(tool("show", "summary", f"{trace}:zero_fill", "--width", "120").stdout)
    assert "limited by launch bound: 3.52 µs is close to launch overhead" in shown


def test_did_it_help(tool: Tool, tmp_path: Path) -> None:
    """Half of the elements: half of the stores, as many of them wasted; simulated cycles give no verdict."""
    before = trace_of(tool, tmp_path, "before", "-p", "gmem_sectors", size=16384)
    after = trace_of(tool, tmp_path, "after", "-p", "gmem_sectors", size=8192)
    argv = ("compare", f"{before}:strided_store", f"{after}:strided_store", "--width", "120")
    shown = lines(tool(*argv).stdout)
    assert shown[0] == "launches differ: blocks 64 → 32 (-50.0%); 1 finding remaining"
    assert "remaining stores, sectors 4 096 → 2 048 (ideal 2 048 → 1 024)" in shown
    assert "a simulated GPU has no times: its cycles come from a model, so speed and cycles are not judged" in shown
    assert tool(*argv, "--fail-if-worse", "5").returncode == 0


def test_time_between_two_lines(tool: Tool, tmp_path: Path) -> None:
    """The lines of the loop take longer than one of them."""
    cycles = []
    for place in ("softmax.cu:22-27", "softmax.cu:22"):
        trace = trace_of(tool, tmp_path, place.partition(":")[2], "--between", place, "-k", "softmax")
        argv = ("show", "results", f"{trace}:softmax")
        shown = lines(tool(*argv, "--width", "100").stdout)
        assert "between.cycles of launch 6 of #6" in shown
        assert any(line.endswith("values min 25 % median 75 % 95 % 99 % max") for line in shown)
        (values,) = json.loads(tool(*argv, "--format", "json").stdout)["data"]["values"]
        assert values["count"] == sum(bin_["count"] for bin_ in values["histogram"])
        cycles.append(values["median"])
    assert cycles[0] > cycles[1] > 0
