"""A fault in any measured launch of a kernel is a finding, whether launches without one come before or after it."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from tui_probe.probekit import shown_results
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.trace.follow import open_trace
from tui_probe.verdicts.findings import launch_findings

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.conftest import Tool

PROGRAM = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
PTX = b'''.version 7.8
.target sm_80
.address_size 64
.visible .entry root(.param .u64 to, .param .f32 of)
{
    .reg .b64 %rd1;
    .reg .f32 %f<3>;
    ld.param.u64 %rd1, [to];
    ld.param.f32 %f1, [of];
    sqrt.rn.f32 %f2, %f1;
    st.global.f32 [%rd1], %f2;
    ret;
}
'''
context, module, kernel = (ctypes.c_void_p() for _ in range(3))
memory = ctypes.c_uint64()
def call(name, *arguments):
    status = getattr(cuda, name)(*arguments)
    assert not status, (name, status)
call("cuInit", 0)
call("cuCtxCreate_v2", ctypes.byref(context), 0, 0)
call("cuModuleLoadData", ctypes.byref(module), PTX)
call("cuModuleGetFunction", ctypes.byref(kernel), module, b"root")
call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(256))
for launch in sys.argv[1:]:
    to = ctypes.c_uint64(memory.value + 256 * (launch == "outside"))
    of = ctypes.c_float(-1 if launch == "nan" else 4)
    arguments = (ctypes.c_void_p * 2)(ctypes.addressof(to), ctypes.addressof(of))
    call("cuLaunchKernel", kernel, 1, 1, 1, 1, 1, 1, 0, None, arguments, None)
    call("cuCtxSynchronize")
"""
PROBES = {"bounds_check": "outside", "nan_check": "nan", "nan_check_birth": "nan"}
CLAIMS = {"bounds_check": "out of bounds", "nan_check": "first NaN", "nan_check_birth": "first NaN"}
CLEAN = ("each access is within", "no NaN or infinity", "none of the checked")


def measured(tool: Tool, probe: str, *launches: str) -> Path:
    """Return the trace of a program that launches its kernel so."""
    options = ("-p", probe, "--launches=all", "--wait", "--no-check")
    result, trace = tool.run([sys.executable, "-c", PROGRAM, *launches], *options)
    assert result.returncode == 0, result.stderr
    return trace


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("probe", PROBES)
def test_fault_in_any_launch_is_a_finding_of_that_launch(tool: Tool, probe: str, at: int) -> None:
    launches = ["good"] * 3
    launches[at] = PROBES[probe]
    trace = measured(tool, probe, *launches)
    (error,) = [
        finding
        for finding in json.loads(tool("report", str(trace), "--format=json").stdout)["findings"]
        if finding["severity"] == "error"
    ]
    assert (error["probe"], error["launch"], error["claim"].split(":")[0]) == (probe, at, CLAIMS[probe])
    assert error["claim"].endswith(f", in launch {at}")
    assert error["location"]["ptx"] is not None
    for page in ("summary", "lines"):
        text = " ".join(tool("show", page, f"{trace}:0", "--width=400").stdout.split())
        assert not any(words in text for words in CLEAN), text
        assert f"launch {at}" in text
    assert f", in launch {at}" in " ".join(tool("report", str(trace)).stdout.split())
    other = tool("show", "summary", f"{trace}:0@{(at + 1) % 3}").stdout
    assert any(words in other for words in CLEAN), "the chosen launch has no fault"


def test_newest_of_several_faults_is_shown(tool: Tool) -> None:
    trace = open_trace(measured(tool, "bounds_check", "outside", "outside", "good"))
    result = launch_findings(ViewSource(trace, trace.kernels[0]))
    assert result is not None
    assert (result.launch, result.findings[0].key) == (1, "fault")


def test_results_that_were_not_checked_are_counted(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown_results, "_MAX_CHECKED", 2)
    trace = open_trace(measured(tool, "nan_check", "nan", "good", "good"))
    result = launch_findings(ViewSource(trace, trace.kernels[0]))
    assert result is not None
    assert result.launch == 2
    assert [finding.numbers for finding in result.findings if finding.key == "unchecked_results"] == [{"results": 1}]


def test_findings_look_at_each_result_once(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = open_trace(measured(tool, "nan_check", "good", "good", "good"))
    seen: list[Path | None] = []
    look = shown_results._file_status
    monkeypatch.setattr(shown_results, "_file_status", lambda path: seen.append(path) or look(path))
    for _ in range(2):
        launch_findings(ViewSource(trace, trace.kernels[0]))
        assert len(seen) == 3
        seen.clear()


@pytest.mark.parametrize(("probe", "key"), [("bounds_check", "total"), ("nan_check", "stores")])
def test_comparison_has_the_sum_of_the_faults_of_all_launches(tool: Tool, probe: str, key: str) -> None:
    right = measured(tool, probe, "good", "good", "good")
    wrong = measured(tool, probe, "good", PROBES[probe], "good")
    done = tool("compare", str(right), str(wrong), "--format=json")
    (change,) = [row for row in json.loads(done.stdout)["figures"] if row["figure"] == key]
    assert [change[name] for name in ("before", "after", "launches", "verdict")] == [0, 1, [3, 3], "worse"]
