"""CPU time of preparing kernels ahead of their launches: with an empty cache, then in runs that find all in it.

    python -m tests.bench.ahead_cost IMAGE... [--arch 90] [--probe survey] [--runs 3] [--workers 2] [--seconds 100]

Needs no GPU. An image is a library, a cubin or PTX. Each run is a process that gives the images to the engine as the
hook does, and waits until the engine has removed them all, at most ``--seconds``; a row has the number of a run,
CPU seconds of the engine with its workers and their assemblers, the seconds that it took, and images that were not done
by then. Grafts into SASS need no self-test here.
"""

from __future__ import annotations

import argparse
import os
import resource
import socket
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from tui_probe.engine import preparer
from tui_probe.engine.assembler import Assembler
from tui_probe.engine.cache import Cache
from tui_probe.engine.grafting.graft_gate import OpenGate
from tui_probe.engine.image_kernels import fitting_cubins, read_kernel_file
from tui_probe.engine.reception import AHEAD_SUFFIX, receive_at
from tui_probe.engine.server import EngineServer
from tui_probe.launcher.engine_process import PROBE_PATIENCE, prepared
from tui_probe.launcher.environment import places_to_fuse
from tui_probe.launcher.options import RunOptions
from tui_probe.probe_files.choices import choose_probes


class RunCost(NamedTuple):
    """Cost of one run: CPU seconds and wall seconds, and the images that were not done by then."""

    cpu: float
    wall: float
    unfinished: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", nargs="+", type=Path, metavar="IMAGE")
    parser.add_argument("--arch", type=int, default=90)
    parser.add_argument("--probe", default="survey")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ahead-") as name:
        folder = Path(name)
        images = [content for path in options.images for content in contents(path, options.arch)]
        print(f"{len(images)} images, {sum(map(len, images)) / 1e6:.1f} MB")
        print(f"{'run':<8}{'CPU s':>8}{'wall s':>8}{'unfinished':>12}")
        for number in range(1, options.runs + 1):
            with get_context("fork").Pool(1) as pool:
                cost = pool.apply(run_engine, (folder, images, options))
            print(f"{number:<8}{cost.cpu:>8.2f}{cost.wall:>8.2f}{cost.unfinished:>12}", flush=True)


def contents(path: Path, arch: int) -> list[bytes]:
    """The images of a file, as the hook sends them: of a fatbin the cubin that the device runs, otherwise PTX."""
    images = []
    for image in read_kernel_file(path).images:
        cubins = fitting_cubins(image.cubins, arch)
        if cubins:
            images.append(cubins[0].content())
    return images or [path.read_bytes()]


def run_engine(folder: Path, images: list[bytes], options: argparse.Namespace) -> RunCost:
    """Send the images to an engine of this process, and wait for their end."""
    begun = time.monotonic()
    engine = folder / "engine"
    run = RunOptions(("program",))
    probes = choose_probes([options.probe])
    (first, its_options), *others = prepared(probes, run, load_ptx=False)
    cache = Cache(folder / "cache")
    with patch.object(preparer, "GraftGate", lambda *_: OpenGate()), receive_at(engine) as source:
        server = EngineServer(
            engine, first, its_options, assembler=Assembler(cache=cache), cache=cache, other_probes=others,
            fused=places_to_fuse(probes, run), patience=PROBE_PATIENCE, images=source, ahead_workers=options.workers,
        )  # fmt: skip
        with server:
            send(engine, images, f"sm_{options.arch}")
            while (left := len(list(folder.glob("engine.image.*")))) and time.monotonic() - begun < options.seconds:
                time.sleep(0.02)
    Path(f"{engine}{AHEAD_SUFFIX}").unlink()
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return RunCost(sum(usage.ru_utime + usage.ru_stime for usage in used), time.monotonic() - begun, left)


def send(engine: Path, images: list[bytes], target: str) -> None:
    """Write the images and send their paths, in order."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as hook:
        hook.connect(f"{engine}{AHEAD_SUFFIX}")
        for number, image in enumerate(images):
            path = engine.with_name(f"{engine.name}.image.{os.getpid()}.{number}")
            path.write_bytes(image)
            hook.send(f"{path}\t{target}".encode())


if __name__ == "__main__":
    main()
