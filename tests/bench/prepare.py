"""What preparing a kernel takes: our own part, the assembler, both together, and from the cache.

    python -m tests.bench.prepare [--probe block_sched] [--rounds 9] [--most-own-ms MS]

No GPU is needed. The least of all rounds, in milliseconds, of kernels of tests/data/ptx: ``own`` is all but assembling
(image, parsing, pruning, probing, writing), ``ptxas`` the assembler alone on the probed kernel, ``cold`` a kernel that
was never seen, ``over`` what that takes more than the assembler, ``cached`` a kernel that is in the cache.
With --most-own-ms the exit status is 1 if ``own`` is more for some kernel.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tui_probe.engine.assemble import Assembler
from tui_probe.engine.cache import Cache
from tui_probe.engine.prepare import Preparer
from tui_probe.probe_files.loading import load_probe

if TYPE_CHECKING:
    from tui_probe.engine.model import Probe
    from tui_probe.engine.toolchain import Tool

DATA = Path(__file__).parents[1] / "data" / "ptx"
KERNELS = (
    ("triton_add.sm_80.ptx", "add", "sm_80"),
    ("triton_matmul.sm_80.ptx", "matmul", "sm_80"),
    ("triton_softmax.sm_80.ptx", "softmax", "sm_80"),
    ("attn_fwd.sm_90a.ptx", "attn_fwd", "sm_90"),
    ("attn_fwd.sm_90a.cubin", "attn_fwd", "sm_90"),
)


@dataclass(frozen=True)
class Bench:
    """Prepares kernels in folders of their own."""

    probe: Probe
    tools: list[Tool]
    folder: Path
    rounds: int

    def least(self, kernel: tuple[str, str, str], tools: list[Tool], cache: Cache | None = None) -> float:
        """Milliseconds to prepare a kernel: with a cache, of all rounds but the first, which fills it."""
        image = (DATA / kernel[0]).read_bytes()
        taken = []
        for _ in range(self.rounds + (cache is not None)):
            preparer = Preparer(self.probe, assembler=Assembler(tools), cache=cache)
            preparer.warm_up()
            taken.append(self.once(preparer, image, kernel))
            preparer.close()
        return min(taken[cache is not None :])

    def once(self, preparer: Preparer, image: bytes, kernel: tuple[str, str, str]) -> float:
        directory = Path(tempfile.mkdtemp(dir=self.folder))
        (directory / "original.bin").write_bytes(image)
        started = time.perf_counter()
        answer = preparer.prepare(directory, kernel[2], kernel[1])
        elapsed = (time.perf_counter() - started) * 1e3
        assert answer.outcome == "ok", answer.text
        return elapsed

    def assembling(self, kernel: tuple[str, str, str]) -> float:
        """Milliseconds of the assembler alone on the probed kernel."""
        preparer = Preparer(self.probe, assembler=Assembler([]))
        directory = Path(tempfile.mkdtemp(dir=self.folder))
        (directory / "original.bin").write_bytes((DATA / kernel[0]).read_bytes())
        preparer.prepare(directory, kernel[2], kernel[1])
        preparer.close()
        ptx, binary = directory / "probed.ptx", directory / "probed.bin"
        runs = (Assembler(self.tools).assemble(ptx, binary, kernel[2], kernel[1]) for _ in range(self.rounds))
        return min(report.elapsed * 1e3 for report in runs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--probe", default="block_sched")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--most-own-ms", type=float)
    options = parser.parse_args()
    tools = Assembler().tools()
    own_times = []
    print(f"{'kernel':<26}{'own':>8}{'ptxas':>8}{'cold':>8}{'over':>8}{'cached':>8}   ms, probe {options.probe}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bench = Bench(load_probe(options.probe), tools, folder, options.rounds)
        for kernel in KERNELS:
            own_times.append(own := bench.least(kernel, []))
            cached = bench.least(kernel, tools, Cache(folder / "cache"))
            line = f"{kernel[0]:<26}{own:>8.1f}"
            if tools:
                assembling, cold = bench.assembling(kernel), bench.least(kernel, tools)
                line += f"{assembling:>8.1f}{cold:>8.1f}{cold - assembling:>8.1f}"
            else:
                line += f"{'–':>8}{'–':>8}{'–':>8}"
            print(f"{line}{cached:>8.1f}", flush=True)
    return int(options.most_own_ms is not None and max(own_times) > options.most_own_ms)


if __name__ == "__main__":
    sys.exit(main())
