"""GPU times by sampled launches next to those of torch.profiler, for an eager and a compiled model.

    python -m tests.bench.times [eager compiled] [--steps 200] [--options "-k none" ""] [--out FILE.json]

Needs PyTorch with CUDA on an NVIDIA GPU. Each model runs once under torch.profiler, which sees every launch, and once
under the profiler with each set of options; ``-k none`` probes nothing, so that all launches are those of the program.
Kernels are matched by their names. Below each table are the promises and how far off the worst kernel is: totals
within 5 % for kernels of 50 µs and more, means within 3 µs for shorter ones, shares within 2 points.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

LONG_US = 50.0
LEAST_SHARE = 0.005
"""Of the kernels that take less, only the sum is shown."""
NOTHING = "-k none"


@dataclass
class Times:
    """Launches of one kernel and their times in µs. ``raw_us``: with the host's part of samples bound by the host."""

    launches: int = 0
    total_us: float = 0.0
    raw_us: float = 0.0
    samples: int = 0
    host_bound: int = 0

    def add(self, other: Times) -> None:
        self.launches += other.launches
        self.total_us += other.total_us
        self.raw_us += other.raw_us
        self.samples += other.samples
        self.host_bound += other.host_bound

    @property
    def mean_us(self) -> float:
        return self.total_us / max(self.launches, 1)


@dataclass(frozen=True)
class KernelTimes:
    """One kernel in both; shares are of all kernels, from 0 to 1."""

    name: str
    profiler: Times
    sampled: Times
    profiler_share: float
    sampled_share: float

    @property
    def ratio(self) -> float:
        return self.sampled.total_us / self.profiler.total_us if self.profiler.total_us else float("nan")

    @property
    def off_us(self) -> float:
        return abs(self.sampled.mean_us - self.profiler.mean_us)

    @property
    def off_points(self) -> float:
        return 100 * abs(self.sampled_share - self.profiler_share)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="eager|compiled", default=["eager", "compiled"])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--options", nargs="+", default=[NOTHING, ""])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--work", choices=["eager", "compiled"], help=argparse.SUPPRESS)
    parser.add_argument("--profile", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.work, options.steps, options.profile)
        return
    if problem := missing():
        parser.error(problem)
    times = {}
    with tempfile.TemporaryDirectory() as name:
        for model in options.models:
            truth = profiled(model, options.steps, Path(name))
            for choice in options.options:
                rows = compared(truth, sampled(model, options.steps, choice, Path(name)))
                show(f"{model}, {choice or 'default options'}", rows)
                times[f"{model} {choice}".strip()] = [asdict(row) for row in rows]
    if options.out:
        options.out.write_text(json.dumps(times, indent=1), encoding="utf-8")


def missing() -> str:
    """Return the missing tool or device of this machine; "" if it has all."""
    try:
        import torch
    except ImportError:
        return "needs PyTorch, which is not installed: pip install torch"
    return "" if torch.cuda.is_available() else "needs an NVIDIA GPU that PyTorch can use: torch.cuda has none"


def work(model: str, steps: int, profile: Path | None) -> None:
    """Train a small transformer; under torch.profiler if its trace is wanted."""
    import torch
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as profiler

    torch.manual_seed(0)
    layers = torch.nn.TransformerEncoderLayer(512, 8, 2048, 0.0, batch_first=True, norm_first=True)
    net = torch.nn.Sequential(
        torch.nn.TransformerEncoder(layers, 2, enable_nested_tensor=False), torch.nn.Linear(512, 8)
    )
    net = net.cuda()
    run = torch.compile(net) if model == "compiled" else net
    optimiser = torch.optim.SGD(net.parameters(), lr=0.01)
    values = torch.randn(32, 256, 512, device="cuda")

    def train() -> None:
        for _ in range(steps):
            optimiser.zero_grad()
            run(values).square().mean().backward()
            optimiser.step()
        torch.cuda.synchronize()

    if profile is None:
        train()
        return
    with profiler(activities=[ProfilerActivity.CUDA]) as watched:
        train()
    watched.export_chrome_trace(str(profile))


def profiled(model: str, steps: int, folder: Path) -> dict[str, Times]:
    """Every launch of a model, by torch.profiler."""
    path = folder / "profile.json"
    subprocess.run(worker(model, 1), check=True, cwd=Path.cwd())  # what compilers try out belongs to neither side
    subprocess.run([*worker(model, steps), "--profile", str(path)], check=True, cwd=Path.cwd())
    times: dict[str, Times] = defaultdict(Times)
    for event in json.loads(path.read_text(encoding="utf-8"))["traceEvents"]:
        if event.get("cat") == "kernel":
            times[event["name"]].add(Times(1, event["dur"], event["dur"]))
    return dict(times)


def worker(model: str, steps: int) -> list[str]:
    return [sys.executable, "-m", "tests.bench.times", "--work", model, "--steps", str(steps)]


def sampled(model: str, steps: int, choice: str, folder: Path) -> dict[str, Times]:
    """The same by sampled launches, of all processes that launched anything."""
    from tui_probe.trace.follow import open_trace

    root = folder / f"trace-{model}-{len(list(folder.iterdir()))}"
    tool = [sys.executable, "-m", "tui_probe", "run", "--no-ui", "--no-report", "--tracedir", str(root)]
    subprocess.run([*tool, *choice.split(), "--", *worker(model, steps)], check=True)
    times: dict[str, Times] = defaultdict(Times)
    for log in root.glob("*/event.log"):
        for kernel in open_trace(log.parent).kernels:
            time = kernel.gpu_time
            if time is None:
                times[kernel.demangled].add(Times(kernel.launches))
                continue
            raw = float(kernel.samples.column("ns").mean()) * kernel.launches
            shown = time.preferred_variant
            times[kernel.demangled].add(
                Times(kernel.launches, time.total_ns / 1e3, raw / 1e3, shown.samples, shown.host_bound)
            )
    return dict(times)


def compared(truth: dict[str, Times], samples: dict[str, Times]) -> list[KernelTimes]:
    """The kernels of both, those that take most first.

    Names that only one of the two writes in its way are compared without their parameters, kernels that share such a
    name together.
    """
    left, right = ({squeezed(name): times for name, times in side.items()} for side in (truth, samples))
    common = left.keys() & right.keys()
    left, right = (merged(side, common) for side in (left, right))
    totals = [sum(times.total_us for times in side.values()) or 1.0 for side in (left, right)]
    rows = [
        KernelTimes(name, one, other, one.total_us / totals[0], other.total_us / totals[1])
        for name in left.keys() | right.keys()
        for one, other in [(left.get(name, Times()), right.get(name, Times()))]
    ]
    return sorted(rows, key=lambda row: (-row.profiler.total_us, row.name))


def squeezed(name: str) -> str:
    return re.sub(r"\s+", "", name.removeprefix("void "))


def merged(side: dict[str, Times], common: Iterable[str]) -> dict[str, Times]:
    found: dict[str, Times] = defaultdict(Times)
    for name, times in side.items():
        found[name if name in common else re.split(r"[<(]", name)[0]].add(times)
    return found


def show(title: str, rows: list[KernelTimes]) -> None:
    print(
        f"\n{title}\n{'kernel':<44}{'launches':>15}{'mean us':>17}{'ratio':>7}{'raw':>7}{'share %':>13}{'samples':>13}"
    )
    for row in rows:
        if max(row.profiler_share, row.sampled_share) < LEAST_SHARE:
            continue
        one, other = row.profiler, row.sampled
        raw = other.raw_us / one.total_us if one.total_us else float("nan")
        print(
            f"{row.name[:43]:<44}{one.launches:>7} {other.launches:>7}{one.mean_us:>8.2f} {other.mean_us:>8.2f}"
            f"{row.ratio:>7.3f}{raw:>7.3f}{100 * row.profiler_share:>6.1f} {100 * row.sampled_share:>6.1f}"
            f"{other.samples:>6} {other.host_bound:>4} host"
        )
    totals = [sum(getattr(row, side).total_us for row in rows) for side in ("profiler", "sampled")]
    print(f"all kernels: {totals[0] / 1e3:.1f} ms and {totals[1] / 1e3:.1f} ms, ratio {totals[1] / totals[0]:.3f}")
    both = [row for row in rows if row.profiler.launches and row.sampled.samples]
    long = [row for row in both if row.profiler.mean_us >= LONG_US]
    short = [row for row in both if row.profiler.mean_us < LONG_US]
    tell("totals of long kernels, % off (5)", [(100 * abs(row.ratio - 1), row.name) for row in long])
    tell("means of short kernels, us off (3)", [(row.off_us, row.name) for row in short])
    tell("shares, points off (2)", [(row.off_points, row.name) for row in rows])
    untimed = sum(row.profiler.total_us for row in rows if not row.sampled.samples)
    print(f"kernels that were not timed take {100 * untimed / totals[0]:.1f} % of the time by torch.profiler")


def tell(promise: str, found: list[tuple[float, str]]) -> None:
    worst, name = max(found, default=(0.0, "no such kernel"))
    print(f"{promise:<40}{worst:>8.2f}  {name[:60]}")


if __name__ == "__main__":
    main()
