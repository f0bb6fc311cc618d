"""Modules, kernels and launches: what they are, and every way in which they fail."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.simgpu import ptx
from tests.simgpu.driver import HANDLE, KERNELS, SIZE, U64, Code, Driver, fails
from tui_probe.simgpu.executor import Machine

if TYPE_CHECKING:
    from pathlib import Path


def load(driver: Driver, *parts: str) -> HANDLE:
    return driver.load(ptx.HEAD + "".join(parts))


def attribute(driver: Driver, function: HANDLE, number: int) -> int:
    value = ctypes.c_int()
    driver.cuFuncGetAttribute(ctypes.byref(value), number, function)
    return value.value


def parameter_layout(driver: Driver, function: HANDLE) -> list[tuple[int, int]]:
    layout: list[tuple[int, int]] = []
    offset, size = SIZE(), SIZE()
    while driver.library.cuFuncGetParamInfo(function, SIZE(len(layout)), ctypes.byref(offset), ctypes.byref(size)) == 0:
        layout.append((offset.value, size.value))
    return layout


def test_parameters_are_laid_out_as_in_c(driver: Driver) -> None:
    module = load(driver, ptx.SHAPED, ptx.NOTHING)
    assert parameter_layout(driver, driver.function(module, "shaped")) == [(0, 1), (8, 8), (16, 12), (28, 2)]
    assert parameter_layout(driver, driver.function(module, "nothing")) == []


def test_kernel_attributes(driver: Driver) -> None:
    module = load(driver, ptx.SHARED, ptx.LIMITED, ptx.COUNTER)
    shared, limited = driver.function(module, "shared"), driver.function(module, "limited")
    assert [attribute(driver, shared, number) for number in (0, 1, 5, 6)] == [64, 1000, 80, 80]
    assert attribute(driver, limited, 0) == 128
    assert attribute(driver, limited, 2) == 16  # bytes of constants in the module
    assert 8 <= attribute(driver, shared, 4) <= 32  # registers: an estimate
    assert attribute(driver, shared, 7) == 0  # whether it was compiled with -dlcm=ca
    name, owner = ctypes.c_char_p(), HANDLE()
    driver.cuFuncGetName(ctypes.byref(name), shared)
    driver.cuFuncGetModule(ctypes.byref(owner), shared)
    assert (name.value, owner.value) == (b"shared", module.value)


def test_occupancy_is_that_of_the_machine_that_executes(driver: Driver) -> None:
    function = driver.function(load(driver, ptx.SHARED), "shared")
    machine = Machine(max_blocks_per_sm=32)
    blocks = ctypes.c_int()
    for threads in (1, 31, 32, 33, 64, 100, 256, 1000, 1024):
        for dynamic_bytes in (0, 1000, 30_000, 48_000):
            driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                ctypes.byref(blocks), function, threads, SIZE(dynamic_bytes)
            )
            assert blocks.value == machine.slots_per_sm(threads, 1000 + dynamic_bytes)


def test_variables_have_their_initial_values_and_keep_new_ones(driver: Driver) -> None:
    module = load(driver, ptx.COUNTER)
    address, size = U64(), SIZE()
    driver.cuModuleGetGlobal_v2(ctypes.byref(address), ctypes.byref(size), module, b"table")
    assert driver.read(address.value, size.value) == b"\1\2\3" + bytes(13)
    driver.cuModuleGetGlobal_v2(ctypes.byref(address), ctypes.byref(size), module, b"scratch")
    assert driver.read(address.value, size.value) == bytes(32)
    driver.cuModuleGetGlobal_v2(ctypes.byref(address), ctypes.byref(size), module, b"counter")
    for _ in range(2):
        driver.launch(driver.function(module, "count"), block=1)
    assert driver.read(address.value, size.value) == (7).to_bytes(4, "little")
    with fails(Code.NOT_FOUND):
        driver.cuModuleGetGlobal_v2(ctypes.byref(address), ctypes.byref(size), module, b"count")


def test_functions_of_a_module(driver: Driver) -> None:
    module = load(driver, ptx.NOTHING, ptx.TRAP)
    count = ctypes.c_uint()
    driver.cuModuleGetFunctionCount(ctypes.byref(count), module)
    functions = (HANDLE * count.value)()
    driver.cuModuleEnumerateFunctions(functions, count, module)
    assert functions[:] == [driver.function(module, name).value for name in ("nothing", "trap")]
    with fails(Code.NOT_FOUND):
        driver.function(module, "noth")
    driver.cuModuleUnload(module)
    with fails(Code.INVALID_HANDLE):
        driver.cuModuleUnload(module)
    with fails(Code.INVALID_HANDLE):
        driver.launch(HANDLE(functions[0]))


def test_a_library_and_its_kernels_used_as_functions(driver: Driver) -> None:
    library, kernel, function, owner = HANDLE(), HANDLE(), HANDLE(), HANDLE()
    image = (KERNELS / "coalesced_store.ptx").read_bytes()
    driver.cuLibraryLoadData(ctypes.byref(library), image, None, None, 0, None, None, 0)
    driver.cuLibraryGetKernel(ctypes.byref(kernel), library, b"coalesced_store")
    driver.cuKernelGetFunction(ctypes.byref(function), kernel)
    driver.cuKernelGetLibrary(ctypes.byref(owner), kernel)
    assert owner.value == library.value
    assert kernel.value != function.value
    for handle in (kernel, function):
        address = driver.upload(np.zeros(64, np.uint32))
        driver.launch(handle, U64(address), ctypes.c_uint(64), grid=2)
        assert driver.read(address, 256) == np.arange(64, dtype=np.uint32).tobytes()
    driver.cuLibraryUnload(library)
    with fails(Code.INVALID_HANDLE):
        driver.cuKernelGetFunction(ctypes.byref(function), kernel)


def launch_with(driver: Driver, function: HANDLE, grid: tuple[int, ...], block: tuple[int, ...], shared: int) -> None:
    driver.cuLaunchKernel(function, *grid, *block, shared, None, None, None)


@pytest.mark.parametrize(
    ("grid", "block", "shared"),
    [
        ((0, 1, 1), (1, 1, 1), 0),
        ((1, 1, 1), (1, 0, 1), 0),
        ((1, 65536, 1), (1, 1, 1), 0),
        ((1, 1, 1), (1025, 1, 1), 0),
        ((1, 1, 1), (1, 1, 65), 0),
        ((1, 1, 1), (32, 32, 2), 0),
        ((1, 1, 1), (32, 1, 1), 48 * 1024 + 1),
    ],
)
def test_shapes_that_no_gpu_takes(driver: Driver, grid: tuple[int, ...], block: tuple[int, ...], shared: int) -> None:
    function = driver.function(load(driver, ptx.NOTHING), "nothing")
    with fails(Code.INVALID_VALUE):
        launch_with(driver, function, grid, block, shared)


def test_a_block_larger_than_the_kernel_allows(driver: Driver) -> None:
    function = driver.function(load(driver, ptx.LIMITED), "limited")
    driver.launch(function, block=128)
    with fails(Code.INVALID_VALUE):
        driver.launch(function, block=129)


def test_more_shared_memory_must_be_asked_for(driver: Driver) -> None:
    function = driver.function(load(driver, ptx.SHARED), "shared")
    with fails(Code.INVALID_VALUE):
        driver.launch(function, block=64, shared_bytes=100_000)
    driver.cuFuncSetAttribute(function, 8, 100_000)
    driver.launch(function, block=64, shared_bytes=100_000)
    with fails(Code.INVALID_VALUE):
        driver.cuFuncSetAttribute(function, 8, 163 * 1024)


def test_a_cooperative_grid_must_fit_the_gpu(driver: Driver) -> None:
    function = driver.function(load(driver, ptx.NOTHING), "nothing")
    driver.cuLaunchCooperativeKernel(function, 8, 1, 1, 1024, 1, 1, 0, None, None)  # 4 SMs of 2048 threads
    with fails(Code.COOPERATIVE_LAUNCH_TOO_LARGE):
        driver.cuLaunchCooperativeKernel(function, 9, 1, 1, 1024, 1, 1, 0, None, None)


def test_launch_with_a_configuration(driver: Driver) -> None:
    address = driver.upload(np.zeros(100, np.uint32))
    arguments = (U64(address), ctypes.c_uint(100))
    pointers = (HANDLE * 2)(*(ctypes.addressof(argument) for argument in arguments))
    configuration = (ctypes.c_uint32 * 14)(4, 1, 1, 32, 1, 1, 0)
    function = driver.example("coalesced_store")
    driver.cuLaunchKernelEx(configuration, function, pointers, None)
    assert driver.read(address, 400) == np.arange(100, dtype=np.uint32).tobytes()
    attribute = (ctypes.c_uint32 * 18)(4, 0, 2, 1, 1)  # a cluster of 2 blocks
    ctypes.cast(ctypes.byref(configuration, 40), ctypes.POINTER(U64))[0] = U64(ctypes.addressof(attribute))
    configuration[12] = 1
    with fails(Code.INVALID_CLUSTER_SIZE):
        driver.cuLaunchKernelEx(configuration, function, pointers, None)


@pytest.mark.parametrize("keys", [[1, 3, 0], [1, 2, 0]])
def test_a_buffer_of_parameters_must_be_whole(driver: Driver, keys: list[int]) -> None:
    size = SIZE(4)
    extra = (HANDLE * 5)(keys[0], ctypes.addressof(size), keys[1], ctypes.addressof(size), None)
    with fails(Code.INVALID_VALUE):
        driver.cuLaunchKernel(driver.example("saxpy"), 1, 1, 1, 32, 1, 1, 0, None, None, extra)


def test_missing_parameters(driver: Driver) -> None:
    with fails(Code.INVALID_VALUE):
        driver.cuLaunchKernel(driver.example("saxpy"), 1, 1, 1, 32, 1, 1, 0, None, None, None)


@pytest.mark.parametrize(
    ("source", "argument", "code", "text"),
    [
        (ptx.STORE_TO, [U64(8 << 60)], Code.ILLEGAL_ADDRESS, "kernel store_to: illegal address 0x8000000000000000"),
        (ptx.TRAP, [], Code.LAUNCH_FAILED, "kernel trap: "),
    ],
)
def test_a_kernel_that_fails_breaks_its_context(
    driver: Driver,
    capfd: pytest.CaptureFixture[str],
    source: str,
    argument: list[U64],
    code: Code,
    text: str,
) -> None:
    """The launch itself succeeds, as on a GPU, and every later call tells."""
    name = text.split()[1].rstrip(":")
    driver.launch(driver.function(load(driver, source), name), *argument, block=1)
    for _ in range(2):
        with fails(code):
            driver.cuCtxSynchronize()
    with fails(code):
        driver.allocate(1)
    assert capfd.readouterr().err.startswith(f"tui-probe simulated GPU: {text}")
    other = driver.create_context()  # no other context is broken
    driver.allocate(1)
    driver.cuCtxDestroy_v2(other)


def test_a_misaligned_address(driver: Driver) -> None:
    address = driver.allocate(64)
    driver.launch(driver.function(load(driver, ptx.STORE_TO), "store_to"), U64(address + 2), block=1)
    with fails(Code.MISALIGNED_ADDRESS):
        driver.cuCtxSynchronize()


def test_unsimulated_kernel_is_reported_once_and_harmless(
    driver: Driver, capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "sim.log"
    monkeypatch.setenv("TUI_PROBE_SIM_LOG", str(log))
    module = load(driver, ptx.NOTHING, ptx.UNSUPPORTED)
    for _ in range(3):
        with fails(Code.NOT_SUPPORTED):
            driver.launch(driver.function(module, "unsupported"))
    line = capfd.readouterr().err
    assert line.startswith("tui-probe simulated GPU: kernel unsupported: unsupported instruction tex")
    assert line.count("\n") == 1
    assert log.read_text() == line
    driver.launch(driver.function(module, "nothing"))
    driver.cuCtxSynchronize()


def test_simulated_time_goes_on_from_launch_to_launch(driver: Driver) -> None:
    function = driver.function(load(driver, ptx.CLOCKS), "clocks")
    address = driver.upload(np.zeros(2, np.uint64))
    clocks = []
    for _ in range(3):
        driver.launch(function, U64(address), block=1)
        clocks.append(int.from_bytes(driver.read(address, 8), "little"))
    assert clocks == sorted(set(clocks))
    assert int.from_bytes(driver.read(address + 8, 4), "little") == 4  # SMs, as the driver's attribute says


def test_a_variable_that_holds_the_address_of_another(driver: Driver) -> None:
    module = load(driver, ptx.POINTERS)
    places = []
    for name in (b"pair", b"second"):
        address = U64()
        driver.cuModuleGetGlobal_v2(ctypes.byref(address), None, module, name)
        places.append(address.value)
    pair, second = places
    assert int.from_bytes(driver.read(second, 8), "little") == pair + 4


def test_threads_launch_at_once(driver: Driver) -> None:
    """Each with its own module, memory and arguments, in one context."""
    context = HANDLE()
    driver.cuCtxGetCurrent(ctypes.byref(context))

    def work(count: int) -> bool:
        driver.cuCtxSetCurrent(context)
        function = driver.example("coalesced_store")
        for _ in range(5):
            address = driver.upload(np.zeros(count, np.uint32))
            driver.launch(function, U64(address), ctypes.c_uint(count), grid=4, block=256)
            if driver.read(address, 4 * count) != np.arange(count, dtype=np.uint32).tobytes():
                return False
            driver.cuMemFree_v2(U64(address))
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, (100, 333, 512, 1000)))
