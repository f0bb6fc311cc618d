"""Barriers of a whole grid, and of clusters of blocks where the GPU is one of sm_90; what kernels print and assert."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.simgpu import ptx
from tests.simgpu.driver import HANDLE, U64, Code, Driver, fails
from tests.simgpu.test_executor_device_calls import asserting, printing

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[2]
COMPILED = Path(__file__).with_name("kernels")


def pointers_to(arguments: Sequence[object]) -> object:
    return (HANDLE * len(arguments))(*(ctypes.addressof(argument) for argument in arguments))  # type: ignore[arg-type]


def expected_after_rounds(count: int, block: int) -> list[int]:
    thread = np.arange(count)
    sums = (thread + block) % count + (count - 1 - thread)
    return sums[thread * 7 % count].tolist()


@pytest.mark.parametrize("blocks", [1, 5, 32])
def test_a_grid_that_waits_for_all_of_its_blocks(driver: Driver, blocks: int) -> None:
    function = driver.function(driver.load((COMPILED / "grids.ptx").read_bytes()), "rounds")
    count = blocks * 128
    values, out = (driver.upload(np.zeros(count, np.int32)) for _ in range(2))
    given = [U64(values), U64(out)]
    arguments = pointers_to(given)
    for _ in range(2):  # the barrier is as new each time
        driver.cuLaunchCooperativeKernel(function, blocks, 1, 1, 128, 1, 1, 0, None, arguments)
        assert np.frombuffer(driver.read(out, 4 * count), np.int32).tolist() == expected_after_rounds(count, 128)


RUNTIME = """
.extern .func (.param .b64 result) cudaCGGetIntrinsicHandle(.param .b32 scope);
.extern .func (.param .b32 result) cudaCGSynchronize(.param .b64 handle, .param .b32 flags);
.visible .entry turns(.param .u64 values)
{
    .reg .b32 %r<6>; .reg .b64 %rd<5>; .reg .pred %p;
    ld.param.u64 %rd1, [values];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x; mad.wide.u32 %rd2, %r1, 4, %rd1;
    add.u32 %r3, %r1, 1; rem.u32 %r3, %r3, %r2; mad.wide.u32 %rd3, %r3, 4, %rd1;
    mov.u32 %r4, 0;
again:
    ld.volatile.global.u32 %r5, [%rd3];
    { .param .b32 s; st.param.b32 [s], 1;
      .param .b64 h; call.uni (h), cudaCGGetIntrinsicHandle, (s); ld.param.b64 %rd4, [h]; }
    { .param .b64 h; st.param.b64 [h], %rd4; .param .b32 f; st.param.b32 [f], 0;
      .param .b32 e; call.uni (e), cudaCGSynchronize, (h, f); }
    st.global.u32 [%rd2], %r5;
    { .param .b64 h; st.param.b64 [h], %rd4; .param .b32 f; st.param.b32 [f], 0;
      .param .b32 e; call.uni (e), cudaCGSynchronize, (h, f); }
    add.u32 %r4, %r4, 1; setp.lt.u32 %p, %r4, 3; @%p bra again;
    ret;
}
"""


def test_the_barrier_of_the_device_runtime(driver: Driver) -> None:
    """Each block takes its neighbour's value, three times over: no barrier, no such result."""
    function = driver.function(driver.load(ptx.HEAD + RUNTIME), "turns")
    values = driver.upload(np.arange(20, dtype=np.int32))
    driver.cuLaunchCooperativeKernel(function, 20, 1, 1, 64, 1, 1, 0, None, pointers_to([U64(values)]))
    assert np.frombuffer(driver.read(values, 80), np.int32).tolist() == np.roll(np.arange(20), -3).tolist()


def test_memory_of_the_barrier_is_given_back(driver: Driver) -> None:
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    test_a_grid_that_waits_for_all_of_its_blocks(driver, 1)
    seen = []
    for _ in range(2):
        driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
        seen.append(free.value)
        function = driver.function(driver.load(ptx.HEAD + ptx.NOTHING), "nothing")
        driver.cuLaunchCooperativeKernel(function, 2, 1, 1, 32, 1, 1, 0, None, None)
    assert seen[0] == seen[1]


def test_a_grid_barrier_without_a_cooperative_launch_traps_as_on_a_gpu(
    driver: Driver, capfd: pytest.CaptureFixture[str]
) -> None:
    function = driver.function(driver.load((COMPILED / "grids.ptx").read_bytes()), "rounds")
    address = driver.upload(np.zeros(64, np.int32))
    driver.launch(function, U64(address), U64(address), grid=2)
    with fails(Code.LAUNCH_FAILED):
        driver.cuCtxSynchronize()
    assert "kernel rounds: trap at line" in capfd.readouterr().err


def test_a_failed_assertion_is_error_710_until_the_context_ends(
    driver: Driver, capfd: pytest.CaptureFixture[str]
) -> None:
    driver.launch(driver.function(driver.load(ptx.HEAD + asserting("message")), "k"), block=4)
    for _ in range(2):
        with fails(Code.ASSERT):
            driver.cuCtxSynchronize()
    output = capfd.readouterr()
    assert "a.cu:12: k(): block (0, 0, 0), thread (2, 0, 0): assertion `x > 0` failed" in output.err


def test_printed_output_appears_at_the_end(driver: Driver, capfd: pytest.CaptureFixture[str]) -> None:
    function = driver.function(driver.load(ptx.HEAD + printing("setp.ne.u32 %p1, %r1, 99;")), "show")
    driver.launch(function, U64(driver.upload(np.zeros(2, np.uint32))), block=2)
    assert capfd.readouterr().out == "thread 0: 0.0, word,thread 1: 0.5, word,"


HOPPER = """
import ctypes, sys
import numpy as np
from tests.simgpu.driver import HANDLE, U64, Code, CudaError, Driver

driver = Driver(sys.argv[1])
driver.cuInit(0)
context = driver.create_context()
value = ctypes.c_int()


def ask(number):
    driver.cuDeviceGetAttribute(ctypes.byref(value), number, 0)
    return value.value


def launch(function, grid, cluster, *arguments, shared=0, block=64):
    pointers = (HANDLE * len(arguments))(*(ctypes.addressof(argument) for argument in arguments))
    attribute = (ctypes.c_uint32 * 18)(4, 0, *cluster)
    configuration = (ctypes.c_uint32 * 14)(*grid, block, 1, 1, shared)
    ctypes.cast(ctypes.byref(configuration, 40), ctypes.POINTER(U64))[0] = U64(ctypes.addressof(attribute))
    configuration[12] = 1
    clusters = ctypes.c_int()
    driver.cuOccupancyMaxActiveClusters(ctypes.byref(clusters), function, configuration)
    driver.cuLaunchKernelEx(configuration, function, pointers, None)
    driver.cuCtxSynchronize()
    return clusters.value


def code(call, *arguments):
    try:
        call(*arguments)
    except CudaError as error:
        return error.code
    return 0
"""


def on_hopper(environment: dict[str, str], library: Path, program: str, *arguments: str, arch: str = "sm_90") -> str:
    settings = environment | {
        "TUI_PROBE_SIM_ARCH": arch, "TUI_PROBE_SIM_MEMORY": "64M", "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])
    }  # fmt: skip
    command = [sys.executable, "-c", HOPPER + program, str(library), *arguments]
    result = subprocess.run(command, env=settings, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_a_gpu_of_sm_90_says_so_and_runs_clusters(environment: dict[str, str], library: Path) -> None:
    program = """
print(ask(75), ask(76), ask(81), ask(97), ask(120))
function = driver.function(driver.load(open(sys.argv[2], "rb").read()), "histogram")
values = np.random.default_rng(3).integers(0, 1 << 20, 2000).astype(np.uint32)
data, bins = driver.upload(values), driver.upload(np.zeros(128, np.uint32))
arguments = U64(data), U64(bins), ctypes.c_int(2000), ctypes.c_int(32)
print(launch(function, (8, 1, 1), (4, 1, 1), *arguments, shared=128))
histogram = np.frombuffer(driver.read(bins, 512), np.uint32)
print((histogram == np.bincount(values % 128, minlength=128)).all())
nothing = driver.function(driver.load(open(sys.argv[2], "rb").read()), "numbers")
out = U64(driver.upload(np.zeros(1024, np.int32)))
print([code(launch, nothing, grid, cluster, out) for grid, cluster in (
    ((6, 1, 1), (4, 1, 1)), ((16, 1, 1), (16, 1, 1)), ((2, 2, 1), (2, 2, 0)), ((4, 2, 1), (2, 2, 1)))])
driver.cuFuncSetAttribute(nothing, 14, 1)
print(code(launch, nothing, (16, 1, 1), (16, 1, 1), out))
"""
    messages = on_hopper(environment, library, program, str(COMPILED / "clusters.ptx"))
    # Eight SMs with 32 blocks of 64 threads each hold 64 clusters of four.
    assert messages.split("\n") == ["9 0 233472 232448 1", "64", "True", "[912, 912, 912, 0]", "0", ""]


def test_cluster_attributes_of_a_kernel(environment: dict[str, str], library: Path) -> None:
    source = ".version 8.0\n.target sm_90\n.address_size 64\n"
    source += ".visible .entry pairs()\n.explicitcluster\n.reqnctapercluster 2, 1, 1\n{ ret; }\n"
    program = """
function = driver.function(driver.load(sys.argv[2]), "pairs")
for number in (11, 12, 13, 6):
    driver.cuFuncGetAttribute(ctypes.byref(value), number, function)
    print(value.value)
print(code(lambda: driver.launch(function, grid=4)), code(lambda: driver.launch(function, grid=3)))
size = ctypes.c_int()
driver.cuOccupancyMaxPotentialClusterSize(ctypes.byref(size), function, (ctypes.c_uint32 * 14)(4, 1, 1, 32, 1, 1, 0))
print(size.value)
"""
    assert on_hopper(environment, library, program, source).split() == ["2", "1", "1", "90", "0", "912", "8"]


def test_an_architecture_that_is_not_simulated(environment: dict[str, str], library: Path) -> None:
    settings = environment | {"TUI_PROBE_SIM_ARCH": "sm_70"}
    program = f"import ctypes; print(ctypes.CDLL({str(library)!r}).cuInit(0))"
    result = subprocess.run([sys.executable, "-c", program], env=settings, capture_output=True, text=True)
    assert result.stdout == "1\n"
    assert result.stderr == "tui-probe simulated GPU: TUI_PROBE_SIM_ARCH=sm_70 is neither sm_80 nor sm_90\n"
