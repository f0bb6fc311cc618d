"""Loads, stores, state spaces, variables, and what happens at wrong addresses."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simgpu.device import BASE, HEADER, Device, compiled, kernel, module
from tui_probe.errors import PtxError
from tui_probe.ptx.parser import parse
from tui_probe.simgpu.executor import (
    DeviceMemory,
    MemoryFaultError,
    MisalignedAddressError,
    UnsupportedInstructionError,
    compile_kernel,
)
from tui_probe.simgpu.modules import Relocation, module_variables


def random(dtype: Any, *shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(3).integers(0, 256, (*shape, np.dtype(dtype).itemsize), np.uint8).view(dtype)[..., 0]


def test_vectors() -> None:
    count = 100
    quads = np.random.default_rng(1).standard_normal((count, 4)).astype(np.float32)
    doubles = np.random.default_rng(2).standard_normal((count, 2))
    octets, shorts = random(np.uint8, count, 4), random(np.int16, count, 2)
    before = [array.copy() for array in (quads, doubles, octets, shorts)]
    Device().launch(
        kernel("memory", "vectors"), quads, doubles, octets, shorts, np.int32(count), grid=(2,), block=(64,)
    )
    q, d, b, s = before
    assert (quads == np.stack([q[:, 3], q[:, 2], q[:, 1] + np.float32(1), q[:, 0] * np.float32(2)], 1)).all()
    assert (doubles == np.stack([d[:, 1], d[:, 0] - 1], 1)).all()
    assert (octets == np.stack([b[:, 1], b[:, 0], b[:, 3], b[:, 2] + np.uint8(1)], 1)).all()
    assert (shorts == np.stack([s[:, 1], -s[:, 0]], 1)).all()


def test_registers_that_are_vectors_and_sums_of_names_and_numbers() -> None:
    source = """
.visible .entry vectors(.param .u64 output) {
    .reg .v2 .u32 pair, copy; .reg .b32 %r<5>; .reg .b64 %rd<2>; .shared .align 8 .b8 tile[64];
    mov.u32 pair.x, 3; mov.u32 pair.y, 4;
    st.shared.v2.u32 [tile + 8 + 16], pair; ld.shared.v2.u32 copy, [tile + 24];
    add.u32 %r1, copy.x, copy.y;
    mov.u32 %r2, tile + 4; mov.u32 %r3, tile[0]; sub.u32 %r2, %r2, %r3;
    ld.param.u64 %rd1, [output]; st.global.v2.u32 [%rd1], copy; st.global.v2.u32 [%rd1 + 8], {%r1, %r2};
    ret;
}
"""
    output = np.zeros(4, np.uint32)
    Device().launch(compiled(source), output, block=(1,))
    assert output.tolist() == [3, 4, 7, 4]


def test_narrow_loads_are_extended() -> None:
    arrays = [random(dtype, 64) for dtype in (np.int8, np.uint8, np.int16, np.uint16)]
    output = np.zeros(64, np.int32)
    Device().launch(kernel("memory", "narrow"), output, *arrays, block=(64,))
    a, b, c, d = (array.astype(np.int32) for array in arrays)
    assert (output == a + 1000 * b + 3 * c - d).all()


def test_local_arrays() -> None:
    order = np.random.default_rng(1).integers(0, 16, 128, np.int32)
    output = np.zeros(128, np.int32)
    Device().launch(kernel("memory", "local_array"), output, order, block=(128,))
    for i, step in enumerate(order.tolist()):
        values = [k * k + i for k in range(16)]
        values[(step & 7) + (step & 3)] = -1
        total = 0
        for k in range(16):
            total = 3 * total + values[(k + step) & 15]
        assert output[i] == (total + 2**31) % 2**32 - 2**31


def test_generic_addresses() -> None:
    memory = np.arange(0, 640, 10, dtype=np.int32)
    output = np.zeros(64, np.int32)
    Device().launch(kernel("memory", "generic"), output, memory, block=(64,))
    shared = [1000 + i for i in range(64)]
    values = []
    for i in range(64):
        if i % 3 == 1:
            shared[(i + 1) % 64] += 7
    for i in range(64):
        own = (10 * i + 7, shared[(i + 1) % 64], (i, 5)[i & 1] + 7)[i % 3]
        values.append(own + shared[i] + (20000, 10000, 0)[i % 3])
    assert output.tolist() == values


def test_variables_of_the_module() -> None:
    device = Device()
    variables = {variable.name: variable for variable in device.load_variables(module("memory"))}
    output = np.zeros(24, np.float32)
    device.launch(kernel("memory", "variables"), output, block=(24,))
    coefficients, matrix, text = (1.5, -2, 3, 0.25), ((1, -2, 3), (4, 5, -6)), b"ab"
    assert output.tolist() == [coefficients[i & 3] + 7 + matrix[i & 1][i % 3] + text[i & 1] for i in range(24)]
    scratch = device.download(device.variables["scratch"], np.zeros(1))
    assert scratch.tolist() == [2.5]
    assert variables["counter_address"].relocations == (Relocation(0, "counter", 0),)
    assert (variables["table"].space, variables["table"].size, variables["table"].align) == ("const", 32, 4)


def test_initial_values_of_variables() -> None:
    tree = parse(""".version 7.8
    .target sm_80
    .address_size 64
    .global .align 4 .b8 bytes[6] = {1, 0x2, 255};
    .global .f32 half = 0f3F000000;
    .global .f64 third = 0.25;
    .global .s16 rows[2][2] = {{1, -1}, {2, -2}};
    .const .u64 where[3] = {generic(bytes)+4, half, 9};
    .extern .global .u32 elsewhere;
    .global .v4 .f32 quad;
    """)
    variables = {variable.name: variable for variable in module_variables(tree)}
    assert list(variables) == ["bytes", "half", "third", "rows", "where", "quad"]
    assert variables["bytes"].initial == bytes([1, 2, 255, 0, 0, 0])
    assert variables["half"].initial == struct.pack("<f", 0.5)
    assert variables["third"].initial == struct.pack("<d", 0.25)
    assert variables["rows"].initial == struct.pack("<4h", 1, -1, 2, -2)
    assert variables["where"].initial == bytes(16) + struct.pack("<Q", 9)
    assert variables["where"].relocations == (Relocation(0, "bytes", 4), Relocation(8, "half", 0))
    assert (variables["quad"].size, variables["quad"].align) == (16, 16)


def test_indices_past_32_bits() -> None:
    output = np.zeros(200, np.uint64)
    Device().launch(
        kernel("memory", "wide_index"), output, np.int64(-(2**33) + 5), np.int32(77), grid=(4,), block=(50,)
    )
    for i, found in enumerate(output.tolist()):
        offset = i * (-(2**33) + 5) * 1000003
        quotient = -(-offset // 77)
        assert found == (quotient + (offset - quotient * 77) + (offset >> 7) * 3) % 2**64


def test_static_and_dynamic_shared_memory() -> None:
    function = kernel("memory", "shared_reversed")
    assert function.static_shared_bytes == 6
    data = np.arange(256, dtype=np.int32)
    Device().launch(function, data, grid=(4,), block=(64,), shared=256)
    expected = np.arange(256).reshape(4, 64)[:, ::-1] + np.arange(64) % 3 + 1
    assert data.tolist() == expected.reshape(-1).tolist()


def test_shared_variables_of_the_module_take_room_where_they_are_used() -> None:
    source = """.version 7.8
    .target sm_80
    .address_size 64
    .shared .align 8 .b8 unused[1000];
    .shared .align 8 .b8 common[64];
    .func put(.param .b32 value) { .reg .b32 %r<3>; ld.param.u32 %r1, [value]; mov.u32 %r2, %tid.x;
        shl.b32 %r2, %r2, 2; st.shared.u32 [common+%r2], %r1; ret; }
    .visible .entry shares(.param .u64 out) {
        .reg .b32 %r<5>; .reg .b64 %rd<3>; .shared .b32 own;
        mov.u32 %r1, %tid.x; add.u32 %r2, %r1, 50;
        { .param .b32 p; st.param.b32 [p], %r2; call.uni put, (p); }
        bar.sync 0; xor.b32 %r3, %r1, 3; shl.b32 %r3, %r3, 2; mov.u32 %r4, common; add.u32 %r3, %r3, %r4;
        ld.shared.u32 %r2, [%r3]; ld.param.u64 %rd1, [out]; mad.wide.u32 %rd2, %r1, 4, %rd1; st.global.u32 [%rd2], %r2;
        ret; }""".replace("[common+%r2]", "[%r2]").replace(
        "shl.b32 %r2, %r2, 2; st", "mad.lo.u32 %r2, %r2, 4, common; st"
    )
    function = compiled(source)
    assert function.static_shared_bytes == 72
    output = np.zeros(16, np.uint32)
    Device().launch(function, output, block=(16,))
    assert output.tolist() == [50 + (i ^ 3) for i in range(16)]


def test_vectors_at_generic_addresses() -> None:
    source = """.visible .entry generic(.param .u64 data) {
        .reg .b32 %r<5>; .reg .b64 %rd<5>; .reg .pred %p; .shared .align 8 .b8 tile[256];
        mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [data]; mad.wide.u32 %rd1, %r1, 8, %rd1;
        mov.u64 %rd2, tile; cvta.shared.u64 %rd2, %rd2; mad.wide.u32 %rd2, %r1, 8, %rd2;
        ld.global.v2.u32 {%r2, %r3}, [%rd1]; st.v2.u32 [%rd2], {%r3, %r2};
        setp.lt.u32 %p, %r1, 10; selp.b64 %rd3, %rd1, %rd2, %p;
        ld.v2.u32 {%r2, %r3}, [%rd3]; st.global.v2.u32 [%rd1], {%r2, %r3}; ret; }"""
    data = np.arange(64, dtype=np.uint32).reshape(32, 2)
    Device().launch(compiled(source), data)
    before = np.arange(64).reshape(32, 2)
    assert data.tolist() == [*before[:10].tolist(), *before[10:, ::-1].tolist()]


def test_parameters_by_value() -> None:
    function = kernel("memory", "by_value")
    assert [(p.offset, p.size, p.align) for p in function.parameters] == [
        (0, 8, 8),
        (8, 1, 1),
        (16, 64, 16),
        (80, 2, 2),
    ]
    structure = struct.pack("<6i8x4fb15x", *range(10, 16), 0.5, 1.5, 2.5, 3.5, 7)
    output = np.zeros(12, np.float32)
    Device().launch(function, output, np.int8(-3), structure, np.int16(1000), block=(12,))
    assert output.tolist() == [10 + i % 6 + (i & 3) + 0.5 - 3 + 7 + 1000 for i in range(12)]


def test_threads_that_store_to_the_same_place_store_in_order() -> None:
    source = """.visible .entry same(.param .u64 out) {
        .reg .b32 %r; .reg .b64 %rd; mov.u32 %r, %tid.x; ld.param.u64 %rd, [out]; st.global.u32 [%rd], %r; ret; }"""
    output = np.zeros(1, np.int32)
    Device().launch(compiled(source), output, block=(100,))
    assert output[0] == 99


ACCESS = """.visible .entry access(.param .u64 address) {{
    .reg .b16 %h; .reg .b32 %r<5>; .reg .b64 %rd<3>;
    .shared .align 8 .b8 tile[64];
    .local .align 8 .b8 stack[32];
    ld.param.u64 %rd1, [address];
    mov.u32 %r1, %tid.x;
    mad.wide.u32 %rd1, %r1, 4, %rd1;
    cvt.u32.u64 %r2, %rd1;
    {instruction}
    ret; }}"""


@pytest.mark.parametrize(
    ("instruction", "address", "kind", "message"),
    [
        ("ld.global.u32 %r3, [%rd1];", 0, MemoryFaultError, "illegal address 0x0 (4 bytes, global memory) at line 12"),
        ("st.global.u32 [%rd1], 1;", BASE + 4096 - 8, MemoryFaultError, f"{BASE + 4096:#x}"),
        ("ld.global.u32 %r3, [%rd1];", BASE - 8, MemoryFaultError, f"{BASE - 8:#x}"),
        ("ld.u32 %r3, [%rd1];", 16, MemoryFaultError, "illegal address 0x10 (4 bytes, global"),
        # The second of two accesses by one register, for the last thread only.
        ("ld.global.u32 %r3, [%rd1]; ld.global.u32 %r3, [%rd1+4];", BASE + 4064, MemoryFaultError, f"{BASE + 4096:#x}"),
        ("ld.global.u32 %r3, [%rd1]; ld.global.u32 %r3, [%rd1+2];", BASE, MisalignedAddressError, f"{BASE + 2:#x}"),
        ("ld.global.u32 %r3, [%rd1]; ld.global.u32 %r3, [%rd1+-4];", BASE, MemoryFaultError, f"{BASE - 4:#x}"),
        ("atom.global.add.u32 %r3, [%rd1], 1;", 8, MemoryFaultError, "illegal address 0x8"),
        ("ld.shared.u32 %r3, [%r2];", 48, MemoryFaultError, "illegal address 0x40 (4 bytes, shared memory)"),
        ("st.shared.u8 [%r2+64], %h;", 0, MemoryFaultError, "illegal address 0x40 (1 bytes, shared"),
        ("st.local.u32 [%rd1], 1;", 16, MemoryFaultError, "illegal address 0x20 (4 bytes, local"),
        ("ld.global.u64 %rd2, [%rd1];", BASE, MisalignedAddressError, "misaligned address 0x7f0000000004 (8 bytes"),
        ("ld.shared.v2.u32 {%r3, %r4}, [%r2];", 8, MisalignedAddressError, "misaligned address 0xc (8 bytes, shared"),
    ],
)
def test_faults_tell_what_and_where(instruction: str, address: int, kind: type[Exception], message: str) -> None:
    device = Device(4096)
    source = ACCESS.format(instruction=instruction)
    with pytest.raises(MemoryFaultError) as error:
        device.launch(compiled(source), np.uint64(address), grid=(3,), block=(8,))
    assert type(error.value) is kind
    assert message in str(error.value)
    assert "at line 12, block (" in str(error.value)


def test_faults_name_the_first_thread() -> None:
    device = Device(4096)
    source = ACCESS.format(instruction="st.global.u32 [%rd1], 1;")
    with pytest.raises(MemoryFaultError, match=r"block \(0, 0, 0\), thread \(2, 0, 0\)"):
        device.launch(compiled(source), np.uint64(BASE + 4096 - 8), grid=(2,), block=(4, 2))


def test_threads_that_do_not_execute_an_access_do_not_fault() -> None:
    source = ACCESS.format(instruction=".reg .pred %p; setp.lt.u32 %p, %r1, 2; @%p st.global.u32 [%rd1], 5;")
    device = Device(4096)
    device.launch(compiled(source), np.uint64(BASE + 4096 - 8), block=(8,))
    assert device.buffer.view(np.uint32)[-2:].tolist() == [5, 5]


def test_memory_outside_allocations_is_illegal() -> None:
    buffer = np.zeros(4096, np.uint8)
    memory = DeviceMemory(buffer, BASE, np.array([[BASE, BASE + 256], [BASE + 512, BASE + 768]], np.uint64))
    device = Device(4096)
    device.memory = memory
    function = compiled(ACCESS.format(instruction="st.global.u32 [%rd1], 1;"))
    device.launch(function, np.uint64(BASE + 512), block=(64,))
    assert buffer.view(np.uint32).sum() == 64
    for start in (BASE + 240, BASE + 300, BASE + 504, BASE + 1000):
        with pytest.raises(MemoryFaultError, match="illegal address"):
            device.launch(function, np.uint64(start), block=(8,))


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 127), st.integers(0, 2**32 - 1)), min_size=1, max_size=40))
def test_scatter(stores: list[tuple[int, int]]) -> None:
    memory = DeviceMemory(np.zeros(512, np.uint8), BASE)
    address = np.array([BASE + 4 * index for index, _ in stores], np.uint64)
    memory.scatter(address, np.array([value for _, value in stores], np.uint32))
    last = dict(stores)
    assert memory.view(np.dtype(np.uint32))[[index for index, _ in stores]].tolist() == [
        last[index] for index, _ in stores
    ]


def test_scatter_checks_addresses() -> None:
    memory = DeviceMemory(np.zeros(64, np.uint8), BASE)
    with pytest.raises(MemoryFaultError):
        memory.scatter(np.array([BASE + 64], np.uint64), np.ones(1, np.uint8))
    with pytest.raises(MisalignedAddressError):
        memory.scatter(np.array([BASE + 2], np.uint64), np.ones(1, np.uint32))
    with pytest.raises(ValueError, match="multiple of 16"):
        DeviceMemory(np.zeros(64, np.uint8), 4096)


def test_kernels_are_found_by_their_exact_names() -> None:
    tree = module("memory")
    with pytest.raises(PtxError, match=r"no kernel vector in the module; its kernels: vectors, narrow"):
        compile_kernel(tree, "vector")


def test_elements_of_variables_by_number_and_by_register() -> None:
    source = """.global .u64 wide[4] = {10, 20, 30, 40};
    .visible .entry takes(.param .u64 out) {
        .reg .b32 %r<3>; .reg .b64 %rd<5>; .shared .u32 near[4];
        ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd1, %r1, 24, %rd1;
        ld.global.u64 %rd2, wide[%r1]; st.global.u64 [%rd1], %rd2;
        mov.u64 %rd3, wide[2]; ld.u64 %rd4, [%rd3]; st.global.u64 [%rd1+8], %rd4;
        st.shared.u32 near[%r1], %r1; bar.sync 0;
        ld.shared.u32 %r2, near[3]; cvt.u64.u32 %rd4, %r2; st.global.u64 [%rd1+16], %rd4; ret; }"""
    device, tree = Device(), parse(HEADER + source)
    device.load_variables(tree)
    out = np.zeros((4, 3), np.uint64)
    device.launch(compile_kernel(tree, "takes"), out, block=(4,))
    assert out.tolist() == [[10, 30, 3], [20, 30, 3], [30, 30, 3], [40, 30, 3]]


def test_variables_that_functions_declare_inside_themselves() -> None:
    """Two of one name are two variables, and one that is changed stays so."""
    body = """ {{
        .global .align 4 .u32 held[2] = {{ {0}, {1} }}; .const .align 4 .u32 fixed = {2};
        .reg .b32 %r<3>; .reg .b64 %rd;
        ld.param.u64 %rd, [out]; ld.global.u32 %r1, [held+4]; ld.const.u32 %r2, [fixed];
        st.global.v2.u32 [%rd], {{%r1, %r2}}; st.global.u32 [held+4], %r2; ret; }}
    """
    tree = parse(
        HEADER
        + ".visible .entry first(.param .u64 out)"
        + body.format(1, 2, 3)
        + ".visible .entry second(.param .u64 out)"
        + body.format(4, 5, 6)
    )
    device = Device()
    device.load_variables(tree)
    seen = []
    for name in ("first", "second", "first"):
        out = np.zeros(2, np.uint32)
        device.launch(compile_kernel(tree, name), out, block=(1,))
        seen.append(out.tolist())
    assert seen == [[2, 3], [5, 6], [3, 3]]


def test_generic_accesses_by_name_are_in_the_space_of_the_variable() -> None:
    source = """
.shared .align 8 .b8 outer[64];
.visible .entry named(.param .u64 output) {
    .shared .align 4 .u32 kept[32]; .local .align 4 .u32 own[4]; .reg .b32 %r<9>, temp; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [output]; mov.u32 temp, %tid.x;
    st.u32 [kept + 4], 7; st.u32 kept[temp], temp;
    st.u32 [own+4], temp + 1; ld.u32 %r1, [own + 4];
    st.volatile.u32 [outer], 3; atom.add.u32 %r2, [outer], temp + -1; red.add.u32 [outer], 5; ld.u32 %r3, [outer];
    add.u32 %r4, temp + 0x10, temp+010; mov.u64 %rd2, %rd1 + 8;
    st.global.v2.u32 [%rd1], {%r1, %r2}; st.u32 [%rd2], %r3; st.u32 [%rd2 + 4], %r4;
    ret;
}"""
    output = np.zeros(4, np.uint32)
    Device().launch(compiled(source), output, block=(1,))
    assert list(output) == [1, 3, 7, 24]


@pytest.mark.parametrize("instruction", ["ld.global.frob.u32 %r1, [%rd1];", "st.global.u32.frob [%rd1], 1;"])
def test_access_with_an_unknown_modifier_is_unsupported(instruction: str) -> None:
    registers = ".reg .b32 %r<3>; .reg .b64 %rd<3>; ld.param.u64 %rd1, [x];"
    source = f".visible .entry k(.param .u64 x) {{ {registers}\n{instruction}\nret; }}"
    with pytest.raises(UnsupportedInstructionError, match=r"unsupported instruction (ld|st)\.\S+ at line 5"):
        Device().launch(compiled(source), np.zeros(4, np.uint32), block=(1,))
