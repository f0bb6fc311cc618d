// CUTLASS convolution as an implicit matrix product, three times. Prints a checksum.
#include "cutlass/conv/kernel/default_conv2d_fprop.h"

#include "cutlass/conv/device/implicit_gemm_convolution.h"
#include "cutlass_program.h"

using Half = cutlass::half_t;
using Layout = cutlass::layout::TensorNHWC;
using Kernel = cutlass::conv::kernel::DefaultConv2dFprop<
    Half, Layout, Half, Layout, Half, Layout, float, cutlass::arch::OpClassTensorOp, cutlass::arch::Sm80,
    cutlass::gemm::GemmShape<128, 128, 32>, cutlass::gemm::GemmShape<64, 64, 32>, cutlass::gemm::GemmShape<16, 8, 16>,
    cutlass::epilogue::thread::LinearCombination<Half, 8, float, float>,
    cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<>, 4, cutlass::arch::OpMultiplyAdd,
    cutlass::conv::IteratorAlgorithm::kOptimized>::Kernel;
using Convolution = cutlass::conv::device::ImplicitGemmConvolution<Kernel>;

int main() {
    const int images = 16, side = 56, channels = 128, filters = 128, taps = 3;
    const int pixels = images * side * side;
    cutlass::conv::Conv2dProblemSize problem(
        images, side, side, channels, filters, taps, taps, side, side, 1, 1, 1, 1, 1, 1,
        cutlass::conv::Mode::kCrossCorrelation);
    Half *x = halves(pixels * channels), *w = halves(filters * taps * taps * channels), *y = halves(pixels * filters);
    const Layout in(channels, side * channels, side * side * channels);
    const Layout weights(channels, taps * channels, taps * taps * channels);
    const Layout out(filters, side * filters, side * side * filters);
    Convolution convolution;
    check(convolution.initialize({problem, {x, in}, {w, weights}, {y, out}, {y, out}, {1.0f / 1152, 0.0f}}));
    for (int run = 0; run < 3; ++run) check(convolution());
    return report("convolution", y, pixels * filters);
}
