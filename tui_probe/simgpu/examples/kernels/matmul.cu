// C = A B for square matrices, one tile of C per block. The size need not be a multiple of the tile.
constexpr int TILE = 16;

extern "C" __global__ void matmul(float *c, const float *a, const float *b, int size) {
    __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int start = 0; start < size; start += TILE) {
        int k = start + threadIdx.x, l = start + threadIdx.y;
        tile_a[threadIdx.y][threadIdx.x] = row < size && k < size ? a[row * size + k] : 0;
        tile_b[threadIdx.y][threadIdx.x] = l < size && column < size ? b[l * size + column] : 0;
        __syncthreads();
        for (int i = 0; i < TILE; i++) sum += tile_a[threadIdx.y][i] * tile_b[i][threadIdx.x];
        __syncthreads();
    }
    if (row < size && column < size) c[row * size + column] = sum;
}
