"""Cost of preparing a kernel: our own part, the assembler, both together, and from the cache.

    python -m tests.bench.prepare [--probe block_sched] [--rounds 9] [--most-own-ms MS]

No GPU is needed. The least of all rounds, in milliseconds, of kernels of tests/data/ptx: ``own`` is all but assembling
(image, parsing, pruning, probing, writing), ``ptxas`` the assembler by itself on the probed kernel, ``cold`` a kernel
that was never seen, ``over`` what that takes more than the assembler, ``cached`` a kernel that is in the cache.
``files`` is what the disk takes of that: the same files made, written and closed, and nothing else; ``ratio`` is cached
to files. Where ``files`` is large or differs from run to run, so do all columns but ptxas. The last line is what
sites.json takes for a thousand sites, next to putting the probe into the kernel at as many.
With --most-own-ms the exit status is 1 if ``own`` is more for some kernel.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tui_probe.engine.assembler import Assembler
from tui_probe.engine.cache import Cache
from tui_probe.engine.insertion import build_probed_ptx
from tui_probe.engine.kernel import Kernel
from tui_probe.engine.preparer import Preparer
from tui_probe.engine.site_file import site_file
from tui_probe.probe_files.loading import load_probe
from tui_probe.ptx.parser import parse

if TYPE_CHECKING:
    from tui_probe.probe_model.probe import Probe
    from tui_probe.toolchain import Tool

DATA = Path(__file__).parents[1] / "data" / "ptx"
KERNELS = (
    ("triton_add.sm_80.ptx", "add", "sm_80"),
    ("triton_matmul.sm_80.ptx", "matmul", "sm_80"),
    ("triton_softmax.sm_80.ptx", "softmax", "sm_80"),
    ("attn_fwd.sm_90a.ptx", "attn_fwd", "sm_90"),
    ("attn_fwd.sm_90a.cubin", "attn_fwd", "sm_90"),
)


SITES = "gmem_sectors"
LOADS = 4000


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

    def bare(self, kernel: tuple[str, str, str]) -> float:
        """Milliseconds that the files of a prepared kernel take to be made."""
        preparer = Preparer(self.probe, assembler=Assembler(self.tools))
        directory = Path(tempfile.mkdtemp(dir=self.folder))
        (directory / "original.bin").write_bytes((DATA / kernel[0]).read_bytes())
        preparer.prepare(directory, kernel[2], kernel[1])
        preparer.close()
        contents = {path.name: path.read_bytes() for path in directory.iterdir() if path.name != "original.bin"}
        return min(self._written(contents) for _ in range(self.rounds))

    def _written(self, contents: dict[str, bytes]) -> float:
        directory = tempfile.mkdtemp(dir=self.folder)
        started = time.perf_counter()
        for name, content in contents.items():
            descriptor = os.open(f"{directory}/{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.write(descriptor, content)
            os.close(descriptor)
        return (time.perf_counter() - started) * 1e3

    def once(self, preparer: Preparer, image: bytes, kernel: tuple[str, str, str]) -> float:
        directory = Path(tempfile.mkdtemp(dir=self.folder))
        (directory / "original.bin").write_bytes(image)
        started = time.perf_counter()
        answer = preparer.prepare(directory, kernel[2], kernel[1])
        elapsed = (time.perf_counter() - started) * 1e3
        assert answer.outcome == "ok", answer.text
        return elapsed

    def assembling(self, kernel: tuple[str, str, str]) -> float:
        """Milliseconds of the assembler by itself on the probed kernel."""
        preparer = Preparer(self.probe, assembler=Assembler([]))
        directory = Path(tempfile.mkdtemp(dir=self.folder))
        (directory / "original.bin").write_bytes((DATA / kernel[0]).read_bytes())
        preparer.prepare(directory, kernel[2], kernel[1])
        preparer.close()
        ptx, binary = directory / "probed.ptx", directory / "probed.bin"
        runs = (Assembler(self.tools).assemble(ptx, binary, kernel[2], kernel[1]) for _ in range(self.rounds))
        return min(report.elapsed * 1e3 for report in runs)


def sites(probe: Probe, rounds: int) -> tuple[float, float]:
    """Milliseconds per 1000 sites of a kernel with a source line for each load: for sites.json, and for the probe."""
    loads = "".join(
        f".loc 1 {1 + number % 700} 5\nld.global.u32 %r1, [%rd1+{4 * number}];\n" for number in range(LOADS)
    )
    text = f"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry loads(.param .u64 from)
{{
.reg .b32 %r<2>;
.reg .b64 %rd<2>;
ld.param.u64 %rd1, [from];
{loads}ret;
}}
.file 1 "/src/loads.py"
"""
    writing, inserting = [], []
    for _ in range(rounds):
        kernel = Kernel.of(parse(text), "loads")
        begun = time.perf_counter()
        notes = build_probed_ptx(kernel, probe).notes
        inserted = time.perf_counter()
        site_file(probe.name, kernel, notes, b"")
        inserting.append(inserted - begun)
        writing.append(time.perf_counter() - inserted)
    return min(writing) * 1e6 / LOADS, min(inserting) * 1e6 / LOADS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--probe", default="block_sched")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--most-own-ms", type=float)
    options = parser.parse_args()
    tools = Assembler().tools()
    own_times = []
    head = "".join(f"{word:>8}" for word in ("own", "ptxas", "cold", "over", "cached", "files", "ratio"))
    print(f"{'kernel':<26}{head}   ms, probe {options.probe}")
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
            files = bench.bare(kernel)
            print(f"{line}{cached:>8.2f}{files:>8.2f}{cached / files:>8.1f}", flush=True)
    writing, inserting = sites(load_probe(SITES), options.rounds)
    ratio = writing / inserting
    print(f"1000 sites of {SITES}: sites.json {writing:.2f} ms, the probe {inserting:.1f} ms, ratio {ratio:.3f}")
    return int(options.most_own_ms is not None and max(own_times) > options.most_own_ms)


if __name__ == "__main__":
    sys.exit(main())
