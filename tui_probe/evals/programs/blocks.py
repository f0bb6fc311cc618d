"""One kernel whose blocks have their SM to themselves, or share it with others: same blocks, same work.

Each thread adds up what it loads, and multiplies in between, in a loop of equal iterations. ``exclusive`` asks for so
much shared memory that an SM has room for one block. Needs the CUDA driver only; the sums are checked.
"""

from __future__ import annotations

import argparse
import ctypes
import struct
import sys

from gpu import SM_COUNT, DriverError, Gpu

MOST_SHARED = 97  # a device's attribute: bytes that a block may ask for
DYNAMIC_SHARED = 8  # a function's attribute
CHAIN = 64
UNCHANGED = (ctypes.c_float(1.0), ctypes.c_float(0.0))  # factor and term: no assembler knows that they do nothing
STEPS = "\n".join("    fma.rn.f32 %f1, %f1, %f3, %f4;" for _ in range(CHAIN))
PTX = f"""
.version 7.2
.target sm_80
.address_size 64
.visible .entry accumulate(.param .u64 input, .param .u64 output, .param .u32 iterations,
    .param .f32 factor, .param .f32 term)
{{
    .reg .pred %p<2>;
    .reg .f32 %f<6>;
    .reg .b32 %r<9>;
    .reg .b64 %rd<9>;
    ld.param.u64 %rd1, [input];
    ld.param.u64 %rd2, [output];
    ld.param.u32 %r1, [iterations];
    cvta.to.global.u64 %rd3, %rd1;
    cvta.to.global.u64 %rd4, %rd2;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    mov.u32 %r6, %nctaid.x;
    mul.lo.u32 %r6, %r6, %r3;
    mul.wide.u32 %rd5, %r5, 4;
    add.s64 %rd6, %rd3, %rd5;
    mul.wide.u32 %rd7, %r6, 4;
    mov.f32 %f1, 0f00000000;
    ld.param.f32 %f3, [factor];
    ld.param.f32 %f4, [term];
    mov.u32 %r7, 0;
MORE:
    ld.global.f32 %f2, [%rd6];
    add.f32 %f1, %f1, %f2;
{STEPS}
    add.s64 %rd6, %rd6, %rd7;
    add.u32 %r7, %r7, 1;
    setp.lt.u32 %p1, %r7, %r1;
    @%p1 bra MORE;
    add.s64 %rd8, %rd4, %rd5;
    st.global.f32 [%rd8], %f1;
    ret;
}}
"""


def run(gpu: Gpu, options: argparse.Namespace) -> bool:
    """Launch once, and return whether each thread's sum is right."""
    blocks = options.per_sm * gpu.attribute(SM_COUNT)
    threads = blocks * options.threads
    source, output = gpu.allocate(4 * threads * options.iterations), gpu.allocate(4 * threads)
    value = ctypes.c_uint32(struct.unpack("<I", struct.pack("<f", 1.0))[0])
    gpu.call("cuMemsetD32_v2", source, value, ctypes.c_size_t(threads * options.iterations))
    function = gpu.function(PTX, "accumulate")
    shared_bytes = 0
    if options.blocks == "exclusive":
        shared_bytes = gpu.attribute(MOST_SHARED) & ~1023
        gpu.call("cuFuncSetAttribute", function, DYNAMIC_SHARED, shared_bytes)
    arguments = (source, output, ctypes.c_uint32(options.iterations), *UNCHANGED)
    gpu.launch(function, blocks, options.threads, *arguments, shared_bytes=shared_bytes)
    gpu.synchronize()
    sums = struct.unpack(f"<{threads}f", gpu.read_memory(output, 4 * threads))
    return set(sums) == {float(options.iterations)}


def main() -> int:
    parser = argparse.ArgumentParser(description="Run blocks that have an SM to themselves or share it.")
    parser.add_argument("blocks", choices=("exclusive", "shared"))
    parser.add_argument(
        "--per-sm", type=int, default=8, help="number of blocks per SM in the grid; default %(default)s"
    )
    parser.add_argument("--threads", type=int, default=64, help="threads per block; default %(default)s")
    parser.add_argument("--iterations", type=int, default=100, help="default %(default)s")
    options = parser.parse_args()
    try:
        is_right = run(Gpu(), options)
    except DriverError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    print(f"{options.blocks} {'ok' if is_right else 'WRONG'}", flush=True)
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
