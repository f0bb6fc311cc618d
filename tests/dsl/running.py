"""Probes of the folder ``programs`` on kernels of the simulated GPU."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.engine.device_maps import COUNTS, DeviceMaps, FileMap
from tests.simgpu.device import Device
from tui_probe.engine.insertion import probed_kernel
from tui_probe.engine.kernel import Kernel
from tui_probe.probe_files.loading import read_probe
from tui_probe.probe_model.probe import FIELD_BYTES, Level, Map, Probe
from tui_probe.ptx.parser import parse
from tui_probe.simgpu.executor import compile_kernel
from tui_probe.trace.kernel_files import parse_kernel_info

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))
SAXPY = (Path(__file__).parents[2] / "tui_probe/simgpu/examples/kernels/saxpy.ptx").read_text()
GRID, BLOCK, COUNT = 2, 48, 70
THREADS = np.arange(GRID * BLOCK)
LANES = THREADS % BLOCK % 32


def program(name: str) -> Probe:
    """A probe of the folder ``programs``."""
    path = Path(__file__).parent / "programs" / f"{name}.py"
    return read_probe(path.read_bytes(), Path(f"{name}.py"))


def probed_saxpy(probe: Probe) -> str:
    """The PTX of saxpy with a probe."""
    return probed_kernel(Kernel.of(parse(SAXPY), "saxpy"), probe)[0]


@dataclass(frozen=True)
class Run:
    """Results of one run of saxpy: ``records`` and ``attempts`` by map, and the addresses of its arrays.

    Records of a map with one per slot are in the order of slots. Those of other maps are the ones that are not all
    zeros, sorted, wherever they are kept; ``attempts`` is how many there were to be. Of sites there is a record each.
    """

    records: dict[str, np.ndarray[Any, Any]]
    attempts: dict[str, int]
    x: int
    y: int


def run_saxpy(probe: Probe, x: np.ndarray[Any, Any] | None = None) -> Run:
    """Run ``y = 2 x + y`` over 70 elements in 2 blocks of 48 threads, and check it."""
    device = Device()
    x = np.arange(COUNT, dtype=np.float32) if x is None else x
    y = np.ones(COUNT, np.float32)
    x_address, y_address = device.upload(x), device.upload(y)
    text, info = probed_kernel(Kernel.of(parse(SAXPY), "saxpy"), probe)
    lines = parse_kernel_info(info.splitlines()).sites
    maps = DeviceMaps(
        probe, (GRID,), (BLOCK,), sites={own_map.name: lines.get(i, ()) for i, own_map in enumerate(probe.maps)}
    )
    kernel = compile_kernel(parse(text), "saxpy")
    arguments = [np.uint64(y_address), np.uint64(x_address), np.float32(2), np.uint32(COUNT)]
    device.launch(kernel, *arguments, *maps.arguments, grid=(GRID,), block=(BLOCK,))
    np.testing.assert_array_equal(device.download(y_address, y), np.float32(2) * x + y)
    in_file = maps.of_file()
    slots = [own_map for own_map in in_file if own_map.kind != COUNTS]
    records = {own_map.name: _records(own_map, kept) for own_map, kept in zip(probe.maps, slots, strict=True)}
    counts = [int(own_map.slots.view(np.uint32).sum()) for own_map in in_file if own_map.kind == COUNTS]
    attempts = dict(zip([own_map.name for own_map in probe.maps if own_map.cap != 1], counts, strict=True))
    return Run(records, attempts, x_address, y_address)


def _records(own_map: Map, kept: FileMap) -> np.ndarray[Any, Any]:
    if own_map.level is Level.SITE:
        return np.frombuffer(kept.marks, record_type(own_map))
    records = kept.slots.ravel().view(record_type(own_map))
    if own_map.cap == 1:
        return records[: GRID * (2 if own_map.level is Level.WARP else BLOCK)]
    return np.sort(records[records != np.zeros(1, records.dtype)])


def record_type(own_map: Map) -> np.dtype[Any]:
    """The NumPy type of a record."""
    return np.dtype(
        {
            "names": [field.name for field in own_map.fields],
            "formats": [f"<u{FIELD_BYTES[field.type]}" for field in own_map.fields],
            "offsets": [field.offset for field in own_map.fields],
            "itemsize": own_map.record_bytes,
        }
    )
