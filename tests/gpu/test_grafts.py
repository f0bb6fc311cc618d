"""Probes in machine code do on a real GPU what probes in PTX do, and the program computes the same."""

from __future__ import annotations

import subprocess
from pathlib import Path
from statistics import median

import pytest

from tui_probe.cuda_driver import DRIVER_LIBRARY
from tui_probe.engine.image_kernels import find_cubin
from tui_probe.engine.trial.graft_trial import CudaContext
from tui_probe.probes.block_sched.analysis import BlockSchedule, analyse
from tui_probe.trace.follow import open_trace
from tui_probe.trace.results import read_result

from .conftest import PROGRAMS, Runner, tool

PROGRAM_NAMES = ("tiled_matmul", "memory_patterns", "runtime_api")
LONG_CYCLES = 20_000
"""Shortest kernel whose launches differ less from each other than the two modes do."""


@pytest.fixture(scope="module")
def both_ways(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    """Each program twice: with PTX inside, and with machine code only."""
    nvcc = tool("nvcc")
    folder = tmp_path_factory.mktemp("ways")
    jobs = []
    for name in PROGRAM_NAMES:
        for way, code in {"ptx": "compute_90", "graft": "sm_90"}.items():
            command = [nvcc, f"-gencode=arch=compute_90,code={code}", "-cudart=static", "-o", f"{name}-{way}"]
            jobs.append(subprocess.Popen([*command, str(PROGRAMS / f"{name}.cu")], cwd=folder))
    assert all(job.wait(300) == 0 for job in jobs)
    return {name: (folder / f"{name}-ptx", folder / f"{name}-graft") for name in PROGRAM_NAMES}


def schedules_of(trace: Path, way: str) -> dict[str, list[BlockSchedule]]:
    """The schedules of each kernel's launches, in their order; all kernels must have been probed in this way."""
    schedules = {}
    for kernel in open_trace(trace).kernels:
        print(f"GPU-GRAFT\t{kernel.name}\t{kernel.status}\t{kernel.mode}\t{kernel.registers_pruned}\t"
              f"{kernel.registers_probed}\t{kernel.reason}")  # fmt: skip
        assert (kernel.status, kernel.mode) == ("probed", way), f"{kernel.name}: {kernel.reason}"
        schedules[kernel.name] = [analyse(read_result(path)) for path in kernel.results]
    return schedules


@pytest.mark.parametrize("name", PROGRAM_NAMES)
@pytest.mark.exclusive
def test_both_ways_see_the_same_blocks(name: str, both_ways: dict[str, tuple[Path, Path]], runner: Runner) -> None:
    with_ptx, without = both_ways[name]
    unprofiled = runner.unprofiled([str(with_ptx)])
    seen = {}
    for way, program in {"ptx": with_ptx, "graft": without}.items():
        profiled = runner.profiled([str(program)], "-p", "block_sched", "--machine-code", "all")
        assert (profiled.outcome.status, profiled.outcome.stdout) == (unprofiled.status, unprofiled.stdout)
        seen[way] = schedules_of(profiled.trace, way)
    assert seen["ptx"].keys() == seen["graft"].keys()
    for kernel, schedules in seen["ptx"].items():
        others = seen["graft"][kernel]
        assert [schedule.blocks for schedule in schedules] == [schedule.blocks for schedule in others], kernel
        by_ptx, by_sass = (
            median(schedule.running + schedule.scheduling for schedule in side) for side in (schedules, others)
        )
        print(f"GPU-FIGURE {kernel}: {by_ptx:.0f} cycles by PTX, {by_sass:.0f} by machine code")
        if by_ptx >= LONG_CYCLES:
            assert abs(by_sass - by_ptx) <= 0.02 * by_ptx, kernel


SPECIFIC = """
extern "C" __global__ void specific(unsigned long long *answer) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    *answer = 2;
#else
    *answer = 1;
#endif
}
"""


@pytest.mark.parametrize("order", [("90", "90a"), ("90a", "90")], ids="-".join)
def test_the_code_that_the_driver_takes_is_the_one_that_is_grafted(order: tuple[str, str], tmp_path: Path) -> None:
    """Of an image with code for 9.0 and for later devices next to code for 9.0 only."""
    nvcc = tool("nvcc")
    (tmp_path / "specific.cu").write_text(SPECIFIC)
    codes = [f"-gencode=arch=compute_{arch},code=sm_{arch}" for arch in order]
    subprocess.run([nvcc, "-fatbin", *codes, "-o", "specific.fatbin", "specific.cu"], check=True, cwd=tmp_path)
    image, cuda = (tmp_path / "specific.fatbin").read_bytes(), CudaContext(DRIVER_LIBRARY, 90)

    def found(loaded: bytes) -> int:
        place = cuda.allocate_zeros(8)
        cuda.launch(cuda.load(loaded).function("specific"), 1, 1, [place])
        return int.from_bytes(cuda.read(place, 8), "little")

    print(f"GPU-FATBIN\t{order}\tdriver {found(image)}\tours {found(find_cubin(image, 'specific', 90)[0].image)}")
    assert found(image) == found(find_cubin(image, "specific", 90)[0].image)
