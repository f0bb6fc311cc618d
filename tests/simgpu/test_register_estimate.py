"""The estimated registers of kernels, compared with those that ptxas took."""

from __future__ import annotations

import pytest

from tests.sass.corpus import NAMES, cubin
from tests.simgpu.device import HEADER
from tui_probe.ptx.images import ptx_texts
from tui_probe.ptx.parser import parse
from tui_probe.simgpu.registers import estimate_registers, register_counts


@pytest.mark.parametrize("name", NAMES)
def test_estimate_is_near_the_count_of_ptxas(name: str) -> None:
    (text,) = ptx_texts(cubin(name))
    module = parse(text.text)
    counts = register_counts(cubin(name))
    for kernel in module.entries():
        assert counts[kernel.name] / 2 <= estimate_registers(module, kernel) <= counts[kernel.name] * 2


def estimate(body: str, attributes: str = "") -> int:
    module = parse(f"{HEADER}.entry k() {attributes} {{ {body} ret; }}")
    return estimate_registers(module, module.entries()[0])


def many(count: int, kind: str = "b64") -> str:
    sums = "".join(f"add.u64 %d0, %d0, %d{number};" for number in range(1, count))
    return f".reg .{kind} %d<{count}>;" + "".join(f"mov.u64 %d{number}, 1;" for number in range(count)) + sums


def test_estimate_counts_values_in_use_together() -> None:
    assert estimate(many(20)) == 2 * 20 + 6
    assert estimate(many(20, "b32")) == 20 + 6
    assert estimate(many(20, "pred")) == estimate("") == 8
    assert estimate(many(500)) == 255
    assert estimate(many(50), ".maxnreg 40") == 40


def test_estimate_keeps_values_through_loops() -> None:
    body = "".join(f"mov.b32 %r{number}, 1;" for number in range(20))
    used = "".join(f"add.u32 %r20, %r20, %r{number};" for number in range(20))
    once = estimate(f".reg .b32 %r<30>; {body} {used}")
    looped = estimate(f".reg .b32 %r<30>; .reg .pred %p; {body} L: {used} @%p bra L;")
    assert looped == once + 1
