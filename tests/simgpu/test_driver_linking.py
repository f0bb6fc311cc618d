"""cuLink…: images of PTX become one, and what cannot be linked is an error."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from tests.simgpu import ptx
from tests.simgpu.driver import HANDLE, SIZE, U64, Code, Driver, fails

TWICE = ".func (.param .b32 result) twice(.param .b32 value)"
CALLER = (
    f".extern {TWICE};\n.extern .global .align 4 .u32 added;\n"
    ".visible .entry call_twice(.param .u64 address)\n{\n.reg .b32 %r<4>;\n.reg .b64 %rd<3>;\n"
    "ld.param.u64 %rd1, [address];\nld.global.u32 %r1, [%rd1];\n"
    "{\n.param .b32 value;\nst.param.b32 [value], %r1;\n.param .b32 result;\n"
    "call.uni (result), twice, (value);\nld.param.b32 %r2, [result];\n}\n"
    "ld.global.u32 %r3, [added];\nadd.u32 %r2, %r2, %r3;\nst.global.u32 [%rd1], %r2;\nret;\n}\n"
)
CALLED = (
    ".visible .global .align 4 .u32 added = 5;\n"
    f".visible {TWICE}\n{{\n.reg .b32 %r<3>;\nld.param.b32 %r1, [value];\nadd.u32 %r2, %r1, %r1;\n"
    "st.param.b32 [result], %r2;\nret;\n}\n"
)
PTX, LIBRARY = 1, 4
ERROR_BUFFER, ERROR_BYTES = 5, 6


def create(driver: Driver, buffer: ctypes.Array[ctypes.c_char] | None = None) -> HANDLE:
    """A new linker, which writes errors to ``buffer``."""
    state = HANDLE()
    options = (ctypes.c_int * 2)(ERROR_BUFFER, ERROR_BYTES)
    values = (HANDLE * 2)(ctypes.addressof(buffer) if buffer else None, len(buffer) if buffer else None)
    driver.option_values = values  # type: ignore[attr-defined]  # the driver writes to it
    driver.cuLinkCreate_v2(2 if buffer else 0, options, values, ctypes.byref(state))
    return state


def add(driver: Driver, state: HANDLE, image: bytes, kind: int = PTX) -> None:
    driver.cuLinkAddData_v2(state, kind, image, SIZE(len(image)), b"an image", 0, None, None)


def add_text(driver: Driver, state: HANDLE, text: str) -> None:
    add(driver, state, (ptx.HEAD + text).encode() + b"\0")


def complete(driver: Driver, state: HANDLE) -> bytes:
    image, size = HANDLE(), SIZE()
    driver.cuLinkComplete(state, ctypes.byref(image), ctypes.byref(size))
    assert image.value is not None
    return ctypes.string_at(image.value, size.value)


@pytest.mark.parametrize("order", [(CALLER, CALLED), (CALLED, CALLER)])
def test_a_function_and_a_variable_of_another_image(driver: Driver, order: tuple[str, str]) -> None:
    state = create(driver)
    for text in order:
        add_text(driver, state, text)
    add(driver, state, b"!<arch>\nobjects", LIBRARY)
    function = driver.function(driver.load(complete(driver, state)), "call_twice")
    driver.cuLinkDestroy(state)
    word = driver.allocate(4)
    driver.cuMemsetD32_v2(U64(word), 20, SIZE(1))
    driver.launch(function, U64(word), block=1)
    assert int.from_bytes(driver.read(word, 4), "little") == 45


def test_a_file_is_linked(driver: Driver, tmp_path: Path) -> None:
    path = tmp_path / "nothing.ptx"
    path.write_text(ptx.HEAD + ptx.NOTHING)
    state = create(driver)
    driver.cuLinkAddFile_v2(state, PTX, bytes(path), 0, None, None)
    driver.launch(driver.function(driver.load(complete(driver, state)), "nothing"))
    with fails(Code.FILE_NOT_FOUND):
        driver.cuLinkAddFile_v2(state, PTX, bytes(tmp_path / "none.ptx"), 0, None, None)


def test_one_name_defined_twice(driver: Driver) -> None:
    buffer = ctypes.create_string_buffer(200)
    state = create(driver, buffer)
    add_text(driver, state, ptx.NOTHING)
    add_text(driver, state, ptx.NOTHING)
    with fails(Code.INVALID_PTX):
        complete(driver, state)
    assert buffer.value == b"nothing is defined in two of the linked images"


def test_a_linker_that_is_none(driver: Driver) -> None:
    state = create(driver)
    with fails(Code.INVALID_VALUE):
        complete(driver, state)
    driver.cuLinkDestroy(state)
    with fails(Code.INVALID_HANDLE):
        driver.cuLinkDestroy(state)
    with fails(Code.INVALID_HANDLE):
        add_text(driver, state, ptx.NOTHING)
