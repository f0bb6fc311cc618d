"""The cache of prepared kernels, as a user sees it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tui_probe.trace.follow import open_trace

from .conftest import EXAMPLE, Tool

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = [*EXAMPLE, "--kernel", "saxpy"]


def counts(trace: Path) -> object:
    return json.loads((trace / "run.json").read_text())["cache"]


def test_hits_are_in_the_record(tool: Tool) -> None:
    first, trace = tool.run(COMMAND)
    assert "cache" not in first.stderr
    assert counts(trace) == {"hits": 0, "misses": 1}
    second, trace = tool.run(COMMAND)
    assert second.stdout == "saxpy ok\n"
    assert second.stderr.splitlines()[1:] == []  # scripts read the trace in the last word of it
    assert counts(trace) == {"hits": 1, "misses": 0}
    (kernel,) = open_trace(trace).kernels
    assert (kernel.status, len(kernel.results)) == ("probed", 1)


def test_without_the_cache(tool: Tool) -> None:
    for _ in range(2):
        result, trace = tool.run(COMMAND, "--no-cache")
        assert "cache" not in result.stderr
        assert counts(trace) is None
