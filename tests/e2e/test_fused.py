"""Kernels that are launched once, with several probes: counts of all, and why the others have none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.conftest import EXAMPLE, Tool
from tui_probe.trace.follow import open_trace

COUNTING = ("gmem_sectors_by_line", "smem_conflicts")
TIMING = "block_sched"
PROBES = (COUNTING[0], TIMING, COUNTING[1])
KERNELS = ("strided_store", "reduction")
COMMAND = [*EXAMPLE, *(word for name in KERNELS for word in ("--kernel", name))]


def results(trace: Path) -> dict[tuple[str, str], bytes]:
    """The bytes of each result, by kernel and probe; of a run with one probe its name is ""."""
    return {
        (kernel.name, probed.probe or ""): path.read_bytes()
        for kernel in open_trace(trace).kernels
        for probed in kernel.by_probe()
        for path in probed.results
    }


def run(tool: Tool, *options: str) -> tuple[str, Path]:
    done, trace = tool.run(COMMAND, *options)
    assert done.returncode == 0, done.stderr
    return done.stdout, trace


def chosen(*probes: str) -> list[str]:
    return [word for probe in probes for word in ("-p", probe)]


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory, natives: Path) -> Tool:
    return Tool(tmp_path_factory.mktemp("fused"), natives)


@pytest.fixture(scope="module")
def single_runs(tool: Tool) -> dict[tuple[str, str], bytes]:
    """Results of runs with one probe each, named as in a run of all."""
    by_probe = {probe: results(run(tool, "-p", probe)[1]) for probe in PROBES}
    return {(kernel, probe): data for probe, found in by_probe.items() for (kernel, _), data in found.items()}


@pytest.fixture(scope="module")
def fused(tool: Tool) -> Path:
    output, trace = run(tool, *chosen(*PROBES))
    assert output == tool.unprofiled(*COMMAND).stdout
    return trace


def test_single_launch_has_the_results_of_all_counting_probes(
    fused: Path, single_runs: dict[tuple[str, str], bytes]
) -> None:
    assert results(fused) == {named: data for named, data in single_runs.items() if named[1] in COUNTING}


def test_replay_has_the_results_of_all_probes(tool: Tool, single_runs: dict[tuple[str, str], bytes]) -> None:
    output, trace = run(tool, "--replay", *chosen(*PROBES))
    assert output == tool.unprofiled(*COMMAND).stdout
    replayed = results(trace)
    assert replayed.keys() == single_runs.keys()
    assert {named: data for named, data in replayed.items() if named[1] in COUNTING} == {
        named: data for named, data in single_runs.items() if named[1] in COUNTING
    }
    document = json.loads(tool("report", str(trace), "--format", "json").stdout)
    assert document["run"]["probes_not_measured"] == []


def test_report_names_the_command_that_measures_all_probes(tool: Tool, fused: Path) -> None:
    shown = tool("report", str(fused))
    text = " ".join(shown.stdout.replace("\\\n", " ").split())
    assert f"not measured by -p {TIMING}: every kernel ran once, with other probes" in text
    command = f"tui-probe run --sim --replay {' '.join(chosen(*PROBES))} --"
    assert f"to measure each kernel with all probes: {command}" in text
    document = json.loads(tool("report", str(fused), "--format", "json").stdout)
    for kernel in document["kernels"]:
        assert [probe["probe"] for probe in kernel["probes"] if probe["not_measured"]] == [TIMING]


def test_question_of_a_probe_without_results_stays_open(tool: Tool, fused: Path) -> None:
    summary = tool("show", "summary", f"{fused}:0").stdout
    assert f"{TIMING}: unprobed" in summary
    assert f"-p {TIMING}" in summary.partition("further questions")[2]
