// What the images are made of. The comment line gives the compressors something to do.
extern "C" __global__ void zero(float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 0;
}
extern "C" __global__ void zero_strided(float *out, int n, int stride) {
    int i = (blockIdx.x * blockDim.x + threadIdx.x) * stride;
    if (i < n) out[i] = 0;
}
