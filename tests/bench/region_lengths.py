"""Compare the lengths of named regions as ``-p phases``, Proton and IKET measure them, and what each costs, on a GPU.

    python -m tests.bench.region_lengths [PROGRAM ...]

The programs are ``gluon_regions`` and ``triton_regions``, which name their regions for Proton, and ``cute_regions``,
which names them for IKET of CuTe DSL. Both tools instrument the regions when the kernel is compiled; tui-probe is given
the same source lines with ``--phase``. Each program runs three times: plain, under its own tool, under tui-probe.
Printed are the mean cycles of a warp in each region and the kernel times. Goal: regions of more than 200 cycles agree
within 5 %, and the slowdown is below that of the other tool.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pynvml

from tui_probe.probekit.measured import analyse_result
from tui_probe.trace.follow import open_trace

if TYPE_CHECKING:
    from collections.abc import Mapping

_PROGRAMS: Final = Path(__file__).parent / "programs"
_DEFAULT: Final = ("gluon_regions", "triton_regions")
_IKET: Final = frozenset({"cute_regions"})
"""Programs whose regions are named for IKET."""
_CYCLES_PER_MICROSECOND: Final = 1000
"""Of Proton's traces, which state cycles as if the clock were 1 GHz."""
_SCOPE: Final = re.compile(r'^( *)(with )?(?:pl\.(?:enter_)?scope|iket\.range_push)\("(\w+)"\)')


def region_lines(source: str) -> dict[str, tuple[int, int]]:
    """Return first and last source line of each region: the body of ``with``, or the lines from enter to exit."""
    lines = source.splitlines()
    regions = {}
    for number, line in enumerate(lines, 1):
        if scope := _SCOPE.match(line):
            indent, block, name = scope.groups()
            inside = f"{indent} " if block else indent
            last = next(at for at in range(number, len(lines)) if ends_region(lines[at], inside))
            regions[name] = number + 1, last
    return regions


def ends_region(line: str, inside: str) -> bool:
    """Return whether a line is the first behind a region, whose lines begin with ``inside``."""
    return not line.startswith(inside) or "exit_scope" in line or "range_pop" in line


def proton_cycles(trace: Path, launches: int) -> dict[str, float]:
    """Return the mean cycles of a warp of a launch in each region of Proton's trace, which has all launches."""
    cycles: dict[str, float] = defaultdict(float)
    warps: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for event in json.loads(trace.read_text())["traceEvents"]:
        if event.get("ph") == "X":
            cycles[event["name"]] += event["dur"] * _CYCLES_PER_MICROSECOND
            warps[event["name"]].add((event["pid"], event["tid"]))
    return {name: cycles[name] / len(warps[name]) / launches for name in cycles}


def iket_launches(trace: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the launches of the kernel in IKET's trace, and the names of its regions."""
    recorded = json.loads(trace.read_text())
    return [launch for launch in recorded["launches"] if "region_" in launch["kernelName"]], recorded["stringTable"]


def iket_times(launches: list[dict[str, Any]]) -> list[float]:
    """Return the time from the first start to the last end of a region in each launch, in microseconds."""
    starts, ends = (
        [[region[side] for region in launch["ranges"]] for launch in launches] for side in ("startTs", "endTs")
    )
    return [(max(last) - min(first)) / 1e3 for first, last in zip(starts, ends, strict=True)]


def iket_cycles(launches: list[dict[str, Any]], names: list[str], megahertz: float) -> dict[str, float]:
    """Return the mean cycles of a warp of a launch in each region of IKET's trace, which has nanoseconds.

    The nanoseconds are those of the global timer, which advances in steps of 32: only means are of use.
    """
    cycles: dict[str, float] = defaultdict(float)
    for launch in launches:
        warps = math.prod(launch[f"{of}Dim{axis}"] for of in ("grid", "block") for axis in "XYZ") / 32
        for region in launch["ranges"]:
            nanoseconds = region["endTs"] - region["startTs"]
            cycles[names[region["rangeNameIdx"]]] += nanoseconds * megahertz / 1e3 / warps / len(launches)
    return dict(cycles)


def clock_in_megahertz() -> float:
    """Return the highest SM clock of the first GPU, at which these short kernels run."""
    pynvml.nvmlInit()
    return float(pynvml.nvmlDeviceGetMaxClockInfo(pynvml.nvmlDeviceGetHandleByIndex(0), pynvml.NVML_CLOCK_SM))


def probe_cycles(trace: Path) -> dict[str, float]:
    """Return the mean cycles of a warp in each region of the probed launches."""
    (kernel,) = (kernel for kernel in open_trace(trace).kernels if kernel.status == "probed")
    lengths: dict[str, list[float]] = defaultdict(list)
    for probed in kernel.by_probe():
        for row in probed.result_rows:
            launch = analyse_result(probed.trace, probed, row).analysis
            inside = launch.spans.where(launch.spans.phase >= 0)
            cycles = np.bincount(inside.phase, inside.cycles, len(launch.phases))
            for phase, own in zip(launch.phases, cycles.tolist(), strict=True):
                if not phase.is_other:
                    lengths[phase.work].append(own / len(launch.warps.block))
    return {name: statistics.mean(own) for name, own in lengths.items()}


def ran(command: list[str], cwd: Path, *, timed: bool = True) -> list[float]:
    """Run a program; return the times of its kernels in microseconds. Without ``timed`` there may be none."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    times = re.search(r"^us ?(.*)$", done.stdout, re.MULTILINE)
    if times is None or (timed and not times[1]) or "close True" not in done.stdout:
        sys.exit(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return [float(time) for time in times[1].split()]


def in_other_tool(program: Path, folder: Path) -> tuple[list[float], dict[str, float]]:
    """Run a program under the tool that it names its regions for; return kernel times, and cycles by region."""
    if program.stem in _IKET:
        start = "from iket.cli.main import entrypoint; entrypoint()"
        recorder = [sys.executable, "-c", start, "-o", str(folder / "iket"), "profile", "--postprocess", "json", "--"]
        ran([*recorder, sys.executable, str(program), "iket"], folder, timed=False)
        (trace,) = (folder / "iket").glob("*.trace.json")
        launches, names = iket_launches(trace)
        return iket_times(launches), iket_cycles(launches, names, clock_in_megahertz())
    times = ran([sys.executable, str(program), "proton", str(folder)], folder)
    (trace,) = folder.glob("proton*")
    return times, proton_cycles(trace, len(times))


def compare(program: Path) -> None:
    """Measure one program in the three ways, and print a table."""
    tool = "IKET" if program.stem in _IKET else "Proton"
    regions = region_lines(program.read_text())
    with tempfile.TemporaryDirectory(prefix="regions-") as name:
        folder = Path(name)
        plain = ran([sys.executable, str(program), "plain"], folder)
        others, cycles = in_other_tool(program, folder)
        options = [f"--phase={key}={program.name}:{first}-{last}" for key, (first, last) in regions.items()]
        profiled = [sys.executable, "-m", "tui_probe", "run", "--no-report", "--wait", "--launches", "all"]
        profiled += ["--tracedir", "traces", "-k", "region_", *options, "--", sys.executable, str(program), "plain"]
        probed = ran(profiled, folder)
        (own,) = (folder / "traces").iterdir()
        print_table(
            f"{program.stem}: mean cycles of a warp",
            tool,
            {name: cycles.get(name) for name in regions},
            probe_cycles(own),
        )
    print(f"  kernel, least: plain {min(plain):.1f} us, {tool} {min(others) / min(plain):.2f}x, ", end="")
    print(f"tui-probe {min(probed) / min(plain):.2f}x\n")


def print_table(title: str, tool: str, others: Mapping[str, float | None], own: Mapping[str, float]) -> None:
    """Print the mean cycles of a warp in each region, and how far ours are from those of the other tool."""
    print(title)
    for region, other in others.items():
        both = other, own.get(region)
        shown = ["–" if cycles is None else f"{cycles:10.0f}" for cycles in both]
        apart = "–" if both[0] is None or both[1] is None else f"{both[1] / both[0] - 1:+.1%}"
        print(f"  {region:10} {tool} {shown[0]:>10}  tui-probe {shown[1]:>10}  {apart}")


def main() -> None:
    """Compare the programs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("programs", nargs="*", default=list(_DEFAULT), metavar="PROGRAM")
    for name in parser.parse_args().programs:
        compare(_PROGRAMS / f"{name}.py")


if __name__ == "__main__":
    main()
