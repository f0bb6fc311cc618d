"""The device, contexts, streams, events and simulated time."""

from __future__ import annotations

import ctypes
import threading

import numpy as np
import pytest

from tests.simgpu.driver import HANDLE, SIZE, U64, Code, Driver, fails


def current(driver: Driver) -> int | None:
    context = HANDLE()
    driver.cuCtxGetCurrent(ctypes.byref(context))
    return context.value


def test_the_device(loaded_driver: Driver) -> None:
    name, value, size = ctypes.create_string_buffer(64), ctypes.c_int(), SIZE()
    loaded_driver.cuDeviceGetName(name, 64, 0)
    assert name.value == b"Simulated GPU"
    loaded_driver.cuDriverGetVersion(ctypes.byref(value))
    assert value.value == 13000
    expected = {1: 1024, 10: 32, 13: 1_000_000, 16: 4, 39: 2048, 75: 8, 76: 0, 106: 32, 115: 0}
    for attribute, number in expected.items():
        loaded_driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, 0)
        assert value.value == number, attribute
    loaded_driver.cuDeviceTotalMem_v2(ctypes.byref(size), 0)
    assert size.value == 64 << 20
    with fails(Code.INVALID_DEVICE):
        loaded_driver.cuDeviceGet(ctypes.byref(value), 1)
    with fails(Code.INVALID_VALUE):
        loaded_driver.cuDeviceGetAttribute(ctypes.byref(value), 1000, 0)


def test_the_stack_of_contexts_of_a_thread(loaded_driver: Driver) -> None:
    first, second = loaded_driver.create_context(), loaded_driver.create_context()
    assert current(loaded_driver) == second.value
    popped = HANDLE()
    loaded_driver.cuCtxPopCurrent_v2(ctypes.byref(popped))
    assert (popped.value, current(loaded_driver)) == (second.value, first.value)
    loaded_driver.cuCtxSetCurrent(second)
    assert current(loaded_driver) == second.value
    loaded_driver.cuCtxSetCurrent(None)
    assert current(loaded_driver) is None
    loaded_driver.cuCtxPushCurrent_v2(first)
    loaded_driver.cuCtxDestroy_v2(first)
    assert current(loaded_driver) is None
    loaded_driver.cuCtxDestroy_v2(second)
    with fails(Code.INVALID_CONTEXT):
        loaded_driver.cuCtxPushCurrent_v2(second)


def test_without_a_context_nothing_goes(loaded_driver: Driver) -> None:
    for call in (
        lambda: loaded_driver.allocate(1),
        lambda: loaded_driver.load("x"),
        loaded_driver.cuCtxSynchronize,
        lambda: loaded_driver.cuStreamSynchronize(None),
    ):
        with fails(Code.INVALID_CONTEXT):
            call()


def test_a_context_destroyed_by_another_thread(loaded_driver: Driver) -> None:
    context = loaded_driver.create_context()
    thread = threading.Thread(target=loaded_driver.cuCtxDestroy_v2, args=(context,))
    thread.start()
    thread.join()
    with fails(Code.CONTEXT_IS_DESTROYED):
        loaded_driver.allocate(1)
    loaded_driver.cuCtxSetCurrent(None)


def test_the_primary_context_is_counted(loaded_driver: Driver) -> None:
    first, second, flags, active = HANDLE(), HANDLE(), ctypes.c_uint(), ctypes.c_int()
    loaded_driver.cuDevicePrimaryCtxRetain(ctypes.byref(first), 0)
    loaded_driver.cuDevicePrimaryCtxRetain(ctypes.byref(second), 0)
    assert first.value == second.value
    loaded_driver.cuDevicePrimaryCtxRelease_v2(0)
    loaded_driver.cuDevicePrimaryCtxGetState(0, ctypes.byref(flags), ctypes.byref(active))
    assert active.value == 1
    loaded_driver.cuDevicePrimaryCtxRelease_v2(0)
    loaded_driver.cuDevicePrimaryCtxGetState(0, ctypes.byref(flags), ctypes.byref(active))
    assert active.value == 0
    with fails(Code.INVALID_CONTEXT):
        loaded_driver.cuDevicePrimaryCtxRelease_v2(0)


def test_queries_of_a_context(driver: Driver) -> None:
    device, version, limit = ctypes.c_int(-1), ctypes.c_uint(), SIZE()
    driver.cuCtxGetDevice(ctypes.byref(device))
    driver.cuCtxGetApiVersion(None, ctypes.byref(version))
    driver.cuCtxSetLimit(0, SIZE(4096))
    driver.cuCtxGetLimit(ctypes.byref(limit), 0)
    assert (device.value, version.value, limit.value) == (0, 3020, 4096)
    with fails(Code.UNSUPPORTED_LIMIT):
        driver.cuCtxGetLimit(ctypes.byref(limit), 99)


def test_streams(driver: Driver) -> None:
    stream, flags, owner, status = HANDLE(), ctypes.c_uint(), HANDLE(), ctypes.c_int(-1)
    driver.cuStreamCreate(ctypes.byref(stream), 1)
    driver.cuStreamGetFlags(stream, ctypes.byref(flags))
    driver.cuStreamGetCtx(stream, ctypes.byref(owner))
    driver.cuStreamIsCapturing(stream, ctypes.byref(status))
    assert (flags.value, owner.value, status.value) == (1, current(driver), 0)
    for default in (None, HANDLE(1), HANDLE(2)):
        driver.cuStreamSynchronize(default)
    driver.cuStreamDestroy_v2(stream)
    for call in (driver.cuStreamSynchronize, driver.cuStreamQuery, driver.cuStreamDestroy_v2):
        with fails(Code.INVALID_HANDLE):
            call(stream)


def test_a_function_of_the_program_runs_in_a_stream(driver: Driver) -> None:
    seen: list[int] = []
    function = ctypes.CFUNCTYPE(None, HANDLE)(lambda data: seen.append(data or 0))
    driver.cuLaunchHostFunc(None, function, HANDLE(42))
    assert seen == [42]


def test_events_carry_simulated_time(driver: Driver) -> None:
    start, end, untimed = HANDLE(), HANDLE(), HANDLE()
    for event, flags in ((start, 0), (end, 0), (untimed, 2)):
        driver.cuEventCreate(ctypes.byref(event), flags)
    elapsed = ctypes.c_float()
    with fails(Code.INVALID_HANDLE):
        driver.cuEventElapsedTime(ctypes.byref(elapsed), start, end)  # not recorded
    function = driver.example("zero_fill")
    address = driver.upload(np.ones(4096, np.uint32))

    def milliseconds(launches: int) -> float:
        driver.cuEventRecord(start, None)
        for _ in range(launches):
            driver.launch(function, U64(address), ctypes.c_uint(4096), grid=32, block=128)
        driver.cuEventRecord(end, None)
        driver.cuEventElapsedTime(ctypes.byref(elapsed), start, end)
        return elapsed.value

    assert milliseconds(0) == 0
    assert milliseconds(1) > 0
    assert milliseconds(3) == pytest.approx(3 * milliseconds(1))
    driver.cuEventRecord(untimed, None)
    with fails(Code.INVALID_HANDLE):
        driver.cuEventElapsedTime(ctypes.byref(elapsed), start, untimed)
