"""``-p bounds_check`` finds accesses outside of the allocations that the hook lists."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import Tool
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probes.bounds_check import Bounds, analyse
from tui_probe.trace.follow import open_trace
from tui_probe.trace.results import read_result
from tui_probe.verdicts.findings import NO_PROBE, findings_by_probe

PROGRAM = Path(__file__).parents[1] / "gpu" / "programs" / "outside.py"
Fault = tuple[str, str, int, int, int]
"""Kernel, kind, block, thread, bytes."""


VARIABLE = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
PTX = b".version 7.8\\n.target sm_80\\n.address_size 64\\n"
STORE = PTX + b'''
.visible .entry store(.param .u64 to)
{
    .reg .b64 %rd1;
    ld.param.u64 %rd1, [to];
    st.global.u32 [%rd1], 1;
    ret;
}
'''
VARIABLE = PTX + b".visible .global .align 8 .b8 variable[64];"
context, first, second, kernel, size = (ctypes.c_void_p() for _ in range(5))
address = ctypes.c_uint64()
def call(name, *arguments):
    status = getattr(cuda, name)(*arguments)
    assert not status, (name, status)
def launch(offset):
    to = ctypes.c_uint64(address.value + offset)
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(to))
    call("cuLaunchKernel", kernel, 1, 1, 1, 1, 1, 1, 0, None, arguments, None)
    call("cuCtxSynchronize")
call("cuInit", 0)
call("cuCtxCreate_v2", ctypes.byref(context), 0, 0)
call("cuModuleLoadData", ctypes.byref(first), STORE)
call("cuModuleLoadData", ctypes.byref(second), VARIABLE)
call("cuModuleGetFunction", ctypes.byref(kernel), first, b"store")
for _ in range(2):
    call("cuModuleGetGlobal_v2", ctypes.byref(address), None, second, b"variable")
launch(0)
launch(64)
call("cuModuleUnload", second)
launch(0)
"""
"""Stores to a variable of another module: within it, behind it, and after its module is gone."""


def planted_in(output: str) -> list[Fault]:
    """The accesses that the program says it made."""
    rows = [line.split("\t") for line in output.splitlines()]
    return [(name, kind, int(block), int(thread), int(size)) for name, kind, block, thread, size, _ in rows]


def launches_of(folder: Path) -> list[tuple[str, Bounds]]:
    """The kernel of each launch, and its accesses."""
    trace = open_trace(folder)
    analysed = []
    for launch in trace.launches:
        path = None if launch.result is None else trace.results.path(launch.result)
        if path is not None:
            kernel = trace.kernels[launch.kernel]
            analysed.append((kernel.name, analyse(read_result(path), kernel.folder)))
    return analysed


def found_in(folder: Path) -> list[Fault]:
    """The accesses that the probe found."""
    return [
        (name, access.fault, access.block[0], access.thread[0], access.bytes)
        for name, bounds in launches_of(folder)
        for access in bounds.accesses
    ]


def test_planted_accesses_are_found_with_thread_and_allocation(tool: Tool) -> None:
    options = ("-p", "bounds_check", "--launches=all", "--wait", "--no-check")
    result, trace = tool.run([sys.executable, str(PROGRAM), "ld.global.v4.u32"], *options)
    assert result.returncode == 0, result.stderr
    planted = planted_in(result.stdout)
    assert len(planted) == 3
    assert found_in(trace) == planted
    access = launches_of(trace)[0][1].accesses[0]
    assert (access.limit - access.below, access.address - access.limit, access.opcode) == (1000, 8, "ld.global.v4.u32")
    assert access.where.endswith(f"8 bytes past 1000 bytes at {access.below:#x}")
    behind_whole = launches_of(trace)[1][1].accesses[0]
    assert behind_whole.where.endswith(f"0 bytes past 1024 bytes at {behind_whole.below:#x}")


def test_record_outlives_the_illegal_address_that_ends_the_context(tool: Tool) -> None:
    options = ("-p", "bounds_check", "--launches=all", "--wait", "--no-check")
    result, trace = tool.run([sys.executable, str(PROGRAM), "st.global.v2.u64", "fatal"], *options)
    *planted, (name, _, block, thread, size, address, status) = (
        line.split("\t") for line in result.stdout.splitlines()
    )
    assert (len(planted), status) == (3, "700")
    accesses = found_in(trace)
    assert len(accesses) == 4
    assert accesses[-1] == (name, "", int(block), int(thread), int(size))
    kernel = open_trace(trace).kernels[0]
    (of_probe,) = [
        own for own in findings_by_probe(ViewSource(open_trace(trace), kernel)) if own.probe == "bounds_check"
    ]
    (finding,) = [finding for finding in of_probe.findings if finding.key == "illegal"]
    assert (finding.label, finding.wrong_result) == ("illegal address", True)
    assert f"thread ({thread},0,0): {size} bytes at {address}" in finding.words


def test_checks_of_the_simulated_gpu_replace_findings_of_the_same_access(
    tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUI_PROBE_SIM_CHECK", "1")
    _, trace = tool.run([sys.executable, str(PROGRAM), "st.global.v2.u64", "fatal"], "-p", "bounds_check", "--wait")
    opened = open_trace(trace)
    assert launches_of(trace)[-1][1].accesses, "the probe found it, too"
    by_probe = {own.probe: own.findings for own in findings_by_probe(ViewSource(opened, opened.kernels[0]))}
    assert by_probe["bounds_check"] == ()
    assert {finding.key for finding in by_probe[NO_PROBE] if finding.wrong_result} == {
        "out_of_bounds",
        "use_after_free",
    }


def test_variable_whose_address_the_program_passes_is_known(tool: Tool) -> None:
    options = ("-p", "bounds_check", "--launches=all", "--wait", "--no-check")
    result, trace = tool.run([sys.executable, "-c", VARIABLE], *options)
    assert result.returncode == 0, result.stderr
    faults = [[access.fault for access in bounds.accesses] for _, bounds in launches_of(trace)]
    assert faults == [[], ["out of bounds"], ["use after free"]]
