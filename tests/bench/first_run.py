"""Kernels without a result in the first run on a machine, since they were still being prepared.

    python -m tests.bench.first_run [--sim] [--tool PATH] [--probe survey] [--tested] [--real NAME... | -- COMMAND...]

Each program runs once with an empty cache; with `--tested` as on a machine where the self-test of grafts ran before:
the first program then runs three times more, ahead of all, for its outcome. `--sim` has the simulated GPU in the
place of a real one: its launches wait for no kernel here, as on a GPU. `--tool` is another tui-probe to compare with.
A row has the kernels that were launched, those without a result for this reason, the kernels from the cache that were
prepared ahead of their launch, and the seconds of the run. Without a command these are programs of this repository,
some of which work for a while between loading their kernels and launching them; with `--real` those of
`tests/bench/programs`, which need a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.bench.real_programs import prepared

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
EXAMPLES = (
    "tui_probe/simgpu/examples/demo.py",
    "tests/e2e/programs/three_faults.py",
    "tui_probe/evals/programs/stores.py",
)
STARTS = ((1, 0), (3, 0), (10, 0), (30, 0), (10, 500), (30, 2000), (60, 4000))
"""Kernels of ``start_program``, and milliseconds between their load and the first launch."""


@dataclass(frozen=True)
class FirstRun:
    """Outcome of one program."""

    kernels: int
    missed: int
    ahead: int
    seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sim", action="store_true")
    parser.add_argument("--tool", type=Path)
    parser.add_argument("--probe", default="survey")
    parser.add_argument("--tested", action="store_true")
    parser.add_argument("--real", nargs="+", default=[], metavar="NAME")
    parser.add_argument("command", nargs="*")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        programs = chosen_programs(folder, options)
        sys.stdout.write(f"{'program':<40}{'kernels':>8}{'missed':>8}{'ahead':>8}{'seconds':>9}\n")
        self_test = folder / "tested" / "cache" / "tui-probe" / "grafts"
        for _ in range(3 * options.tested):
            first_run(folder / "tested", next(iter(programs.values())), options)
            shutil.rmtree(folder / "tested" / "cache" / "tui-probe" / "kernels", ignore_errors=True)
        total = missed = 0
        for number, (program, command) in enumerate(programs.items()):
            if options.tested and self_test.exists():
                shutil.copytree(self_test, folder / str(number) / "cache" / "tui-probe" / "grafts")
            run = first_run(folder / str(number), command, options)
            total, missed = total + run.kernels, missed + run.missed
            row = f"{program[:39]:<40}{run.kernels:>8}{run.missed:>8}{run.ahead:>8}{run.seconds:>9.2f}\n"
            sys.stdout.write(row)
            sys.stdout.flush()
        sys.stdout.write(f"missed {missed} of {total} kernels\n")


def chosen_programs(folder: Path, options: argparse.Namespace) -> dict[str, list[str]]:
    """Names and commands of what is to run."""
    if options.real:
        return prepared(folder, options.real)
    return {" ".join(options.command): options.command} if options.command else own_programs(folder)


def own_programs(folder: Path) -> dict[str, list[str]]:
    """Names and commands of the programs, of which one is compiled."""
    start = folder / "start"
    subprocess.run(["cc", "-O1", "-o", start, HERE / "start_program.c", "-ldl"], check=True)
    programs = {
        f"{count} kernels, {pause} ms after load": [str(start), str(count), str(pause)] for count, pause in STARTS
    }
    return programs | {Path(path).name: [sys.executable, str(ROOT / path)] for path in EXAMPLES}


def first_run(folder: Path, command: list[str], options: argparse.Namespace) -> FirstRun:
    """Run a program with an empty cache."""
    tool = [str(options.tool)] if options.tool else [sys.executable, "-m", "tui_probe"]
    own = {f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in ("CACHE", "CONFIG", "STATE")}
    on_sim = ["--sim"] if options.sim else []
    as_on_gpu = ["env", "TUI_PROBE_PATIENT="] if options.sim else []
    begun = time.monotonic()
    subprocess.run(
        [*tool, "run", "--no-ui", *on_sim, "-p", options.probe, "--tracedir", str(folder), "--", *as_on_gpu, *command],
        env=os.environ | own, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True,
    )  # fmt: skip
    seconds = time.monotonic() - begun
    trace = max(folder.glob("*/event.log"), key=lambda log: log.stat().st_mtime).parent
    report = subprocess.run(
        [*tool, "report", str(trace), "--format", "json"], env=os.environ | own, capture_output=True, check=True
    )
    return FirstRun(*counts(json.loads(report.stdout)), count_ahead(trace), seconds)


def counts(report: dict[str, object]) -> tuple[int, int]:
    """The launched kernels, and those that were being prepared at every launch."""
    kernels = report["kernels"]
    assert isinstance(kernels, list)
    return len(kernels), sum("being prepared" in str(kernel["reason"]) for kernel in kernels)


def count_ahead(trace: Path) -> int:
    """The kernels of a trace that were prepared ahead of their launch, with any probe."""
    logs = (trace / "kernel").glob("*/**/process.log")
    text = "prepared ahead of this launch"
    return len({log.relative_to(trace).parts[1] for log in logs if text in log.read_text(errors="replace")})


if __name__ == "__main__":
    main()
