"""A Gluon matrix product with TMA and wgmma, twice. Prints whether it is right."""

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

ROWS, COLUMNS, DEPTH, TILE, TILE_DEPTH, LAUNCHES = 512, 1024, 768, 128, 64, 2


@gluon.jit
def product(left, right, result, depth, num_warps: gl.constexpr):
    rows: gl.constexpr = result.block_type.shape[0]
    columns: gl.constexpr = result.block_type.shape[1]
    step: gl.constexpr = left.block_type.shape[1]
    left_tile = gl.allocate_shared_memory(left.dtype, left.block_type.shape, left.layout)
    right_tile = gl.allocate_shared_memory(right.dtype, right.block_type.shape, right.layout)
    arrived = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(arrived, count=1)
    first_row = gl.program_id(0) * rows
    first_column = gl.program_id(1) * columns
    layout: gl.constexpr = gl.NVMMADistributedLayout(
        version=[3, 0], warps_per_cta=[num_warps, 1], instr_shape=[16, columns, 16]
    )
    total = gl.zeros((rows, columns), dtype=gl.float32, layout=layout)
    turn = 0
    for place in range(0, depth, step):
        mbarrier.expect(arrived, left.block_type.nbytes + right.block_type.nbytes)
        tma.async_copy_global_to_shared(left, [first_row, place], arrived, left_tile)
        tma.async_copy_global_to_shared(right, [place, first_column], arrived, right_tile)
        mbarrier.wait(arrived, turn)
        turn ^= 1
        total = warpgroup_mma(left_tile, right_tile, total, is_async=True)
        total = warpgroup_mma_wait(num_outstanding=0, deps=(total,))
    mbarrier.invalidate(arrived)
    stored = gl.allocate_shared_memory(result.dtype, result.block_type.shape, result.layout)
    stored.store(total.to(result.dtype))
    fence_async_shared()
    tma.async_copy_shared_to_global(result, [first_row, first_column], stored)
    tma.store_wait(0)


def descriptor(tensor, shape):
    layout = gl.NVMMASharedLayout.get_default_for(shape, gl.float16)
    return TensorDescriptor.from_tensor(tensor, shape, layout)


def main():
    torch.manual_seed(0)
    left = torch.randint(-3, 4, (ROWS, DEPTH), device="cuda").half()
    right = torch.randint(-3, 4, (DEPTH, COLUMNS), device="cuda").half()
    result = torch.empty((ROWS, COLUMNS), device="cuda", dtype=torch.float16)
    maps = descriptor(left, [TILE, TILE_DEPTH]), descriptor(right, [TILE_DEPTH, TILE]), descriptor(result, [TILE, TILE])
    for _ in range(LAUNCHES):
        product[(ROWS // TILE, COLUMNS // TILE)](*maps, DEPTH, num_warps=4)
    torch.cuda.synchronize()
    print(torch.equal(result, (left.float() @ right.float()).half()))


if __name__ == "__main__":
    main()
