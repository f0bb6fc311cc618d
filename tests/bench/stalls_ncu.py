"""Compare the waits of ``-p stalls`` with the samples of Nsight Compute, instruction by instruction, on a GPU.

    python -m tests.bench.stalls_ncu --kernels A:B [--save FOLDER] -- PROGRAM ...
    python -m tests.bench.stalls_ncu --kernels A:B --saved FOLDER

``A`` and ``B`` are parts of names of kernels. PROGRAM should launch each at least six times: four launches are probed,
all are sampled by ncu, which needs permission for performance counters. ``--saved`` compares what ``--save`` has left.
Programs that were meant: ``tests/bench/programs/stall_kernels.py`` and ``.cu``, and of ``tests/gpu/programs``
``attention.py`` and ``cutlass_warp_specialised.cu``.

Compared are the states long and short scoreboard, barrier, gmma and membar. Nsight Compute shows a wait of ``BAR``,
``DEPBAR`` and the like at an instruction behind it: those samples are of the instruction that waits. Clocks and caches
are as in the run: ncu neither locks nor flushes them. ncu has no column for gmma: its samples are those of an
instruction that no other state has.

ncu samples the probed kernels, too, which tells two causes of a difference apart. There both measure the same code: the
samples between the clock reads of a site, by all samples, are the part of warp life between the clocks. A difference is
an error of the measurement. A difference between the original and the probed kernel is an effect of the code at the
sites. Goals: the same longest wait, a rank correlation of at least 0.9
over sites above 1 % on either side, the three largest within 25 %, and at most 1.10 times as long with the probe.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

STATES: Final = ("long_sb", "short_sb", "barrier", "gmma", "membar")
_SHOWN_BEHIND: Final = {
    "barrier": ("BAR", "UCGABAR"),
    "membar": ("MEMBAR", "ERRBAR"),
    "long_sb": ("DEPBAR",),
}
"""By state: instructions that ncu shows at one behind them."""
_FARTHEST: Final = 16
"""Instructions behind, at most."""
_STATE: Final = re.compile(r"stall_\w+")
_ALL_STATES: Final = 18
"""Columns of states in a complete page."""
_BRANCH: Final = re.compile(r"BRA (0x[0-9a-f]+)")
_CLOCK: Final = re.compile(r"CS2R(?:\.32)? R\d+, SR_CLOCKLO")
_WORD_BYTES: Final = 16
_NOTABLE: Final = 0.01
_LARGEST: Final = 3
_TIE: Final = 0.95
"""Part of the longest wait from which on another one is as long, within what samples vary."""
PAGE: Final = "ncu.csv"
PROBED_PAGE: Final = "probed.csv"
_TOOL: Final = [sys.executable, "-m", "tui_probe"]
_NCU: Final = (
    "--section SourceCounters --clock-control none --cache-control none --page source --csv --print-source sass -c 64"
)


@dataclass
class Samples:
    """Samples of a kernel's launches: all, and by offset those of each state; ``opcodes`` by offset."""

    total: float = 0
    by_offset: dict[int, Counter[str]] = field(default_factory=dict)
    opcodes: dict[int, str] = field(default_factory=dict)
    between_clocks: dict[int, tuple[float, float]] = field(default_factory=dict)
    """Samples between the clock reads of each site, by offset, and all samples of the launches that have them."""

    def probed_shares(self) -> dict[int, float]:
        """Return the part of all samples between the clock reads of each site of the probed kernel."""
        return {at: own / total for at, (own, total) in self.between_clocks.items() if total}

    def shares(self) -> dict[int, float]:
        """Return the part of all samples in the compared states, by the offset of the instruction that waits."""
        shares: dict[int, float] = defaultdict(float)
        for at, states in self.by_offset.items():
            for state in STATES:
                shares[self._waiting(at, state)] += states[state] / self.total
        return dict(shares)

    def _waiting(self, at: int, state: str) -> int:
        """Return the offset of the instruction that waits where ncu shows a wait at ``at``."""
        names = _SHOWN_BEHIND.get(state, ())
        if self.opcodes[at].startswith((*names, "WARPGROUP")) and state != "long_sb":
            return at
        farthest = 1 if state == "long_sb" else _FARTHEST
        before = (at - _WORD_BYTES * steps for steps in range(1, farthest + 1))
        return next((place for place in before if names and self.opcodes.get(place, "").startswith(names)), at)


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
        same_top=top is not None and theirs[top] >= _TIE * theirs[first[0]],
        correlation=rank_correlation([ours[at] for at in notable], [theirs[at] for at in notable]),
        largest=tuple((at, ours[at], theirs[at]) for at in first if theirs[at] >= _NOTABLE),
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


def samples_of(text: str, kernel: str) -> Samples:
    """Add up the samples of the launches of a kernel in ncu's source page as CSV, where ``kernel`` is in its name."""
    samples = Samples()
    for name, rows in _launches(text):
        if kernel not in name or not rows:
            continue
        first = int(rows[0]["Address"], 0)
        for row in rows:
            at = int(row["Address"], 0) - first
            samples.total += _number(row["# Samples"])
            states = samples.by_offset.setdefault(at, Counter())
            states.update({state: _number(row.get(f"stall_{state}")) for state in STATES})
            states.update({"gmma": _unnamed(row)})
            samples.opcodes[at] = _opcode(row["Source"])
        _add_clocks(samples, rows)
    return samples


def _unnamed(row: Mapping[str, str]) -> float:
    """Return the samples of an instruction that no column of a state has: those of gmma."""
    states = [value for name, value in row.items() if _STATE.fullmatch(name or "")]
    return max(0.0, _number(row["# Samples"]) - sum(map(_number, states))) if len(states) == _ALL_STATES else 0.0


def _add_clocks(samples: Samples, rows: Sequence[Mapping[str, str]]) -> None:
    """Add the samples of a launch between the clock reads to which branches of the kernel lead."""
    texts = [row["Source"].strip() for row in rows]
    numbers = {int(row["Address"], 0): number for number, row in enumerate(rows)}
    first, total = min(numbers), sum(_number(row["# Samples"]) for row in rows)
    for row, text in zip(rows, texts, strict=True):
        branch = _BRANCH.fullmatch(text)
        begin = numbers.get(int(branch[1], 0)) if branch else None
        if begin is None or not _CLOCK.match(texts[begin]):
            continue
        ends = (number for number in range(begin + 1, len(texts)) if _CLOCK.match(texts[number]))
        between = rows[begin + 1 : next(ends, begin) + 1]
        own, known = samples.between_clocks.get(at := int(row["Address"], 0) - first, (0.0, 0.0))
        samples.between_clocks[at] = own + sum(_number(inner["# Samples"]) for inner in between), known + total


def _launches(text: str) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Yield each launch with the rows of its instructions."""
    for part in re.split(r'^"Kernel Name",', text, flags=re.MULTILINE)[1:]:
        name, *lines = part.splitlines()
        yield name, list(csv.DictReader(io.StringIO("\n".join(line for line in lines if line.startswith('"')))))


def _opcode(text: str) -> str:
    return next((word for word in text.split() if not word.startswith("@")), "")


def _number(text: str | None) -> float:
    try:
        return float((text or "0").replace(",", ""))
    except ValueError:
        return 0.0


def measure(program: Sequence[str], kernels: Sequence[str], folder: Path) -> None:
    """Run the program under ``-p stalls`` and under ncu, and leave what both measured in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    measure_waits(program, kernels, folder)
    measure_samples(program, kernels, folder / PAGE)
    with tempfile.TemporaryDirectory(prefix="stalls-") as traces:
        command = [*_run_command(kernels, traces), *program]
        measure_samples(command, kernels, folder / PROBED_PAGE, TUI_PROBE_UNDER_NCU="1", TUI_PROBE_TIMES="0")


def _run_command(kernels: Sequence[str], traces: str) -> list[str]:
    command = [*_TOOL, "run", "--no-ui", "--wait", "--launches", "all", "-p", "stalls", "--machine-code", "all"]
    return [*command, "--tracedir", traces, "-k", ":".join(kernels), "--"]


def measure_waits(program: Sequence[str], kernels: Sequence[str], folder: Path) -> None:
    """Leave the page of each kernel, as JSON and as text, in a folder."""
    with tempfile.TemporaryDirectory(prefix="stalls-") as traces:
        subprocess.run([*_run_command(kernels, traces), *program], check=True)
        (trace,) = (path for path in Path(traces).iterdir() if path.is_dir())
        for kernel in kernels:
            shown = [*_TOOL, "show", "stalls", str(trace), "-k", kernel]
            for name, options in (("json", ["--format", "json"]), ("txt", ["--width", "140"])):
                done = subprocess.run([*shown, *options], check=False, capture_output=True, text=True)
                (folder / f"{kernel}.{name}").write_text(done.stdout or done.stderr)


def measure_samples(program: Sequence[str], kernels: Sequence[str], page: Path, **variables: str) -> None:
    """Write ncu's source page of all kernels; ``variables`` are added to the environment."""
    ncu = shutil.which("ncu") or shutil.which("ncu", path="/usr/local/cuda/bin") or sys.exit("no ncu on this machine")
    command = [ncu, *_NCU.split(), "--target-processes", "all", "-k", f"regex:{'|'.join(kernels)}", *program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **variables})
    page.write_text(done.stdout)
    if done.returncode:
        sys.exit(f"ncu failed: {done.stderr or done.stdout}")


def compare(kernel: str, folder: Path) -> None:
    """Print the comparison of one kernel."""
    data: dict[str, Any] = json.loads((folder / f"{kernel}.json").read_text())["data"]
    ours = {site["offset"]: site["share"] or 0.0 for site in data["sites"] if site["executions"]}
    samples = samples_of((folder / PAGE).read_text(), kernel)
    if not samples.total:
        print(f"{kernel}: no samples of ncu")
        return
    theirs = samples.shares()
    result = agreement(ours, theirs)
    largest = max(theirs, key=theirs.__getitem__)
    correlation = "–" if result.correlation is None else f"{result.correlation:.2f}"
    print(f"{kernel}: same longest wait: {result.same_top}; rank correlation: {correlation}; within 25 %:"
          f" {result.within}; longest of ncu measured: {largest in ours}; {samples.total:.0f} samples")  # fmt: skip
    for at, own, other in result.largest:
        print(f"    {at:#06x} {samples.opcodes[at]}  stalls {own:.1%}  ncu {other:.1%}")
    print(f"    cost: {', '.join('–' if ratio is None else f'{ratio:.2f}' for ratio in data['slowdowns'])}")


def compare_probed(kernel: str, folder: Path) -> None:
    """Print both measurements of the same probed code of a kernel, and what the original has at the instruction."""
    sites: list[dict[str, Any]] = json.loads((folder / f"{kernel}.json").read_text())["data"]["sites"]
    ours = {site["offset"]: _between_clocks(site) for site in sites if site["executions"]}
    theirs = samples_of((folder / PROBED_PAGE).read_text(), kernel).probed_shares()
    original = samples_of((folder / PAGE).read_text(), kernel).shares()
    both = {at: share for at, share in ours.items() if at in theirs}
    if not both:
        print(f"{kernel}, probed: no samples of ncu at a site")
        return
    result = agreement(both, theirs)
    correlation = "–" if result.correlation is None else f"{result.correlation:.2f}"
    print(f"{kernel}, probed: same longest wait: {result.same_top}; rank correlation: {correlation}; within 25 %:"
          f" {result.within}; {len(both)} of {len(ours)} sites")  # fmt: skip
    for at in sorted(both, key=lambda at: -theirs[at]):
        if max(theirs[at], both[at]) >= _NOTABLE:
            print(f"    {at:#06x}  clocks {both[at]:.1%}  ncu {theirs[at]:.1%}  original {original.get(at, 0.0):.1%}")


def _between_clocks(site: Mapping[str, Any]) -> float:
    """Return the part of warp life between the clocks of a site, its null waits included."""
    life = site["cycles"] / site["share"] if site["share"] else 0.0
    return (site["measured_cycles"] / life if life else 0.0) + (site["null_share"] or 0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", required=True, help="parts of names of kernels, separated by colons")
    parser.add_argument("--save", type=Path, help="leave what was measured in this folder")
    parser.add_argument("--saved", type=Path, help="compare what is in this folder, and run nothing")
    parser.add_argument("program", nargs="*")
    options = parser.parse_args()
    kernels = options.kernels.split(":")
    with tempfile.TemporaryDirectory(prefix="stalls-") as temporary:
        folder = options.saved or options.save or Path(temporary)
        if options.saved is None:
            measure(options.program, kernels, folder)
        for kernel in kernels:
            compare(kernel, folder)
            if (folder / PROBED_PAGE).exists():
                compare_probed(kernel, folder)


if __name__ == "__main__":
    main()
