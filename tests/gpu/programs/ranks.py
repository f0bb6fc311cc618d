"""One rank of a parallel program, by RANK and WORLD_SIZE: a collective waits for all ranks, the last of which exits.

``all_reduce`` polls a flag that the other ranks would set, as a kernel of NCCL does.
"""

import ctypes
import os
import sys

TEXT = b"""
.version 7.8
.target sm_80
.address_size 64
.visible .entry step(.param .u64 memory)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [memory];
    ld.global.u32 %r1, [%rd1];
    add.u32 %r1, %r1, 1;
    st.global.u32 [%rd1], %r1;
    ret;
}
.visible .entry all_reduce(.param .u64 memory)
{
    .reg .pred %p;
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [memory];
WAIT:
    ld.acquire.sys.global.u32 %r1, [%rd1+8];
    setp.eq.u32 %p, %r1, 0;
    @%p bra WAIT;
    ret;
}
"""
cuda = ctypes.CDLL("libcuda.so.1")


def call(name: str, *arguments: object) -> None:
    status = getattr(cuda, name)(*arguments)
    assert status == 0, (name, status)


def main() -> None:
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    context, module, memory = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
    call("cuInit", 0)
    call("cuCtxCreate_v2", ctypes.byref(context), 0, 0)
    call("cuModuleLoadData", ctypes.byref(module), TEXT)
    call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(64))
    call("cuMemsetD8_v2", memory, ctypes.c_ubyte(0), ctypes.c_size_t(64))
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
    for name in (b"step", b"step", b"all_reduce")[: 2 if rank == size - 1 else 3]:
        kernel = ctypes.c_void_p()
        call("cuModuleGetFunction", ctypes.byref(kernel), module, name)
        call("cuLaunchKernel", kernel, 1, 1, 1, 64, 1, 1, 0, None, arguments, None)
        call("cuCtxSynchronize")
    sys.exit(3)


main()
