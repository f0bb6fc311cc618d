"""Scripts written for traces of this format, cell by cell: what they call, where they look, and what they count.

Each cell is rebuilt here from what it relies on, and run as a program that sees the trace and nothing of ours.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tui_probe.probes.block_sched.analysis import RECORD
from tui_probe.trace.follow import open_trace

from .conftest import EXAMPLE, Tool

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = [*EXAMPLE, "--kernel", "saxpy"]
LARGEST_MEMORY = """
import sys
largest = original = 0
for line in open("stdout.log").read().split("\\n"):
    if line.startswith("max memory:"):
        original = max(original, int(line.strip().split(" ")[-1]))
with open(sys.argv[1] + "/event.log", "r", encoding="utf-8", errors="ignore") as f:
    for line in f.read().split("\\n"):
        if line.startswith("[exec] probe-mem"):
            largest = max(largest, int(line.split(" ")[2]))
print(original, largest)
"""
SCHEDULE = """
import sys
header, sections, records = parse(sys.argv[1])
blocks = sorted((block[0][0] for block in records["block_sched"]), key=lambda one: one.start)
running, waiting, resident = {}, {}, {}
for one in blocks:
    slots = resident.setdefault(one.smid, [])
    free = next((slot for slot in slots if slot.start + slot.elapsed <= one.start), None)
    if free is not None:
        waiting[one.smid] = waiting.get(one.smid, 0) + one.start - (free.start + free.elapsed)
        slots.remove(free)
    slots.append(one)
    running[one.smid] = running.get(one.smid, 0) + one.elapsed
mean = sum(running.values()) / len(running)
print(header.gridDimX * header.gridDimY * header.gridDimZ, int(mean), sum(waiting.values()) // len(running))
"""


def program(folder: Path, text: str, *words: str) -> str:
    command = [sys.executable, "-I", "-c", text, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def started(tool: Tool) -> tuple[Tool, subprocess.CompletedProcess[str]]:
    """A program started without the word ``run``, twice: the second time its kernels are in the cache."""
    words = ("-p", "block_sched", "--sim", "--no-report", "--detail", "--tracedir", "block_sched")
    tool(*words, *COMMAND)
    shutil.rmtree(tool.folder / "block_sched")
    return tool, tool(*words, *COMMAND)


def test_three_ways_of_finding_the_trace(started: tuple[Tool, subprocess.CompletedProcess[str]]) -> None:
    tool, done = started
    assert (done.returncode, done.stdout) == (0, "saxpy ok\n")
    first = done.stderr.split("\n")[0].strip().split(" ")[-1]
    last = done.stderr.strip().split(" ")[-1]
    each = [line.strip().split(" ")[-1] for line in done.stderr.split("\n") if len(line) >= 3]
    assert (
        [first]
        == [last]
        == each
        == [str(path.relative_to(tool.folder)) for path in (tool.folder / "block_sched").iterdir()]
    )


def test_memory_files_and_the_reader(started: tuple[Tool, subprocess.CompletedProcess[str]]) -> None:
    tool, done = started
    trace = tool.folder / done.stderr.strip().split(" ")[-1]
    (tool.folder / "stdout.log").write_text("noise\nmax memory: 123 456\nmax memory: 789\n")
    original, largest = map(int, program(tool.folder, LARGEST_MEMORY, str(trace)).split())
    (kernel,) = open_trace(trace).kernels
    assert (original, largest) == (789, kernel.probe_bytes)
    (result,) = (trace / "result").iterdir()
    assert re.fullmatch(r"\d+\.\d{6}\.bin", result.name)
    (folder,) = (trace / "kernel").iterdir()
    assert folder.name.startswith("0_")
    written = (folder / "process.log").read_text()
    assert written.endswith("\n# END OF GENERATED CODE\n")
    reader = re.sub(r".*\n# BEGIN OF GENERATED CODE[^\n]*|# END OF GENERATED CODE\n", "", written, flags=re.DOTALL)
    assert reader.strip() == (trace / "read.py").read_text().strip()


def test_the_reader_in_each_log_counts_as_space_on_the_disk(tool: Tool) -> None:
    _, whole = tool.run(EXAMPLE, "-p", "block_sched")
    files = [path for path in whole.rglob("*") if path.is_file()]
    assert sum("# BEGIN OF GENERATED CODE" in path.read_text() for path in files if path.name == "process.log") > 3
    used = json.loads((whole / "run.json").read_text())["budgets"]["trace_bytes"]["used"]
    there = sum(path.stat().st_blocks * 512 for path in files if path.parent.name != "result")
    assert used >= there - 32768  # event.log grows to the end
    _, bare = tool.run(EXAMPLE, "-p", "block_sched", "--max-trace-bytes", "0")
    assert not any("BEGIN OF" in path.read_text() for path in bare.rglob("process.log"))


def test_the_reader_followed_by_an_analysis(started: tuple[Tool, subprocess.CompletedProcess[str]]) -> None:
    tool, done = started
    trace = tool.folder / done.stderr.strip().split(" ")[-1]
    (result,) = (trace / "result").iterdir()
    reader = (trace / "read.py").read_text().partition('if __name__ == "__main__"')[0]
    blocks, running, _ = map(int, program(tool.folder, reader + SCHEDULE, str(result)).split())
    (kernel,) = open_trace(trace).kernels
    first = kernel.read(result).records(0, RECORD)[:, 0, 0]
    assert blocks == len(first) > 1
    assert running == int(first["elapsed"].sum() / len(set(first["sm"].tolist()))) > 0


def test_the_environment_names_the_folder_of_traces(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEUTRINO_TRACEDIR", "elsewhere")
    done = tool("-p", "block_sched", "--sim", "--no-report", *COMMAND)
    assert done.stderr.split()[-1].startswith("elsewhere/")
    shown = tool("show", "blocks", "--kernel", "0")
    assert (shown.returncode, "SM" in shown.stdout) == (0, True)


def test_a_result_file_stands_for_its_launch(started: tuple[Tool, subprocess.CompletedProcess[str]]) -> None:
    tool, done = started
    trace = done.stderr.strip().split(" ")[-1]
    (result,) = (tool.folder / trace / "result").iterdir()
    named = tool("show", "timeline", f"{trace}/result/{result.name}")
    assert named.returncode == 0
    assert named.stdout == tool("show", "timeline", f"{trace}:0@0").stdout
    gone = tool("show", "timeline", f"{trace}/result/9.000000.bin")
    assert gone.returncode != 0
    assert "Errno" not in gone.stderr


def test_a_picture_is_all_that_stdout_has(started: tuple[Tool, subprocess.CompletedProcess[str]]) -> None:
    pytest.importorskip("matplotlib")
    tool, done = started
    trace = done.stderr.strip().split(" ")[-1]
    shown = tool("show", "blocks", trace, "--png", "blocks.png", "-k", "0")
    assert shown.stdout == "blocks.png\n"
    quiet = [*COMMAND[:-2], "--kernel", "saxpy"]
    ran = tool("-t", "block_sched", "--sim", "--png", "-k", "saxpy", *quiet)
    said, path = ran.stdout.splitlines()
    assert said == "saxpy ok"  # the program's own
    assert (tool.folder / path).read_bytes().startswith(b"\x89PNG")
