"""A Gluon kernel of three roles: one warp loads tiles by TMA, four compute, one stores. Prints whether it is right."""

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

ROWS, COLUMNS, TILE_ROWS, TILE_COLUMNS, STAGES, LAUNCHES = 8192, 8192, 64, 64, 3, 4


@gluon.jit
def load_tiles(source, result, inputs, outputs, barriers, first_row, tiles):  # noqa: ARG001 - all roles take the same arguments
    full, free = barriers[0], barriers[1]
    for tile in range(tiles):
        stage = tile % inputs.type.shape[0]
        turn = tile // inputs.type.shape[0] & 1
        mbarrier.wait(free.index(stage), turn ^ 1)
        mbarrier.expect(full.index(stage), source.block_type.nbytes)
        column = tile * source.block_type.shape[1]
        tma.async_copy_global_to_shared(source, [first_row, column], full.index(stage), inputs.index(stage))


@gluon.jit
def store_tiles(source, result, inputs, outputs, barriers, first_row, tiles):  # noqa: ARG001 - all roles take the same arguments
    done, stored = barriers[2], barriers[3]
    for tile in range(tiles):
        mbarrier.wait(done, tile & 1)
        tma.async_copy_shared_to_global(result, [first_row, tile * result.block_type.shape[1]], outputs)
        tma.store_wait(0)
        mbarrier.arrive(stored, count=1)


@gluon.jit
def compute_tiles(inputs, outputs, barriers, tiles, layout: gl.constexpr):
    full, free, done, stored = barriers
    for tile in range(tiles):
        stage = tile % inputs.type.shape[0]
        turn = tile // inputs.type.shape[0] & 1
        mbarrier.wait(full.index(stage), turn)
        values = inputs.index(stage).load(layout)
        fence_async_shared()
        mbarrier.arrive(free.index(stage), count=1)
        values = gl.exp(gl.sin(values) * 0.5)
        mbarrier.wait(stored, tile & 1 ^ 1)
        outputs.store(values)
        fence_async_shared()
        mbarrier.arrive(done, count=1)


@gluon.jit
def roles(source, result, tiles, num_warps: gl.constexpr, stages: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [num_warps, 1], [1, 0])
    shape: gl.constexpr = source.block_type.shape
    inputs = gl.allocate_shared_memory(source.dtype, [stages] + shape, source.layout)  # noqa: RUF005 - Gluon knows no star
    outputs = gl.allocate_shared_memory(result.dtype, shape, result.layout)
    full = gl.allocate_shared_memory(gl.int64, [stages, 1], mbarrier.MBarrierLayout())
    free = gl.allocate_shared_memory(gl.int64, [stages, 1], mbarrier.MBarrierLayout())
    done = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    stored = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    for stage in gl.static_range(stages):
        mbarrier.init(full.index(stage), count=1)
        mbarrier.init(free.index(stage), count=1)
    mbarrier.init(done, count=1)
    mbarrier.init(stored, count=1)
    barriers = (full, free, done, stored)
    first_row = gl.program_id(0) * shape[0]
    worker = (source, result, inputs, outputs, barriers, first_row, tiles)
    gl.warp_specialize(
        [(compute_tiles, (inputs, outputs, barriers, tiles, layout)), (load_tiles, worker), (store_tiles, worker)],
        [1, 1],
        [24, 24],
    )


def main():
    torch.manual_seed(0)
    source = torch.randn(ROWS, COLUMNS, device="cuda")
    result = torch.empty_like(source)
    layout = gl.NVMMASharedLayout.get_default_for([TILE_ROWS, TILE_COLUMNS], gl.float32)
    described = [TensorDescriptor.from_tensor(x, [TILE_ROWS, TILE_COLUMNS], layout) for x in (source, result)]
    for _ in range(LAUNCHES):
        roles[(ROWS // TILE_ROWS,)](*described, COLUMNS // TILE_COLUMNS, stages=STAGES, num_warps=4, maxnreg=128)
    torch.cuda.synchronize()
    print(torch.allclose(result, (source.sin() * 0.5).exp(), rtol=1e-4))


if __name__ == "__main__":
    main()
