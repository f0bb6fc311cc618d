"""Launches kernels that fail: ``refused`` with too many threads, ``stray`` at address 16, ``trap``; then a good one."""

import ctypes
import sys

PTX = b"""
.version 8.0
.target sm_80
.address_size 64
.file 1 "/home/ada/copy.cu"
.visible .entry good(.param .u64 p) { ret; }
.visible .entry stray(.param .u64 p)
{
.reg .b64 %a;
.reg .b32 %v;
.loc 1 13 5
mov.u32 %v, 7;
.loc 1 14 5
mov.u64 %a, 16;
st.global.u32 [%a], %v;
ret;
}
.visible .entry trap(.param .u64 p) { trap; ret; }
"""
cuda = ctypes.CDLL("libcuda.so.1")
Pointer = ctypes.c_void_p
context, module = Pointer(), Pointer()
cuda.cuInit(0)
cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
cuda.cuModuleLoadData(ctypes.byref(module), PTX)


def launch(name: str, threads: int = 32) -> None:
    """Launch and wait; print what the driver answers."""
    function, value = Pointer(), ctypes.c_uint64(0)
    cuda.cuModuleGetFunction(ctypes.byref(function), module, name.encode())
    parameters = (Pointer * 1)(ctypes.addressof(value))
    answer = cuda.cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, None, parameters, None)
    sys.stdout.write(f"{name} {answer} {cuda.cuCtxSynchronize()}\n")


launch("good")
for word in sys.argv[1:]:
    launch("good", 4096) if word == "refused" else launch(word)
