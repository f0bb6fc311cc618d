"""Kernels compiled as programs do at run time. `python nvrtc_kernels.py LIBNVRTC` writes their PTX, without a GPU."""

import ctypes
import sys
from pathlib import Path

SOURCE = rb"""
template <typename T> struct Pair { T first, second; };
__constant__ float weights[9];
__device__ unsigned long long visits;

template <typename T, int N> __global__ void scale(T *out, const T *__restrict__ in, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = in[i] * T(N);
}

extern "C" __global__ void stencil(float *out, const float *in, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 9; ++k) sum += weights[k] * in[(y + k / 3 - 1) * width + x + k % 3 - 1];
    out[y * width + x] = sum;
}

extern "C" __global__ void __launch_bounds__(256, 2) block_sum(double *out, const Pair<double> *in, int n) {
    __shared__ double parts[8];
    double sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += in[i].first * in[i].second;
    for (int offset = 16; offset; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < 8; ++i) sum += parts[i];
        atomicAdd(out, sum);
        atomicAdd(&visits, 1ull);
    }
}

extern "C" __global__ void no_parameters() { if (threadIdx.x == 0) atomicMax(&visits, clock64()); }
"""
TEMPLATES = [b"scale<float, 3>", b"scale<short, -1>"]


def compile_for(nvrtc: ctypes.CDLL, arch: str, *options: str) -> str:
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), SOURCE, b"kernels.cu", 0, None, None))
    for name in TEMPLATES:
        check(nvrtc.nvrtcAddNameExpression(program, name))
    given = [f"-arch={arch}".encode(), b"-default-device", *(option.encode() for option in options)]
    check(nvrtc.nvrtcCompileProgram(program, len(given), (ctypes.c_char_p * len(given))(*given)))
    check(nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size)))
    text = ctypes.create_string_buffer(size.value)
    check(nvrtc.nvrtcGetPTX(program, text))
    return text.value.decode()


def check(status: int) -> None:
    if status:
        raise SystemExit(f"NVRTC failed with status {status}")


def main() -> None:
    nvrtc = ctypes.CDLL(sys.argv[1])
    for arch, options in (("compute_80", ()), ("compute_90", ("-lineinfo", "-G"))):
        text = compile_for(nvrtc, arch, *options)
        text = text.replace(f"{Path.cwd()}/", "")  # debug information names the folder
        lines = [
            line for line in text.splitlines() if not line.startswith(("// Compiler Build", "// Cuda compilation"))
        ]
        debug = ".debug" if "-G" in options else ""
        Path(f"nvrtc{debug}.{arch.replace('compute', 'sm')}.ptx").write_text("\n".join(lines) + "\n")


main()
