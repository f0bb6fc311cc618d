// A captured graph of 60 kernels, replayed 5 000 times.
#include <cstdio>

__global__ void add(float *values, int n, float by)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        values[i] = values[i] * 0.5f + by;
}

int main()
{
    const int n = 1 << 18;
    float *values, host[2];
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    cudaMalloc(&values, n * sizeof *values);
    cudaMemset(values, 0, n * sizeof *values);
    cudaStreamCreate(&stream);
    add<<<n / 256, 256, 0, stream>>>(values, n, 1.0f);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    for (int i = 0; i < 60; i++)
        add<<<n / 256, 256, 0, stream>>>(values, n, i);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&executable, graph, 0);
    for (int round = 0; round < 5000; round++)
        cudaGraphLaunch(executable, stream);
    cudaMemcpyAsync(host, values, sizeof host, cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    printf("%.6g %.6g %s\n", host[0], host[1], cudaGetErrorString(cudaGetLastError()));
}
