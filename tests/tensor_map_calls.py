"""Calls that make tensor maps, for scripts that run on host.py: each map has its own content."""

TENSOR_MAPS = """
import ctypes
def encode(name, rank, *rest, last=(0,) * 4):
    made = (c_uint64 * 24)()
    at = c_void_p(ctypes.addressof(made) + 63 & ~63)
    tensor = c_int(6), rank, c_uint64(0x7f0000000000), (c_uint64 * 3)(44, 20, 6), (c_uint64 * 2)(192, 4096)
    call(name, at, *tensor, *rest, (c_uint * 3)(1, 1, 1), *last)
    return made, at
box, corners = (c_uint * 3)(16, 8, 1), (c_int * 1)(-1)
for _ in range(3): made, at = encode("cuTensorMapEncodeTiled", 2, box)
call("cuTensorMapReplaceAddress", at, c_uint64(0x7f0000001000))
encode("cuTensorMapEncodeIm2col", 3, corners, corners, 8, 4)
encode("cuTensorMapEncodeIm2colWide", 3, -1, 1, 16, 4, last=(0,) * 5)
"""
