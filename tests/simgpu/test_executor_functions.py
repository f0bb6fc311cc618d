"""Calls of device functions: parameters, results, recursion, pointers, exits."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from tests.simgpu.device import HEADER, Device, compiled, kernel, module
from tui_probe.errors import SimulationError
from tui_probe.ptx.parser import parse
from tui_probe.simgpu.executor import UnsupportedInstructionError, compile_kernel, function_addresses
from tui_probe.simgpu.modules import link


def test_structures_by_value() -> None:
    output = np.zeros(64, np.int32)
    record = struct.pack("<i4xd3b5x", 5, 2.5, 1, 2, 3)
    Device().launch(kernel("functions", "structures"), output, record, block=(64,))
    assert output.tolist() == [5 + i + int(2.5 * i) + (1, (i + 128) % 256 - 128, 3)[i % 3] for i in range(64)]


def test_recursion() -> None:
    output = np.zeros(96, np.int32)
    Device().launch(kernel("functions", "recursion"), output, grid=(2,), block=(48,))
    numbers = [0, 1]
    while len(numbers) < 11:
        numbers.append(numbers[-1] + numbers[-2])
    assert output.tolist() == [numbers[i % 11] for i in range(96)]


def test_each_call_has_its_own_stack_frame() -> None:
    output = np.zeros((32, 2), np.int32)
    Device().launch(kernel("functions", "stack_frames"), output)

    def digits(n: int, total: list[int], where: int) -> int:
        local = [n * (k + 1) for k in range(4)]
        below = digits(n - 1, local, n & 3) if n > 0 else 0
        total[where] += local[(n + 1) & 3]
        return below + local[n & 3]

    expected = []
    for i in range(32):
        total = [i]
        expected.append([digits(i % 7, total, 0), total[0]])
    assert output.tolist() == expected


def test_function_pointers() -> None:
    tree = module("functions")
    function = compile_kernel(tree, "pointers")
    device = Device()
    # A table of functions is initialised with the addresses that the executor knows them by.
    device.variables |= function_addresses(tree)
    device.load_variables(tree)
    choices = np.arange(64, dtype=np.int32) % 3
    output = np.zeros(64, np.int32)
    device.launch(function, output, choices, block=(64,))
    assert output.tolist() == [(i + 7, i - 7, i * 7)[i % 3] for i in range(64)]
    device.buffer[: 1 << 10] = 0
    with pytest.raises(SimulationError, match=r"call to 0x0.*line \d+"):
        device.launch(function, output, choices, block=(64,))


def test_threads_may_exit_in_a_function() -> None:
    output = np.zeros(64, np.int32)
    Device().launch(kernel("functions", "exit_in_function"), output, block=(64,))
    assert output.tolist() == [10 if i % 3 == 0 else 111 for i in range(64)]


def test_a_function_without_body_is_an_error_only_when_called() -> None:
    source = """
    .extern .func (.param .b64 result) elsewhere (.param .b64 size);
    .visible .entry calls(.param .u32 calls) {
        .reg .pred %p; .reg .b32 %r; .reg .b64 %rd;
        ld.param.u32 %r, [calls];
        setp.eq.u32 %p, %r, 0;
        @%p bra done;
        { .param .b64 p0; .param .b64 r0;
          st.param.b64 [p0], %rd;
          call.uni (r0), elsewhere, (p0); }
    done: ret; }"""
    Device().launch(compiled(source), np.uint32(0))
    with pytest.raises(UnsupportedInstructionError, match=r"unsupported instruction call\.uni elsewhere at line 13"):
        Device().launch(compiled(source), np.uint32(1))


def returned(function: str, call: str, count: int = 32) -> list[int]:
    """Return ``%r1`` after ``call`` in each thread; ``%r2`` holds the thread's index."""
    source = f"""
    {function}
    .visible .entry calls(.param .u64 out) {{
        .reg .b32 %r<8>; .reg .f32 %f<4>; .reg .b64 %rd<4>; .reg .pred %p<4>;
        .reg .v2 .b32 pair;
        mov.u32 %r2, %tid.x;
        mov.u32 %r1, 1000;
        {call}
        ld.param.u64 %rd1, [out];
        mad.wide.u32 %rd1, %r2, 4, %rd1;
        st.global.u32 [%rd1], %r1;
        ret; }}"""
    output = np.zeros(count, np.uint32)
    Device().launch(compiled(source), output, block=(count,))
    result: list[int] = output.tolist()
    return result


SUCCESSOR = ".func (.reg .b32 r) next(.reg .b32 a) { add.u32 r, a, 1; ret; }"


def test_parameters_in_registers() -> None:
    assert returned(SUCCESSOR, "call (%r1), next, (%r2);") == [i + 1 for i in range(32)]
    assert returned(SUCCESSOR, "call (%r1), next, (40 + 1);") == [42] * 32
    assert returned(SUCCESSOR, "call (_), next, (%r2);") == [1000] * 32
    assert returned(SUCCESSOR, "call (%r1), next, (%laneid);") == [i + 1 for i in range(32)]


def test_parameters_in_registers_of_other_types() -> None:
    double = ".func (.reg .f32 r) twice(.reg .f32 a) { add.f32 r, a, a; ret; }"
    call = "cvt.rn.f32.u32 %f1, %r2; call (%f2), twice, (%f1); cvt.rzi.u32.f32 %r1, %f2;"
    assert returned(double, call) == [2 * i for i in range(32)]
    both = ".func (.reg .b32 q, .reg .b32 r) split(.reg .b32 a, .reg .b32 b) { div.u32 q, a, b; rem.u32 r, a, b; ret; }"
    call = "call (%r3, %r4), split, (%r2, 5); mad.lo.u32 %r1, %r3, 100, %r4;"
    assert returned(both, call) == [i // 5 * 100 + i % 5 for i in range(32)]
    vector = ".func (.reg .b32 r) sum(.reg .v2 .b32 a) { add.u32 r, a.x, a.y; ret; }"
    call = "mov.b32 pair.x, %r2; mov.b32 pair.y, 7; call (%r1), sum, (pair);"
    assert returned(vector, call) == [i + 7 for i in range(32)]


def test_a_result_in_a_register_from_divergent_paths() -> None:
    function = """.func (.reg .b32 r) choose(.reg .b32 a) { .reg .pred p;
        setp.lt.u32 p, a, 20; @p bra small; mov.u32 r, 5; bra done; small: mul.lo.u32 r, a, 3; done: ret; }"""
    expected = [3 * i if i < 20 else 5 for i in range(32)]
    assert returned(function, "call (%r1), choose, (%r2);") == expected
    guarded = "setp.ge.u32 %p1, %r2, 8; @%p1 call (%r1), choose, (%r2);"
    assert returned(function, guarded) == [1000] * 8 + expected[8:]


def test_a_result_in_bytes_from_divergent_paths() -> None:
    function = """.func (.param .b32 r) choose(.param .b32 a) { .reg .pred p; .reg .b32 t;
        ld.param.b32 t, [a]; setp.lt.u32 p, t, 20; @p bra small;
        st.param.b32 [r], 5; bra done; small: mul.lo.u32 t, t, 3; st.param.b32 [r], t; done: ret; }"""
    expected = [3 * i if i < 20 else 5 for i in range(32)]
    assert returned(function, "call (%r1), choose, (%r2);") == expected


def test_numbers_for_parameters_in_bytes() -> None:
    function = """.func (.param .b32 r) next(.param .b32 a) { .reg .b32 t;
        ld.param.b32 t, [a]; add.u32 t, t, 1; st.param.b32 [r], t; ret; }"""
    assert returned(function, "call (%r1), next, (%r2);") == [i + 1 for i in range(32)]
    assert returned(function, "call (%r1), next, (5);") == [6] * 32


def test_recursion_with_registers() -> None:
    function = """.func (.reg .b32 r) sum(.reg .b32 a) { .reg .pred p; .reg .b32 below, one;
        mov.u32 r, 0; setp.eq.u32 p, a, 0; @p ret; sub.u32 one, a, 1; call (below), sum, (one);
        add.u32 r, below, a; ret; }"""
    assert returned(function, "call (%r1), sum, (%r2);") == [i * (i + 1) // 2 for i in range(32)]


def test_a_call_that_does_not_match_its_function_is_refused() -> None:
    with pytest.raises(UnsupportedInstructionError, match="call next"):
        returned(SUCCESSOR, "call (%r1), next, (%r2, 5);")


ALIASES = """
.visible .func (.param .b32 sum) one_more(.param .b32 value)
{
    .reg .b32 %r<3>;
    ld.param.b32 %r1, [value]; add.u32 %r2, %r1, 1; st.param.b32 [sum], %r2;
    ret;
}
.visible .func (.param .b32 sum) next(.param .b32 value);
.alias next, one_more;
.visible .entry aliased(.param .u64 output)
{
    .reg .b32 %r<5>; .reg .b64 %rd<3>; .param .b32 value, sum;
    ld.param.u64 %rd1, [output]; mov.u32 %r1, 6; st.param.b32 [value], %r1;
    call (sum), next, (value);
    ld.param.b32 %r2, [sum]; st.param.b32 [value], %r2;
    mov.u64 %rd2, next;
    step: .callprototype (.param .b32 _) _ (.param .b32 _);
    call (sum), %rd2, (value), step;
    ld.param.b32 %r3, [sum]; st.global.v2.u32 [%rd1], {%r2, %r3};
    ret;
}
"""


def test_alias_is_called_by_name_and_by_address() -> None:
    output = np.zeros(2, np.uint32)
    Device().launch(compiled(ALIASES), output, block=(1,))
    assert output.tolist() == [7, 8]


def test_alias_has_the_address_of_its_function() -> None:
    addresses = function_addresses(parse(HEADER + ALIASES))
    assert addresses["next"] == addresses["one_more"] != addresses["aliased"]


def test_alias_survives_linking() -> None:
    text = link([(HEADER + ALIASES).encode(), (HEADER + ".entry other() { ret; }").encode()], 80)
    output = np.zeros(2, np.uint32)
    Device().launch(compile_kernel(parse(text.rstrip(b"\0").decode()), "aliased"), output, block=(1,))
    assert output.tolist() == [7, 8]
