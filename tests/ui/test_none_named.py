"""``run -k`` with a name that no kernel has, on the live screen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.ui.conftest import on_stage
from tests.ui.synthetic import FakeTarget, TraceWriter
from tui_probe.ui.live import state_line
from tui_probe.ui.session import Session

SAID = "--kernel matmull matches no kernel"


def launched(folder: Path, *kernels: tuple[str, str], asked: str | None = "matmull") -> TraceWriter:
    trace = TraceWriter(folder / "Nov21_101010_1")
    record = {"command": ["./a"], "probe": "block_sched", "options": {"kernels": asked}}
    (trace.directory / "run.json").write_text(json.dumps(record))
    for name, status in kernels:
        trace.backup(trace.kernel(name, status, "left out by --kernel"))
    return trace


async def test_filter_warning_after_program_end(tmp_path: Path) -> None:
    trace = launched(tmp_path, ("_Z6matmulPf", "filtered"), ("_Z7softmaxPf", "filtered"))
    target = FakeTarget(tmp_path, [trace.directory])
    async with on_stage(Session(target=target), (100, 30)) as stage:
        assert "matches none" not in stage.text, "others may come"
        target.status = 0
        await stage.refresh()
        assert f"{SAID}: did you mean matmul?" in stage.text.split("\n")[-1]
        assert "-k matmull matches no kernel · 2 kernels (0 probed)" in stage.text
        await stage.press("down")
        await stage.refresh()
        assert SAID not in stage.text, "once"
        assert "-k matmull matches no kernel · 2 kernels (0 probed)" in stage.text


async def test_filter_warning_until_a_kernel_matches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = launched(tmp_path, ("_Z6matmulPf", "filtered"))
    async with on_stage(Session(target=FakeTarget(tmp_path, [trace.directory])), (100, 30)) as stage:
        await stage.refresh()
        assert "matches none" not in stage.text
        monkeypatch.setattr(state_line, "WARN_AFTER", 0.0)
        await stage.refresh()
        assert f"{SAID} so far: did you mean matmul?" in stage.text
        assert "-k matmull matches no kernel" in stage.text
        trace.kernel("_Z7matmullPf")
        await stage.refresh()
        assert "matches none of these" not in stage.text


@pytest.mark.parametrize("status", ["probed", "skipped"])
async def test_no_filter_warning_if_a_kernel_matches(tmp_path: Path, status: str) -> None:
    trace = launched(tmp_path, ("_Z6matmulPf", status), ("_Z7softmaxPf", "filtered"), asked="matmul")
    trace.exit()
    async with on_stage(Session(traces=(trace.directory,)), (100, 30)) as stage:
        assert "matches none" not in stage.text


async def test_a_trace_that_is_opened_tells_it_too(tmp_path: Path) -> None:
    trace = launched(tmp_path, ("_Z6matmulPf", "filtered"), asked="conv")
    trace.exit()
    async with on_stage(Session(traces=(trace.directory,)), (80, 24)) as stage:
        assert "--kernel conv matches no kernel; kernels: matmul" in stage.text


@pytest.mark.parametrize(
    ("asked", "words"), [("matmull", f"{SAID}: did you mean matmul?"), (None, "no kernel was probed")]
)
async def test_next_flagged_without_measurement_gives_reason(tmp_path: Path, asked: str | None, words: str) -> None:
    trace = launched(tmp_path, ("_Z6matmulPf", "filtered"), asked=asked)
    trace.exit()
    async with on_stage(Session(traces=(trace.directory,)), (100, 30)) as stage:
        await stage.press("!")
        assert f"nothing measured: {words}" in stage.text


async def test_damaged_run_json_is_named_on_the_screen(tmp_path: Path) -> None:
    trace = launched(tmp_path, ("_Z6matmulPf", "probed"), asked=None)
    (trace.directory / "run.json").write_text('{"version": 1, "command": [')
    target = FakeTarget(tmp_path, [trace.directory])
    target.status = 0
    async with on_stage(Session(target=target), (100, 30)) as stage:
        await stage.refresh()
        assert "run.json is damaged" in stage.text
