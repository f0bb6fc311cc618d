// Variables of every state space, initialised and not, some that point to others; templates.
__device__ int plain;
__device__ int initialised = -7;
__device__ float table[8] = {1, 2.5f, -3, 4, 5, 6, 7, 8};
__device__ int *pointer = &initialised;
__device__ const char *words[] = {"alpha", "beta \"quoted\"", "gamma"};
__device__ double wide_value = 1.0 / 3.0;
__constant__ float coefficients[16];
__constant__ int offsets[4] = {1, -2, 3, -4};
__managed__ int managed_counter = 5;
__device__ __align__(16) unsigned char raw_bytes[24] = {0xff, 1, 2};
struct Node { Node *next; int value; };
__device__ Node last = {nullptr, 3};
__device__ Node first = {&last, 1};

extern __shared__ float dynamic_tile[];

extern "C" __global__ void uses_pointers(int *out) {
    int sum = plain + *pointer;
    for (Node *n = &first; n; n = n->next) sum += n->value;
    out[threadIdx.x] = sum + words[threadIdx.x % 3][0];
}

extern "C" __global__ void uses_constants(float *out) {
    out[threadIdx.x] = coefficients[threadIdx.x & 15] + offsets[threadIdx.x & 3] + table[threadIdx.x & 7];
}

extern "C" __global__ void uses_shared(float *out, int n) {
    __shared__ float tile[4][33];
    tile[threadIdx.y][threadIdx.x] = dynamic_tile[threadIdx.x] = out[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x & 3][n] + dynamic_tile[n];
}

extern "C" __global__ void uses_local(int *out, int n) {
    int stack[64];
    for (int i = 0; i < 64; ++i) stack[i] = i * n;
    for (int i = 0; i < n; ++i) stack[out[i] & 63] += i;
    out[threadIdx.x] = stack[out[n] & 63];
}

extern "C" __global__ void uses_static(int *out) {
    static int calls = 10;
    out[0] = atomicAdd(&calls, 1) + managed_counter + raw_bytes[threadIdx.x] + static_cast<int>(wide_value);
}

template <typename T, int N> __device__ T cache[N];
template <typename T, int N> __global__ void fill(T *out) { out[threadIdx.x] = cache<T, N>[threadIdx.x % N]; }
template __global__ void fill<float, 4>(float *);
template __global__ void fill<float, 40>(float *);
template __global__ void fill<short, 4>(short *);
