"""A long run whose engine, screens and watchers are killed at random.

    python -m tests.attack.long_run [--minutes 60] [--rate 1000] [--seed 0]

A program launches that many kernels per second on the simulated GPU and loads its module anew 180 times, each time a
kernel more in the table; the live screen shows it, and another terminal watches. At times that the seed decides the
engine or the watcher is killed, and a watcher is started again; near the end the screen itself is killed. Printed every
twelfth of the run: memory of the program with the hook in it, of the engine and of the screen. Ends with status 1 and
says why where

- the program did not do what it does without tui-probe, to its end;
- a result that the log names is not there, or cannot be read;
- memory grew by more than 5 MB after the first two twelfths, or the first of an engine that was started again.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.graphs.cuda_graph import KERNELS
from tests.ui.terminal import Terminal
from tui_probe.errors import ProbeError
from tui_probe.trace.follow import open_trace
from tui_probe.trace.results import read_result

PROBE: Final = "block_sched"
HERE: Final = Path(__file__).resolve().parent
PARTS: Final = 12
MODULES: Final = 180
SHORTEST_TURN: Final = 2.0
"""Seconds between two loads of the program's module, at the least."""
SAVED: Final = re.compile(r"^\[exec\] save (\S+) size (\d+)", re.MULTILINE)
MOST_GROWTH: Final = 5_000_000
KILLS_PER_PART: Final = 2
WATCHED_SECONDS: Final = 3.0
"""Seconds for which the program continues after its screen is killed."""


@dataclass
class Memory:
    """Resident bytes of one process at each look; before the second one it is at its start."""

    pid: int
    looks: list[int] = field(default_factory=list)

    def update(self) -> None:
        self.looks.append(resident(self.pid))

    @property
    def growth(self) -> int:
        return max(self.looks[1:], default=0) - self.looks[1] if len(self.looks) > 1 else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rate", type=int, default=1000, help="launches per second")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tui-probe-") as folder:
        run = LongRun(Path(folder), options.minutes * 60, options.rate, random.Random(options.seed))
        problems = run.go()
    print("\n".join(problems) or "nothing was wrong")
    return 1 if problems else 0


class LongRun:
    """One run of ``seconds``, in a folder."""

    def __init__(self, folder: Path, seconds: float, rate: int, chance: random.Random) -> None:
        self.folder, self.seconds, self.rate, self.chance = folder, seconds, rate, chance
        self.traces = folder / "traces"
        self.kills = {"engine": 0, "watcher": 0}
        self.memory: dict[str, list[Memory]] = {"program": [], "engine": [], "screen": []}

    def go(self) -> list[str]:
        """Returns what was wrong."""
        with Terminal(self._command(), (120, 40)) as screen:
            screen.wait("launches", 30)
            with self._watcher() as watcher:
                self._disturb(screen, watcher)
        (trace,) = self.traces.glob("*_*")
        return [*self._after(trace), *self._too_large()]

    def _command(self) -> list[str]:
        program, kernels = self.folder / "paced", self.folder / "kernels.ptx"
        subprocess.run(["cc", "-O2", "-o", program, HERE / "paced.c", "-ldl"], check=True)
        kernels.write_bytes(KERNELS)
        tool = [sys.executable, "-m", "tui_probe", "run", "-p", PROBE, "--sim", "--tracedir", str(self.traces), "--"]
        turn = max(SHORTEST_TURN, self.seconds / MODULES)
        return [*tool, str(program), str(kernels), str(self.seconds), str(self.rate), str(turn)]

    def _watcher(self) -> Terminal:
        return Terminal([sys.executable, "-m", "tui_probe", "watch", str(self.traces)], (80, 24))

    def _disturb(self, screen: Terminal, watcher: Terminal) -> None:
        """Kill what may be killed until the run is nearly over, then the screen."""
        part, begun = self.seconds / PARTS, time.monotonic()
        for number in range(1, PARTS):
            times = sorted(self.chance.uniform(number - 1, number) * part for _ in range(KILLS_PER_PART))
            for at in times:
                sleep_until(begun + at)
                watcher = self._kill_one(screen, watcher)
            sleep_until(begun + number * part)
            self._look(screen)
            self._tell(number)
            screen.received.clear()
        sleep_until(begun + self.seconds - WATCHED_SECONDS)
        program = found_below(screen.pid, "paced")
        os.kill(screen.pid, signal.SIGKILL)
        watcher.__exit__()
        wait_for_end(program, 20 + self.seconds / 10)

    def _kill_one(self, screen: Terminal, watcher: Terminal) -> Terminal:
        """Returns the watcher that there is now."""
        engine = found_below(screen.pid, "tui-probe engine")
        if engine and self.kills["engine"] < 6 and self.chance.random() < 0.4:  # it is started seven times more
            os.kill(engine, signal.SIGKILL)
            self.kills["engine"] += 1
            return watcher
        watcher.__exit__()
        self.kills["watcher"] += 1
        return self._watcher()

    def _look(self, screen: Terminal) -> None:
        pids = {"screen": screen.pid} | {
            name: found_below(screen.pid, words)
            for name, words in (("program", "paced"), ("engine", "tui-probe engine"))
        }
        for name, pid in pids.items():
            of = self.memory[name]
            if pid and not (of and of[-1].pid == pid):
                of.append(Memory(pid))
            if pid:
                of[-1].update()

    def _tell(self, number: int) -> None:
        sizes = [f"{name} {of[-1].looks[-1] / 1e6:.1f} MB" for name, of in self.memory.items() if of and of[-1].looks]
        kills = ", ".join(f"{name} killed {n}×" for name, n in self.kills.items())
        print(f"{number * self.seconds / PARTS / 60:5.1f} min: {', '.join(sizes)}; {kills}", flush=True)

    def _after(self, trace: Path) -> list[str]:
        """Return the problems of the program's output and of its trace."""
        output = (trace / "stdout.log").read_text()
        problems = [] if output.endswith("launches, right\n") else [f"the program wrote {output!r}"]
        saved = SAVED.findall((trace / "event.log").read_text())
        for name, size in saved:
            problems += unreadable(trace / name, int(size))
        kernels = open_trace(trace).kernels
        print(f"{output.strip()}; {len(saved)} results; {sum(kernel.status == 'probed' for kernel in kernels)} of "
              f"{len(kernels)} kernels probed")  # fmt: skip
        return problems

    def _too_large(self) -> list[str]:
        return [
            f"{name} {of.pid} grew by {of.growth / 1e6:.1f} MB: {[round(look / 1e6, 1) for look in of.looks]}"
            for name, several in self.memory.items()
            for of in several
            if of.growth > MOST_GROWTH
        ]


def unreadable(path: Path, size: int) -> list[str]:
    """Return the problem of a result."""
    try:
        read_result(path)
    except (OSError, ProbeError) as error:
        return [f"{path}: {error}"]
    return [] if path.stat().st_size == size else [f"{path}: {path.stat().st_size} bytes, not {size}"]


def found_below(pid: int, words: str) -> int:
    """A process below this one whose command line has the words; 0: there is none."""
    listed = subprocess.run(["ps", "-eo", "pid,ppid,stat,args"], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 3) for line in listed.splitlines()[1:]]
    below = {pid}
    for _ in range(4):
        below |= {int(row[0]) for row in rows if int(row[1]) in below}
    problems = [
        int(number)
        for number, _, state, line in rows
        if int(number) in below - {pid} and "Z" not in state and words in line.split(" -- ")[-1]
    ]
    return problems[-1] if problems else 0


def resident(pid: int) -> int:
    """Bytes; 0 for a process that has ended."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.monotonic()))


def wait_for_end(pid: int, seconds: float) -> None:
    """Wait for a process that is not ours, at most so long, and for what completes its trace."""
    end = time.monotonic() + seconds
    while Path(f"/proc/{pid}").exists() and time.monotonic() < end:
        time.sleep(0.1)
    time.sleep(1)


if __name__ == "__main__":
    sys.exit(main())
