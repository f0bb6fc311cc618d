// Launch bounds of every form.
extern "C" __global__ void __launch_bounds__(256) bounded_threads(float *x) { x[threadIdx.x] *= 2; }
extern "C" __global__ void __launch_bounds__(128, 4) bounded_blocks(float *x) { x[threadIdx.x] *= 2; }
extern "C" __global__ void __maxnreg__(32) bounded_registers(float *x) { x[threadIdx.x] *= 2; }
#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __launch_bounds__(128, 4, 8) bounded_cluster(float *x) { x[threadIdx.x] *= 2; }
extern "C" __global__ void __cluster_dims__(2, 2, 1) fixed_cluster(float *x) { x[threadIdx.x] *= 2; }
extern "C" __global__ void __block_size__((64, 1, 1), (2, 1, 1)) fixed_block(float *x) { x[threadIdx.x] *= 2; }
#endif
extern "C" __global__ void constant_parameters(const __grid_constant__ int4 a, char b, short c, double d, float *x) {
    x[threadIdx.x] = a.x + a.w + b + c + d;
}
