// Device-wide algorithms of CUB and Thrust over several types. One of the groups is compiled: -DGROUP=N.
#include <cub/cub.cuh>
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/functional.h>
#include <thrust/inner_product.h>
#include <thrust/scan.h>
#include <thrust/set_operations.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/unique.h>

struct larger {
    template <class T> __host__ __device__ bool operator()(const T &a, const T &b) const { return a > b; }
};

struct positive {
    template <class T> __host__ __device__ bool operator()(const T &a) const { return a > T(0); }
};

template <class T> void use(void *scratch, size_t &bytes, T *in, T *out, int *counts, int n, const int *offsets)
{
#if GROUP == 0
    cub::DeviceReduce::Sum(scratch, bytes, in, out, n);
    cub::DeviceReduce::Min(scratch, bytes, in, out, n);
    cub::DeviceReduce::ReduceByKey(scratch, bytes, in, out, in, out, counts, cuda::std::plus<>{}, n);
#elif GROUP == 1
    cub::DeviceScan::InclusiveSum(scratch, bytes, in, out, n);
    cub::DeviceScan::ExclusiveSumByKey(scratch, bytes, counts, in, out, n);
#elif GROUP == 2
    cub::DeviceRadixSort::SortPairs(scratch, bytes, in, out, in, out, n);
    cub::DeviceRadixSort::SortKeysDescending(scratch, bytes, in, out, n);
#elif GROUP == 3
    cub::DeviceMergeSort::SortPairs(scratch, bytes, in, counts, n, larger{});
    cub::DeviceSegmentedReduce::Sum(scratch, bytes, in, out, n, offsets, offsets + 1);
#elif GROUP == 4
    cub::DeviceSelect::If(scratch, bytes, in, out, counts, n, positive{});
    cub::DeviceSelect::Unique(scratch, bytes, in, out, counts, n);
    cub::DevicePartition::If(scratch, bytes, in, out, counts, n, positive{});
#elif GROUP == 5
    cub::DeviceRunLengthEncode::Encode(scratch, bytes, in, out, counts, counts, n);
    cub::DeviceHistogram::HistogramEven(scratch, bytes, in, counts, 65, T(0), T(64), n);
    cub::DeviceAdjacentDifference::SubtractLeftCopy(scratch, bytes, in, out, n);
#elif GROUP == 6
    thrust::sort_by_key(thrust::device, in, in + n, counts, larger{});
    thrust::unique(thrust::device, in, in + n);
    thrust::set_intersection(thrust::device, in, in + n, in, in + n, out);
#elif GROUP == 7
    thrust::transform(thrust::device, in, in + n, out, thrust::negate<T>());
    thrust::inclusive_scan(thrust::device, in, in + n, out);
    *out = thrust::inner_product(thrust::device, in, in + n, in, T(0));
#elif GROUP == 8
    cub::DeviceSegmentedSort::SortKeys(scratch, bytes, in, out, n, 8, offsets, offsets + 1);
#endif
}

void all(void *scratch, size_t &bytes, int *counts, int n, void *in, void *out)
{
    use(scratch, bytes, (signed char *)in, (signed char *)out, counts, n, counts);
    use(scratch, bytes, (int *)in, (int *)out, counts, n, counts);
    use(scratch, bytes, (float *)in, (float *)out, counts, n, counts);
    use(scratch, bytes, (double *)in, (double *)out, counts, n, counts);
}
