"""Probed kernels leave on a real GPU the memory that the originals leave, bit for bit, with each built-in probe.

The kernels are those of the corpus that run on the simulated GPU with made-up arguments, which therefore touch nothing
outside these. They are launched here through the driver API, without the profiler. Programs, run under it, print what
they print only; checksums that they print are of all bits of their output.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.engine.device_maps import DeviceMaps
from tests.engine.kernels import matched_probe, probed_with_sites
from tests.engine.test_same_results import ELEMENTS, GRID, ROOM, SHARED_BYTES, Case, block_of, cases, compiled, made_up
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_files.loading import built_in_names, load_probe
from tui_probe.ptx.parser import parse
from tui_probe.simgpu.modules import module_variables

from .conftest import PROGRAMS, Runner, tool

PROBES = list(built_in_names())
MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
CANNOT_LOAD = {200, 209, 218, 222}
"""cuModuleLoadData: the driver is too old for the PTX, or the GPU is not of its architecture."""
RACES = frozenset(
    [
        "uses_cp_async",
        "uses_mma",
        "uses_static",
        "atomics",
        "chained",
        "fragments",
        "generic",
        "nested_loops",
        "pipeline",
        "product_bytes",
        "product_tf32",
        "reduces",
        "tiles",
        "tiled_matmul",
        "uses_clusters",
    ]
)
"""Kernels whose blocks or warps race with made-up arguments, by their source: several write, or write and read, the
same words. Waits show most such kernels, but not each time."""
UNDEFINED = frozenset({"jump_table"})
"""Kernels that a GPU does not end with made-up arguments: a place beyond a branch table, for one."""
CANNOT_LAUNCH = {1, 701, 912}
"""cuLaunchKernel: the shape does not fit the kernel's clusters or bounds."""


DELAYS = str(Path(__file__).parent / "delays.toml")
WIPE = """.version 7.0
.target sm_70
.address_size 64
.extern .shared .align 16 .b8 memory[];
.visible .entry wipe(.param .u32 bytes)
{
	.reg .pred %p; .reg .b32 %place, %step, %end, %address;
	ld.param.u32 %end, [bytes];
	mov.u32 %place, %tid.x;
	shl.b32 %place, %place, 2;
	mov.u32 %step, %ntid.x;
	shl.b32 %step, %step, 2;
$next:
	setp.ge.u32 %p, %place, %end;
	@%p ret;
	mov.u32 %address, memory;
	add.u32 %address, %address, %place;
	st.shared.u32 [%address], 0;
	add.u32 %place, %place, %step;
	bra $next;
}
"""
"""Shared memory keeps what the last kernel left; with made-up arguments a kernel may read what it did not write."""
MOST_SHARED_OPT_IN, SM_COUNT = 97, 16


class Gpu:
    """The first GPU, through the driver API."""

    def __init__(self) -> None:
        self._driver = ctypes.CDLL("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.check("cuInit", 0)
        self.check("cuDeviceGet", ctypes.byref(device), 0)
        self.check("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.check("cuCtxSetCurrent", context)
        self._around = self.allocate(32 * ROOM)
        self.arena = self._around + 16 * ROOM
        """Address of the arguments in each run, with room around: what kernels make of it is the same, too."""

    def call(self, name: str, *arguments: Any) -> int:
        """A driver function's status."""
        status: int = getattr(self._driver, name)(*arguments)
        return status

    def check(self, name: str, *arguments: Any) -> None:
        status = self.call(name, *arguments)
        assert status == 0, f"{name} failed with status {status}"

    def load(self, text: str) -> ctypes.c_void_p | None:
        """A module, or None if this driver or GPU does not take the PTX."""
        module = ctypes.c_void_p()
        status = self.call("cuModuleLoadData", ctypes.byref(module), text.encode() + b"\0")
        assert status == 0 or status in CANNOT_LOAD, f"cuModuleLoadData failed with status {status}"
        return module if status == 0 else None

    def allocate(self, size: int) -> int:
        address = ctypes.c_uint64()
        self.check("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(size, 1)))
        return address.value

    def upload(self, array: np.ndarray[Any, Any], address: int) -> int:
        """Copy an array to an address, which is returned."""
        source = array.ctypes.data_as(ctypes.c_void_p)
        self.check("cuMemcpyHtoD_v2", ctypes.c_uint64(address), source, ctypes.c_size_t(array.nbytes))
        return address

    def download(self, address: int, size: int) -> bytes:
        data = ctypes.create_string_buffer(size)
        self.check("cuMemcpyDtoH_v2", data, ctypes.c_uint64(address), ctypes.c_size_t(size))
        return data.raw

    def variable(self, module: ctypes.c_void_p, name: str) -> tuple[int, int]:
        """Address and size of a module's variable."""
        address, size = ctypes.c_uint64(), ctypes.c_size_t()
        self.check("cuModuleGetGlobal_v2", ctypes.byref(address), ctypes.byref(size), module, name.encode())
        return address.value, size.value

    def clear(self) -> None:
        """Zeros around the arguments: with made-up numbers kernels reach beyond them, to what earlier ones left."""
        self.check("cuMemsetD8_v2", ctypes.c_uint64(self._around), ctypes.c_ubyte(0), ctypes.c_size_t(32 * ROOM))

    def attribute(self, code: int) -> int:
        value = ctypes.c_int()
        self.check("cuDeviceGetAttribute", ctypes.byref(value), code, 0)
        return value.value

    def wipe_shared_memory(self) -> None:
        """Fill the shared memory of all SMs with zeros."""
        if not hasattr(self, "_wipe"):
            owner, self._wipe = self.load(WIPE), ctypes.c_void_p()
            self._shared = self.attribute(MOST_SHARED_OPT_IN)
            self.check("cuModuleGetFunction", ctypes.byref(self._wipe), owner, b"wipe")
            self.check("cuFuncSetAttribute", self._wipe, MAX_DYNAMIC_SHARED_SIZE_BYTES, self._shared)
        size = ctypes.c_uint(self._shared)
        pointers = (ctypes.c_void_p * 1)(ctypes.addressof(size))
        blocks = 4 * self.attribute(SM_COUNT)
        self.check("cuLaunchKernel", self._wipe, blocks, 1, 1, 1024, 1, 1, self._shared, None, pointers, None)

    def launch(self, module: ctypes.c_void_p, name: str, block: tuple[int, ...], arguments: list[Any]) -> bool:
        """Run a kernel to its end; False if the shape is not one that it takes."""
        function = ctypes.c_void_p()
        self.check("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        self.call("cuFuncSetAttribute", function, MAX_DYNAMIC_SHARED_SIZE_BYTES, SHARED_BYTES)
        values = [ctypes.create_string_buffer(raw, len(raw)) for raw in map(raw_bytes, arguments)]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        x, y, z = (*block, 1, 1)[:3]
        status = self.call("cuLaunchKernel", function, *GRID, 1, 1, x, y, z, SHARED_BYTES, None, pointers, None)
        assert status == 0 or status in CANNOT_LAUNCH, f"cuLaunchKernel of {name} failed with status {status}"
        if status == 0:
            self.check("cuCtxSynchronize")
        return status == 0


def raw_bytes(argument: Any) -> bytes:
    return argument if isinstance(argument, bytes) else argument.tobytes()


@pytest.fixture(scope="module")
def gpu() -> Gpu:
    return Gpu()


def left_by(gpu: Gpu, case: Case, probe: str = "") -> list[bytes] | None:
    """The arrays and shared variables after a run, or None if the kernel cannot run here."""
    _, entry, function = compiled(case.text, case.name)
    owner = gpu.load(case.text)
    if owner is None:
        return None
    own = matched_probe(case.text, case.name, load_probe(probe or "block_sched"))
    source, shared, sites = probed_with_sites(case.text, case.name, own)
    variables = [gpu.variable(owner, name) for name in shared.variables]
    gpu.clear()
    given = made_up(entry, function, case.kind)
    places = range(gpu.arena, gpu.arena + ROOM, ELEMENTS * 4)
    given_arrays = [argument for argument in given if isinstance(argument, np.ndarray)]
    arrays = [(gpu.upload(one, place), one.nbytes) for one, place in zip(given_arrays, places, strict=False)]
    addresses = iter(arrays)
    arguments = [np.uint64(next(addresses)[0]) if isinstance(argument, np.ndarray) else argument for argument in given]
    loaded, maps = owner, []
    if probe:
        probed = gpu.load(source)
        assert probed is not None, f"{case.name} with {probe} does not load"
        caps = {own_map.name: 64 for own_map in own.maps if own_map.cap is None}
        own_arguments = DeviceMaps(own, GRID, block_of(entry), caps, sites).arguments
        maps = [
            gpu.upload(argument, gpu.allocate(argument.nbytes))
            for argument in own_arguments
            if isinstance(argument, np.ndarray)
        ]
        arguments += [np.uint64(address) for address in maps]
        arguments += [argument for argument in own_arguments if not isinstance(argument, np.ndarray)]
        arguments += [np.uint64(address) for address, _ in variables]
        loaded = probed
    gpu.wipe_shared_memory()
    ran = gpu.launch(loaded, case.name, block_of(entry), arguments)
    memory = [gpu.download(address, size) for address, size in [*arrays, *variables]]
    for address in maps:
        gpu.check("cuMemFree_v2", ctypes.c_uint64(address))
    for module in {id(owner): owner, id(loaded): loaded}.values():
        gpu.check("cuModuleUnload", module)
    return memory if ran else None


def with_waits(gpu: Gpu, case: Case) -> list[list[bytes] | None]:
    """Return the results of runs with random waits; none for a kernel that takes no waits, since it calls functions."""
    try:
        return [left_by(gpu, case, DELAYS) for _ in range(6)]
    except UnsupportedKernelError:
        return []


@pytest.fixture(scope="module")
def originals(gpu: Gpu) -> list[tuple[Case, list[bytes]]]:
    """Kernels that run here, and that leave the same however long each thread waits before each access.

    With made-up arguments threads race in some, and floating-point atomics round by their order. A kernel is left out
    if what it leaves with random waits is not always the same; one that always leaves something else with them stays.

    Left out are those whose variables hold addresses, which are others each time that a module is loaded.
    """
    stable = []
    for case in cases():
        if case.name in RACES | UNDEFINED or any(
            variable.relocations for variable in module_variables(parse(case.text))
        ):
            continue
        print(f"GPU-CASE\t{case.name}", flush=True)  # the last one, where a kernel does not end
        try:
            first = left_by(gpu, case)
        except UnsupportedKernelError:
            continue
        if first is None or any(left_by(gpu, case) != first for _ in range(3)):
            continue
        waiting = with_waits(gpu, case)
        if all(memory == waiting[0] for memory in waiting):
            stable.append((case, first))
        else:
            print(f"GPU-RACE\t{case.name}", flush=True)
    return stable


@pytest.mark.parametrize("name", PROBES)
def test_memory_is_the_same(name: str, gpu: Gpu, originals: list[tuple[Case, list[bytes]]]) -> None:
    compared, cannot_hang, different = 0, 0, []
    for case, memory in originals:
        try:
            probed = left_by(gpu, case, name)
        except UnsupportedKernelError as error:
            cannot_hang += "the kernel has no waits" in str(error)  # so a probe of waits has nothing to watch
            continue
        compared += 1
        if probed != memory:
            different.append(case.name)
    print(f"GPU-SAME\t{name}\t{compared} kernels compared, {len(different)} differ {different}")
    assert not different
    assert compared + cannot_hang >= 50


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Programs that print a checksum of all their output: built here, and those of ``TUI_PROBE_PROGRAMS``."""
    nvcc = tool("nvcc")
    folder = tmp_path_factory.mktemp("same")
    commands = {}
    for name in ("tiled_matmul", "memory_patterns"):
        both = "-gencode=arch=compute_90,code=[sm_90,compute_90]"
        command = [nvcc, both, "-cudart=static", "-o", str(folder / name), str(PROGRAMS / f"{name}.cu")]
        subprocess.run(command, check=True, capture_output=True)
        commands[name] = [str(folder / name)]
    if given := os.environ.get("TUI_PROBE_PROGRAMS"):
        commands |= {
            path.name: [str(path)] for path in sorted(Path(given).resolve().glob("cutlass_*")) if path.is_file()
        }
    return commands


@pytest.mark.parametrize("name", PROBES)
def test_programs_print_the_same(name: str, programs: dict[str, list[str]], runner: Runner) -> None:
    for program, command in programs.items():
        unprofiled, profiled = runner.unprofiled(command), runner.profiled(command, "-p", name)
        assert unprofiled.status == 0, program
        assert (profiled.outcome.status, profiled.outcome.stdout) == (unprofiled.status, unprofiled.stdout), program
