"""Slowdown of kernels under several probes, or under two versions of tui-probe, in interleaved rounds.

    python -m tests.bench.probe_pairs --probes NAME ... [--against PYTHON] [--rounds 3] [--seconds 60]
                                      [--machine-code all] [--sim] [--out FILE.md] [-- PROGRAM ...]

PROGRAM defaults to ``programs/access_patterns.cu``, which needs nvcc: twelve kernels bound by memory or by their loads.
``--against`` is the Python of another installation, whose probes of the same names run in the same rounds. Each run is
a ``run --benchmark`` that saves results, so that the counts of both versions are compared, too. A cell is the median of
the rounds, then the registers without and with the probe; ``disk`` are the bytes of all results of a run.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parent / "programs" / "access_patterns.cu"


@dataclass(frozen=True)
class Version:
    """A probe in one installation."""

    python: str
    probe: str

    @property
    def name(self) -> str:
        """The heading of its column."""
        probe = Path(self.probe).stem
        return probe if self.python == sys.executable else f"{probe}, before"


@dataclass
class Measured:
    """Measurements of one kernel under one version, a value per round."""

    slowdowns: list[float] = field(default_factory=list)
    registers: str = ""
    reason: str = ""
    metrics: dict[str, Any] = field(default_factory=dict)
    disk: int = 0

    @property
    def slowdown(self) -> float | None:
        """The median of the rounds."""
        return statistics.median(self.slowdowns) if self.slowdowns else None

    @property
    def cell(self) -> str:
        """Slowdown and registers, or the reason why there are none."""
        return f"– {self.reason}" if self.slowdown is None else f"{self.slowdown:.2f} ({self.registers})"


def built(folder: Path, *, sass: bool) -> str:
    """Compile the default program, with PTX or with machine code only."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    code = "sm_90" if sass else "[sm_90,compute_90]"
    program = folder / "access_patterns"
    options = ["-O3", f"-gencode=arch=compute_90,code={code}", "-cudart=static"]
    subprocess.run([nvcc, *options, "-o", str(program), str(SOURCE)], check=True)
    return str(program)


def run_once(version: Version, command: list[str], options: list[str], found: dict[str, Measured]) -> str:
    """One run; adds what its kernels measured to ``found``. The error output where it failed, else ""."""
    tool = [version.python, "-m", "tui_probe"]
    with tempfile.TemporaryDirectory() as folder:
        benchmark = ["--benchmark", "--save-results", "--launches", "1-3", "--no-report", "--tracedir", folder]
        run = [*tool, "run", "-p", version.probe, *benchmark, *options, "--", *command]
        done = subprocess.run(run, capture_output=True, text=True, check=False)
        trace = re.search(r"\[info\] trace in (.+)", done.stderr)
        if done.returncode or trace is None:
            return f"{done.stdout}{done.stderr}"[-1500:]
        report = [*tool, "report", trace[1].strip(), "--format", "json"]
        reported = subprocess.run(report, capture_output=True, text=True, check=False)
        if reported.returncode:
            return f"report: {reported.stdout}{reported.stderr}"[-1500:]
        kernels = json.loads(reported.stdout)["kernels"]
        results = [*report[:5], "--page", "results", "--format", "json"]
        text = subprocess.run(results, capture_output=True, text=True, check=False).stdout
        disk = sum(path.stat().st_size for path in Path(trace[1].strip()).glob("result/*"))
    for kernel in kernels:
        measured = found[kernel["name"]]
        if kernel["slowdown"] is not None:
            measured.slowdowns.append(kernel["slowdown"])
        measured.registers = f"{kernel['registers_pruned']} > {kernel['registers_probed']}"
        measured.reason = kernel["reason"] or kernel["status"]
        measured.disk = disk
        measured.metrics = _metrics_of(text, kernel["name"])
    return ""


def _metrics_of(text: str, kernel: str) -> dict[str, Any]:
    """The metrics of a kernel's first result."""
    rows = [row for row in json.loads(text)["results"] if row["name"] == kernel] if text else []
    return {row["figure"]: row["value"] for row in rows if row["launch"] == rows[0]["launch"]}


def table(found: dict[Version, dict[str, Measured]]) -> list[str]:
    """Markdown: a row for each kernel, a column for each version, then means."""
    versions = list(found)
    kernels = sorted({kernel for of in found.values() for kernel in of})
    lines = [f"| kernel | {' | '.join(version.name for version in versions)} |", "|---" * (len(versions) + 1) + "|"]
    lines += [f"| {kernel} | {' | '.join(found[version][kernel].cell for version in versions)} |" for kernel in kernels]
    means = [[value for measured in found[version].values() if (value := measured.slowdown)] for version in versions]
    lines.append(f"| mean | {' | '.join(f'{statistics.mean(mean):.2f}' if mean else '–' for mean in means)} |")
    disk = [max((measured.disk for measured in found[version].values()), default=0) for version in versions]
    lines.append(f"| disk | {' | '.join(f'{size / 1e6:.1f} MB' for size in disk)} |")
    return lines


def differences(found: dict[Version, dict[str, Measured]]) -> list[str]:
    """Metrics in which the versions of a probe differ."""
    lines = []
    for version, of in found.items():
        before = next((other for other in found if other.probe == version.probe and other is not version), None)
        if version.python != sys.executable or before is None:
            continue
        for kernel, measured in of.items():
            old, new = found[before][kernel].metrics, measured.metrics
            lines += [
                f"{version.probe} of {kernel}: {key} {old[key]} > {new[key]}"
                for key in sorted(old.keys() & new.keys())
                if old[key] != new[key]
            ]
        same = sum(bool(measured.metrics) for measured in of.values())
        lines.append(f"{version.probe}: metrics of {same} kernels compared")
    return lines


def main() -> None:
    options = parse_arguments()
    pythons = [*([options.against] if options.against else []), sys.executable]
    versions = [Version(python, probe) for probe in options.probes for python in pythons]
    found: dict[Version, dict[str, Measured]] = {version: defaultdict(Measured) for version in versions}
    more = ["--machine-code", options.machine_code, *(["--sim"] if options.sim else [])]
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        sass = options.machine_code == "all"
        command = options.program or [built(Path(folder), sass=sass)]
        for number in range(options.rounds):
            for version in versions if number % 2 == 0 else versions[::-1]:
                if time.monotonic() - began < options.seconds and (
                    error := run_once(version, command, more, found[version])
                ):
                    print(f"{version.name} failed: {error}", file=sys.stderr)
    text = "\n".join([*table(found), "", *differences(found)])
    print(text)
    if options.out:
        options.out.write_text(text + "\n")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="*", metavar="PROGRAM")
    parser.add_argument("--probes", nargs="+", required=True)
    parser.add_argument("--against", metavar="PYTHON", help="the Python of another installation of tui-probe")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60.0, help="begin no run after this time (default 60)")
    parser.add_argument("--machine-code", choices=["auto", "all", "off"], default="auto")
    parser.add_argument("--sim", action="store_true", help="on the simulated GPU: no slowdowns, but counts")
    parser.add_argument("--out", type=Path, metavar="FILE.md")
    options: argparse.Namespace = parser.parse_args()
    return options


if __name__ == "__main__":
    main()
