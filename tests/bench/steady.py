"""Cost of leaving the profiler on: the median step of PyTorch loops, as a ratio to the same loops without it.

    python -m tests.bench.steady [--pairs 5] [--seconds 1.5] [--variants on off kineto ...] [--program FILE] [--sim]

Needs PyTorch with torchvision on an NVIDIA GPU, or another ``--program``, which ``--sim`` tries without one. All
variants run in turn, ``--pairs`` times, each in a process of its own, after a warm-up and with a warm cache: ``on`` is
the default set of probes, ``light`` is ``block_sched``, ``off`` the default set with recording switched off by
``tui-probe ctl off`` before the measured steps, ``kineto`` is torch.profiler instead, and ``proton``, where asked for,
that of Triton. A row has the median step without
any, and per variant the median of the ratios of all pairs, with the least and the greatest.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

PROGRAM = Path(__file__).parent.parent / "gpu" / "programs" / "steady_loops.py"
TOOL = [sys.executable, "-m", "tui_probe"]
NATIVE = "native"
VARIANTS: dict[str, list[str]] = {
    "on": ["run", "--no-ui", "--no-report"],
    "light": ["run", "--no-ui", "--no-report", "-p", "block_sched"],
    "off": ["run", "--no-ui", "--no-report"],
    "kineto": [],
    "proton": [],
}
USUAL_VARIANTS = ("on", "light", "off", "kineto")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=USUAL_VARIANTS, metavar="VARIANT")
    parser.add_argument("--program", type=Path, default=PROGRAM)
    parser.add_argument("--sim", action="store_true")
    options = parser.parse_args()
    ratios: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    native: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for variant in options.variants:  # for the caches
            measured(folder, variant, options)
        for _ in range(options.pairs):
            unprofiled = measured(folder, NATIVE, options)
            for loop, step in unprofiled.items():
                native[loop].append(step)
            for variant in options.variants:
                for loop, step in measured(folder, variant, options).items():
                    ratios[loop][variant].append(step / unprofiled[loop])
                    print(f"{loop} {variant}: {step:.3f} of {unprofiled[loop]:.3f} ms", flush=True)
    show(native, ratios)


def measured(folder: Path, variant: str, options: argparse.Namespace) -> dict[str, float]:
    """Run the loops once; the median step of each in ms."""
    traces = folder / "trace"
    settings = {f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in ("CACHE", "CONFIG", "STATE")}
    if variant == "off":
        settings["STEADY_BEFORE"] = shlex.join([*TOOL, "ctl", str(traces), "off"])
    arguments = VARIANTS.get(variant, [])
    tool = [*TOOL, *arguments, *["--sim"] * options.sim, "--tracedir", str(traces), "--"] if arguments else []
    profiler = [variant] if variant != NATIVE and not arguments else []
    program = [sys.executable, str(options.program), str(options.seconds), *profiler]
    done = subprocess.run([*tool, *program], env=os.environ | settings, stdout=subprocess.PIPE, text=True, check=True)
    shutil.rmtree(traces, ignore_errors=True)
    return {loop: float(step) for loop, step in (line.split() for line in done.stdout.splitlines())}


def show(native: dict[str, list[float]], ratios: dict[str, dict[str, list[float]]]) -> None:
    """Print the table."""
    for loop, steps in native.items():
        print(f"{loop:<12}{statistics.median(steps):>9.3f} ms")
        for variant, values in ratios[loop].items():
            print(f"  {variant:<10}{statistics.median(values):>9.3f}   {min(values):.3f} to {max(values):.3f}")


if __name__ == "__main__":
    main()
