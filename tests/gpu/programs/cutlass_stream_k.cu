// CUTLASS matrix product that divides the sums among blocks (stream-K), three times. Prints a checksum.
#include "cutlass/gemm/device/gemm_universal.h"
#include "cutlass/gemm/threadblock/threadblock_swizzle_streamk.h"
#include "cutlass_program.h"

using Half = cutlass::half_t;
using Gemm = cutlass::gemm::device::GemmUniversal<
    Half, cutlass::layout::RowMajor, Half, cutlass::layout::ColumnMajor, Half, cutlass::layout::RowMajor, float,
    cutlass::arch::OpClassTensorOp, cutlass::arch::Sm80, cutlass::gemm::GemmShape<128, 128, 32>,
    cutlass::gemm::GemmShape<64, 64, 32>, cutlass::gemm::GemmShape<16, 8, 16>,
    cutlass::epilogue::thread::LinearCombination<Half, 8, float, float>,
    cutlass::gemm::threadblock::ThreadblockSwizzleStreamK, 4, 8, 8>;

int main() {
    const int m = 1536, n = 2304, k = 2048;
    Half *a = halves(m * k), *b = halves(n * k), *c = halves(m * n);
    Gemm::Arguments arguments(
        cutlass::gemm::GemmUniversalMode::kGemm, {m, n, k}, 1, {1.0f / k, 0.0f}, a, b, c, c, m * k, n * k, m * n, m * n,
        k, k, n, n);
    void *workspace = nullptr;
    check(cudaMalloc(&workspace, Gemm::get_workspace_size(arguments) + 16));
    Gemm gemm;
    for (int run = 0; run < 3; ++run) check(gemm(arguments, workspace));
    return report("stream-K", c, m * n);
}
