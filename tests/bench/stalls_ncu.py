"""Compare the waits of ``-p stalls`` with the samples of Nsight Compute, instruction by instruction, on a GPU.

    python -m tests.bench.stalls_ncu [--kernel REGEX] [--sudo] -- PROGRAM ...

PROGRAM should launch the kernel at least five times: four launches are probed, one is sampled by ncu, which needs
permission for performance counters. Programs that were meant: those of ``tests/gpu/programs`` (``attention.py``,
``cutlass_gemm.cu``, ``library_kernels.py`` with cuBLAS and CUB, ``triton_kernel.py``, ``memory_patterns.cu``).

Nsight Compute shows the wait of a ``DEPBAR``, ``BAR``, ``MEMBAR`` or ``WARPGROUP`` at the next instruction, so the
samples behind such a site are its own. Goals: the same longest wait, a rank correlation of at least 0.9 over sites
above 1 % on either side, the three largest within 25 %. The cost is printed as the page states it, goal 1.10.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STATES: Final = ("long_scoreboard", "short_scoreboard", "barrier", "gmma", "membar")
_METRICS: Final = ",".join(f"smsp__pcsamp_warps_issue_stalled_{state}" for state in STATES)
_TOTAL: Final = "smsp__pcsamp_sample_count"
_SHOWN_BEHIND: Final = ("DEPBAR", "BAR", "MEMBAR", "WARPGROUP", "UCGABAR", "ERRBAR")
_WORD_BYTES: Final = 16
_NOTABLE: Final = 0.01
_LARGEST: Final = 3
_TOOL: Final = [sys.executable, "-m", "tui_probe"]


@dataclass(frozen=True)
class Agreement:
    """Agreement of both: whether the longest wait is the same, rank correlation, and the three largest on each side."""

    same_top: bool
    correlation: float | None
    largest: tuple[tuple[int, float, float], ...]

    @property
    def within(self) -> bool:
        """Return whether the three largest differ by up to a quarter."""
        return all(abs(ours - theirs) <= 0.25 * theirs for _, ours, theirs in self.largest)


def agreement(ours: Mapping[int, float], theirs: Mapping[int, float]) -> Agreement:
    """Compare shares by offset, of the sites that were measured."""
    theirs = {at: theirs.get(at, 0.0) for at in ours}
    notable = [at for at in ours if max(ours[at], theirs[at]) >= _NOTABLE]
    first = sorted(theirs, key=theirs.__getitem__, reverse=True)[:_LARGEST]
    top = max(ours, key=ours.__getitem__, default=None)
    return Agreement(
        same_top=bool(first) and top == first[0],
        correlation=rank_correlation([ours[at] for at in notable], [theirs[at] for at in notable]),
        largest=tuple((at, ours[at], theirs[at]) for at in first),
    )


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Return Spearman's coefficient; None for fewer than three values, or equal ones on a side."""
    if len(one) < _LARGEST:
        return None
    first, second = _ranks(one), _ranks(other)
    mean = (len(one) + 1) / 2
    above = sum((a - mean) * (b - mean) for a, b in zip(first, second, strict=True))
    below = (sum((a - mean) ** 2 for a in first) * sum((b - mean) ** 2 for b in second)) ** 0.5
    return above / below if below else None


def _ranks(values: Sequence[float]) -> list[float]:
    """Return the rank of each value, from 1 on; equal ones have their mean rank."""
    order = sorted(values)
    return [order.index(value) + (order.count(value) + 1) / 2 for value in values]


def samples_by_offset(text: str) -> dict[int, float]:
    """Return the part of all samples in the compared states by offset, of ncu's source page as CSV, for one kernel."""
    start = next(at for at, line in enumerate(text.splitlines()) if re.match(r'"?#"?,', line))
    rows = list(csv.DictReader(io.StringIO("\n".join(text.splitlines()[start:]))))
    rows = [row for row in rows if (row.get("Address") or "").strip()]
    first = min(int(row["Address"], 0) for row in rows)
    total = sum(_number(row.get(_TOTAL) or row.get("# Samples") or row.get("Sampling Data (All)")) for row in rows)
    samples = {int(row["Address"], 0) - first: sum(map(_number, _states(row))) for row in rows}
    for row in rows:
        at = int(row["Address"], 0) - first
        if _opcode(row.get("Source") or "").startswith(_SHOWN_BEHIND):
            samples[at] += samples.get(at + _WORD_BYTES, 0)
            samples[at + _WORD_BYTES] = 0
    return {at: count / total for at, count in samples.items()} if total else {}


def _states(row: Mapping[str, str]) -> list[str]:
    return [value for name, value in row.items() if name and any(name.endswith(state) for state in STATES)]


def _opcode(text: str) -> str:
    return next((word for word in text.split() if not word.startswith("@")), "")


def _number(text: str | None) -> float:
    try:
        return float((text or "0").replace(",", ""))
    except ValueError:
        return 0.0


def measured(program: Sequence[str], kernel: str) -> tuple[dict[int, float], list[float | None]]:
    """Run the program under ``-p stalls``; return the shares by offset, and what the probe cost."""
    with tempfile.TemporaryDirectory(prefix="stalls-") as folder:
        command = [*_TOOL, "run", "--no-ui", "--wait", "--launches", "all", "-p", "stalls", "--machine-code", "all"]
        subprocess.run([*command, "--tracedir", folder, "-k", kernel, "--", *program], check=True)
        (trace,) = (path for path in Path(folder).iterdir() if path.is_dir())
        shown = [*_TOOL, "show", "stalls", str(trace), "-k", kernel, "--format", "json"]
        data = json.loads(subprocess.run(shown, check=True, capture_output=True, text=True).stdout)["data"]
    return {site["offset"]: site["share"] or 0.0 for site in data["sites"]}, data["slowdowns"]


def sampled(program: Sequence[str], kernel: str, *, sudo: bool) -> dict[int, float]:
    """Run the program under ncu; return the samples of the kernel's last launch by offset."""
    ncu = shutil.which("ncu") or shutil.which("ncu", path="/usr/local/cuda/bin") or sys.exit("no ncu on this machine")
    options = [
        "--metrics",
        f"{_METRICS},{_TOTAL}",
        "-k",
        f"regex:{kernel}",
        "--launch-skip",
        "1",
        "--launch-count",
        "1",
    ]
    command = [*(["sudo"] if sudo else []), ncu, *options, "--page", "source", "--print-source", "sass", "--csv"]
    done = subprocess.run([*command, *program], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"ncu failed: {done.stderr or done.stdout}")
    return samples_by_offset(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", default=".", help="regular expression of one kernel")
    parser.add_argument("--sudo", action="store_true", help="run ncu as root")
    parser.add_argument("program", nargs="+")
    options = parser.parse_args()
    ours, slowdowns = measured(options.program, options.kernel)
    result = agreement(ours, sampled(options.program, options.kernel, sudo=options.sudo))
    print(f"same longest wait: {result.same_top}; rank correlation: {result.correlation}; within 25 %: {result.within}")
    for at, own, theirs in result.largest:
        print(f"    {at:#06x}  stalls {own:.1%}  ncu {theirs:.1%}")
    print(f"cost: {', '.join('–' if ratio is None else f'{ratio:.2f}' for ratio in slowdowns)}")


if __name__ == "__main__":
    main()
