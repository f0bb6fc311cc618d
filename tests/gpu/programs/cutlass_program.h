// What the CUTLASS programs share: inputs, a check of every call, and a checksum of the output.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "cutlass/cutlass.h"
#include "cutlass/half.h"

inline void check(cutlass::Status status) {
    if (status != cutlass::Status::kSuccess) {
        std::fprintf(stderr, "%s\n", cutlassGetStatusString(status));
        std::exit(1);
    }
}

inline void check(cudaError_t error) {
    if (error != cudaSuccess) {
        std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
        std::exit(1);
    }
}

// Device memory with small numbers, the same in every run.
inline cutlass::half_t *halves(size_t count) {
    std::vector<cutlass::half_t> values(count);
    for (size_t i = 0; i < count; ++i) values[i] = cutlass::half_t(static_cast<float>((i * 2654435761u >> 9) % 17) - 8.0f);
    cutlass::half_t *memory = nullptr;
    check(cudaMalloc(&memory, count * sizeof(*memory)));
    check(cudaMemcpy(memory, values.data(), count * sizeof(*memory), cudaMemcpyHostToDevice));
    return memory;
}

inline int report(const char *name, const cutlass::half_t *memory, size_t count) {
    std::vector<uint16_t> values(count);
    check(cudaDeviceSynchronize());
    check(cudaMemcpy(values.data(), memory, count * sizeof(uint16_t), cudaMemcpyDeviceToHost));
    uint64_t sum = 0;
    for (uint16_t value : values) sum = sum * 31 + value;
    std::printf("%s %016llx\n", name, static_cast<unsigned long long>(sum));
    return 0;
}
