"""A row-wise kernel in Triton with three named regions: ``triton_regions.py plain`` or ``... proton FOLDER``."""

import sys

import torch
import triton
import triton.language as tl
import triton.profiler as proton
import triton.profiler.language as pl
from torch.profiler import ProfilerActivity, profile

# One block per SM, so that the length of a region does not depend on how many blocks are resident.
ROWS, COLUMNS, ROWS_OF_BLOCK, LAUNCHES = 132 * 8, 512, 8, 4


@triton.jit
def region_rows(source, result, COLUMNS: tl.constexpr, ROWS_OF_BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS_OF_BLOCK + tl.arange(0, ROWS_OF_BLOCK)
    column = tl.arange(0, COLUMNS)
    pl.enter_scope("fetch")
    values = tl.load(source + row[:, None] * COLUMNS + column[None, :])
    top = tl.max(values, 1)
    pl.exit_scope("fetch")
    pl.enter_scope("weigh")
    weights = tl.exp(values - top[:, None])
    weights = tl.exp(tl.sin(weights) * 0.5)
    total = tl.sum(weights, 1)
    pl.exit_scope("weigh")
    pl.enter_scope("keep")
    tl.store(result + row[:, None] * COLUMNS + column[None, :], weights / total[:, None])
    pl.exit_scope("keep")


def main(how, folder="."):
    torch.manual_seed(0)
    x = torch.randn(ROWS, COLUMNS, device="cuda")
    y = torch.empty_like(x)
    if how == "proton":
        pl.enable_semantic("triton")
        proton.start(f"{folder}/proton", data="trace", backend="instrumentation", mode=proton.mode.Default())
    with profile(activities=[ProfilerActivity.CUDA]) as kernels:
        for _ in range(LAUNCHES):
            region_rows[(ROWS // ROWS_OF_BLOCK,)](x, y, COLUMNS=COLUMNS, ROWS_OF_BLOCK=ROWS_OF_BLOCK, num_warps=4)
        torch.cuda.synchronize()
    times = [kernel.device_time for kernel in kernels.events() if "region_rows" in kernel.name]
    print("us", *(f"{time:.1f}" for time in times))
    print("close", abs(y.sum().item() - ROWS) < 1)
    if how == "proton":
        proton.finalize()


main(*sys.argv[1:])
