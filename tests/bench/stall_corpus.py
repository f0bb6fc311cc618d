"""Kernels in which stalls can be measured: accepted and refused, by architecture and by the code of the reason.

    python -m tests.bench.stall_corpus [--arch 90 …] [--most N] [--probe NAME] DIRECTORY|FILE …

Files are cubins, fatbins, libraries, executables and wheels; others in a directory are skipped. Of each file and
architecture up to ``--most`` kernels are taken by chance, the same ones each time; equal code counts once. A kernel
is accepted if the probe can be put into it. Of the accepted ones ``complete`` are those in which each instruction that
waits by itself (DEPBAR, WARPGROUP, BAR, MEMBAR, but not NANOSLEEP) can be measured.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import zipfile
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.engine.cubin_entries import cubins_in
from tui_probe.binaries.cubin import CODE_PREFIX, Cubin
from tui_probe.binaries.line_tables import cut_table
from tui_probe.draw.shorten import shorten
from tui_probe.engine.assembler import Assembler
from tui_probe.engine.grafting.snippet_store import SnippetStore
from tui_probe.engine.grafting.wait_grafts import graft_waits
from tui_probe.errors import ImageError, ProbeError
from tui_probe.probe_files.loading import load_probe
from tui_probe.sass.excerpt import KeptWholeError
from tui_probe.sass.prune import prune_cubin
from tui_probe.sass.target import GraftTarget
from tui_probe.sass.wait_sites import movable_sites, wait_sites

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ARCHITECTURES: Final = (80, 86, 89, 90, 100, 120)
GOAL: Final = 0.95
_MAX_NAME: Final = 40


@dataclass
class Acceptance:
    """Outcome for the kernels of one architecture: names of refused ones by the code of the reason."""

    accepted: int = 0
    complete: int = 0
    sites: int = 0
    without_waits: int = 0
    refused: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    @property
    def kernels(self) -> int:
        """All kernels that wait somewhere."""
        return self.accepted + sum(map(len, self.refused.values()))

    def lines(self) -> Iterator[str]:
        """Yield the counts, then a line per reason."""
        share = self.accepted / max(self.kernels, 1)
        yield f"{self.accepted} of {self.kernels} kernels accepted ({share:.1%}), {self.complete} complete"
        yield f"    {self.sites} sites of the first group; {self.without_waits} kernels without a wait left out"
        for code, names in sorted(self.refused.items(), key=lambda each: -len(each[1])):
            yield f"    {len(names)} {code}: {_examples(names)}"


def _examples(names: Iterable[str]) -> str:
    """Return the first three names, cut."""
    return ", ".join(shorten(name, _MAX_NAME) for name in sorted(set(names))[:3])


def images(paths: Iterable[Path]) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of files, of all files in directories, and of the libraries in wheels."""
    for path in paths:
        if path.is_dir():
            yield from images(sorted(child for child in path.iterdir() if not child.is_symlink()))
        elif path.suffix == ".whl":
            with zipfile.ZipFile(path) as wheel:
                for name in wheel.namelist():
                    if name.endswith((".cubin", ".fatbin", ".so")) or ".so." in name:
                        yield name, wheel.read(name)
        else:
            yield path.name, path.read_bytes()


def kernels_of(image: bytes, arch: int, most: int, seen: set[bytes]) -> Iterator[tuple[Cubin, str]]:
    """Yield up to ``most`` kernels of an image that differ from those ``seen``, in cubins of their own."""
    with suppress(ImageError):
        cubins = [Cubin.read(content) for content in cubins_in(image, {arch})]
        pairs = [(cubin, name) for cubin in cubins for name in cubin.kernels]
        random.Random(1).shuffle(pairs)
        for cubin, name in pairs:
            digest = hashlib.sha256(cubin.content(cubin.section(CODE_PREFIX + name))).digest()
            if digest in seen or most <= 0:
                continue
            seen.add(digest)
            most -= 1
            with suppress(KeptWholeError):
                cubin = prune_cubin(cubin, name, cut_table)
            yield cubin, name


class Corpus:
    """Grafts the probe into kernel after kernel and adds up the outcomes by architecture."""

    def __init__(self, probe: str) -> None:
        self._probe = load_probe(probe)
        self._snippets = SnippetStore(Assembler())
        self.by_arch: dict[int, Acceptance] = defaultdict(Acceptance)

    def add(self, cubin: Cubin, name: str) -> None:
        """Count one kernel."""
        acceptance = self.by_arch[cubin.arch]
        try:
            target = GraftTarget.from_cubin(cubin, name)
            sites = wait_sites(target)
            if not sites:
                acceptance.without_waits += 1
                return
            _, waits = graft_waits(target, self._probe, self._snippets, samples_blocks=False)
        except ProbeError as error:
            code = error.reason.code if error.reason else None
            acceptance.refused[code or type(error).__name__].append(name)
            return
        own = {site.index for site in sites if site.own_class not in (None, "sleep")}
        acceptance.accepted += 1
        acceptance.complete += own <= {site.index for site in movable_sites(target, sites)}
        acceptance.sites += len(waits.sites)

    def total(self) -> Acceptance:
        """Return the sum over architectures."""
        total = Acceptance()
        for acceptance in self.by_arch.values():
            total.accepted += acceptance.accepted
            total.complete += acceptance.complete
            total.sites += acceptance.sites
            total.without_waits += acceptance.without_waits
            for code, names in acceptance.refused.items():
                total.refused[code] += names
        return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
    parser.add_argument("--arch", type=int, nargs="*", default=ARCHITECTURES)
    parser.add_argument("--most", type=int, default=100)
    parser.add_argument("--probe", default="stall_sites")
    options = parser.parse_args()
    corpus, seen, files = Corpus(options.probe), set[bytes](), Counter[str]()
    for name, image in images(options.paths):
        for arch in options.arch:
            for cubin, kernel in kernels_of(image, arch, options.most, seen):
                corpus.add(cubin, kernel)
                files[name] += 1
    print(f"{sum(files.values())} kernels of {len(files)} files")
    for arch, acceptance in sorted(corpus.by_arch.items()):
        print(f"sm_{arch}", *acceptance.lines(), sep="\n    ")
    total = corpus.total()
    print("all", *total.lines(), sep="\n    ")
    if total.accepted < GOAL * total.kernels:
        sys.exit(f"fewer than {GOAL:.0%} of the kernels accepted")


if __name__ == "__main__":
    main()
