"""Comparison by findings: each is fixed, remaining or new, against its ideal; amounts of work are not judged."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.probes.running import example, result_of
from tests.trace.make import TraceWriter, block_sched_result
from tui_probe.cli.main import main
from tui_probe.engine.insertion import build_probed_ptx
from tui_probe.engine.kernel import Kernel
from tui_probe.probe_files.loading import load_probe
from tui_probe.ptx.parser import parse

MOVE = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry move(.param .u64 from, .param .u64 to)
{{
.reg .f32 %f<4>;
.reg .b32 %r<8>;
.reg .b64 %rd<8>;
ld.param.u64 %rd1, [from];
ld.param.u64 %rd2, [to];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ntid.x;
mov.u32 %r3, %tid.x;
mad.lo.u32 %r4, %r1, %r2, %r3;
mul.wide.u32 %rd3, %r4, {step};
add.u64 %rd4, %rd1, %rd3;
add.u64 %rd5, %rd2, %rd3;
.loc 1 {line} 3
{load}
.loc 1 {after} 3
{store}
ret;
}}
.file 1 "/src/move.cu"
"""
SCALAR = "ld.global.f32 %f1, [%rd4];\nst.global.f32 [%rd5], %f1;"
VECTOR = "ld.global.v2.f32 {%f1, %f2}, [%rd4];\nst.global.v2.f32 [%rd5], {%f1, %f2};"
MORE = "add.f32 %f1, %f1, %f2;\n" * 8


def moving(body: str, step: int, line: int = 4) -> str:
    """PTX of a kernel whose threads access ``step`` bytes apart at a line of source."""
    load, store = body.split("\nst.")
    return MOVE.format(load=load, store=f"st.{store}", step=step, line=line, after=line + 1)


def write_run(trace: Path, probe: str, text: str, *, threads: int = 64, blocks: int = 1, **run: Any) -> str:
    """Write the trace of a launch on the simulated GPU, which has as many SMs as blocks."""
    trace.parent.mkdir(parents=True, exist_ok=True)
    kernel = Kernel.of(parse(text), parse(text).entries()[0].name)
    writer = TraceWriter(trace)
    writer.start(device="Simulated GPU", sms=1, command="./move")
    place = writer.kernel(0, kernel.entry.name)
    (place / "pruned.ptx").write_text(kernel.pruned)
    (place / "kernel.info").write_text(build_probed_ptx(kernel, load_probe(probe)).info)
    arguments: Sequence[Any] = run.pop("arguments", (np.ones(4096, np.float32), np.zeros(4096, np.float32)))
    grid, block = (blocks, 1, 1), (threads, 1, 1)
    with np.errstate(all="ignore"):
        result = result_of(trace.parent, probe, text, *arguments, grid=grid, block=block)
    writer.save(0, writer.launch(0, grid, block), result.path.read_bytes())
    writer.exit()
    writer.run_json(probe=probe, driver={"path": "/sim/libcuda.so.1", "simulated": True})
    return str(trace)


def write_schedule(trace: Path, cycles: int, blocks: int, *, sms: int = 8) -> str:
    """Write the trace of one launch whose blocks are spread over the SMs, in their order."""
    writer = TraceWriter(trace)
    writer.start(device="Simulated GPU", sms=sms, command="./sum")
    writer.kernel(0, "sum")
    order = np.arange(blocks)
    content = block_sched_result(1000 + order // sms * (cycles + 50), np.full(blocks, cycles), order % sms)
    writer.save(0, writer.launch(0, (blocks, 1, 1)), content)
    writer.exit()
    writer.run_json(probe="block_sched", driver={"path": "/sim/libcuda.so.1", "simulated": True})
    return str(trace)


@pytest.fixture
def compared(capfd: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    """Return the document of a comparison."""

    def compare(*sides: str) -> dict[str, Any]:
        capfd.readouterr()
        assert main(["compare", *sides, "--format", "json"]) == 0
        document: dict[str, Any] = json.loads(capfd.readouterr().out)
        return document

    return compare


Compare = Callable[..., dict[str, Any]]


def outcomes(document: dict[str, Any], key: str = "") -> list[tuple[str, str]]:
    """Return key and outcome of the findings."""
    pairs = [((change["after"] or change["before"])["key"], change["outcome"]) for change in document["findings"]]
    return [pair for pair in pairs if key in ("", pair[0])]


def test_launching_more_blocks_fixes_idle_sms(tmp_path: Path, compared: Compare) -> None:
    before, after = write_schedule(tmp_path / "a", 78_712, 1), write_schedule(tmp_path / "b", 1_248, 64)
    document = compared(before, after)
    assert outcomes(document, "grid") == [("grid", "fixed")]
    assert document["verdict"].startswith("fixed: sum: idle SMs")
    assert "from the model: span cycles 78 712 →" in document["verdict"]
    assert [kernel["verdict"] for kernel in document["kernels"]] == ["better"]


def test_simulated_cycles_without_a_finding_are_no_verdict(tmp_path: Path, compared: Compare) -> None:
    before, after = write_schedule(tmp_path / "a", 78_712, 512), write_schedule(tmp_path / "b", 1_248, 512)
    (kernel,) = compared(before, after)["kernels"]
    assert kernel["verdict"] == "differs", "63 times fewer cycles of a model are not about the same"


def test_coalescing_is_fixed_at_a_moved_line(tmp_path: Path, compared: Compare, capfd: Any) -> None:
    probe = "gmem_sectors_by_line"
    before = write_run(tmp_path / "1/a", probe, moving(SCALAR, 128, 4))
    after = write_run(tmp_path / "2/b", probe, moving(SCALAR, 4, 9))
    document = compared(before, after)
    assert outcomes(document, "worst_access") == [("worst_access", "fixed"), ("worst_access", "fixed")]
    (load, store) = (change for change in document["findings"] if change["before"]["key"] == "worst_access")
    assert "at move.cu:" in load["text"]
    assert "sectors per request 32 →" in store["text"]
    assert "(ideal 4)" in store["text"]
    half = write_run(tmp_path / "3/c", probe, moving(SCALAR, 16, 9))
    lines = [change for change in compared(before, half)["findings"] if change["before"]["key"] == "worst_access"]
    assert {(change["outcome"], change["trend"]) for change in lines} == {("remaining", "better")}
    assert any("move.cu:4 → move.cu:9" in change["text"] for change in lines)
    assert main(["compare", after, before, "--fail-if-worse", "5"]) == 1
    assert "new finding: move: uncoalesced at move.cu:4" in capfd.readouterr().err


def test_vector_loads_are_judged_by_their_ideal(tmp_path: Path, compared: Compare, capfd: Any) -> None:
    before = write_run(tmp_path / "1/a", "gmem_sectors_by_line", moving(SCALAR, 4))
    after = write_run(tmp_path / "2/b", "gmem_sectors_by_line", moving(VECTOR, 8))
    document = compared(before, after)
    figures = {row["figure"]: row for row in document["figures"]}
    load = figures["sectors_per_load"]
    assert (load["before"], load["after"], load["ideals"], load["verdict"]) == (4, 8, [4, 8], None)
    assert [kernel["verdict"] for kernel in document["kernels"]] == ["differs"]
    assert main(["compare", before, after, "--fail-if-worse", "1"]) == 0
    capfd.readouterr()
    assert main(["compare", f"{before}:0", f"{after}:0", "--width", "160"]) == 0
    assert "sectors per load" in (text := capfd.readouterr().out)
    assert "worse" not in text
    strided = write_run(tmp_path / "3/c", "gmem_sectors_by_line", moving(SCALAR, 8))
    (load,) = (row for row in compared(before, strided)["figures"] if row["figure"] == "sectors_per_load")
    assert (load["ideals"], load["verdict"]) == ([4, 4], "worse"), "8 sectors for 4 bytes per lane are no ideal"


def test_more_bytes_and_instructions_are_not_worse(tmp_path: Path, compared: Compare, capfd: Any) -> None:
    before = write_run(tmp_path / "1/a", "what_limits", moving(SCALAR, 4), blocks=1)
    after = write_run(tmp_path / "2/b", "what_limits", moving(MORE + SCALAR, 4), blocks=16)
    document = compared(before, after)
    figures = {row["figure"]: row for row in document["figures"]}
    assert figures["written"]["share"] == 15
    assert {figures[name]["verdict"] for name in ("written", "read", "sectors", "instructions")} == {None}
    assert "written" not in document["verdict"]
    capfd.readouterr()
    assert main(["compare", before, after, "--fail-if-worse", "5"]) == 0
    assert main(["compare", before, after, "--fail-if-worse", "5", "--figures", "instructions"]) == 1, "asked for"


def test_nan_is_named_and_fixed(tmp_path: Path, compared: Compare) -> None:
    def saxpy(x: float) -> tuple[Any, ...]:
        values = np.arange(64, dtype=np.float32)
        values[3] = x
        return np.ones(64, np.float32), values, np.float32(2), np.int32(64)

    before = write_run(tmp_path / "1/a", "nan_check", example("saxpy"), arguments=saxpy(math.nan))
    after = write_run(tmp_path / "2/b", "nan_check", example("saxpy"), arguments=saxpy(1.0))
    document = compared(before, after)
    assert outcomes(document, "first") == [("first", "fixed")]
    assert document["findings"][0]["before"]["severity"] == "error"
    assert "first NaN" in document["verdict"]
    (stores,) = (row for row in document["figures"] if row["figure"] == "stores")
    assert stores["verdict"] == "better"
    assert outcomes(compared(after, before), "first") == [("first", "new")]


def test_finding_without_a_result_on_the_other_side_is_not_fixed(tmp_path: Path, compared: Compare) -> None:
    before = write_run(tmp_path / "1/a", "gmem_sectors_by_line", moving(SCALAR, 128))
    after = write_run(tmp_path / "2/b", "what_limits", moving(SCALAR, 128))
    document = compared(before, after)
    assert {outcome for key, outcome in outcomes(document) if key == "worst_access"} == {"unknown"}
    assert "measured on one side only" in document["verdict"]


def test_equal_runs_have_remaining_findings_of_equal_size(tmp_path: Path, compared: Compare) -> None:
    one, other = (write_run(tmp_path / side / side, "gmem_sectors_by_line", moving(SCALAR, 128)) for side in "ab")
    document = compared(one, other)
    assert {change["outcome"] for change in document["findings"]} == {"remaining"}
    assert {change["trend"] for change in document["findings"]} == {None}
    assert [kernel["verdict"] for kernel in document["kernels"]] == ["same"]
    assert main(["compare", one, other, "--fail-if-worse", "0"]) == 0
