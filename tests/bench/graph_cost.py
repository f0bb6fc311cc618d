"""Cost of a CUDA graph's replay on host and device: native, seen, sampled by default, all probed.

    python -m tests.bench.graph_cost [--nodes 100] [--replays 1000] [--repeats 3] [--variants native seen ...] [--sim]

Needs an NVIDIA GPU and a C compiler; ``--sim`` tries it on the simulated GPU, whose values mean nothing. The variants
run in turn, ``--repeats`` times each; ratios are those of medians to the native ones. Most replays of the variant
"sampled" are not: its median is that of replays that are not probed, its mean holds both. "nodes" says of how many
nodes of the graph a launch was recorded, "growth" how much memory the process took from a tenth of its replays to the
last one. For memory over many replays: ``--replays 100000 --repeats 1 --variants native sampled``.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.graphs.cuda_graph import KERNELS
from tui_probe.pages.graph_page import times_by_graph
from tui_probe.trace.follow import open_trace

PROGRAM = Path(__file__).parent.parent / "gpu" / "programs" / "graph_cost.c"
VARIANTS = {
    "native": None,
    "seen": ["-p", "block_sched", "--exclude", "shift"],
    "sampled": ["-p", "block_sched"],
    "probed": ["-p", "block_sched", "--launches", "all", "--max-trace-bytes", "none", "--max-result-files", "none"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--replays", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS), metavar="VARIANT")
    parser.add_argument("--sim", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(["cc", "-O2", "-o", folder / "graph_cost", PROGRAM, "-ldl"], check=True)
        (folder / "kernels.ptx").write_bytes(KERNELS)
        samples: dict[str, dict[str, list[float]]] = {variant: {} for variant in options.variants}
        for _ in range(options.repeats):
            for variant in samples:
                measure(folder, variant, options, samples[variant])
        show(samples, options.nodes)


def measure(folder: Path, variant: str, options: argparse.Namespace, samples: dict[str, list[float]]) -> None:
    """Run the program once, and add its values, in nanoseconds."""
    output, trace = folder / "figures", folder / "trace"
    program = [folder / "graph_cost", folder / "kernels.ptx", options.nodes, options.replays, output]
    arguments = VARIANTS[variant]
    tool: list[object] = []
    if arguments is not None:
        subprocess.run(["rm", "-rf", trace], check=True)
        tool = [sys.executable, "-m", "tui_probe", "run", "--no-report", "--tracedir", trace]
        tool += [*arguments, *(["--sim"] if options.sim else []), "--"]
    command = [str(part) for part in (*tool, *program)]
    environment = simulated() if options.sim and arguments is None else os.environ
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL, env=environment)
    memory = []
    for kind, *values in map(str.split, output.read_text().splitlines()):
        if kind == "replay":
            samples.setdefault("host", []).append(float(values[0]))
            samples.setdefault("gpu", []).append(float(values[1]))
        elif kind == "memory":
            memory.append(float(values[0]))
        elif values != ["0"]:
            raise SystemExit(f"{variant}: the memory is wrong by {values[0]}")
    samples.setdefault("growth", []).append(memory[-1] - memory[0])
    if arguments is not None:
        read_trace(trace, options.replays, samples)


def simulated() -> dict[str, str]:
    """The environment of a program that runs on the simulated GPU by itself."""
    from tui_probe.launcher.driver import native_library

    driver = native_library("sim")
    return {
        **os.environ, "LD_LIBRARY_PATH": str(driver.parent), "TUI_PROBE_SIM_PYTHON": sys.executable,
        "TUI_PROBE_SIM_PYTHONPATH": str(Path(__file__).parents[2]),
    }  # fmt: skip


def read_trace(trace: Path, replays: int, samples: dict[str, list[float]]) -> None:
    """Values of the graph in the trace."""
    (graph,) = times_by_graph(open_trace(trace)).values()
    if graph.graph.replays != replays:
        raise SystemExit(f"{graph.graph.replays} replays are in the trace, of {replays}")
    samples.setdefault("recorded", []).append(sum(node.probed_count > 0 for node in graph.nodes))
    samples.setdefault("probed", []).append(graph.graph.replays_probed)


def show(samples: dict[str, dict[str, list[float]]], nodes: int) -> None:
    """The table: microseconds, and ratios to native where that was measured."""
    print(f"{'replay':<10}{'host us':>9}{'ratio':>8}{'of means':>10}{'gpu us':>10}{'ratio':>8}{'of means':>10}"
          f"{'probed':>8}{'nodes':>10}{'growth kB':>11}")  # fmt: skip
    native = samples.get("native")
    for variant, kinds in samples.items():
        cells = ""
        for kind, width in (("host", 9), ("gpu", 10)):
            cells += f"{statistics.median(kinds[kind]) / 1e3:>{width}.2f}"
            for form, room in ((statistics.median, 8), (statistics.fmean, 10)):
                cells += f"{form(kinds[kind]) / form(native[kind]):>{room}.3f}" if native else f"{'-':>{room}}"
        recorded = f"{min(kinds['recorded']):.0f}/{nodes}" if "recorded" in kinds else "-"
        probed = f"{statistics.median(kinds['probed']):.0f}" if "probed" in kinds else "-"
        print(f"{variant:<10}{cells}{probed:>8}{recorded:>10}{max(kinds['growth']):>11.0f}")


if __name__ == "__main__":
    main()
