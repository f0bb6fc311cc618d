/* The pipeline of kv_pipeline.cu with one of its two copies late: kv_pipeline launches both kernels with K late, then
   with V late, and prints the sum of all outputs, the same on every run. */
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "../../data/ptx/sources/kv_pipeline.cu"

/* In SASS, the producer has eight phases for each tile, and a warp keeps 2048 of them. */
constexpr int TILES = 128, LATE = 120, PROMPT = 2;

#define CHECK(call)                                                                            \
    do {                                                                                       \
        cudaError_t error = (call);                                                            \
        if (error != cudaSuccess) {                                                            \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));                     \
            exit(1);                                                                           \
        }                                                                                      \
    } while (0)

int main()
{
    std::vector<float> values(TILES * TILE), found(TILE + 1);
    for (size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(i % 13);
    float *keys, *out;
    CHECK(cudaMalloc(&keys, values.size() * sizeof(float)));
    CHECK(cudaMalloc(&out, found.size() * sizeof(float)));
    CHECK(cudaMemcpy(keys, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice));
    double sum = 0;
    for (bool dynamic : {false, true})
        for (bool is_v_late : {false, true}) {
            int late_k = is_v_late ? PROMPT : LATE, late_v = is_v_late ? LATE : PROMPT;
            if (dynamic)
                dynamic_barriers<<<1, TILE + 32, sizeof(Pipeline)>>>(out, keys, keys, TILES, late_k, late_v);
            else
                static_barriers<<<1, TILE + 32>>>(out, keys, keys, TILES, late_k, late_v);
            CHECK(cudaGetLastError());
            CHECK(cudaMemcpy(found.data(), out, found.size() * sizeof(float), cudaMemcpyDeviceToHost));
            for (float value : found)
                sum += value;
        }
    printf("%d tiles, sum %.0f\n", TILES, sum);
    return 0;
}
