"""Two kernels that store 8192 integers: next to each other, and with a gap after each. Needs the CUDA driver only."""

from __future__ import annotations

import struct
import sys

from gpu import DriverError, Gpu

THREADS, BLOCK = 8192, 256
KERNEL = """
.visible .entry {name}(.param .u64 output)
{{
    .reg .b32 %r<5>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [output];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r4, %r1, %r2, %r3;
    mul.wide.u32 %rd2, %r4, {stride};
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r4;
    ret;
}}
"""
STRIDES = {"coalesced_store": 4, "strided_store": 8}
"""Bytes from a thread's integer to the next one's."""
PTX = ".version 7.2\n.target sm_80\n.address_size 64\n" + "".join(
    KERNEL.format(name=name, stride=stride) for name, stride in STRIDES.items()
)


def main() -> int:
    try:
        gpu = Gpu()
        right = [stored(gpu, name, stride) for name, stride in STRIDES.items()]
    except DriverError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    print(f"stores: {'right' if all(right) else 'WRONG'}")
    return 0 if all(right) else 1


def stored(gpu: Gpu, name: str, stride: int) -> bool:
    """Return True if each thread has stored its number."""
    output = gpu.allocate(THREADS * stride)
    gpu.launch(gpu.function(PTX, name), THREADS // BLOCK, BLOCK, output)
    gpu.synchronize()
    values = struct.unpack(f"<{THREADS * stride // 4}I", gpu.read_memory(output, THREADS * stride))
    return values[:: stride // 4] == tuple(range(THREADS))


if __name__ == "__main__":
    sys.exit(main())
