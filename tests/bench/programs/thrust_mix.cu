// Thrust: transform, sort by key, reduce by key, unique.
#include <cstdio>
#include <thrust/device_vector.h>
#include <thrust/functional.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/reduce.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/unique.h>

struct key {
    unsigned round;
    __host__ __device__ unsigned operator()(unsigned i) const { return ((i + round) * 2654435761u) >> 14; }
};

int main()
{
    const int n = 1 << 20;
    thrust::device_vector<unsigned> keys(n), values(n), unique_keys(n), sums(n);
    unsigned long long checksum = 0;
    for (unsigned round = 0; round < 600; round++) {
        thrust::counting_iterator<unsigned> first(0);
        thrust::transform(first, first + n, keys.begin(), key{round});
        thrust::sequence(values.begin(), values.end());
        thrust::sort_by_key(keys.begin(), keys.end(), values.begin());
        auto ends = thrust::reduce_by_key(keys.begin(), keys.end(), values.begin(), unique_keys.begin(), sums.begin());
        size_t distinct = thrust::unique(keys.begin(), keys.end()) - keys.begin();
        size_t reduced = ends.first - unique_keys.begin();
        checksum = checksum * 31 + distinct + (distinct == reduced) + (unsigned)sums[distinct / 2];
    }
    printf("%llu %s\n", checksum, cudaGetErrorString(cudaDeviceSynchronize()));
}
