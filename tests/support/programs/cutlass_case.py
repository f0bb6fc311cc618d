"""A product of CUTLASS, from the headers that the package nvidia-cutlass contains."""

from pathlib import Path

import cutlass_library
from nvcc import build_and_run

SOURCE = Path(cutlass_library.__file__).parent / "source"
build_and_run(
    """#include <cutlass/gemm/device/gemm.h>
#include <cstdio>
int main() {
    using Gemm = cutlass::gemm::device::Gemm<float, cutlass::layout::RowMajor, float, cutlass::layout::RowMajor,
                                             float, cutlass::layout::RowMajor>;
    const int n = 128; float *a, *b, *c;
    cudaMallocManaged(&a, n * n * 4); cudaMallocManaged(&b, n * n * 4); cudaMallocManaged(&c, n * n * 4);
    for (int i = 0; i < n * n; ++i) { a[i] = i % 7; b[i] = i % 5; c[i] = 0; }
    Gemm gemm; Gemm::Arguments arguments({n, n, n}, {a, n}, {b, n}, {c, n}, {c, n}, {1, 0});
    if (gemm(arguments) != cutlass::Status::kSuccess || cudaDeviceSynchronize() != cudaSuccess) return 1;
    for (int i = 0; i < n; ++i) for (int j = 0; j < n; ++j) {
        float sum = 0; for (int k = 0; k < n; ++k) sum += a[i * n + k] * b[k * n + j];
        if (sum != c[i * n + j]) return 2;
    }
    puts("ok");
}
""",
    "-std=c++17",
    f"-I{SOURCE / 'include'}",
)
