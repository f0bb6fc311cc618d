// Structures of 12 bytes, rows of an odd number of bytes, and a fence with an atomic per block.
#include <cstdio>
#include <vector>

struct Particle {
    float x, y, z;
};

__global__ void push(Particle *particles, int n, int *turn)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        Particle particle = particles[i];
        particle.x += 1, particle.y += 2, particle.z += particle.x * particle.y;
        particles[i] = particle;
    }
    __threadfence();
    if (threadIdx.x == 0)
        atomicAdd(turn, 1);
}

__global__ void shift(unsigned char *after, const unsigned char *before, int pitch, int width)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x < width)
        after[y * pitch + x] = before[y * pitch + width - 1 - x];
}

int main()
{
    const int n = 200000, width = 1001, rows = 256;
    std::vector<Particle> host(n, Particle{1, 2, 3});
    std::vector<unsigned char> bytes(width * rows);
    for (size_t i = 0; i < bytes.size(); i++)
        bytes[i] = i * 31;
    Particle *particles;
    unsigned char *before, *after;
    int *turn, turns;
    cudaMalloc(&particles, n * sizeof *particles);
    cudaMalloc(&before, bytes.size());
    cudaMalloc(&after, bytes.size());
    cudaMalloc(&turn, sizeof turns);
    cudaMemset(turn, 0, sizeof turns);
    cudaMemcpy(particles, host.data(), n * sizeof *particles, cudaMemcpyHostToDevice);
    cudaMemcpy(before, bytes.data(), bytes.size(), cudaMemcpyHostToDevice);
    for (int round = 0; round < 4; round++)
        push<<<(n + 127) / 128, 128>>>(particles, n, turn);
    shift<<<dim3((width + 127) / 128, rows), 128>>>(after, before, width, width);
    cudaMemcpy(host.data(), particles, n * sizeof *particles, cudaMemcpyDeviceToHost);
    cudaMemcpy(bytes.data(), after, bytes.size(), cudaMemcpyDeviceToHost);
    cudaMemcpy(&turns, turn, sizeof turns, cudaMemcpyDeviceToHost);
    printf("%g %d %d %s\n", host[n - 1].z, turns, bytes[500], cudaGetErrorString(cudaGetLastError()));
}
