// Barriers of the whole grid, as cooperative groups make them. See compile.sh.

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

// Three rounds, each of which reads what another block has written in the one before.
extern "C" __global__ void rounds(int *values, int *out)
{
    cg::grid_group grid = cg::this_grid();
    int thread = grid.thread_rank(), count = grid.size();
    values[thread] = thread;
    grid.sync();
    int sum = values[(thread + blockDim.x) % count] + values[count - 1 - thread];
    grid.sync();
    values[thread] = sum;
    grid.sync();
    out[thread] = values[(thread * 7) % count];
}
