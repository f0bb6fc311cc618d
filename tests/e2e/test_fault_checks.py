"""Checks of the simulated GPU in a run: the example of the help page, and programs that stay as they are."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING

from tests.help.pages import blocks
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.trace.follow import open_trace
from tui_probe.verdicts.findings import findings_by_probe

if TYPE_CHECKING:
    import pytest

    from .conftest import Tool


STATES = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
PTX = b'''
.version 7.8
.target sm_80
.address_size 64
.visible .entry NAME(.param .u64 from, .param .u64 to)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [from];
    ld.param.u64 %rd2, [to];
    ld.global.u32 %r1, [%rd1];
    st.global.u32 [%rd2], %r1;
    ret;
}
'''
def kernel(name):
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    assert not cuda.cuModuleLoadData(ctypes.byref(module), PTX.replace(b"NAME", name))
    assert not cuda.cuModuleGetFunction(ctypes.byref(function), module, name)
    return function
def memory(size=4):
    address = ctypes.c_void_p()
    assert not cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size))
    return address
def launch(name, source):
    arguments = (ctypes.c_void_p * 2)(ctypes.addressof(source), ctypes.addressof(target))
    assert not cuda.cuLaunchKernel(kernel(name), 1, 1, 1, 1, 1, 1, 0, None, arguments, None)
    assert not cuda.cuCtxSynchronize()
def fill(address):
    assert not cuda.cuMemsetD32_v2(address, 3, ctypes.c_size_t(1))
context, host = ctypes.c_void_p(), ctypes.c_void_p()
cuda.cuInit(0)
cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
target, empty, filled, copied, late = (memory() for _ in range(5))
freed = memory(8 << 20)
fill(filled)
fill(freed)
cuda.cuMemcpyHtoD_v2(copied, bytes(4), ctypes.c_size_t(4))
cuda.cuMemHostAlloc(ctypes.byref(host), ctypes.c_size_t(4), 0)
cuda.cuMemFree_v2(freed)
others = [memory() for _ in range(5)]
launch(b"of_filled", filled)
launch(b"of_copied", copied)
launch(b"of_host", host)
launch(b"of_empty", empty)
launch(b"of_freed", freed)
for _ in range(33_000):
    fill(filled)
    fill(copied)
launch(b"of_late", late)
launch(b"of_nothing", ctypes.c_void_p(late.value + 4))
for _ in range(64):
    assert not cuda.cuMemFree_v2(memory(256 << 20))
print("ended")
"""
"""Launches that load four bytes each. The driver lists fewer fills: all memory then counts as initialized.

The driver does not return freed memory immediately. The sum of all freed memory would not fit in the device.
"""


def _without_addresses(text: str) -> str:
    return re.sub(r"\b0x\w{10,}", "0x2", " ".join(text.split()))


def test_run_reports_example_of_help_page(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUI_PROBE_SIM_CHECK", "1")
    (tool.folder / "shift.py").write_text(blocks("sanitizer", "python")[0])
    (shown,) = blocks("sanitizer", "text")
    result, trace = tool.run([sys.executable, "shift.py"])
    assert result.returncode == 0
    read = open_trace(trace)
    (kernel,) = read.kernels
    (found,) = [result for result in findings_by_probe(ViewSource(read, kernel)) if result.probe == "(no probe)"]
    finding = found.findings[0]
    assert _without_addresses(f"{finding.label}: {finding.words}") == _without_addresses(shown)
    assert (finding.page, finding.line) == ("ptx", 12)
    unchecked, other = tool.run([sys.executable, "shift.py"], "--no-check")
    assert unchecked.returncode == 0
    assert open_trace(other).state.faults == []


def test_fault_that_ends_the_kernel_is_first_in_the_report(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUI_PROBE_SIM_CHECK", "1")
    (tool.folder / "shift.py").write_text(blocks("sanitizer", "python")[0].replace("[%rd3+4]", "[%rd3+2]"))
    _, trace = tool.run([sys.executable, "shift.py"])
    report = " ".join(tool("report", str(trace)).stdout.split())
    expected = (
        "! #0 shift misaligned: store of 4 B in global memory, value 0x0; st.global.u32 PTX:12, block (0, 0, 0),"
        " thread (0, 0, 0)"
    )
    assert f"Where to look first {expected}" in report
    assert "compute-sanitizer" not in report
    finding = json.loads(tool("report", str(trace), "--format", "json").stdout)["findings"][0]
    evidence = {value["metric"]: value["value"] for value in finding["evidence"]}
    names = ("access", "line", "value", "fault_block", "fault_thread")
    assert [evidence[name] for name in names] == ["store", 12, "0x0", "(0, 0, 0)", "(0, 0, 0)"]


def test_driver_reports_states_of_memory(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUI_PROBE_SIM_CHECK", "1")
    result, trace = tool.run([sys.executable, "-c", STATES])
    assert (result.returncode, result.stdout) == (0, "ended\n")
    faults = [json.loads(text) for text in open_trace(trace).state.faults]
    expected = [
        ("of_empty", "uninitialized"), ("of_freed", "use_after_free"), ("of_nothing", "out_of_bounds"),
    ]  # fmt: skip
    assert [(fault["kernel"], fault["kind"]) for fault in faults] == expected
    assert [fault["launch"] for fault in faults] == [3, 4, 6]
