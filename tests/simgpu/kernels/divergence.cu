// Threads of a warp that go different ways.

extern "C" __global__ void nested(int *output, const int *input, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    int value = input[i], result = 0;
    if (value & 1) {
        if (value & 2) {
            result = value * 3;
            if (value & 4) result -= input[count - 1 - i];
        } else {
            result = value + 100;
        }
    } else if (value & 8) {
        result = -value;
    } else {
        for (int k = 0; k < (value & 7); k++) result += input[(i + k) % count];
    }
    output[i] = result;
}

// Steps of the Collatz sequence: every thread has its own number of iterations.
extern "C" __global__ void collatz(unsigned *steps, unsigned count) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    unsigned long long value = i + 1;
    unsigned taken = 0;
    while (value != 1) {
        value = value & 1 ? 3 * value + 1 : value / 2;
        taken++;
    }
    steps[i] = taken;
}

// A loop with continue and two ways out.
extern "C" __global__ void search(int *output, const int *input, int length, int wanted) {
    int thread = threadIdx.x + blockIdx.x * blockDim.x, found = -1, skipped = 0;
    for (int k = 0; k < length; k++) {
        int value = input[thread * length + k];
        if (value < 0) {
            skipped++;
            continue;
        }
        if (value == wanted) {
            found = k;
            break;
        }
        if (value > 1000) {
            found = -2;
            break;
        }
    }
    output[2 * thread] = found;
    output[2 * thread + 1] = skipped;
}

extern "C" __global__ void switched(int *output, const int *input, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    int x = input[i], y = 0;
    switch (x & 15) {
        case 0: y = x + 1; break;
        case 1: y = x * x; break;
        case 2: y = x ^ 0x55; break;
        case 3: y = input[(i * 7) % count];
        case 4: y += 4; break;
        case 5: y = x / 3; break;
        case 6: y = x % 5; break;
        case 7: y = -x; break;
        case 8: y = x << 3; break;
        case 9: y = __popc(x); break;
        case 10: return;
        default: y = -1;
    }
    output[i] = y;
}

// The jump table of a device, which nvcc makes for a kernel only in larger cases.
extern "C" __global__ void jump_table(int *output, const int *input) {
    int i = threadIdx.x, x = input[i], y;
    asm volatile(
        "{\n\t"
        "targets: .branchtargets zero, one, two, other;\n\t"
        "brx.idx %1, targets;\n"
        "zero: mov.s32 %0, 100; bra done;\n"
        "one: mov.s32 %0, 200; bra done;\n"
        "two: add.s32 %0, %1, 300; bra done;\n"
        "other: mov.s32 %0, -1;\n"
        "done:\n\t}"
        : "=r"(y)
        : "r"(x));
    output[i] = y;
}
