"""``run -p A -p B``: from the command line to the pages of one trace, on the simulated GPU."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tui_probe
from tests.e2e.conftest import EXAMPLE, Tool
from tui_probe.pages.run_report import bounds_section
from tui_probe.pages.views import kind_of
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.trace.follow import open_trace
from tui_probe.verdicts.findings import findings_by_probe
from tui_probe.verdicts.run_findings import kernel_bounds

PROBES = ("block_sched", "gmem_sectors", "dmat:1/2", "inst_mix_by_line")
NAMES = [probe.partition(":")[0] for probe in PROBES]
COUNTING = ["gmem_sectors", "inst_mix_by_line"]
RESULTS = [*COUNTING, "block_sched", "dmat", *COUNTING, "block_sched", "dmat", *COUNTING, "block_sched"]
"""The probes of the results of eight launches: counting probes share one, the sampled one is not a part of that."""
CHOSEN = [word for probe in PROBES for word in ("-p", probe)]


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory, natives: Path) -> tuple[Tool, Path]:
    """The trace of eight launches of one kernel."""
    tool = Tool(tmp_path_factory.mktemp("several"), natives)
    command = [*EXAMPLE, "--kernel", "saxpy", "--repeat", "8"]
    run, trace = tool.run(command, *CHOSEN, "--name", "several")
    assert (run.returncode, run.stdout) == (0, tool.unprofiled(*command).stdout)
    return tool, trace


def page(tool: Tool, trace: Path, *words: str) -> Any:
    shown = tool("report", str(trace), *words, "--format", "json")
    assert shown.returncode == 0, shown.stderr
    return json.loads(shown.stdout)


def test_each_probe_has_a_folder_and_its_results(several: tuple[Tool, Path]) -> None:
    _, trace = several
    (kernel,) = open_trace(trace).kernels
    assert list(kernel.named_probes) == NAMES
    results = open_trace(trace).results
    assert [results.probe(row) for row in kernel.result_rows] == RESULTS
    for probed in kernel.by_probe():
        assert (probed.status, len(probed.result_rows)) == ("probed", RESULTS.count(str(probed.probe)))
        assert probed.folder is not None
        assert probed.folder.name == probed.probe
        assert probed.file("kernel.info")
        assert probed.file("original.ptx") == probed.folder.parent / "original.ptx"
    assert sorted(path.name for path in (trace / "probes").iterdir()) == sorted(f"{name}.toml" for name in NAMES)


def test_run_json_names_all(several: tuple[Tool, Path]) -> None:
    _, trace = several
    record = json.loads((trace / "run.json").read_text())
    assert [(probe["name"], probe["sample"]) for probe in record["probes"]] == [
        (name, "1/2" if name == "dmat" else None) for name in NAMES
    ]
    info = open_trace(trace).run_info
    assert info is not None
    assert info.probes == tuple(NAMES)
    assert info.name == "several"


def names_launch(page: str, number: int) -> bool:
    """Return whether the page of a launch names it: in its title, or in the column of launches."""
    return (
        f"launch {number}" in page or re.search(rf"^launch .*\n─.*\n( +\d+ .*\n)* +{number} ", page, re.M) is not None
    )


@pytest.mark.parametrize(
    ("name", "probe"),
    [("blocks", "block_sched"), ("timeline", "block_sched"), ("sectors", "gmem_sectors"), ("dmat", "dmat")],
)
def test_every_page_is_filled_by_the_probe_that_it_needs(several: tuple[Tool, Path], name: str, probe: str) -> None:
    tool, trace = several
    read = open_trace(trace)
    (kernel,) = read.kernels
    assert kind_of(name).missing_reason(ViewSource(read, kernel)) is None
    shown = tool("show", name, str(trace) + ":0")
    assert (shown.returncode, shown.stderr) == (0, "")
    newest = kernel.named_probes[probe].result_rows[-1]
    launch = read.results.launch(newest)
    assert launch is not None
    assert names_launch(shown.stdout, read.launches[launch].number)


def test_a_launch_that_had_another_probe_gives_way_to_the_nearest(several: tuple[Tool, Path]) -> None:
    tool, trace = several
    had = tool("show", "sectors", f"{trace}:0@6")
    assert (had.returncode, had.stderr) == (0, "")
    other = tool("show", "sectors", f"{trace}:0@5")
    assert other.returncode == 0
    assert "launch 5 had another probe; showing launch 6, the nearest launch with this probe" in other.stderr
    assert other.stdout == had.stdout


@pytest.mark.parametrize("name", ["sectors", "lines"])
def test_launch_of_a_fused_kernel_has_the_pages_of_all_its_probes(several: tuple[Tool, Path], name: str) -> None:
    tool, trace = several
    shown = tool("show", name, f"{trace}:0@3")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert names_launch(shown.stdout, 3)
    row = next(row for row in page(tool, trace, "--page", "launches")["launches"] if row["launch"] == 3)
    assert row["probe"] == "gmem_sectors, inst_mix_by_line"


def test_the_summary_has_the_findings_of_all(several: tuple[Tool, Path]) -> None:
    tool, trace = several
    read = open_trace(trace)
    (kernel,) = read.kernels
    assert [found.probe for found in findings_by_probe(ViewSource(read, kernel))] == NAMES
    text = tool("report", str(trace), "--page", "summary").stdout
    for name in NAMES:
        assert f"by -p {name}" in text
    asked = text.partition("further questions")[2]
    assert not [name for name in NAMES if f"-p {name} " in asked]
    rows = page(tool, trace, "--page", "summary")["summary"]
    assert {row["probe"] for row in rows} == set(NAMES)


def test_results_say_which_probe_they_are_of(several: tuple[Tool, Path]) -> None:
    tool, trace = several
    rows = page(tool, trace, "--page", "results")["results"]
    by_probe = {row["probe"]: row["launch"] % 3 for row in rows}
    assert by_probe == {"gmem_sectors": 0, "inst_mix_by_line": 0, "block_sched": 1, "dmat": 2}
    assert not [row for row in rows if row["problem"]]


def test_the_python_interface_knows_the_probe_of_a_result(several: tuple[Tool, Path]) -> None:
    (kernel,) = tui_probe.open(several[1]).kernels
    assert [result.probe for result in kernel.results] == RESULTS
    assert [next(iter(result.maps)) for result in kernel.results][:3:2] == ["gmem_sectors", "block_sched"]
    assert len(kernel.metrics()["store_sectors"]) == len(RESULTS)


def test_read_py_reads_the_results_of_all(several: tuple[Tool, Path]) -> None:
    _, trace = several
    files = sorted((trace / "result").iterdir())
    done = subprocess.run([sys.executable, "-I", trace / "read.py", *files], capture_output=True, text=True, check=True)
    for name in ("block_sched", "gmem_sectors", "dmat"):
        assert f"  {name}: " in done.stdout


def test_compare_has_the_figures_of_all_probes(several: tuple[Tool, Path]) -> None:
    tool, trace = several
    shown = tool("compare", str(trace), str(trace), "--format", "json")
    keys = {row["figure"] for row in json.loads(shown.stdout)["figures"]}
    assert {"span_cycles", "store_sectors", "accesses"} <= keys


def test_a_survey_says_which_kernels_matter_and_what_bounds_each(tmp_path: Path, natives: Path) -> None:
    tool = Tool(tmp_path, natives)
    command = [*EXAMPLE, "--kernel", "saxpy", "--kernel", "matmul", "--repeat", "6"]
    done = tool("run", "--sim", "-p", "survey", "--", *command)
    assert done.returncode == 0, done.stderr
    title = "Kernels by share of launch cycles (modeled), and what bounds each\n"
    section = done.stdout.partition(title)[2].partition("\n\n")[0]
    heads = [line.split() for line in section.splitlines() if "#" in line]
    assert [words[2] for words in heads] == ["matmul", "saxpy"]
    assert 99 <= sum(int(words[0].rstrip("%")) for words in heads) <= 101
    assert section.count("limited by: – no times on a simulated GPU; from counts, mem") == 2
    assert section.count("sectors each") == 2
    assert "shares are relative to the cycles of all launches (modeled)" in section
    assert not [line for line in done.stdout.splitlines() if "sectors each" in line and line not in section]


def test_a_report_without_shares_says_what_would_give_them(tmp_path: Path, natives: Path) -> None:
    tool = Tool(tmp_path, natives)
    done = tool("run", "--sim", "-p", "what_limits", "--", *EXAMPLE, "--kernel", "saxpy")
    wanted = "run with a probe that counts launch cycles"
    assert f"no shares: the simulated GPU has no times; {wanted}\n" in done.stdout
    (log,) = tmp_path.glob("trace/*/event.log")
    trace = open_trace(log.parent)
    trace.state.simulated = False
    assert trace.run_info is not None
    for times, also in ((True, ""), (False, ", or remove --no-times")):
        trace.run_info.options["times"] = times
        assert f"no shares: {wanted}{also}" in bounds_section(trace, kernel_bounds(trace), 100)


def test_survey_and_stalls_on_the_simulated_gpu_give_results_or_reasons(tmp_path: Path, natives: Path) -> None:
    tool = Tool(tmp_path, natives)
    command = [*EXAMPLE, "--kernel", "saxpy", "--repeat", "8"]
    done = tool("run", "--sim", "-p", "survey", "-p", "stalls", "--", *command)
    text = " ".join(done.stdout.split())
    groups = ", ".join(["stall_sites", *(f"stall_sites_{number}" for number in range(2, 9))])
    reason = "stall_sites measures SASS, but the image has no SASS for this GPU; the simulated GPU executes only PTX"
    assert f"not measured by -p {groups}: every kernel ran without the probe: {reason}" in text
    (log,) = tmp_path.glob("trace/*/event.log")
    (kernel,) = open_trace(log.parent).kernels
    for probed in kernel.by_probe():
        assert probed.result_rows if not str(probed.probe).startswith("stall") else probed.reason_code == "needs-sass"


def test_benchmark_runs_kernels_with_each_probe_by_itself(tmp_path: Path, natives: Path) -> None:
    tool = Tool(tmp_path, natives)
    kernels = ("--kernel", "zero_fill", "--kernel", "saxpy")
    done = tool("run", "--sim", "--benchmark", *CHOSEN, "--", *EXAMPLE, *kernels)
    assert done.returncode == 0
    (log,) = tmp_path.glob("trace/*/event.log")
    timed = re.findall(r"^\[benchmark\] prologue .* kernel 0 launch 0 probe (\S+)$", log.read_text(), re.MULTILINE)
    assert len(timed) == 5
    assert len(set(timed)) == 1
