"""Programs of cuda-bindings and cuda.core, each against NumPy."""

from __future__ import annotations

import numpy as np
from cases import case, run_all
from cuda.bindings import driver, nvrtc
from cuda.core import Device, LaunchConfig, Linker, LinkerOptions, Program, ProgramOptions, launch

RNG = np.random.default_rng(0)
DEVICE = Device()
DEVICE.set_current()
STREAM = DEVICE.create_stream()
SAXPY = """
template <typename T> __global__ void saxpy(T a, const T *x, const T *y, T *out, size_t n) {
    for (size_t i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) out[i] = a * x[i] + y[i];
}
"""


def checked(result):
    status, *values = result
    assert not status.value, status
    return values[0] if len(values) == 1 else tuple(values)


def compiled(source, architecture=b"--gpu-architecture=compute_80"):
    program = checked(nvrtc.nvrtcCreateProgram(source.encode(), b"source.cu", 0, None, None))
    options = [architecture, b"--relocatable-device-code=true"]
    checked(nvrtc.nvrtcCompileProgram(program, len(options), options))
    ptx = b" " * checked(nvrtc.nvrtcGetPTXSize(program))
    checked(nvrtc.nvrtcGetPTX(program, ptx))
    return ptx


def uploaded(values):
    address = checked(driver.cuMemAlloc(values.nbytes))
    checked(driver.cuMemcpyHtoD(address, values.ctypes.data, values.nbytes))
    return address


def downloaded(address, like):
    values = np.empty_like(like)
    checked(driver.cuMemcpyDtoH(values.ctypes.data, address, values.nbytes))
    return values


def started(kernel, grid, block, *arguments):
    values, kinds = zip(*arguments)
    checked(driver.cuLaunchKernel(kernel, grid, 1, 1, block, 1, 1, 0, 0, (values, kinds), 0))
    checked(driver.cuCtxSynchronize())


@case
def bindings_compile_load_and_launch():
    source = 'extern "C" __global__ void twice(float *x, int n) { int i = threadIdx.x; if (i < n) x[i] *= 2; }'
    module = checked(driver.cuModuleLoadData(compiled(source)))
    values = RNG.random(100, np.float32)
    held = uploaded(values)
    started(
        checked(driver.cuModuleGetFunction(module, b"twice")), 1, 128, (held, None), (100, np.ctypeslib.ctypes.c_int)
    )
    np.testing.assert_array_equal(downloaded(held, values), values * 2)


@case
def bindings_link_two_images():
    caller = 'extern __device__ int f(int); extern "C" __global__ void g(int *x) { x[threadIdx.x] = f(threadIdx.x); }'
    state = checked(driver.cuLinkCreate(0, [], []))
    for source in (caller, "__device__ int f(int x) { return x * x + 1; }"):
        ptx = compiled(source)
        checked(driver.cuLinkAddData(state, driver.CUjitInputType.CU_JIT_INPUT_PTX, ptx, len(ptx), b"part", 0, [], []))
    image, _ = checked(driver.cuLinkComplete(state))
    module = checked(driver.cuModuleLoadData(image))
    checked(driver.cuLinkDestroy(state))
    held = uploaded(np.zeros(32, np.int32))
    started(checked(driver.cuModuleGetFunction(module, b"g")), 1, 32, (held, None))
    np.testing.assert_array_equal(downloaded(held, np.zeros(32, np.int32)), np.arange(32) ** 2 + 1)


@case
def bindings_choose_the_size_of_a_block():
    module = checked(driver.cuModuleLoadData(compiled('extern "C" __global__ void nothing() {}')))
    kernel = checked(driver.cuModuleGetFunction(module, b"nothing"))
    grid, block = checked(driver.cuOccupancyMaxPotentialBlockSize(kernel, None, 0, 0))
    per_sm = checked(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(kernel, block, 0))
    assert grid == per_sm * DEVICE.properties.multiprocessor_count


def check_saxpy(kind, target, lineinfo):
    name = f"saxpy<{'float' if kind is np.float32 else 'double'}>"
    options = ProgramOptions(std="c++17", arch=f"sm_{DEVICE.arch}", lineinfo=lineinfo)
    kernel = Program(SAXPY, code_type="c++", options=options).compile(target, name_expressions=(name,)).get_kernel(name)
    x, y = RNG.random(1000).astype(kind), RNG.random(1000).astype(kind)
    held = [uploaded(values) for values in (x, y, np.zeros_like(x))]
    addresses = [int(pointer) for pointer in held]
    launch(STREAM, LaunchConfig(grid=4, block=128), kernel, kind(3), *addresses, np.uint64(1000))
    STREAM.sync()
    np.testing.assert_allclose(downloaded(held[2], x), 3 * x + y, rtol=1e-6)


@case
def core_compiles_templates_to_ptx():
    check_saxpy(np.float32, "ptx", None)
    check_saxpy(np.float64, "ptx", None)


@case
def core_loads_cubins_with_line_tables():
    check_saxpy(np.float32, "cubin", True)


@case
def core_links_programs():
    arch = f"sm_{DEVICE.arch}"
    options = ProgramOptions(std="c++17", arch=arch, link_time_optimization=True)
    sources = (
        'extern __device__ float f(float); extern "C" __global__ void g(float *x) { x[threadIdx.x] = f(x[threadIdx.x]); }',
        "__device__ float f(float x) { return x + 2; }",
    )
    parts = [Program(source, code_type="c++", options=options).compile("ltoir") for source in sources]
    to_ptx = LinkerOptions(arch=arch, link_time_optimization=True, ptx=True)
    kernel = Linker(*parts, options=to_ptx).link("ptx").get_kernel("g")
    values = RNG.random(32, np.float32)
    held = uploaded(values)
    launch(STREAM, LaunchConfig(grid=1, block=32), kernel, int(held))
    STREAM.sync()
    np.testing.assert_allclose(downloaded(held, values), values + 2)


@case
def core_allocates_and_copies():
    buffers = [DEVICE.allocate(4096, stream=STREAM) for _ in range(2)]
    values = RNG.integers(0, 255, 4096).astype(np.uint8)
    checked(driver.cuMemcpyHtoD(int(buffers[0].handle), values.ctypes.data, 4096))
    buffers[1].copy_from(buffers[0], stream=STREAM)
    STREAM.sync()
    out = np.zeros_like(values)
    checked(driver.cuMemcpyDtoH(out.ctypes.data, int(buffers[1].handle), 4096))
    np.testing.assert_array_equal(out, values)


run_all()
