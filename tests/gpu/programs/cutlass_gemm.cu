// CUTLASS matrix product, 2048 x 2048 x 2048 in half precision on tensor cores, three times. Prints a checksum.
#include "cutlass/gemm/device/gemm.h"
#include "cutlass_program.h"

using Half = cutlass::half_t;
using Gemm = cutlass::gemm::device::Gemm<
    Half, cutlass::layout::RowMajor, Half, cutlass::layout::ColumnMajor, Half, cutlass::layout::RowMajor, float,
    cutlass::arch::OpClassTensorOp, cutlass::arch::Sm80, cutlass::gemm::GemmShape<128, 128, 32>,
    cutlass::gemm::GemmShape<64, 64, 32>, cutlass::gemm::GemmShape<16, 8, 16>>;

int main() {
    const int size = 2048;
    Half *a = halves(size * size), *b = halves(size * size), *c = halves(size * size);
    Gemm gemm;
    for (int run = 0; run < 3; ++run)
        check(gemm({{size, size, size}, {a, size}, {b, size}, {c, size}, {c, size}, {1.0f / size, 0.0f}}));
    return report("gemm", c, size * size);
}
