"""Launches of births.ptx (of births.cu) in which one thread makes a number that is not finite; prints what it does.

``births.py PTX``. A line is: kernel, opcode, block, thread (of a product the warp's), iteration, number.
"""

import ctypes
import sys
from pathlib import Path

BLOCKS, THREADS = 4, 256
KERNELS = {
    "squares": ("mul", 3, 77, 7, "inf (f32)", 1.0, 2.0, 9),
    "roots": ("sqrt", 0, 200, 2, "NaN (f32)", 82.0, 1.5, 2),
    "quotients": ("div", 2, 5, 0, "NaN (f32)", 4.0, 3.0, 3),
    "logarithms": ("fma", 1, 33, 0, "NaN (f32)", 2.0, -5.0, 1),
    "powers": ("selp", 2, 64, 0, "NaN (f32)", 3.0, -5.0, 2),
    "sums": ("fma", 1, 130, 3, "inf (f16)", 0.0, 160.0, 4),
    "products": ("wmma", 3, 96, 2, "inf (f16)", 1.0, 250.0, 3),
}
"""Opcode, block, thread, iteration and number of the birth; values of all threads, of that one, and turns."""
cuda = ctypes.CDLL("libcuda.so.1")


def call(name: str, *arguments: object) -> None:
    status = getattr(cuda, name)(*arguments)
    assert status == 0, (name, status)


def main() -> None:
    context, device, module, memory = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
    call("cuModuleLoadData", ctypes.byref(module), Path(sys.argv[1]).read_bytes() + b"\0")
    call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(4 * BLOCKS * THREADS))
    for name, (opcode, block, thread, iteration, number, usual, planted, turns) in KERNELS.items():
        values = (ctypes.c_float * (BLOCKS * THREADS))(*[usual] * (BLOCKS * THREADS))
        values[block * THREADS + thread] = planted
        function, count = ctypes.c_void_p(), ctypes.c_int(turns)
        call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        call("cuMemcpyHtoD_v2", memory, values, ctypes.c_size_t(ctypes.sizeof(values)))
        pointers = (ctypes.c_void_p * 2)(ctypes.addressof(memory), ctypes.addressof(count))
        call("cuLaunchKernel", function, BLOCKS, 1, 1, THREADS, 1, 1, 0, None, pointers, None)
        call("cuCtxSynchronize")
        print(name, opcode, block, thread, iteration, number, sep="\t", flush=True)


main()
