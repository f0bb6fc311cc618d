"""Outcomes for kernels without PTX: grafted, or refused, by the code of the reason.

    python -m tests.bench.grafts [--probe NAME …] [--arch 90 …] [--most N] [--check N] [FILE …]

Without files: the kernels of the tests' PTX, assembled for sm_80, sm_86, sm_90 and sm_100. Files are libraries,
executables, fatbins and cubins, from which the SASS of these architectures is taken, ``--most`` kernels of each
file. Probes are one of entries and exits, and those of single instructions, unless named. Of all grafted files
of which one kernel each is chosen by chance, nvdisasm checks ``--check``.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.engine.cubin_entries import cubins_in
from tests.ptx.corpus import FILES
from tui_probe.binaries.cubin import Cubin
from tui_probe.binaries.line_tables import cut_table
from tui_probe.engine.assembler import Assembler
from tui_probe.engine.grafting.grafts import GraftedKernel, Grafter
from tui_probe.errors import ProbeError, ToolchainError, UnsupportedKernelError
from tui_probe.probe_files.loading import load_probe
from tui_probe.sass.excerpt import KeptWholeError
from tui_probe.sass.prune import prune_cubin
from tui_probe.toolchain import find_disassembler

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ARCHITECTURES = (80, 86, 90, 100)
COUNTING = ("gmem_sectors", "gmem_bytes", "tensorop_count")
RECORDING = ("dmat",)
PROBES = ("block_sched", *COUNTING, *(f"{name}_by_line" for name in COUNTING), *RECORDING)


@dataclass
class Tally:
    """Numbers of grafted kernels and of single instructions, and the names of refused ones by the code of
    the reason.
    """

    grafted: int = 0
    sites: int = 0
    refused: dict[str, list[str]] = field(default_factory=dict)
    images: list[bytes] = field(default_factory=list)

    @property
    def kernels(self) -> int:
        return self.grafted + sum(map(len, self.refused.values()))

    def lines(self) -> Iterator[str]:
        share = self.grafted / max(self.kernels, 1)
        yield f"{self.grafted} of {self.kernels} kernels grafted ({share:.2%}), {self.sites} instructions"
        for code, names in sorted(self.refused.items(), key=lambda each: -len(each[1])):
            yield f"    {len(names)} {code}: {', '.join(sorted(set(names))[:3])}"


def tally(cubins: Iterable[Cubin], grafter: Grafter, most: int = 1 << 30) -> Tally:
    """Graft the kernels of cubins, ``most`` of them."""
    tally = Tally()
    for cubin in cubins:
        last = b""
        for name in cubin.kernels:
            if tally.kernels >= most:
                return tally
            try:
                made = _grafted(grafter, cubin, name)
                last = made.probed_image
                tally.grafted += 1
                tally.sites += made.sites.count('"offset"')
            except ProbeError as error:
                code = error.reason.code if error.reason else None
                tally.refused.setdefault(code or type(error).__name__, []).append(name)
        tally.images += [last] if last else []
    return tally


def _grafted(grafter: Grafter, cubin: Cubin, name: str) -> GraftedKernel:
    """As in a run: in a cubin of its own, and with values in slots where a kernel leaves no register for them."""
    with suppress(KeptWholeError):
        cubin = prune_cubin(cubin, name, cut_table)
    try:
        return grafter.graft(cubin, name)
    except UnsupportedKernelError as error:
        if error.reason.code not in ("graft-uniform", "graft-calls"):
            raise
        return grafter.graft(cubin, name, in_slots=True)


def of_corpus(arch: int, names: Iterable[str] | None = None) -> Iterator[Cubin]:
    """The tests' PTX as machine code for an architecture, if ptxas can assemble it."""
    assembler = Assembler()
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder) / "one.ptx", Path(folder) / "one.cubin"
        for file in FILES:
            if names is not None and file.name not in names:
                continue
            source.write_text(file.read_text())
            try:
                assembler.assemble(source, binary, f"sm_{arch}", "")
            except ToolchainError:  # written for other architectures
                continue
            yield Cubin.read(binary.read_bytes())


def of_file(path: Path, architectures: Iterable[int]) -> list[Cubin]:
    """The cubins in a file for these architectures, in an order that is the same each time, and mixed."""
    cubins = [Cubin.read(image) for image in cubins_in(path.read_bytes(), set(architectures))]
    random.Random(1).shuffle(cubins)
    return cubins


def refused_by_nvdisasm(images: Iterable[bytes]) -> list[str]:
    """Messages of nvdisasm about files that it does not read, or in which it finds unknown instructions."""
    tool, failures = find_disassembler(), []
    if tool is None:
        raise ProbeError("no nvdisasm on this machine: install nvidia-cuda-nvdisasm")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "grafted.cubin"
        for image in images:
            path.write_bytes(image)
            done = subprocess.run([tool.path, "-c", path], capture_output=True, text=True, check=False)
            unknown = re.findall(r".*(?:INVALID|\?\?\?).*", done.stdout)
            if done.returncode or "error" in done.stderr or unknown:
                failures.append("\n".join([done.stderr.strip(), *unknown[:3]]))
    return failures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--probe", nargs="*", default=PROBES)
    parser.add_argument("--arch", type=int, nargs="*", default=ARCHITECTURES)
    parser.add_argument("--most", type=int, default=1000)
    parser.add_argument("--check", type=int, default=20)
    options = parser.parse_args()
    for probe in options.probe:
        print(probe)
        grafter = Grafter(load_probe(probe), Assembler(), samples_blocks=False)
        architectures = () if options.files else options.arch
        tallies = {f"tests' PTX for sm_{arch}": tally(of_corpus(arch), grafter) for arch in architectures}
        tallies |= {str(path): tally(of_file(path, options.arch), grafter, options.most) for path in options.files}
        for what, found in tallies.items():
            _tell(what, found, options.check)


def _tell(what: str, found: Tally, check: int) -> None:
    print(f"    {what}")
    for line in found.lines():
        print(f"        {line}")
    chosen = random.Random(1).sample(found.images, min(check, len(found.images)))
    complaints = refused_by_nvdisasm(chosen)
    print(f"        nvdisasm reads {len(chosen) - len(complaints)} of {len(chosen)} grafted files", flush=True)
    for words in complaints:
        print(f"            {words}")


if __name__ == "__main__":
    main()
