extern "C" __global__ void saxpy(float *y, const float *x, float a, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) y[i] = a * x[i] + y[i];
}
