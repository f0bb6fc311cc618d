"""Fill an array of half-precision numbers with zeros, by a plain kernel, and check it.

Needs the CUDA driver alone. A block of 128 threads stores 512 elements, as PyTorch's fill does.
"""

from __future__ import annotations

import argparse
import ctypes
import sys

from gpu import DriverError, Gpu

BLOCK, PER_THREAD, BYTES = 128, 4, 2
PLAIN = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry fill_plain(.param .u64 output, .param .u32 stores)
{
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [output];
    ld.param.u32 %r1, [stores];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra DONE;
    cvta.to.global.u64 %rd2, %rd1;
    mul.wide.u32 %rd3, %r5, 8;
    add.s64 %rd4, %rd2, %rd3;
    mov.u32 %r1, 0;
    st.global.v2.b32 [%rd4], {%r1, %r1};
DONE:
    ret;
}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description="Fill an array with zeros, and check it.")
    parser.add_argument("variant", choices=("plain",))
    parser.add_argument("--elements", type=int, default=1 << 24, help="default %(default)s: 32 MiB")
    parser.add_argument("--times", type=int, default=100)
    options = parser.parse_args()
    try:
        gpu = Gpu()
        output = gpu.allocate(options.elements * BYTES)
        gpu.call("cuMemsetD8_v2", output, 0xFF, ctypes.c_size_t(options.elements * BYTES))
        function = gpu.function(PLAIN, "fill_plain")
        stores = ctypes.c_uint32(options.elements // PER_THREAD)
        for _ in range(options.times):
            gpu.launch(function, -(-options.elements // (BLOCK * PER_THREAD)), BLOCK, output, stores)
        gpu.wait()
        right = not any(gpu.download(output, options.elements * BYTES))
    except DriverError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"fill {options.variant} {'ok' if right else 'WRONG'}\n")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
