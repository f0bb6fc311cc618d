"""Cost of `tui-probe run` beyond a program's own time, by phase.

    python -m tests.bench.start [--kernels 3] [--rounds 7] [--site 0.25] [--driver PATH | --stub]

Needs a C compiler. A program that launches a few small kernels once each runs without tui-probe and under `run
--no-ui`, in turn: with an empty cache, with a warm one, and with a warm one and no report. All is the median of the
rounds, in ms:

    only   the program by itself            main    from the command to the program's first instruction
    whole   under tui-probe                  first   from there to the end of its first launch, less than what it
    over    whole less only                         takes only: reading and preparing, where that is waited for
    cpu     CPU time of all processes        end     from the program's last instruction to the end of tui-probe

Without a GPU `--stub` takes the tests' driver, which runs nothing. `--site` lets each start of Python take that many
seconds longer, as it does where packages import much in .pth files. With `--stamps` the moments of one run follow,
those among them at which a Python had read its .pth files (`python_PID`): there should be one such Python.
With PYTHONDONTWRITEBYTECODE an editable install is compiled anew at each start, which the first line then says.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

HERE = Path(__file__).parent
STUB = HERE.parent / "hook" / "stub_driver.c"
LIBRARY = "libcuda.so.1"
SLOW = """import os, time
time.sleep(float(os.environ['TUI_PROBE_BENCH_SITE']))
with open(os.environ['TUI_PROBE_BENCH_PYTHONS'], 'a') as log:
    print(f'python_{os.getpid()}', time.monotonic() * 1e3, file=log)
"""
MOMENTS = 5  # lines that the program prints; the tool's report follows
COLUMNS = ("alone", "whole", "over", "main", "first", "end", "cpu")


@dataclass(frozen=True)
class Bench:
    """Builds and runs the program in ``folder``."""

    folder: Path
    kernels: int
    driver: Path | None
    environment: dict[str, str] = field(default_factory=dict)

    def build(self) -> None:
        program = ["cc", "-O1", "-o", str(self.folder / "start"), str(HERE / "start_program.c"), "-ldl"]
        subprocess.run(program, check=True)
        (self.folder / "sitecustomize.py").write_text(SLOW, encoding="utf-8")

    def once(self, *words: str) -> dict[str, float]:
        """Milliseconds of one run under the tool, or by itself without ``words``, from its start to each event."""
        tool = [sys.executable, "-m", "tui_probe", *words] if words else []
        tool += ["--driver", str(self.driver), "--"] if words and self.driver else ["--"] if words else []
        begun, used = time.monotonic() * 1e3, children_cpu()
        done = subprocess.run(
            [*tool, str(self.folder / "start"), str(self.kernels)],
            env=self.environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            sys.exit(f"{done.stderr.strip()}\nmeasure without a GPU: python -m tests.bench.start --stub")
        total = time.monotonic() * 1e3 - begun
        stamps = (line.split() for line in done.stdout.splitlines()[:MOMENTS])
        cpu = children_cpu() - used
        return {name: float(moment) - begun for name, moment in stamps} | {"whole": total, "cpu": cpu}

    def profiled(self, *, warm: bool, report: bool) -> dict[str, float]:
        """One run under the tool."""
        trace, cache = self.folder / "trace", Path(self.environment["XDG_CACHE_HOME"])
        if not warm:
            shutil.rmtree(cache, ignore_errors=True)
        try:
            return self.once("run", "--no-ui", "--tracedir", str(trace), *([] if report else ["--no-report"]))
        finally:
            shutil.rmtree(trace, ignore_errors=True)


def children_cpu() -> float:
    """CPU milliseconds of the processes that ended, with those that they waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (usage.ru_utime + usage.ru_stime) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--site", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--stamps", action="store_true")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--driver", type=Path)
    chosen.add_argument("--stub", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:  # the self-test of grafts may still write
        folder = Path(name)
        driver = build_stub(folder) if options.stub else options.driver
        has_site = bool(options.site or options.stamps)
        bench = Bench(folder, options.kernels, driver, environment(folder, driver, options.site if has_site else None))
        bench.build()
        bench.profiled(warm=True, report=True)  # nothing is in the disk's cache before
        measure(bench, options)


def build_stub(folder: Path) -> Path:
    """The tests' driver, which runs no kernel."""
    stub = folder / "stub" / LIBRARY
    stub.parent.mkdir()
    flags = ["-std=gnu17", "-O1", "-fPIC", "-shared", "-fvisibility=hidden", "-Wl,-Bsymbolic", f"-Wl,-soname,{LIBRARY}"]
    subprocess.run(["cc", *flags, "-o", stub, STUB, "-lpthread", "-ldl"], check=True)
    return stub


def environment(folder: Path, driver: Path | None, site: float | None) -> dict[str, str]:
    """Environment of all runs: nothing of the user's, and a Python that starts as slowly as requested.

    None: as it does. With PYTHONPATH, by which it is made slow, tui-probe starts a Python without it, as in any run.
    """
    own = {f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in ("CACHE", "CONFIG", "STATE")}
    environment = os.environ | own | {"TUI_PROBE_MIN_FREE_DISK": "0"}
    if site is not None:
        path = f"{folder}:{HERE.parents[1]}:{os.environ.get('PYTHONPATH', '')}".rstrip(":")
        environment |= {"PYTHONPATH": path, "TUI_PROBE_BENCH_SITE": str(site)}
    environment["TUI_PROBE_BENCH_PYTHONS"] = str(folder / "pythons")
    if driver is not None:
        environment["LD_LIBRARY_PATH"] = f"{driver.parent}:{environment.get('LD_LIBRARY_PATH', '')}".rstrip(":")
    return environment


def measure(bench: Bench, options: argparse.Namespace) -> None:
    """Run all kinds in turn, and show them."""
    kinds = {
        "cache empty": {"warm": False, "report": True},
        "cache warm": {"warm": True, "report": True},
        "cache warm, no report": {"warm": True, "report": False},
    }
    unprofiled: list[dict[str, float]] = []
    found: dict[str, list[dict[str, float]]] = {kind: [] for kind in kinds}
    for _ in range(options.rounds):
        unprofiled.append(bench.once())
        for kind, how in kinds.items():
            found[kind].append(bench.profiled(**how))
    if sys.dont_write_bytecode:
        sys.stdout.write("PYTHONDONTWRITEBYTECODE is set: modules without a .pyc are compiled at each start\n")
    sys.stdout.write(f"{'':<24}{''.join(f'{name:>8}' for name in COLUMNS)}   ms\n")
    own = middle(unprofiled)
    for kind, runs in found.items():
        taken = middle(runs)
        first = taken["first"] - taken["main"] - (own["first"] - own["main"])
        total = taken["whole"]
        row = (own["whole"], total, total - own["whole"], taken["main"], first, total - taken["end"], taken["cpu"])
        sys.stdout.write(f"{kind:<24}{''.join(f'{value:>8.0f}' for value in row)}\n")
    if options.stamps:
        show_stamps(bench)


def middle(runs: list[dict[str, float]]) -> dict[str, float]:
    """The median of each moment."""
    return {name: median(run[name] for run in runs) for name in runs[0]}


def show_stamps(bench: Bench) -> None:
    """Times at which one run reached its phases."""
    log = bench.folder / "pythons"
    log.unlink(missing_ok=True)
    begun = time.monotonic() * 1e3
    moments = bench.profiled(warm=True, report=True)
    pythons = (line.split() for line in log.read_text(encoding="utf-8").splitlines())
    moments |= {name: float(moment) - begun for name, moment in pythons}
    sys.stdout.write("\none run, cache warm, with a report: ms since the command\n")
    del moments["cpu"]  # a duration
    for name, moment in sorted(moments.items(), key=lambda each: each[1]):
        sys.stdout.write(f"{moment:>8.1f}  {name}\n")


if __name__ == "__main__":
    main()
