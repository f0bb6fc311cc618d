"""Constant expressions, whose expected values are what NVIDIA's assembler makes of an initialiser."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_probe.ptx.constants import fold_constant
from tui_probe.ptx.operands import OperandParser
from tui_probe.ptx.parser import parse
from tui_probe.ptx.tree import Immediate, Memory, Operand, OperandList, Register, Symbol, Variable

ASSEMBLED = {
    "3 + 4": 7,
    "-1/2": 0,
    "-7/2": -3,
    "-7U/2": 0x7FFFFFFFFFFFFFFC,
    "-7 % 3": 0,
    "7 % 3": 1,
    "(-7) % (-3)": 2**64 - 7,
    "(1 % 2) - 2 < 0": 0,
    "-8 >> 1": -4,
    "-8 >> -1": -1,
    "(-8U) >> 1": 0x7FFFFFFFFFFFFFFC,
    "~0 >> 1": 0x7FFFFFFFFFFFFFFF,
    "1 << 65": 2,
    "1<<63>>63": -1,
    "1U << 63 >> 63": 1,
    "-1 < 1U": 0,
    "-1 < 1": 1,
    "!5": 0,
    "!0": 1,
    "!-5": 0,
    "-1 & 0xff": 255,
    "(-1 & -1)/2": 0,
    "5 && 2": 1,
    "0 && 1": 0,
    "(0 || 3) + 1": 2,
    "0 ? 2 : 3": 3,
    "(1 ? -1 : 2U)/2": 0,
    "1 ? 2 : 3 + 4": 2,
    "-1 > 0 ? 5 : 6": 6,
    "(.u64)-1/2": 0x7FFFFFFFFFFFFFFF,
    "(.s64)0xFFFFFFFFFFFFFFFF/2": 0,
    "0xFFFFFFFFFFFFFFFF/2": 0x7FFFFFFFFFFFFFFF,
    "2*3+4*5": 26,
    "2-3-4": -5,
    "2 + 3 * 4 % 5": 4,
    "8 >> 1 + 1": 2,
    "3 ^ 5 | 8": 14,
    "1 | 2 == 2": 1,
    "1 < 2 == 1": 1,
    "0x10 - 010": 8,
    "0b11 + 1": 4,
    "WARP_SZ*2": 64,
    "- -5": 5,
    "9223372036854775807 + 1": -(2**63),
    "9223372036854775808 / 2": 2**62,
    "-9223372036854775808 / 2": 2**62,
    "0xFFFFFFFF * 0xFFFFFFFF": 0xFFFFFFFE00000001,
    "1.5 > 1.0": 1,
}


@pytest.mark.parametrize(("text", "expected"), ASSEMBLED.items())
def test_integers_are_those_of_the_assembler(text: str, expected: int) -> None:
    assert (int(fold_constant(text)) - expected) % 2**64 == 0


@pytest.mark.parametrize(
    ("text", "expected"), [("1.0 / 3.0", 1 / 3), ("1.0 - 2.0*3.0", -5.0), ("-(1.5)", -1.5), ("1 ? 1.5 : 2.5", 1.5)]
)
def test_reals_are_doubles(text: str, expected: float) -> None:
    assert fold_constant(text) == "0d" + struct.pack(">d", expected).hex().upper()


@pytest.mark.parametrize(
    "text",
    ["7/0", "7 % 0", "1.0/0.0", "5 == 5.0", "1.0 + 2", "0f3F800000 + 1.0", "!1.5", "x + 1", "3 +", "(3", "1 ? 2", ""],
)
def test_other_text_is_kept(text: str) -> None:
    assert fold_constant(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3 + 4", Immediate("7")),
        ("(3 + 4) * 2", Immediate("14")),
        ("1.0 + 2.0", Immediate("0d4008000000000000")),
        ("-5", Immediate("-5")),
        ("0x10", Immediate("0x10")),
        ("(5)", OperandList((Immediate("5"),))),
        ("(3 + 4)", OperandList((Immediate("7"),))),
        ("(1) + (2)", Immediate("3")),
        ("[x + 2 * 4]", Memory(Symbol("x"), 8)),
        ("[%rd1 + (1 << 4)]", Memory(Register("%rd1"), 16)),
        ("[%rd1+(-4)]", Memory(Register("%rd1"), -4)),
        ("[x + 8 - 2 + 1]", Memory(Symbol("x"), 7)),
        ("x + 2*2", Symbol("x", 4)),
    ],
)
def test_operands_that_are_expressions(text: str, expected: Operand) -> None:
    assert OperandParser().parse(text) == (expected,)


def test_extents_of_arrays_are_expressions() -> None:
    module = parse(".version 8.0\n.target sm_80\n.global .b32 x[4 * 32 + 1][1 << 2];\n")
    (variable,) = (item for item in module.items if isinstance(item, Variable))
    assert (variable.shape, variable.size_bytes) == ((129, 4), 129 * 4 * 4)


INTEGERS = st.integers(0, 2**63 - 1).map(str)
SUMS = st.recursive(
    INTEGERS,
    lambda inner: st.tuples(inner, st.sampled_from("+-*&|^"), inner).map(lambda parts: f"({' '.join(parts)})"),
    max_leaves=12,
)


@given(SUMS)
def test_signed_expressions_are_those_of_python_modulo_64_bits(text: str) -> None:
    assert (int(fold_constant(text)) - eval(text)) % 2**64 == 0  # noqa: S307 - an expression made above


@given(st.text("0123456789+-*/%()<>=!&|^~?: xU.", max_size=40).filter(lambda text: "/*" not in text))
def test_any_text_is_read_or_left(text: str) -> None:
    operand = fold_constant(text)
    assert operand == text or operand.startswith("0d") or operand.lstrip("-").isdigit()
