"""Verdicts next to those of Nsight Compute, on kernels of different kinds.

    python -m tests.bench.verdicts [--arch 90] [--keep FOLDER] [--bandwidth bw.json] [--machine-code all]
    python -m tests.bench.verdicts --trace TRACE --ncu FILE.csv         only compare what is there

Needs an NVIDIA GPU, ``nvcc``, ``ncu`` and permission to read performance counters. ``programs/verdicts.cu`` runs once
with the probe that counts all that a verdict needs, each launch timed with and without it, and once under ``ncu
--section SpeedOfLight``. Nsight Compute's bound is the unit of the larger speed-of-light share, memory or compute, if
that is 60 % or more, else neither. Ours is memory, compute (tensor cores, a pipe, issue) or neither (latency, small,
launch). With ``--machine-code all`` a second table is of the same program without PTX, whose instructions are counted
in machine code. Of a kernel whose two shares are within 5 points the larger is chance: such ones are marked, and
counted by the rule all the same.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

from tui_probe.nsight.importers.ncu import read_ncu
from tui_probe.probekit.measured import probe_measuring_all
from tui_probe.trace.follow import open_trace
from tui_probe.verdicts.bandwidth import read_bandwidth
from tui_probe.verdicts.limiter import LIMITER_QUANTITIES
from tui_probe.verdicts.roofline import roofline_points

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tui_probe.verdicts.roofline import RooflinePoint

SOURCE: Final = Path(__file__).parent / "programs" / "verdicts.cu"
LEAST: Final = 60.0
"""Per cent from which on a unit limits."""
TIE: Final = 5.0
SHARES: Final = {
    "Memory Throughput": "memory", "Compute (SM) Throughput": "compute", "DRAM Throughput": "DRAM",
    "L2 Cache Throughput": "L2", "L1/TEX Cache Throughput": "L1",
}  # fmt: skip
KINDS: Final = {"memory": "memory", "latency": "neither", "too small": "neither", "launch": "neither"}


@dataclass(frozen=True)
class KernelVerdict:
    """One kernel: our verdict in words, what it comes to, and ncu's shares in per cent by ``SHARES``."""

    name: str
    limit: str | None
    bound: str | None
    busy: str
    shares: Mapping[str, float]

    @property
    def ncu(self) -> str | None:
        """Memory, compute or neither; None where ncu measured nothing."""
        if not {"memory", "compute"} <= self.shares.keys():
            return None
        unit = max(("memory", "compute"), key=lambda each: self.shares[each])
        return unit if self.shares[unit] >= LEAST else "neither"

    @property
    def agrees(self) -> bool:
        return self.bound is not None and self.bound == self.ncu

    @property
    def tied(self) -> bool:
        """Return True if both shares limit and the larger one is chance."""
        both = [self.shares.get(unit, 0.0) for unit in ("memory", "compute")]
        return min(both) >= LEAST - TIE and abs(both[0] - both[1]) <= TIE


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", default="90", help="of the GPU, such as 80 or 90a (default %(default)s)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where traces and files stay")
    parser.add_argument(
        "--bandwidth", type=Path, metavar="FILE", help="of tui-probe bandwidth; default: the data sheet's"
    )
    parser.add_argument("--machine-code", choices=("all",), help="count in machine code, too")
    parser.add_argument("--trace", type=Path)
    parser.add_argument("--ncu", type=Path)
    chosen = parser.parse_args(words)
    if (chosen.trace is None) != (chosen.ncu is None):
        parser.error("--trace and --ncu go together")
    with tempfile.TemporaryDirectory() as name:
        folder = (chosen.keep or Path(name)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        if chosen.trace:
            tables = {"": compared(chosen.trace, chosen.ncu, chosen.bandwidth)}
        else:
            csv = counters(folder, built(folder, chosen.arch))
            ways = {"PTX": False} | ({"machine code": True} if chosen.machine_code else {})
            traces = {
                f"counted in {way}": probed(folder, chosen.arch, without_ptx=without_ptx)
                for way, without_ptx in ways.items()
            }
            tables = {title: compared(trace, csv, chosen.bandwidth) for title, trace in traces.items()}
    for title, rows in tables.items():
        print("\n".join([*([title, ""] if len(tables) > 1 else []), *table(rows), ""]))
    decided = [row.bound is not None for rows in tables.values() for row in rows]
    return 0 if decided and all(decided) else 1


def built(folder: Path, arch: str, *, without_ptx: bool = False) -> Path:
    """The program, with machine code and PTX, or with machine code only (``without_ptx``)."""
    program = folder / ("verdicts_without_ptx" if without_ptx else "verdicts")
    codes = (
        f"arch=compute_{arch},code=sm_{arch}" if without_ptx else f"arch=compute_{arch},code=[sm_{arch},compute_{arch}]"
    )
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    command = [nvcc, "-O3", "-std=c++17", "-gencode", codes, "-o", str(program), str(SOURCE)]
    run(command, f"build for sm_{arch.rstrip('af')}")
    return program


def probed(folder: Path, arch: str, *, without_ptx: bool) -> Path:
    """The trace of the program with the probe, in PTX or, ``without_ptx``, in SASS."""
    program = built(folder, arch, without_ptx=without_ptx)
    traces = folder / ("trace_machine_code" if without_ptx else "trace")
    tool = [
        sys.executable,
        "-m",
        "tui_probe",
        "run",
        "-p",
        probe_measuring_all(LIMITER_QUANTITIES) or "",
        "--benchmark",
        "--save-results",
    ]
    tool += ["--machine-code", "all"] if without_ptx else []
    run([*tool, "--no-ui", "--no-report", "--tracedir", str(traces), "--", str(program), "1"], "run with the probe")
    return max(traces.iterdir(), key=lambda path: path.stat().st_mtime)


def counters(folder: Path, program: Path) -> Path:
    """Profile the program with ncu and return its CSV file."""
    csv = folder / "ncu.csv"
    ncu = shutil.which("ncu") or "/usr/local/cuda/bin/ncu"
    command = [ncu, "--section", "SpeedOfLight", "--csv", "--log-file", str(csv), "--clock-control", "none"]
    run([*command, str(program), "2"], "run under ncu")
    return csv


def run(command: list[str], what: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"verdicts: could not {what}: {' '.join(command)}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")


def compared(trace: Path, csv: Path, bandwidth: Path | None = None) -> list[KernelVerdict]:
    """A row for each kernel of the trace, with the median of each share over ncu's launches of it."""
    shares = ncu_shares(csv)
    points = roofline_points([open_trace(trace)], None if bandwidth is None else read_bandwidth(bandwidth))
    return [_row(point, shares.get(base(point.demangled), {})) for point in points]


def _row(point: RooflinePoint, shares: Mapping[str, float]) -> KernelVerdict:
    limit = point.verdict.limit if point.verdict else None
    busy = next((words.removeprefix("busy: ") for words in point.words if words.startswith("busy: ")), "")
    return KernelVerdict(base(point.demangled), point.limit, bound(limit), busy, shares)


def bound(limit: str | None) -> str | None:
    """Memory, compute or neither."""
    return None if limit is None else KINDS.get(limit, "compute")


def base(name: str) -> str:
    """``copy`` of ``copy(const float4 *, float4 *, unsigned long)``."""
    return name.partition("(")[0].partition("<")[0].split()[-1]


def ncu_shares(csv: Path) -> dict[str, dict[str, float]]:
    """By kernel, the median of each share in per cent."""
    report = read_ncu([csv])
    values: dict[tuple[str, str], list[float]] = {}
    for launch, metric, value in zip(report.launch, report.metric, report.value, strict=True):
        metric_value = report.metrics[metric]
        if metric_value.unit == "%" and metric_value.name in SHARES:
            values.setdefault((base(report.launches[launch].kernel), SHARES[metric_value.name]), []).append(
                float(value)
            )
    shares: dict[str, dict[str, float]] = {}
    for (kernel, share), several in values.items():
        shares.setdefault(kernel, {})[share] = median(several)
    return shares


def table(rows: Iterable[KernelVerdict]) -> list[str]:
    """Markdown, and how many agree."""
    rows = list(rows)
    lines = ["| kernel | ours | bound | ncu | memory | compute | DRAM | L2 | L1 | agrees | how busy, by us |",
             "|---|---|---|---|--:|--:|--:|--:|--:|---|---|"]  # fmt: skip
    for row in rows:
        parts = [f"{row.shares[name]:.0f}" if name in row.shares else "–" for name in SHARES.values()]
        agrees = ("yes" if row.agrees else "**no**") + (" (tied)" if row.tied else "")
        cells = [row.name, row.limit or "–", row.bound or "–", row.ncu or "–", *parts, agrees, row.busy]
        lines.append(f"| {' | '.join(cells)} |")
    known = [row for row in rows if row.ncu is not None]
    lines.append("")
    lines.append(f"{sum(row.agrees for row in known)} of {len(known)} agree; {sum(row.tied for row in known)} tied")
    return lines


if __name__ == "__main__":
    sys.exit(main())
