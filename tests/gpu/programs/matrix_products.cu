// Matrix instructions of several shapes; each thread reads and writes memory of its own.
#define KERNEL(name) extern "C" __global__ void name(char *memory, int count)

__device__ unsigned *own_words(char *memory) {
    return reinterpret_cast<unsigned *>(memory) + (blockIdx.x * blockDim.x + threadIdx.x) * 16;
}

// Products with four words of A, two of B and four of sums, as often as rounds says.
#define PRODUCTS(shape, types, rounds) \
    unsigned *own = own_words(memory), d[4] = {}; \
    for (int round = 0; round < (rounds); round++) \
        asm volatile("mma.sync.aligned." shape ".row.col." types \
                     " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                     : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) \
                     : "r"(own[0] + round), "r"(own[1]), "r"(own[2]), "r"(own[3]), "r"(own[4]), "r"(own[5])); \
    for (int i = 0; i < 4; i++) own[8 + i] = d[i]

#define FLOAT_PRODUCTS(shape, types, rounds) \
    unsigned *own = own_words(memory); \
    float d[4] = {}; \
    for (int round = 0; round < (rounds); round++) \
        asm volatile("mma.sync.aligned." shape ".row.col." types \
                     " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) \
                     : "r"(own[0] + round), "r"(own[1]), "r"(own[2]), "r"(own[3]), "r"(own[4]), "r"(own[5])); \
    for (int i = 0; i < 4; i++) reinterpret_cast<float *>(own)[8 + i] = d[i]

KERNEL(half_products) { FLOAT_PRODUCTS("m16n8k16", "f32.f16.f16.f32", 1); }
KERNEL(half_products_in_a_loop) { FLOAT_PRODUCTS("m16n8k16", "f32.f16.f16.f32", count % 7 + 3); }
KERNEL(half_products_of_some_warps) {
    if (threadIdx.x / 32 % 3 == 1) { FLOAT_PRODUCTS("m16n8k16", "f32.bf16.bf16.f32", count % 5 + 2); }
}
KERNEL(tf32_products) { FLOAT_PRODUCTS("m16n8k8", "f32.tf32.tf32.f32", count % 3 + 1); }
KERNEL(integer_products) { PRODUCTS("m16n8k32", "s32.s8.s8.s32", 2); }
