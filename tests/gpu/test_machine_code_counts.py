"""What counting probes find in machine code equals what they find by PTX, and leaves the same memory behind.

That is not so yet of kernels with conditional accesses, so that only tests ask for such grafts.
"""

from __future__ import annotations

import struct
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from tui_probe.engine.assemble import Assembler
from tui_probe.engine.cuda_calls import LIBRARY, Cuda
from tui_probe.engine.grafts import Grafter
from tui_probe.engine.kernel import Kernel
from tui_probe.engine.model import Probe
from tui_probe.engine.probed_kernel import probed_kernel
from tui_probe.probe_files.loading import load_probe
from tui_probe.ptx.parser import parse
from tui_probe.sass.cubin import Cubin

from .conftest import PROGRAMS
from .test_counts import tool

ARCH = 90
BLOCKS, THREADS = 32, 256
WARPS = BLOCKS * THREADS // 32
MEMORY = BLOCKS * THREADS * 128
SITE_BYTES = 4 << 20
"""More than all copies of the records of a kernel's sites take."""
BY_WARP = ("gmem_sectors", "gmem_bytes")
# Accesses without a space may be known to be global in machine code, and how many passes a loop takes whose lanes leave
# one after another depends on where the compiled code lets them meet again.
DIFFERENT = {"generic_copy", "loop_of_lanes"}
UNORDERED = {"atomics"}
"""Sums of floats depend on the order of additions."""
ON_PAPER = {"coalesced_store": {"store_requests": 256, "store_sectors": 1024}}


@dataclass
class Images:
    """The same kernels as machine code alone and as PTX."""

    cubin: Cubin
    ptx: str


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Images:
    folder = tmp_path_factory.mktemp("patterns")
    source = str(PROGRAMS / "memory_patterns.cu")
    for kind in ("cubin", "ptx"):
        command = [tool("nvcc"), f"-{kind}", f"-arch=sm_{ARCH}", "-o", str(folder / kind), source]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return Images(Cubin.read((folder / "cubin").read_bytes()), (folder / "ptx").read_text())


@pytest.fixture(scope="module")
def cuda() -> Cuda:
    return Cuda(LIBRARY, ARCH)


def by_ptx(images: Images, kernel: str, probe: Probe, folder: Path) -> bytes:
    """A kernel with the probe in its PTX, assembled."""
    text, _ = probed_kernel(Kernel.of(parse(images.ptx), kernel), probe)
    source, binary = folder / "probed.ptx", folder / "probed.bin"
    source.write_text(text)
    Assembler().assemble(source, binary, f"sm_{ARCH}", kernel)
    return binary.read_bytes()


def launched(cuda: Cuda, image: bytes, kernel: str, map_bytes: int = 0) -> tuple[bytes, bytes]:
    """The memory that a kernel leaves behind, and its map."""
    memory = cuda.allocate(MEMORY)
    cuda.write(memory, bytes(range(256)) * (MEMORY // 256) if kernel not in UNORDERED else bytes(MEMORY))
    added = [cuda.allocate(map_bytes)] if map_bytes else []
    for each in added:
        cuda.write(each, bytes(map_bytes))
    cuda.launch(cuda.load(image).function(kernel), BLOCKS, THREADS, [memory, BLOCKS * THREADS - 1000, *added])
    return cuda.read(memory, MEMORY), cuda.read(added[0], map_bytes) if added else b""


def sums(content: bytes, probe: Probe) -> Counter[str]:
    """The sum of each field over all records of a map."""
    (own_map,) = probe.maps
    found: Counter[str] = Counter()
    for at in range(0, len(content) // own_map.record_bytes * own_map.record_bytes, own_map.record_bytes):
        for field in own_map.fields:
            kind = "<Q" if field.type == "u64" else "<I"
            found[field.name] += struct.unpack_from(kind, content, at + field.offset)[0]
    return +found


@pytest.mark.parametrize("name", BY_WARP)
def test_counts_of_warps_are_those_of_ptx(name: str, images: Images, cuda: Cuda, tmp_path: Path) -> None:
    probe = load_probe(name)
    grafter = Grafter(probe, Assembler(), sampled=False)
    size = WARPS * probe.maps[0].record_bytes
    different, changed = set(), set()
    for kernel in images.cubin.kernels:
        native, _ = launched(cuda, images.cubin.image, kernel)
        left, content = launched(cuda, grafter.graft(images.cubin, kernel).probed, kernel, size)
        _, expected = launched(cuda, by_ptx(images, kernel, probe, tmp_path), kernel, size)
        found, wanted = sums(content, probe), sums(expected, probe)
        changed |= {kernel} if left != native else set()
        different |= {kernel} if found != wanted else set()
        same = "equal" if found == wanted else "DIFFERENT"
        print(f"GPU-GRAFT\t{name}\t{kernel}\t{same}\tmemory {left == native}\tgraft {found}\tptx {wanted}")
        if name == "gmem_sectors":
            assert all(found[key] == number for key, number in ON_PAPER.get(kernel, {}).items())
    assert changed <= UNORDERED
    assert different <= DIFFERENT


@pytest.mark.parametrize("name", BY_WARP)
def test_counts_of_lines_add_up_to_those_of_warps(name: str, images: Images, cuda: Cuda) -> None:
    whole, by_line = load_probe(name), load_probe(f"{name}_by_line")
    of_warps, of_lines = (Grafter(probe, Assembler(), sampled=False) for probe in (whole, by_line))
    for kernel in images.cubin.kernels:
        native, content = launched(
            cuda, of_warps.graft(images.cubin, kernel).probed, kernel, WARPS * whole.maps[0].record_bytes
        )
        made = of_lines.graft(images.cubin, kernel)
        left, records = launched(cuda, made.probed, kernel, SITE_BYTES)
        found = site_sums(records, by_line, made.info)
        wanted = Counter({key: value for key, value in sums(content, whole).items() if key != "threads"})
        print(f"GPU-GRAFT-LINES\t{name}\t{kernel}\t{found == wanted}\tby line {found}\tby warp {wanted}")
        assert found == wanted
        assert left == native or kernel in UNORDERED


def site_sums(content: bytes, probe: Probe, info: str) -> Counter[str]:
    """The sums over all sites and copies, as kernel.info says how they lie."""
    (line,) = (one for one in info.splitlines() if one.startswith("storage 0 sites"))
    words = line.split()
    record, count, copies = int(words[4]), int(words[6]), int(words[8])
    pitch = -(-count * record // 256) * 256
    found: Counter[str] = Counter()
    for copy in range(copies):
        found += sums(content[copy * pitch : copy * pitch + count * record], probe)
    return found
