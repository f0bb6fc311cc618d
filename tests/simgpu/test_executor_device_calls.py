"""``printf`` and ``assert`` of kernels, and formats byte by byte."""

from __future__ import annotations

import struct
from itertools import pairwise

import numpy as np
import pytest

from tests.simgpu.device import BASE, Device
from tui_probe.errors import SimulationError
from tui_probe.ptx.parser import parse
from tui_probe.simgpu.executor import HEAP_BYTES, KernelAssertionError, MemoryFaultError, TrapError, compile_kernel
from tui_probe.simgpu.executor.device_calls import argument_count, format_text
from tui_probe.simgpu.executor.scalars import U64
from tui_probe.simgpu.modules import with_runtime

STRINGS = {7: b"text", 8: b""}
HEAD = ".version 7.8\n.target sm_80\n.address_size 64\n"
PRINTF = ".extern .func (.param .b32 result) vprintf (.param .b64 format, .param .b64 arguments);\n"
ASSERT = (
    ".extern .func __assertfail (.param .b64 message, .param .b64 file, .param .b32 line, .param .b64 function, "
    ".param .b64 size);\n"
)


def text(name: str, content: str) -> str:
    """A string in device memory."""
    held = content.encode() + b"\0"
    return f".global .align 1 .b8 {name}[{len(held)}] = {{{', '.join(map(str, held))}}};\n"


@pytest.mark.parametrize(
    ("format_", "code", "arguments", "expected"),
    [
        (b"none 100%%\n", "", (), b"none 100%\n"),
        (b"%d|%5d|%-5d|%+d|%05d", "iiiii", (-3, 42, 42, 42, 42), b"-3|   42|42   |+42|00042"),
        (b"%u %x %X %#o", "IIII", (2**32 - 1, 255, 255, 8), b"4294967295 ff FF 010"),
        (b"%lld %llu %zu %ld", "qQQq", (-1, 2**64 - 1, 5, 6), b"-1 18446744073709551615 5 6"),
        (b"%hhd %hu", "ii", (255, 65537), b"-1 1"),
        (b"%d %f %d", "i4xdi", (1, 2.5, 3), b"1 2.500000 3"),
        (b"%8.3f|%-8.1e|%g|%.0f", "dddd", (3.14159, 12345.0, 1e-10, 0.5), b"   3.142|1.2e+04 |1e-10|0"),
        (b"%s|%6s|%s", "QQQ", (7, 7, 8), b"text|  text|"),
        (b"%c%c %p", "ii" + "Q", (97, 98, 4096), b"ab 0x1000"),
        (b"%*d|%.*f", "ii" + "i4xd", (5, 1, 2, 1.0), b"    1|1.00"),
        (b"%k %d", "i", (1,), b"%k 1"),
    ],
)
def test_formats(format_: bytes, code: str, arguments: tuple[float, ...], expected: bytes) -> None:
    packed = struct.pack(f"<{code}", *arguments)
    given = format_text(format_, lambda offset, size: packed[offset : offset + size], STRINGS.__getitem__)
    assert given == expected
    assert argument_count(format_) == len(arguments) - format_.count(b"*")


def launch(source: str, threads: int, *arguments: np.ndarray) -> bytes:
    tree = parse(HEAD + source)
    device = Device()
    device.load_variables(tree)
    return device.launch(compile_kernel(tree, tree.entries()[0].name), *arguments, block=(threads,)).printf_output


def printing(body: str) -> str:
    """A kernel that prints its thread and a half of it where ``%p1`` holds; ``body`` sets that."""
    return (
        f"{PRINTF}{text('format', 'thread %d: %.1f, %s')}{text('word', 'word,')}"
        ".visible .entry show(.param .u64 output)\n{\n.local .align 8 .b8 stack[24];\n.reg .pred %p<2>;\n"
        ".reg .b32 %r<4>;\n.reg .b64 %rd<6>;\n.reg .f64 %fd<3>;\n"
        f"mov.u32 %r1, %tid.x;\n{body}\ncvt.rn.f64.u32 %fd1, %r1;\nmul.f64 %fd2, %fd1, 0d3FE0000000000000;\n"
        "mov.u64 %rd1, stack;\ncvta.local.u64 %rd2, %rd1;\nst.local.u32 [%rd1], %r1;\nst.local.f64 [%rd1+8], %fd2;\n"
        "mov.u64 %rd3, word;\ncvta.global.u64 %rd3, %rd3;\nst.local.u64 [%rd1+16], %rd3;\n"
        "mov.u64 %rd4, format;\ncvta.global.u64 %rd4, %rd4;\nmov.u32 %r2, 9;\n"
        "{\n.param .b64 a;\nst.param.b64 [a], %rd4;\n.param .b64 b;\nst.param.b64 [b], %rd2;\n.param .b32 c;\n"
        "@%p1 call.uni (c), vprintf, (a, b);\n@%p1 ld.param.b32 %r2, [c];\n}\n"
        "ld.param.u64 %rd5, [output];\nmad.wide.u32 %rd5, %r1, 4, %rd5;\nst.global.u32 [%rd5], %r2;\nret;\n}\n"
    )


def test_each_thread_prints_its_line() -> None:
    output = np.zeros(3, np.uint32)
    printed = launch(printing("setp.ne.u32 %p1, %r1, 99;"), 3, output)
    assert printed == b"thread 0: 0.0, word,thread 1: 0.5, word,thread 2: 1.0, word,"
    assert output.tolist() == [3, 3, 3]


def test_only_threads_print_whose_guard_holds() -> None:
    output = np.zeros(4, np.uint32)
    printed = launch(printing("and.b32 %r3, %r1, 1;\nsetp.eq.u32 %p1, %r3, 1;"), 4, output)
    assert printed == b"thread 1: 0.5, word,thread 3: 1.5, word,"
    assert output.tolist() == [9, 3, 9, 3]


def asserting(address: str) -> str:
    return (
        f"{PRINTF}{ASSERT}{text('message', 'x > 0')}{text('file', 'a.cu')}{text('function', 'k()')}"
        ".visible .entry k()\n{\n"
        ".reg .b64 %rd<5>;\n.reg .b32 %r<3>;\n.reg .pred %p<2>;\n"
        f"mov.u64 %rd1, {address};\nmov.u64 %rd2, file;\nmov.u64 %rd3, function;\nmov.u32 %r1, 12;\nmov.u64 %rd4, 1;\n"
        "{\n.param .b64 f;\nst.param.b64 [f], %rd2;\n.param .b64 l;\nst.param.b64 [l], %rd1;\n.param .b32 n;\n"
        "call.uni (n), vprintf, (f, l);\n}\n"
        "mov.u32 %r2, %tid.x;\nsetp.eq.u32 %p1, %r2, 2;\n@!%p1 bra DONE;\n"
        "{\n.param .b64 a;\nst.param.b64 [a], %rd1;\n.param .b64 b;\nst.param.b64 [b], %rd2;\n.param .b32 c;\n"
        "st.param.b32 [c], %r1;\n.param .b64 d;\nst.param.b64 [d], %rd3;\n.param .b64 e;\nst.param.b64 [e], %rd4;\n"
        "call.uni __assertfail, (a, b, c, d, e);\n}\nDONE:\nret;\n}\n"
    )


def test_a_failed_assertion_names_the_place_the_thread_and_the_condition() -> None:
    with pytest.raises(KernelAssertionError) as caught:
        launch(asserting("message"), 4)
    assert str(caught.value) == "a.cu:12: k(): block (0, 0, 0), thread (2, 0, 0): assertion `x > 0` failed"
    assert caught.value.printf_output == b"a.cu" * 4


def test_an_address_that_is_none() -> None:
    with pytest.raises(MemoryFaultError, match="illegal address"):
        launch(asserting("0xFFFF00000000"), 4)


def test_missing_function_is_reported() -> None:
    source = ".extern .func unknown ();\n.visible .entry k()\n{\ncall.uni unknown;\nret;\n}\n"
    with pytest.raises(SimulationError, match=r"unsupported instruction call\.uni unknown at line 7"):
        launch(source, 1)


ALLOCATION = (
    ".extern .func (.param .b64 result) malloc (.param .b64 size);\n.extern .func free (.param .b64 address);\n"
    ".visible .entry allocates(.param .u64 addresses, .param .u64 size, .param .u32 kept)\n{\n.reg .pred %p;\n"
    ".reg .b32 %r<3>;\n.reg .b64 %rd<5>;\nmov.u32 %r1, %tid.x;\nld.param.u64 %rd1, [addresses];\n"
    "mad.wide.u32 %rd1, %r1, 8, %rd1;\nld.param.u64 %rd2, [size];\n"
    "{\n.param .b64 a;\nst.param.b64 [a], %rd2;\n.param .b64 b;\ncall.uni (b), malloc, (a);\n"
    "ld.param.b64 %rd3, [b];\n}\nst.global.u64 [%rd1], %rd3;\nld.param.u32 %r2, [kept];\n"
    "setp.lt.u32 %p, %r1, %r2;\n@%p bra end;\n{\n.param .b64 a;\nst.param.b64 [a], %rd3;\ncall.uni free, (a);\n}\n"
    "end:\nret;\n}\n"
)


class Allocating:
    """A module whose kernel's threads call malloc, and free what they got but for the first ones."""

    def __init__(self) -> None:
        tree = with_runtime(parse(HEAD + ALLOCATION))
        self._device = Device(HEAP_BYTES + (1 << 20))
        self._device.load_variables(tree)
        self._kernel = compile_kernel(tree, "allocates")

    def overwrite(self, address: int, words: list[int]) -> None:
        """Store words at an address."""
        start = (address - BASE) // 8
        self._device.memory.view(U64)[start : start + len(words)] = words

    def addresses(self, size: int, threads: int, kept: int = 0) -> list[int]:
        addresses = np.zeros(threads, np.uint64)
        self._device.launch(self._kernel, addresses, np.uint64(size), np.uint32(kept), block=(threads,))
        return sorted(int(address) for address in addresses)


def test_pieces_of_the_heap_do_not_overlap() -> None:
    addresses = Allocating().addresses(100, 50)
    assert all(address and address % 16 == 0 for address in addresses)
    assert all(after - before >= 100 for before, after in pairwise(addresses))


def test_freed_memory_is_reused_and_the_rest_lasts() -> None:
    module = Allocating()
    addresses = module.addresses(1000, 8, kept=3)[:3]
    assert not set(addresses) & set(module.addresses(1000, 8))
    assert module.addresses(HEAP_BYTES // 2, 1)[0], "pieces that were freed are joined"


def test_a_full_heap_gives_null() -> None:
    addresses = Allocating().addresses(HEAP_BYTES // 4, 5)
    assert addresses.count(0) == 2
    assert len(set(addresses)) == 4


def test_foreign_pointer_cannot_be_freed() -> None:
    tree = with_runtime(parse(HEAD + ALLOCATION.replace("st.param.b64 [a], %rd3", "st.param.b64 [a], %rd2")))
    device = Device(HEAP_BYTES + (1 << 20))
    device.load_variables(tree)
    with pytest.raises(TrapError, match="malloc of this module did not return"):
        device.launch(
            compile_kernel(tree, "allocates"), np.zeros(1, np.uint64), np.uint64(64), np.uint32(0), block=(1,)
        )


@pytest.mark.parametrize("size", [0, 24, HEAP_BYTES])
def test_overwritten_header_of_the_heap_ends_the_kernel(size: int) -> None:
    module = Allocating()
    address = module.addresses(64, 2, kept=2)[1]
    module.overwrite(address - 16, [size, 1])
    with pytest.raises(TrapError, match=f"overwrote the malloc header of the memory at {address:#x}"):
        module.addresses(64, 1)
