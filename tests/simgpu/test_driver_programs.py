"""Unmodified programs on the simulated GPU: a C program and a ctypes program, one by one and together."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simgpu.driver import KERNELS
from tui_probe.simgpu.examples import demo

DEMO = Path(demo.__file__)
HOST = Path(__file__).with_name("host.c")


def run_demo(environment: dict[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(DEMO), *options], env=environment, capture_output=True, text=True)


def test_demo_runs_every_kernel_and_every_result_equals_numpys(environment: dict[str, str]) -> None:
    result = run_demo(environment, "--size", "5000")
    assert (result.stderr, result.returncode) == ("", 0)
    assert result.stdout.split("\n") == [f"{name} ok" for name in demo.EXAMPLES] + [""]


def test_demo_repeats_one_kernel(environment: dict[str, str]) -> None:
    result = run_demo(environment, "--kernel", "saxpy", "--size", "33", "--repeat", "3")
    assert (result.stdout, result.stderr, result.returncode) == ("saxpy ok\n", "", 0)


def test_demo_tells_a_wrong_result_and_fails(environment: dict[str, str], tmp_path: Path) -> None:
    shutil.copy(DEMO, tmp_path)
    (tmp_path / "kernels").mkdir()
    ptx = (KERNELS / "saxpy.ptx").read_text()
    (tmp_path / "kernels" / "saxpy.ptx").write_text(ptx.replace("st.global.f32", "// st.global.f32"))
    command = [sys.executable, str(tmp_path / "demo.py"), "--kernel", "saxpy"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (result.stdout, result.returncode) == ("saxpy WRONG\n", 1)


CALLS_PAST_THE_END = """
import ctypes as c
cu = c.CDLL("libcuda.so.1")
context, memory, data = c.c_void_p(), c.c_uint64(), c.create_string_buffer(2000)
cu.cuInit(0), cu.cuCtxCreate_v2(c.byref(context), 0, 0), cu.cuMemAlloc_v2(c.byref(memory), c.c_size_t(1000))
print(*(cu.cuMemsetD8_v2(memory, 0, c.c_size_t(size)) for size in (1000, 1001)))
print(*(cu.cuMemcpyHtoD_v2(memory, data, c.c_size_t(size)) for size in (1000, 1001)))
"""


@pytest.mark.parametrize(("checked", "refused"), [("0", "0"), ("1", "1")])
def test_calls_past_the_bytes_asked_for_are_refused_if_checked(
    checked: str, refused: str, environment: dict[str, str]
) -> None:
    """The driver rounds allocations up; it accepts such calls without checks."""
    checks = {**environment, "TUI_PROBE_SIM_CHECK": checked}
    command = [sys.executable, "-c", CALLS_PAST_THE_END]
    result = subprocess.run(command, env=checks, capture_output=True, text=True)
    assert result.stdout.split() == ["0", refused, "0", refused]
    for call in ("cuMemset", "cuMemcpy"):
        assert (f"{call}: 1001 bytes at 0x" in result.stderr) is (checked == "1")


def test_demo_says_that_there_is_no_driver(tmp_path: Path, environment: dict[str, str]) -> None:
    broken = tmp_path / "libcuda.so.1"
    broken.write_bytes(b"no library")
    result = run_demo({**environment, "LD_LIBRARY_PATH": str(tmp_path)})
    assert result.returncode == 1
    assert result.stderr.startswith("no CUDA driver: ")


@pytest.fixture(scope="session")
def host(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("host") / "host"
    options = ["-std=c17", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["cc", *options, str(HOST), str(library), "-o", str(program)], check=True)
    return program


def test_c_program_that_is_linked_with_the_driver(host: Path, environment: dict[str, str]) -> None:
    result = subprocess.run([host, KERNELS], env=environment, capture_output=True, text=True)
    assert (result.stdout, result.stderr, result.returncode) == ("saxpy ok\nreduction ok\n", "", 0)


def test_two_programs_at_once_have_a_gpu_each(host: Path, environment: dict[str, str]) -> None:
    programs = [subprocess.Popen([host, KERNELS], env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [program.communicate()[0] for program in programs]
    assert [program.returncode for program in programs] == [0, 0]
    assert outputs == ["saxpy ok\nreduction ok\n"] * 2


def test_another_library_of_the_same_name_does_not_disturb(
    library: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    """As under the hook: a libcuda.so.1 with the same names is preloaded, and this one is opened by its path."""
    decoy = tmp_path / "libcuda.so.1"
    names = (Path(__file__).parents[2] / "hook" / "symbols.txt").read_text().split()
    source = tmp_path / "decoy.c"
    source.write_text("\n".join(f"int {name}(void) {{ return 999; }}" for name in names))
    soname = "-Wl,-soname,libcuda.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", soname, str(source), "-o", str(decoy)], check=True)
    program = tmp_path / "program.py"
    program.write_text(
        "import ctypes, sys\n"
        "found, real = ctypes.CDLL('libcuda.so.1'), ctypes.CDLL(sys.argv[1])\n"
        "context, module, found_address = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()\n"
        "assert found.cuInit(0) == 999\n"
        "assert real.cuInit(0) == 0\n"
        "assert real.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0\n"
        "assert real.cuModuleLoad(ctypes.byref(module), sys.argv[2].encode()) == 0\n"
        "assert real.cuGetProcAddress_v2(b'cuInit', ctypes.byref(found_address), 12000, 0, None) == 0\n"
        "assert ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint)(found_address.value)(0) == 0\n"
        "assert real.cuMemAlloc(0, 0) == 801\n"
        "print('done')\n"
    )
    command = [sys.executable, str(program), str(library), str(KERNELS / "saxpy.ptx")]
    preloaded = {**environment, "LD_PRELOAD": str(decoy), "LD_LIBRARY_PATH": str(tmp_path)}
    result = subprocess.run(command, env=preloaded, capture_output=True, text=True)
    assert (result.stdout, result.stderr, result.returncode) == ("done\n", "", 0)
