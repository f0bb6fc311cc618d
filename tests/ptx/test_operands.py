"""Operand text to nodes and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ptx.strategies import operands
from tui_probe.ptx.operands import OperandParser, parse_integer, print_operand, tokens
from tui_probe.ptx.tree import (
    Element,
    Immediate,
    Memory,
    Negated,
    Operand,
    OperandList,
    Pair,
    Raw,
    Register,
    Sum,
    Symbol,
    Vector,
)

R1, R2, RD1 = Register("%r1"), Register("%r2"), Register("%rd1")
SCOPE = OperandParser({"bare": 0, "n": 5})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%r1", R1),
        ("%tid.x", Register("%tid", "x")),
        ("%clock64", Register("%clock64")),
        ("bare", Register("bare")),
        ("bare.y", Register("bare", "y")),
        ("n0", Register("n0")),
        ("n4", Register("n4")),
        ("n5", Symbol("n5")),
        ("n04", Symbol("n04")),
        ("n", Symbol("n")),
        ("_", Symbol("_")),
        ("$L__BB0_1", Symbol("$L__BB0_1")),
        ("foo+4", Symbol("foo", 4)),
        ("foo-4", Symbol("foo", -4)),
        ("foo + 4 + 8", Symbol("foo", 12)),
        ("16", Immediate("16")),
        ("-1", Immediate("-1")),
        ("0f3F800000", Immediate("0f3F800000")),
        ("WARP_SZ", Immediate("WARP_SZ")),
        ("[%rd1]", Memory(RD1)),
        ("[%rd1+16]", Memory(RD1, 16)),
        ("[ %rd1 + 0x10 ]", Memory(RD1, 16)),
        ("[%rd1+-4]", Memory(RD1, -4)),
        ("[%rd1-010]", Memory(RD1, -8)),
        ("[foo+8]", Memory(Symbol("foo"), 8)),
        ("[foo+8+16]", Memory(Symbol("foo"), 24)),
        ("[64]", Memory(None, 64)),
        ("[%rd1, {%r1, %r2}]", Memory(RD1, 0, (R1, R2))),
        ("{%r1, _, 0}", Vector((R1, Symbol("_"), Immediate("0")))),
        ("{}", Vector(())),
        ("%p1|%p2", Pair(Register("%p1"), Register("%p2"))),
        ("(%r1, foo)", OperandList((R1, Symbol("foo")))),
        ("!%p1", Negated("!", Register("%p1"))),
        ("-%r1", Negated("-", R1)),
        ("%r1 + 4", Sum(R1, 4)),
        ("%r1+-0x2+010", Sum(R1, 6)),
        ("{%r1+1, %r1}", Vector((Sum(R1, 1), R1))),
        ("foo[3]", Element("foo", Immediate("3"))),
        ("foo[%r1]", Element("foo", Register("%r1"))),
        ("foo[%r1+1]", Raw("foo[%r1+1]")),
        ("1 + 2 * 3", Immediate("7")),
        ("[%r1+%r2]", Raw("[%r1+%r2]")),
        ("foo.x", Raw("foo.x")),
    ],
)
def test_forms(text: str, expected: Operand) -> None:
    assert SCOPE.parse(text) == (expected,)
    assert SCOPE.parse(f" {text} ,%r2") == (expected, R2)


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_nothing(text: str) -> None:
    assert SCOPE.parse(text) == ()


def test_unknown_operand_spoils_only_itself() -> None:
    assert SCOPE.parse("%r1, {%r1, 1+x}, , [a, b, c], %r2") == (
        R1,
        Raw("{%r1, 1+x}"),
        Raw(""),
        Raw("[a, b, c]"),
        R2,
    )


def test_deep_nesting_is_raw() -> None:
    text = "{" * 5000 + "}" * 5000
    assert SCOPE.parse(text) == (Raw(text),)


@given(operands())
def test_a_comment_changes_nothing(text: str) -> None:
    """The fast way, by patterns, and the careful way, by tokens, agree."""
    careful = SCOPE.parse(text + "/**/") if text else ()
    assert [_without_comment(node) for node in careful] == list(SCOPE.parse(text))


def _without_comment(operand: Operand) -> Operand:
    return Raw(operand.text.removesuffix("/**/")) if isinstance(operand, Raw) else operand


@given(operands())
def test_printing_parses_back(text: str) -> None:
    nodes = SCOPE.parse(text)
    assert SCOPE.parse(", ".join(map(print_operand, nodes))) == nodes


@given(st.integers(-(2**70), 2**70))
def test_integers(value: int) -> None:
    sign = "-" if value < 0 else ""
    size = abs(value)
    for digits in (f"{size}", f"0x{size:x}", f"0{size:o}", f"0b{size:b}", f"{size}U"):
        assert parse_integer(sign + digits) == value


@pytest.mark.parametrize("text", ["", "x", "1.5", "0f3F800000", "09", "0x", "--1", "9" * 5000])
def test_no_integers(text: str) -> None:
    assert parse_integer(text) is None


def test_tokens_survive() -> None:
    text = "{%r1,%r2}, [%rd1], (a), !%p1"
    assert tokens(", ".join(map(print_operand, SCOPE.parse(text)))) == tokens(text)
