"""Driver functions besides launching: shapes set beforehand, the best size of a block, aligned memory."""

from __future__ import annotations

import ctypes

import pytest

from tests.simgpu import ptx
from tests.simgpu.driver import HANDLE, SIZE, U64, Code, Driver, fails

INDICES = ptx.kernel(
    "indices",
    "ld.param.u64 %rd1, [address];\nld.param.u32 %r1, [start];\nmov.u32 %r2, %ctaid.y;\nmov.u32 %r3, %ntid.x;\n"
    "mad.lo.u32 %r2, %r2, %r3, %r1;\nmov.u32 %r3, %tid.x;\nadd.u32 %r2, %r2, %r3;\nmov.u32 %r4, %ctaid.y;\n"
    "mov.u32 %r5, %ntid.x;\nmad.lo.u32 %r3, %r4, %r5, %r3;\nmul.wide.u32 %rd2, %r3, 4;\nadd.u64 %rd1, %rd1, %rd2;\n"
    "st.global.u32 [%rd1], %r2;",
    ".param .u64 address, .param .u32 start",
)


def loaded(driver: Driver, text: str, name: str) -> HANDLE:
    return driver.function(driver.load(ptx.HEAD + text), name)


def test_a_launch_in_steps(driver: Driver) -> None:
    function = loaded(driver, INDICES, "indices")
    output = driver.allocate(24)
    with fails(Code.INVALID_VALUE):
        driver.cuLaunchGrid(function, 1, 1)  # no shape was set
    driver.cuFuncSetBlockShape(function, 3, 1, 1)
    driver.cuFuncSetSharedSize(function, 128)
    driver.cuParamSetSize(function, 12)
    address = U64(output)
    driver.cuParamSetv(function, 0, ctypes.byref(address), 8)
    driver.cuParamSeti(function, 8, 10)
    driver.cuLaunchGrid(function, 1, 2)
    assert driver.read(output, 24) == b"".join((10 + i).to_bytes(4, "little") for i in range(6))
    for shape in ((0, 1, 1), (1025, 1, 1), (64, 64, 1)):
        with fails(Code.INVALID_VALUE):
            driver.cuFuncSetBlockShape(function, *shape)


@pytest.mark.parametrize(
    ("text", "name", "limit", "expected"),
    [
        (ptx.NOTHING, "nothing", 0, (8, 1024)),
        (ptx.NOTHING, "nothing", 100, (128, 64)),
        (ptx.LIMITED, "limited", 0, (64, 128)),
    ],
)
def test_the_best_size_of_a_block(driver: Driver, text: str, name: str, limit: int, expected: tuple[int, int]) -> None:
    grid, block = ctypes.c_int(), ctypes.c_int()
    function = loaded(driver, text, name)
    driver.cuOccupancyMaxPotentialBlockSize(ctypes.byref(grid), ctypes.byref(block), function, None, SIZE(0), limit)
    assert (grid.value, block.value) == expected  # on 4 SMs


def test_the_best_size_where_shared_memory_grows_with_the_block(driver: Driver) -> None:
    """Of 164 KiB per SM, five blocks of 64 threads take 160 KiB, and ten of 32 threads keep no more threads."""
    grid, block = ctypes.c_int(), ctypes.c_int()
    asked = []

    @ctypes.CFUNCTYPE(SIZE, ctypes.c_int)
    def shared(threads: int) -> int:
        asked.append(threads)
        return 512 * threads

    function = loaded(driver, ptx.NOTHING, "nothing")
    driver.cuOccupancyMaxPotentialBlockSize(ctypes.byref(grid), ctypes.byref(block), function, shared, SIZE(0), 0)
    assert (grid.value, block.value) == (20, 64)
    assert asked[0] == 1024


def test_large_allocations_are_aligned_as_the_drivers(driver: Driver) -> None:
    driver.allocate(300)
    large = [driver.allocate(size) for size in (2 << 20, (2 << 20) + 5, 3 << 20)]
    assert [address % (2 << 20) for address in large] == [0, 0, 0]
    assert len(set(large)) == 3
