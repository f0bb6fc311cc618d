"""SASS instructions per PTX instruction: the table says what ptxas makes for sm_90."""

from __future__ import annotations

import pytest

from tests.bench.expansions import numbers
from tui_probe.ptx.instruction_facts import sass_instruction_count
from tui_probe.ptx.parser import parse
from tui_probe.ptx.tree import Instruction
from tui_probe.toolchain import find_tools

EXPANDED = ("sqrt.rn.f32", "rcp.rn.f64", "div.rn.f32", "rem.u32", "div.u64", "ex2.approx.f32", "ex2.approx.ftz.f32",
            "mul.lo.s64", "add.f32")  # fmt: skip


def instruction(text: str) -> Instruction:
    module = parse(f".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{{\n{text}\n}}\n")
    (instruction_found,) = (item for item in module.entries()[0].body or () if isinstance(item, Instruction))
    return instruction_found


@pytest.mark.parametrize("operation", EXPANDED)
def test_numbers_are_those_of_the_assembler(operation: str) -> None:
    if not find_tools("ptxas"):
        pytest.skip("no ptxas on this machine: install nvidia-cuda-nvcc")
    operands = 2 if operation.split(".")[0] in ("div", "rem", "mul", "add") else 1
    text = f"{operation} %z, {', '.join(('%x', '%y')[:operands])};"
    assert sass_instruction_count(instruction(text)) == numbers(operation, 90, operands)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("mov.u32 %r1, %r2;", 0), ("ld.param.u64 %d, [x];", 0), ("cvt.u64.u32 %d, %r1;", 0),
        ("cvt.rn.f32.u32 %f1, %r1;", 1), ("shfl.sync.down.b32 %r1, %r2, 1, 31, -1;", 1),
        ("ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%d];", 1), ("bar.sync 0;", 1), ("sqrt.rp.f32 %f1, %f2;", 9),
    ],
)  # fmt: skip
def test_dropped_instructions_are_none(text: str, number: int) -> None:
    assert sass_instruction_count(instruction(text)) == number
