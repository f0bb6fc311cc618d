// Two hundred Jacobi steps of a heat equation in double precision, with two streams that wait for each other's events.
#include <cstdio>
#include <utility>
#include <vector>

__global__ void step(double *after, const double *before, int width, int first, int rows)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = first + blockIdx.y;
    if (x == 0 || x == width - 1 || y == 0 || y == rows - 1)
        return;
    int i = y * width + x;
    after[i] = 0.25 * (before[i - 1] + before[i + 1] + before[i - width] + before[i + width]);
}

int main()
{
    const int width = 1024;
    std::vector<double> host(width * width);
    for (int x = 0; x < width; x++)
        host[x] = 100;
    double *grids[2];
    cudaStream_t streams[2];
    cudaEvent_t ends[2];
    for (int k = 0; k < 2; k++) {
        cudaMalloc(&grids[k], host.size() * sizeof(double));
        cudaMemcpy(grids[k], host.data(), host.size() * sizeof(double), cudaMemcpyHostToDevice);
        cudaStreamCreateWithFlags(&streams[k], cudaStreamNonBlocking);
        cudaEventCreateWithFlags(&ends[k], cudaEventDisableTiming);
    }
    cudaDeviceSynchronize();
    for (int round = 0; round < 200; round++) {
        for (int half = 0; half < 2; half++) {
            step<<<dim3(width / 256, width / 2), 256, 0, streams[half]>>>(
                grids[(round + 1) % 2], grids[round % 2], width, half * width / 2, width);
            cudaEventRecord(ends[half], streams[half]);
        }
        cudaStreamWaitEvent(streams[0], ends[1]);
        cudaStreamWaitEvent(streams[1], ends[0]);
    }
    cudaDeviceSynchronize();
    cudaMemcpy(host.data(), grids[0], host.size() * sizeof(double), cudaMemcpyDeviceToHost);
    printf("%.12g %.12g %s\n", host[width + 512], host[8 * width + 512], cudaGetErrorString(cudaGetLastError()));
}
