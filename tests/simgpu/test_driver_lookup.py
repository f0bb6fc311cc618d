"""Exports of the library, and results of cuGetProcAddress by name, version and kind of default stream."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.simgpu.driver import HANDLE, Code, Driver, fails

HOOK = Path(__file__).parents[2] / "hook"
SYMBOLS = set((HOOK / "symbols.txt").read_text().split())
ENTRIES = re.findall(
    r"^ENTRY\((\w+), (\d+), (\w+), (\w+)\)$", (HOOK / "simgpu" / "entry" / "entry_points.def").read_text(), re.MULTILINE
)
LEGACY, PER_THREAD = 1, 2
FOUND, NOT_FOUND, VERSION_NOT_SUFFICIENT = 0, 1, 2


def look_up(driver: Driver, name: str, version: int, flags: int = 0) -> tuple[int | None, int]:
    address, status = HANDLE(), ctypes.c_int(-1)
    driver.cuGetProcAddress_v2(
        name.encode(), ctypes.byref(address), version, ctypes.c_uint64(flags), ctypes.byref(status)
    )
    return address.value, status.value


def exported(driver: Driver, name: str) -> int | None:
    return ctypes.cast(getattr(driver.library, name), HANDLE).value


PRIVATE = {"simgpu_counted_registers"}
"""For the hook, which asks only the simulated driver."""


def test_exactly_the_names_of_the_real_driver_are_exported(library: Path) -> None:
    listing = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True)
    assert {line.split()[-1] for line in listing.stdout.splitlines()} == SYMBOLS | PRIVATE


def test_simulated_driver_is_called_libcuda(library: Path) -> None:
    listing = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    assert "Library soname: [libcuda.so.1]" in listing
    assert "SYMBOLIC" in listing


def test_every_form_of_every_name(loaded_driver: Driver) -> None:
    assert len(ENTRIES) > 500
    for name, version, symbol, per_thread in ENTRIES:
        assert look_up(loaded_driver, name, int(version)) == (exported(loaded_driver, symbol), FOUND), name
        assert look_up(loaded_driver, name, int(version), LEGACY)[0] == exported(loaded_driver, symbol), name
        assert look_up(loaded_driver, name, int(version), PER_THREAD)[0] == exported(loaded_driver, per_thread), name


@pytest.mark.parametrize(
    ("version", "symbol"),
    [(2000, "cuCtxCreate"), (11030, "cuCtxCreate_v2"), (11040, "cuCtxCreate_v3"), (13000, "cuCtxCreate_v4")],
)
def test_the_newest_form_that_the_caller_knows(loaded_driver: Driver, version: int, symbol: str) -> None:
    assert look_up(loaded_driver, "cuCtxCreate", version) == (exported(loaded_driver, symbol), FOUND)


def test_missing_entries(loaded_driver: Driver) -> None:
    assert look_up(loaded_driver, "cuNoSuchFunction", 12000) == (None, NOT_FOUND)
    assert look_up(loaded_driver, "cuMemAlloc_v2", 12000) == (None, NOT_FOUND)
    assert look_up(loaded_driver, "cuLaunchKernelEx", 11000) == (None, VERSION_NOT_SUFFICIENT)
    with fails(Code.INVALID_VALUE):
        look_up(loaded_driver, "cuInit", 99000)
    address = HANDLE()
    with fails(Code.NOT_FOUND):
        loaded_driver.cuGetProcAddress(b"cuNoSuchFunction", ctypes.byref(address), 12000, ctypes.c_uint64(0))


def test_functions_that_are_not_simulated_say_so(loaded_driver: Driver) -> None:
    for name in ("cuGraphAddBatchMemOpNode", "cuGraphicsMapResources", "cuArrayCreate_v2", "cuMemAlloc"):
        with fails(Code.NOT_SUPPORTED):
            getattr(loaded_driver, name)()


@pytest.mark.parametrize(
    ("name", "way_out"),
    [
        (
            "cuTensorMapEncodeIm2col",
            "tensor maps for im2col are not simulated, only tensor maps for tiles. Encode with",
        ),
        (
            "cuTexObjectCreate",
            "the simulated GPU has no textures and surfaces. Have kernels read the data through a pointer,",
        ),
    ],
)
def test_unsupported_call_names_the_workaround(
    loaded_driver: Driver, capfd: pytest.CaptureFixture[str], name: str, way_out: str
) -> None:
    for _ in range(2):
        with fails(Code.NOT_SUPPORTED):
            getattr(loaded_driver, name)()
    errors = capfd.readouterr().err
    assert errors.count(f"tui-probe simulated GPU: {name}: {way_out}") == 1


def test_there_are_no_private_tables(loaded_driver: Driver, capfd: pytest.CaptureFixture[str]) -> None:
    table = HANDLE()
    with fails(Code.NOT_FOUND):
        loaded_driver.cuGetExportTable(ctypes.byref(table), bytes(16))
    assert capfd.readouterr().err == ""


def test_runtime_table_is_missing_and_the_workaround_is_reported(
    loaded_driver: Driver, capfd: pytest.CaptureFixture[str]
) -> None:
    table = HANDLE()
    runtime = bytes.fromhex("6bd5fb6c5bf4e74a8987d93912fd9df9")
    for _ in range(2):
        with fails(Code.NOT_FOUND):
            loaded_driver.cuGetExportTable(ctypes.byref(table), runtime)
    errors = capfd.readouterr().err
    assert errors.count("this program uses the CUDA runtime (cudart)") == 1
    assert "an NVIDIA GPU; or compile its kernels with nvcc -ptx" in errors


@pytest.mark.skipif(find_spec("nvidia") is None, reason="no CUDA runtime: install nvidia-cuda-runtime")
def test_cuda_runtime_program_gets_the_workaround(environment: dict[str, str]) -> None:
    program = """
import ctypes, glob, nvidia
(path,) = (found for folder in nvidia.__path__ for found in glob.glob(folder + "/*/lib/libcudart.so.*"))
print(ctypes.CDLL(path).cudaFree(None))
"""
    result = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert result.stdout == "500\n"
    assert result.stderr.startswith("tui-probe simulated GPU: this program uses the CUDA runtime (cudart)")


def test_errors_have_names_and_texts(loaded_driver: Driver) -> None:
    text = ctypes.c_char_p()
    loaded_driver.cuGetErrorName(700, ctypes.byref(text))
    assert text.value == b"CUDA_ERROR_ILLEGAL_ADDRESS"
    loaded_driver.cuGetErrorString(700, ctypes.byref(text))
    assert text.value == b"an illegal memory access was encountered"
    with fails(Code.INVALID_VALUE):
        loaded_driver.cuGetErrorName(12345, ctypes.byref(text))
    assert text.value is None
