"""The source files of the example come into its trace, so that it can be read on another machine."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.patience import HANG
from tui_probe.simgpu.examples.demo import KERNELS
from tui_probe.trace.follow import open_trace
from tui_probe.trace.source_lines import SOURCE_FOLDER, SourceFiles, SourceLines
from tui_probe.verdicts.run_outcome import head_lines

from .conftest import EXAMPLE, RUN

if TYPE_CHECKING:
    from .conftest import Tool

COMMAND = [*EXAMPLE, "--kernel", "strided_store", "--size", "64"]


@pytest.mark.parametrize("cached", [False, True])
def test_a_trace_has_the_text_behind_its_lines(tool: Tool, cached: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tool.folder / "cache"))
    if cached:
        tool.run(COMMAND)
    result, trace = tool.run(COMMAND)
    assert result.returncode == 0
    (kernel,) = (trace / "kernel").iterdir()
    pruned = (kernel / "pruned.ptx").read_text().split("\n")
    store = next(number for number, line in enumerate(pruned, 1) if "st.global" in line)
    line = SourceLines.from_folder(kernel).ptx_line(store)
    assert line is not None
    files = SourceFiles(trace)
    assert files.lines(line.file) == tuple((KERNELS / "strided_store.cu").read_text().splitlines())
    assert "output[" in files.text(line)
    assert "1 file copied into the trace: strided_store.cu" in "\n".join(head_lines(open_trace(trace)))


def test_or_not(tool: Tool) -> None:
    result, trace = tool.run(COMMAND, "--no-source")
    assert result.returncode == 0
    assert list((trace / "kernel").iterdir())
    assert not (trace / SOURCE_FOLDER).exists()


def test_a_deleted_working_directory_leaves_kernels_probed(tool: Tool) -> None:
    """No source is looked for there; the trace is elsewhere."""
    run = [*RUN, "--no-report", "--tracedir", str(tool.folder / "kept"), "--", *COMMAND]
    command = ["sh", "-c", 'mkdir gone; cd gone; rmdir ../gone; exec "$@"', "sh", *run]
    done = subprocess.run(command, cwd=tool.folder, env=tool.environment, capture_output=True, text=True, timeout=HANG)
    assert (done.returncode, done.stdout) == (0, "strided_store ok\n"), done.stderr
    (trace,) = (tool.folder / "kept").iterdir()
    assert "[exit] launches 1 probed 1 dropped 0" in (trace / "event.log").read_text()
