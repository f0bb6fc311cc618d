"""Time and memory for preparing kernels of large images without PTX, such as those of NCCL and cuBLAS.

    python -m tests.bench.large_images LIBRARY... [--arch 90] [--kernels 4] [--probe block_sched] [--most-seconds S]
                                       [--most-factor F]

Needs no GPU. Of the largest image of each library, some kernels are prepared one after another in a process of its own,
as the engine does: the seconds of the first one, which reads the image, the greatest of the others, and the most memory
of the process, also as a multiple of the image. The exit status is 1 if a kernel takes more than ``--most-seconds``, or
the memory is more than ``--most-factor`` images and 100 MB.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from tui_probe.engine.assembler import Assembler
from tui_probe.engine.grafting.graft_gate import OpenGate
from tui_probe.engine.image_kernels import fitting_cubins, kernels_of, read_kernel_file
from tui_probe.engine.preparer import Preparer
from tui_probe.probe_files.loading import load_probe
from tui_probe.probe_model.storage import fold_sums

OWN_BYTES = 100e6
"""Memory of the process without an image."""


class Cost(NamedTuple):
    """Cost of one image: seconds of each kernel, memory in bytes, and the outcomes that are not ``ok``."""

    seconds: list[float]
    memory: int
    refused: list[str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("libraries", nargs="+", type=Path, metavar="LIBRARY")
    parser.add_argument("--arch", type=int, default=90)
    parser.add_argument("--kernels", type=int, default=4)
    parser.add_argument("--probe", default="block_sched")
    parser.add_argument("--most-seconds", type=float)
    parser.add_argument("--most-factor", type=float)
    options = parser.parse_args()
    print(f"{'image':<24}{'MB':>8}{'kernels':>9}{'first s':>9}{'others s':>10}{'memory MB':>11}{'images':>8}")
    is_within = True
    for library in options.libraries:
        with tempfile.TemporaryDirectory() as name, get_context("spawn").Pool(1) as extractor:
            image = Path(name) / "original.bin"
            names = extractor.apply(extract, (library, options.arch, image))
            with get_context("spawn").Pool(1) as pool:
                cost = pool.apply(prepare, (image, options.arch, names[: options.kernels], options.probe))
            size = image.stat().st_size
        first, others = cost.seconds[0], max(cost.seconds[1:], default=0.0)
        row = f"{library.name[:23]:<24}{size / 1e6:>8.1f}{len(names):>9}{first:>9.2f}{others:>10.2f}"
        print(f"{row}{cost.memory / 1e6:>11.0f}{cost.memory / size:>8.1f}", *sorted(set(cost.refused)), sep="\n  ")
        too_slow = options.most_seconds is not None and max(first, others) > options.most_seconds
        too_large = options.most_factor is not None and cost.memory > options.most_factor * size + OWN_BYTES
        is_within = is_within and not (too_slow or too_large)
    sys.exit(not is_within)


def extract(library: Path, arch: int, image: Path) -> list[str]:
    """Write the largest cubin of a library for ``arch``; the names of its kernels."""
    cubins = [entry for image in read_kernel_file(library).images for entry in fitting_cubins(image.cubins, arch)]
    by_size = sorted(cubins, key=lambda entry: entry.size or len(entry.payload), reverse=True)
    largest = next(filter(kernels_of, by_size))
    image.write_bytes(largest.content())
    return list(kernels_of(largest))


def prepare(image: Path, arch: int, names: list[str], probe: str) -> Cost:
    """Prepare kernels of an image in this process."""
    preparer = Preparer(fold_sums(load_probe(probe)), assembler=Assembler(), gate=OpenGate())
    preparer.warm_up()
    seconds, refused = [], []
    for number, name in enumerate(names):
        directory = image.parent / str(number)
        directory.mkdir()
        (directory / "original.bin").hardlink_to(image)
        begun = time.monotonic()
        answer = preparer.prepare(directory, f"sm_{arch}", name)
        seconds.append(time.monotonic() - begun)
        if answer.outcome != "ok":
            refused.append(answer.reply_text)
    return Cost(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, refused)


if __name__ == "__main__":
    main()
