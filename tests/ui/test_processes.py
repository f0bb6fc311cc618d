"""Several processes of one run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.ui.conftest import on_stage
from tests.ui.synthetic import FakeTarget, TraceWriter
from tui_probe.ui.session import Session

if TYPE_CHECKING:
    from pathlib import Path


async def test_each_process_tells_how_it_ended(tmp_path: Path) -> None:
    traces = [TraceWriter(tmp_path / f"Nov21_10101{n}_{n}", pid=n, command=f"rank {n}") for n in (11, 12, 13, 14)]
    for trace in traces:
        trace.kernel(f"of_{trace.directory.name[-2:]}")
        (trace.directory / "run.json").write_text(json.dumps({"version": 1, "pid": 10, "command": ["torchrun"]}))
    for trace, last in zip(traces, ("status 0", "status 3", "signal 15"), strict=False):
        trace.event(f"[exit] {last}")
        trace.exit()
    target = FakeTarget(tmp_path, [trace.directory for trace in traces])
    async with on_stage(Session(target=target), (80, 24)) as stage:
        assert "process 1 of 4: pid 11 ✔ exit 0" in stage.text
        await stage.press("right_parenthesis")
        assert "process 2 of 4: pid 12 ✘ exit 3" in stage.text
        assert "of_12" in stage.text
        await stage.press("P")
        for words in ("pid 13  ✘ killed by signal 15", "pid 14  ✘ incomplete"):
            assert words in stage.text
        await stage.press("end")
        assert "rank 14   (killed, crashed or disk full)" in stage.text
