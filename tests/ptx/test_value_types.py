"""Types of the values in registers, by the instructions that write them."""

from __future__ import annotations

import pytest

from tests.engine.kernels import CORPUS, entry
from tui_probe.ptx.parser import parse
from tui_probe.ptx.tree import instructions_in
from tui_probe.ptx.value_types import ANYTHING, Elements, ValueTypes


def type_of(body: str, register: str = "%x") -> Elements | None:
    return ValueTypes(parse(entry(body)).entries()[0]).register_elements(register)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("add.rn.f32 %x, %a, %b;", ("f32",)),
        ("fma.rn.relu.bf16x2 %x, %a, %b, %c;", ("bf16", "bf16")),
        ("cvt.rn.f16.f32 %x, %a;", ("f16",)),
        ("cvt.rzi.s32.f32 %x, %a;", ("int",)),
        ("cvt.rn.satfinite.e4m3x2.f32 %x, %a, %b;", None),
        ("add.f64 %a, %b, %c; mov.b64 %x, %a;", ("f64",)),
        ("add.f32 %a, %b, %c; shfl.sync.bfly.b32 %x|%p, %a, 1, 31, -1;", ("f32",)),
        ("add.f32 %a, %b, %c; selp.b32 %x, %a, 0, %p;", ("f32",)),
        ("add.f32 %a, %b, %c; add.s32 %d, %b, 1; selp.b32 %x, %a, %d, %p;", None),
        ("cvt.rn.f16.f32 %a, %f; cvt.rn.f16.f32 %b, %g; mov.b32 %x, {%a, %b};", ("f16", "f16")),
        ("cvt.rn.bf16x2.f32 %a, %f, %g; mov.b32 {%y, %x}, %a;", ("bf16",)),
        ("mov.b32 %x, 0f7F800000;", ("f32",)),
        ("mov.b32 %x, 2143289344;", ANYTHING),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%x, %y}, {%a}, {%b}, {%c};", ("f32",)),
        ("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%x, %y}, {%a}, {%b}, {%c};", ("f16", "f16")),
        ("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%x, %y}, {%a}, {%b}, {%c};", None),
        ("ld.global.f32 %x, [%p];", ("f32",)),
        ("ld.global.b32 %x, [%p];", None),
        ("xor.b32 %x, %a, -2147483648;", None),
        ("ret;", None),
    ],
)
def test_one_value(body: str, expected: Elements | None) -> None:
    assert type_of(body) == expected


def test_loops_hand_values_round() -> None:
    """A sum that begins with 0 and goes round by moves is of the type that is added."""
    body = "mov.b32 %x, 0; $loop: add.f32 %a, %x, %b; mov.b32 %c, %a; mov.b32 %x, %c; @%p bra $loop;"
    assert type_of(body) == ("f32",)
    assert type_of(body.replace("mov.b32 %x, 0", "add.u32 %x, %d, 1")) is None


THROUGH = """
{before}
cvt.rn.f16x2.f32 %a, %f, %g;
st.shared.b32 [%s], %a;
bar.sync 0;
{between}
ld.shared.v2.b32 {{%x, %y}}, [%t];
"""


@pytest.mark.parametrize(
    ("before", "between", "expected"),
    [
        ("", "", ("f16", "f16")),
        ("cp.async.cg.shared.global [%s], [%d], 16; bar.sync 0;", "", ("f16", "f16")),
        ("cp.async.cg.shared.global [%s], [%d], 16;", "", None),
        ("cp.async.cg.shared.global [%s], [%d], 16; bar.sync 0;", "$l: @%p bra $l;", None),
        ("add.s32 %i, %j, 1; st.shared.b32 [%s], %i; bar.sync 0;", "", ("f16", "f16")),
        ("add.s32 %i, %j, 1; st.shared.b32 [%s], %i;", "", None),
    ],
)
def test_through_shared_memory(before: str, between: str, expected: Elements | None) -> None:
    assert type_of(THROUGH.format(before=before, between=between)) == expected


def test_order_of_instructions_does_not_matter() -> None:
    lines = ["add.f32 %a, %b, %c;", "mov.b32 %d, %a;", "selp.b32 %e, %d, %x, %p;", "mov.b32 %x, %e;"]
    assert {type_of("\n".join(order)) for order in (lines, lines[::-1], lines[2:] + lines[:2])} == {("f32",)}


def test_the_corpus() -> None:
    """Stores that name a type keep it; nothing fails."""
    kernels = [kernel for file in CORPUS for kernel in parse(file.read_text()).entries()]
    types = {
        elements
        for kernel in kernels
        for types in [ValueTypes(kernel)]
        for instruction in instructions_in(kernel.body or [])
        if instruction.opcode == "st" and "f32" in instruction.modifiers
        for _, elements in types.stored_elements(instruction)
    }
    assert types == {("f32",)}
