"""Arrays in device memory by the driver API, for programs without a framework that has them."""

import ctypes

import numpy as np

cuda = ctypes.CDLL("libcuda.so.1")


def check(status):
    """Raise RuntimeError for a failed call of the driver."""
    if status:
        raise RuntimeError(f"CUDA error {status}")


def begin():
    """Use the first GPU, in the context that exists or in a new one."""
    check(cuda.cuInit(0))
    context = ctypes.c_void_p()
    check(cuda.cuCtxGetCurrent(ctypes.byref(context)))
    if not context:
        device = ctypes.c_int()
        check(cuda.cuDeviceGet(ctypes.byref(device), 0))
        check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
        check(cuda.cuCtxSetCurrent(context))


class Array:
    """A copy of an array in device memory."""

    def __init__(self, values):
        begin()
        self.shape, self.dtype, self.size = values.shape, values.dtype.name, values.nbytes
        pointer = ctypes.c_uint64()
        check(cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(self.size)))
        self.address = pointer.value
        values = np.ascontiguousarray(values)
        source = values.ctypes.data_as(ctypes.c_void_p)
        check(cuda.cuMemcpyHtoD_v2(pointer, source, ctypes.c_size_t(self.size)))

    def data_ptr(self):
        """As a tensor has it: Triton asks for it."""
        return self.address

    def download(self):
        """Return the array as it is on the device."""
        values = np.empty(self.shape, self.dtype)
        target = values.ctypes.data_as(ctypes.c_void_p)
        check(cuda.cuMemcpyDtoH_v2(target, ctypes.c_uint64(self.address), ctypes.c_size_t(self.size)))
        return values
