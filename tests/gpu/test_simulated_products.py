"""Products of four warps are what a GPU that has them gives: layouts of shared memory, swizzles, types."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.simgpu.warpgroup_products import PRODUCTS, Product

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def driver() -> Iterator[ctypes.CDLL]:
    """The machine's driver with a context, on a GPU of compute capability 9.0."""
    library = ctypes.CDLL("libcuda.so.1")
    major, context = ctypes.c_int(), ctypes.c_void_p()
    assert not library.cuInit(0)
    assert not library.cuDeviceGetAttribute(ctypes.byref(major), 75, 0)
    if major.value != 9:
        pytest.skip("wgmma is of compute capability 9.0 alone")
    assert not library.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    assert not library.cuCtxSetCurrent(context)
    yield library
    library.cuDevicePrimaryCtxRelease_v2(0)


def launched(driver: ctypes.CDLL, product: Product, *arrays: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    """Words that the kernel stored, by threads."""
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    assert not driver.cuModuleLoadData(ctypes.byref(module), product.source.encode())
    assert not driver.cuModuleGetFunction(ctypes.byref(function), module, b"multiplies")
    words = np.zeros((128, 8), np.uint32)
    values = [uploaded(driver, values) for values in (words, *arrays)]
    values += [ctypes.c_uint64(operand.descriptor if operand else 0) for operand in (product.a, product.b)]
    pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
    assert not driver.cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, None, pointers, None)
    assert not driver.cuMemcpyDtoH_v2(words.ctypes.data_as(ctypes.c_void_p), values[0], ctypes.c_size_t(words.nbytes))
    driver.cuModuleUnload(module)
    return words


def uploaded(driver: ctypes.CDLL, values: np.ndarray) -> ctypes.c_uint64:  # type: ignore[type-arg]
    address = ctypes.c_uint64()
    assert not driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(values.nbytes))
    source = values.ctypes.data_as(ctypes.c_void_p)
    assert not driver.cuMemcpyHtoD_v2(address, source, ctypes.c_size_t(values.nbytes))
    return address


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(driver: ctypes.CDLL, name: str) -> None:
    product = PRODUCTS[name]
    generator = np.random.default_rng(1)
    image, fragments = product.image(generator), product.image(generator, 128 * 16)
    found = product.result(launched(driver, product, image, fragments))
    assert (found == product.exact(image, fragments)).all()
