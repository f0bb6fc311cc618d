"""As much of CuPy's interface as names of arrays need."""


class _Memory:
    ptr = 0x20000


class _Pointer:
    ptr, mem = 0x20100, _Memory()


class ndarray:
    data, shape, strides, itemsize, nbytes, dtype = _Pointer(), (3, 4), (16, 4), 4, 48, "float32"
