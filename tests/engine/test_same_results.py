"""A probed kernel leaves the memory of its program as the original does, bit for bit, with each built-in probe.

Each kernel has an eighth of the probes, each probe an eighth of the kernels; with ``--in-full`` all of them.

All kernels of the corpus and of the simulated GPU's own tests are run there that can be, with made-up arguments: a
pointer is to an array of its own, a number is small. What such arguments make of a kernel does not matter; that the
probed kernel makes the same of them does.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.engine.device_maps import DeviceMaps
from tests.engine.kernels import matched_probe, probed_with_sites
from tests.probes.running import ESTIMATE, EXAMPLES, KERNELS
from tests.ptx.corpus import FILES
from tests.simgpu.device import BASE, Device
from tests.turns import is_due
from tui_probe.errors import PtxError, SimulationError, UnsupportedKernelError
from tui_probe.probe_files.loading import built_in_names, load_probe
from tui_probe.probe_model.probe import Probe
from tui_probe.ptx.parser import parse
from tui_probe.ptx.references import prune_to_kernel
from tui_probe.ptx.tree import Function, Module
from tui_probe.simgpu.executor import Kernel, compile_kernel

ELEMENTS = 1 << 14
GRID = (2,)
THREADS = 64
SHARED_BYTES = 1 << 16
ROOM = 1 << 20
"""Bytes of device memory that a kernel's own arguments and variables take; maps lie behind."""

LONGEST = 100_000
"""Characters of a kernel that is compiled for the simulated GPU in a moment."""

ENDLESS = {
    "locked": "int float", "waits": "int float", "after_loop": "float", "calls_recursive": "float",
    "producer_consumer": "int float", "staged": "int float",
}  # fmt: skip
"""Kernels that continue for ever with some made-up arguments, and which; the simulated GPU finds out after seconds."""

READS_TIME = re.compile(r"%(clock|globaltimer)")


@dataclass(frozen=True)
class Case:
    """A kernel that runs with arguments of one kind, and the device memory that it leaves."""

    name: str
    text: str
    kind: str
    memory: bytes


@functools.cache
def compiled(text: str, name: str) -> tuple[Module, Function, Kernel]:
    """A kernel of a module as it is: compiled once for all probes, for that takes longer than to run it."""
    module = parse(text)
    (entry,) = (entry for entry in module.entries() if entry.name == name)
    return module, entry, compile_kernel(module, name)


def made_up(entry: Function, function: Kernel, kind: str) -> list[Any]:
    """Arguments of a kernel: arrays for pointers, small numbers for numbers."""
    rng = np.random.default_rng(5)
    arguments: list[Any] = []
    for parameter, declared in zip(function.parameters, entry.parameters, strict=True):
        if parameter.size == 8 and declared.type in ("u64", "b64"):
            floats = rng.standard_normal(ELEMENTS).astype(np.float32)
            arguments.append(floats if kind == "float" else rng.integers(0, 32, ELEMENTS).astype(np.int32))
        elif declared.type in ("f32", "f64"):
            arguments.append((np.float32 if declared.type == "f32" else np.float64)(0.5))
        else:
            arguments.append((24).to_bytes(parameter.size, "little"))
    return arguments


def block_of(entry: Function) -> tuple[int, ...]:
    """The block that the kernel requires, or one of two warps."""
    required = tuple(map(int, re.findall(r"\d+", entry.attributes.get("reqntid", ""))))
    return required or (THREADS,)


def memory_after(text: str, name: str, kind: str, probe: Probe | None = None) -> bytes:
    """Run a kernel of a module on a new device; the memory of its arguments and of the module's variables."""
    module, entry, function = compiled(text, name)
    device = Device(16 * ROOM)
    device.load_variables(module)
    arguments = [
        np.uint64(device.upload(argument)) if isinstance(argument, np.ndarray) else argument
        for argument in made_up(entry, function, kind)
    ]
    device.allocate(ROOM - (device.allocate(1) - BASE))
    if probe is not None:
        source, shared, sites = probed_with_sites(text, name, probe)
        probe = matched_probe(text, name, probe)
        function = compile_kernel(parse(source), name)
        caps = {own_map.name: ESTIMATE for own_map in probe.maps if own_map.cap is None}
        arguments += DeviceMaps(probe, GRID, block_of(entry), caps, sites).arguments
        arguments += [np.uint64(device.variables[variable]) for variable in shared.variables]
    device.launch(function, *arguments, grid=GRID, block=block_of(entry), shared=SHARED_BYTES)
    return device.buffer[:ROOM].tobytes()


def texts() -> Iterator[tuple[str, str]]:
    """The kernels by name, each with the PTX that it needs only; of those of one name the first."""
    sources = [path.read_text() for folder in (EXAMPLES, KERNELS) for path in sorted(folder.glob("*.ptx"))]
    seen = set()
    for source in [*sources, *(file.read_text() for file in FILES)]:
        module = parse(source)
        for entry in module.entries():
            text = prune_to_kernel(module, entry.name)
            if entry.name not in seen and len(text) < LONGEST and not READS_TIME.search(text):
                yield entry.name, text
            seen.add(entry.name)


@functools.cache
def cases() -> tuple[Case, ...]:
    """The kernels that run."""
    runnable = []
    for name, text in texts():
        for kind in ("float", "int"):
            if kind in ENDLESS.get(name, ""):
                continue
            try:
                runnable.append(Case(name, text, kind, memory_after(text, name, kind)))
            except (SimulationError, PtxError, KeyError):
                continue  # an instruction that the simulated GPU lacks, or arguments that the kernel cannot use
            break
    return tuple(runnable)


def test_most_kernels_run() -> None:
    assert len(cases()) >= 90


@pytest.mark.parametrize(("turn", "name"), [*enumerate(built_in_names())], ids=str)
def test_memory_is_the_same(turn: int, name: str) -> None:
    probe = load_probe(name)
    compared, cannot_hang, different = 0, 0, []
    due = [case for number, case in enumerate(cases(), turn) if is_due(number)]
    for case in due:
        try:
            memory = memory_after(case.text, case.name, case.kind, probe)
        except UnsupportedKernelError as error:
            cannot_hang += "the kernel has no waits" in str(error)  # so a probe of waits has nothing to watch
            continue
        compared += 1
        if memory != case.memory:
            different.append(case.name)
    assert not different
    assert compared
    assert compared >= 0.8 * (len(due) - cannot_hang)
