"""Calls of device functions: parameters, results, recursion, pointers, exits."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from tests.simgpu.device import Device, compiled, kernel, module
from tui_probe.errors import SimulationError
from tui_probe.simgpu.executor import UnsupportedInstructionError, compile_kernel, function_addresses


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
    .extern .func (.param .b64 result) malloc (.param .b64 size);
    .visible .entry allocates(.param .u32 allocates) {
        .reg .pred %p; .reg .b32 %r; .reg .b64 %rd;
        ld.param.u32 %r, [allocates];
        setp.eq.u32 %p, %r, 0;
        @%p bra done;
        { .param .b64 p0; .param .b64 r0;
          st.param.b64 [p0], %rd;
          call.uni (r0), malloc, (p0); }
    done: ret; }"""
    Device().launch(compiled(source), np.uint32(0))
    with pytest.raises(UnsupportedInstructionError, match=r"unsupported instruction call\.uni malloc at line 13"):
        Device().launch(compiled(source), np.uint32(1))
