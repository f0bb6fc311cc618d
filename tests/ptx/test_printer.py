"""Text printed from the fields of a tree."""

from __future__ import annotations

from tests.ptx.corpus import HEADER
from tests.ptx.whole import print_module
from tui_probe.ptx.operands import MADE_UP, print_instruction, tokens
from tui_probe.ptx.parser import parse
from tui_probe.ptx.tree import Instruction, Memory, Register, Symbol, Vector

R1, RD1, P1 = Register("%r1"), Register("%rd1"), Register("%p1")


def test_instruction() -> None:
    load = Instruction("ld", ("global", "v2", "b32"), (Vector((R1, Symbol("_"))), Memory(RD1, -8)), MADE_UP, P1, True)
    assert print_instruction(load) == "@!%p1 ld.global.v2.b32 {%r1, _}, [%rd1+-8];"
    assert print_instruction(Instruction("ret", (), (), MADE_UP)) == "ret;"


def test_variables_of_one_declaration_print_once() -> None:
    source = HEADER + ".entry k() { .reg .b32 a, b, %r<5>; .reg .b32 c; ret; }"
    assert tokens(print_module(parse(source))) == tokens(source)


def test_a_declaration_keeps_its_semicolon() -> None:
    source = HEADER + ".extern .func (.param .b32 r) f (.param .b64 a);\n.func g ;"
    assert tokens(print_module(parse(source))) == tokens(source)
