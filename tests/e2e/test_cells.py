"""Scripts written for traces of this format, cell by cell: what they call, where they look, and what they count.

Each cell is rebuilt here from what it relies on, and run as a program that sees the trace and nothing of tui-probe.
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

from .conftest import EXAMPLE, SAXPY, Tool

if TYPE_CHECKING:
    from pathlib import Path

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
blocks = sorted((saved[0][0] for saved in records["block_sched"]), key=lambda block: block.start)
running, waiting, resident = {}, {}, {}
for block in blocks:
    slots = resident.setdefault(block.smid, [])
    free = next((slot for slot in slots if slot.start + slot.elapsed <= block.start), None)
    if free is not None:
        waiting[block.smid] = waiting.get(block.smid, 0) + block.start - (free.start + free.elapsed)
        slots.remove(free)
    slots.append(block)
    running[block.smid] = running.get(block.smid, 0) + block.elapsed
mean = sum(running.values()) / len(running)
print(header.gridDimX * header.gridDimY * header.gridDimZ, int(mean), sum(waiting.values()) // len(running))
"""


def program(folder: Path, text: str, *words: str) -> str:
    command = [sys.executable, "-I", "-c", text, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, natives: Path) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A program started without the word ``run``, twice: the second time its kernels are in the cache."""
    tool = Tool(tmp_path_factory.mktemp("started"), natives)
    options = ("-p", "block_sched", "--sim", "--no-report", "--detail", "--tracedir", "block_sched")
    tool(*options, *SAXPY)
    shutil.rmtree(tool.folder / "block_sched")
    return tool.folder, tool(*options, *SAXPY)


@pytest.fixture
def started(
    tool: Tool, recorded: tuple[Path, subprocess.CompletedProcess[str]]
) -> tuple[Tool, subprocess.CompletedProcess[str]]:
    """Return a copy of the program's trace, for one test only."""
    folder, done = recorded
    shutil.copytree(folder, tool.folder, dirs_exist_ok=True)
    return tool, done


def test_three_ways_of_finding_the_trace(started: tuple[Tool, subprocess.CompletedProcess[str]]) -> None:
    tool, done = started
    assert (done.returncode, done.stdout) == (0, "saxpy ok\n")
    first = done.stderr.split("\n")[0].strip().split(" ")[-1]
    last = done.stderr.strip().split(" ")[-1]
    last_words = [line.strip().split(" ")[-1] for line in done.stderr.split("\n") if len(line) >= 3]
    assert (
        [first]
        == [last]
        == last_words
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
    _, unsampled = tool.run(EXAMPLE, "-p", "block_sched")
    files = [path for path in unsampled.rglob("*") if path.is_file()]
    assert sum("# BEGIN OF GENERATED CODE" in path.read_text() for path in files if path.name == "process.log") > 3
    used = json.loads((unsampled / "run.json").read_text())["budgets"]["trace_bytes"]["used"]
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
    first = kernel.read_result_file(result).records(0, RECORD)[:, 0, 0]
    assert blocks == len(first) > 1
    assert running == int(first["elapsed"].sum() / len(set(first["sm"].tolist()))) > 0


COLLECT = """
import os, shutil, subprocess, sys
res = subprocess.run(sys.argv[1:], stderr=subprocess.PIPE, stdout=subprocess.PIPE)
os.makedirs("max_mem/net/block_sched/layer")
for tracedir in res.stderr.decode().split("\\n"):
    if len(tracedir) < 3: continue
    tracedir = tracedir.strip().split(" ")[-1]
    shutil.copytree(tracedir, os.path.join("max_mem/net/block_sched/layer", os.path.basename(tracedir)))
with open("max_mem/net/block_sched/layer/stdout.log", "w") as f:
    f.write(res.stdout.decode())
"""
LARGEST_OF_ALL = """
import os
for model in os.listdir("max_mem"):
    for test in os.listdir(os.path.join("max_mem", model)):
        max_mem = original = 0
        for sub in os.listdir(os.path.join("max_mem", model, test)):
            path = os.path.join("max_mem", model, test, sub)
            for line in open(os.path.join(path, "stdout.log")).read().split("\\n"):
                if line.startswith("max memory:"):
                    original = max(original, int(line.strip().split(" ")[-1]))
                    break
            for trace in [trace for trace in os.listdir(path) if os.path.isdir(os.path.join(path, trace))]:
                log = os.path.join(path, trace, "event.log")
                for line in open(log, "r", encoding="utf-8", errors="ignore").read().split("\\n"):
                    if line.startswith("[exec] probe-mem"):
                        max_mem = max(max_mem, int(line.split(" ")[2]))
        print(model, test, original, max_mem)
"""
FIRST_OF_EACH = """
import os, sys
tracedir = os.listdir("trace")[-1]
trace = os.path.join("trace", tracedir, "result")
kernel_dir = os.listdir(f"trace/{tracedir}/kernel")[0]
log = open(f"trace/{tracedir}/kernel/{kernel_dir}/process.log").read()
reader = log[log.index("# BEGIN OF GENERATED CODE"):log.index("# END OF GENERATED CODE")]
print(os.path.join(trace, os.listdir(trace)[0]))
print(reader.replace('if __name__ == "__main__":', "if False:"))
"""


def test_a_study_of_several_processes_is_collected_and_counted(tool: Tool) -> None:
    """Each line of stderr is a trace to be copied; a name that came twice, or that is not there, would end it."""
    two = "import subprocess, sys; [subprocess.run([*sys.argv[1:], '--kernel', k]) for k in ('saxpy', 'zero_fill')]"
    argv = ["-p", "block_sched", "--sim", "--no-report", sys.executable, "-c", f"{two}; print('max memory: 4096')"]
    command = [sys.executable, "-m", "tui_probe", *argv, *EXAMPLE]
    done = subprocess.run(
        [sys.executable, "-c", COLLECT, *command], cwd=tool.folder, env=tool.environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    kernels = [kernel for path in tool.folder.glob("max_mem/*/*/*/*/") for kernel in open_trace(path).kernels]
    largest = max(kernel.probe_bytes or 0 for kernel in kernels)
    assert len(kernels) == 2
    assert program(tool.folder, LARGEST_OF_ALL) == f"net block_sched 4096 {largest}"


def test_the_reader_of_a_log_is_followed_by_an_analysis(tool: Tool) -> None:
    tool("-p", "block_sched", "--sim", "--no-report", "--detail", *SAXPY)
    result, _, reader = program(tool.folder, FIRST_OF_EACH).partition("\n")
    blocks, running, waiting = map(int, program(tool.folder, f"{reader}\n{SCHEDULE}", result).split())
    assert blocks > 1
    assert running > 0
    assert waiting >= 0


def test_the_environment_names_the_folder_of_traces(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEUTRINO_TRACEDIR", "elsewhere")
    done = tool("-p", "block_sched", "--sim", "--no-report", *SAXPY)
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
    ran = tool("-t", "block_sched", "--sim", "--png", "-k", "saxpy", *SAXPY)
    said, path = ran.stdout.splitlines()
    assert said == "saxpy ok"  # the program's own
    assert (tool.folder / path).read_bytes().startswith(b"\x89PNG")
