"""False alarms of ``tui-probe gate --against``, and slowdowns that it finds, on a GPU.

    python -m tests.bench.gate_alarms [--gates 5] [--slower 3] [--repeats 8] [--json FILE]

Builds ``programs/planted_slowdown.cu`` with nvcc: forty kernels of different lengths. First each gate compares the
program with itself: every verdict *worse* or *better* is a false alarm. Goal: at most 2 of 200 comparisons. Then it
compares the program with one whose kernels do ``--slower`` per cent more: a verdict other than *worse* is a miss.
Goal: at least 95 % found.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

_SOURCE: Final = Path(__file__).parent / "programs" / "planted_slowdown.cu"


def gate(program: Path, slower: float, repeats: int, folder: Path) -> dict[str, Any]:
    """Return the JSON of a gate of the program that is ``slower`` per cent slower, against the program itself."""
    against = shlex.join([str(program), "0"])
    command = ["tui_probe", "gate", "alarms", "--format=json", f"--repeats={repeats}", f"--against={against}"]
    ended = subprocess.run(
        [sys.executable, "-m", *command, "--", str(program), str(slower)], cwd=folder, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    if not ended.stdout.startswith("{"):
        sys.exit(ended.stderr)
    result: dict[str, Any] = json.loads(ended.stdout)
    return result


def verdicts(gates: list[dict[str, Any]]) -> Counter[str]:
    """Count the verdicts of all comparisons."""
    return Counter(judged["verdict"] for result in gates for judged in result["verdicts"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gates", type=int, default=5, help="gates of equal programs, default %(default)s")
    parser.add_argument("--slower", type=float, default=3.0, help="per cent, default %(default)s")
    parser.add_argument("--repeats", type=int, default=8, help="blocks ABBA of a gate, default %(default)s")
    parser.add_argument("--json", type=Path, help="write the documents of all gates to this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gate-alarms-") as name:
        folder = Path(name)
        program = folder / "planted_slowdown"
        subprocess.run(["nvcc", "-O3", "-arch=native", "-o", str(program), str(_SOURCE)], check=True)
        results = {}
        for what, slower, count in (("equal", 0.0, options.gates), ("slower", options.slower, 2)):
            began = time.monotonic()
            results[what] = [gate(program, slower, options.repeats, folder) for _ in range(count)]
            print(f"{what}: {dict(verdicts(results[what]))}, {(time.monotonic() - began) / count:.1f} s per gate")
    if options.json:
        options.json.write_text(json.dumps(results))
    print(f"clocks: {results['equal'][0].get('clocks')}")


if __name__ == "__main__":
    main()
