// Clusters of blocks: their numbers, shared memory of each other, and their barrier. See compile.sh.

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

// Each block counts values of its own range of bins; all blocks of a cluster count for all of them.
extern "C" __global__ void histogram(const unsigned *values, unsigned *bins, int count, int bins_per_block)
{
    extern __shared__ unsigned own[];
    cg::cluster_group cluster = cg::this_cluster();
    for (int i = threadIdx.x; i < bins_per_block; i += blockDim.x)
        own[i] = 0;
    cluster.sync();
    unsigned first = cg::this_grid().thread_rank(), step = cg::this_grid().size();
    for (unsigned i = first; i < count; i += step) {
        unsigned bin = values[i] % (bins_per_block * cluster.num_blocks());
        unsigned *there = cluster.map_shared_rank(own, bin / bins_per_block);
        atomicAdd(there + bin % bins_per_block, 1);
    }
    cluster.sync();
    for (int i = threadIdx.x; i < bins_per_block; i += blockDim.x)
        atomicAdd(&bins[cluster.block_rank() * bins_per_block + i], own[i]);
}

// What a thread knows of its cluster.
extern "C" __global__ void numbers(int *out)
{
    cg::cluster_group cluster = cg::this_cluster();
    __shared__ int mine;
    dim3 index = cluster.block_index(), extent = cluster.dim_blocks();
    unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    if (threadIdx.x == 0)
        mine = block;
    cluster.sync();
    unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();
    int *there = cluster.map_shared_rank(&mine, next);
    if (threadIdx.x == 0) {
        int *row = out + 8 * block;
        row[0] = cluster.block_rank();
        row[1] = cluster.num_blocks();
        row[2] = index.x + 10 * index.y + 100 * index.z;
        row[3] = extent.x + 10 * extent.y + 100 * extent.z;
        row[4] = *there;
        row[5] = cluster.query_shared_rank(there);
        row[6] = cluster.thread_rank();
        row[7] = cluster.num_threads();
    }
    cluster.sync();
}
