"""A CuTe DSL kernel whose regions are named for IKET: ``cute_regions.py plain``, or ``... iket`` below it.

Each region is straight code of known length, without a barrier: the code of a loop has the line of the function's end,
and the clock that IKET reads behind a barrier does not wait for the barrier.
"""

import sys
from contextlib import nullcontext

import cutlass
import torch
from cutlass import cute
from cutlass.cute.experimental import iket
from cutlass.cute.runtime import from_dlpack
from torch.profiler import ProfilerActivity, profile

BLOCKS, THREADS, ROUNDS, LAUNCHES = 264, 256, 32, 4


@cute.kernel
def region_rounds(source: cute.Tensor, result: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    tile = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(THREADS), 16)
    at = block * THREADS + thread
    value = source[at]
    tile[thread] = value
    cute.arch.sync_threads()
    for turn in cutlass.range(ROUNDS, unroll=1):
        iket.range_push("multiply")
        for _step in cutlass.range_constexpr(256):
            value = value * 0.5 + 1.0
        iket.range_pop()
        iket.range_push("exchange")
        for _step in cutlass.range_constexpr(32):
            value = value * 0.5 + tile[(thread + turn + cutlass.Int32(value)) % THREADS] * 0.125
        iket.range_pop()
        iket.range_push("root")
        for _step in cutlass.range_constexpr(16):
            value = cute.math.sqrt(value + 2.0)
        iket.range_pop()
    result[at] = value


@cute.jit
def launch(source: cute.Tensor, result: cute.Tensor):
    region_rounds(source, result).launch(grid=(BLOCKS, 1, 1), block=(THREADS, 1, 1))


def main(how):
    source = torch.zeros(BLOCKS * THREADS, device="cuda")
    result = torch.empty_like(source)
    operands = from_dlpack(source), from_dlpack(result)
    compiled = cute.compile(launch, *operands)
    with nullcontext() if how == "iket" else profile(activities=[ProfilerActivity.CUDA]) as kernels:
        for _ in range(LAUNCHES):
            compiled(*operands)
        torch.cuda.synchronize()
    events = kernels.events() if kernels else ()
    times = [kernel.device_time for kernel in events if "region_rounds" in kernel.name]
    print("us", *(f"{time:.1f}" for time in times))
    print("close", torch.isfinite(result).all().item() and torch.equal(result, result[0].expand_as(result)))


main(*sys.argv[1:])
