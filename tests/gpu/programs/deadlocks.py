"""Kernels that do not end: ``python deadlocks.py mbarrier|token|grid|lock|count|leak [ARCH]``, on sm_80 or later.

A kernel that ends is launched before. Only the driver is needed: the PTX has line information, as nvcc makes it. With
ARCH, such as ``sm_90``, ptxas makes machine code of it, and the image has no PTX.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
from pathlib import Path

HEAD = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry finished(.param .u64 memory)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [memory];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd2, %rd1, %rd2;
    st.global.u32 [%rd2+64], %r1;
    ret;
}
"""
MBARRIER = """
.visible .entry mbarrier(.param .u64 memory)
{
    .reg .pred %p<4>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<4>;
    .shared .align 8 .b64 full;
    .loc 1 10 0
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, full;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra READY;
    .loc 1 11 0
    mbarrier.init.shared.b64 [%r2], 129;
READY:
    .loc 1 12 0
    bar.sync 0;
    setp.ge.u32 %p2, %r1, 96;
    @%p2 bra OTHER;
    .loc 1 14 0
    mbarrier.arrive.shared.b64 %rd1, [%r2];
    .loc 1 15 0
WAIT:
    mbarrier.test_wait.parity.shared.b64 %p3, [%r2], 0;
    @!%p3 bra WAIT;
    ret;
OTHER:
    .loc 1 18 0
    bar.sync 1, 64;
    ret;
}
"""
TOKEN = (
    MBARRIER.replace("entry mbarrier", "entry token").replace("129;", "%r3;")
    .replace("mov.u32 %r2, full;", "mov.u32 %r2, full;\n    mov.u32 %r3, 129;")
    .replace("test_wait.parity.shared.b64 %p3, [%r2], 0;", "test_wait.shared.b64 %p3, [%r2], %rd1;")
)  # fmt: skip
"""Waits with the state of the arrival, and a count in a register, as of ``cuda::barrier``."""
GRID = """
.visible .entry grid(.param .u64 memory)
{
    .reg .pred %p<3>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [memory];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %nctaid.x;
    .loc 1 24 0
    bar.sync 0;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra DONE;
    .loc 1 26 0
    atom.global.add.u32 %r3, [%rd1], 1;
    .loc 1 27 0
POLL:
    ld.volatile.global.u32 %r4, [%rd1];
    setp.lt.u32 %p2, %r4, %r2;
    @%p2 bra POLL;
DONE:
    .loc 1 29 0
    bar.sync 0;
    ret;
}
"""
LOCK = """
.visible .entry lock(.param .u64 memory)
{
    .reg .pred %p<3>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [memory];
    .loc 1 33 0
TAKE:
    atom.global.cas.b32 %r1, [%rd1], 0, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra TAKE;
    .loc 1 35 0
    bar.warp.sync -1;
    .loc 1 36 0
    atom.global.exch.b32 %r2, [%rd1], 0;
    ret;
}
"""
COUNT = """
.visible .entry count(.param .u64 memory)
{
    .reg .pred %p<3>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [memory];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %nctaid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra DONE;
    .loc 1 42 0
    red.release.gpu.global.add.u32 [%rd1], 1;
    .loc 1 43 0
POLL:
    ld.acquire.gpu.global.u32 %r4, [%rd1];
    setp.le.u32 %p2, %r4, %r2;
    @%p2 bra POLL;
DONE:
    .loc 1 45 0
    bar.sync 0;
    ret;
}
"""
LEAK = """
.visible .entry leak(.param .u64 memory)
{
    .reg .pred %p<3>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [memory];
    mov.u32 %r1, %tid.x;
    and.b32 %r1, %r1, 31;
    setp.ne.u32 %p2, %r1, 0;
    @%p2 ret;
    .loc 1 52 0
TAKE:
    atom.acquire.gpu.global.cas.b32 %r2, [%rd1], 0, 1;
    setp.ne.u32 %p1, %r2, 0;
    @%p1 bra TAKE;
    ret;
}
"""
FILE = '.file 1 "deadlocks.cu"\n'
SHAPES = {
    "mbarrier": (MBARRIER, 2, 128), "grid": (GRID, 0, 64), "lock": (LOCK, 1, 64), "count": (COUNT, 4, 64),
    "leak": (LEAK, 3, 32), "token": (TOKEN, 2, 128),
}  # fmt: skip


def image_of(text: str, arch: str) -> bytes:
    """The PTX, or what ptxas makes of it for an architecture."""
    if not arch:
        return text.encode() + b"\0"
    with tempfile.TemporaryDirectory() as name:
        source, image = Path(name) / "kernel.ptx", Path(name) / "kernel.cubin"
        lines = (line for line in text.splitlines() if not line.strip().startswith((".loc", ".file")))
        source.write_text("\n".join(lines) + "\n")  # with lines of source, ptxas puts the PTX into the image
        subprocess.run(["ptxas", f"-arch={arch}", "-o", str(image), str(source)], check=True)
        return image.read_bytes()


def main(kind: str, arch: str = "") -> None:
    text, blocks, threads = SHAPES[kind]
    cuda = ctypes.CDLL("libcuda.so.1")
    context, module, kernel, memory = (ctypes.c_void_p() for _ in range(4))
    count = ctypes.c_int()

    def check(status: int) -> None:
        if status:
            sys.exit(f"error {status}")

    check(cuda.cuInit(0))
    check(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0))
    check(cuda.cuModuleLoadData(ctypes.byref(module), image_of(HEAD + text + FILE, arch)))
    check(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4096)))
    check(cuda.cuMemsetD8_v2(memory, 0, ctypes.c_size_t(4096)))
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
    check(cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"finished"))
    check(cuda.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, None, arguments, None))
    check(cuda.cuCtxSynchronize())
    check(cuda.cuModuleGetFunction(ctypes.byref(kernel), module, kind.encode()))
    if not blocks:  # one more than the GPU holds at a time
        check(
            cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(ctypes.byref(count), kernel, threads, ctypes.c_size_t(0))
        )
        blocks = count.value
        check(cuda.cuDeviceGetAttribute(ctypes.byref(count), 16, 0))
        blocks = blocks * count.value + 1
    check(cuda.cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, 0, None, arguments, None))
    check(cuda.cuCtxSynchronize())


if __name__ == "__main__":
    main(*sys.argv[1:])
