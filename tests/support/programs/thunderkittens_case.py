"""A tile of ThunderKittens, from the directory of its headers in THUNDERKITTENS_ROOT."""

import os

from nvcc import build_and_run

build_and_run(
    """#include "kittens.cuh"
#include <cstdio>
using namespace kittens;
using layout = gl<float, 1, 1, 64, 64>;
__global__ void scale(const __grid_constant__ layout x, const __grid_constant__ layout y) {
    rt_fl<64, 64> tile; warp::load(tile, x, {0, 0, 0, 0}); warp::mul(tile, tile, 2.0f);
    warp::store(y, tile, {0, 0, 0, 0});
}
int main() {
    float *x, *y; cudaMallocManaged(&x, 64 * 64 * 4); cudaMallocManaged(&y, 64 * 64 * 4);
    for (int i = 0; i < 64 * 64; ++i) x[i] = i;
    scale<<<1, 32>>>(layout{x, nullptr, nullptr, nullptr, nullptr}, layout{y, nullptr, nullptr, nullptr, nullptr});
    if (cudaDeviceSynchronize() != cudaSuccess) return 1;
    for (int i = 0; i < 64 * 64; ++i) if (y[i] != 2.0f * i) return 2;
    puts("ok");
}
""",
    "-std=c++20",
    "--expt-relaxed-constexpr",
    "-DKITTENS_HOPPER",
    f"-I{os.environ['THUNDERKITTENS_ROOT']}/include",
    "-lcuda",
)
