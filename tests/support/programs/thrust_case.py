"""Thrust and CUB, of the CUDA toolkit: a sort, a scan and a reduction."""

from nvcc import build_and_run

build_and_run("""#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <cstdio>
int main() {
    thrust::host_vector<int> h(100000);
    for (int i = 0; i < 100000; ++i) h[i] = (i * 7919) % 100003;
    thrust::device_vector<int> v = h;
    thrust::sort(v.begin(), v.end());
    long total = thrust::reduce(v.begin(), v.end(), 0L);
    thrust::inclusive_scan(v.begin(), v.end(), v.begin());
    h = v;
    printf("%ld %d\\n", total, h[1000]);
}
""")
