"""Tensor maps that the simulated driver encodes are those that its executor reads."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.simgpu.driver import Code, fails
from tests.simgpu.test_executor_tensor_maps import encoded

if TYPE_CHECKING:
    from tests.simgpu.driver import Driver

ADDRESS = 1 << 20
FLOAT32, DOUBLE, HALF = 7, 8, 6


def encode(driver: Driver, tensor: np.ndarray[Any, Any], box: tuple[int, ...], kind: int, **changed: int) -> bytes:
    """``changed`` names parameters of the call, instead of plain ones."""
    made = ctypes.create_string_buffer(128)
    rank = tensor.ndim
    extents = (ctypes.c_uint64 * rank)(*tensor.shape[::-1])
    strides = (ctypes.c_uint64 * max(rank - 1, 1))(*tensor.strides[-2::-1])
    boxes, steps = (ctypes.c_uint32 * rank)(*box), (ctypes.c_uint32 * rank)(*[1] * rank)
    last = {"interleave": 0, "swizzle": 0, "promotion": 0, "fill": 0} | changed
    address = ctypes.c_uint64(last.pop("address", ADDRESS))
    driver.cuTensorMapEncodeTiled(made, kind, rank, address, extents, strides, boxes, steps, *last.values())
    return made.raw


@pytest.mark.parametrize(
    ("dtype", "kind", "swizzle"), [(np.float32, FLOAT32, 0), (np.float64, DOUBLE, 1), (np.float16, HALF, 3)]
)
def test_maps(loaded_driver: Driver, dtype: Any, kind: int, swizzle: int) -> None:
    tensor = np.zeros((5, 6, 8), dtype)
    made = encode(loaded_driver, tensor, (8, 3, 2), kind, swizzle=swizzle)
    assert made == encoded(ADDRESS, tensor, (8, 3, 2), swizzle)


def test_another_address(loaded_driver: Driver) -> None:
    tensor = np.zeros((4, 8), np.float32)
    made = ctypes.create_string_buffer(encode(loaded_driver, tensor, (8, 2), FLOAT32), 128)
    loaded_driver.cuTensorMapReplaceAddress(made, ctypes.c_uint64(2 * ADDRESS))
    assert made.raw == encoded(2 * ADDRESS, tensor, (8, 2))


def test_invalid_and_unsimulated_tensor_maps(loaded_driver: Driver, capfd: pytest.CaptureFixture[str]) -> None:
    tensor = np.zeros((4, 8), np.float32)
    for box, changed in (((8, 257), {}), ((0, 2), {}), ((8, 2), {"swizzle": -1}), ((8, 2), {"address": ADDRESS + 8})):
        with fails(Code.INVALID_VALUE):
            encode(loaded_driver, tensor, box, FLOAT32, **changed)
    with fails(Code.INVALID_VALUE):
        encode(loaded_driver, np.zeros((4, 3), np.float32), (3, 2), FLOAT32)
    assert capfd.readouterr().err == ""
    for changed in ({"fill": 1}, {"interleave": 1}, {"swizzle": 4}):
        with fails(Code.NOT_SUPPORTED):
            encode(loaded_driver, tensor, (8, 2), FLOAT32, **changed)
    assert capfd.readouterr().err.count("NaN fill, or swizzles of larger atoms are not simulated") == 1
