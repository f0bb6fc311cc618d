// Cooperative groups, up to the whole grid.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

extern "C" __global__ void tiles(int *data) {
    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    int sum = cg::reduce(tile, data[threadIdx.x], cg::plus<int>());
    if (tile.thread_rank() == 0) data[blockIdx.x] = sum;
    cg::coalesced_threads().sync();
}

extern "C" __global__ void whole_grid(int *data) {
    data[blockIdx.x] = threadIdx.x;
    cg::this_grid().sync();
    data[threadIdx.x] += data[gridDim.x - 1];
}

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __cluster_dims__(4, 1, 1) neighbours(int *data) {
    __shared__ int mine;
    mine = data[threadIdx.x];
    auto cluster = cg::this_cluster();
    cluster.sync();
    data[threadIdx.x] = *cluster.map_shared_rank(&mine, cluster.block_rank() ^ 1);
    cluster.sync();
}
#endif
