"""A kernel that does not end, in a process that does: ``python interrupted.py HOW [KERNEL]``, on sm_80 or later.

Its second block says that it runs, and its first ends. The process then writes ``running`` and ends as ``HOW`` says.
``wait`` waits for the kernel in a call of the driver, in which Python handles no signal; so does ``handle``, which has
a handler of its own. The kernel ``stray`` stores past its memory before it waits;
``count`` ends when it has counted to four billion.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time

PTX = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry spin(.param .u64 memory)
{
    .reg .pred %p<2>;
    .reg .b32 %r<3>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [memory];
    mov.u32 %r2, %ctaid.x;
    setp.eq.u32 %p1, %r2, 0;
    @%p1 ret;
    .loc 1 8 0
    st.volatile.global.u32 [%rd1+8], 1;
    .loc 1 9 0
POLL:
    ld.volatile.global.u32 %r1, [%rd1];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra POLL;
    ret;
}
.visible .entry stray(.param .u64 memory)
{
    .reg .pred %p<2>;
    .reg .b32 %r<3>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [memory];
    st.global.u32 [%rd1+4096], 1;
    st.volatile.global.u32 [%rd1+8], 1;
POLL:
    ld.volatile.global.u32 %r1, [%rd1];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra POLL;
    ret;
}
.visible .entry count(.param .u64 memory)
{
    .reg .pred %p<2>;
    .reg .b32 %r<3>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [memory];
    mov.u32 %r1, 0;
    st.global.u32 [%rd1+8], 1;
COUNT:
    st.global.u32 [%rd1], %r1;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, 4000000000;
    @%p1 bra COUNT;
    ret;
}
.file 1 "interrupted.cu"
"""
NON_BLOCKING = 1
CUDA = ctypes.CDLL("libcuda.so.1")


def check(status: int) -> None:
    if status:
        os._exit(99)


def wait_for_kernel(context: ctypes.c_void_p, memory: ctypes.c_void_p) -> None:
    stream, value = ctypes.c_void_p(), ctypes.c_uint32()
    check(CUDA.cuCtxSetCurrent(context))
    check(CUDA.cuStreamCreate(ctypes.byref(stream), NON_BLOCKING))
    flag = ctypes.c_void_p((memory.value or 0) + 8)
    while not value.value:
        time.sleep(0.01)
        check(CUDA.cuMemcpyDtoHAsync_v2(ctypes.byref(value), flag, ctypes.c_size_t(4), stream))
        check(CUDA.cuStreamSynchronize(stream))


def end(how: str) -> None:
    libc = ctypes.CDLL(None)
    match how:
        case "alarm":
            signal.setitimer(signal.ITIMER_REAL, 0.001)
        case "abort":
            os.abort()
        case "fault":
            ctypes.string_at(0)
        case "_exit":
            os._exit(3)
        case "exit":
            libc.exit(3)
        case "exec":
            os.execv("/bin/true", ["true"])
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)


def main(how: str, name: str = "spin") -> None:
    context, module, kernel, memory = (ctypes.c_void_p() for _ in range(4))
    if how == "handle":
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)
    check(CUDA.cuInit(0))
    check(CUDA.cuCtxCreate_v2(ctypes.byref(context), 0, 0))
    check(CUDA.cuModuleLoadData(ctypes.byref(module), PTX.encode() + b"\0"))
    check(CUDA.cuModuleGetFunction(ctypes.byref(kernel), module, name.encode()))
    check(CUDA.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4096)))
    check(CUDA.cuMemsetD8_v2(memory, 0, ctypes.c_size_t(4096)))
    check(CUDA.cuCtxSynchronize())

    def follow() -> None:
        wait_for_kernel(context, memory)
        print("running", flush=True)
        end(how)

    threading.Thread(target=follow, daemon=True).start()
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
    check(CUDA.cuLaunchKernel(kernel, 2, 1, 1, 64, 1, 1, 0, None, arguments, None))
    check(CUDA.cuCtxSynchronize())


if __name__ == "__main__":
    main(*sys.argv[1:])
