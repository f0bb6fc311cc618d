"""Tests on a real GPU, skipped, and counted as skipped, where there is none.

Run on a GPU machine with ``pytest -m gpu tests/gpu``.
"""

from __future__ import annotations

import ctypes
import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.conftest import with_probe

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason, here = missing_gpu(), str(HERE)
    for item in items:
        if str(item.path).startswith(here):  # is_relative_to takes a second for all tests
            item.add_marker("gpu")
            if reason:
                item.add_marker(pytest.mark.skip(reason=reason))


def missing_gpu() -> str:
    """Return why no GPU test can run here, or "" where they can."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no NVIDIA driver (libcuda.so.1) on this machine"
    count = ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
        return "no GPU that the driver can use"
    return ""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Share the GPU with the tests of other workers; a test marked ``exclusive`` waits until no other one uses it.

    The lock covers the fixtures, too: ncu fails (LaunchFailed) in a fixture as in a test if another program uses the
    GPU's counters or leaves no memory. Workers of xdist call this for tests of all directories: those that use no GPU
    take no lock, or an exclusive test would wait until no other worker runs any.
    """
    if not item.get_closest_marker("gpu") or item.get_closest_marker("skip"):
        return (yield)
    path = Path(tempfile.gettempdir()) / f"tui-probe-gpu-{os.getuid()}.lock"
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX if item.get_closest_marker("exclusive") else fcntl.LOCK_SH)
        return (yield)


@pytest.fixture(autouse=True)
def gpu_memory_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep JAX from allocating three quarters of the GPU's memory, which other tests need."""
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


@dataclass(frozen=True)
class Outcome:
    """Exit status and the two streams of a finished program."""

    status: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Profiled:
    """A program run under ``tui-probe run``: what it left, and its trace directory."""

    outcome: Outcome
    trace: Path


class Runner:
    """Runs programs unprofiled and under the profiler, in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def unprofiled(self, command: list[str]) -> Outcome:
        result = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, timeout=300)
        return Outcome(result.returncode, result.stdout, result.stderr)

    def profiled(self, command: list[str], *options: str) -> Profiled:
        """Run it with every launch probed, unless the options say otherwise."""
        tool = [sys.executable, "-m", "tui_probe", "run", "--no-report", "--tracedir", str(self.folder / "trace")]
        tool += ["--launches", "all"]
        result = subprocess.run(
            [*tool, *with_probe(options), "--", *command], capture_output=True, text=True, cwd=self.folder, timeout=300
        )
        lines = result.stderr.splitlines(keepends=True)
        ours = [line for line in lines if line.startswith("[info] trace in ")]
        assert ours, result.stderr
        stderr = "".join(line for line in lines if line not in ours)
        return Profiled(Outcome(result.returncode, result.stdout, stderr), Path(ours[0].split()[-1]))


def tool(name: str) -> str:
    """Path of a program of the CUDA toolkit; the test is skipped where there is none."""
    path = shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")
    if path is None:
        pytest.skip(f"no {name} on this machine")
    return path


def nvcc_program(source: Path, program: Path, *options: str) -> str:
    """Build a program as a user would: without options that this environment adds."""
    command = [tool("nvcc"), *options, "-std=c++17", "-cudart=static", "-o", str(program), str(source)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NVCC_")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return str(program)


def cutlass_product(folder: Path, *, has_ptx: bool) -> str:
    """The program ``cutlass_warp_specialised.cu``, with PTX in the debug section of its cubin or without any: as in the
    folder ``TUI_PROBE_PROGRAMS``, or built with the headers of the package nvidia-cutlass, which takes a minute.
    """
    name = "cutlass_with_lines" if has_ptx else "cutlass_warp_specialised"
    given = Path(os.environ.get("TUI_PROBE_PROGRAMS", os.devnull), name)
    if given.is_file():
        return str(given.resolve())
    package = importlib.util.find_spec("cutlass_library")
    if package is None or package.origin is None:
        pytest.skip(f"TUI_PROBE_PROGRAMS names no folder with {name}, and nvidia-cutlass is not installed")
    source = Path(package.origin).parent / "source"
    options = ("-DNDEBUG", "--expt-relaxed-constexpr", "-gencode=arch=compute_90a,code=sm_90a")
    headers = [f"-I{source / path}" for path in ("include", "tools/util/include")]
    lines = ["-lineinfo"] * has_ptx
    return nvcc_program(PROGRAMS / "cutlass_warp_specialised.cu", folder / name, *options, *headers, *lines)


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The test programs, built by the machine's C compiler and nvcc into one folder."""
    nvcc = tool("nvcc")
    folder = tmp_path_factory.mktemp("programs")
    both = "-gencode=arch=compute_90,code=[sm_90,compute_90]"
    jobs = [
        [nvcc, "-ptx", "-arch=sm_80", "-o", "kernels.ptx", "kernels.cu"],
        [nvcc, "-cubin", "-arch=sm_90", "-o", "kernels.cubin", "kernels.cu"],
        [nvcc, "-fatbin", both, "-o", "kernels.fatbin", "kernels.cu"],
        [nvcc, both, "-cudart=static", "-o", "runtime_static", "runtime_api.cu"],
        [nvcc, both, "-std=c++17", "-o", "two_devices", "two_devices.cu"],
        [nvcc, both, "-cudart=shared", "-o", "runtime_shared", "runtime_api.cu"],
        *(["cc", "-O2", "-o", name, f"{name}.c", "-ldl"] for name in ("driver_api", "launch_cost", "zero_fill")),
    ]
    running = [
        subprocess.Popen(
            [part if not part.endswith((".cu", ".c")) else str(PROGRAMS / part) for part in job],
            cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for job in jobs
    ]  # fmt: skip
    for process in running:
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 0, output
    library = Path(nvcc).resolve().parent.parent / "lib64"
    os.environ["LD_LIBRARY_PATH"] = f"{library}:{os.environ.get('LD_LIBRARY_PATH', '')}"
    return folder
