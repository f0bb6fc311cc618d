// One process that launches on every GPU it finds, from one thread and from a thread each. Prints one line per GPU.
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

constexpr int LENGTH = 1 << 20;

extern "C" __global__ void add_index(float *values, float offset) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < LENGTH) values[at] += offset + at % 7;
}

static void check(cudaError_t error) {
    if (error != cudaSuccess) {
        std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
        std::exit(1);
    }
}

static void launch(int device, float *values) {
    check(cudaSetDevice(device));
    for (int time = 0; time < 50; ++time) add_index<<<LENGTH / 256, 256>>>(values, device + 1);
    check(cudaDeviceSynchronize());
}

int main() {
    int devices = 0;
    check(cudaGetDeviceCount(&devices));
    std::vector<float *> values(devices);
    for (int device = 0; device < devices; ++device) {
        check(cudaSetDevice(device));
        check(cudaMalloc(&values[device], LENGTH * sizeof(float)));
        check(cudaMemset(values[device], 0, LENGTH * sizeof(float)));
        launch(device, values[device]);
    }
    std::vector<std::thread> threads;
    for (int device = 0; device < devices; ++device) threads.emplace_back(launch, device, values[device]);
    for (std::thread &thread : threads) thread.join();
    std::vector<float> host(LENGTH);
    for (int device = 0; device < devices; ++device) {
        check(cudaSetDevice(device));
        check(cudaMemcpy(host.data(), values[device], LENGTH * sizeof(float), cudaMemcpyDeviceToHost));
        double sum = 0;
        for (float value : host) sum += value;
        std::printf("device %d: %.0f\n", device, sum);
    }
    return 0;
}
