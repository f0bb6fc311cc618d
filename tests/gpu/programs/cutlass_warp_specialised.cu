// CUTLASS matrix product of warp-specialised kind (TMA, wgmma, setmaxnreg) in half precision, eight times, of as many rows
// and columns as the argument says: 4096 by default. Prints a checksum. Needs -arch=sm_90a -std=c++17 and the headers of
// CUTLASS and of its tools/util.
#include "cute/tensor.hpp"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/device/gemm_universal_adapter.h"
#include "cutlass/gemm/kernel/gemm_universal.hpp"
#include "cutlass/util/packed_stride.hpp"
#include "cutlass_program.h"

using namespace cute;
using Half = cutlass::half_t;
using Row = cutlass::layout::RowMajor;
using Column = cutlass::layout::ColumnMajor;
using TileShape = Shape<_128, _128, _64>;
using ClusterShape = Shape<_1, _1, _1>;
using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, TileShape, ClusterShape, cutlass::epilogue::collective::EpilogueTileAuto,
    float, float, Half, Row, 8, Half, Row, 8, cutlass::epilogue::TmaWarpSpecializedCooperative>::CollectiveOp;
using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Half, Row, 8, Half, Column, 8, float, TileShape, ClusterShape,
    cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(sizeof(typename Epilogue::SharedStorage))>,
    cutlass::gemm::KernelTmaWarpSpecializedCooperative>::CollectiveOp;
using Kernel = cutlass::gemm::kernel::GemmUniversal<Shape<int, int, int, int>, Mainloop, Epilogue>;
using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

int main(int argc, char **argv) {
    const int size = argc > 1 ? std::atoi(argv[1]) : 4096;
    Half *a = halves(size * size), *b = halves(size * size), *c = halves(size * size);
    auto stride = [&](auto kind) { return cutlass::make_cute_packed_stride(kind, make_shape(size, size, 1)); };
    typename Gemm::Arguments arguments{
        cutlass::gemm::GemmUniversalMode::kGemm, {size, size, size, 1},
        {a, stride(typename Kernel::StrideA{}), b, stride(typename Kernel::StrideB{})},
        {{1.0f / size, 0.0f}, c, stride(typename Kernel::StrideC{}), c, stride(typename Kernel::StrideD{})}};
    Gemm gemm;
    void *workspace = nullptr;
    check(cudaMalloc(&workspace, Gemm::get_workspace_size(arguments) + 1));
    check(gemm.initialize(arguments, workspace));
    for (int run = 0; run < 8; ++run) check(gemm.run());
    return report("gemm", c, size * size);
}
