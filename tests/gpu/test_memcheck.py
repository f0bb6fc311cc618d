"""``compute-sanitizer`` finds nothing wrong in kernels with probes, in PTX and in machine code."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.bench.verdicts import SOURCE
from tui_probe.trace.follow import open_trace
from tui_probe.verdicts.probe_coverage import unprobed_reason

from .conftest import PROGRAMS, Runner, tool

SOURCES = {
    "machine_code": PROGRAMS / "machine_code.cu",
    "memory_patterns": PROGRAMS / "memory_patterns.cu",
    "verdicts": SOURCE,
}
WORDS = {"verdicts": ["1"]}
STATUS = {"machine_code": 7}
CODES = {"graft": "sm_90", "ptx": "[sm_90,compute_90]"}
PROBES = {
    "graft": ("block_sched", "gmem_sectors", "dmat", "what_limits", "stall_sites"),
    "ptx": ("block_sched", "dmat", "what_limits"),
}
LEAST = 3
"""One of that many kernels at least: records of large launches do not fit into the memory of every GPU."""
SUMMARY = re.compile(r"ERROR SUMMARY: (\d+) error")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each with machine code only, and with PTX as well."""
    nvcc = tool("nvcc")
    folder, jobs = tmp_path_factory.mktemp("memcheck"), []
    for name, source in SOURCES.items():
        for way, code in CODES.items():
            command = [nvcc, f"-gencode=arch=compute_90,code={code}", "-std=c++17", "-o", f"{name}-{way}", str(source)]
            jobs.append(subprocess.Popen(command, cwd=folder))
    assert all(job.wait(300) == 0 for job in jobs)
    return folder


@pytest.mark.parametrize(("way", "probe"), [(way, probe) for way, probes in PROBES.items() for probe in probes])
@pytest.mark.parametrize("name", SOURCES)
def test_memcheck_finds_nothing(name: str, way: str, probe: str, programs: Path, runner: Runner) -> None:
    checker = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")
    if checker is None:
        pytest.skip("no compute-sanitizer on this machine")
    program = [str(programs / f"{name}-{way}"), *WORDS.get(name, [])]
    # Before 13.1 the driver has no count of a kernel's parameters, so the one beyond the last is asked for.
    command = [checker, "--tool", "memcheck", "--report-api-errors", "no", *program]
    profiled = runner.profiled(command, "-p", probe, "--machine-code", "all")
    output = profiled.outcome.stdout + profiled.outcome.stderr
    (errors,) = SUMMARY.findall(output)
    kernels = open_trace(profiled.trace).kernels
    probed = [kernel for kernel in kernels if kernel.launches_probed]
    print(f"GPU-MEMCHECK\t{name}\t{way}\t{probe}\t{errors} errors\t{len(probed)} of {len(kernels)} kernels probed")
    left = {kernel.name: unprobed_reason(kernel) for kernel in kernels if not kernel.launches_probed}
    print("GPU-MEMCHECK", {kernel.mode for kernel in probed}, set(left.values()))
    assert (profiled.outcome.status, errors) == (STATUS.get(name, 0), "0"), output[-4000:]
    assert way in {kernel.mode for kernel in probed} or not any(kernel.status == "probed" for kernel in kernels)
    assert len(probed) * LEAST >= len(kernels), left
