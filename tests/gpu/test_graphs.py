"""CUDA graphs on a real GPU: programs do the same, every replay is seen, and kernel nodes are probed."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median

import pytest

import tests.graphs.programs
from tests.graphs.cuda_graph import KERNELS
from tui_probe.pages.graph_page import times_by_graph
from tui_probe.trace.follow import open_trace
from tui_probe.trace.model import Trace

from .conftest import PROGRAMS, Profiled, Runner

ROOT = Path(__file__).parents[2]
BY_HAND = Path(tests.graphs.programs.__path__[0])
FRAMEWORKS = {
    "compiled_graph": "torch",
    "llama_graph": "torch",
    "graphed_callables": "torch",
    "nccl_graph": "torch",
    "cupy_graph": "cupy",
    "jax_graph": "jax",
}


@pytest.fixture(autouse=True)
def _programs_find_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{os.environ.get('PYTHONPATH', '')}".rstrip(":"))


def print_replays(trace: Trace, name: str) -> None:
    """One line for each graph, for the values that are kept next to the code."""
    for graph_times in times_by_graph(trace).values():
        graph = graph_times.graph
        kernels = [node for node in graph_times.nodes if node.node.kernel is not None]
        recorded = sum(node.probed_count > 0 for node in kernels)
        print(f"GPU-GRAPH\t{name}\t{graph.id}\t{len(graph.nodes)} nodes\t{recorded}/{len(kernels)} recorded\t"
              f"{graph.replays_probed}/{graph.replays} replays"
              f" probed\t{graph_times.replay_ns}\t{graph_times.probed_ns}\t{graph_times.call_ns}"
              f"\t{graph.reason.written if graph.reason else '-'}")  # fmt: skip


def compare(runner: Runner, command: list[str], name: str, *options: str) -> Trace:
    """Run a program unprofiled and under the tool; it must do the same."""
    unprofiled = runner.unprofiled(command)
    assert unprofiled.status == 0, unprofiled.stderr
    profiled: Profiled = runner.profiled(command, *options)
    assert (profiled.outcome.status, profiled.outcome.stdout) == (unprofiled.status, unprofiled.stdout), (
        profiled.outcome.stderr
    )
    trace = open_trace(profiled.trace)
    print_replays(trace, name)
    return trace


def assert_all_recorded(trace: Trace) -> None:
    """Every node whose kernel has a probe has a record, in graphs that were replayed and can have a variant."""
    for graph_times in times_by_graph(trace).values():
        if not graph_times.graph.replays or graph_times.graph.reason is not None:
            continue
        for node in graph_times.nodes:
            kernel = trace.kernels.get(node.node.kernel) if node.node.kernel is not None else None
            if kernel is not None and kernel.status == "probed":
                assert node.probed_count, f"node {node.node.index} of graph {graph_times.graph.id}: {kernel.name}"


@pytest.mark.parametrize("part", ["kinds", "memory", "changed", "updated", "streams"])
def test_graphs_made_by_hand(part: str, runner: Runner) -> None:
    trace = compare(runner, [sys.executable, str(BY_HAND / "each_node.py"), part], part, "-p", "block_sched")
    assert len(trace.graphs)
    assert_all_recorded(trace)
    reasons = {graph.reason.code for graph in trace.graphs if graph.reason}
    assert reasons == ({"graph-node-once"} if part == "memory" else set())


def test_captured_streams(runner: Runner) -> None:
    trace = compare(runner, [sys.executable, str(BY_HAND / "captured.py"), "50", "20"], "captured", "-p", "block_sched")
    (graph,) = trace.graphs
    assert (graph.replays, graph.replays_probed) == (50, 50)
    assert_all_recorded(trace)


def test_several_probes_take_turns(runner: Runner) -> None:
    command = [sys.executable, str(BY_HAND / "captured.py"), "50", "20"]
    compare(runner, command, "captured", "-p", "block_sched", "-p", "gmem_bytes", "-p", "dmat")


@pytest.mark.parametrize("options", [["--launches", "all"], ["--launches", "auto"]], ids=["all", "auto"])
def test_random_walks(options: list[str], runner: Runner) -> None:
    command = [sys.executable, str(BY_HAND / "walk.py"), "1", "50"]
    trace = compare(runner, command, "walk", "-p", "block_sched", *options)
    assert sum(graph.replays_probed for graph in trace.graphs) > 50


@pytest.mark.parametrize("ways", ["auto", "all"])
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_frameworks(name: str, ways: str, runner: Runner) -> None:
    """Nodes of closed libraries are among those recorded where SASS is probed, too."""
    if importlib.util.find_spec(FRAMEWORKS[name]) is None:
        pytest.skip(f"{FRAMEWORKS[name]} is not installed")
    command = [sys.executable, str(PROGRAMS / f"{name}.py")]
    trace = compare(runner, command, f"{name} {ways}", "-p", "block_sched", "--machine-code", ways)
    assert sum(graph.replays for graph in trace.graphs) > 0
    assert_all_recorded(trace)


def test_compute_sanitizer_finds_nothing(runner: Runner) -> None:
    """In a process with the tool's library, of a C program that replays a graph."""
    checker = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")
    if checker is None:
        pytest.skip("no compute-sanitizer on this machine")
    subprocess.run(
        ["cc", "-O2", "-o", str(runner.folder / "graph_cost"), str(PROGRAMS / "graph_cost.c"), "-ldl"], check=True
    )
    (runner.folder / "kernels.ptx").write_bytes(KERNELS)
    # Before 13.1 the driver has no count of a kernel's parameters, so the one beyond the last is asked for.
    options = ["--error-exitcode", "9", "--report-api-errors", "no"]
    program = [checker, *options, "./graph_cost", "kernels.ptx", "20", "30", "figures"]
    profiled = runner.profiled(program, "-p", "block_sched")
    assert profiled.outcome.status == 0, profiled.outcome.stdout
    assert "0 errors" in profiled.outcome.stdout + profiled.outcome.stderr


TIMED = r"^\[time\] launch (\d+) kernel \d+ key (\d+) original ns (\d+) for"


@pytest.mark.exclusive
def test_nodes_take_the_time_that_launches_take(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each shape of each kernel, launched by itself first. On an H100 events between kernels of a graph add 1 to 5
    us to each, so they have to be asked for.
    """
    pytest.importorskip("torch")
    monkeypatch.setenv("TUI_PROBE_GRAPHS", "timed")
    options = ("--launches", "auto", "--machine-code", "all")
    trace = compare(runner, [sys.executable, str(PROGRAMS / "graph_times.py")], "graph_times", *options)
    (graph,) = (graph for graph in trace.graphs if graph.replays)
    first = min(replay.first_launch for replay in graph.logged_replays)
    times: defaultdict[int, dict[bool, list[int]]] = defaultdict(lambda: {False: [], True: []})
    node_times = re.findall(TIMED, (trace.directory / "event.log").read_text(), re.MULTILINE)
    for launch, key, ns in node_times:
        times[int(key)][int(launch) >= first].append(int(ns))
    both = {key: {kind: median(of[kind]) for kind in of} for key, of in times.items() if all(of.values())}
    print(*(f"GPU-NODE-TIMES\tkey {key}\t{of[False]}\t{of[True]}" for key, of in both.items()), sep="\n")
    assert len(both) >= 3
    within = sum(of[True] for of in both.values())
    print(f"GPU-NODE-TIMES\ta replay {graph.mean_ns(probed=False)}, its kernels {within}")
