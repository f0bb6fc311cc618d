"""Device memory: allocation, copies, fills and what a pointer is."""

from __future__ import annotations

import ctypes
import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.simgpu.driver import HANDLE, SIZE, U64, Code, Driver, fails
from tests.turns import examples

TOTAL = 64 << 20


def memory_info(driver: Driver) -> tuple[int, int]:
    unused, total = SIZE(), SIZE()
    driver.cuMemGetInfo_v2(ctypes.byref(unused), ctypes.byref(total))
    return unused.value, total.value


def try_to_allocate(driver: Driver, size: int) -> int | None:
    """None when there is no room."""
    address = U64()
    code: int = driver.library.cuMemAlloc_v2(ctypes.byref(address), SIZE(size))
    assert code in (0, Code.OUT_OF_MEMORY)
    return None if code else address.value


operations = st.lists(
    st.one_of(
        st.tuples(st.just("allocate"), st.integers(1, 8 << 20)),
        st.tuples(st.just("free"), st.integers(0, 1000)),
    ),
    max_size=60,
)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(operations)
def test_allocations_are_aligned_apart_and_accounted_for(driver: Driver, operations: list[tuple[str, int]]) -> None:
    held: dict[int, int] = {}
    for operation, number in operations:
        if operation == "free":
            if held:
                address = sorted(held)[number % len(held)]
                driver.cuMemFree_v2(U64(address))
                del held[address]
            continue
        allocated = try_to_allocate(driver, number)
        if allocated is None:
            assert number + sum(held.values()) > TOTAL // 4  # only a memory that is rather full may refuse
        else:
            held[allocated] = number
    spans = sorted((address, address + size) for address, size in held.items())
    assert all(address % 256 == 0 for address in held)
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))
    unused, total = memory_info(driver)
    assert total == TOTAL
    assert total - unused == sum(-(-size // 256) * 256 for size in held.values())
    for address in held:
        driver.cuMemFree_v2(U64(address))
    assert memory_info(driver) == (TOTAL, TOTAL)
    block = driver.allocate(TOTAL)  # what was freed has grown together again
    driver.cuMemFree_v2(U64(block))


def test_double_free_and_free_from_the_middle_are_errors(driver: Driver) -> None:
    address = driver.allocate(1024)
    with fails(Code.INVALID_VALUE):
        driver.cuMemFree_v2(U64(address + 256))
    driver.cuMemFree_v2(U64(address))
    with fails(Code.INVALID_VALUE):
        driver.cuMemFree_v2(U64(address))
    driver.cuMemFree_v2(U64(0))  # as free(NULL)


def test_more_than_there_is_is_out_of_memory(driver: Driver) -> None:
    with fails(Code.OUT_OF_MEMORY):
        driver.allocate(TOTAL + 1)
    with fails(Code.OUT_OF_MEMORY):
        driver.allocate(2**63)
    with fails(Code.INVALID_VALUE):
        driver.allocate(0)


def test_memory_of_a_destroyed_context_is_free_again(loaded_driver: Driver) -> None:
    context = loaded_driver.create_context()
    loaded_driver.allocate(TOTAL // 2)
    pinned = HANDLE()
    loaded_driver.cuMemHostAlloc(ctypes.byref(pinned), SIZE(TOTAL // 2), 0)
    loaded_driver.cuCtxDestroy_v2(context)
    context = loaded_driver.create_context()
    loaded_driver.allocate(TOTAL)
    loaded_driver.cuMemHostAlloc(ctypes.byref(pinned), SIZE(TOTAL), 0)
    loaded_driver.cuCtxDestroy_v2(context)


@given(content=st.binary(min_size=1, max_size=5000), offset=st.integers(0, 300))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_copy_keeps_the_bytes(driver: Driver, content: bytes, offset: int) -> None:
    size = len(content)
    first, second = driver.allocate(size + offset), driver.allocate(size + offset)
    driver.cuMemcpyHtoDAsync_v2(U64(first + offset), content, SIZE(size), None)
    driver.cuMemcpyDtoD_v2(U64(second), U64(first + offset), SIZE(size))
    driver.cuMemcpy(U64(first), U64(second), SIZE(size))
    assert driver.read(first, size) == driver.read(second, size) == content
    for address in (first, second):
        driver.cuMemFree_v2(U64(address))


def test_copies_stay_inside_an_allocation(driver: Driver) -> None:
    address = driver.allocate(512)
    buffer = ctypes.create_string_buffer(1024)
    for function, target, source, size in (
        ("cuMemcpyDtoH_v2", buffer, U64(address), 513),
        ("cuMemcpyHtoD_v2", U64(address + 500), buffer, 13),
        ("cuMemcpyHtoD_v2", U64(0), buffer, 1),
        ("cuMemcpyHtoD_v2", U64(ctypes.addressof(buffer)), buffer, 1),
        ("cuMemcpy", U64(address), U64(address + 600), 1),
    ):
        with fails(Code.INVALID_VALUE):
            getattr(driver, function)(target, source, SIZE(size))
    driver.cuMemcpyDtoH_v2(buffer, U64(0), SIZE(0))


def test_rectangles(driver: Driver) -> None:
    pitch, address = SIZE(), U64()
    driver.cuMemAllocPitch_v2(ctypes.byref(address), ctypes.byref(pitch), SIZE(12), SIZE(3), 4)
    assert pitch.value == 512
    matrix = np.arange(9, dtype=np.uint32).reshape(3, 3)
    fields = [0, 0, 1, matrix.ctypes.data, 0, 0, 12, 0, 0, 2, 0, address.value, 0, 512, 12, 3]
    driver.cuMemcpy2D_v2((U64 * len(fields))(*fields))
    assert driver.read(address.value + 512, 12) == matrix[1].tobytes()
    driver.cuMemsetD2D8_v2(U64(address.value), SIZE(512), 7, SIZE(2), SIZE(3))
    assert driver.read(address.value + 1024, 4) == b"\x07\x07\0\0"


@pytest.mark.parametrize(("bits", "value"), [(8, 0xAB), (16, 0xABCD), (32, 0x89ABCDEF)])
def test_fills(driver: Driver, bits: int, value: int) -> None:
    address = driver.upload(np.zeros(64, np.uint8))
    getattr(driver, f"cuMemsetD{bits}_v2")(U64(address + 8), value, SIZE(3))
    getattr(driver, f"cuMemsetD{bits}Async")(U64(address + 32), value, SIZE(1), None)
    width = bits // 8
    expected = bytearray(64)
    expected[8 : 8 + 3 * width] = value.to_bytes(width, "little") * 3
    expected[32 : 32 + width] = value.to_bytes(width, "little")
    assert driver.read(address, 64) == bytes(expected)
    with fails(Code.INVALID_VALUE):
        getattr(driver, f"cuMemsetD{bits}_v2")(U64(address), value, SIZE(10_000))


def test_pinned_memory_is_reached_by_both(driver: Driver) -> None:
    pointer, device = HANDLE(), U64()
    driver.cuMemHostAlloc(ctypes.byref(pointer), SIZE(4096), 0)
    driver.cuMemHostGetDevicePointer_v2(ctypes.byref(device), pointer, 0)
    count = 1000
    driver.launch(driver.example("coalesced_store"), device, ctypes.c_uint(count), grid=4, block=256)
    assert pointer.value is not None
    written = np.frombuffer(ctypes.string_at(pointer.value, 4 * count), np.uint32)
    assert np.array_equal(written, np.arange(count))
    driver.cuMemFreeHost(pointer)
    with fails(Code.INVALID_VALUE):
        driver.cuMemFreeHost(pointer)


def test_registered_memory(driver: Driver) -> None:
    buffer = ctypes.create_string_buffer(4096)
    driver.cuMemHostRegister_v2(buffer, SIZE(4096), 0)
    with fails(Code.ALREADY_REGISTERED):
        driver.cuMemHostRegister_v2(buffer, SIZE(1), 0)
    driver.cuMemHostUnregister(buffer)
    with fails(Code.NOT_REGISTERED):
        driver.cuMemHostUnregister(buffer)


def test_pointer_attributes(driver: Driver) -> None:
    address = driver.allocate(1000)
    base, size, kind, ordinal = U64(), SIZE(), ctypes.c_uint(), ctypes.c_int()
    driver.cuMemGetAddressRange_v2(ctypes.byref(base), ctypes.byref(size), U64(address + 999))
    assert (base.value, size.value) == (address, 1000)
    driver.cuPointerGetAttribute(ctypes.byref(kind), 2, U64(address))
    assert kind.value == 2  # device memory
    buffer = ctypes.create_string_buffer(8)
    with fails(Code.INVALID_VALUE):
        driver.cuPointerGetAttribute(ctypes.byref(kind), 2, U64(ctypes.addressof(buffer)))
    wanted = (ctypes.c_int * 2)(2, 9)
    answers = (HANDLE * 2)(ctypes.addressof(kind), ctypes.addressof(ordinal))
    driver.cuPointerGetAttributes(2, wanted, answers, U64(ctypes.addressof(buffer)))
    assert (kind.value, ordinal.value) == (0, -2)  # not the driver's


PROPERTIES = (ctypes.c_int * 8)(1, 0, 1, 0)
"""CUmemAllocationProp: pinned memory of device 0."""
ACCESS = (ctypes.c_int * 3)(1, 0, 3)
"""CUmemAccessDesc: device 0 reads and writes."""
PAGE = 2 << 20


def reserve(driver: Driver, bytes_: int, wanted: int = 0) -> int:
    address = U64()
    driver.cuMemAddressReserve(ctypes.byref(address), SIZE(bytes_), SIZE(0), U64(wanted), U64(0))
    return address.value


def test_reserved_addresses_are_accessible_while_memory_is_mapped(driver: Driver) -> None:
    granularity, handle = SIZE(), U64()
    driver.cuMemGetAllocationGranularity(ctypes.byref(granularity), PROPERTIES, 0)
    assert granularity.value == PAGE
    address = reserve(driver, 3 * PAGE)
    with fails(Code.INVALID_VALUE):
        driver.read(address, 1)
    driver.cuMemCreate(ctypes.byref(handle), SIZE(PAGE), PROPERTIES, U64(0))
    before, _ = memory_info(driver)
    driver.cuMemMap(U64(address + PAGE), SIZE(PAGE), SIZE(0), handle, U64(0))
    with fails(Code.INVALID_VALUE):
        driver.read(address + PAGE, 1)
    driver.cuMemSetAccess(U64(address + PAGE), SIZE(PAGE), ACCESS, SIZE(1))
    driver.cuMemRelease(handle)
    driver.cuMemcpyHtoD_v2(U64(address + 2 * PAGE - 3), b"abc", SIZE(3))
    assert driver.read(address + 2 * PAGE - 3, 3) == b"abc"
    assert before - memory_info(driver)[0] == PAGE
    for refused in (driver.cuMemFree_v2, lambda at: driver.cuMemAddressFree(at, SIZE(PAGE))):
        with fails(Code.INVALID_VALUE):
            refused(U64(address + PAGE))
    driver.cuMemUnmap(U64(address + PAGE), SIZE(PAGE))
    driver.cuMemAddressFree(U64(address), SIZE(3 * PAGE))
    assert memory_info(driver)[0] == before


def test_reservation_gets_the_wanted_address_if_it_is_free(driver: Driver) -> None:
    address = reserve(driver, 4 * PAGE)
    driver.cuMemAddressFree(U64(address), SIZE(4 * PAGE))
    assert reserve(driver, PAGE, address + 2 * PAGE) == address + 2 * PAGE
    elsewhere = reserve(driver, 2 * PAGE, address + PAGE)
    assert elsewhere != address + PAGE
    driver.cuMemAddressFree(U64(address + 2 * PAGE), SIZE(PAGE))
    driver.cuMemAddressFree(U64(elsewhere), SIZE(2 * PAGE))
