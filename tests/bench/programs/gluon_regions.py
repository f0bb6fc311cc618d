"""A matrix product in Gluon with TMA, wgmma and named regions: ``gluon_regions.py plain`` or ``... proton FOLDER``."""

import sys

import torch
import triton.profiler as proton
import triton.profiler.language as pl
from torch.profiler import ProfilerActivity, profile
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_init,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

ROWS, COLUMNS, DEPTH, TILE, STEP, LAUNCHES = 1024, 1024, 2048, 128, 64, 4


@gluon.jit
def region_product(left, right, product, num_warps: gl.constexpr):
    tile_rows: gl.constexpr = product.block_type.shape[0]
    tile_columns: gl.constexpr = product.block_type.shape[1]
    step: gl.constexpr = left.block_type.shape[1]
    row = gl.program_id(axis=0) * tile_rows
    column = gl.program_id(axis=1) * tile_columns
    left_tile = gl.allocate_shared_memory(left.dtype, [2] + left.block_type.shape, left.layout)  # noqa: RUF005 - Gluon knows no star
    right_tile = gl.allocate_shared_memory(right.dtype, [2] + right.block_type.shape, right.layout)  # noqa: RUF005
    layout: gl.constexpr = gl.NVMMADistributedLayout(
        version=[3, 0], warps_per_cta=[num_warps, 1], instr_shape=[16, tile_columns, 16]
    )
    sums = warpgroup_mma_init(gl.zeros((tile_rows, tile_columns), dtype=gl.float32, layout=layout))
    full = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(full, count=1)
    stage = 0
    parity = 0
    for k in range(0, left.shape[1], step):
        left_stage = left_tile.index(stage)
        right_stage = right_tile.index(stage)
        with pl.scope("issue"):
            mbarrier.expect(full, left.block_type.nbytes + right.block_type.nbytes)
            tma.async_copy_global_to_shared(left, [row, k], full, left_stage)
            tma.async_copy_global_to_shared(right, [k, column], full, right_stage)
        with pl.scope("arrive"):
            mbarrier.wait(full, phase=parity)
        parity ^= 1
        with pl.scope("products"):
            sums = warpgroup_mma_wait(num_outstanding=0, deps=(sums,))
        with pl.scope("multiply"):
            sums = warpgroup_mma(left_stage, right_stage, sums, is_async=True)
        stage ^= 1
    sums = warpgroup_mma_wait(num_outstanding=0, deps=(sums,))
    mbarrier.invalidate(full)
    result = gl.allocate_shared_memory(product.dtype, product.block_type.shape, product.layout)
    result.store(sums.to(product.dtype))
    fence_async_shared()
    tma.async_copy_shared_to_global(product, [row, column], result)
    tma.store_wait(pendings=0)


def described(tensor, box):
    layout = gl.NVMMASharedLayout.get_default_for(box, gl.float16)
    return TensorDescriptor.from_tensor(tensor, box, layout)


def main(how, folder="."):
    torch.manual_seed(0)
    a = torch.randn(ROWS, DEPTH, device="cuda", dtype=torch.float16)
    b = torch.randn(DEPTH, COLUMNS, device="cuda", dtype=torch.float16)
    c = torch.empty(ROWS, COLUMNS, device="cuda", dtype=torch.float16)
    operands = described(a, [TILE, STEP]), described(b, [STEP, TILE]), described(c, [TILE, TILE])
    if how == "proton":
        proton.start(f"{folder}/proton", data="trace", backend="instrumentation", mode=proton.mode.Default())
    with profile(activities=[ProfilerActivity.CUDA]) as kernels:
        for _ in range(LAUNCHES):
            region_product[(ROWS // TILE, COLUMNS // TILE)](*operands, num_warps=4)
        torch.cuda.synchronize()
    times = [kernel.device_time for kernel in kernels.events() if "region_product" in kernel.name]
    print("us", *(f"{time:.1f}" for time in times))
    print("close", torch.allclose(c.float(), (a @ b).float(), atol=2.0))
    if how == "proton":
        proton.finalize()


main(*sys.argv[1:])
