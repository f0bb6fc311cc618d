"""Every kind of image that a program loads: PTX text, cubins, fatbins and their wrappers, and files."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simgpu import ptx
from tests.simgpu.driver import HANDLE, U64, Code, Driver, fails
from tests.simgpu.elf import cubin
from tui_probe.errors import ImageError
from tui_probe.simgpu.registers import register_counts

DATA = Path(__file__).parents[1] / "data" / "ptx"


def check_zero(driver: Driver, module: HANDLE) -> None:
    """The kernel ``zero`` of the fatbins in the data folder."""
    address = driver.upload(np.ones(64, np.uint32))
    driver.launch(driver.function(module, "zero"), U64(address), ctypes.c_int(50), grid=2)
    assert driver.read(address, 256) == bytes(200) + np.ones(14, np.uint32).tobytes()


@pytest.mark.parametrize("compression", ["none", "speed", "balance", "size"])
def test_a_fatbin(driver: Driver, compression: str) -> None:
    check_zero(driver, driver.load((DATA / f"image.{compression}.fatbin").read_bytes()))


def test_the_wrapper_that_compilers_put_around_a_fatbin(driver: Driver) -> None:
    image = (DATA / "image.size.fatbin").read_bytes()
    container = ctypes.create_string_buffer(image, len(image))
    wrapper = (U64 * 3)(0x1_466243B1, ctypes.addressof(container), 0)
    module = HANDLE()
    driver.cuModuleLoadFatBinary(ctypes.byref(module), wrapper)
    check_zero(driver, module)


def test_a_cubin_runs_as_its_ptx_and_tells_registers(driver: Driver) -> None:
    image = cubin(ptx.HEAD + ptx.NOTHING + ptx.STORE_TO, {"nothing": 4, "store_to": 11})
    module = driver.load(image)
    registers = ctypes.c_int()
    for name, expected in (("nothing", 4), ("store_to", 11)):
        driver.cuFuncGetAttribute(ctypes.byref(registers), 4, driver.function(module, name))
        assert registers.value == expected
    address = driver.upload(np.zeros(1, np.uint32))
    driver.launch(driver.function(module, "store_to"), U64(address), block=1)
    assert driver.read(address, 4) == b"\7\0\0\0"


def test_a_cubin_for_a_later_gpu(driver: Driver, capfd: pytest.CaptureFixture[str]) -> None:
    with fails(Code.NO_BINARY):
        driver.load((DATA / "triton_add.sm_90a.cubin").read_bytes())
    assert "sm_90" in capfd.readouterr().err


def test_machine_code_only(driver: Driver, capfd: pytest.CaptureFixture[str]) -> None:
    with fails(Code.NO_BINARY):
        driver.load((DATA / "image.no_ptx.cubin").read_bytes())
    errors = capfd.readouterr().err
    assert errors.startswith("tui-probe simulated GPU: no PTX in image: the simulated GPU executes PTX only")
    assert "instead of nvJitLink" in errors


@pytest.mark.parametrize(("target", "hint"), [("sm_86", "; run with --sim-arch sm_90\n"), ("sm_100", "cannot run\n")])
def test_ptx_for_newer_gpu_names_the_option(
    driver: Driver, capfd: pytest.CaptureFixture[str], target: str, hint: str
) -> None:
    with fails(Code.NO_BINARY):
        driver.load((ptx.HEAD + ptx.NOTHING).replace("sm_80", target).encode())
    error = capfd.readouterr().err
    assert error.startswith(f"tui-probe simulated GPU: the image has PTX for {target}, which sm_80 cannot run")
    assert error.endswith(hint)


@pytest.mark.parametrize(
    ("image", "code"),
    [
        (b"\1\2\3\4 no image", Code.INVALID_IMAGE),
        (b"", Code.INVALID_IMAGE),
        (b"hello", Code.NO_BINARY),
        (b"\n \t .version 7.2\n.target sm_80\n.address_size 64\n.visible .entry f() {", Code.INVALID_PTX),
    ],
)
def test_invalid_images(driver: Driver, image: bytes, code: Code) -> None:
    with fails(code):
        driver.load(image)


def test_text_that_begins_with_white_space(driver: Driver) -> None:
    driver.function(driver.load("\n   " + ptx.HEAD + ptx.NOTHING), "nothing")


def test_the_reason_goes_into_the_error_log_that_a_program_gives(driver: Driver) -> None:
    log, module = ctypes.create_string_buffer(200), HANDLE()
    options = (ctypes.c_int * 2)(5, 6)
    values = (HANDLE * 2)(ctypes.addressof(log), 200)
    with fails(Code.INVALID_PTX):
        text = (ptx.HEAD + ".visible .entry f() {").encode()
        driver.cuModuleLoadDataEx(ctypes.byref(module), text, 2, options, values)
    assert log.value
    assert values[1] == len(log.value)


def load_file(driver: Driver, path: Path) -> HANDLE:
    module = HANDLE()
    driver.cuModuleLoad(ctypes.byref(module), bytes(path))
    return module


def test_files(driver: Driver, tmp_path: Path) -> None:
    check_zero(driver, load_file(driver, DATA / "image.none.fatbin"))
    text = tmp_path / "nothing.ptx"
    text.write_text(ptx.HEAD + ptx.NOTHING)
    driver.launch(driver.function(load_file(driver, text), "nothing"))
    with fails(Code.FILE_NOT_FOUND):
        load_file(driver, tmp_path / "none")
    with fails(Code.INVALID_SOURCE):
        load_file(driver, tmp_path)


def test_files_that_are_cut_off(driver: Driver, tmp_path: Path) -> None:
    """At every length the answer is an error, and nothing is read past the end."""
    for image in (cubin(ptx.HEAD + ptx.NOTHING, {"nothing": 4}), (DATA / "image.none.fatbin").read_bytes()):
        for length in range(0, len(image) - 1, 97):
            path = tmp_path / "cut"
            path.write_bytes(image[:length])
            with fails(Code.INVALID_IMAGE):
                load_file(driver, path)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("attn_fwd.sm_90a.cubin", {"attn_fwd": 114}),
        ("triton_add.sm_90a.cubin", {"add": 16}),
        ("image.no_ptx.cubin", {"zero": 8, "zero_strided": 8}),
        ("image.none.fatbin", {}),
    ],
)
def test_register_counts_are_those_of_cuobjdump(name: str, expected: dict[str, int]) -> None:
    assert register_counts((DATA / name).read_bytes()) == expected


@settings(deadline=None)
@given(st.data())
def test_register_counts_of_a_damaged_cubin(data: st.DataObject) -> None:
    image = bytearray(cubin(ptx.HEAD + ptx.NOTHING, {"nothing": 4, "more": 5}))
    for _ in range(data.draw(st.integers(1, 8))):
        image[data.draw(st.integers(4, len(image) - 1))] = data.draw(st.integers(0, 255))
    try:
        counts = register_counts(bytes(image[: data.draw(st.integers(4, len(image)))]))
    except ImageError:
        return
    assert all(isinstance(name, str) and 0 <= count < 2**32 for name, count in counts.items())


@pytest.mark.parametrize("version", ["0.9", "6.9", "9.6", "10.0", "99.0"])
def test_unknown_ptx_version_is_refused(driver: Driver, version: str) -> None:
    with fails(Code.UNSUPPORTED_PTX_VERSION):
        driver.load(f".version {version}\n.target sm_80\n.address_size 64\n.entry k() {{ ret; }}".encode())
