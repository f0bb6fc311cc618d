"""Programs that reset the device, unload kernels that still run, write astray, or leave no memory: they do the same."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.hook.conftest import compile_c
from tui_probe.trace.follow import open_trace

from .conftest import ROOT, Tool

PROGRAMS = ROOT / "tests" / "gpu" / "programs"
KERNELS = PROGRAMS / "unusual.ptx"
TURNS = "20"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("unusual") / "unusual"
    compile_c(PROGRAMS / "unusual.c", path, "-Wno-unused-function", f"-I{PROGRAMS}")
    return path


@pytest.mark.parametrize("way", ["reset", "unload", "full"])
def test_unusual_program_behaves_as_without_hook(tool: Tool, program: Path, way: str) -> None:
    command = [str(program), str(KERNELS), way, TURNS]
    unprofiled = tool.unprofiled(*command)
    assert unprofiled.returncode == 0, unprofiled.stderr
    profiled, trace = tool.run(command)
    assert (profiled.returncode, profiled.stdout) == (0, unprofiled.stdout)
    kernels = open_trace(trace).kernels
    assert {kernel.status for kernel in kernels} == {"failed" if way == "full" else "probed"}
    assert any(kernel.launches_probed for kernel in kernels) == (way != "full")
    if way == "full":  # there is no room for the probed module either
        assert all("CUDA_ERROR_OUT_OF_MEMORY" in (kernel.reason or "") for kernel in kernels)


def test_kernel_error_is_attributed_to_program(tool: Tool, program: Path) -> None:
    command = [str(program), str(KERNELS), "stray", TURNS]
    unprofiled = tool.unprofiled(*command)
    assert unprofiled.stdout.endswith("launched 0, waited 700, launched again 700, memory 700\n")
    profiled, trace = tool.run(command)
    assert (profiled.returncode, profiled.stdout) == (unprofiled.returncode, unprofiled.stdout)
    report = tool("report", str(trace), "--width", "400").stdout
    (head,) = (line for line in report.splitlines() if line.startswith("context "))
    assert "CUDA_ERROR_ILLEGAL_ADDRESS (700) ended the GPU context; the program received the error" in head
    assert re.search(r"Launched since the last result: (fill, )?stray\.", head)
    assert "compute-sanitizer" not in report, "the program's GPU is simulated"
    record = json.loads(tool("report", str(trace), "--format", "json").stdout)
    assert record["run"]["context_failed"]["error"] == 700
