// Ten steps of 8 192 bodies under gravity: tiles of bodies in shared memory, bound by FP32 instructions.
#include <cstdio>
#include <vector>

const int TILE = 256;

__global__ void move(float4 *after, const float4 *before, float3 *speeds, int n, float step)
{
    __shared__ float4 tile[TILE];
    int i = blockIdx.x * TILE + threadIdx.x;
    float4 body = before[i];
    float3 force = {0, 0, 0};
    for (int start = 0; start < n; start += TILE) {
        tile[threadIdx.x] = before[start + threadIdx.x];
        __syncthreads();
        for (int k = 0; k < TILE; k++) {
            float x = tile[k].x - body.x, y = tile[k].y - body.y, z = tile[k].z - body.z;
            float inverse = rsqrtf(x * x + y * y + z * z + 0.01f), scale = tile[k].w * inverse * inverse * inverse;
            force.x += x * scale, force.y += y * scale, force.z += z * scale;
        }
        __syncthreads();
    }
    float3 speed = speeds[i];
    speed.x += force.x * step, speed.y += force.y * step, speed.z += force.z * step;
    speeds[i] = speed;
    after[i] = {body.x + speed.x * step, body.y + speed.y * step, body.z + speed.z * step, body.w};
}

int main()
{
    const int n = 8192;
    std::vector<float4> host(n);
    for (int i = 0; i < n; i++)
        host[i] = {i % 32 / 32.0f, i / 32 % 32 / 32.0f, i / 1024 / 8.0f, 1.0f / n};
    float4 *bodies[2];
    float3 *speeds;
    cudaMalloc(&bodies[0], n * sizeof(float4));
    cudaMalloc(&bodies[1], n * sizeof(float4));
    cudaMalloc(&speeds, n * sizeof(float3));
    cudaMemset(speeds, 0, n * sizeof(float3));
    cudaMemcpy(bodies[0], host.data(), n * sizeof(float4), cudaMemcpyHostToDevice);
    for (int step = 0; step < 10; step++)
        move<<<n / TILE, TILE>>>(bodies[(step + 1) % 2], bodies[step % 2], speeds, n, 0.01f);
    cudaMemcpy(host.data(), bodies[0], n * sizeof(float4), cudaMemcpyDeviceToHost);
    printf("%.6g %.6g %s\n", host[0].x, host[n - 1].z, cudaGetErrorString(cudaGetLastError()));
}
